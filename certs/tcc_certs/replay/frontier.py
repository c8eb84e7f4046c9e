"""The frontier: items by (key descending, digest ascending).

Cost: logarithmic in its size a push and a pop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from tcc_certs.replay.buds import Entry, opened
from tcc_certs.replay.language import Language
from tcc_certs.replay.tree import Node, share


class Frontier:
    """The nodes and leaves that were pushed and not popped.

    Attributes:
        heap: the items, some of them not yet opened.
    """

    def __init__(self) -> None:
        self.heap: list[Entry] = []

    @property
    def top(self) -> Node | None:
        """The item that is popped next."""
        if not self.heap:
            return None
        entry = self.heap[0]
        node = opened(entry)
        self.heap[0] = (entry[0], entry[1], node)
        return node

    def digests(self) -> Iterator[bytes]:
        """Those of all items."""
        return (entry[1] for entry in self.heap)

    def push(self, node: Node) -> None:
        """One more item, under its key."""
        heapq.heappush(self.heap, (-node.key, node.digest, node))

    def pop(self) -> None:
        """The top leaves; there is one."""
        heapq.heappop(self.heap)

    def rekey(self, keyed: Callable[[Node], Node]) -> None:
        """Every item gets another key."""
        nodes = [keyed(opened(entry)) for entry in self.heap]
        self.heap[:] = [(-node.key, node.digest, node) for node in nodes]
        heapq.heapify(self.heap)

    def covered(self, language: Language) -> int:
        """omega * n of all items, in the units of the root's race count."""
        total = 0
        masses: dict[Node, int] = {}  # below each node of what it pushed and is not opened
        for entry in self.heap:
            node = entry[2]
            if len(entry) == 3:
                total += share(language, node)
            else:
                masses[node] = masses.get(node, 0) + entry[3].mass
        # As tcc_certs.replay.tree.scale has it, all masses of one scale together.
        sums: dict[int, int] = {}
        for node, mass in masses.items():
            down = node.depth + (0 if node.states is None else language.rank(node.states))
            sums[down] = sums.get(down, 0) + node.weight * mass
        longest, bits = language.rank(language.root), language.fraction_bits
        return total + sum([part << bits * (longest - down) for down, part in sums.items()])
