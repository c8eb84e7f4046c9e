"""A reference writer of sessions: writes what it is told, with the states that brute force finds.

It shares the line writer, the digests' layout is written out once more, and of the validator's walk
it knows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from blake3 import blake3

from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import uuid7
from tests.oracle_session.brute import Brute, Did, observed_of

KEY = bytes(range(32))
NONCE = bytes.fromhex("5e" * 16)
CONTEXT = "tcc.session/1.0 digest key"
RECORDS = "tcc.session/1.1 record key"


class SessionWriter:
    """Writes one session, a record at a time."""

    def __init__(
        self,
        artifact: CheckedArtifact,
        *,
        key: bytes = KEY,
        show: Sequence[str] = (),
        started_ms: int = 1_700_000_000_000,
    ) -> None:
        self.artifact, self.key, self.show = artifact, key, sorted(show)
        self.core = artifact.core
        self.brute = Brute(artifact)
        manifest = artifact.file.manifest
        header = {
            "kind": "session",
            "schema": "tcc.session/1.1",
            "started_ms": started_ms,
            "nonce": NONCE.hex(),
            "artifact": artifact.file.digest.hex(),
            "grammar": manifest.grammar,
            "grammar_version": manifest.version,
            "root_state": manifest.root.hex(),
            "monitors": [monitor.text for monitor in self.core.monitors],
            "arguments": {"show": self.show},
            "key_commitment": blake3(key, derive_key_context=CONTEXT).hexdigest(),
        }
        self.records: list[dict[str, Any]] = [named(header)]

    def call(
        self, tool: str, listed: Mapping[str, str] = {}, ref: str | None = None, **opened: Any
    ) -> int:
        """A call with listed values by their texts, open ones as JSON values; its number."""
        did = self.did(tool, listed, opened)
        seq = len(self.brute.session) + 1
        record = {
            "kind": "call",
            "seq": seq,
            "call": self._text(did),
            "open": {name: self._opened(tool, name, value) for name, value in opened.items()},
            "states": sorted(self.brute.places()),
            "key": self._call_key(seq),
        }
        if ref is not None:
            record["ref"] = blake3(b"ref" + ref.encode(), key=self.key).hexdigest()
        self.records.append(record)
        self.brute.session.append(did)
        return seq

    def _call_key(self, seq: int) -> str:
        session = bytes.fromhex(self.records[0]["session_id"].replace("-", ""))
        data = b"key" + session + seq.to_bytes(8, "little")
        return blake3(data, key=self.key).digest(16).hex()

    def did(self, tool: str, listed: Mapping[str, str], opened: Mapping[str, Any]) -> Did:
        """The call for brute force."""
        number = [found.name for found in self.core.tools].index(tool)
        values = [
            None if p.observed else p.values.index(listed.get(p.name, ""))
            for p in self.core.tools[number].parameters
        ]
        return Did(tool=number, values=tuple(values), opened=dict(opened))

    def done(self, told: Any = None, /, *, unforeseen: bool = False, **observed: str) -> None:
        """The outcome of the last call, which told something."""
        record = self._outcome("done")
        if unforeseen:
            record["unforeseen"] = True
        elif observed:
            record["observed"] = observed
        if told is not None:
            record["result"] = blake3(b"j" + encode(told), key=self.key).hexdigest()
        self._settle(len(self.brute.session), "done", observed, unforeseen)

    def tell(self, seq: int, outcome: str, **observed: str) -> None:
        """The outcome of a call that need not be the last one."""
        record: dict[str, Any] = {"kind": "outcome", "seq": seq, "outcome": outcome, "ms": 12}
        if observed:
            record["observed"] = observed
        self.records.append(record)
        self._settle(seq, outcome, observed, False)

    def failed(self) -> None:
        """The last call did not happen."""
        self._outcome("failed")
        self.brute.session[-1].outcome = "failed"

    def unknown(self) -> None:
        """Nobody knows of the last call."""
        self._outcome("unknown")

    def resolve(self, seq: int, outcome: str, **observed: str) -> None:
        """It is known now."""
        record: dict[str, Any] = {"kind": "resolve", "seq": seq, "outcome": outcome}
        if observed:
            record["observed"] = observed
        self.records.append(record)
        self._settle(seq, outcome, observed, False)

    def refusal(self, tool: str, code: str) -> None:
        """A call that was not made."""
        self.records.append({"kind": "refusal", "tool": tool, "code": code})

    def end(self, abandoned: bool = False) -> None:
        """The end."""
        self.records.append({"kind": "end", "abandoned": abandoned})

    def ledger(self) -> bytes:
        """The bytes."""
        return sealed(self.records, key=self.key)

    def _outcome(self, outcome: str) -> dict[str, Any]:
        record = {"kind": "outcome", "seq": len(self.brute.session), "outcome": outcome, "ms": 12}
        self.records.append(record)
        return record

    def _settle(
        self, seq: int, outcome: str, observed: Mapping[str, str], unforeseen: bool
    ) -> None:
        did = self.brute.session[seq - 1]
        did.outcome = outcome
        params = self.core.tools[did.tool].parameters
        places = observed_of(self.core, did.tool)
        if outcome == "done" and not unforeseen:
            did.answer = tuple(params[at].values.index(observed[params[at].name]) for at in places)

    def _text(self, did: Did) -> str:
        tool = self.core.tools[did.tool]
        there = [
            f"{quoted(param.name)}={param.values[at]}"
            for param, at in zip(tool.parameters, did.values, strict=True)
            if at is not None and param.values[at]
        ]
        return quoted(tool.name) + (f"({','.join(there)})" if there else "")

    def _opened(self, tool: str, name: str, value: Any) -> dict[str, Any]:
        types = {p.name: p.type for t in self.core.tools if t.name == tool for p in t.opened}
        kind, data = typed(type(types[name]).__name__, value)
        found = {"digest": blake3(kind.encode() + data.encode(), key=self.key).hexdigest()}
        if f"{quoted(tool)}.{quoted(name)}" in self.show:
            found |= {"type": kind, "value": data}
        return found


def typed(kind: str, value: Any) -> tuple[str, str]:
    """Type byte and canonical text of a value; of small values, written plainly."""
    if kind == "TextType":
        return "s", value
    if kind == "NumberType":
        return "n", format(Decimal(repr(value)).normalize(), "f")
    if kind == "FlagType":
        return "b", "true" if value else "false"
    return "j", json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def quoted(name: str) -> str:
    """A name as canonical texts have it."""
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


def named(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header with the identity that follows from it."""
    body = {name: value for name, value in header.items() if name != "session_id"}
    return {**body, "session_id": uuid7(body["started_ms"], blake3(encode(body)).digest())}


def sealed(
    records: Sequence[Mapping[str, Any]], head: bytes = FIRST_HEAD, key: bytes = KEY
) -> bytes:
    """Records as chained lines; in a session of 1.1 each that has no MAC gets its own."""
    lines = []
    macs = bool(records) and records[0].get("schema") != "tcc.session/1.0"
    for record in records:
        if macs and "mac" not in record:
            record = {**record, "mac": mac_of(record, head, key)}
        line, head = seal(record, head)
        lines.append(line)
    return b"".join(lines)


def mac_of(record: Mapping[str, Any], previous: bytes, key: bytes = KEY) -> str:
    """The MAC of a record behind one of that hash."""
    body = encode({name: value for name, value in record.items() if name not in ("mac", "~")})
    derived = blake3(key, derive_key_context=RECORDS).digest()
    return blake3(b"mac" + previous + body, key=derived).hexdigest()[:32]
