"""A session brought to where its ledger is, each record held to what the session would write.

Text: docs/gate.md.  A ledger of another artifact, another key or another course
is never gone on with.
Cost: linear in the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.session.records import check_record
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget, budget_in
from tcc_runtime.gate.executions import Execution, Executions, asked_in
from tcc_runtime.gate.monitors import Seen, amount
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.records import Writer, opened_of, session_record
from tcc_runtime.gate.session import Made, Outcome, Session
from tcc_runtime.gate.tools import Asked, Group, Indices, ToolTable

_Kind = TypeVar("_Kind", str, int, bool, "dict[str, Json]")
_OUTCOMES: Final[Mapping[str, Outcome]] = {"done": "done", "failed": "failed", "unknown": "unknown"}


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
        self._line = 0

    def open(self, shown: tuple[str, ...], session_id: str) -> None:
        """The session shows these open parameters, and has this name."""
        self.shown, self.session_id = shown, session_id
        self.writer = Writer(self.key, shown, session_id)

    def begin_budget(self, budget: Budget) -> None:
        """From here on models make calls."""
        self.executions = Executions(self._policy.core, budget, self.session_id)

    def apply(self, record: Record, line: int) -> None:
        """Follow one record.

        Raises:
            ResumeError: it is not what follows in this session.
            Rejected: L103 it is no record of a session.
        """
        self._line = line
        kind = check_record(record, line)
        if line == 1:
            self._session(record)
        elif self.session.ended:
            raise self._error("kind", "the end of the ledger", kind)
        elif kind == "call":
            self._call(record)
        elif kind == "outcome":
            self._outcome(record)
        elif kind == "resolve":
            self._resolve(record)
        elif kind == "budget":
            self._budget(record)
        elif kind == "asked":
            self._asked(record)
        elif kind == "end":
            self._end(record)
        elif kind == "session":
            raise self._error("kind", "a record that follows", kind)

    def _session(self, record: Record) -> None:
        arguments = self._read(record, "arguments", dict)
        shown = arguments.get("show")
        if not isinstance(shown, list):
            raise self._error("arguments", "a list of what is shown", arguments)
        self.open(tuple(str(name) for name in shown), self._read(record, "session_id", str))
        started = self._read(record, "started_ms", int)
        if not 0 <= started < 1 << 48:
            raise self._error("started_ms", "0 .. 2^48 - 1", started)
        nonce = self._read(record, "nonce", str)
        expected = session_record(self._policy, self.key, started, nonce, self.shown)
        for name in sorted({*expected, *record}):
            if expected.get(name) != record.get(name):
                raise self._error(name, expected.get(name), record.get(name))

    def _call(self, record: Record) -> None:
        session = self.session
        self._require("seq", len(session.made) + 1, record)
        if session.under_way:
            raise self._error("kind", "the outcome of the call before", "call")
        text = self._read(record, "call", str)
        group = self._policy.by_text(text)
        if group is None:
            raise self._error("call", "a call of the grammar", text)
        self._require("states", session.states(), record)
        self._require("key", self.writer.call_key(len(session.made) + 1), record)
        seen = self._seen(group, self._read(record, "open", dict))
        refused = session.refusal(group, seen)
        if refused is not None:
            raise self._error("call", "a call that is allowed", f"{refused[0].value} {text}")
        execution = self._execution(group.tool, record)
        made = session.begin(group, seen)
        made.opened = opened_of(record)
        if self.executions is not None and execution is not None:
            self.executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[self._read(record, "ref", str)] = len(session.made)

    def _execution(self, tool: int, record: Record) -> Execution | None:
        """Who makes a call of a tool, as its record says."""
        executions = self.executions
        makes = executions is not None and executions.makes(tool)
        if makes != ("execute" in record):
            due = "the model that makes it" if makes else "no model"
            raise self._error("execute", due, record.get("execute"))
        if executions is None or not makes:
            return None
        return executions.told(tool, self._read(record, "execute", dict), self._line)

    def _budget(self, record: Record) -> None:
        if self.executions is not None or self.session.under_way:
            raise self._error("kind", "one budget, with no call under way", "budget")
        self.begin_budget(budget_in(record, self._line))

    def _asked(self, record: Record) -> None:
        executions = self.executions
        if executions is None or self.session.under_way:
            raise self._error("kind", "a budget before, and no call under way", "asked")
        took, atoms = asked_in(record, self._line)
        due = executions.asked_record(took, atoms)
        if due != record:
            raise self._error("asked", due, record)
        executions.asked(took, atoms)

    def _seen(self, group: Group, opened: Mapping[str, Json]) -> Seen | None:
        monitors, table = self._policy.monitors, self._policy.table(group.tool)
        if group.tool not in monitors.by_tool:
            return None
        values: dict[str, bytes] = {}
        for name in monitors.compared[group.tool]:
            values[name] = listed_value(table, group, name) or self._digest(opened, name)
        names = monitors.added.get(group.tool, ())
        amounts = {name: self._amount(opened, name) for name in names}
        return Seen(tool=group.tool, listed=group.listed, values=values, amounts=amounts)

    def _digest(self, opened: Mapping[str, Json], name: str) -> bytes:
        item = opened.get(name)
        found = item.get("digest") if isinstance(item, dict) else None
        if not isinstance(found, str):
            raise self._error(f"open.{name}", "a digest", found)
        return bytes.fromhex(found)

    def _amount(self, opened: Mapping[str, Json], name: str) -> int:
        item = opened.get(name)
        if not isinstance(item, dict) or item.get("type") != "n":
            raise self._error(f"open.{name}", "a number that is shown", item)
        text = self._read(item, "value", str)
        if self.writer.digest((name, b"n", text.encode())) != self._digest(opened, name):
            raise self._error(f"open.{name}", "the value of its digest", text)
        return amount(text)

    def _outcome(self, record: Record) -> None:
        session = self.session
        self._require("seq", len(session.made), record)
        if not session.under_way:
            raise self._error("kind", "a call", "outcome")
        outcome = _OUTCOMES.get(self._read(record, "outcome", str))
        if outcome is None:
            raise self._error("outcome", "done, failed or unknown", record["outcome"])
        table = self._policy.table(session.made[-1].group.tool)
        unforeseen = record.get("unforeseen") is True
        observed = None
        if outcome == "done" and not unforeseen:
            observed = self._observed(table, record)
        executions = self.executions
        if executions is not None and executions.pending is not None:
            took = executions.told_took(self._read(record, "took", dict), self._line)
            executions.settle(took, outcome == "done")
        elif "took" in record:
            raise self._error("took", "no field: no model made this call", record["took"])
        session.settle(outcome, observed, unforeseen)

    def _observed(self, table: ToolTable, record: Record) -> Indices:
        told = record.get("observed", {})
        found = []
        for param in table.observed:
            text = told.get(param.name) if isinstance(told, dict) else None
            if text not in param.values:
                raise self._error(f"observed.{param.name}", "one of its values", text)
            found.append(param.values.index(str(text)))
        return tuple(found)

    def _resolve(self, record: Record) -> None:
        session = self.session
        made = self.unknown(self._read(record, "seq", int))
        outcome = _OUTCOMES.get(self._read(record, "outcome", str))
        if made is None or outcome is None or outcome == "unknown":
            raise self._error("seq", "a call whose outcome is unknown", record["seq"])
        table = self._policy.table(made.group.tool)
        session.resolve(made, outcome, self._observed(table, record) if outcome == "done" else None)

    def unknown(self, seq: int) -> Made | None:
        """The call of that number, if its outcome is unknown and it is not under way."""
        made = self.session.made
        if not 1 <= seq <= len(made) - self.session.under_way:
            return None
        return made[seq - 1] if made[seq - 1].outcome == "unknown" else None

    def _end(self, record: Record) -> None:
        abandoned = self._read(record, "abandoned", bool)
        if not abandoned and not self.session.may_finish():
            raise self._error("abandoned", True, False)
        self.session.ended = True

    def _require(self, name: str, expected: Json, record: Record) -> None:
        if record.get(name) != expected:
            raise self._error(name, expected, record.get(name))

    def _read(self, record: Mapping[str, Json], name: str, kind: type[_Kind]) -> _Kind:
        value = record.get(name)
        if type(value) is not kind:
            raise self._error(name, kind.__name__, value)
        return value

    def _error(self, name: str, expected: object, found: object) -> ResumeError:
        return ResumeError(f"line {self._line}: {name}", expected, found)


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
