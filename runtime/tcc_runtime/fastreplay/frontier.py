"""The frontier of the definition, its items opened only when somebody looks at them.

So a run is handed over to the definition, and taken back, at no cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tcc_certs.replay.frontier import Frontier
from tcc_certs.replay.language import Language
from tcc_certs.replay.tree import Node, share
from tcc_runtime.fastreplay.items import Entry, entered, opened, settled


class Unopened(Frontier):
    """A frontier of entries (:mod:`tcc_runtime.fastreplay.items`).

    Attributes:
        entries: the heap; one list from first to last.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.replace(nodes)

    @property
    def top(self) -> Node | None:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        if not self.entries:
            return None
        entry = self.entries[0]
        item = settled(opened(entry))
        self.entries[0] = (entry[0], entry[1], item)
        return item

    def digests(self) -> Iterable[bytes]:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        return (entry[1] for entry in self.entries)

    def nodes(self) -> list[Node]:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        return [settled(opened(entry)) for entry in self.entries]

    def push(self, node: Node) -> None:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        heapq.heappush(self.entries, (-node.key, node.digest, entered(node)))

    def pop(self) -> None:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        heapq.heappop(self.entries)

    def replace(self, nodes: Iterable[Node]) -> None:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        self.entries[:] = [(-node.key, node.digest, entered(node)) for node in nodes]
        heapq.heapify(self.entries)

    def covered(self, language: Language) -> int:
        """See :class:`tcc_certs.replay.frontier.Frontier`."""
        total = 0
        for entry in self.entries:
            if len(entry) == 3:
                total += share(language, entry[2])
            else:
                total += entry[2].weight * entry[3].part
        return total
