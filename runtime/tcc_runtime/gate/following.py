"""A session brought to where its ledger is.

Each record is held to what follows by the validator's own steps (:mod:`tcc_certs.session`), with
the key; the gate's session is brought along from what they accept.  So what is taken up is exactly
what has no finding: a ledger of another artifact, another key or another course, or with a record
of somebody without the key, is never gone on with.
Text: docs/gate.md; docs/spec/session.md.
Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.session.records import SCHEMA
from tcc_certs.session.validation import Replay
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget, budget_in
from tcc_runtime.gate.executions import Executions, asked_in
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.monitors import Seen, amount
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.records import Writer, opened_of
from tcc_runtime.gate.session import Made, Outcome, Session
from tcc_runtime.gate.tools import Asked, Group, Indices, ToolTable


class Follower:
    """Applies records to a session.

    Attributes:
        session: where it is.
        refs: what stands for the ids that callers gave, with the numbers of their calls.
        shown: the open parameters whose values are shown.
        writer: of the records that this session writes.
        key: of its digests.
        session_id: of its first record.
        executions: the calls that models make; None where no budget says who.
    """

    def __init__(self, policy: Policy, key: bytes) -> None:
        self.session = Session(policy)
        self.refs: dict[str, int] = {}
        self.shown: tuple[str, ...] = ()
        self.writer = Writer(key, (), "")
        self._policy = policy
        self.key = key
        self.session_id = ""
        self.executions: Executions | None = None
        self._replay: Replay | None = None

    def open(self, shown: tuple[str, ...], session_id: str) -> None:
        """The session shows these open parameters, and has this name."""
        self.shown, self.session_id = shown, session_id
        self.writer = Writer(self.key, shown, session_id)

    def begin_budget(self, budget: Budget) -> None:
        """From here on models make calls."""
        self.executions = Executions(self._policy.core, budget, self.session_id)

    def apply(self, news: News) -> None:
        """Follow one record; the session knows of one's own already.

        Raises:
            ResumeError: it is not what follows in this session.
        """
        line = self._hold(news)
        if not news.own:
            self._bring(news.record, line)

    def _hold(self, news: News) -> int:
        """The number of a record that has no finding."""
        if self._replay is None:
            self._replay = Replay(*self._policy.shown(), self.key)
        replay = self._replay
        try:
            replay.step(news.record, news.previous)
        except Rejected as refusal:
            replay.findings.refuse(refusal, replay.line)
        for finding in replay.findings.items:
            place = f"line {finding.line}: {finding.field}: {finding.code.value}"
            raise ResumeError(place, finding.expected, finding.found)
        if replay.session is not None and not replay.session.header.macs:
            found = text(news.record, "schema")
            raise ResumeError("line 1: schema", f"{SCHEMA}, whose records have MACs", found)
        return replay.line

    def _bring(self, record: Record, line: int) -> None:
        session, kind = self.session, record["kind"]
        if kind == "session":
            arguments = record["arguments"]
            names = arguments["show"] if isinstance(arguments, dict) else None
            shown = names if isinstance(names, list) else []
            self.open(tuple(map(str, shown)), text(record, "session_id"))
        elif kind == "call":
            self._call(record, line)
        elif kind == "outcome":
            self._outcome(record, line)
        elif kind == "resolve":
            made = session.made[size(record, "seq") - 1]
            if session.under_way and made is session.made[-1]:
                self._leave_unknown()
            session.resolve(size(record, "seq"), _outcome_of(record), self._observed(made, record))
        elif kind == "budget":
            self.begin_budget(budget_in(record, line))
        elif kind == "asked" and self.executions is not None:
            self.executions.asked(*asked_in(record, line))
        elif kind == "end":
            session.ended = True

    def _call(self, record: Record, line: int) -> None:
        group = self._policy.by_text(text(record, "call"))
        if group is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        seen = self._seen(group, opened_of(record), line)
        made = self.session.begin(group, seen)
        made.opened = opened_of(record)
        executions, execute = self.executions, record.get("execute")
        if executions is not None and isinstance(execute, dict):
            execution = executions.told(group.tool, execute, line)
            executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[text(record, "ref")] = len(self.session.made)

    def _seen(self, group: Group, opened: Mapping[str, Json], line: int) -> Seen | None:
        monitors, table = self._policy.monitors, self._policy.table(group.tool)
        if group.tool not in monitors.by_tool:
            return None
        values = {}
        for name in monitors.compared[group.tool]:
            listed = listed_value(table, group, name)
            values[name] = (
                bytes.fromhex(_member(opened, name, "digest")) if listed is None else listed
            )
        amounts = {}
        for name in monitors.added.get(group.tool, ()):
            shown = _member(opened, name, "value")
            if not shown:
                place = f"line {line}: open.{name}"
                raise ResumeError(place, "a number that is shown, as it is added up", "a digest")
            amounts[name] = amount(shown)
        return Seen(tool=group.tool, listed=group.listed, values=values, amounts=amounts)

    def _outcome(self, record: Record, line: int) -> None:
        outcome, executions, took = _outcome_of(record), self.executions, record.get("took")
        if executions is not None and isinstance(took, dict):
            executions.settle(executions.told_took(took, line), outcome == "done")
        unforeseen = record.get("unforeseen") is True
        observed = None if unforeseen else self._observed(self.session.made[-1], record)
        self.session.settle(outcome, observed, unforeseen)

    def _observed(self, made: Made, record: Record) -> Indices | None:
        if record["outcome"] != "done":
            return None
        told, params = record.get("observed"), self._policy.table(made.group.tool).observed
        texts = told if isinstance(told, dict) else {}
        return tuple([param.values.index(str(texts[param.name])) for param in params])

    def _leave_unknown(self) -> None:
        """The call under way has no outcome: it took all that was expected."""
        executions = self.executions
        if executions is not None and executions.pending is not None:
            executions.settle(executions.pending.choice.expected, False)
        self.session.settle("unknown", None, False)

    def unknown(self, seq: int) -> Made | None:
        """The call of that number, if its outcome is unknown and it is not under way."""
        made = self.session.made
        if not 1 <= seq <= len(made) - self.session.under_way:
            return None
        return made[seq - 1] if made[seq - 1].outcome == "unknown" else None


def _outcome_of(record: Record) -> Outcome:
    outcome = record["outcome"]
    return "done" if outcome == "done" else "failed" if outcome == "failed" else "unknown"


def _member(opened: Mapping[str, Json], name: str, member: str) -> str:
    item = opened.get(name)
    found = item.get(member) if isinstance(item, dict) else None
    return found if isinstance(found, str) else ""


def listed_value(table: ToolTable, group: Group, name: str) -> bytes | None:
    """What stands for a listed argument where monitors compare it; None of another one."""
    for param, at in zip(table.listed, group.listed, strict=True):
        if param.name == name:
            return param.values[at].encode()
    return None


def seen_of(policy: Policy, writer: Writer, asked: Asked) -> Seen | None:
    """What monitors may know of a call that is asked for; None where none names its tool."""
    tool, monitors = asked.group.tool, policy.monitors
    if tool not in monitors.by_tool:
        return None
    compared, added = monitors.compared[tool], monitors.added.get(tool, ())
    values: dict[str, bytes] = {}
    amounts: dict[str, int] = {}
    for given in asked.opened:
        if given[0] in compared:
            values[given[0]] = writer.digest(given)
        if given[0] in added:
            amounts[given[0]] = amount(given[2].decode())
    for name in compared - values.keys():
        values[name] = listed_value(asked.table, asked.group, name) or b""
    return Seen(tool=tool, listed=asked.group.listed, values=values, amounts=amounts)
