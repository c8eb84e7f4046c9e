"""The leaves found so far, and the incumbent: the k-th best value among them.

Cost: one search in k values a leaf.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from tcc_certs.replay.tree import Node


class Best:
    """The leaves that were popped.

    Attributes:
        ranked: (-value, digest, leaf) of the best k, best first.
    """

    def __init__(self, top: int) -> None:
        self.ranked: list[tuple[int, bytes, Node]] = []
        self._found: list[Node] = []
        self._top = top

    @property
    def number(self) -> int:
        """How many leaves were found."""
        return len(self._found)

    @property
    def incumbent(self) -> int | None:
        """The k-th best value so far."""
        return -self.ranked[-1][0] if len(self.ranked) == self._top else None

    def add(self, leaf: Node, value: int) -> None:
        """One more leaf, of value `value`."""
        self._found.append(leaf)
        self._rank(leaf, value)

    def incumbent_with(self, leaf: Node, value: int) -> int | None:
        """The incumbent that there would be with one more leaf."""
        ranked, new = self.ranked, (-value, leaf.digest, leaf)
        last = self._top - 1
        if len(ranked) < last:
            return None
        place = bisect_left(ranked, new)
        worst = new if place == last else ranked[last if place > last else last - 1]
        return -worst[0]

    def revalue(self, value: Callable[[Node], int]) -> None:
        """Every leaf has another value now."""
        self.ranked = []
        for leaf in self._found:
            self._rank(leaf, value(leaf))

    def _rank(self, leaf: Node, value: int) -> None:
        insort(self.ranked, (-value, leaf.digest, leaf))
        del self.ranked[self._top :]
