"""The calls of a session that were done or may have been, and what follows from them.

Normative text: docs/spec/session.md, section 4.  When an outcome becomes known late, all that was
made after that call is gone through again with what is known now.  What is held then was held
before, and a monitor counts nothing against a call that it did not count before: so every call
that was allowed stays allowed.
Cost: that of each call's step; a late outcome costs the steps of the calls after it, and of these
there may be so many in all.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.session.monitors import Made, Memory, Undo
from tcc_certs.session.states import NOWHERE, Answer, Held, Offer, Plans

Outcome: TypeAlias = Literal["done", "failed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call that was done, or may have been.

    Attributes:
        seq: its number among all calls of the session.
        made: as monitors see it; without observed values.
        certain: whether it is known to be done.
        answer: its observed values; None where they are not known, or were not foreseen.
    """

    seq: int
    offer: Offer
    made: Made
    certain: bool
    answer: Answer | None = None


class History:
    """The steps of a session, in order.

    A late outcome takes back the steps from its call on; they are gone through again when somebody
    asks where the session is, once for all outcomes that became known in between.

    Attributes:
        plans: the artifact.
    """

    def __init__(self, plans: Plans, core: Core) -> None:
        self.plans = plans
        self._held: Held = plans.start
        self._memory = Memory(core)
        self._steps: list[Step] = []
        self._before: list[tuple[Held, Undo]] = []  # of those that were gone through
        self._repeated = 0

    @property
    def held(self) -> Held:
        """Where the session may be."""
        self._catch_up()
        return self._held

    @property
    def memory(self) -> Memory:
        """Of its monitors."""
        self._catch_up()
        return self._memory

    @property
    def lost(self) -> bool:
        """Whether the session is nowhere, whatever the unknown outcomes were."""
        return self.held == (NOWHERE,)

    def refuses(self, offer: Offer, made: Made) -> Code | None:
        """Why a call may not be made now: R201, R203, R202, R301, the first; None where it may."""
        code = self.plans.refuses(self.held, offer)
        if code in (None, Code.MANY_STATES) and self.memory.forbids(made) is not None:
            return Code.MONITOR_FORBIDS
        return code

    def add(self, step: Step) -> None:
        """Go on by a call that was not refused."""
        self._catch_up()
        self._steps.append(step)
        self._go_through(step)

    def resolve(self, seq: int, outcome: Outcome, answer: Answer | None) -> None:
        """The outcome of an unknown call is known now.

        Raises:
            Rejected: D201 so many calls would have to be gone through again.
        """
        at = bisect_left(self._steps, seq, key=lambda step: step.seq)
        self._repeated += max(0, len(self._before) - at - 1)
        if self._repeated > MAX_REFOLDED:
            raise Rejected(
                Code.LIMIT, "resolve", f"{MAX_REFOLDED} calls gone through again", "more"
            )
        while len(self._before) > at:
            self._held, undo = self._before.pop()
            self._memory.undo(undo)
        if outcome == "done":
            self._steps[at] = replace(self._steps[at], certain=True, answer=answer)
        else:
            del self._steps[at]

    def _catch_up(self) -> None:
        if len(self._before) < len(self._steps):
            for step in self._steps[len(self._before) :]:
                self._go_through(step)

    def _go_through(self, step: Step) -> None:
        made = step.made
        if step.answer is not None:
            made = replace(made, values=step.offer.answered(step.answer))
        undo = self._memory.add(made, certain=step.certain)
        self._before.append((self._held, undo))
        self._held = self._after(step)

    def _after(self, step: Step) -> Held:
        if not step.certain:
            return self.plans.unknown(self._held, step.offer)
        if step.answer is None:
            return (NOWHERE,)
        return self.plans.done(self._held, step.offer, step.answer)
