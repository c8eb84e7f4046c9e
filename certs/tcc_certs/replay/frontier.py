"""The frontier: items by (key descending, digest ascending).

Cost: logarithmic in its size a push and a pop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tcc_certs.replay.language import Language, States
from tcc_certs.replay.shares import share_of
from tcc_certs.replay.tree import Node, share

Entry: TypeAlias = "tuple[int, bytes, Node]"  # -key, digest


class Frontier:
    """The nodes and leaves that were pushed and not popped."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    @property
    def top(self) -> Node | None:
        """The item that is popped next."""
        return self._heap[0][2] if self._heap else None

    def digests(self) -> Iterable[bytes]:
        """Those of all items."""
        return (entry[1] for entry in self._heap)

    def nodes(self) -> list[Node]:
        """All items, in no order to rely on."""
        return [entry[2] for entry in self._heap]

    def kth_greatest(
        self, k: int, known: list[int], worth: Callable[[Node], int | None]
    ) -> int | None:
        """The k-th greatest of `known` and of what items are worth; None: there are not so many.

        Args:
            known: fewer than k, or k.
            worth: of an item, no more than its key; None: it has none.  Below an item of the heap
                no key is greater, so what cannot count is not looked at.
        """
        heapq.heapify(known)
        places = [0]
        while places:
            at = places.pop()
            if at >= len(self._heap):
                continue
            key, _, node = self._heap[at]
            full = len(known) >= k
            if full and -key <= known[0]:
                continue
            found = worth(node)
            if found is not None:
                (heapq.heappushpop if full else heapq.heappush)(known, found)
            places += (2 * at + 1, 2 * at + 2)
        return known[0] if len(known) >= k else None

    def push(self, node: Node) -> None:
        """One more item, under its key."""
        heapq.heappush(self._heap, (-node.key, node.digest, node))

    def pop(self) -> None:
        """The top leaves; there is one."""
        heapq.heappop(self._heap)

    def replace(self, nodes: Iterable[Node]) -> None:
        """These items, each under its key, in place of all others."""
        self._heap = [(-node.key, node.digest, node) for node in nodes]
        heapq.heapify(self._heap)

    def rekey(self, keyed: Callable[[Node], Node]) -> None:
        """Every item gets another key."""
        self.replace([keyed(node) for node in self.nodes()])

    def covered(self, language: Language) -> int:
        """omega * n of all items: a residue (:mod:`tcc_certs.replay.shares`), or a sum of some."""
        total = 0
        weights: dict[States, int] = {}  # omega of all nodes at the same states
        for _, _, node in self._heap:
            if node.states is None or node.left is not None:
                total += share(language, node)
            else:
                weights[node.states] = weights.get(node.states, 0) + node.weight
        return total + sum([share_of(weights[at], *language.rate(at)) for at in weights])
