"""One residual constraint each: what it keeps of a prefix, what it forbids, where a plan may end.

Normative text: docs/spec/core.md, section 5; docs/spec/race.md, section 12.  Each keeps one
integer, which is 0 for the empty prefix.  Cost: a bisection in a set of calls, a bit a position of
a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tcc_certs.replay.reach import Reach


class Constraint(Protocol):
    """One constraint: its integer is 0 for the empty prefix, and stays so over calls elsewhere."""

    @property
    def reach(self) -> Sequence[Reach] | None:
        """The sets of calls that it is about; None: all calls."""

    def after(self, tally: int, call: int) -> int | None:
        """The tally once `call` (an index of the artifact) was made; None: it is forbidden."""

    def may_stop(self, tally: int) -> bool:
        """Whether a plan may end here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A sum over the plan that stays at or below `most`; amounts are at least 0."""

    amount: Sequence[int]
    most: int

    @property
    def reach(self) -> None:
        """See :class:`Constraint`."""
        return None

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        total = tally + self.amount[call]
        return total if total <= self.most else None

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`; only the empty sum can be too great here."""
        return tally <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoreOf:
    """Calls of a set, at most `most` of them."""

    chosen: Reach
    most: int

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.chosen,)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        total = tally + (call in self.chosen)
        return total if total <= self.most else None

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """Calls of a set, at least `least` of them."""

    chosen: Reach
    least: int

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.chosen,)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        return tally + (call in self.chosen)

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return tally >= self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Each call of `second` has one of `first` strictly before it."""

    first: Reach
    second: Reach

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if call in self.second and not tally:
            return None
        return 1 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """Between a call of `second` and the one before it, or the start, there is one of `first`."""

    first: Reach
    second: Reach

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`; 1 is a call of `first` since the last one of `second`."""
        if call in self.second:
            return 0 if tally else None
        return 1 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """Each call of `second` has one of `first` strictly after it; 1 is one that has none yet."""

    first: Reach
    second: Reach

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if call in self.second:
            return 1
        return 0 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return tally == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverNext:
    """Nowhere neighbours of these sets in this order; bit i: the first i + 1 have just matched."""

    chain: tuple[Reach, ...]

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return self.chain

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        ready, found = tally << 1 | 1, 0
        for at, chosen in enumerate(self.chain):
            if ready >> at & 1 and call in chosen:
                found |= 1 << at
        return None if found >> len(self.chain) - 1 else found

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverBefore:
    """No call of `first` strictly before one of `second`; 1: there was one of `first`."""

    first: Reach
    second: Reach

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        if tally and call in self.second:
            return None
        return 1 if call in self.first else tally

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverWith:
    """No call of `first` and call of `second` in one plan; bits 0 and 1: which were made."""

    first: Reach
    second: Reach

    @property
    def reach(self) -> Sequence[Reach]:
        """See :class:`Constraint`."""
        return (self.first, self.second)

    def after(self, tally: int, call: int) -> int | None:
        """See :class:`Constraint`."""
        found = tally | (call in self.first) | (call in self.second) << 1
        return None if found == 3 else found

    def may_stop(self, tally: int) -> bool:
        """See :class:`Constraint`."""
        return True
