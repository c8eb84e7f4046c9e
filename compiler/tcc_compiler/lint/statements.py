"""The statements of a grammar as they were written, each with the parts of the core that it makes.

A statement may make several parts (`same` over listed parameters), none (where there is nothing to
forbid), or one that another statement makes, too; what a gate holds of it is a monitor.
Language: docs/spec/language.md, section 7.  Cost: linear in the statements and the core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tcc_certs.core.model import Core, Monitor
from tcc_compiler.frontend import Frontend
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import ForbidStatement, LimitStatement, RequireStatement
from tcc_compiler.language.spans import Region
from tcc_compiler.resources.place import Statement, place_of

Written: TypeAlias = LimitStatement | RequireStatement | ForbidStatement


@frozen(eq=False)
class Stated:
    """A `limit`, `require` or `forbid`.

    Attributes:
        parts: what it makes of the core, in the order of the core.
        own: those of the parts that no other statement makes.
        monitors: what a gate holds of it; `alone`, whether no other statement makes one of them.
    """

    written: Written
    parts: tuple[Statement, ...]
    own: tuple[Statement, ...]
    monitors: tuple[Monitor, ...]
    alone: bool

    @property
    def repeats(self) -> bool:
        """Whether other statements make all that it makes."""
        made = bool(self.parts or self.monitors)
        return made and not self.own and not (self.monitors and self.alone)

    @property
    def region(self) -> Region:
        """Where it stands."""
        return self.written.region

    @property
    def is_limit(self) -> bool:
        """Whether it is a `limit`."""
        return isinstance(self.written, LimitStatement)


def stated_of(front: Frontend, core: Core) -> tuple[Stated, ...]:
    """The statements in the order of the text; a grammar without errors."""
    program = front.program
    if program is None:
        return ()
    parts = {place_of(part): part for part in statements(core)}
    monitors = {f"monitor {monitor.text}": monitor for monitor in core.monitors}
    places: dict[Region, dict[str, bool]] = {}
    for place, region in front.written:
        places.setdefault(region, {})[place] = True
    makers = Counter(place for found in places.values() for place in found)
    listed: list[Written] = [*program.limits, *program.requires, *program.forbids]
    listed.sort(key=lambda statement: statement.region)
    return tuple(
        _stated(statement, places.get(statement.region, {}), parts, monitors, makers)
        for statement in listed
    )


def _stated(
    written: Written,
    places: Iterable[str],
    parts: Mapping[str, Statement],
    monitors: Mapping[str, Monitor],
    makers: Mapping[str, int],
) -> Stated:
    made = [place for place in places if place in parts]
    return Stated(
        written=written,
        parts=tuple(parts[place] for place in made),
        own=tuple(parts[place] for place in made if makers[place] == 1),
        monitors=tuple(monitors[place] for place in places if place in monitors),
        alone=any(makers[place] == 1 for place in places if place in monitors),
    )


def statements(core: Core) -> tuple[Statement, ...]:
    """Every statement of the core that speaks of a whole plan, in its order."""
    return (*core.limits, *core.requires, *core.forbids)


def with_parts(core: Core, kept: Iterable[Statement], *, signed: bool = True) -> Core:
    """The core with these of its statements.

    Args:
        signed: False leaves `start` and `goal` out.
    """
    chosen = frozenset(map(id, kept))
    left = replace(
        core,
        limits=tuple([part for part in core.limits if id(part) in chosen]),
        requires=tuple([part for part in core.requires if id(part) in chosen]),
        forbids=tuple([part for part in core.forbids if id(part) in chosen]),
    )
    return left if signed else replace(left, start=None, goals=())
