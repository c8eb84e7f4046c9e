"""A session of a gate: its calls, and the calls under way.

:mod:`tcc_certs.session.machine` computes its positions and the calls that it allows.
:mod:`tcc_runtime.gate.session.records` renders its records, and
:mod:`tcc_runtime.gate.session.recovery` reads them.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.policy.history import LOST, Call, Draw
from tcc_certs.session.approvals import asked_of
from tcc_certs.session.machine import Answer, Course, Offer, Positions
from tcc_certs.session.records import MAX_BEHIND, MAX_UNDER_WAY
from tcc_certs.values.places import UNKNOWN, State
from tcc_runtime.gate.asking.questions import Questions
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed
from tcc_runtime.gate.session.made import NOTHING, Made, MadeCalls

# with more next calls than this, statements are not evaluated for `allowed`
_MOST_ASKED: Final = 1 << 10
_NO_STATES: Final[Mapping[str, State]] = MappingProxyType({})


class Session:
    """The state of one session.

    Attributes:
        policy: the policy of its artifact.
        course: its calls as statements see them, and its possible positions in the automaton.
        made: its calls, for the gate.
        under_way: the numbers of the calls that have no outcome yet, in order.
        ended: whether the session has ended.
        identity: the session's id.
        way_on: advice for the owner if the session allows no further call.
        questions: the questions to persons, and their verdicts.
        last_ms: the latest time of a record or of the start, UTC milliseconds.
        changes: the number of begins, outcomes and resolved outcomes of calls.
    """

    __slots__ = (
        "changes", "course", "ended", "identity", "last_ms", "made", "policy", "questions",
        "under_way", "way_on",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.course: Course = policy.course({})
        self.made = MadeCalls()
        self.under_way: tuple[int, ...] = ()
        self.ended = False
        self.questions = Questions(
            policy.decider.rules, policy.texts, [one.because for one in policy.core.statements]
        )
        self.identity = self.way_on = ""
        self.last_ms = self.changes = 0

    def open(self, identity: str, started_ms: int, given: Mapping[str, State]) -> None:
        """Begin the session with the members of its first record."""
        self.identity, self.last_ms = identity, started_ms
        self.course = self.policy.course(given)

    @property
    def held(self) -> Positions:
        """The possible positions of the session."""
        return self.course.held

    @property
    def lost(self) -> bool:
        """True if the session is nowhere, whatever its unknown outcomes were."""
        return self.course.lost

    def at(self, clock_ms: int) -> int:
        """Return the time for a record that is written now: the clock, but never less than the last
        time.
        """
        return max(clock_ms, self.last_ms)

    def note_time(self, at_ms: object) -> None:
        """Note the time of a record; ignored if the record has none."""
        if isinstance(at_ms, int) and at_ms > self.last_ms:
            self.last_ms = at_ms

    def may_finish(self, now_ms: int) -> bool:
        """Return whether the session may end."""
        return self.course.may_finish(self.at(now_ms))

    def word(self) -> list[int] | None:
        """Return the artifact calls that were done, in order; None if they are not all known."""
        if self.under_way or len(self.held) != 1 or self.lost or not self.made.is_complete:
            return None
        found = []
        for made in self.made:
            if made.outcome == "failed":
                continue
            call = made.offer.calls.get(self.answer(made))
            if made.outcome == "unknown" or call is None:
                return None
            found.append(call)
        return found

    def answer(self, made: Made) -> Answer:
        """Return the indices of the listed answers of a call; None for an answer that is not
        known.
        """
        return self.policy.machine.listed(made.offer.tool).answer(made.call.answers)

    # Calls.

    def begin(
        self,
        call: Call,
        offer: Offer,
        draws: Mapping[int, Draw] | None = None,
        *,
        line: int = 0,
        opened: Mapping[str, Json] = NOTHING,
        model: str = "",
        approvals: Sequence[str] = (),
        has_ref: bool = False,
    ) -> Made:
        """Add an allowed call; it is under way afterwards.

        Args:
            line, opened, model, has_ref: see :class:`Made`.
        """
        self.course.begin(call, offer, draws)
        made = Made(offer, call, line, opened, model, has_ref=has_ref)
        self.under_way = (*self.under_way, self.made.append(made))
        if approvals:
            self.questions.use(len(self.made), approvals)
        self.changes += 1
        self.note_time(call.at_ms)
        return made

    def settle(
        self, seq: int, outcome: str, states: Mapping[str, State], unforeseen: bool = False
    ) -> None:
        """Record the outcome of a call that is under way.

        Args:
            outcome: a constant of :mod:`tcc_certs.policy.history`, such as DONE.
            states: the states of the answers of a call that is done.
        """
        self.made.of(seq).unforeseen = unforeseen
        self.under_way = tuple([other for other in self.under_way if other != seq])
        self.course.settle(seq, outcome, states)
        self.questions.settle(seq, outcome)
        self.changes += 1

    def leave_unknown(self, seq: int) -> None:
        """Record that the outcome of a call under way is unknown."""
        self.settle(seq, LOST, _NO_STATES)

    def resolve(self, seq: int, outcome: str, states: Mapping[str, State]) -> None:
        """Record the outcome of a call whose outcome was unknown.

        Raises:
            Rejected: D201: the positions after too many calls would have to be computed again.
        """
        self.course.resolve(seq, outcome, states)
        self.questions.settle(seq, outcome)
        self.changes += 1

    # Allowed calls.

    def allowed(self, now_ms: int) -> tuple[Allowed, ...]:
        """Return the calls that plans allow now and that no statement is known to refuse.

        Statements are evaluated only for calls without open arguments, and only for few next calls.
        """
        policy, course = self.policy, self.course
        offers = policy.next_offers(course.held)
        if len(offers) <= _MOST_ASKED:
            offers = tuple([one for one in offers if self._passes(one, self.at(now_ms))])
        return policy.allowed(offers)

    def _passes(self, offer: Offer, at_ms: int) -> bool:
        tool = self.policy.core.tools[offer.tool]
        if any(one.type is not None for one in tool.arguments):
            return True
        states = self.policy.machine.listed(offer.tool).states(offer.values)
        call = self.course.call(tool.name, states, at_ms)
        refusals = self.policy.decider.refusals(self.course.history, call, at_ms)
        if any(one.code != Code.PENDING for one in refusals):
            return False
        # A call that needs a person is listed here until a person denies it.
        asks = [one.statement for one in refusals]
        asked = asked_of(tool.name, offer.text, {})
        return self.questions.standing(asks, asked, at_ms).denied is None

    # Calls that wait.

    def waits(self, offer: Offer, records: int) -> bool:
        """Return whether an allowed call must wait because of the calls under way.

        Args:
            records: the number of records of the ledger before the next one.
        """
        if not self.under_way:
            return False
        if len(self.under_way) >= MAX_UNDER_WAY:
            return True
        if records - self.made.of(self.under_way[0]).line >= MAX_BEHIND:
            return True
        commute = self.policy.machine.commute
        return not all(commute(offer.tool, tool) for tool in self._tools_under_way())

    def may_come(self, code: Code, statement: int | None, offer: Offer | None) -> bool:
        """Return whether a refused call may be allowed once the outcomes of calls under way are
        known.

        Possible positions only get fewer.  So a call that continues from none of them stays
        refused.

        Args:
            code, offer: see :class:`Decision`.
            statement: the number of the statement that refuses the call.
        """
        if not self.under_way:
            return False
        if statement is not None:
            sets, attributes = self.policy.read_by(statement)
            known = self.course.history.attribute
            sets = [*sets, *[of for name, of in attributes.items() if known(name) == UNKNOWN]]
            names = [self.policy.core.tools[tool].name for tool in self._tools_under_way()]
            return any(name in tools for name in names for tools in sets)
        if code is Code.NOT_PLANNED:
            return offer is not None and any(
                self.policy.leads_on(position, offer) for position in self.held
            )
        return code is Code.MANY_STATES

    def _tools_under_way(self) -> set[int]:
        return {self.made.of(seq).offer.tool for seq in self.under_way}
