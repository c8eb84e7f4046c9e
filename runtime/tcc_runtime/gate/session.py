"""A session of a gate: the course of its calls, and how a ledger of records brings it along.

Where it may be and what it allows is the shared machine's (:mod:`tcc_certs.session.course`); here
are the calls with their arguments and models, and what they took of the limits.  A record is held
to what follows by the validator's own steps (:mod:`tcc_certs.session.validation`), with the key:
what is taken up is exactly what has no finding, so a ledger of another artifact, another key or
another course, or with a record of somebody without the key, is never gone on with.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: a decision a few look-ups, whatever was called before and whether or not a call is under way;
resolving is linear in the calls behind the one that is resolved, taking up in the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add, sub

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.session.course import Course, Outcome
from tcc_certs.session.machine import Held, Observed, Offer
from tcc_certs.session.monitors import Seen
from tcc_certs.session.records import SCHEMA
from tcc_certs.session.validation import Replay
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.budget import Budget, budget_in
from tcc_runtime.gate.executions import Executions, asked_in
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.records import Writer, opened_of


@dataclass(slots=True, kw_only=True)
class Made:
    """A call that was made.

    Attributes:
        offer: which.
        outcome: unknown until it is told.
        observed: the indices of the observed values; None unless it is done.
        unforeseen: an answer came that is none of the tool's.
        opened: what the ledger has of its open arguments.
        model: that makes it; empty where none does.
    """

    offer: Offer
    outcome: Outcome = "unknown"
    observed: Observed | None = None
    unforeseen: bool = False
    opened: Mapping[str, Json] = field(default_factory=dict)
    model: str = ""


class Session:
    """The state of one session.

    Attributes:
        policy: of its artifact.
        course: of its calls.
        made: every call, in order; the last one may be under way.
        under_way: whether the last call has no outcome yet.
        ended: no call may follow.
        resolved: the places in `made` of the calls that were resolved, in that order.
        taken: what the calls so far took of each limit of the core, but the one under way.
        trail: what is kept to say why something is refused.
    """

    __slots__ = ("course", "ended", "made", "policy", "resolved", "taken", "trail", "under_way")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.course = Course(policy.machine)
        self.made: list[Made] = []
        self.under_way = False
        self.ended = False
        self.resolved: list[int] = []
        self.taken = policy.nothing_taken
        self.trail: object = None

    @property
    def held(self) -> Held:
        """Where it may be; a call that is under way counts as unknown."""
        return self.course.held

    @property
    def unforeseen(self) -> bool:
        """Whether an answer came that leads nowhere."""
        return self.course.lost

    def states(self) -> list[int]:
        """The states that the session may be in, as a ledger has them."""
        return self.policy.machine.shown(self.course.held)

    def refusal(self, offer: Offer, seen: Sequence[Seen]) -> tuple[Code, str] | None:
        """Why a call may not be made, and which monitor forbids it; None where it may.

        While another is under way its outcome counts as unknown.
        """
        if self.ended:
            return Code.ENDED, ""
        if self.unforeseen:
            return Code.UNFORESEEN, ""
        return self.course.refuses(offer, seen)

    def may_finish(self) -> bool:
        """Whether a plan ends here, whatever the unknown outcomes are."""
        return self.course.may_finish()

    def word(self) -> list[int] | None:
        """The calls of the artifact that were made; None where that is not known."""
        if self.under_way or len(self.held) != 1 or self.unforeseen:
            return None
        done = [made for made in self.made if made.outcome != "failed"]
        if any(made.outcome == "unknown" for made in done):
            return None
        return [made.offer.calls[made.observed or ()] for made in done]

    def begin(self, offer: Offer, seen: Sequence[Seen]) -> Made:
        """A call is made; what comes of it is told to :meth:`settle`."""
        made = Made(offer=offer)
        self.made.append(made)
        self.course.begin(len(self.made), offer, seen)
        self.under_way = True
        return made

    def settle(self, outcome: Outcome, observed: Observed | None, unforeseen: bool) -> None:
        """The outcome of the call that is under way."""
        made = self.made[-1]
        made.outcome, made.observed, made.unforeseen = outcome, observed, unforeseen
        self.under_way = False
        self.course.settle(outcome, None if unforeseen else observed)
        if outcome != "failed" and self.taken:
            took = self.policy.takes(made.offer, observed)
            self.taken = tuple(map(add, self.taken, took))

    def resolve(self, seq: int, outcome: Outcome, observed: Observed | None) -> None:
        """What the unknown outcome of call number `seq` turned out to be.

        Raises:
            Rejected: D201 so many calls would have to be gone through again.
        """
        self.course.resolve(seq, outcome, observed)
        made = self.made[seq - 1]
        if self.taken:
            self.taken = tuple(map(sub, self.taken, self.policy.takes(made.offer, None)))
            if outcome != "failed":
                self.taken = tuple(map(add, self.taken, self.policy.takes(made.offer, observed)))
        made.outcome, made.observed = outcome, observed
        self.resolved.append(seq - 1)


# The records.


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
            self._replay = Replay(self._policy.checked(), self._policy.machine, self.key)
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
        offer = self._policy.machine.offer(text(record, "call"))
        if offer is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        made = self.session.begin(offer, self._seen(offer, opened_of(record), line))
        made.opened = opened_of(record)
        executions, execute = self.executions, record.get("execute")
        if executions is not None and isinstance(execute, dict):
            execution = executions.told(offer.tool, execute, line)
            executions.begin(execution)
            made.model = execution.choice.model.name
        if "ref" in record:
            self.refs[text(record, "ref")] = len(self.session.made)

    def _seen(self, offer: Offer, opened: Mapping[str, Json], line: int) -> Sequence[Seen]:
        monitors = self._policy.machine.monitors
        digests = {name: _member(opened, name, "digest") for name in opened}
        numbers = {}
        for name in monitors.added.get(offer.tool, ()):
            shown = numbers[name] = _member(opened, name, "value")
            if not shown:
                place = f"line {line}: open.{name}"
                raise ResumeError(place, "a number that is shown, as it is added up", "a digest")
        return monitors.see(offer.tool, offer.values, digests, numbers)

    def _outcome(self, record: Record, line: int) -> None:
        outcome, executions, took = _outcome_of(record), self.executions, record.get("took")
        if executions is not None and isinstance(took, dict):
            executions.settle(executions.told_took(took, line), outcome == "done")
        unforeseen = record.get("unforeseen") is True
        observed = None if unforeseen else self._observed(self.session.made[-1], record)
        self.session.settle(outcome, observed, unforeseen)

    def _observed(self, made: Made, record: Record) -> Observed | None:
        if record["outcome"] != "done":
            return None
        told, params = record.get("observed"), self._policy.table(made.offer.tool).observed
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
