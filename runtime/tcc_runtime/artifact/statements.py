"""The statements that a run may have to enforce itself, each as one integer on a path.

Text: docs/spec/core.md, section 5; docs/spec/race.md, section 12.  Cost: a bisection in a set of
calls; for a chain one a position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tcc_runtime.artifact.call_sets import CallRanges


class Statement(Protocol):
    """One statement; what it has seen of a prefix is one integer, 0 before the first call.

    Attributes:
        names: the sets of calls that may take it from 0; None is all calls.
    """

    names: Sequence[CallRanges] | None

    def step(self, seen: int, call: int) -> int:
        """After `call` (its number in the artifact); negative where the call is forbidden."""

    def ends(self, seen: int) -> bool:
        """Whether a plan may stop."""


class AtMost:
    """A sum over the calls that must not exceed `most`."""

    __slots__ = ("_amount", "_most", "names")

    def __init__(self, amount: Sequence[int], most: int) -> None:
        self.names: Sequence[CallRanges] | None = None
        self._amount = amount
        self._most = most

    def step(self, seen: int, call: int) -> int:
        """The sum, or a negative number where it is too great."""
        total = seen + self._amount[call]
        return total if total <= self._most else -1

    def ends(self, seen: int) -> bool:
        """Whether the sum is not too great: the empty sum of the root may be."""
        return seen <= self._most


class _OfTwo:
    """A statement on two sets of calls, with which a plan may stop at any time.

    Args:
        first, second: the sets.
    """

    __slots__ = ("_first", "_second", "names")

    def __init__(self, first: CallRanges, second: CallRanges) -> None:
        self.names: Sequence[CallRanges] | None = (first, second)
        self._first = first
        self._second = second

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class NoMoreThan:
    """At most so many calls of a set."""

    __slots__ = ("_chosen", "_most", "names")

    def __init__(self, chosen: CallRanges, most: int) -> None:
        self.names: Sequence[CallRanges] | None = (chosen,)
        self._chosen = chosen
        self._most = most

    def step(self, seen: int, call: int) -> int:
        """The count, or a negative number where it is too great."""
        count = seen + self._chosen.has(call)
        return count if count <= self._most else -1

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class AtLeast:
    """So many calls of a set before the plan stops; counted no further than that."""

    __slots__ = ("_chosen", "_least", "names")

    def __init__(self, chosen: CallRanges, least: int) -> None:
        self.names: Sequence[CallRanges] | None = (chosen,)
        self._chosen = chosen
        self._least = least

    def step(self, seen: int, call: int) -> int:
        """The count, `least` at most."""
        return min(self._least, seen + self._chosen.has(call))

    def ends(self, seen: int) -> bool:
        """Whether there were enough."""
        return seen >= self._least


class Before(_OfTwo):
    """Each call of `second` has one of `first` strictly before it; seen: whether one was there."""

    __slots__ = ()

    def step(self, seen: int, call: int) -> int:
        """1 once a call of `first` was there."""
        if self._second.has(call) and not seen:
            return -1
        return 1 if seen or self._first.has(call) else 0


class Each(_OfTwo):
    """Each call of `second` has one of `first` strictly between it and the one before it.

    Seen: whether one was there since the last call of `second`, or since the start.
    """

    __slots__ = ()

    def step(self, seen: int, call: int) -> int:
        """1 once a call of `first` was there; one that is in both sets serves nobody."""
        if self._second.has(call):
            return 0 if seen else -1
        return 1 if seen or self._first.has(call) else 0


class NotBefore(_OfTwo):
    """No call of `first` strictly before one of `second`; seen: whether `first` was there."""

    __slots__ = ()

    def __init__(self, first: CallRanges, second: CallRanges) -> None:
        super().__init__(first, second)
        self.names = (first,)

    def step(self, seen: int, call: int) -> int:
        """1 once a call of `first` was there; then a call of `second` is forbidden."""
        if seen and self._second.has(call):
            return -1
        return 1 if seen or self._first.has(call) else 0


class After(_OfTwo):
    """Each call of `second` has one of `first` strictly after it; seen: whether one is owed."""

    __slots__ = ()

    def step(self, seen: int, call: int) -> int:
        """1 while a call of `first` is owed; one that is in both sets owes another."""
        if self._second.has(call):
            return 1
        return 0 if self._first.has(call) else seen

    def ends(self, seen: int) -> bool:
        """Whether nothing is owed."""
        return seen == 0


class Never:
    """No k neighbours with the i-th in the i-th set; seen: a bit for each length begun."""

    __slots__ = ("_last", "_sets", "names")

    def __init__(self, sets: Sequence[CallRanges]) -> None:
        self.names: Sequence[CallRanges] | None = sets
        self._sets = sets
        self._last = 1 << (len(sets) - 1)

    def step(self, seen: int, call: int) -> int:
        """Bit i where the first i + 1 sets match the last calls."""
        begun = (seen << 1) | 1
        found = sum(
            1 << i for i, calls in enumerate(self._sets) if begun >> i & 1 and calls.has(call)
        )
        return -1 if found & self._last else found

    def ends(self, seen: int) -> bool:
        """Always."""
        return True


class Apart(_OfTwo):
    """No call of one set and a call of the other in one plan; seen: a bit for each set."""

    __slots__ = ()

    def step(self, seen: int, call: int) -> int:
        """Both bits are forbidden."""
        found = seen | self._first.has(call) | self._second.has(call) << 1
        return -1 if found == 3 else found
