"""Sets of calls as ranges, and which of many such sets have a call in them.

Statements times calls may be the square of what an artifact takes, so neither is ever listed for
the other.  A range is cut into blocks of 2^k calls that begin at a multiple of 2^k, at most two of
each size; the sets with a call in them are those that are kept at the call's own block of each
size.  Cost: a logarithm of the number of calls for each range, and for each question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from tcc_certs.core.model import CallSet


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
    """Which of many sets, by number, a call is in."""

    def __init__(self, sets: Iterable[tuple[int, Reach]]) -> None:
        self._at: dict[tuple[int, int], list[int]] = {}
        self._levels = 0
        for number, reach in sets:
            for low, high in reach.ranges:
                for block in _blocks(low, high):
                    self._at.setdefault(block, []).append(number)
                    self._levels = max(self._levels, block[0] + 1)

    def of(self, call: int) -> Iterator[int]:
        """The sets with `call` in them, in a fixed order; some of them may come twice."""
        for level in range(self._levels):
            yield from self._at.get((level, call >> level), ())


def _blocks(low: int, high: int) -> Iterator[tuple[int, int]]:
    """The blocks (k, i), i * 2^k .. (i + 1) * 2^k - 1, that make up a range."""
    level = 0
    while low < high:
        if low & 1:
            yield level, low
            low += 1
        if high & 1:
            high -= 1
            yield level, high
        low, high, level = low >> 1, high >> 1, level + 1
