"""The replay of the records of a session, with one method for each kind of record.

Normative text: docs/spec/session.md.  A wrong value of a derived member is a finding, and the
replay continues.  A call or an end that is not allowed ends the replay, because later records
cannot be judged.  The replay takes outcomes and answers from the ledger.

Cost: the steps of the course, and one check of each member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call, Draw
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.uses import Uses
from tcc_certs.replay.findings import Findings
from tcc_certs.session import records
from tcc_certs.session.across import AcrossDraw, DrawRecords, limits_across
from tcc_certs.session.approvals import MAX_OPEN, Approvals, Asked, Question, asked_of, term_of
from tcc_certs.session.entries import Entries, EntryReader
from tcc_certs.session.executions import Executions, read_budget
from tcc_certs.session.machine import Course, Decider, Offer, SessionHistory, SessionMachine
from tcc_certs.session.nesting import Nesting
from tcc_certs.values.canonical import CallKeys
from tcc_certs.values.fields import Field
from tcc_certs.values.places import NONE, UNKNOWN, State, constant, rest_of

HistoryOf: TypeAlias = "Callable[[Core, Mapping[str, State]], SessionHistory]"


# Models that make calls.


class Makers:
    """The models that make calls in one session.

    Attributes:
        executions: the calls that models make; None before a `budget` record.
    """

    def __init__(self, core: Core, session: str, findings: Findings) -> None:
        self.executions: Executions | None = None
        self._core, self._session, self._findings = core, session, findings

    def budget(self, record: Record, under_way: bool) -> None:
        """Start a budget from its record; no call may be under way."""
        ensure(not under_way, Code.SESSION_BUDGET, "kind", "the outcome of a call", "budget")
        ensure(self.executions is None, Code.SESSION_BUDGET, "kind", "one budget", "a second one")
        budget = read_budget(record, self._core, self._session)
        self.executions = Executions(budget, self._core.tools, self._findings)

    def asked(self, record: Record, line: int, under_way: bool) -> None:
        """Add the amounts of the questions of a search; no call may be under way."""
        ensure(not under_way, Code.LEDGER_ORDER, "kind", "the outcome of a call", "asked")
        if self.executions is None:
            raise Rejected(Code.SESSION_BUDGET, "kind", "a budget before", "asked")
        self.executions.asked(record, line)

    def makes(self, tool: int) -> bool:
        """Return whether a model makes the calls of a tool."""
        return self.executions is not None and self.executions.makes(tool)

    def call(self, tool: int, record: Record, line: int) -> None:
        """Check the model that an allowed call names."""
        if self.executions is not None:
            self.executions.call(tool, record.get("execute"), line)
        elif "execute" in record:
            expected, found = "no member: there is no budget", record["execute"]
            raise Rejected(Code.SESSION_MODEL, "execute", expected, found)

    def outcome(self, record: Record, line: int) -> None:
        """Add the amounts that the last call took."""
        if self.executions is not None:
            self.executions.outcome(record.get("took"), record["outcome"] == "done", line)
        elif "took" in record:
            expected, found = "no member: there is no budget", record["took"]
            raise Rejected(Code.SESSION_MODEL, "took", expected, found)

    def check_refusal(self, tool: str) -> None:
        """Check a refusal of a call for which no model fits the budget (R205).

        Raises:
            Rejected: S211: no model makes calls of this tool.
        """
        places = [at for at, one in enumerate(self._core.tools) if one.name == tool]
        makes = any(map(self.makes, places))
        ensure(makes, Code.SESSION_REFUSAL, "code", "another code: no model makes the call", tool)


# The session.

_NOT_ALLOWED: Mapping[Code, tuple[Code, str]] = {
    Code.NOT_PLANNED: (Code.SESSION_PLANS, "a call that some plan continues with"),
    Code.MANY_STATES: (Code.SESSION_POSITIONS, "a call after which 64 positions may be held"),
}


@dataclass(slots=True)
class Tally:
    """Counts for the verdict.

    Attributes:
        unknown: calls whose outcome is recorded as unknown.
        failed: calls that failed.
        answered: failed calls whose error the agent read.
        resolved: outcomes that became known later.
        unforeseen: calls with an answer that is not known.
        shadowed: refused calls that a shadow session made.
        asked, approved, denied: questions, approvals and denials.
    """

    calls: int = 0
    outcomes: int = 0
    refusals: int = 0
    unknown: int = 0
    failed: int = 0
    answered: int = 0
    resolved: int = 0
    unforeseen: int = 0
    shadowed: int = 0
    asked: int = 0
    approved: int = 0
    denied: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The statements of a core, shared by all its sessions.

    Attributes:
        policy: the object that decides them.
        history: the function that makes the history of a session.
        uses: the parts of values that a ledger needs.
    """

    policy: Decider
    history: HistoryOf
    uses: Uses


