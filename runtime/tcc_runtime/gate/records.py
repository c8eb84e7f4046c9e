"""The records of a session, as values for the canonical writer.

Format: docs/spec/session.md, section 3.  Cost: constant, and the digests of a call's arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from blake3 import blake3

from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.hashes import blake
from tcc_certs.race.digest import uuid7
from tcc_certs.session.header import open_name
from tcc_certs.session.machine import Observed
from tcc_certs.session.records import MAC, SCHEMA
from tcc_certs.values.digest import (
    call_key,
    digest,
    key_commitment,
    record_key,
    record_mac,
    reference_digest,
)
from tcc_runtime.gate.arguments import Given, json_bytes
from tcc_runtime.gate.policy import Asked, Policy, ToolTable

_MOST_RESULT: Final = 1 << 24
_BEFORE_MAC: Final = ("call", "outcome", "refusal", "resolve", "end")


def session_record(
    policy: Policy, key: bytes, started_ms: int, nonce: str, shown: Sequence[str]
) -> dict[str, Json]:
    """`session`; `nonce` keeps apart what one key began in one millisecond."""
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
        "key_commitment": key_commitment(key).hex(),
    }
    return {**record, "session_id": uuid7(started_ms, blake(encode(record)))}


class Writer:
    """Renders the records of one session.

    Args:
        key: of its digests, 32 bytes.
        shown: the open parameters whose values stand in the ledger.
        session_id: of the session.
    """

    __slots__ = ("_key", "_record_key", "_session_id", "_shown")

    def __init__(self, key: bytes, shown: Sequence[str], session_id: str) -> None:
        self._key = key
        self._record_key = record_key(key)
        self._session_id = session_id
        self._shown = frozenset(shown)

    def sealed(self, record: Mapping[str, Json], previous: bytes) -> bytes:
        """The canonical bytes of a record with its MAC, behind a record of the hash `previous`."""
        kind = record["kind"]
        if kind in _BEFORE_MAC:
            # Written once: `kind` is the last member before the MAC, and none before it has one.
            body, mark = encode(record), b'"kind":"%s"' % str(kind).encode()
            at = body.index(mark) + len(mark)
            first, rest = body[:at], body[at:]
        else:
            first = encode({name: value for name, value in record.items() if name < MAC})[:-1]
            other = {name: value for name, value in record.items() if name > MAC}
            rest = b"," + encode(other)[1:] if other else b"}"
        mac = record_mac(self._record_key, previous, first + rest)
        return b'%s,"mac":"%s"%s' % (first, mac.hex().encode(), rest)

    def call_key(self, seq: int) -> str:
        """The idempotency key of a call."""
        return call_key(self._key, self._session_id, seq).hex()

    def reference(self, ref: str) -> str:
        """What stands for the id that the caller gave a call.

        Raises:
            Rejected: R106 it is no text in UTF-8.
        """
        return reference_digest(self._key, ref).hex()

    def digest(self, given: Given) -> str:
        """What stands for an open argument, hex."""
        return digest(self._key, given[1], given[2]).hex()

    def call(
        self,
        seq: int,
        asked: Asked,
        states: Sequence[int],
        reference: str | None,
        execute: Mapping[str, Json] | None = None,
        digests: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Json]:
        """`call`; `execute` says which model makes it, `digests` are those that are known."""
        record: dict[str, Json] = {
            "kind": "call",
            "seq": seq,
            "call": asked.offer.text,
            "open": {
                given[0]: self._opened(asked.table, given, digests.get(given[0]))
                for given in asked.opened
            },
            "states": list(states),
            "key": self.call_key(seq),
        }
        if reference is not None:
            record["ref"] = reference
        return record if execute is None else {**record, "execute": execute}

    def _opened(self, table: ToolTable, given: Given, known: str | None) -> Mapping[str, Json]:
        name, kind, data = given
        record: dict[str, Json] = {"digest": known or self.digest(given)}
        if self._shown and open_name(table.tool.name, name) in self._shown:
            return {**record, "type": kind.decode(), "value": data.decode()}
        return record

    def result(self, result: object) -> str | None:
        """What stands for the result of a call; None where it has no canonical form."""
        if result is None:
            return None
        found = json_bytes(result, _MOST_RESULT)
        if type(found) is not bytes:
            return None
        return blake3(b"j" + found, key=self._key).hexdigest()


def outcome_record(
    seq: int,
    outcome: str,
    ms: int,
    observed: Mapping[str, Json] | None,
    unforeseen: bool,
    result: str | None,
    took: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """`outcome`; `took` is what the model took that made the call."""
    record: dict[str, Json] = {"kind": "outcome", "seq": seq, "outcome": outcome, "ms": ms}
    if unforeseen:
        record["unforeseen"] = True
    elif observed:
        record["observed"] = observed
    if result is not None:
        record["result"] = result
    return record if took is None else {**record, "took": took}


def refusal_record(tool: str, code: str) -> dict[str, Json]:
    """`refusal`; `tool` is one of the grammar's, or empty."""
    return {"kind": "refusal", "tool": tool or "unknown tool", "code": code}


def resolve_record(seq: int, outcome: str, observed: Mapping[str, Json] | None) -> dict[str, Json]:
    """`resolve`."""
    record: dict[str, Json] = {"kind": "resolve", "seq": seq, "outcome": outcome}
    return {**record, "observed": observed} if observed else record


def end_record(abandoned: bool) -> dict[str, Json]:
    """`end`."""
    return {"kind": "end", "abandoned": abandoned}


def observed_texts(table: ToolTable, observed: Observed | None) -> Mapping[str, Json] | None:
    """The observed values by name, as texts."""
    if observed is None or not table.observed:
        return None
    pairs = zip(table.observed, observed, strict=True)
    return {param.name: param.values[at] for param, at in pairs}


def opened_of(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """The open arguments of a `call` record, as it has them."""
    found = record["open"]
    return found if isinstance(found, dict) else {}
