"""The frontier, ordered by (published key descending, id ascending), and the best k leaves.

Text: docs/spec/race.md, section 9.  The greatest item is held apart from the heap, which saves a
push and a pop for each child that is the next to be popped; most are.
Cost: a heap operation an item; an insertion among k a leaf.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappushpop

from tcc_runtime.item import ORDER, Item
from tcc_runtime.numbers.rung import Rung


class Frontier:
    """The items that were pushed and not yet popped, and the leaves that were.

    Args:
        numbers: orders items.
        top: k.

    Attributes:
        item: the greatest item, apart from `heap`; None where nothing is left.
        heap: the others.
        best: the best k leaves, in order: minus the value, L, and the item.
        found: all leaves that were popped.
    """

    def __init__(self, numbers: Rung, top: int) -> None:
        self.item: Item | None = None
        self.heap: list[Item] = []
        self.best: list[tuple[int, bytes, Item]] = []
        self.found: list[Item] = []
        self.numbers = numbers
        self.top = top

    def offer(self, leaf: Item) -> None:
        """Keeps `leaf` where it belongs to the best."""
        insort(self.best, (leaf[0], leaf[1], leaf))
        del self.best[self.top :]

    @property
    def incumbent(self) -> int | None:
        """B*, None until k leaves were found."""
        return -self.best[-1][0] if len(self.best) == self.top else None

    def greatest(self) -> Item | None:
        """The greatest item, when no other one can exceed it."""
        heap, numbers = self.heap, self.numbers
        while (item := self.item) is not None and type(item[ORDER]) is float:
            if not heap or item[ORDER] + numbers.width < heap[0][ORDER]:
                break
            self.item = heappushpop(heap, numbers.order(item))
        return self.item

    def key_left(self) -> int | None:
        """The greatest key left, exact; None where nothing is.

        Raises:
            Undecided: the last precision does not decide it.
        """
        top = self.greatest()
        return None if top is None else -self.numbers.order(top)[ORDER]

    def frontier(self) -> list[Item]:
        """All items, in no order that means anything."""
        return self.heap if self.item is None else [self.item, *self.heap]

    def remake(self, again: Callable[[Item], Item]) -> None:
        """Every item and every leaf that was found is made again."""
        items, found = [again(item) for item in self.frontier()], list(map(again, self.found))
        heapify(items)
        self.heap[:] = items
        self.item = heappop(self.heap) if items else None
        self.found[:] = found
        self.best.clear()
        for leaf in found:
            self.offer(leaf)
