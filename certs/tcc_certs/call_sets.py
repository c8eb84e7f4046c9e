"""Sets of an artifact's calls as ranges, and which of many such sets have a call in them.

Statements times calls may be the square of what an artifact takes, so neither is ever listed for
the other.  Cost: a logarithm of the number of calls for each range, and for each question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

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
