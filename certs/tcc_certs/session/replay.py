"""The replay of a session: record after record, a rule for each kind.

Normative text: docs/spec/session.md, sections 3 and 4.  A field that has another value than the one
that follows is a finding, and the replay goes on; a call or an end that is not allowed ends it, as
nothing after it can be judged.  What a record says of the world, its outcome and what was answered,
is taken as it is said.
Cost: the steps of the history, and one look at each field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.replay.findings import Findings
from tcc_certs.session.answers import answer_of
from tcc_certs.session.arguments import Arguments
from tcc_certs.session.header import Header
from tcc_certs.session.history import History, Outcome, Step
from tcc_certs.session.makers import Makers
from tcc_certs.session.monitors import Made
from tcc_certs.session.refusals import RECORDED, UNKNOWN_TOOL
from tcc_certs.session.states import Answer, Offer, Plans
from tcc_certs.values.digest import call_key

_REFUSED: Mapping[Code, tuple[Code, str, str]] = {
    Code.NOT_PLANNED: (Code.SESSION_PLANS, "call", "a call that leads on from every state held"),
    Code.MONITOR_FORBIDS: (Code.SESSION_MONITOR, "call", "a call that every monitor allows"),
    Code.STATEMENT_FORBIDS: (
        Code.SESSION_STATEMENT, "call", "a call that the statements left to the run allow",
    ),
    Code.MANY_STATES: (Code.SESSION_PLACES, "call", "a call after which 64 states may be held"),
}  # fmt: skip


@dataclass(slots=True)
class Tally:
    """How many there were of what, for the verdict.

    Attributes:
        unknown: calls whose outcome is unknown; failed: those that are said to have failed;
            resolved: those whose outcome was said later.
    """

    calls: int = 0
    outcomes: int = 0
    refusals: int = 0
    unknown: int = 0
    failed: int = 0
    resolved: int = 0


class Session:
    """A session between two records.

    Attributes:
        history: the calls that were done or may have been.
        arguments: what was seen of open arguments.
        pending: the call whose outcome is due; None where none is.
        ended: whether it ended; abandoned: whether where no plan has to end.
        makers: who makes the calls.
    """

    def __init__(self, plans: Plans, core: Core, header: Header, findings: Findings) -> None:
        self.core = core
        self.header = header
        self.findings = findings
        self.history = History(plans, core)
        self.arguments = Arguments(core, header)
        self.tally = Tally()
        self.pending: tuple[int, Offer, Made] | None = None
        self.ended = self.abandoned = False
        self.makers = Makers(core, header.name, findings)
        self._offers = plans.offers
        self._tools = {tool.name for tool in core.tools}
        self._unknown: dict[int, Offer] = {}
        self._keys: set[str] = set()
        self._references: set[str] = set()

    @property
    def unforeseen(self) -> bool:
        """Whether an answer came that no plan goes on after."""
        return self.history.lost

    def step(self, kind: str, record: Record, line: int) -> None:
        """Go on by a record, its fields in their form.

        Raises:
            Rejected: what ends the replay.
        """
        if kind not in _KINDS:
            raise Rejected(Code.LEDGER_ORDER, "kind", "one session, the first record", kind)
        _KINDS[kind](self, record, line)

    def call(self, record: Record, line: int) -> None:
        """A call that is about to be made."""
        if self.pending is not None:
            raise Rejected(Code.LEDGER_ORDER, "kind", f"outcome {self.pending[0]}", "call")
        ensure(not self.unforeseen, Code.SESSION_UNFORESEEN, "kind", "no call", "call")
        seq = self.tally.calls + 1
        self._compare(Code.SESSION_SEQ, line, "seq", seq, record["seq"])
        said = text(record, "call")
        offer = self._offers.get(said)
        if offer is None:
            raise Rejected(Code.SESSION_CALL, "call", "a call of the artifact", said)
        made = self.arguments.read(offer, record["open"])
        expected = self.history.plans.shown(self.history.held)
        self._compare(Code.SESSION_STATES, line, "states", expected, record["states"])
        self._names(record, seq, line)
        refused = self.history.refuses(offer, made)
        if refused is not None:
            code, field, expected = _REFUSED[refused]
            raise Rejected(code, field, expected, self._why(refused, made, said))
        self.makers.call(offer.tool, record, line)
        self.tally.calls += 1
        self.pending = seq, offer, made

    def outcome(self, record: Record, line: int) -> None:
        """What came of the call that was made last."""
        if self.pending is None:
            raise Rejected(Code.LEDGER_ORDER, "kind", "outcome after call", "outcome")
        seq, offer, made = self.pending
        self._compare(Code.SESSION_SEQ, line, "seq", seq, record["seq"])
        outcome = cast(Outcome, text(record, "outcome"))
        answer = None
        if outcome == "done" and "unforeseen" in record:
            ensure(offer.observed != (), Code.SESSION_OUTCOME, "unforeseen", "no field", "true")
            ensure("observed" not in record, Code.SESSION_OUTCOME, "observed", "no field", "one")
        else:
            stray = "unforeseen" in record
            ensure(not stray, Code.SESSION_OUTCOME, "unforeseen", "no field", outcome)
            answer = answer_of(self.core, offer, outcome, record)
        done = outcome == "done" or "result" not in record
        ensure(done, Code.SESSION_OUTCOME, "result", "no field", outcome)
        self.makers.outcome(record, line)
        self.pending = None
        self.tally.outcomes += 1
        self._settle(Step(seq=seq, offer=offer, made=made, certain=False), outcome, answer)

    def budget(self, record: Record, line: int) -> None:
        """What models that make calls may take from here on."""
        self.makers.budget(record, self.pending is not None)

    def asked(self, record: Record, line: int) -> None:
        """What the asks of a search took."""
        self.makers.asked(record, line, self.pending is not None)

    def resolve(self, record: Record, line: int) -> None:
        """The outcome of an unknown call is said later."""
        seq = size(record, "seq")
        if self.pending is not None and self.pending[0] == seq:
            self._give_up()
        found = self._unknown.get(seq)
        if found is None:
            raise Rejected(Code.SESSION_RESOLVE, "seq", "a call whose outcome is unknown", seq)
        outcome = cast(Outcome, text(record, "outcome"))
        answer = answer_of(self.core, found, outcome, record)
        self.history.resolve(seq, outcome, answer)
        del self._unknown[seq]
        self.tally.unknown -= 1
        self.tally.resolved += 1
        self.tally.failed += outcome == "failed"

    def refusal(self, record: Record, line: int) -> None:
        """A call that was not made."""
        tool, code = text(record, "tool"), text(record, "code")
        recorded = code in RECORDED
        ensure(recorded, Code.SESSION_REFUSAL, "code", "a code of a call that is refused", code)
        known = tool in self._tools and code != Code.UNKNOWN_TOOL
        expected = f"a tool of the grammar, or {UNKNOWN_TOOL}"
        ensure(known or tool == UNKNOWN_TOOL, Code.SESSION_REFUSAL, "tool", expected, tool)
        if code == Code.NO_MODEL:
            self.makers.check_refusal(tool)
        self.tally.refusals += 1

    def end(self, record: Record, line: int) -> None:
        """The end, where every plan that may be meant ends, or abandoned."""
        self._give_up()
        self.ended, self.abandoned = True, record["abandoned"] is True
        if not self.abandoned:
            expected = "states that are all the end of a plan"
            # After an answer that was unforeseen it holds nowhere alone, where no plan ends.
            finishes = self.history.plans.may_finish(self.history.held)
            shown = self.history.plans.shown(self.history.held)
            ensure(finishes, Code.SESSION_FINISH, "abandoned", expected, shown)

    def _give_up(self) -> None:
        """A call without a record of its outcome is one whose outcome is unknown."""
        if self.pending is not None:
            seq, offer, made = self.pending
            self.pending = None
            self.makers.give_up()
            self._settle(Step(seq=seq, offer=offer, made=made, certain=False), "unknown", None)

    def _settle(self, step: Step, outcome: Outcome, answer: Answer | None) -> None:
        """Take a call up into the history, or leave it out where it failed."""
        if outcome == "failed":
            self.tally.failed += 1
            return
        certain = outcome == "done"
        self.history.add(
            Step(seq=step.seq, offer=step.offer, made=step.made, certain=certain, answer=answer)
        )
        if not certain:
            self._unknown[step.seq] = step.offer
            self.tally.unknown += 1

    def _names(self, record: Record, seq: int, line: int) -> None:
        """The idempotency key and the caller's reference, each of one call alone."""
        key = text(record, "key")
        if self.header.key is not None:
            expected = call_key(self.header.key, self.header.name, seq).hex()
            self._compare(Code.SESSION_CALL_KEY, line, "key", expected, key)
        ensure(key not in self._keys, Code.SESSION_REPEATED, "key", "a key of its own", key)
        self._keys.add(key)
        if "ref" in record:
            ref = text(record, "ref")
            fresh = ref not in self._references
            ensure(fresh, Code.SESSION_REPEATED, "ref", "a reference of its own", ref)
            self._references.add(ref)

    def _compare(self, code: Code, line: int, name: str, expected: Json, found: Json) -> None:
        if found != expected:
            self.findings.add(code, line, name, expected, found)

    def _why(self, refused: Code, made: Made, said: str) -> str:
        if refused is Code.MONITOR_FORBIDS:
            number = self.history.memory.forbids(made)
            if number is not None:
                return f"{said}, which is against: {self.core.monitors[number].text}"
        return said


_KINDS: Mapping[str, Callable[[Session, Record, int], None]] = {
    "budget": Session.budget,
    "asked": Session.asked,
    "call": Session.call,
    "outcome": Session.outcome,
    "resolve": Session.resolve,
    "refusal": Session.refusal,
    "end": Session.end,
}
