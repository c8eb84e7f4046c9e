"""The calls of one session, in order, and what follows from them; a step may be taken back.

Normative text: docs/spec/session.md, section 4.  When an outcome becomes known late, all that was
made after that call is gone through again with what is known now: what is held then was held
before, and a monitor counts nothing against a call that it did not count before, so every call that
was allowed stays allowed (Session.v: knowing_more_keeps_calls).
Cost: a decision and a step a few look-ups, whatever was called before; a late outcome costs the
steps of the calls after it, and of these there may be so many in all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.limits import MAX_REFOLDED
from tcc_certs.session.machine import NOWHERE, Held, Machine, Observed, Offer
from tcc_certs.session.monitors import Memory, Seen, Undo

Outcome: TypeAlias = Literal["done", "failed", "unknown"]


@dataclass(slots=True, kw_only=True)
class Step:
    """A call that was done, or may have been.

    Attributes:
        seq: its number among all calls of the session.
        seen: as monitors see it; without observed values.
        certain: whether it is known to be done.
        answer: its observed values; None where they are not known, or were not foreseen.
    """

    seq: int
    offer: Offer
    seen: Sequence[Seen]
    certain: bool = False
    answer: Observed | None = None


class Course:
    """The calls of one session, in order, and what follows from them.

    A call counts as one of unknown outcome from when it is made.  Steps are gone through when
    somebody asks where the session is, and taken back when an outcome becomes known: once for all
    outcomes that became known in between.

    Attributes:
        machine: of its artifact.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._held: Held = machine.start
        self._memory = Memory(machine.monitors)
        self._steps: list[Step] = []
        self._before: list[tuple[Held, Undo]] = []  # of those that were gone through
        # Steps that a reader of the records has gone through by now, and how many of them again.
        self._reached = self._repeated = 0

    @property
    def held(self) -> Held:
        """Where the session may be."""
        if len(self._before) < len(self._steps):
            self._catch_up()
        return self._held

    @property
    def before_last(self) -> Held:
        """Where it might have been before the last of its calls, one at least."""
        self._catch_up()
        return self._before[-1][0]

    @property
    def memory(self) -> Memory:
        """Of its monitors."""
        self._catch_up()
        return self._memory

    @property
    def lost(self) -> bool:
        """Whether the session is nowhere, whatever the unknown outcomes were."""
        return self.held == (NOWHERE,)

    def refuses(self, offer: Offer, seen: Sequence[Seen]) -> tuple[Code, str] | None:
        """Why a call may not be made now, and the monitor that forbids it; None where it may.

        Returns:
            R201, R203, R202, R301, the first that holds; a text that is empty but of R202.
        """
        code = self.machine.refuses(self.held, offer)
        if code is None or code is Code.MANY_STATES:
            text = self._memory.forbids(seen)
            if text is not None:
                return Code.MONITOR_FORBIDS, text
        return None if code is None else (code, "")

    def may_finish(self) -> bool:
        """Whether a plan may end at every place."""
        return all(self.machine.accepts(place) for place in self.held)

    def begin(self, seq: int, offer: Offer, seen: Sequence[Seen]) -> None:
        """A call that is not refused is made."""
        self._reached = len(self._steps)
        self._steps.append(Step(seq=seq, offer=offer, seen=seen))

    def settle(self, outcome: Outcome, answer: Observed | None) -> None:
        """The outcome of the call that was made last.

        Args:
            answer: of one that is done; None: it was not foreseen.
        """
        if outcome != "unknown":
            self._know(len(self._steps) - 1, outcome, answer)
        self._reached = len(self._steps)

    def resolve(self, seq: int, outcome: Outcome, answer: Observed | None) -> None:
        """The outcome of an unknown call is known now.

        Raises:
            Rejected: D201 so many calls would have to be gone through again.
        """
        self._repeated = self.repeated(seq)
        if self._repeated > MAX_REFOLDED:
            raise Rejected(
                Code.LIMIT, "resolve", f"{MAX_REFOLDED} calls gone through again", "more"
            )
        at = self._at(seq)
        self._reached = min(self._reached, at)
        self._know(at, outcome, answer)

    def repeated(self, seq: int) -> int:
        """How many calls are gone through again, that of call `seq` told late, in all."""
        return self._repeated + max(0, self._reached - self._at(seq) - 1)

    def _at(self, seq: int) -> int:
        return bisect_left(self._steps, seq, key=lambda step: step.seq)

    def _know(self, at: int, outcome: Outcome, answer: Observed | None) -> None:
        while len(self._before) > at:
            self._held, undo = self._before.pop()
            self._memory.undo(undo)
        step = self._steps[at]
        if outcome == "done":
            step.certain, step.answer = True, answer
        else:
            del self._steps[at]

    def _catch_up(self) -> None:
        for step in self._steps[len(self._before) :]:
            self._go_through(step)

    def _go_through(self, step: Step) -> None:
        held, machine = self._held, self.machine
        values = step.offer.answered(step.answer)
        undo = self._memory.add(step.seen, values, certain=step.certain) if step.seen else []
        self._before.append((held, undo))
        if not step.certain:
            self._held = machine.unknown(held, step.offer)
        elif step.answer is None:
            self._held = (NOWHERE,)
        else:
            self._held = machine.done(held, step.offer, step.answer)