class ReplayedSession:
    """The state of a session between two records.

    Attributes:
        course: the calls, and the positions that the session holds.
        reader: makes states from entries.
        open: the calls under way by number, in order, each with the line of its record.
        approvals: questions and verdicts.
        makers: the models that make calls.
        across: draws on limits across sessions.
        keys: the idempotency keys that were not derived from the session's key, as integers.
            Integers take half of the memory of texts.
        last_ms: the time of the last record that has a time.
        carries: True while the records belong to calls that another artifact decided
            (:mod:`tcc_certs.session.carried`).  They are added without a decision.
    """

    def __init__(
        self,
        machine: SessionMachine,
        statements: Statements,
        header: records.SessionHeader,
        findings: Findings,
    ) -> None:
        core = machine.core
        self.core = core
        self.machine = machine
        self.header = header
        self.findings = findings
        self.timed = statements.uses.timed
        self.entries = Entries(core, statements.uses, header.shown)
        self.reader = EntryReader(self.entries, header.constants, header.key)
        given = self.reader.given(header.given)
        self._nesting = Nesting(core, self.reader)
        self._nesting.check_given(given, header.given)
        history = statements.history(core, given)
        self.course = Course(machine, statements.policy, history)
        self.approvals = Approvals(statements.policy.rules)
        self.makers = Makers(core, header.name, findings)
        self.across = DrawRecords()
        self._limits = limits_across(core, statements.policy.rules)
        self.tally = Tally()
        self.open: dict[int, tuple[Offer, int]] = {}
        self.ended = self.abandoned = self.carries = False
        self.last_ms = header.started_ms
        self._unknown: dict[int, Offer] = {}
        self._call_keys = None if header.key is None else CallKeys(header.key, header.name)
        self.keys: set[int] = set()
        self._references: set[str] = set()
        self._questions: set[int] = set()  # the ids of all questions, as integers
        self._listed: dict[int, _ListedAnswers] = {}

    @property
    def lost(self) -> bool:
        """True if an answer led to no position of any plan."""
        return self.course.lost

    def step(self, kind: str, record: Record, line: int) -> None:
        """Process a record whose members are well formed.

        Raises:
            Rejected: the record ends the replay.
        """
        if kind not in _KINDS:
            raise Rejected(Code.LEDGER_ORDER, "kind", "one session record, the first", kind)
        _KINDS[kind](self, record, line)

    def passed_over(self, kind: str, record: Record) -> None:
        """Count a record of an earlier artifact that has no effect under this artifact."""
        tally = self.tally
        if kind == "refusal":
            tally.refusals += 1
            tally.shadowed += "made" in record
        elif kind == "ask":
            tally.asked += 1
            self._questions.add(int(text(record, "id"), 16))
        elif kind == "approval":
            tally.approved += record["verdict"] == "approved"
            tally.denied += record["verdict"] == "denied"
        if "at_ms" in record:
            self.last_ms = max(self.last_ms, size(record, "at_ms"))

    # Calls.

    def call(self, record: Any, line: int) -> None:
        """Process a `call` record, which is written before the call is made."""
        seq = self.tally.calls + 1
        if record["seq"] != seq:
            self.findings.add(Code.SESSION_SEQ, line, "seq", seq, record["seq"])
        offer, arguments = self._call(record)
        if not self.carries:
            self._check_place(offer, record, line)
        self._check_names(record, seq, line)
        now = self._time(record, needed=self.timed)
        tool = self.core.tools[offer.tool].name
        call = self.course.call(tool, arguments, now)
        if self.carries:
            self._follow(call, offer, record)
        else:
            self._allow(call, offer, record, line)
        self.tally.calls += 1
        self.open[seq] = offer, line

    def _follow(self, call: Call, offer: Offer, record: Record) -> None:
        """Add a call that another artifact decided.

        Raises:
            Rejected: S218: no plan continues with the call, or the session would hold too many
                positions.
        """
        code = self.machine.look(self.course.held, offer).code
        if code is not None:
            code, expected = _NOT_ALLOWED[code]
            found = f"{offer.text}: {code}"
            raise Rejected(Code.SESSION_CARRIED, "call", expected, found)
        self.across.carry(record)
        self.course.begin(call, offer)

    def _check_place(self, offer: Offer, record: Record, line: int) -> None:
        """Check that a call may begin next to the calls under way, and check its `states`."""
        if self.open:
            self._check_together(offer.tool, line)
        states: Json = [*self.course.states()]
        if record["states"] != states:
            self.findings.add(Code.SESSION_STATES, line, "states", states, record["states"])

    def _allow(self, call: Call, offer: Offer, record: Record, line: int) -> None:
        """Decide a call, check its derived members, and add it."""
        asks = self._decide(call, offer)
        if asks or "approvals" in record:
            self._approve(record, call.tool, asks, self.tally.calls + 1)
        self.makers.call(offer.tool, record, line)
        draws = self.course.draws(call)
        if self._limits or "across" in record:
            self.across.call(self._drawn(call, draws), record)
        self.course.begin(call, offer, draws)

    def _call(self, record: Any) -> tuple[Offer, dict[str, State]]:
        """Return the offer of a record, and the states of its arguments."""
        offer = self.machine.offer(record["call"])
        if offer is None:
            raise Rejected(Code.SESSION_CALL, "call", "a call of the artifact", record["call"])
        tool = self.core.tools[offer.tool].name
        opened = record["open"]
        arguments = self.reader.arguments(tool, opened)
        if offer.values:
            arguments |= self.machine.listed(offer.tool).states(offer.values)
        self._nesting.check_arguments(tool, arguments, opened)
        return offer, arguments

    def _check_names(self, record: Any, seq: int, line: int) -> None:
        """Check the idempotency key and the caller's reference; no two calls share either."""
        key = record["key"]
        expected = None if self._call_keys is None else self._call_keys.of(seq)
        if key != expected:
            if expected is not None:
                self.findings.add(Code.SESSION_CALL_KEY, line, "key", expected, key)
            number = int(key, 16)
            if number in self.keys:
                raise Rejected(Code.SESSION_REPEATED, "key", "a new key", key)
            self.keys.add(number)
        if "ref" in record:
            ref = record["ref"]
            is_new = ref not in self._references
            ensure(is_new, Code.SESSION_REPEATED, "ref", "a new reference", ref)
            self._references.add(ref)

    def _check_together(self, tool: int, line: int) -> None:
        """Check that a call of a tool may begin while other calls are under way.

        Raises:
            Rejected: L104: the call does not commute with a call under way, 64 calls are under way,
                or too many records follow the oldest of them.
        """
        oldest = next(iter(self.open))
        few = len(self.open) < records.MAX_UNDER_WAY
        few = few and line - 1 - self.open[oldest][1] < records.MAX_BEHIND
        ensure(few, Code.LEDGER_ORDER, "kind", f"the outcome of call {oldest}", "call")
        for seq, (other, _) in self.open.items():
            together = self.machine.commute(tool, other.tool) and not (
                self.makers.makes(tool) or self.makers.makes(other.tool)
            )
            ensure(together, Code.LEDGER_ORDER, "kind", f"the outcome of call {seq}", "call")

    def _decide(self, call: Call, offer: Offer) -> Sequence[int]:
        """Return the `ask` statements that apply to a call that nothing else refuses.

        Raises:
            Rejected: S301 no plan continues with it.  S302 a statement refuses it.  S304 too many
                positions.
        """
        refused, asks = self.course.decide(call, offer)
        if refused is None:
            return asks
        if refused.statement is not None:
            statement = statement_text(self.core.statements[refused.statement])
            expected = f"a call that this statement allows: {statement}"
            raise Rejected(
                Code.SESSION_STATEMENT, "call", expected, f"{offer.text}: {refused.code}"
            )
        code, expected = _NOT_ALLOWED[refused.code]
        raise Rejected(code, "call", expected, offer.text)

    def _approve(self, record: Record, tool: str, asks: Sequence[int], seq: int) -> None:
        """Check that the approvals of a record allow the call, and use them."""
        found = record.get("approvals")
        ids = [str(one) for one in found] if isinstance(found, list) else []
        self.approvals.check(ids, asks, self._asked(tool, record), self.last_ms)
        self.approvals.use(seq, ids)

    def _asked(self, tool: str, record: Record) -> Asked:
        opened = record["open"]
        return asked_of(tool, text(record, "call"), opened if isinstance(opened, dict) else {})

    def _drawn(self, call: Call, draws: Mapping[int, Draw]) -> Sequence[AcrossDraw]:
        """Return the draws of a call on limits across sessions."""
        policy, history = self.course.policy, self.course.history
        return [
            AcrossDraw(
                limit=limit,
                amount=draws[number].amount,
                bound=policy.bound(number, history, call, call.at_ms) or 0,
                key=draws[number].key,
            )
            for number, limit in self._limits.items()
            if number in draws
        ]

    # Outcomes.

    def outcome(self, record: Any, line: int) -> None:
        """Process the outcome of a call under way."""
        seq = record["seq"]
        if seq not in self.open:
            ensure(bool(self.open), Code.LEDGER_ORDER, "kind", "outcome after call", "outcome")
            expected = f"a call under way: {list(self.open)}"
            raise Rejected(Code.SESSION_SEQ, "seq", expected, seq)
        self._time(record, needed=self.timed)
        offer, _ = self.open[seq]
        outcome = record["outcome"]
        tool = self.core.tools[offer.tool]
        answers = self._answers(offer, tool, record, outcome, whole=False)
        answered = _answered(record, tool, outcome)
        if outcome != "done":
            ensure("result" not in record, Code.SESSION_OUTCOME, "result", "no member", outcome)
        self.makers.outcome(record, line)
        tally = self.tally
        tally.outcomes += 1
        tally.answered += answered
        del self.open[seq]
        self.course.settle(seq, _OUTCOMES[outcome, answered], answers)
        if outcome == "unknown":
            self._unknown[seq] = offer
            tally.unknown += 1
            return
        self.approvals.settle(seq, _OUTCOMES[outcome, answered])
        tally.failed += outcome == "failed"

    def resolve(self, record: Record, line: int) -> None:
        """Process an outcome that became known later."""
        seq = size(record, "seq")
        offer = self._unknown.get(seq)
        if offer is None:
            raise Rejected(Code.SESSION_RESOLVE, "seq", "a call whose outcome is unknown", seq)
        self._time(record, needed=self.timed or "who" in record)
        outcome = text(record, "outcome")
        tool = self.core.tools[offer.tool]
        answers = self._answers(offer, tool, record, outcome, whole=not self.carries)
        answered = _answered(record, tool, outcome)
        self.course.resolve(seq, _OUTCOMES[outcome, answered], answers)
        del self._unknown[seq]
        self.tally.unknown -= 1
        self.tally.resolved += 1
        self.tally.answered += answered
        self.tally.failed += outcome == "failed"
        self.approvals.settle(seq, _OUTCOMES[outcome, answered])

    def _answers(
        self, offer: Offer, tool: Tool, record: Record, outcome: str, *, whole: bool
    ) -> dict[str, State]:
        """Return the states of the answers of a record.

        Args:
            whole: whether every listed answer has to be known.
        """
        unforeseen = "unforeseen" in record
        if outcome != "done":
            ensure(not unforeseen, Code.SESSION_OUTCOME, "unforeseen", "no member", outcome)
            for name in ("observed", "answers"):
                ensure(name not in record, Code.SESSION_OBSERVED, name, "no member", outcome)
            return {}
        states = self._observed(offer.tool, record, unforeseen=unforeseen, whole=whole)
        entries = record.get("answers")
        if entries is None and not self.entries.answers(tool.name):
            self.tally.unforeseen += unforeseen
            return states
        found = self.reader.answers(tool.name, entries if isinstance(entries, dict) else {})
        partly = any(state == UNKNOWN for state in found.values())
        self.tally.unforeseen += unforeseen or partly
        found |= states
        if isinstance(entries, dict):
            self._nesting.check_answers(tool.name, found, entries)
        return found

    def _observed(
        self, tool: int, record: Record, *, unforeseen: bool, whole: bool
    ) -> dict[str, State]:
        """Return the states of the listed answers that are known."""
        listed = self._listed.get(tool)
        if listed is None:
            listed = self._listed[tool] = _ListedAnswers(self.core.tools[tool])
        found = record.get("observed")
        if not listed.states:
            if found is not None or unforeseen:
                ensure(found is None, Code.SESSION_OBSERVED, "observed", "no member", found)
                raise Rejected(Code.SESSION_OUTCOME, "unforeseen", "no member", "one")
            return {}
        names = sorted(listed.states)
        given = found if isinstance(found, dict) else {}
        known = isinstance(found, dict) and given.keys() <= listed.states.keys()
        known = known and (not whole or len(given) == len(names))
        ensure(known, Code.SESSION_OBSERVED, "observed", names, found)
        lacks = len(given) < len(names)
        expected = "true" if lacks else "no member: every listed answer is known"
        ensure(lacks == unforeseen, Code.SESSION_OUTCOME, "unforeseen", expected, unforeseen)
        states = {}
        for name, value in given.items():
            state = listed.states[name].get(str(value))
            if state is None:
                expected = " or ".join(map(repr, listed.states[name]))
                raise Rejected(Code.SESSION_OBSERVED, "observed", expected, value)
            states[name] = state
        return states

    # Other records.

    def refusal(self, record: Record, line: int) -> None:
        """Process a refusal: a call that was not made, or that a shadow session made anyway."""
        tool, code = text(record, "tool"), text(record, "code")
        recorded = code in (records.SHADOWED if "made" in record else records.RECORDED)
        ensure(recorded, Code.SESSION_REFUSAL, "code", "a code that is recorded", code)
        unknown = code == Code.UNKNOWN_TOOL
        known = tool == records.UNKNOWN_TOOL if unknown else tool in self.machine.tools
        expected = records.UNKNOWN_TOOL if unknown else "a tool of the core"
        ensure(known, Code.SESSION_REFUSAL, "tool", expected, tool)
        self._check_refusing(record, tool, code)
        if code == Code.NO_MODEL:
            self.makers.check_refusal(tool)
        if "made" in record:
            shadow = self.header.shadow and code in records.SHADOWED
            expected = "no member, except in a shadow session"
            ensure(shadow, Code.SESSION_REFUSAL, "made", expected, code)
            self.tally.shadowed += 1
        self.tally.refusals += 1

    def _check_refusing(self, record: Record, tool: str, code: str) -> None:
        """Check that the named statement can refuse calls of the tool with this code."""
        kinds, number = records.REFUSING.get(code), record.get("statement")
        if kinds is None:
            ensure(number is None, Code.SESSION_REFUSAL, "statement", "no member", number)
            return
        rules = self.course.policy.rules
        fits = [
            at
            for at, rule in enumerate(rules)
            if at == number
            and rule.kind in kinds
            and (rule.kind == "total" or (rule.tools is not None and tool in rule.tools))
        ]
        expected = f"the number of a statement that refuses {tool} with {code}"
        ensure(bool(fits), Code.SESSION_REFUSAL, "statement", expected, number)

    def ask(self, record: Record, line: int) -> None:
        """Process a question to a person about a call."""
        now = self._time(record, needed=True)
        offer, arguments = self._call(record)
        tool = self.core.tools[offer.tool].name
        named = text(record, "tool")
        ensure(named == tool, Code.SESSION_ASK, "tool", tool, named)
        asks = self._decide(self.course.call(tool, arguments, now), offer)
        asked = self._asked(tool, record)
        question_id, statement = text(record, "id"), size(record, "statement")
        is_new = int(question_id, 16) not in self._questions
        ensure(is_new, Code.SESSION_ASK, "id", "a new id", question_id)
        self._questions.add(int(question_id, 16))
        full = self.approvals.is_full(now)
        ensure(not full, Code.SESSION_ASK, "id", f"at most {MAX_OPEN} open questions", "more")
        due = self.approvals.standing(asks, asked, now).due
        expected = "no question" if due is None else f"{due}, the first ask without an approval"
        ensure(statement == due, Code.SESSION_ASK, "statement", expected, statement)
        rule = self.course.policy.rules[statement]
        expected, who = rule.who, text(record, "who")
        ensure(who == expected, Code.SESSION_ASK, "who", expected, who)
        end, expires = now + term_of(rule), size(record, "expires_ms")
        ensure(expires == end, Code.SESSION_ASK, "expires_ms", end, expires)
        self.approvals.ask(Question(question_id, statement, who, asked, expires), now)
        self.tally.asked += 1

    def approval(self, record: Record, line: int) -> None:
        """Process the verdict of a person."""
        now = self._time(record, needed=True)
        verdict = text(record, "verdict")
        self.approvals.decide(text(record, "id"), verdict, now)
        self.tally.approved += verdict == "approved"
        self.tally.denied += verdict == "denied"

    def budget(self, record: Record, line: int) -> None:
        """Process the budget for models that make calls."""
        self.makers.budget(record, bool(self.open))

    def asked(self, record: Record, line: int) -> None:
        """Process the amounts that the questions of a search took."""
        self.makers.asked(record, line, bool(self.open))

    def end(self, record: Record, line: int) -> None:
        """Process the end: the session may finish here, or it is abandoned."""
        ensure(not self.open, Code.LEDGER_ORDER, "kind", "the outcomes of calls under way", "end")
        now = self._time(record, needed=self.timed)
        self.ended, self.abandoned = True, record["abandoned"] is True
        if not self.abandoned:
            expected = "an end of every plan, no open debt, and every finally true"
            finishes = self.course.may_finish(now)
            ensure(finishes, Code.SESSION_FINISH, "abandoned", expected, self.course.states())

    # Members.

    def _time(self, record: Record, *, needed: bool) -> int:
        """Return the time of a record; 0 if no time is needed.

        Raises:
            Rejected: S201: the time is missing, not allowed here, or earlier than the last recorded
                time.
        """
        found = record.get("at_ms")
        if not needed:
            if found is not None:
                raise Rejected(Code.SESSION_SEQ, "at_ms", "no member: no time is used", found)
            return 0
        if type(found) is not int or found < self.last_ms:
            expected = f"{self.last_ms} or later"
            raise Rejected(Code.SESSION_SEQ, "at_ms", expected, "none" if found is None else found)
        self.last_ms = found
        return found


