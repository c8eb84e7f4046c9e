"""Where a run stands: its frontier, the mode and the claim in force, and what guards do to them.

Text: docs/spec/race.md, sections 10 and 11.  Cost: a look at each number where one may be clamped.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_runtime.frontier import Frontier
from tcc_runtime.guards import Descent, Guard
from tcc_runtime.item import Item
from tcc_runtime.numbers.rung import Rung
from tcc_runtime.races.race import Race, clamps
from tcc_runtime.sink import Sink
from tcc_runtime.terms.modes import Claim
from tcc_runtime.terms.settings import Mode


class Standing(Frontier):
    """The frontier of a run under a race, a mode and a claim.

    Attributes:
        race, mode, claim: those in force.
        fired: the guards that fired, in the order of their first firing.
        switched: whether counts became bounds once an arrival was drawn: no law is known then.
        clamping: whether numbers may have to be clamped.
        sink: gets every step; None: there is none.
    """

    def __init__(self, race: Race, numbers: Rung, mode: Mode, claim: Claim, top: int) -> None:
        super().__init__(numbers, top)
        self.race = race
        self.mode: Mode = mode
        self.claim = claim
        self.fired: list[Guard] = []
        self.switched = False
        self.clamping = False
        self.sink: Sink | None = None

    def downgrade(self, claim: Claim, guard: Guard) -> None:
        """The mode went down, and the claim with it."""
        self.fire(guard)
        self.claim = claim
        if self.sink is not None:
            self.sink.enter(self.race)
            self.sink.downgrade(self.mode, claim, guard)

    def fire(self, guard: Guard) -> None:
        """A guard fires."""
        if guard not in self.fired:
            self.fired.append(guard)

    def clamped(self) -> None:
        """A number had to be clamped."""
        self.fire(Guard.CLAMP)
        self.claim = Claim.NONE

    def note_clamps(self, items: Sequence[Item], *, popped: bool = False) -> None:
        """Looks whether one of the items that were pushed, or popped, had a number clamped."""
        if self.clamping and any(clamps(self.race, item, popped) for item in items):
            self.clamped()

    def note_descent(self, descent: Descent | None) -> None:
        """Looks at Phi of an expansion."""
        if descent is None:
            return
        if descent.fails:
            self.fire(Guard.ACYCLICITY)
            self.claim = Claim.NONE
        if descent.clamp:
            self.fire(Guard.CLAMP)
