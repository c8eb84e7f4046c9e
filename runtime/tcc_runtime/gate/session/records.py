"""Records of a session as its gate writes them: members, canonical bytes and MACs.

A record is rendered in two parts, before and after its MAC.  The MAC covers both parts and the hash
of the record before.  For speed, records of calls and outcomes are assembled as bytes.  Other
records use the canonical writer.
Text: docs/spec/session.md, sections 2 to 4.
"""

from __future__ import annotations

import time
from binascii import hexlify
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from blake3 import blake3
from msgspec import Raw
from msgspec.json import Encoder

from tcc_certs.formats.codec import Json, blake, encode
from tcc_certs.race.digest import uuid7
from tcc_certs.session.entries import Entries, EntryWriter
from tcc_certs.session.records import MAC, SCHEMA, UNKNOWN_TOOL
from tcc_certs.values import canonical
from tcc_certs.values.places import State
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.arguments.json_writer import json_bytes
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.session.values import NO_ANSWERS, Answers

_MOST_RESULT: Final = 1 << 24
MOST_NAME: Final = 255
# Takes a tenth of the time of `codec.encode`, which writes the values of other classes.
_canonical: Final = Encoder(order="sorted", enc_hook=lambda value: Raw(encode(value))).encode
_NOTHING: Final[Mapping[str, Json]] = MappingProxyType({})
# In these records `kind` is the last member before the MAC, and this text occurs only there.
_BEFORE_MAC: Final = {
    kind: b'"kind":"%b"' % kind.encode() for kind in ("refusal", "resolve", "end")
}
# The canonical bytes of a record before its MAC, and after it.
Parts: TypeAlias = "tuple[bytes, bytes]"


