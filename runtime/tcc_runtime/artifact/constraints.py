"""The statements that a relaxed artifact left out, and the cut, kept as running state on a path.

Text: docs/spec/race.md, section 12; the statements themselves: docs/spec/core.md, section 5.
Nothing is looked ahead: a call is forbidden where it breaks a statement, `stop` where an end
condition does not hold.  Every sum is of numbers that are never negative, so what is broken stays
broken.  Cost: a few integer operations a statement and child; nothing where there is no statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tcc_certs.grammar import Call, CallSet, Core, ForbidNext, ForbidWith, Limit, Require, members
from tcc_runtime.artifact.load import Artifact

Held: TypeAlias = "tuple[int, ...]"


class Statement(Protocol):
    """One statement; what it has seen of a prefix is one integer, 0 before the first call."""

    def step(self, seen: int, call: int) -> int:
        """After `call` (its number in the artifact); negative where the call is forbidden."""

    def ends(self, seen: int) -> bool:
        """Whether a plan may stop."""


class AtMost:
    """A sum over the calls that must not exceed `most`."""

    __slots__ = ("_amount", "_most")

    def __init__(self, amount: Sequence[int], most: int) -> None:
        self._amount = amount
        self._most = most

    def step(self, seen: int, call: int) -> int:
        """The sum, or a negative number where it is too great."""
        total = seen + self._amount[call]
        return total if total <= self._most else -1

    def ends(self, seen: int) -> bool:
        """Whether the sum is not too great: the empty sum of the root may be."""
        return seen <= self._most


class AtLeast:
    """So many calls of a set before the plan stops; counted no further than that."""

    __slots__ = ("_counts", "_least")

    def __init__(self, counts: Sequence[bool], least: int) -> None:
        self._counts = counts
        self._least = least

    def step(self, seen: int, call: int) -> int:
        """The count, `least` at most."""
        return min(self._least, seen + self._counts[call])

    def ends(self, seen: int) -> bool:
        """Whether there were enough."""
        return seen >= self._least


class Before:
    """Each call of `second` has one of `first` strictly before it; seen: whether one was there."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Sequence[bool], second: Sequence[bool]) -> None:
        self._first = first
        self._second = second

    def step(self, seen: int, call: int) -> int:
        """1 once a call of `first` was there."""
        if self._second[call] and not seen:
            return -1
        return 1 if seen or self._first[call] else 0

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class After:
    """Each call of `second` has one of `first` strictly after it; seen: whether one is owed."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Sequence[bool], second: Sequence[bool]) -> None:
        self._first = first
        self._second = second

    def step(self, seen: int, call: int) -> int:
        """1 while a call of `first` is owed; one that is in both sets owes another."""
        if self._second[call]:
            return 1
        return 0 if self._first[call] else seen

    def ends(self, seen: int) -> bool:
        """Whether nothing is owed."""
        return seen == 0


class Never:
    """No k neighbours with the i-th in the i-th set; seen: a bit for each length begun."""

    __slots__ = ("_last", "_sets")

    def __init__(self, sets: Sequence[Sequence[bool]]) -> None:
        self._sets = sets
        self._last = 1 << (len(sets) - 1)

    def step(self, seen: int, call: int) -> int:
        """Bit i where the first i + 1 sets match the last calls."""
        begun = (seen << 1) | 1
        found = sum(1 << i for i, calls in enumerate(self._sets) if begun >> i & 1 and calls[call])
        return -1 if found & self._last else found

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class Apart:
    """No call of one set and a call of the other in one plan; seen: a bit for each set."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Sequence[bool], second: Sequence[bool]) -> None:
        self._first = first
        self._second = second

    def step(self, seen: int, call: int) -> int:
        """Both bits are forbidden."""
        found = seen | self._first[call] | self._second[call] << 1
        return -1 if found == 3 else found

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class Constraints:
    """All statements that a run enforces itself.

    Attributes:
        start: what is held at the root.
    """

    __slots__ = ("_statements", "start")

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self.start: Held = (0,) * len(statements)

    def step(self, held: Held, call: int) -> Held | None:
        """What is held after `call`; None where a statement forbids it."""
        found = []
        for statement, seen in zip(self._statements, held, strict=True):
            after = statement.step(seen, call)
            if after < 0:
                return None
            found.append(after)
        return tuple(found)

    def may_stop(self, held: Held) -> bool:
        """Whether every end condition holds."""
        return all(s.ends(seen) for s, seen in zip(self._statements, held, strict=True))


def constraints_of(artifact: Artifact, truncate: int | None) -> Constraints | None:
    """What a run over `artifact` enforces: what it relaxed, and depth <= `truncate`.

    Args:
        truncate: most calls of a plan; None is no cut.

    Returns:
        None where there is nothing to enforce.
    """
    found = list(_relaxed(artifact))
    if truncate is not None:
        found.append(AtMost([1] * artifact.manifest.calls, truncate))
    return Constraints(found) if found else None


def _relaxed(artifact: Artifact) -> Sequence[Statement]:
    named = artifact.relaxed
    if named is None:
        return ()
    core = artifact.core
    numbers = {call.text: index for index, call in enumerate(core.calls)}
    indices = [numbers[text] for text in artifact.texts]
    calls = [core.calls[index] for index in indices]
    chosen = _Chosen(indices, core)
    return [
        *(_limit(core.limits[i], calls, chosen) for i in named.limits),
        *(_require(core.requires[i], chosen) for i in named.requires),
        *(_forbid(core.forbids[i], chosen) for i in named.forbids),
    ]


class _Chosen:
    """Sets of the core's calls as a flag for each call of the artifact."""

    def __init__(self, numbers: Sequence[int], core: Core) -> None:
        self._numbers = numbers
        self._core = core

    def by_set(self, calls: CallSet) -> Sequence[bool]:
        inside = set(members(calls))
        return [number in inside for number in self._numbers]

    def by_pattern(self, pattern: int) -> Sequence[bool]:
        return self.by_set(self._core.patterns[pattern])


_AMOUNT: dict[str, Callable[[Call], int]] = {
    "depth": lambda _call: 1,
    "price": lambda call: call.price,
    "latency": lambda call: call.latency,
    "cost": lambda call: call.cost_high,
    "epsilon": lambda call: call.epsilon,
}


def _limit(limit: Limit, calls: Sequence[Call], chosen: _Chosen) -> Statement:
    if limit.calls is not None:
        counts = chosen.by_set(limit.calls)
        return AtLeast(counts, limit.value) if limit.least else AtMost(counts, limit.value)
    amount = _AMOUNT[limit.kind]
    return AtMost([amount(call) for call in calls], limit.value)


def _require(statement: Require, chosen: _Chosen) -> Statement:
    kind = Before if statement.order == "before" else After
    return kind(chosen.by_pattern(statement.first), chosen.by_pattern(statement.second))


def _forbid(statement: ForbidNext | ForbidWith, chosen: _Chosen) -> Statement:
    if isinstance(statement, ForbidNext):
        return Never([chosen.by_pattern(p) for p in statement.patterns])
    return Apart(chosen.by_pattern(statement.first), chosen.by_pattern(statement.second))
