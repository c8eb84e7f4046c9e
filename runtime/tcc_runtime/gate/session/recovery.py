"""Recovery of a session from its ledger: the validator checks each record, then it is applied.

The validator's own steps (:mod:`tcc_certs.session.validation`) check each record, with the key.  So
a gate never continues the ledger of another artifact or key, nor one with a record that its key did
not write.  Records that other processes write meanwhile are read in the same way.  Only whole
records are read: :mod:`tcc_runtime.gate.journal.ledger_file` cuts off a torn last line.  Text:
docs/gate.md; docs/spec/session.md, sections 3 to 5.  Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json, blake
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST
from tcc_certs.session.approvals import asked_of
from tcc_certs.session.carried import Reading
from tcc_certs.session.records import MAC
from tcc_certs.session.validation import SessionReplay
from tcc_certs.values.places import State
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.asking.questions import Pending, argument_texts
from tcc_runtime.gate.budget import Budget, ModelCalls, asked_in, budget_in
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.session import Session, records
from tcc_runtime.gate.session.made import Made
from tcc_runtime.gate.session.values import Values


class Carried(NamedTuple):
    """A session that began under another artifact.

    Attributes:
        target: the first record of the file in which this artifact begins to decide.
        earlier: returns the artifact of earlier files by its digest, hex; None if unknown.
    """

    target: Record
    earlier: Callable[[str], Reading | None]


class Follower:
    """Applies records to a session.

    Args:
        carried: set if earlier files of the ledger have another artifact.

    Attributes:
        session: the session after all records so far.
        refs: the numbers of calls by the keyed digests of their callers' ids.
        shown: the fields whose values are shown.
        writer, values: render new records of the session, and their values.
        key: the key of the session.
        session_id: the id in the first record.
        first: the first record of the files of this artifact, without MAC and `continues`; the next
            file begins with it.
        principal: the principal of the session, hex; None: the session has none.
        parent: the id of the parent of a delegated session.
        shadow: whether refused calls are made.
        given: the entries of the attributes that the session started with.
        executions: the calls that models make; None without a budget.
        account: the id of the account that counted calls of the session; None: none so far.
        returns: numbers and attempts of calls that had no effect, which the account still counts.
    """

    def __init__(
        self,
        policy: Policy,
        key: bytes,
        *,
        in_memory: bool = False,
        carried: Carried | None = None,
    ) -> None:
        self.session = Session(policy)
        self._carried = carried
        self._in_memory = in_memory
        self.refs: dict[str, int] = {}
        self.shown: tuple[str, ...] = ()
        self.writer = records.Writer(key, "")
        self.values = Values(policy, key, frozenset(), None)
        self._policy = policy
        self.key = key
        self.session_id = ""
        self.first: Mapping[str, Json] = {}
        self.principal: str | None = None
        self.parent: str | None = None
        self.shadow = False
        self.given: Mapping[str, Json] = {}
        self.executions: ModelCalls | None = None
        self.account: str | None = None
        self.returns: list[tuple[int, int]] = []
        self._replay: SessionReplay | None = None

    def open(
        self, record: Mapping[str, Json], given: Mapping[str, State] = MappingProxyType({})
    ) -> None:
        """Begin the session with its first record.

        Args:
            given: the states of its attributes, if the session is in memory.  Otherwise the record
                has them.
        """
        first = record if self._carried is None else self._carried.target
        self.first = {name: one for name, one in first.items() if name not in (MAC, "continues")}
        arguments = record["arguments"]
        names = arguments["show"] if isinstance(arguments, dict) else None
        self.shown = tuple(map(str, names if isinstance(names, list) else []))
        self.session_id = text(record, "session_id")
        found, constants = record.get("given"), record.get("constants")
        self.given = found if isinstance(found, dict) else {}
        self.writer = records.Writer(self.key, self.session_id)
        shown = frozenset([self._policy.open_fields[name] for name in self.shown])
        listed = list(map(str, constants)) if isinstance(constants, list) else []
        in_memory = self._in_memory
        self.values = Values(self._policy, self.key, shown, None if in_memory else listed)
        states = given if in_memory else self.values.given_in(self.given)
        self.values.keep()
        self.session.open(self.session_id, size(record, "started_ms"), states)

    def begin_budget(self, budget: Budget) -> None:
        """Begin a budget: from now on models make calls."""
        self.executions = ModelCalls(self._policy.core, budget, self.session_id)

    def apply(self, news: News) -> None:
        """Check a record, and apply it unless this session wrote it.

        Raises:
            ResumeError: the validator has a finding about the record.
            Rejected: the record is no canonical line.
        """
        record, line = self._checked(news)
        if not news.own:
            self._bring(record, line)

    def _checked(self, news: News) -> tuple[Record, int]:
        """Return the record after checking it, and its number."""
        if self._replay is None:
            self._replay = replay_of(self._policy, self.key, self._carried)
        replay, record, before = self._replay, news.record, self._replay.line
        try:
            record = replay.step(news.record, news.previous, news.body)
        except Rejected as refusal:
            if replay.line == before:  # the line is not canonical JSON
                raise
            replay.findings.refuse(refusal, replay.line)
        for finding in replay.findings.items:
            place = f"line {finding.line}: {finding.field}: {finding.code.value}"
            raise ResumeError(place, finding.expected, finding.found)
        if replay.rolled:
            replay.roll(blake(news.previous + news.body))
        return record, replay.line

    def _bring(self, record: Record, line: int) -> None:
        session, kind = self.session, record["kind"]
        if kind == "call":
            self._call(record, line)
        elif kind == "outcome":
            self._outcome(record, line)
        elif kind == "session" and not self.session_id:
            self._begin(record)
        elif kind == "resolve":
            seq = size(record, "seq")
            failed = ANSWERED if "answered" in record else FAILED
            outcome = DONE if record["outcome"] == DONE else failed
            session.resolve(seq, outcome, self._answers(seq, record))
            self.returned(seq)
        elif kind == "budget":
            self.begin_budget(budget_in(record, line))
        elif kind == "asked" and self.executions is not None:
            self.executions.asked(*asked_in(record, line))
        elif kind == "ask":
            self.ask(record)
        elif kind == "approval":
            at_ms = size(record, "at_ms")
            session.questions.decide(text(record, "id"), text(record, "verdict"), at_ms)
        elif kind == "end":
            session.ended = True
        session.note_time(record.get("at_ms"))
        self.values.keep()

    def _begin(self, record: Record) -> None:
        self.open(record)
        if "principal" in record:
            self.principal = text(record, "principal")
        if "parent" in record:
            self.parent = text(record, "parent")
        self.shadow = "shadow" in record

    def _answers(self, seq: int, record: Record) -> Mapping[str, State]:
        if record["outcome"] != DONE:
            return {}
        tool = self._policy.core.tools[self.session.made.of(seq).offer.tool]
        return self.values.answers_in(tool, record)

    def _call(self, record: Record, line: int) -> None:
        offer = self._policy.machine.offer(text(record, "call"))
        if offer is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        found, at_ms = record["open"], record.get("at_ms")
        opened = found if isinstance(found, dict) else {}
        states = self.values.call_in(offer, opened)
        tool = self._policy.core.tools[offer.tool].name
        call = self.session.course.call(tool, states, at_ms if isinstance(at_ms, int) else 0)
        ids = record.get("approvals")
        made = self.session.begin(
            call, offer, line=line, opened=opened, has_ref="ref" in record,
            approvals=list(map(str, ids)) if isinstance(ids, list) else [],
        )  # fmt: skip
        executions, execute = self.executions, record.get("execute")
        if executions is not None and isinstance(execute, dict):
            execution = executions.told(offer.tool, execute, line)
            executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[text(record, "ref")] = len(self.session.made)
        self.drew(made, record.get("across"))

    def ask(self, record: Mapping[str, Json]) -> Pending:
        """Add the question of an `ask` record; return it as callers see it."""
        machine, tool, call = self._policy.machine, text(record, "tool"), text(record, "call")
        offer, found = machine.offer(call), record["open"]
        if offer is None:
            raise ResumeError("call", "a call of the grammar", call)
        opened = found if isinstance(found, dict) else {}
        table = self._policy.tables.numbered(offer.tool)
        names = [one.name for one in table.tool.arguments]
        texts, hidden = argument_texts(names, table.allowed(offer).arguments, opened)
        return self.session.questions.ask(record, asked_of(tool, call, opened), texts, hidden)

    def drew(self, made: Made, across: object) -> None:
        """Note the member `across` of a call's record: an account counted the call."""
        if isinstance(across, dict):
            made.drawn, self.account = across["attempt"], str(across["account"])

    def returned(self, seq: int) -> None:
        """Note that the outcome of a call is known: if it had no effect, the account has to give
        its draws back.
        """
        made = self.session.made.of(seq)
        if made.call.outcome == FAILED and made.drawn is not None:
            self.returns.append((seq, made.drawn))

    def _outcome(self, record: Record, line: int) -> None:
        executions, took, seq = self.executions, record.get("took"), size(record, "seq")
        outcome = text(record, "outcome")
        if executions is not None and isinstance(took, dict):
            executions.settle(executions.told_took(took, line), outcome == DONE)
        answers = record.get("answers")
        entries = answers.values() if isinstance(answers, dict) else ()
        lacks = any(isinstance(one, dict) and "unknown" in one for one in entries)
        unforeseen = lacks or "unforeseen" in record
        if outcome == FAILED and "answered" in record:
            outcome = ANSWERED
        self.session.settle(seq, outcome, self._answers(seq, record), unforeseen)
        self.returned(seq)

    def unknown(self, seq: int) -> Made | None:
        """Return the call `seq` if its outcome is unknown and it is not under way; else None."""
        made = self.session.made.get(seq)
        return None if made is None or made.call.outcome != LOST else made


def replay_of(policy: Policy, key: bytes, carried: Carried | None) -> SessionReplay:
    """Return the validator's replay of a session, which uses the gate's fast decider."""
    if carried is None:
        return SessionReplay(policy.checked, policy.machine, key, policy.statements)
    return SessionReplay(
        policy.checked, policy.machine, key, policy.statements,
        target=carried.target, earlier=carried.earlier,
    )  # fmt: skip


def reading_of(policy: Policy) -> Reading:
    """Return the parts of a policy that are needed to read records of its sessions."""
    return Reading(policy.machine, policy.uses)
