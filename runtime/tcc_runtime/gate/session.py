"""A session of a gate: its records, the course of its calls, and how a ledger brings it along.

Where it may be and what it allows is the shared machine's (:mod:`tcc_certs.session.machine`); here
are the calls with their arguments and models, and what they took of the limits.  A record is held
to what follows by the validator's own steps (:mod:`tcc_certs.session.validation`), with the key:
what is taken up is exactly what has no finding, so a ledger of another artifact, another key or
another course, or with a record of somebody without the key, is never gone on with.  The session
that is taken up goes on by the validator's own course.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: a decision a few look-ups, whatever was called before and whether or not a call is under way;
a record is constant, and the digests of a call's arguments; resolving is linear in the calls behind
the one that is resolved, taking up in the records.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Collection, Mapping, Sequence
from operator import add, sub
from types import MappingProxyType
from typing import Final, TypeAlias

from blake3 import blake3
from msgspec import Raw, Struct
from msgspec.json import Encoder

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, blake, encode
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.race.digest import uuid7
from tcc_certs.session.machine import Course, Held, Observed, Offer, Outcome
from tcc_certs.session.monitors.digested import Digester, Form, Leaves, Reading, members_of
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import MAC, MAX_BEHIND, MAX_UNDER_WAY, SCHEMA, open_name
from tcc_certs.session.validation import SessionReplay
from tcc_certs.session.values import typed_text
from tcc_certs.values import canonical
from tcc_certs.values.places import Columns, State
from tcc_runtime.errors import ResumeError
from tcc_runtime.gate.arguments import Asked, Given, ToolTable, json_bytes
from tcc_runtime.gate.budget import Budget, ModelCalls, asked_in, budget_in
from tcc_runtime.gate.expected import OUTCOME, ExpectedRecords, WrittenHere
from tcc_runtime.gate.journal import News
from tcc_runtime.gate.policy import Policy

# Records, as values for the canonical writer.

_MOST_RESULT: Final = 1 << 24
MOST_NAME: Final = 255
# A tenth of the time of codec.encode, which writes what is of a type derived from text or numbers.
_canonical: Final = Encoder(order="sorted", enc_hook=lambda value: Raw(encode(value))).encode
APART: Final = 128  # calls between two places that are kept to say why something is refused
_NO_ARGUMENTS: Final[Mapping[str, Json]] = MappingProxyType({})
# Of these `kind` is the last member before the MAC, and none before it has one.
_BEFORE_MAC: Final = {
    kind: b'"kind":"%b"' % kind.encode() for kind in ("refusal", "resolve", "end")
}
# A record's canonical bytes: what stands before its MAC, and what stands behind.
Parts: TypeAlias = "tuple[bytes, bytes]"


def parts_of(record: Mapping[str, Json]) -> Parts:
    """The canonical bytes of a record, in which its MAC is still missing."""
    mark = _BEFORE_MAC.get(str(record["kind"]))
    if mark is not None:
        first, mark, rest = _canonical(record).partition(mark)
        return first + mark, rest
    first = encode({name: value for name, value in record.items() if name < MAC})[:-1]
    other = {name: value for name, value in record.items() if name > MAC}
    return first, b"," + encode(other)[1:] if other else b"}"


def session_record(
    policy: Policy,
    key: bytes,
    started_ms: int,
    nonce: str,
    shown: Sequence[str],
    principal: str | None = None,
    *,
    given: Mapping[str, Json] | None = None,
    parent: str | None = None,
    shadow: bool = False,
) -> dict[str, Json]:
    """`session`; `nonce` keeps apart what one key began in one millisecond.

    Args:
        principal: whose it is, hex; given: what it is given, of :func:`given_record`.
        parent: the id of the session that its calls are calls of, too.
        shadow: whether calls that are refused are made.
    """
    manifest = policy.artifact.manifest
    record: dict[str, Json] = {
        "kind": "session",
        "schema": SCHEMA,
        "started_ms": started_ms,
        "nonce": nonce,
        "artifact": policy.artifact.digest.hex(),
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "monitors": list(policy.machine.monitors.texts),
        "arguments": {"show": list(shown)},
        "key_commitment": canonical.key_commitment(key).hex(),
    }
    if policy.core.given:
        record["given"] = {} if given is None else given
    statements = policy.machine.statements
    if statements is not None and statements.ledger.constants:
        record["constants"] = list(Digester(statements.ledger, key).constants())
    if principal is not None:
        record["principal"] = principal
    if parent is not None:
        record["parent"] = parent
    if shadow:
        record["shadow"] = True
    return {**record, "session_id": uuid7(started_ms, blake(encode(record)))}


def given_record(
    policy: Policy, key: bytes, given: Sequence[Given], shown: Collection[str]
) -> Mapping[str, Json]:
    """What a session is given, as its header has it.

    Args:
        shown: the names of those whose values stand there.

    Raises:
        Rejected: R105 there are more than 2^14 values in lists.
    """
    statements = policy.machine.statements
    writing = _Writing(None if statements is None else Digester(statements.ledger, key), key)
    forms = {} if statements is None else statements.ledger.session
    declared = {one.name: one for one in policy.core.given}
    found: dict[str, Json] = {}
    for name, kind, data in given:
        form = forms.get(name)
        state = None if form is None else typed_text(declared[name], data.decode())
        found[name] = writing.entry((name, kind, data), form, state, shown=name in shown)
    return found


class _Writing:
    """What one record has of values, under the key of the session."""

    __slots__ = ("_digester", "_key", "_leaves")

    def __init__(self, digester: Digester | None, key: bytes) -> None:
        self._digester, self._key = digester, key
        self._leaves: Leaves | None = None

    def entry(
        self, given: Given, form: Form | None, state: State | Columns | None, *, shown: bool
    ) -> dict[str, Json]:
        """A value: its digest, itself where it is shown, and what statements need of it.

        Args:
            form: of a field that statements name; state: its value, where that is a list.

        Raises:
            Rejected: R105 the record has more than 2^14 values in lists.
        """
        _, kind, data = given
        found: dict[str, Json] = {"digest": canonical.digest(self._key, kind, data).hex()}
        if shown:
            found["type"], found["value"] = kind.decode(), data.decode()
        if form is not None and (form.is_list or form.patterns):
            found |= self.members(form, ("s", data.decode()) if state is None else state)
        return found

    def members(self, form: Form, state: State | Columns) -> dict[str, Json]:
        """What statements need of a value beside its digest."""
        if self._leaves is None and self._digester is not None:
            self._leaves = self._digester.leaves()
        return members_of(form, state, self._digester, self._leaves)


class Writer:
    """Renders the records of one session.

    Args:
        key: of its digests, 32 bytes.
        shown: the open parameters whose values stand in the ledger.
        session_id: of the session.
    """

    __slots__ = ("_call_keys", "_digester", "_forms", "_key", "_macs", "_shown")

    def __init__(self, policy: Policy, key: bytes, shown: Sequence[str], session_id: str) -> None:
        self._key = key
        self._macs = blake3(key=canonical.record_key(key))
        self._call_keys = canonical.CallKeys(key, session_id)
        names, tools = frozenset(shown), policy.core.tools
        self._shown = [
            frozenset(
                [
                    one.name
                    for one in (*tool.opened, *tool.answers)
                    if names and open_name(tool.name, one.name) in names
                ]
            )
            for tool in tools
        ]
        statements = policy.machine.statements
        self._digester = None if statements is None else Digester(statements.ledger, key)
        nothing: Mapping[str, Form] = {}
        self._forms = [nothing] * len(tools) if statements is None else statements.ledger.tools

    def sealed(self, parts: Parts, previous: bytes) -> bytes:
        """The canonical bytes of a record with its MAC, behind a record of the hash `previous`.

        One at a time: the hasher is kept, as it is made in more time than it takes.
        """
        first, rest = parts
        macs = self._macs
        macs.reset()
        macs.update(b"".join((b"mac", previous, first, rest)))
        return b"".join((first, b',"mac":"', hexlify(macs.digest(canonical.MAC_BYTES)), b'"', rest))

    def call_key(self, seq: int) -> str:
        """The idempotency key of a call."""
        return self._call_keys.of(seq)

    def reference(self, ref: str) -> str:
        """What stands for the id that the caller gave a call.

        Raises:
            Rejected: R106 it is no text in UTF-8.
        """
        return canonical.reference_digest(self._key, ref).hex()

    def digest(self, given: Given) -> str:
        """What stands for an open argument, hex."""
        return canonical.digest(self._key, given[1], given[2]).hex()

    def call(
        self,
        seq: int,
        offer: Offer,
        opened: Mapping[str, Json],
        states: Sequence[int],
        *,
        reference: str | None = None,
        at_ms: int | None = None,
        across: Mapping[str, Json] | None = None,
        execute: Mapping[str, Json] | None = None,
    ) -> tuple[Parts, str]:
        """`call`, and its idempotency key; a member that is None is not there.

        Args:
            opened: what it has of the open arguments.
            at_ms: when it was decided, where a statement looks at the clock.
            across: what it drew of limits across sessions; execute: which model makes it.
        """
        before = b"{"
        if across is not None:
            before += b'"across":%b,' % _canonical(across)
        if at_ms is not None:
            before += b'"at_ms":%d,' % at_ms
        behind = b""
        if execute is not None:
            behind = b'"execute":%b,' % _canonical(execute)
        between = b"" if reference is None else b'"ref":"%b",' % reference.encode()
        key = self._call_keys.of(seq)
        first = b'%b"call":%b,%b"key":"%b","kind":"call"' % (
            before, _canonical(offer.text), behind, key.encode(),
        )  # fmt: skip
        rest = b',"open":%b,%b"seq":%d,"states":%b}' % (
            _canonical(opened) if opened else b"{}", between, seq, _canonical(states),
        )  # fmt: skip
        return (first, rest), key

    def opened(self, asked: Asked) -> dict[str, Json]:
        """What a record has of the open arguments of a call.

        Raises:
            Rejected: R105 there are more than 2^14 values in lists; at the argument.
        """
        found: dict[str, Json] = {}
        if not asked.opened:
            return found
        forms, shown = self._forms[asked.table.number], self._shown[asked.table.number]
        writing, states = _Writing(self._digester, self._key), asked.states
        for given in asked.opened:
            name = given[0]
            try:
                found[name] = writing.entry(
                    given, forms.get(name), states.get(name), shown=name in shown
                )
            except Rejected as refusal:
                raise Rejected(refusal.code, name, refusal.expected, refusal.found) from None
        return found

    def answers(self, table: ToolTable, answer: object) -> dict[str, Json]:
        """What a record has of the open answers, out of what came back.

        What has more than 2^14 values in lists is not known.
        """
        forms, shown = self._forms[table.number], self._shown[table.number]
        if not table.answers or not (forms or shown):
            return {}
        names = frozenset([one.name for one in table.tool.answers if one.name in forms]) | shown
        writing, found = _Writing(self._digester, self._key), dict[str, Json]()
        for name, value in table.told(answer, names, shown).items():
            form = forms.get(name)
            try:
                if value is None:
                    found[name] = {"unknown": True}
                elif form is not None and form.is_list and name not in shown and len(value) == 3:
                    found[name] = writing.members(form, value[2])
                else:
                    state = value[2] if len(value) == 3 else None
                    given = name, value[0], value[1]
                    found[name] = writing.entry(given, form, state, shown=name in shown)
            except Rejected:
                found[name] = {"unknown": True}
        return found

    def result(self, result: object) -> str | None:
        """What stands for the result of a call; None where it has no canonical form."""
        if result is None:
            return None
        found = json_bytes(result, _MOST_RESULT)
        if type(found) is not bytes:
            return None
        return blake3(b"j" + found, key=self._key).hexdigest()


def outcome_parts(
    seq: int,
    outcome: Outcome,
    ms: int,
    *,
    observed: Mapping[str, Json] | None = None,
    unforeseen: bool = False,
    result: str | None = None,
    took: Mapping[str, Json] | None = None,
    read: bool = False,
    answers: Mapping[str, Json] = _NO_ARGUMENTS,
) -> Parts:
    """`outcome`; `took` is what the model took, `read` whether a call failed with an answer.

    Args:
        unforeseen: whether one of the observed values is not known.
        answers: the open ones that are shown.
    """
    first, between, behind = b'{"kind":"outcome"', "", ""
    if read or answers:
        before = b'"answered":true,' if read else b""
        if answers:
            before += b'"answers":%b,' % _canonical(answers)
        first = b'{%b"kind":"outcome"' % before
    if observed:
        between = f'"observed":{_canonical(observed).decode()},'
    of = "" if result is None else f'"result":"{result}",'
    if took is not None:
        behind = f',"took":{_canonical(took).decode()}'
    if unforeseen:
        behind += ',"unforeseen":true'
    rest = f',"ms":{ms},{between}"outcome":"{outcome}",{of}"seq":{seq}{behind}}}'
    return first, rest.encode()


def refusal_parts(tool: str, code: str, *, made: bool = False) -> Parts:
    """`refusal`; `tool` is one of the grammar's, or empty; `made`: in the shadow, all the same."""
    record: dict[str, Json] = {"kind": "refusal", "tool": tool or "unknown tool", "code": code}
    return parts_of({**record, "made": True} if made else record)


