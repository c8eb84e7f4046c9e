"""The first record of a session: it is one of this artifact, and says what follows.

Normative text: docs/spec/session.md, section 3.  Cost: linear in the record and in the tools.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.hashes import blake
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.formats.texts import written
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.findings import Findings
from tcc_certs.session.records import MAC, SCHEMA, WITHOUT_MACS
from tcc_certs.values.digest import key_commitment


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the rest of a session depends on.

    Attributes:
        shown: pairs of a tool's index and the name of an open parameter whose values are shown.
        key: of the digests, where it is known; name: the session's id.
        macs: whether records have MACs.
    """

    name: str
    shown: frozenset[tuple[int, str]]
    key: bytes | None
    macs: bool


def has_macs(record: Record) -> bool:
    """Whether the ledger is one of version 1.1, whose records have MACs; else it is of 1.0.

    Raises:
        Rejected: D102 another schema.
    """
    schema = record.get("schema")
    if isinstance(schema, str):
        known = schema in (SCHEMA, WITHOUT_MACS)
        ensure(known, Code.UNKNOWN_VERSION, "schema", f"{SCHEMA}, {WITHOUT_MACS}", schema)
    return schema != WITHOUT_MACS


def read_header(
    record: Record, artifact: CheckedArtifact, key: bytes | None, findings: Findings
) -> Header:
    """The header, which names this artifact.

    Args:
        record: its fields in their form.
        key: of the digests, from who asks; None: it is not known.

    Raises:
        Rejected: L202 another artifact's; S101 shows what is no open parameter; S104 another key.
    """
    left_out = ("session_id", MAC)
    body = encode({name: value for name, value in record.items() if name not in left_out})
    _compare(record, "session_id", uuid7(size(record, "started_ms"), blake(body)), findings)
    digest, found = artifact.file.digest.hex(), text(record, "artifact")
    ensure(found == digest, Code.LEDGER_ARTIFACT, "artifact", digest, found)
    manifest, core = artifact.file.manifest, artifact.core
    _compare(record, "grammar", manifest.grammar, findings)
    _compare(record, "grammar_version", manifest.version, findings)
    _compare(record, "root_state", manifest.root.hex(), findings)
    _compare(record, "monitors", [monitor.text for monitor in core.monitors], findings)
    if key is not None:
        expected, found = key_commitment(key).hex(), text(record, "key_commitment")
        ensure(found == expected, Code.SESSION_KEY, "key_commitment", expected, found)
    return Header(
        name=text(record, "session_id"),
        shown=_shown(record["arguments"], core),
        key=key,
        macs=MAC in record,
    )


_CODES = {"session_id": Code.SESSION_ID, "monitors": Code.SESSION_MONITORS}


def _compare(record: Record, name: str, expected: Json, findings: Findings) -> None:
    if record[name] != expected:
        findings.add(_CODES.get(name, Code.SESSION_HEADER), 1, name, expected, record[name])


def _shown(arguments: Json, core: Core) -> frozenset[tuple[int, str]]:
    names = arguments["show"] if isinstance(arguments, dict) else ()
    known = {
        open_name(tool.name, parameter.name): (at, parameter.name)
        for at, tool in enumerate(core.tools)
        for parameter in tool.opened
    }
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    found = [known[name] for name in listed if name in known]
    ordered = listed == sorted(set(listed)) and len(found) == len(listed)
    expected = "open parameters as tool.parameter, strictly increasing"
    ensure(ordered, Code.SESSION_HEADER, "arguments", expected, arguments)
    return frozenset(found)


def open_name(tool: str, parameter: str) -> str:
    """An open parameter as a header names it."""
    return f"{written(tool)}.{written(parameter)}"
