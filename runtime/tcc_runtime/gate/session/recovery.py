"""Recovery of a session from its ledger: each record is held to what follows, and then applied.

A record is held to it by the validator's own steps (:mod:`tcc_certs.session.validation`), with the
key: what is reopened is exactly what has no finding, so a ledger of another artifact, another key
or another course, or with a record of somebody without the key, is never gone on with.  The session
that is reopened goes on by the validator's own course.  What other processes write while it goes on
is applied in the same way.  Whole records only: a torn last line is cut off where the file is read
(:mod:`tcc_runtime.gate.journal.ledger_file`).
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: linear in the records; most are held to the bytes that they have to have (expected.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.session.machine import Observed, Offer, Outcome
from tcc_certs.session.monitors.digested import Reading
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import SCHEMA
from tcc_certs.session.validation import SessionReplay
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget, ModelCalls, asked_in, budget_in
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.session import Made, Session, records
from tcc_runtime.gate.session.expected import OUTCOME, ExpectedRecords, WrittenHere


class Follower:
    """Applies records to a session.

    Attributes:
        session: where it is.
        refs: what stands for the ids that callers gave, with the numbers of their calls.
        shown: the open parameters whose values are shown.
        writer: of the records that this session writes.
        key: of its digests.
        session_id: of its first record.
        principal: whose session it is, hex; None: nobody's in particular.
        parent: the id of the session that its calls are calls of, too; None: there is none.
        shadow: whether calls that are refused are made.
        given: what the session was given, as its first record has it.
        executions: the calls that models make; None where no budget says who.
        account: that its calls are counted in across sessions; None: none was, so far.
        returns: calls that were, and are known to have had no effect: that is to be told.
    """

    def __init__(self, policy: Policy, key: bytes) -> None:
        self.session = Session(policy)
        self.refs: dict[str, int] = {}
        self.shown: tuple[str, ...] = ()
        self.writer = records.Writer(policy, key, (), "")
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
        self._expected: ExpectedRecords | None = None  # of a session that was reopened

    def open(self, shown: tuple[str, ...], record: Mapping[str, Json]) -> None:
        """The session shows these open parameters, and has this first record."""
        self.shown, self.session_id = shown, text(record, "session_id")
        given = record.get("given")
        self.given = given if isinstance(given, dict) else {}
        reading: Reading | None = None
        statements, constants = self._policy.machine.statements, record.get("constants")
        if statements is not None:
            texts = constants if isinstance(constants, list) else []
            digests = [bytes.fromhex(str(one)) for one in texts]
            reading = Reading(statements.ledger, digests)
        self.session.open(self.session_id, size(record, "started_ms"), self.given, reading)
        self.writer = records.Writer(self._policy, self.key, shown, self.session_id)

    def begin_budget(self, budget: Budget) -> None:
        """From here on models make calls."""
        self.executions = ModelCalls(self._policy.core, budget, self.session_id)

    def apply(self, news: News) -> None:
        """Follow one record; the session knows of one's own already.

        Raises:
            ResumeError: it is not what follows in this session.
        """
        record, line = self._hold(news)
        if not news.own:
            self.session.follows = self._expected is not None
            self._bring(record, line)
            self.session.follows = False

    def _hold(self, news: News) -> tuple[Record, int]:
        """A record that has no finding, and its number."""
        if self._replay is None:
            self._replay = SessionReplay(self._policy.checked(), self._policy.machine, self.key)
        replay, record, before = self._replay, news.record, self._replay.line
        try:
            record = self._step(replay, news)
        except Rejected as refusal:
            if replay.line == before:  # it is no canonical line
                raise
            replay.findings.refuse(refusal, replay.line)
        for finding in replay.findings.items:
            place = f"line {finding.line}: {finding.field}: {finding.code.value}"
            raise ResumeError(place, finding.expected, finding.found)
        if replay.session is not None and not replay.session.header.macs:
            found = text(record, "schema")
            raise ResumeError("line 1: schema", f"{SCHEMA}, whose records have MACs", found)
        return record, replay.line

    def _step(self, replay: SessionReplay, news: News) -> Record:
        replayed = replay.session
        if not news.own or self._expected is None or replayed is None:
            return replay.step(news.record, news.previous, news.body)
        course, replayed.course = replayed.course, WrittenHere(news.record.get("states"))
        try:
            return replay.step(news.record, news.previous, news.body)
        finally:
            replayed.course = course

    def passes(self, body: bytes, previous: bytes, line: int) -> bool:
        """Whether a record of others has the bytes that follow in this session; then it goes on.

        Args:
            body: of record number `line`; previous: the hash of the record before it.
        """
        expected, session, replay = self._expected, self.session, self._replay
        if expected is None or replay is None:
            return False
        session.follows = True
        told = expected.outcome(body, previous) if body.startswith(OUTCOME) else None
        made = None if told is not None else expected.call(body, previous, line)
        if told is not None:
            session.settle("done", told[1], False, seq=told[0])
        elif made is not None:
            offer, seen, opened = made
            session.begin(offer, seen, line=line, opened=opened)
        session.follows = False
        passed = told is not None or made is not None
        replay.line += passed
        return passed

    def _bring(self, record: Record, line: int) -> None:
        session, kind = self.session, record["kind"]
        if kind == "call":
            self._call(record, line)
        elif kind == "outcome":
            self._outcome(record, line)
        elif kind == "session":
            arguments = record["arguments"]
            names = arguments["show"] if isinstance(arguments, dict) else None
            shown = names if isinstance(names, list) else []
            self.open(tuple(map(str, shown)), record)
            if "principal" in record:
                self.principal = text(record, "principal")
            if "parent" in record:
                self.parent = text(record, "parent")
            self.shadow = "shadow" in record
            self._share()
        elif kind == "resolve":
            made = session.made[size(record, "seq") - 1]
            if size(record, "seq") in session.under_way:
                self._leave_unknown(size(record, "seq"))
            told = session.answered(made.offer, records.answers_of(record))
            observed = self._observed(made, record)
            session.resolve(size(record, "seq"), _outcome_of(record), observed, told)
            self.returned(size(record, "seq"))
        elif kind == "budget":
            self.begin_budget(budget_in(record, line))
        elif kind == "asked" and self.executions is not None:
            self.executions.asked(*asked_in(record, line))
        elif kind == "end":
            session.ended = True

    def _share(self) -> None:
        """One course from here on, of the validator's session and of this one, which begins.

        Where calls draw on an account there are two: what they draw is told by the attributes that
        the session had then.
        """
        replayed = None if self._replay is None else self._replay.session
        if replayed is not None and replayed.across is None:
            session = self.session
            session.course, session.reading = replayed.course, replayed.arguments.reading
            self._expected = ExpectedRecords(replayed, self.key)

    def _call(self, record: Record, line: int) -> None:
        offer = self._policy.machine.offer(text(record, "call"))
        if offer is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        opened = records.opened_of(record)
        seen = self._seen(offer, opened, line)
        states, at_ms = self.session.fields(offer, opened), record.get("at_ms")
        stamp = at_ms if isinstance(at_ms, int) else 0
        made = self.session.begin(offer, seen, states, line, stamp, opened)
        executions, execute = self.executions, record.get("execute")
        if executions is not None and isinstance(execute, dict):
            execution = executions.told(offer.tool, execute, line)
            executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[text(record, "ref")] = len(self.session.made)
        self.drew(made, record.get("across"))

    def drew(self, made: Made, across: object) -> None:
        """What a call drew of limits across sessions, as its record has it."""
        if isinstance(across, dict):
            made.drawn, self.account = across["attempt"], str(across["account"])

    def returned(self, seq: int, read: bool = False) -> None:
        """The outcome of a call is known: where it had no effect, it counts no more."""
        made = self.session.made[seq - 1]
        if made.outcome == "failed" and not read and made.drawn is not None:
            self.returns.append((seq, made.drawn))

    def _seen(self, offer: Offer, opened: Mapping[str, Json], line: int) -> Sequence[Seen]:
        monitors = self._policy.machine.monitors
        for name in monitors.added.get(offer.tool, ()):
            if not member(opened, name, "value"):
                place = f"line {line}: open.{name}"
                raise ResumeError(place, "a number that is shown, as it is added up", "a digest")
        return monitors.read(offer.tool, offer.values, opened)

    def _outcome(self, record: Record, line: int) -> None:
        outcome, executions, took = _outcome_of(record), self.executions, record.get("took")
        if executions is not None and isinstance(took, dict):
            executions.settle(executions.told_took(took, line), outcome == "done")
        seq = size(record, "seq")
        made, answers = self.session.made[seq - 1], records.answers_of(record)
        observed = self._observed(made, record)
        unforeseen = "unforeseen" in record or (bool(answers) and records.lacks_one(answers))
        read = record.get("answered") is True
        told = self.session.answered(made.offer, answers)
        self.session.settle(outcome, observed, unforeseen, read=read, seq=seq, told=told)
        if outcome == "failed":
            self.returned(seq, read)

    def _observed(self, made: Made, record: Record) -> Observed | None:
        if record["outcome"] != "done":
            return None
        params = self._policy.tables.numbered(made.offer.tool).observed
        if not params:
            return ()
        told = record.get("observed")
        texts = told if isinstance(told, dict) else {}
        return tuple(
            [
                param.values.index(str(texts[param.name])) if param.name in texts else None
                for param in params
            ]
        )

    def _leave_unknown(self, seq: int) -> None:
        """A call under way has no outcome: it took all that was expected."""
        executions = self.executions
        if executions is not None and executions.pending is not None:
            executions.settle(executions.pending.choice.reserved, False)
        self.session.settle("unknown", None, False, seq=seq)

    def unknown(self, seq: int) -> Made | None:
        """The call of that number, if its outcome is unknown and it is not under way."""
        made = self.session.made
        if not 1 <= seq <= len(made) or seq in self.session.under_way:
            return None
        return made[seq - 1] if made[seq - 1].outcome == "unknown" else None


def _outcome_of(record: Record) -> Outcome:
    outcome = record["outcome"]
    return "done" if outcome == "done" else "failed" if outcome == "failed" else "unknown"


def member(opened: Mapping[str, Json], name: str, part: str) -> str:
    """A member of what a record has of a value; empty where it has none."""
    item = opened.get(name)
    found = item.get(part) if isinstance(item, dict) else None
    return found if isinstance(found, str) else ""
