"""What a run leaves behind at its stop: a recorder that keeps nodes instead of writing lines.

Cost: a list append a node.
"""

from __future__ import annotations

from tcc_runtime.guards import Descent, Guard
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Claim, Terms
from tcc_runtime.node import Expansion, Node
from tcc_runtime.outcome import Run
from tcc_runtime.recorder import Recorder
from tcc_runtime.settings import Mode
from tcc_runtime.sinks import HashOnly


class Trace(Recorder):
    """Keeps every node pushed, and what was popped.

    Attributes:
        pushed: in the order of the pushes.
        popped: digests of nodes expanded and leaves popped.
    """

    wants_nodes = True

    def __init__(self) -> None:
        super().__init__(HashOnly(), started_ms=0)
        self.pushed: list[Node] = []
        self.popped: set[bytes] = set()

    def open(self, artifact: Artifact, terms: Terms) -> None:
        """Nothing to keep."""

    def root(self, node: Node) -> None:
        """Keeps the root."""
        self.pushed.append(node)

    def expand(self, expansion: Expansion, descent: Descent | None) -> None:
        """Keeps the children."""
        self.popped.add(expansion.node.digest)
        self.pushed += expansion.children

    def leaf(self, leaf: Node, word: int, incumbent: int | None, late: bool) -> None:
        """Takes the leaf out of the frontier."""
        self.popped.add(leaf.digest)

    def downgrade(self, mode: Mode, claim: Claim, guard: Guard) -> None:
        """Nothing to keep."""

    def close(self, run: Run) -> Run:
        """The run as it is: there is no ledger."""
        return run

    def frontier(self) -> list[Node]:
        """What was pushed and not popped."""
        return [node for node in self.pushed if node.digest not in self.popped]

    def leaves(self) -> list[Node]:
        """The leaves that were popped."""
        return [n for n in self.pushed if n.state is None and n.digest in self.popped]
