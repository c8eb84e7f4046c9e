"""A session of a gate: its calls, and which of them are under way.

The positions that it holds, and what it allows, are those of the shared machine
(:mod:`tcc_certs.session.machine`).  :mod:`tcc_runtime.gate.session.records` makes its records, and
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

_MOST_ASKED: Final = 1 << 10  # calls that statements are asked about
_NO_STATES: Final[Mapping[str, State]] = MappingProxyType({})


class Session:
    """The state of one session.

    Attributes:
        policy: of its artifact.
        course: its calls by the definition, and the positions that it holds.
        made: the calls.
        under_way: the numbers of the calls that have no outcome yet, in order.
        ended: no call may follow.
        identity: the session's id.
        way_on: what the owner of the session can do if no call is allowed any more.
        questions: to persons, and their verdicts.
        last_ms: the time of the last record that has one, and of its start; UTC.
        changes: how many calls began, ended or were resolved.
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
        """Begin, by the first record."""
        self.identity, self.last_ms = identity, started_ms
        self.course = self.policy.course(given)

    @property
    def held(self) -> Positions:
        """The positions that it holds."""
        return self.course.held

    @property
    def lost(self) -> bool:
        """Whether the session is nowhere, whatever its unknown outcomes were."""
        return self.course.lost

    def at(self, clock_ms: int) -> int:
        """The time of a record that is written now."""
        return max(clock_ms, self.last_ms)

    def note_time(self, at_ms: object) -> None:
        """A record has this time, if it is one."""
        if isinstance(at_ms, int) and at_ms > self.last_ms:
            self.last_ms = at_ms

    def may_finish(self, now_ms: int) -> bool:
        """Whether the session may end."""
        return self.course.may_finish(self.at(now_ms))

    def word(self) -> list[int] | None:
        """The calls of the artifact that were done; None where that is not known."""
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
        """The indices of the listed answers of a call that is done; None of one that is unknown."""
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
        """Add a call that is allowed; it is under way.

        Args:
            approvals: the ids of the approvals that it uses.
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
            outcome: as of :mod:`tcc_certs.policy.history`.
            states: of the answers of a call that is done.
        """
        self.made.of(seq).unforeseen = unforeseen
        self.under_way = tuple([other for other in self.under_way if other != seq])
        self.course.settle(seq, outcome, states)
        self.questions.settle(seq, outcome)
        self.changes += 1

    def leave_unknown(self, seq: int) -> None:
        """A call under way has an unknown outcome."""
        self.settle(seq, LOST, _NO_STATES)

    def resolve(self, seq: int, outcome: str, states: Mapping[str, State]) -> None:
        """Record the outcome of a call whose outcome was unknown.

        Raises:
            Rejected: D201: too many calls would have to be computed again.
        """
        self.course.resolve(seq, outcome, states)
        self.questions.settle(seq, outcome)
        self.changes += 1

    # Allowed calls.

    def allowed(self, now_ms: int) -> tuple[Allowed, ...]:
        """The calls that plans allow now, and that no statement refuses as far as that is known.

        Statements are asked about calls that have no open arguments.
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
        # A person may approve a held call, so it is allowed here until a person denies it.
        asks = [one.statement for one in refusals]
        asked = asked_of(tool.name, offer.text, {})
        return self.questions.standing(asks, asked, at_ms).denied is None

    # Calls that wait.

    def waits(self, offer: Offer, records: int) -> bool:
        """Whether a call that is allowed may not begin beside those that are under way.

        Args:
            records: of the ledger.
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
        """Whether a refused call may be allowed once the outcomes of calls under way are known.

        Positions held only get fewer, so a call that leads on from none stays refused.

        Args:
            statement: the number of the statement that refuses it.
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