def _answered(record: Record, tool: Tool, outcome: str) -> bool:
    """Return whether the agent read the error of a call.

    Raises:
        Rejected: S209: the call did not fail, or errors of its tool do not mean failure.
    """
    answered = "answered" in record
    if answered and not (outcome == "failed" and tool.errors_failed):
        expected = "no member, except for a failed call of a tool with errors"
        raise Rejected(Code.SESSION_OUTCOME, "answered", expected, outcome)
    return answered


class _ListedAnswers:
    """The listed answers of a tool, with the state of each text that a record may have."""

    def __init__(self, tool: Tool) -> None:
        self.states = {field.name: _texts(field) for field in tool.answers if field.type is None}


def _texts(field: Field) -> dict[str, State]:
    texts = {
        text: rest_of(field.values) if text == "*" else constant(text)
        for text in field.values
        if text
    }
    return {**texts, "": NONE} if field.optional else texts


_OUTCOMES: Mapping[tuple[str, bool], str] = {
    ("done", False): DONE,
    ("failed", False): FAILED,
    ("failed", True): ANSWERED,
    ("unknown", False): LOST,
}
_KINDS: Mapping[str, Callable[[ReplayedSession, Record, int], None]] = {
    "call": ReplayedSession.call,
    "outcome": ReplayedSession.outcome,
    "resolve": ReplayedSession.resolve,
    "refusal": ReplayedSession.refusal,
    "ask": ReplayedSession.ask,
    "approval": ReplayedSession.approval,
    "budget": ReplayedSession.budget,
    "asked": ReplayedSession.asked,
    "end": ReplayedSession.end,
}
