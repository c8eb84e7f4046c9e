"""The frontier: items by (key descending, digest ascending).

Cost: logarithmic in its size a push and a pop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from tcc_certs.replay.tree import Node


class Frontier:
    """The nodes and leaves that were pushed and not popped."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, bytes, Node]] = []

    def __iter__(self) -> Iterator[Node]:
        return (node for _, _, node in self._heap)

    @property
    def top(self) -> Node | None:
        """The item that is popped next."""
        return self._heap[0][2] if self._heap else None

    def push(self, node: Node) -> None:
        """One more item, under its key."""
        heapq.heappush(self._heap, (-node.key, node.digest, node))

    def pop(self) -> None:
        """The top leaves; there is one."""
        heapq.heappop(self._heap)

    def rekey(self, keyed: Callable[[Node], Node]) -> None:
        """Every item gets another key."""
        self._heap = [
            (-node.key, node.digest, node) for _, _, old in self._heap for node in (keyed(old),)
        ]
        heapq.heapify(self._heap)
