"""What a run hands its steps to: a ledger, or whoever follows it.

Text: docs/spec/race.md, section 21.
"""

from __future__ import annotations

from typing import Protocol

from tcc_runtime.guards import Descent, Guard
from tcc_runtime.item import Item
from tcc_runtime.races.race import Race, Step
from tcc_runtime.terms.modes import Claim
from tcc_runtime.terms.settings import Mode


class Sink(Protocol):
    """Gets the steps of a run, in their order."""

    def enter(self, race: Race) -> None:
        """The race of all that follows."""

    def root(self, item: Item) -> None:
        """The root is pushed."""

    def step(self, step: Step, descent: Descent | None) -> None:
        """A node was expanded, or what is left of one drawn from."""

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """A leaf was popped: U_P is `word`, B* after it `incumbent`."""

    def downgrade(self, mode: Mode, claim: Claim, guard: Guard) -> None:
        """Another mode from here on."""

    def flush(self) -> None:
        """Whatever it got is written."""
