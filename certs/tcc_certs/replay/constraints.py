"""Residual constraints: the statements that a relaxed automaton leaves to the run, and its cut.

Normative text: docs/spec/race.md and docs/spec/core.md, section 5.  A *tally* holds one integer for
each constraint: what of the prefix it has to know.  A call is forbidden with which a running sum
breaks its ``<=`` (no look-ahead), that a `before` does not allow yet or that completes what a
`forbid` rules out; a stop is forbidden where a ``uses >=`` or an `after` is still open.
Only what is not 0 is kept of a prefix, and only the constraints that a call is in, or that are not
0, are asked about it.  Of the limits on one sum the strictest is the only one that decides.
Cost: constant for each of those constraints, and what the search for them takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tcc_certs.core.amounts import summed_parameter
from tcc_certs.core.model import CallSet, Core, Forbid, ForbidBefore, ForbidNext, Limit, Require
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.replay.conditions import (
    After,
    AtLeast,
    AtMost,
    Before,
    Constraint,
    Each,
    NeverBefore,
    NeverNext,
    NeverWith,
    NoMoreOf,
)
from tcc_certs.replay.reach import Reach, Reaching

Tally: TypeAlias = "tuple[tuple[int, int], ...]"  # constraint and its integer, where that is not 0
# Of a limit its kind, whether it is one from below, its calls or its parameter.
_Key: TypeAlias = "tuple[str, bool, CallSet | None, tuple[int, int] | None]"
_ORDERS: Mapping[str, type[Before] | type[After] | type[Each]] = {
    "before": Before,
    "after": After,
    "each": Each,
}


class Constraints:
    """All of them at once.

    Attributes:
        items: the constraints, by number.
        start: the tally at the root of the run.
    """

    __slots__ = ("_everywhere", "_owed", "_reaching", "items", "start")

    def __init__(self, *, items: Sequence[Constraint], start: Tally = ()) -> None:
        self.items = items
        self.start = start
        self._everywhere = [at for at, item in enumerate(items) if item.reach is None]
        self._reaching = Reaching(
            (at, reach) for at, item in enumerate(items) for reach in item.reach or ()
        )
        self._owed = frozenset([at for at, item in enumerate(items) if not item.may_stop(0)])

    def after(self, tally: Tally, call: int) -> Tally | None:
        """The tally once `call` was made; None where one of them forbids it."""
        if not self.items:
            return tally
        found: list[tuple[int, int]] = []
        known = set()
        for pair in tally:
            number, before = pair
            known.add(number)
            step = self.items[number].after(before, call)
            if step is None:
                return None
            if step:
                found.append(pair if step == before else (number, step))
        for number in (*self._everywhere, *self._reaching.of(call)):
            if number in known:
                continue
            known.add(number)
            step = self.items[number].after(0, call)
            if step is None:
                return None
            if step:
                found.append((number, step))
        return tuple(found)

    def may_stop(self, tally: Tally) -> bool:
        """Whether a plan may end here."""
        if not all(self.items[number].may_stop(value) for number, value in tally):
            return False
        return not self._owed or self._owed <= {number for number, _ in tally}


def residual_constraints(
    artifact: CheckedArtifact, truncate: int | None, rank: int | None = None, start: Tally = ()
) -> Constraints:
    """What the artifact leaves to a run whose plans have at most `truncate` calls.

    Args:
        truncate: None is no cut.
        rank: of the run's root; None: it is the artifact's.
        start: what the statements have seen there.  The cut is the last of the constraints and
            counts from the root, so what stands for the others does not depend on it.
    """
    core, calls = artifact.core, artifact.core_calls
    items: list[Constraint] = []
    relaxed = artifact.file.manifest.relaxed
    if relaxed is not None:
        chosen = _Chosen(core, calls)
        items += _limits([core.limits[i] for i in relaxed.limits], chosen)
        items += [_require(core.requires[i], chosen) for i in relaxed.requires]
        items += [_forbid(core.forbids[i], chosen) for i in relaxed.forbids]
    if rank is None:
        rank = artifact.automaton.rank[artifact.automaton.root]
    if truncate is not None and truncate < rank:
        items.append(AtMost(amount=[1] * len(calls), most=truncate))
    return Constraints(items=items, start=start)


class _Chosen:
    """Call sets of the core as calls of the artifact, each pattern once."""

    def __init__(self, core: Core, calls: Sequence[int]) -> None:
        self._calls = calls
        self._patterns = core.patterns
        self._known: dict[int, Reach] = {}
        self.core = core

    def of(self, calls: CallSet) -> Reach:
        """A call set."""
        return Reach(calls, self._calls)

    def pattern(self, number: int) -> Reach:
        """A pattern of the core."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self.of(self._patterns[number])
        return found

    def summed(self, parameter: tuple[int, int]) -> list[int]:
        """What each call adds to a limit on a parameter."""
        amounts = summed_parameter(self.core.tools, self.core.calls, parameter)
        return [amounts[index] for index in self._calls]

    def amounts(self, kind: str) -> list[int]:
        """What each call adds to the limits of a kind."""
        of = [self.core.calls[index] for index in self._calls]
        match kind:
            case "price":
                return [call.price for call in of]
            case "latency":
                return [call.latency for call in of]
            case "epsilon":
                return [call.epsilon for call in of]
            case "cost":
                return [call.cost_high for call in of]
            case _:
                return [1] * len(of)


def _limits(limits: Sequence[Limit], chosen: _Chosen) -> Iterator[Constraint]:
    """The strictest of the limits on each sum and on each set of calls."""
    strictest: dict[_Key, int] = {}
    for limit in limits:
        key = (limit.kind, limit.least, limit.calls, limit.parameter)
        known = strictest.get(key, limit.value)
        strictest[key] = (max if limit.least else min)(known, limit.value)
    for (kind, least, calls, parameter), value in strictest.items():
        if parameter is not None:
            yield AtMost(amount=chosen.summed(parameter), most=value)
        elif calls is None:
            yield AtMost(amount=chosen.amounts(kind), most=value)
        elif least:
            yield AtLeast(chosen=chosen.of(calls), least=value)
        else:
            yield NoMoreOf(chosen=chosen.of(calls), most=value)


def _require(statement: Require, chosen: _Chosen) -> Constraint:
    return _ORDERS[statement.order](
        first=chosen.pattern(statement.first), second=chosen.pattern(statement.second)
    )


def _forbid(statement: Forbid, chosen: _Chosen) -> Constraint:
    if isinstance(statement, ForbidNext):
        return NeverNext(chain=tuple([chosen.pattern(p) for p in statement.patterns]))
    kind = NeverBefore if isinstance(statement, ForbidBefore) else NeverWith
    return kind(first=chosen.pattern(statement.first), second=chosen.pattern(statement.second))
