"""The frontier of the definition, its items opened only when somebody looks at them.

So a run is handed over to the definition, and taken back, at no cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from tcc_certs.replay.frontier import Frontier
from tcc_certs.replay.language import Language
from tcc_certs.replay.shares import share_of
from tcc_certs.replay.tree import Node, share
from tcc_runtime.fastreplay.items import Entry, Item, entered, opened, settled
from tcc_runtime.fastreplay.rows import Remainder


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
        units: dict[Item, int] = {}  # of a popped item
        masses: dict[Item, int] = {}  # of its children, in these units
        left: dict[int, Remainder] = {}  # by its id, as nodes at one state share what is left
        omegas: dict[int, int] = {}  # of all nodes of which the same is left
        for entry in self.entries:
            node = entry[2]
            if len(entry) == 3:
                total += share(language, node)
            elif isinstance(what := entry[3], Remainder):
                left[id(what)] = what
                omegas[id(what)] = omegas.get(id(what), 0) + node.weight
            else:
                units[node] = what.unit
                masses[node] = masses.get(node, 0) + what.mass
        total += sum([share_of(at.weight, masses[at], units[at]) for at in masses])
        return total + sum([share_of(omegas[i], left[i].mass, left[i].unit) for i in left])
