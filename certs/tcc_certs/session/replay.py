"""The replay of a session: record after record, a rule for each kind.

Normative text: docs/spec/session.md, sections 3, 4 and 8.  A field that has another value than the
one that follows is a finding, and the replay goes on; a call or an end that is not allowed ends it,
as nothing after it can be judged.  What a record says of the world, its outcome and what was
answered, is taken as it is said.  A session without a budget has none of the controller of models
to trust, nor to load.
Cost: the steps of the course, and one look at each field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.replay.findings import Findings
from tcc_certs.session import records
from tcc_certs.session.machine import Course, Observed, Offer, Outcome, SessionMachine
from tcc_certs.session.values import Arguments, answer_of
from tcc_certs.values.canonical import CallKeys

if TYPE_CHECKING:
    from tcc_certs.core.across import DrawRecords
    from tcc_certs.session.executions import Executions
    from tcc_certs.values.places import State

# Who makes the calls.


class Makers:
    """The models of one session.

    Attributes:
        executions: the calls that they make; None before a budget.
    """

    def __init__(self, core: Core, session: str, findings: Findings) -> None:
        self.executions: Executions | None = None
        self._core, self._session, self._findings = core, session, findings

    def budget(self, record: Record, under_way: bool) -> None:
        """What models that make calls may take from here on; no call is under way."""
        ensure(not under_way, Code.LEDGER_ORDER, "kind", "the outcome of a call", "budget")
        ensure(self.executions is None, Code.SESSION_BUDGET, "kind", "one budget", "a second")
        from tcc_certs.session.executions import Executions, read_budget

        budget = read_budget(record, self._core, self._session)
        self.executions = Executions(budget, self._core.tools, self._findings)

    def asked(self, record: Record, line: int, under_way: bool) -> None:
        """What the asks of a search took; no call is under way."""
        ensure(not under_way, Code.LEDGER_ORDER, "kind", "the outcome of a call", "asked")
        if self.executions is None:
            raise Rejected(Code.SESSION_BUDGET, "kind", "a budget before", "asked")
        self.executions.asked(record, line)

    def makes(self, tool: int) -> bool:
        """Whether a model makes the calls of a tool."""
        return self.executions is not None and self.executions.makes(tool)

    def call(self, tool: int, record: Record, line: int) -> None:
        """A call of a tool that is allowed."""
        found = record.get("execute")
        if self.executions is not None:
            self.executions.call(tool, found, line)
        else:
            ensure(found is None, Code.SESSION_MODEL, "execute", "no field, without budget", found)

    def outcome(self, record: Record, line: int) -> None:
        """The outcome of the last call."""
        found = record.get("took")
        if self.executions is not None:
            self.executions.outcome(found, record["outcome"] == "done", line)
        else:
            ensure(found is None, Code.SESSION_MODEL, "took", "no field, without budget", found)

    def give_up(self) -> None:
        """The last call has no outcome."""
        if self.executions is not None:
            self.executions.give_up()

    def check_refusal(self, tool: str) -> None:
        """A call of `tool` was refused as no model fits.

        Raises:
            Rejected: S211 no model makes it.
        """
        places = [at for at, one in enumerate(self._core.tools) if one.name == tool]
        makes = self.executions is not None and any(map(self.executions.makes, places))
        ensure(makes, Code.SESSION_REFUSAL, "code", "a code of a call that no model makes", tool)


# The session.

_REFUSED: Mapping[Code, tuple[Code, str, str]] = {
    Code.NOT_PLANNED: (Code.SESSION_PLANS, "call", "a call that leads on from every state held"),
    Code.MONITOR_FORBIDS: (Code.SESSION_MONITOR, "call", "a call that every monitor allows"),
    Code.MANY_EARLIER: (
        Code.SESSION_MONITOR, "call", "a call that no older one than are looked at may forbid",
    ),
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
            read: those of these whose error was read;
            resolved: those whose outcome was said later.
        unforeseen: those that were done, and of whose answer a part is not known.
        shadowed: refusals of calls that were made all the same.
    """

    calls: int = 0
    outcomes: int = 0
    refusals: int = 0
    unknown: int = 0
    failed: int = 0
    resolved: int = 0
    read: int = 0
    unforeseen: int = 0
    shadowed: int = 0


