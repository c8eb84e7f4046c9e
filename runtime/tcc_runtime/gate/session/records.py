"""Records of a session, as its gate writes them: their members, their bytes, their MACs.

A record is rendered in two parts, before and behind its MAC, which is made of both and of the hash
of the record before it.  Those of calls and outcomes are put together as bytes, all others as
values for the canonical writer.
Text: docs/spec/session.md, sections 2 and 3.
Cost: a record is constant, and the digests of a call's arguments.
"""

from __future__ import annotations

import time
from binascii import hexlify
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from blake3 import blake3
from msgspec import Raw
from msgspec.json import Encoder

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json, blake, encode
from tcc_certs.race.digest import uuid7
from tcc_certs.session.machine import Observed, Offer, Outcome
from tcc_certs.session.monitors.digested import Digester, Form, Leaves, members_of
from tcc_certs.session.records import MAC, SCHEMA, open_name
from tcc_certs.session.values import typed_text
from tcc_certs.values import canonical
from tcc_certs.values.places import State
from tcc_runtime.gate.arguments import Asked, Given, ToolTable, json_bytes
from tcc_runtime.gate.arguments.columns import Columns, column_members
from tcc_runtime.gate.policy import Policy

_MOST_RESULT: Final = 1 << 24
MOST_NAME: Final = 255
# A tenth of the time of codec.encode, which writes what is of a type derived from text or numbers.
_canonical: Final = Encoder(order="sorted", enc_hook=lambda value: Raw(encode(value))).encode
_NO_ARGUMENTS: Final[Mapping[str, Json]] = MappingProxyType({})
# Of these `kind` is the last member before the MAC, and none before it has one.
_BEFORE_MAC: Final = {
    kind: b'"kind":"%b"' % kind.encode() for kind in ("refusal", "resolve", "end")
}
# A record's canonical bytes: what stands before its MAC, and what stands behind.
Parts: TypeAlias = "tuple[bytes, bytes]"


def now_ms() -> int:
    """UTC, milliseconds since 1970, as records tell the time."""
    return time.time_ns() // 1_000_000


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
        if isinstance(state, Columns):
            return column_members(form, state, self._leaves)
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