def resolve_record(
    seq: int,
    outcome: str,
    observed: Mapping[str, Json] | None,
    who: str | None = None,
    at_ms: int | None = None,
    answers: Mapping[str, Json] = MappingProxyType({}),
) -> dict[str, Json]:
    """`resolve`; `who` says so, and when."""
    record: dict[str, Json] = {"kind": "resolve", "seq": seq, "outcome": outcome}
    if observed:
        record["observed"] = observed
    if answers:
        record["answers"] = answers
    if who is not None and at_ms is not None:
        record["who"], record["at_ms"] = who, at_ms
    return record


def is_name(who: object) -> bool:
    """Whether a record may name somebody so."""
    return isinstance(who, str) and 0 < len(who) <= MOST_NAME and who.isprintable()


def end_record(abandoned: bool) -> dict[str, Json]:
    """`end`."""
    return {"kind": "end", "abandoned": abandoned}


def observed_texts(table: ToolTable, observed: Observed | None) -> Mapping[str, Json] | None:
    """The observed values that are known, by name, as texts."""
    if observed is None or not table.observed:
        return None
    pairs = zip(table.observed, observed, strict=True)
    return {param.name: param.values[at] for param, at in pairs if at is not None}


def opened_of(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """The open arguments of a `call` record, as it has them."""
    found = record["open"]
    return found if isinstance(found, dict) else {}


def answers_of(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """The open answers of an `outcome` or `resolve` record, as it has them."""
    found = record.get("answers")
    return found if isinstance(found, dict) else {}


def lacks_one(answers: Mapping[str, Json]) -> bool:
    """Whether one of the answers is not known."""
    return any(isinstance(one, Mapping) and "unknown" in one for one in answers.values())


# The session.


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
    """

    __slots__ = (
        "_counted", "_taken", "course", "due", "ended", "follows", "identity", "made", "policy",
        "resolved", "stamp", "trail", "under_way", "way_on",
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
        self.identity, self.stamp = identity, started_ms
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
                if machine.statements.remembers(place, tools, self.course.attributes):
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


# The records.


class Follower:
    """Applies records to a session.

    Attributes:
        session: where it is.
        refs: what stands for the ids that callers gave, with the numbers of their calls.
        shown: the open parameters whose values are shown.
        writer: of the records that this session writes.
        reading: how its records stand for values that statements of version 1.2 name.
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
        self.writer = Writer(policy, key, (), "")
        self.reading: Reading | None = None
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
        self._expected: ExpectedRecords | None = None  # of a session that was taken up

    def open(self, shown: tuple[str, ...], record: Mapping[str, Json]) -> None:
        """The session shows these open parameters, and has this first record."""
        self.shown, self.session_id = shown, text(record, "session_id")
        given = record.get("given")
        self.given = given if isinstance(given, dict) else {}
        statements, constants = self._policy.machine.statements, record.get("constants")
        if statements is not None:
            texts = constants if isinstance(constants, list) else []
            digests = [bytes.fromhex(str(one)) for one in texts]
            self.reading = Reading(statements.ledger, digests)
        self.session.open(self.session_id, size(record, "started_ms"), self.given, self.reading)
        self.writer = Writer(self._policy, self.key, shown, self.session_id)

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
            told = self.told(made.offer, answers_of(record))
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
            self.session.course, self.reading = replayed.course, replayed.arguments.reading
            self._expected = ExpectedRecords(replayed, self.key)

    def _call(self, record: Record, line: int) -> None:
        offer = self._policy.machine.offer(text(record, "call"))
        if offer is None:
            raise ResumeError(f"line {line}: call", "a call of the grammar", record["call"])
        opened = opened_of(record)
        seen = self._seen(offer, opened, line)
        states, at_ms = self.states(offer, opened), record.get("at_ms")
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

    def states(self, offer: Offer, opened: Mapping[str, Json]) -> Mapping[str, State] | None:
        """The fields of a call, as a record has them, for the statements of version 1.2."""
        statements = self._policy.machine.statements
        if statements is None:
            return None
        return statements.states(offer.tool, offer.values, opened, self.reading)

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
        made, answers = self.session.made[seq - 1], answers_of(record)
        observed = self._observed(made, record)
        unforeseen = "unforeseen" in record or (bool(answers) and lacks_one(answers))
        read = record.get("answered") is True
        told = self.told(made.offer, answers)
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

    def told(self, offer: Offer, answers: Mapping[str, Json]) -> Mapping[str, State]:
        """Open answers, as a record has them, for the statements of version 1.2."""
        statements = self._policy.machine.statements
        if statements is None or self.reading is None:
            return {}
        return statements.told(offer.tool, answers, self.reading)

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