def now_ms() -> int:
    """Return the current time, UTC milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parts_of(record: Mapping[str, Json]) -> Parts:
    """Return the canonical bytes of a record, in two parts without its MAC."""
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
    given: Mapping[str, State] = MappingProxyType({}),
    shadow: bool = False,
    parent: str | None = None,
) -> dict[str, Json]:
    """Return the first record, `session`.

    Args:
        nonce: distinguishes sessions of one key that begin in one millisecond.
        shown: the fields whose values the owner shows.
        principal: the principal of the session, hex; None: the session has none.
        given: the states of the attributes that the session starts with.
        shadow: whether refused calls are made.
        parent: the id of the parent of a delegated session.

    Raises:
        Rejected: R105: an attribute has more than 2^14 elements.
    """
    record: dict[str, Json] = {
        "kind": "session",
        "schema": SCHEMA,
        "started_ms": started_ms,
        "nonce": nonce,
        **artifact_members(policy, key),
        "arguments": {"show": list(shown)},
        "key_commitment": canonical.key_commitment(key).hex(),
    }
    if policy.given.names:
        record["given"] = _entry_writer(policy, key).given(given)
    if principal is not None:
        record["principal"] = principal
    if shadow:
        record["shadow"] = True
    if parent is not None:
        record["parent"] = parent
    return {**record, "session_id": uuid7(started_ms, blake(encode(record)))}


def artifact_members(policy: Policy, key: bytes) -> dict[str, Json]:
    """Return the members of a `session` record that depend only on the artifact and the key."""
    manifest = policy.artifact.manifest
    members: dict[str, Json] = {
        "artifact": policy.artifact.digest.hex(),
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "statements": list(policy.texts),
    }
    if policy.uses.constants:
        members["constants"] = list(_entry_writer(policy, key).constants())
    return members


def _entry_writer(policy: Policy, key: bytes) -> EntryWriter:
    return EntryWriter(Entries(policy.core, policy.uses), key)


class Writer:
    """Renders the records of one session.

    Args:
        key: the key of the session, 32 bytes.
        session_id: the id of the session.
    """

    __slots__ = ("_call_keys", "_key", "_macs")

    def __init__(self, key: bytes, session_id: str) -> None:
        self._key = key
        self._macs = blake3(key=canonical.record_key(key))
        self._call_keys = canonical.CallKeys(key, session_id)

    def sealed(self, parts: Parts, previous: bytes) -> bytes:
        """Return the canonical bytes of a record with its MAC.

        Only one thread may call it at a time: the hasher is reused, because creating one takes
        longer than using it.

        Args:
            previous: the hash of the record before.
        """
        first, rest = parts
        macs = self._macs
        macs.reset()
        macs.update(b"".join((b"mac", previous, first, rest)))
        return b"".join((first, b',"mac":"', hexlify(macs.digest(canonical.MAC_BYTES)), b'"', rest))

    def call_key(self, seq: int) -> str:
        """Return the idempotency key of the call `seq`."""
        return self._call_keys.of(seq)

    def reference(self, ref: str) -> str:
        """Return the keyed digest of the id that the caller passed for a call, hex.

        Raises:
            Rejected: R106: the id is no text in UTF-8.
        """
        return canonical.reference_digest(self._key, ref).hex()

    def call(
        self,
        seq: int,
        text: str,
        opened: Mapping[str, Json],
        states: Sequence[int],
        *,
        key: str,
        reference: str | None = None,
        at_ms: int | None = None,
        across: Mapping[str, Json] | None = None,
        approvals: Sequence[str] = (),
        execute: Mapping[str, Json] | None = None,
    ) -> Parts:
        """Return a `call` record.  Arguments that are None are left out.

        Args:
            text: the text of the call, without listed answers.
            opened: the entries of its open arguments.
            key: the idempotency key of the call.
            across, execute: the members of these names: its draws on limits across sessions, and
                the model that makes it.
            approvals: the ids of the approvals that the call uses.
        """
        before = b"{"
        if across is not None:
            before += b'"across":%b,' % _canonical(across)
        if approvals:
            before += b'"approvals":%b,' % _canonical(approvals)
        if at_ms is not None:
            before += b'"at_ms":%d,' % at_ms
        behind = b""
        if execute is not None:
            behind = b'"execute":%b,' % _canonical(execute)
        between = b"" if reference is None else b'"ref":"%b",' % reference.encode()
        first = b'%b"call":%b,%b"key":"%b","kind":"call"' % (
            before, _canonical(text), behind, key.encode(),
        )  # fmt: skip
        rest = b',"open":%b,%b"seq":%d,"states":%b}' % (
            _canonical(opened) if opened else b"{}", between, seq, _canonical(states),
        )  # fmt: skip
        return first, rest

    def result(self, result: object) -> str | None:
        """Return the keyed digest of the result of a call; None if the result has no canonical
        JSON.
        """
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
    answers: Answers = NO_ANSWERS,
    at_ms: int | None = None,
    result: str | None = None,
    took: Mapping[str, Json] | None = None,
    read: bool = False,
) -> Parts:
    """Return an `outcome` record.

    Args:
        answers: the answers of a call that is done.
        at_ms: the time of the record; None if no statement uses time.
        took: the member of this name, for a call that a model made.
        read: whether the agent read the error of a call that failed.
    """
    before, between, behind = b"", "", ""
    if read:
        before += b'"answered":true,'
    if answers.entries:
        before += b'"answers":%b,' % _canonical(answers.entries)
    if at_ms is not None:
        before += b'"at_ms":%d,' % at_ms
    if answers.observed is not None:
        between = f'"observed":{_canonical(answers.observed).decode()},'
    of = "" if result is None else f'"result":"{result}",'
    if took is not None:
        behind = f',"took":{_canonical(took).decode()}'
    if answers.unlisted:
        behind += ',"unforeseen":true'
    rest = f',"ms":{ms},{between}"outcome":"{outcome}",{of}"seq":{seq}{behind}}}'
    return b'{%b"kind":"outcome"' % before, rest.encode()


def refusal_parts(
    tool: str, code: str, statement: int | None = None, *, made: bool = False
) -> Parts:
    """Return a `refusal` record.

    Args:
        tool: the name of a tool of the grammar; empty: the tool is unknown.
        statement: the number of the statement that refuses the call.
        made: whether the call was made all the same, in shadow mode.
    """
    record: dict[str, Json] = {"kind": "refusal", "tool": tool or UNKNOWN_TOOL, "code": code}
    if statement is not None:
        record["statement"] = statement
    return parts_of({**record, "made": True} if made else record)


def resolve_record(
    seq: int,
    outcome: str,
    answers: Answers,
    who: str | None,
    at_ms: int | None,
    *,
    read: bool = False,
) -> dict[str, Json]:
    """Return a `resolve` record.

    Args:
        who: the person who reports the outcome.
        read: whether the agent read the error of a call that failed.
    """
    record: dict[str, Json] = {"kind": "resolve", "seq": seq, "outcome": outcome}
    if read:
        record["answered"] = True
    if answers.observed is not None:
        record["observed"] = dict(answers.observed)
    if answers.entries:
        record["answers"] = dict(answers.entries)
    if who is not None:
        record["who"] = who
    return record if at_ms is None else {**record, "at_ms": at_ms}


def approval_record(question_id: str, verdict: str, who: str, at_ms: int) -> dict[str, Json]:
    """Return an `approval` record: the verdict of a person on a question."""
    return {
        "kind": "approval", "id": question_id, "verdict": verdict, "who": who, "at_ms": at_ms,
    }  # fmt: skip


def is_name(who: object) -> bool:
    """Return whether a record may have this name of a person: 1 to 255 printable characters."""
    return isinstance(who, str) and 0 < len(who) <= MOST_NAME and who.isprintable()


def end_record(abandoned: bool, at_ms: int | None) -> dict[str, Json]:
    """Return an `end` record."""
    record: dict[str, Json] = {"kind": "end", "abandoned": abandoned}
    return record if at_ms is None else {**record, "at_ms": at_ms}
