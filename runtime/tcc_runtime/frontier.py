"""The frontier, ordered by (published key descending, digest ascending), and the best k leaves.

Text: docs/spec/race.md, section 9.  Cost: a heap operation a node; an insertion among k a leaf.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush

from tcc_runtime.node import Node


class Frontier:
    """Nodes and leaves that were pushed and not yet popped."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, bytes, Node]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, node: Node) -> None:
        """Adds `node`; digests are distinct, so nodes are never compared."""
        heappush(self._heap, (-node.key, node.digest, node))

    def top(self) -> Node | None:
        """The item to be popped next, None where nothing is left."""
        return self._heap[0][2] if self._heap else None

    def pop(self) -> Node:
        """Takes the item of :meth:`top` out."""
        return heappop(self._heap)[2]

    def nodes(self) -> list[Node]:
        """All items, in no order that means anything."""
        return [item[2] for item in self._heap]


class Incumbent:
    """The best k leaves so far, by (value descending, digest ascending)."""

    __slots__ = ("_best", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._best: list[tuple[int, bytes, Node]] = []

    def offer(self, leaf: Node) -> None:
        """Keeps `leaf` where it belongs to the best."""
        insort(self._best, (-leaf.value, leaf.digest, leaf))
        del self._best[self._size :]

    @property
    def value(self) -> int | None:
        """B*, the k-th best value, Q64.64; None until k leaves were found."""
        return -self._best[-1][0] if len(self._best) == self._size else None

    def leaves(self) -> list[Node]:
        """The best leaves, in order."""
        return [item[2] for item in self._best]
