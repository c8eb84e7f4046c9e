"""Statements over calls as a run keeps them: one integer each, call by call; and sets of calls.

These are the statements that a relaxed automaton leaves to the run, and the run's cut.  The
validator, the search and the sessions share them; what each one means is held to the set semantics
of whole words by tests/certs/replay/test_constraints.py and tests/runtime/test_statements.py, and
the compiler and the core check have meanings of their own.
Normative text: docs/spec/core.md, section 5; docs/spec/race.md, section 12.

A *tally* has the integer of each constraint, where that is not 0: what of the prefix it has to
know.  Nothing is looked ahead: a call is forbidden with which a running sum breaks its ``<=``, that
a `before` does not allow yet or that completes what a `forbid` rules out; a stop is forbidden where
a ``uses >=`` or an `after` is still open.  Sums are of numbers that are never negative, so what is
broken stays broken.  Of the limits on one sum the strictest is the only one that decides.
Only the constraints that a call is in, or that are not 0, are asked about it.
Sets of calls are ranges: statements times calls may be the square of what an artifact takes, so
neither is ever listed for the other.
Cost: a step of each of those, and what the search for them takes; of a set a logarithm of the
number of calls for each range, and for each question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tcc_certs.core.derived import summed_parameter
from tcc_certs.core.model import CallSet, Core, Forbid, ForbidBefore, ForbidNext, Limit, Require
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.kernel import CheckedArtifact

# Sets of calls.


class Reach:
    """A set of calls of an artifact.

    Attributes:
        ranges: half-open, increasing.
    """

    __slots__ = ("_ends", "ranges")

    def __init__(self, chosen: CallSet, calls: Sequence[int]) -> None:
        """Take a call set of the core.

        Args:
            calls: for each call of the artifact its index in the core, increasing.
        """
        self.ranges = [(bisect_left(calls, low), bisect_left(calls, high)) for low, high in chosen]
        self._ends = [end for pair in self.ranges for end in pair]

    def __contains__(self, call: int) -> bool:
        """Whether the call is in a range: past the beginning of one and not past its end."""
        return bisect_right(self._ends, call) & 1 == 1


class Reaching:
    """Which of many sets, by number, a call is in.

    Ranges hang in a binary tree over the calls, each at the few nodes that cover it; the sets with
    a call in them are met on the way from its leaf to the root.
    """

    __slots__ = ("_leaves", "_nodes")

    def __init__(self, sets: Iterable[tuple[int, Reach]]) -> None:
        listed = [(number, pair) for number, reach in sets for pair in reach.ranges]
        self._leaves = 1 << max([high for _, (_, high) in listed], default=0).bit_length()
        self._nodes: dict[int, list[int]] = {}
        for number, (low, high) in listed:
            self._hang(number, low + self._leaves, high + self._leaves)

    def _hang(self, number: int, low: int, high: int) -> None:
        while low < high:
            if low & 1:
                self._nodes.setdefault(low, []).append(number)
                low += 1
            if high & 1:
                high -= 1
                self._nodes.setdefault(high, []).append(number)
            low, high = low >> 1, high >> 1

    def of(self, call: int) -> set[int]:
        """The numbers of the sets with `call` in them."""
        found: set[int] = set()
        node = call + self._leaves if call < self._leaves else 0
        while node and self._nodes:
            found.update(self._nodes.get(node, ()))
            node >>= 1
        return found


# Statements.

Tally: TypeAlias = "tuple[tuple[int, int], ...]"  # constraint and its integer, increasing, no 0
_MOST_STEPS = 1 << 16  # that are kept for one run


class Constraint(Protocol):
    """One constraint: its integer is 0 for the empty prefix, and stays so over calls elsewhere."""

    @property
    def sets(self) -> Sequence[Reach] | None:
        """The sets of calls that may take it from 0; None: all calls."""

    def step(self, seen: int, call: int) -> int | None:
        """The integer once `call` (an index of the artifact) was made; None: it is forbidden."""

    def ends(self, seen: int) -> bool:
        """Whether a plan may end here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A sum over the plan that stays at or below `most`; amounts are at least 0."""

    amount: Sequence[int]
    most: int

    @property
    def sets(self) -> None:
        """See :class:`Constraint`."""
        return None

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        total = seen + self.amount[call]
        return total if total <= self.most else None

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`; only the empty sum can be too great here."""
        return seen <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoreOf:
    """Calls of a set, at most `most` of them."""

    chosen: Reach
    most: int

    @property
    def sets(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.chosen,)

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        total = seen + (call in self.chosen)
        return total if total <= self.most else None

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """Calls of a set, at least `least` of them; no more are counted."""

    chosen: Reach
    least: int

    @property
    def sets(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.chosen,)

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        return min(self.least, seen + (call in self.chosen))

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`."""
        return seen >= self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfTwo:
    """A statement on two sets of calls, with which a plan may end at any time."""

    first: Reach
    second: Reach

    @property
    def sets(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Before(_OfTwo):
    """Each call of `second` has one of `first` strictly before it; 1: one of `first` was there."""

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if not seen and call in self.second:
            return None
        return 1 if seen or call in self.first else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Each(_OfTwo):
    """Between a call of `second` and the one before it, or the start, there is one of `first`."""

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`; 1 is a call of `first` since the last one of `second`."""
        if call in self.second:
            return 0 if seen else None
        return 1 if seen or call in self.first else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class After(_OfTwo):
    """Each call of `second` has one of `first` strictly after it; 1 is one that has none yet."""

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if call in self.second:
            return 1
        return 0 if call in self.first else seen

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`."""
        return seen == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverNext:
    """Nowhere neighbours of these sets in this order; bit i: the first i + 1 have just matched."""

    chain: tuple[Reach, ...]

    @property
    def sets(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return self.chain

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        ready, found = seen << 1 | 1, 0
        for at, chosen in enumerate(self.chain):
            if ready >> at & 1 and call in chosen:
                found |= 1 << at
        return None if found >> len(self.chain) - 1 else found

    def ends(self, seen: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverBefore(_OfTwo):
    """No call of `first` strictly before one of `second`; 1: there was one of `first`."""

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if seen:
            return None if call in self.second else 1
        return 1 if call in self.first else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverWith(_OfTwo):
    """No call of `first` and call of `second` in one plan; bits 0 and 1: which were made."""

    def step(self, seen: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        found = seen | (call in self.first) | (call in self.second) << 1
        return None if found == 3 else found


class Constraints:
    """All of them at once.

    Attributes:
        items: the constraints, by number.
        start: the tally at the root of the run.
    """

    __slots__ = ("_after", "_everywhere", "_most", "_owed", "_reaching", "items", "start")

    def __init__(self, *, items: Sequence[Constraint], calls: int = 1, start: Tally = ()) -> None:
        """Take the constraints of an artifact with so many calls."""
        self.items = items
        self.start = start
        self._everywhere = frozenset([at for at, item in enumerate(items) if item.sets is None])
        self._reaching = Reaching(
            (at, reach) for at, item in enumerate(items) for reach in item.sets or ()
        )
        self._owed = frozenset([at for at, item in enumerate(items) if not item.ends(0)])
        self._after: dict[Tally, StatementSteps] = {}
        self._most = max(1, _MOST_STEPS // max(1, calls))

    def step(self, tally: Tally, call: int) -> Tally | None:
        """The tally once `call` was made; None where one of them forbids it."""
        if not self.items:
            return tally
        known = dict(tally)
        found: list[tuple[int, int]] = []
        for number in self._reaching.of(call) | self._everywhere | known.keys():
            seen = self.items[number].step(known.get(number, 0), call)
            if seen is None:
                return None
            if seen:
                found.append((number, seen))
        found.sort()
        return tuple(found)

    def after(self, tally: Tally) -> StatementSteps:
        """The tallies after each call, kept for all nodes of one tally."""
        found = self._after.get(tally)
        if found is None:
            if len(self._after) >= self._most:
                self._after.clear()
            found = self._after[tally] = StatementSteps(self, tally)
        return found

    def may_stop(self, tally: Tally) -> bool:
        """Whether a plan may end here."""
        if not all(self.items[number].ends(seen) for number, seen in tally):
            return False
        return not self._owed or self._owed <= {number for number, _ in tally}


class StatementSteps(dict[int, "Tally | None"]):
    """:meth:`Constraints.step` by call, from one tally; each made when it is asked for."""

    __slots__ = ("_constraints", "held")

    def __init__(self, constraints: Constraints, held: Tally) -> None:
        self._constraints = constraints
        self.held = held

    def __missing__(self, call: int) -> Tally | None:
        found = self[call] = self._constraints.step(self.held, call)
        return found

    def stopped(self) -> Tally | None:
        """The tally of a leaf; None where a plan may not end here."""
        return self.held if self._constraints.may_stop(self.held) else None


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
    calls, automaton = artifact.core_calls, artifact.automaton
    items = statement_constraints(artifact.core, calls, artifact.file.manifest.relaxed)
    rank = automaton.rank[automaton.root] if rank is None else rank
    if truncate is not None and truncate < rank:
        items.append(AtMost(amount=[1] * len(calls), most=truncate))
    return Constraints(items=items, calls=len(calls), start=start)


# Of a limit its kind, whether it is one from below, its calls or its parameter.
_Sum: TypeAlias = "tuple[str, bool, CallSet | None, tuple[int, int] | None]"
_ORDERS: Mapping[str, type[Before] | type[After] | type[Each]] = {
    "before": Before,
    "after": After,
    "each": Each,
}


def statement_constraints(
    core: Core, calls: Sequence[int], named: Relaxed | None
) -> list[Constraint]:
    """Statements of the core as constraints over an artifact's calls; none where none is named.

    Args:
        calls: for each call of the artifact its index in the core, increasing.
        named: the statements, by their places among limits, requires and forbids.
    """
    if named is None:
        return []
    chosen = _Chosen(core, calls)
    return [
        *_limits([core.limits[at] for at in named.limits], chosen),
        *(_require(core.requires[at], chosen) for at in named.requires),
        *(_forbid(core.forbids[at], chosen) for at in named.forbids),
    ]


class _Chosen:
    """Call sets of the core as calls of the artifact, each pattern once."""

    def __init__(self, core: Core, calls: Sequence[int]) -> None:
        self._core = core
        self._calls = calls
        self._known: dict[int, Reach] = {}

    def of(self, calls: CallSet) -> Reach:
        """A call set."""
        return Reach(calls, self._calls)

    def pattern(self, number: int) -> Reach:
        """A pattern of the core."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self.of(self._core.patterns[number])
        return found

    def summed(self, parameter: tuple[int, int]) -> list[int]:
        """What each call adds to a limit on a parameter."""
        amounts = summed_parameter(self._core.tools, self._core.calls, parameter)
        return [amounts[index] for index in self._calls]

    def amounts(self, kind: str) -> list[int]:
        """What each call adds to the limits of a kind."""
        of = [self._core.calls[index] for index in self._calls]
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
    strictest: dict[_Sum, int] = {}
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
