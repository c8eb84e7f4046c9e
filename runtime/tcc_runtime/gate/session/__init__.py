"""A session of a gate: its calls, what is under way, and what they took of the limits.

Where it may be and what it allows is the shared machine's (:mod:`tcc_certs.session.machine`); here
are the calls with their arguments and models.  Records of them are made in
:mod:`tcc_runtime.gate.session.records`; a ledger brings a session along in
:mod:`tcc_runtime.gate.session.recovery`.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: a decision a few look-ups, whatever was called before and whether or not a call is under way;
resolving is linear in the calls behind the one that is resolved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import add, sub
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tcc_certs.core.model import PolicyMonitor
from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.session.machine import Course, Held, Observed, Offer, Outcome, SessionMachine
from tcc_certs.session.monitors.digested import Reading
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import MAX_BEHIND, MAX_UNDER_WAY
from tcc_certs.values.places import State
from tcc_runtime.gate.policy import Policy

APART: Final = 128  # calls between two places that are kept to say why something is refused
_NO_ARGUMENTS: Final[Mapping[str, Json]] = MappingProxyType({})


class Made(Struct, gc=False):  # nothing that it refers to refers to it
    """A call that was made.

    Attributes:
        offer: which.
        line: of its record.
        seen: as monitors see it.
        opened: what the ledger has of its open arguments.
        model: that makes it; empty where none does.
        outcome: unknown until it is told.
        observed: the indices of the observed values; None unless it is done.
        unforeseen: of its answer a part is not known.
        drawn: the attempt by which it was counted across sessions; None: it was not.
    """

    offer: Offer
    line: int = 0
    seen: Sequence[Seen] = ()
    opened: Mapping[str, Json] = _NO_ARGUMENTS
    model: str = ""
    outcome: Outcome = "unknown"
    observed: Observed | None = None
    unforeseen: bool = False
    drawn: int | None = None


class Session:
    """The state of one session.

    Attributes:
        policy: of its artifact.
        course: of its calls.
        made: every call, in order.
        under_way: the numbers of those that have no outcome yet, in order.
        ended: no call may follow.
        resolved: the places in `made` of the calls that were resolved, in that order.
        trail: what is kept to say why something is refused; due: the number of calls at which it
            is to be brought along.
        follows: whether its course has gone on already by what it is told.
        identity: the session's id; way_on: what whoever it refuses can do when it is spent.
        stamp: when the last of its calls was decided, or it began, UTC ms.
        reading: how records stand for values that statements of version 1.2 name; None where the
            grammar has no such statement.
    """

    __slots__ = (
        "_counted", "_taken", "course", "due", "ended", "follows", "identity", "made", "policy",
        "reading", "resolved", "stamp", "trail", "under_way", "way_on",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.course = Course(policy.machine)
        self.made: list[Made] = []
        self.under_way: tuple[int, ...] = ()
        self.ended = self.follows = False
        self.resolved: list[int] = []
        self._taken, self._counted = policy.nothing_taken, 0  # of the calls up to that one
        self.trail: object = None
        self.due = APART
        self.identity = self.way_on = ""
        self.stamp = 0
        self.reading: Reading | None = None

    def open(
        self,
        identity: str,
        started_ms: int,
        given: Mapping[str, Json],
        reading: Reading | None,
    ) -> None:
        """Its first record is known.

        Args:
            given: what it is given, as the record has it.
            reading: how that stands for values, where statements name some.
        """
        self.identity, self.stamp, self.reading = identity, started_ms, reading
        statements = self.policy.machine.statements
        if statements is not None and reading is not None:
            known = statements.given(given, reading)
            self.course = Course(self.policy.machine, known, reading.marks)

    @property
    def held(self) -> Held:
        """Where it may be; a call that is under way counts as unknown."""
        return self.course.held

    @property
    def lost(self) -> bool:
        """Whether an answer came that leads nowhere."""
        return self.course.lost

    def states(self) -> list[int]:
        """The states that the session may be in, as a ledger has them."""
        return self.policy.machine.shown(self.course.held)

    def fields(self, offer: Offer, opened: Mapping[str, Json]) -> Mapping[str, State] | None:
        """The fields of a call, as a record has them, for the statements of version 1.2."""
        statements = self.policy.machine.statements
        if statements is None:
            return None
        return statements.states(offer.tool, offer.values, opened, self.reading)

    def answered(self, offer: Offer, answers: Mapping[str, Json]) -> Mapping[str, State]:
        """The open answers of a call, as a record has them, for the same statements."""
        statements = self.policy.machine.statements
        if statements is None or self.reading is None:
            return {}
        return statements.told(offer.tool, answers, self.reading)

    @property
    def taken(self) -> tuple[int, ...]:
        """What the calls so far took of each limit of the core, but those under way.

        Each is counted once, when somebody asks; an outcome that becomes known later is made good.
        """
        settled = self.under_way[0] - 1 if self.under_way else len(self.made)
        found = self._taken
        for made in self.made[self._counted : settled]:
            found = self._with(found, made)
        self._taken, self._counted = found, settled
        for seq, made in enumerate(self.made[settled:], settled + 1):
            found = found if seq in self.under_way else self._with(found, made)
        return found

    def _with(self, taken: tuple[int, ...], made: Made) -> tuple[int, ...]:
        if made.outcome == "failed":
            return taken
        return tuple(map(add, taken, self.policy.takes(made.offer, made.observed)))

    def may_finish(self) -> bool:
        """Whether a plan ends here, whatever the unknown outcomes are."""
        return self.course.may_finish()

    def word(self) -> list[int] | None:
        """The calls of the artifact that were made; None where that is not known."""
        if self.under_way or len(self.held) != 1 or self.lost:
            return None
        done = [made for made in self.made if made.outcome != "failed"]
        if any(made.outcome == "unknown" or None in (made.observed or ()) for made in done):
            return None
        return [made.offer.calls[made.observed or ()] for made in done]

    def begin(
        self,
        offer: Offer,
        seen: Sequence[Seen],
        states: Mapping[str, State] | None = None,
        line: int = 0,
        stamp: int = 0,
        opened: Mapping[str, Json] = _NO_ARGUMENTS,
        model: str = "",
    ) -> Made:
        """A call is made; what comes of it is told to :meth:`settle`."""
        made = Made(offer, line, seen, opened, model)
        self.made.append(made)
        seq = len(self.made)
        if not self.follows:
            self.course.begin(seq, offer, seen, states, stamp)
        if stamp > self.stamp:
            self.stamp = stamp
        self.under_way = (*self.under_way, seq) if self.under_way else (seq,)
        return made

    def waits(self, offer: Offer, records: int) -> bool:
        """Whether a call that is allowed may not begin beside those that are under way.

        Args:
            records: how many the ledger has.
        """
        if not self.under_way:
            return False
        if len(self.under_way) >= MAX_UNDER_WAY:
            return True
        if records - self.made[self.under_way[0] - 1].line >= MAX_BEHIND:
            return True
        machine = self.policy.machine
        tools = {self.made[seq - 1].offer.tool for seq in self.under_way}
        return not all(machine.commute(offer.tool, tool) for tool in tools)

    def may_come(self, code: Code, place: str, offer: Offer) -> bool:
        """Whether a call that is refused may be allowed once more outcomes are known.

        What is held then is held now, so a call that leads on from no place now leads on from none;
        and a monitor that names no call under way says the same whatever comes of them.

        Args:
            place: the text of the monitor, where one refuses it.
        """
        if not self.under_way:
            return False
        if code in (Code.NOT_PLANNED, Code.STATEMENT_FORBIDS):
            return any(self.policy.leads_on(place, offer) for place in self.held)
        if code in (Code.MONITOR_FORBIDS, Code.MANY_EARLIER):
            machine = self.policy.machine
            if machine.statements is not None:
                tools = {self.made[seq - 1].offer.tool for seq in self.under_way}
                if remembers(machine, place, tools, self.course.attributes):
                    return True
            texts = machine.monitors.texts
            seen = [one for seq in self.under_way for one in self.made[seq - 1].seen]
            return place not in texts or any(texts[one.rule.number] == place for one in seen)
        return code is Code.MANY_STATES

    def settle(
        self,
        outcome: Outcome,
        observed: Observed | None,
        unforeseen: bool,
        *,
        read: bool = False,
        seq: int | None = None,
        told: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        """The outcome of a call that is under way; without `seq` of the first of them.

        Args:
            told: its open answers.
        """
        seq = self.under_way[0] if seq is None else seq
        made = self.made[seq - 1]
        made.outcome, made.observed = outcome, observed
        if unforeseen:  # to say what it says already takes longer than to look
            made.unforeseen = True
        under_way = self.under_way
        alone = under_way == (seq,)
        self.under_way = () if alone else tuple([other for other in under_way if other != seq])
        if not self.follows:
            self.course.settle(outcome, observed, read=read, seq=seq, told=told)

    def resolve(
        self,
        seq: int,
        outcome: Outcome,
        observed: Observed | None,
        told: Mapping[str, State] = MappingProxyType({}),
    ) -> None:
        """What the unknown outcome of call number `seq` turned out to be.

        Raises:
            Rejected: D201 so many calls would have to be gone through again.
        """
        if not self.follows:
            self.course.resolve(seq, outcome, observed, told)
        made = self.made[seq - 1]
        counted = seq <= self._counted
        if counted:
            self._taken = tuple(map(sub, self._taken, self.policy.takes(made.offer, None)))
        made.outcome, made.observed = outcome, observed
        if counted:
            self._taken = self._with(self._taken, made)
        self.resolved.append(seq - 1)


def remembers(
    machine: SessionMachine, text: str, tools: Collection[int], known: Mapping[str, State]
) -> bool:
    """Whether the statement of version 1.2 of that text looks at calls of one of these tools.

    Args:
        known: the attributes by now; of those that are not known yet a call may tell one.
    """
    from tcc_certs.core import mentions, opened, policies  # here: a core of 1.1 has none of it

    core, statements = machine.core, machine.statements
    held = [one for one in core.monitors if isinstance(one, PolicyMonitor)]
    number = next((at for at, one in enumerate(held) if one.text == text), None)
    if number is None or statements is None:
        return False
    if any(one.number == number for tool in tools for one in statements.policies.keeps[tool]):
        return True
    policy, looks = held[number].policy, {one.name: one for one in core.looks}
    spoken, fields = mentions.attributes_named(policy), tuple(map(opened.fields_of, core.tools))
    told = [one.of for one in core.lets if one.name in spoken and one.name not in known]
    looked = [
        policies.fields_looked_in(looks[name], of, fields)
        for name, of in mentions.looks_named(policy)
    ]
    return any(tool in tools for some in (*told, *looked) for tool, _ in some)
