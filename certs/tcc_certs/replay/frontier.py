"""The frontier: items by (key descending, digest ascending).

Cost: logarithmic in its size a push and a pop.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeAlias

from tcc_certs.replay.language import Language
from tcc_certs.replay.tree import Node, mass

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
        """omega * n of all items, in the units of the root's race count."""
        # As tcc_certs.replay.tree.scale has it, all items of one scale together.
        sums: dict[int, int] = {}
        for _, _, node in self._heap:
            states = node.states
            down = node.depth + (0 if states is None else language.rank(states))
            sums[down] = sums.get(down, 0) + node.weight * mass(language, node)
        longest, bits = language.rank(language.root), language.fraction_bits
        return sum([part << bits * (longest - down) for down, part in sums.items()])
