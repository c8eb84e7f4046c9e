"""Recovery of a session from its ledger: the validator checks each record, then it is applied.

The validator's own steps (:mod:`tcc_certs.session.validation`) check each record, with the key.  So
a gate never continues the ledger of another artifact or key, nor one with a record that its key did
not write.  What other processes write meanwhile is read in the same way.  Only whole records are
read: :mod:`tcc_runtime.gate.journal.ledger_file` cuts off a torn last line.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.  Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call
from tcc_certs.session.validation import SessionReplay
from tcc_certs.values.places import State
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget, ModelCalls, asked_in, budget_in
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.session import Made, Session, records
from tcc_runtime.gate.session.records import Answers


class Follower:
    """Applies records to a session.

    Attributes:
        session: as its records leave it.
        refs: the numbers of the calls by the references of the ids that callers gave.
        shown: the fields whose values are shown.
        writer: of the records that this session writes; entries: of its values.
        key: of its digests.
        session_id: of its first record.
        principal: whose session it is, hex; None: nobody's in particular.
        parent: the id of the parent of a delegated session.
        shadow: whether calls that are refused are made.
        given: the entries of what the session was given.
        executions: the calls that models make; None without a budget.
        account: that its calls are counted in across sessions; None: none was, so far.
        returns: numbers and attempts of calls that are known to have had no effect, and that the
            account does not know of yet.
    """

    def __init__(self, policy: Policy, key: bytes) -> None:
        self.session = Session(policy)
        self.refs: dict[str, int] = {}
        self.shown: tuple[str, ...] = ()
        self.writer = records.Writer(key, "")
        self.values = Values(policy, key, ())
        self._policy = policy
        self.key = key
        self.session_id = ""
        self.principal: str | None = None
        self.parent: str | None = None
        self.shadow = False
        self.given: Mapping[str, Json] = {}
        self.executions: ModelCalls | None = None
        self.account: str | None = None
        self.returns: list[tuple[int, int]] = []
        self._replay: SessionReplay | None = None

    def open(self, shown: tuple[str, ...], record: Mapping[str, Json]) -> None:
        """Begin, by the first record."""
        self.shown, self.session_id = shown, text(record, "session_id")
        given = record.get("given")
        self.given = given if isinstance(given, dict) else {}
        self.writer = records.Writer(self.key, self.session_id)
        self.values = Values(self._policy, self.key, shown)
        states = self.values.given(self.given)
        self.session.open(self.session_id, size(record, "started_ms"), states)

    def begin_budget(self, budget: Budget) -> None:
        """From here on models make calls."""
        self.executions = ModelCalls(self._policy.core, budget, self.session_id)

    def apply(self, news: News) -> None:
        """Follow one record; the session knows its own records already.

        Raises:
            ResumeError: it is not what follows in this session.
        """
        record, line = self._checked(news)
        if not news.own:
            self._bring(record, line)

    def _checked(self, news: News) -> tuple[Record, int]:
        """A record without findings, and its number."""
        if self._replay is None:
            policy = self._policy
            self._replay = SessionReplay(policy.checked, policy.machine, self.key)
        replay, record, before = self._replay, news.record, self._replay.line
        try:
            record = replay.step(news.record, news.previous, news.body)
        except Rejected as refusal:
            if replay.line == before:  # it is no canonical line
                raise
            replay.findings.refuse(refusal, replay.line)
        for finding in replay.findings.items:
            place = f"line {finding.line}: {finding.field}: {finding.code.value}"
            raise ResumeError(place, finding.expected, finding.found)
        return record, replay.line

    def _bring(self, record: Record, line: int) -> None:
        session, kind = self.session, record["kind"]
        if kind == "call":
            self._call(record, line)
        elif kind == "outcome":
            self._outcome(record, line)
        elif kind == "session":
            self._begin(record)
        elif kind == "resolve":
            seq = size(record, "seq")
            if seq in session.under_way:
                self._leave_unknown(seq)
            outcome = DONE if record["outcome"] == DONE else FAILED
            session.resolve(seq, outcome, self._known(seq).answers)
            self.returned(seq)
        elif kind == "budget":
            self.begin_budget(budget_in(record, line))
        elif kind == "asked" and self.executions is not None:
            self.executions.asked(*asked_in(record, line))
        elif kind == "end":
            session.ended = True
        session.note_time(record.get("at_ms"))

    def _begin(self, record: Record) -> None:
        arguments = record["arguments"]
        names = arguments["show"] if isinstance(arguments, dict) else None
        self.open(tuple(map(str, names if isinstance(names, list) else [])), record)
        if "principal" in record:
            self.principal = text(record, "principal")
        if "parent" in record:
            self.parent = text(record, "parent")
        self.shadow = "shadow" in record

    def _known(self, seq: int) -> Call:
        """A call as the validator's session has it, which has read the record already."""
        replayed = None if self._replay is None else self._replay.session
        if replayed is None:
            raise ResumeError("line 1", "the start of a session", "none")
        call: Call = replayed.course.history.calls[seq - 1]
        return call

    def _call(self, record: Record, line: int) -> None:
        offer = self._policy.machine.offer(text(record, "call"))
        if offer is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        seq = len(self.session.made) + 1
        known = self._known(seq)
        call = self.session.course.call(known.tool, known.arguments, known.at_ms)
        opened = record["open"]
        made = self.session.begin(
            call, offer, line=line, opened=opened if isinstance(opened, dict) else {}
        )
        executions, execute = self.executions, record.get("execute")
        if executions is not None and isinstance(execute, dict):
            execution = executions.told(offer.tool, execute, line)
            executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[text(record, "ref")] = seq
        self.drew(made, record.get("across"))

    def drew(self, made: Made, across: object) -> None:
        """A call drew on limits across sessions, as its record has it."""
        if isinstance(across, dict):
            made.drawn, self.account = across["attempt"], str(across["account"])

    def returned(self, seq: int) -> None:
        """The outcome of a call is known: if it had no effect, it counts no more."""
        made = self.session.made[seq - 1]
        if made.call.outcome == FAILED and made.drawn is not None:
            self.returns.append((seq, made.drawn))

    def _outcome(self, record: Record, line: int) -> None:
        executions, took, seq = self.executions, record.get("took"), size(record, "seq")
        known = self._known(seq)
        if executions is not None and isinstance(took, dict):
            executions.settle(executions.told_took(took, line), known.outcome == DONE)
        answers = record.get("answers")
        entries = answers.values() if isinstance(answers, dict) else ()
        lacks = any(isinstance(one, dict) and "unknown" in one for one in entries)
        unforeseen = lacks or "unforeseen" in record
        self.session.settle(seq, known.outcome, known.answers, unforeseen)
        self.returned(seq)

    def _leave_unknown(self, seq: int) -> None:
        """A call under way has no outcome: it took all expected amounts."""
        executions = self.executions
        if executions is not None and executions.pending is not None:
            executions.settle(executions.pending.choice.reserved, False)
        self.session.leave_unknown(seq)

    def unknown(self, seq: int) -> Made | None:
        """The call of that number, if its outcome is unknown and it is not under way."""
        made = self.session.made
        if not 1 <= seq <= len(made) or made[seq - 1].call.outcome != LOST:
            return None
        return made[seq - 1]
