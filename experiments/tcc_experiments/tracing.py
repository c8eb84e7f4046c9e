"""What a run leaves behind at its stop: a recorder that keeps items instead of writing lines.

Cost: a list append an item.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.guards import Descent, Guard
from tcc_runtime.item import ID, ORDER, VIEW, Item
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import HashOnly
from tcc_runtime.outcome import Run
from tcc_runtime.races.race import Step
from tcc_runtime.states import State
from tcc_runtime.terms.modes import Claim, Terms
from tcc_runtime.terms.settings import Mode


@dataclass(frozen=True, slots=True)
class Pushed:
    """An item as it was pushed: D or L, its key in units of Q64.64, its state, None at a leaf."""

    digest: bytes
    key: int
    state: State | None


class Trace(Recorder):
    """Keeps every item pushed, and what was popped.

    Attributes:
        pushed: in the order of the pushes.
        popped: digests of nodes expanded and leaves popped.
    """

    def __init__(self) -> None:
        super().__init__(HashOnly(), started_ms=0)
        self.pushed: list[Pushed] = []
        self.popped: set[bytes] = set()

    def open(self, artifact: Artifact, terms: Terms) -> None:
        """Nothing to keep."""

    def root(self, item: Item) -> None:
        """Keeps the root."""
        self._keep(item)

    def step(self, step: Step, descent: Descent | None) -> None:
        """Keeps the children."""
        self.popped.add(step[0][ID])
        for child in step[3]:
            self._keep(child)

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """Takes the leaf out of the frontier."""
        self.popped.add(leaf[ID])

    def downgrade(self, mode: Mode, claim: Claim, guard: Guard) -> None:
        """Nothing to keep."""

    def close(self, run: Run) -> Run:
        """The run as it is: there is no ledger."""
        return run

    def frontier(self) -> list[Pushed]:
        """What was pushed and not popped."""
        return [item for item in self.pushed if item.digest not in self.popped]

    def leaves(self) -> list[Pushed]:
        """The leaves that were popped."""
        return [n for n in self.pushed if n.state is None and n.digest in self.popped]

    def _keep(self, item: Item) -> None:
        view = item[VIEW]
        state = None if view is None else view.state
        self.pushed.append(Pushed(item[ID], -item[ORDER], state))
