"""Sets of an artifact's calls, kept as the ranges that the core has them in.

What a relaxed artifact leaves to the run may be thousands of statements over thousands of calls; a
flag for each pair of them would be the square of the artifact.  So a set is a list of ranges, and
for a call the statements that name it are found in a tree of ranges: statement by range hangs at
the few nodes that cover it, and those that cover a call lie on the way from its leaf to the root.
Cost: a logarithm of the number of calls for each range, and for each call asked about.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from tcc_certs.core.model import CallSet


class CallRanges:
    """A set of calls by their numbers in the artifact.

    Attributes:
        firsts, ends: of its ranges, half-open, increasing, none empty.
    """

    __slots__ = ("ends", "firsts")

    def __init__(self, calls: CallSet, indices: Sequence[int]) -> None:
        """Take a call set of the core; `indices` are the core's numbers of the artifact's calls."""
        self.firsts: list[int] = []
        self.ends: list[int] = []
        for low, high in calls:
            first, end = bisect_left(indices, low), bisect_left(indices, high)
            if first < end:
                self.firsts.append(first)
                self.ends.append(end)

    def has(self, call: int) -> bool:
        """Whether `call` is one of them."""
        at = bisect_right(self.firsts, call) - 1
        return at >= 0 and call < self.ends[at]


class NamedBy:
    """For each call the statements that name it."""

    __slots__ = ("_leaves", "_nodes")

    def __init__(self, leaves: int, named: Iterable[tuple[int, CallRanges]]) -> None:
        """Take statements by number, with the sets of calls that they name, of so many calls."""
        self._leaves = leaves
        self._nodes: dict[int, list[int]] = {}
        for number, calls in named:
            for first, end in zip(calls.firsts, calls.ends, strict=True):
                self._hang(number, first + leaves, end + leaves)

    def _hang(self, number: int, first: int, end: int) -> None:
        while first < end:
            if first & 1:
                self._nodes.setdefault(first, []).append(number)
                first += 1
            if end & 1:
                end -= 1
                self._nodes.setdefault(end, []).append(number)
            first >>= 1
            end >>= 1

    def of(self, call: int) -> tuple[int, ...]:
        """The numbers of the statements that name `call`, each once, increasing."""
        found: set[int] = set()
        node = call + self._leaves
        while node:
            found.update(self._nodes.get(node, ()))
            node >>= 1
        return tuple(sorted(found))