class ReplayedSession:
    """A session between two records.

    Attributes:
        course: the calls that were made, and where they led.
        arguments: what was seen of open arguments.
        open: the calls whose outcome is due, in order: each with the line of its record.
        ended: whether it ended; abandoned: whether where no plan has to end.
        keys: of its calls, as numbers: these take half of the room of their texts.
        makers: who makes the calls.
        across: what they drew of limits across sessions; None: there are none.
    """

    def __init__(
        self, machine: SessionMachine, header: records.SessionHeader, findings: Findings
    ) -> None:
        core = machine.core
        if machine.statements is not None:
            # Without the numbers what the statements order could not be derived again.
            tools, shown = core.tools, header.shown
            missing = sorted(
                records.open_name(tools[tool].name, name)
                for tool, name in machine.statements.shown - shown
            )
            expected = "what statements order or add up, shown"
            ensure(not missing, Code.SESSION_HEADER, "arguments", expected, missing)
        self.core = core
        self.machine = machine
        self.header = header
        self.findings = findings
        self.arguments = Arguments(machine, header)
        self.course = Course(machine, self.arguments.given(), self.arguments.marks)
        self._stamp = header.started_ms
        self.tally = Tally()
        self.open: dict[int, tuple[Offer, int]] = {}
        self.ended = self.abandoned = False
        self.makers = Makers(core, header.name, findings)
        self.across: DrawRecords | None = None
        if machine.statements is not None and machine.statements.across:
            from tcc_certs.core.across import DrawRecords

            self.across = DrawRecords(core)
        self._tools = {tool.name for tool in core.tools}
        self._unknown: dict[int, Offer] = {}
        known = header.key
        self._call_keys = None if known is None else CallKeys(known, header.name)
        self.keys: set[int] = set()
        self._references: set[str] = set()

    @property
    def lost(self) -> bool:
        """Whether an answer came that no plan goes on after."""
        return self.course.lost

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
        seq = self.tally.calls + 1
        self._compare(Code.SESSION_SEQ, line, "seq", seq, record["seq"])
        said = text(record, "call")
        offer = self.machine.offer(said)
        if offer is None:
            raise Rejected(Code.SESSION_CALL, "call", "a call of the artifact", said)
        self._beside(offer.tool, line)
        seen, states = self.arguments.read(offer, record["open"])
        self._compare(Code.SESSION_STATES, line, "states", self._states(), record["states"])
        self._names(record, seq, line)
        stamp = self._time(record)
        refused = self.course.refuses(offer, seen, states, stamp)
        if refused is not None:
            code, field, expected = _REFUSED[refused[0]]
            why = f"{said}, which is against: {refused[1]}" if refused[1] else said
            raise Rejected(code, field, expected, why)
        self.makers.call(offer.tool, record, line)
        statements = self.machine.statements
        if self.across is not None and statements is not None:
            opened = record["open"] if isinstance(record["open"], dict) else {}
            learned, given = self.course.attributes, self.header.given
            drawn = statements.draws(offer.tool, states, learned, opened, given)
            self.across.call(drawn, record)
        else:
            stray = record.get("across")
            ensure(stray is None, Code.SESSION_ACROSS, "across", "no field, without limits", stray)
        self.tally.calls += 1
        self.open[seq] = offer, line
        self.course.begin(seq, offer, seen, states, stamp)

    def _time(self, record: Record) -> int:
        """When a call was decided, where a statement looks at the clock; else 0.

        Raises:
            Rejected: S201 it is not said, or before that of an earlier call or the start; or said
                where none looks.
        """
        statements, found = self.machine.statements, record.get("at_ms")
        if statements is None or not statements.timed:
            ensure(found is None, Code.SESSION_SEQ, "at_ms", "no field, as nothing looks", found)
            return 0
        expected = f"{self._stamp} or later"
        if type(found) is not int or found < self._stamp:
            raise Rejected(Code.SESSION_SEQ, "at_ms", expected, "none" if found is None else found)
        self._stamp = found
        return found

    def _beside(self, tool: int, line: int) -> None:
        """A call of `tool` may begin beside those that are under way.

        Raises:
            Rejected: L104 it does not commute with one, or there are too many, or records behind.
        """
        if not self.open:
            return
        oldest = next(iter(self.open))
        due = f"outcome {oldest}"
        few = len(self.open) < records.MAX_UNDER_WAY
        few = few and line - 1 - self.open[oldest][1] < records.MAX_BEHIND
        ensure(self.header.macs and few, Code.LEDGER_ORDER, "kind", due, "call")
        for seq, (other, _) in self.open.items():
            together = self.machine.commute(tool, other.tool) and not (
                self.makers.makes(tool) or self.makers.makes(other.tool)
            )
            ensure(together, Code.LEDGER_ORDER, "kind", f"outcome {seq}", "call")

    def outcome(self, record: Record, line: int) -> None:
        """The outcome of a call that is under way."""
        if not self.open:
            raise Rejected(Code.LEDGER_ORDER, "kind", "outcome after call", "outcome")
        seq = size(record, "seq")
        if seq not in self.open:
            only = len(self.open) == 1
            expected = f"{next(iter(self.open))}" if only else "a call under way"
            ensure(only, Code.LEDGER_ORDER, "seq", expected, seq)
            self._compare(Code.SESSION_SEQ, line, "seq", next(iter(self.open)), record["seq"])
            seq = next(iter(self.open))
        offer = self.open[seq][0]
        outcome = cast(Outcome, text(record, "outcome"))
        answer = answer_of(self.core, offer, outcome, record)
        told, lacks = self.arguments.told(offer, outcome, record)
        self.tally.unforeseen += lacks or "unforeseen" in record
        done = outcome == "done" or "result" not in record
        ensure(done, Code.SESSION_OUTCOME, "result", "no field", outcome)
        read = "answered" in record
        failing = outcome == "failed" and self.core.tools[offer.tool].errors_failed
        expected = "no field, but of a failed call of a tool whose errors mean failure"
        ensure(failing or not read, Code.SESSION_OUTCOME, "answered", expected, outcome)
        self.makers.outcome(record, line)
        self.tally.outcomes += 1
        self.tally.read += read
        self.settle(seq, offer, outcome, answer, read, told)

    def budget(self, record: Record, line: int) -> None:
        """What models that make calls may take from here on."""
        self.makers.budget(record, bool(self.open))

    def asked(self, record: Record, line: int) -> None:
        """What the asks of a search took."""
        self.makers.asked(record, line, bool(self.open))

    def resolve(self, record: Record, line: int) -> None:
        """The outcome of an unknown call is said later."""
        seq = size(record, "seq")
        if seq in self.open:
            self._give_up(seq)
        found = self._unknown.get(seq)
        if found is None:
            raise Rejected(Code.SESSION_RESOLVE, "seq", "a call whose outcome is unknown", seq)
        outcome = cast(Outcome, text(record, "outcome"))
        answer = answer_of(self.core, found, outcome, record)
        told, lacks = self.arguments.told(found, outcome, record)
        self.tally.unforeseen += lacks
        self.course.resolve(seq, outcome, answer, told)
        del self._unknown[seq]
        self.tally.unknown -= 1
        self.tally.resolved += 1
        self.tally.failed += outcome == "failed"

    def refusal(self, record: Record, line: int) -> None:
        """A call that was not made, or, in the shadow, would not have been."""
        tool, code = text(record, "tool"), text(record, "code")
        recorded = code in records.RECORDED or code in records.RETIRED
        ensure(recorded, Code.SESSION_REFUSAL, "code", "a code of a call that is refused", code)
        known = tool in self._tools and code != Code.UNKNOWN_TOOL
        expected = f"a tool of the grammar, or {records.UNKNOWN_TOOL}"
        ensure(known or tool == records.UNKNOWN_TOOL, Code.SESSION_REFUSAL, "tool", expected, tool)
        if code == Code.NO_MODEL:
            self.makers.check_refusal(tool)
        if "made" in record:
            shadow = self.header.shadow and code in records.SHADOWED
            ensure(shadow, Code.SESSION_REFUSAL, "made", "no field, but in the shadow", code)
            self.tally.shadowed += 1
        self.tally.refusals += 1

    def end(self, record: Record, line: int) -> None:
        """The end, where every plan that may be meant ends, or abandoned."""
        most = 0 if self.header.macs else 1  # of 1.0, whose writers left the last one open
        ensure(len(self.open) <= most, Code.LEDGER_ORDER, "kind", "the outcomes of calls", "end")
        for seq in list(self.open):
            self._give_up(seq)
        self.ended, self.abandoned = True, record["abandoned"] is True
        if not self.abandoned:
            expected = "states that are all the end of a plan"
            finishes = self.course.may_finish()
            ensure(finishes, Code.SESSION_FINISH, "abandoned", expected, self._states())

    def _give_up(self, seq: int) -> None:
        """A call without a record of its outcome is one whose outcome is unknown."""
        self.makers.give_up()
        self.settle(seq, self.open[seq][0], "unknown", None)

    def settle(
        self,
        seq: int,
        offer: Offer,
        outcome: Outcome,
        answer: Observed | None,
        read: bool = False,
        told: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        """The outcome of a call that is under way, as the session takes it."""
        del self.open[seq]
        self.course.settle(outcome, answer, read=read, told=told, seq=seq)
        if outcome == "failed":
            self.tally.failed += 1
        elif outcome == "unknown":
            self._unknown[seq] = offer
            self.tally.unknown += 1

    def _states(self) -> Json:
        return [*self.machine.shown(self.course.held)]

    def _names(self, record: Record, seq: int, line: int) -> None:
        """The idempotency key and the caller's reference, each of one call alone."""
        key = text(record, "key")
        if self._call_keys is not None:
            expected = self._call_keys.of(seq)
            self._compare(Code.SESSION_CALL_KEY, line, "key", expected, key)
        number = int(key, 16)
        ensure(number not in self.keys, Code.SESSION_REPEATED, "key", "a key of its own", key)
        self.keys.add(number)
        if "ref" in record:
            ref = text(record, "ref")
            fresh = ref not in self._references
            ensure(fresh, Code.SESSION_REPEATED, "ref", "a reference of its own", ref)
            self._references.add(ref)

    def _compare(self, code: Code, line: int, name: str, expected: Json, found: Json) -> None:
        if found != expected:
            self.findings.add(code, line, name, expected, found)


_KINDS: Mapping[str, Callable[[ReplayedSession, Record, int], None]] = {
    "budget": ReplayedSession.budget,
    "asked": ReplayedSession.asked,
    "call": ReplayedSession.call,
    "outcome": ReplayedSession.outcome,
    "resolve": ReplayedSession.resolve,
    "refusal": ReplayedSession.refusal,
    "end": ReplayedSession.end,
}
