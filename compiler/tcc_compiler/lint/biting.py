"""Which statements never bite: without one of them the plans are the same.

A statement bites where some word that meets all the others breaks it.  All but one of n statements
are needed for each of them; halving the statements gives that with n log n applications: what is
asked of one half gets the other half applied.  The orders (`require`, `forbid`) go first, over an
automaton that may have cycles, where a shortest breaking word mostly settles the limits, too.
Specification: docs/lint.md.  Cost: about that of compiling, times the logarithm of the statements;
where tools are strict, of compiling for each statement that is not settled so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tcc_certs.core.model import Limit
from tcc_compiler.automata.constraint.statements import constraints
from tcc_compiler.automata.machine import Machine
from tcc_compiler.automata.strict import sisters_of
from tcc_compiler.automata.table import Table
from tcc_compiler.automata.trim import trim
from tcc_compiler.frozen import frozen
from tcc_compiler.lint.keeping import breaking, furthest, keeps, meets, shortest
from tcc_compiler.lint.near_misses import broken_alone
from tcc_compiler.lint.plans import Automaton, Kept, Plans, same_plans
from tcc_compiler.lint.statements import Stated, with_parts
from tcc_compiler.resources.place import Statement
from tcc_compiler.resources.refusal import Refused


@frozen
class Idle:
    """A statement that never bites.

    Attributes:
        reach: of a limit, the greatest sum of a plan (the least where it is a `>=`); else None.
    """

    stated: Stated
    reach: int | None = None


@frozen
class Undecided:
    """A statement of which it is not known, and why."""

    stated: Stated
    why: str


@frozen
class Answer:
    """What was found of the statements, each list in the order of the text."""

    idle: tuple[Idle, ...]
    undecided: tuple[Undecided, ...]


def find_idle(plans: Plans, stated: Sequence[Stated], full: Table) -> Answer:
    """The statements with parts of their own that never bite.

    Args:
        full: the smallest table of the plans, without what is asked of strict tools.
    """
    search = _Search(plans, stated, full)
    search.run()
    place = {id(item): at for at, item in enumerate(stated)}
    return Answer(
        idle=tuple(sorted(search.idle, key=lambda found: place[id(found.stated)])),
        undecided=tuple(sorted(search.undecided, key=lambda found: place[id(found.stated)])),
    )


class _Search:
    def __init__(self, plans: Plans, stated: Sequence[Stated], full: Table) -> None:
        self.plans = plans
        self.idle: list[Idle] = []
        self.undecided: list[Undecided] = []
        self._full = full
        self._kept_full: Table | None = None
        asked = [item for item in stated if item.own]
        self._orders = [item for item in asked if not item.is_limit]
        self._limits = [item for item in asked if item.is_limit]
        self._settled: set[int] = set()
        self._sisters = sisters_of(plans.core, plans.letters).group if plans.strict else ()

    def run(self) -> None:
        """Ask every statement."""
        self._try(self._orders, self._ask_orders)
        depths = [item for item in self._limits if any(_is_depth(part) for part in item.own)]
        others = [item for item in self._limits if item not in depths]
        self._try(others, self._ask_limits)
        for item in depths:
            self._try([item], self._ask_alone)

    def _try(self, items: Sequence[Stated], ask: Callable[[Sequence[Stated]], None]) -> None:
        """Ask; what cannot be told of them within the limits is told of none that is still open."""
        if not items:
            return
        try:
            ask(items)
        except Refused as refusal:
            self.undecided += [
                Undecided(stated=item, why=refusal.message)
                for item in items
                if id(item) not in self._settled
            ]

    def _settle(self, item: Stated, reach: int | None = None, *, bites: bool) -> None:
        self._settled.add(id(item))
        if not bites:
            self.idle.append(Idle(stated=item, reach=reach))

    # Orders.

    def _ask_orders(self, items: Sequence[Stated]) -> None:
        own = {id(part) for item in items for part in item.own}
        shared = [part for part in self.plans.orders if id(part) not in own]
        machine = self.plans.expression(Kept(parts=(*self.plans.limits, *self.plans.orders)))
        signed = self.plans.core.start is not None
        items, biting = self._sorted(items, machine)
        if not items:
            return
        base = self.plans.narrowed(machine, [*shared, *_own(biting)], signed=signed)
        # What those imply that bite never bites, and adds nothing to what is asked of the rest.
        open_items = [item for item in items if base is None or not self._implied(item, base)]
        if open_items:
            self._halve(open_items, base, self._ask_order)

    def _implied(self, item: Stated, base: Automaton) -> bool:
        if all(keeps(self.plans, base, part) for part in item.own):
            self._settle(item, bites=False)
            return True
        return False

    def _sorted(
        self, items: Sequence[Stated], machine: Machine
    ) -> tuple[list[Stated], list[Stated]]:
        """Those that are still to be asked, and those that a near miss shows to bite."""
        core = with_parts(self.plans.core, self.plans.orders)
        held = list(constraints(core, self.plans.letters))
        avoid = self._sisters if self.plans.strict else ()
        broken = broken_alone(self.plans, machine, held, avoid)
        shown = {id(held[at].statement) for at in broken}
        biting = [item for item in items if any(id(part) in shown for part in item.own)]
        for item in biting:
            self._settle(item, bites=True)
        known = {id(item) for item in biting}
        return [item for item in items if id(item) not in known], biting

    def _halve(
        self,
        items: Sequence[Stated],
        base: Automaton | None,
        ask: Callable[[Stated, Automaton], None],
    ) -> None:
        """Ask each item over `base` with all the other items applied."""
        if base is None:  # the grammar has plans, and so has every part of its statements
            raise ValueError("no word where there are plans")
        if len(items) == 1:
            ask(items[0], base)
            return
        left, right = items[: len(items) // 2], items[len(items) // 2 :]
        self._halve(left, self.plans.narrowed(base, _own(right)), ask)
        self._halve(right, self.plans.narrowed(base, _own(left)), ask)

    def _ask_order(self, item: Stated, base: Automaton) -> None:
        for part in item.own:
            broken = breaking(self.plans, base, part)
            if broken is not None and self._breaks(item, broken, base):
                self._settle(item, bites=True)
                return
        self._settle(item, bites=False)

    def _breaks(self, item: Stated, broken: Machine, base: Automaton) -> bool:
        """Whether a word of `broken` meets the limits, and what is asked of strict tools."""
        limits = self.plans.limits
        if not self.plans.strict:
            if meets(self.plans, shortest(broken), limits):
                return True
            return self.plans.narrowed(broken, limits) is not None
        loose = self._without_strict_calls(broken)
        if loose is not None and meets(self.plans, shortest(loose), limits):
            return True
        if self.plans.narrowed(broken, limits) is None:
            return False
        return self._differs(self.plans.narrowed(base, limits))

    def _without_strict_calls(self, machine: Machine) -> Machine | None:
        group = self._sisters
        edges = [tuple([e for e in row if group[e[0]] < 0]) for row in machine.edges]
        return trim(replace(machine, edges=edges))

    def _differs(self, wider: Automaton | None) -> bool:
        """Whether more plans are left of `wider` than of the grammar, every answer leading on."""
        if not isinstance(wider, Table):
            return True  # with cycles there are infinitely many, which no grammar may have
        if not self.plans.strict:
            return True
        if self._kept_full is None:
            self._kept_full = self.plans.answered(self._full)
        return not same_plans(self.plans.answered(wider), self._kept_full)

    # Limits.

    def _ask_limits(self, items: Sequence[Stated]) -> None:
        if not self.plans.is_free:
            for item in items:
                self._ask_alone([item])
            return
        own = {id(part) for item in items for part in item.own}
        rest = [part for part in self.plans.limits if id(part) not in own]
        signed = self.plans.core.start is not None
        machine = self.plans.expression(Kept(parts=()))
        ordered = self.plans.narrowed(machine, self.plans.orders, signed=signed)
        base = None if ordered is None else self.plans.narrowed(ordered, rest)
        self._halve(items, base, self._ask_limit)

    def _ask_limit(self, item: Stated, base: Automaton) -> None:
        if all(keeps(self.plans, base, part) for part in item.own):
            reach = furthest(self.plans, base, item.own[0]) if isinstance(item.own[0], Limit) else 0
            self._settle(item, reach, bites=False)
        elif self._differs(base):
            self._settle(item, bites=True)
        else:
            self._settle(item, bites=False)

    def _ask_alone(self, items: Sequence[Stated]) -> None:
        """Ask one limit, all others applied; a limit on depth is loosened a little first."""
        (item,) = items
        others = tuple([part for part in self._parts() if part not in item.own])
        loosened = tuple([_loosened(part) for part in item.own if _is_depth(part)])
        if loosened:
            wider = self._left((*others, *loosened))
            kept = all(keeps(self.plans, wider, part) for part in item.own)
            if not kept and self._differs(wider):
                self._settle(item, bites=True)
                return
        self._ask_limit(item, self._left(others))

    def _parts(self) -> tuple[Statement, ...]:
        return (*self.plans.limits, *self.plans.orders)

    def _left(self, parts: tuple[Statement, ...]) -> Automaton:
        found = self.plans.left(Kept(parts=parts, signed=self.plans.core.start is not None))
        if found is None:
            raise ValueError("no word where there are plans")
        return found


def _own(items: Iterable[Stated]) -> list[Statement]:
    return [part for item in items for part in item.own]


def _is_depth(part: Statement) -> bool:
    return isinstance(part, Limit) and part.kind == "depth"


def _loosened(part: Statement) -> Limit:
    if not isinstance(part, Limit):
        raise TypeError("a limit is needed")
    return replace(part, value=part.value + 1, text=f"{part.kind}<={part.value + 1}")
