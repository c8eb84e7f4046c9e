"""The records of a session: the members of each kind, the header, and the codes of refusals.

Normative text: docs/spec/session.md, sections 4 and 8.  :mod:`tcc_certs.session.entries` reads
values.  :mod:`tcc_certs.session.replay` checks records against earlier records.

Cost: one pattern match for each member; for the header linear in the core.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats import ledger_schema
from tcc_certs.formats.codec import Json, blake, encode, written
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import HEX, SIZE, TEXT, TIME, TRUE, UUID, Format, size, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.nodes import statement_text
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.findings import Findings
from tcc_certs.session.execution_forms import FIELDS
from tcc_certs.values.canonical import key_commitment
from tcc_certs.values.numbers import is_decimal

SCHEMA = "tcc.session/2"
MAC = "mac"
OUTCOMES = ("done", "failed", "unknown")
RESOLVED = ("done", "failed")
VERDICTS = ("approved", "denied")
MAX_UNDER_WAY = 64  # most calls under way together
MAX_BEHIND = 256  # most records after the oldest call under way when another call begins

_short_hex = re.compile("[0-9a-f]{32}").fullmatch


def _is_texts(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_show(value: Json) -> bool:
    return isinstance(value, dict) and list(value) == ["show"] and _is_texts(value["show"])


def _is_entries(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, dict) for entry in value.values())


def _is_observed(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_states(value: Json) -> bool:
    return isinstance(value, list) and all(type(q) is int for q in value)


def _is_ids(value: Json) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(KEY[1], value))


def _is_draw(value: Json) -> bool:
    if not isinstance(value, dict) or sorted(set(value) - {"key"}) != _DRAW:
        return False
    decimals = [value[name] for name in ("amount", "bound", "left")]
    exact = all(isinstance(number, str) and is_decimal(number) for number in decimals)
    return exact and SIZE[1](value["limit"]) and HEX[1](value.get("key", "0" * 64))


_DRAW = ["amount", "bound", "left", "limit"]


def _is_across(value: Json) -> bool:
    if not isinstance(value, dict) or sorted(value) != ["account", "at_ms", "attempt", "draws"]:
        return False
    draws = value["draws"]
    whole = TIME[1](value["at_ms"]) and SIZE[1](value["attempt"]) and HEX[1](value["account"])
    return whole and isinstance(draws, list) and all(map(_is_draw, draws))


SEQ: Format = ("an integer of at least 1", lambda value: type(value) is int and value >= 1)
KEY: Format = (
    "32 lower-case hex digits",
    lambda value: isinstance(value, str) and _short_hex(value) is not None,
)
BOOL: Format = ("true or false", lambda value: isinstance(value, bool))
TEXTS: Format = ("a list of texts", _is_texts)
SHOW: Format = ("an object of show, a list of names", _is_show)
ENTRIES: Format = ("an object of entries", _is_entries)
DIGESTS: Format = (
    "a list of digests, not empty",
    lambda value: _is_texts(value) and len(value) > 0 and all(map(HEX[1], value)),
)
ANSWERS: Format = (
    "an object of entries, not empty", lambda value: _is_entries(value) and bool(value)
)  # fmt: skip
OBSERVED: Format = ("an object of texts", _is_observed)
STATES: Format = ("a list of states", _is_states)
OUTCOME: Format = ("done, failed or unknown", lambda value: value in OUTCOMES)
RESOLUTION: Format = ("done or failed", lambda value: value in RESOLVED)
VERDICT: Format = ("approved or denied", lambda value: value in VERDICTS)
IDS: Format = ("a list of ids, not empty", _is_ids)
WHO: Format = (
    "a text of 1 to 255 characters",
    lambda value: isinstance(value, str) and 0 < len(value) <= 255,
)
ACROSS: Format = ("an object of account, at_ms, attempt and draws", _is_across)

_REQUIRED: Mapping[str, Mapping[str, Format]] = {
    "session": {
        "schema": TEXT, "session_id": UUID, "started_ms": TIME, "nonce": KEY, "artifact": HEX,
        "grammar": TEXT, "grammar_version": TEXT, "root_state": HEX, "statements": TEXTS,
        "arguments": SHOW, "key_commitment": HEX,
    },
    "call": {"seq": SEQ, "call": TEXT, "open": ENTRIES, "states": STATES, "key": KEY},
    "outcome": {"seq": SEQ, "outcome": OUTCOME, "ms": SIZE},
    "resolve": {"seq": SEQ, "outcome": RESOLUTION},
    "refusal": {"tool": TEXT, "code": TEXT},
    "ask": {
        "id": KEY, "statement": SIZE, "who": TEXT, "tool": TEXT, "call": TEXT, "open": ENTRIES,
        "at_ms": TIME, "expires_ms": SIZE,
    },
    "approval": {"id": KEY, "verdict": VERDICT, "who": WHO, "at_ms": TIME},
    "budget": {},
    "asked": {},
    "roll": {},
    "end": {"abandoned": BOOL},
}  # fmt: skip
_OPTIONAL: Mapping[str, Mapping[str, Format]] = {
    "session": {
        "given": ENTRIES, "constants": DIGESTS, "principal": HEX, "parent": UUID, "shadow": TRUE,
        "continues": HEX,
    },
    "call": {"ref": HEX, "at_ms": TIME, "across": ACROSS, "approvals": IDS},
    "outcome": {
        "observed": OBSERVED, "unforeseen": TRUE, "result": HEX, "answered": TRUE,
        "answers": ANSWERS, "at_ms": TIME,
    },
    "resolve": {
        "observed": OBSERVED, "answered": TRUE, "answers": ANSWERS, "who": WHO, "at_ms": TIME,
    },
    "refusal": {"statement": SIZE, "made": TRUE},
    "end": {"at_ms": TIME},
}  # fmt: skip
_ALWAYS: Mapping[str, Format] = {"kind": TEXT, MAC: KEY}


def _members(kind: str) -> tuple[Mapping[str, Format], Mapping[str, Format]]:
    needed, more = FIELDS.get(kind, ({}, {}))
    required = {**_ALWAYS, **_REQUIRED[kind], **needed}
    return required, {**required, **_OPTIONAL.get(kind, {}), **more}


_FIELDS = {kind: _members(kind) for kind in _REQUIRED}  # required members, and all members
KINDS = tuple(_REQUIRED)


def check_record(record: Record, line: int) -> str:
    """Return the kind of a record, after checking the format of all its members.

    Raises:
        Rejected: L103: the kind is unknown, or a member is missing, unknown or malformed.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: kind", KINDS, kind)
    required, fields = _FIELDS[kind]
    ledger_schema.check_fields(record, line, required, fields)
    return kind


# The most frequent forms of calls and outcomes. Bytes that match are canonical, and their members
# have the right formats. So these records need no JSON parser and no encoder.
_ASCII = r"[ !#-\[\]-~]*"  # characters that JSON does not escape
_HEX64 = "[0-9a-f]{64}"
_ENTRY = (
    rf'"([A-Za-z_][A-Za-z0-9_]*)":\{{"digest":"({_HEX64})"'
    rf'(?:,"type":"([bjnstz])","value":"({_ASCII})")?\}}'
)
_opened = re.compile(_ENTRY).findall
_call = re.compile(
    rf'\{{(?:"at_ms":([1-9][0-9]{{0,13}}),)?"call":"({_ASCII})","key":"([0-9a-f]{{32}})"'
    r',"kind":"call"(,"mac":"([0-9a-f]{32})"),"open":\{'
    rf'((?:{_ENTRY}(?:,(?!\}})|(?=\}})))*)\}}(?:,"ref":"({_HEX64})")?,"seq":([1-9][0-9]{{0,14}})'
    r',"states":\[((?:-1|0|[1-9][0-9]{0,14})(?:,(?:0|[1-9][0-9]{0,14}))*)\]\}'
).fullmatch
_outcome = re.compile(
    r'\{(?:"at_ms":([1-9][0-9]{0,13}),)?"kind":"outcome"(,"mac":"([0-9a-f]{32})")'
    r',"ms":(0|[1-9][0-9]{0,14}),"outcome":"(done|failed|unknown)"'
    rf'(?:,"result":"({_HEX64})")?,"seq":([1-9][0-9]{{0,14}})\}}'
).fullmatch


def plain_record(body: bytes) -> tuple[dict[str, Json], bytes] | None:
    """Return the record of a line in a frequent form, and its canonical bytes without its MAC.

    Args:
        body: a line without its link.

    Returns:
        None if the line has another form.  The caller then parses it and uses :func:`check_record`.
    """
    line = body.decode("latin-1")  # one character for each byte
    start = line[2:6]
    if start == "at_m":
        comma = line.find(",")
        start = line[comma + 2 : comma + 6]
    found: dict[str, Json]
    if start == "kind":
        match = _outcome(line)
        if match is None:
            return None
        at_ms, member, mac, ms, outcome, result, seq = match.groups()
        found = {"kind": "outcome", "mac": mac, "ms": int(ms), "outcome": outcome, "seq": int(seq)}
        if result:
            found["result"] = result
    elif start == "call":
        match = _call(line)
        if match is None:
            return None
        at_ms, call, key, member, mac, opened, *_, ref, seq, states = match.groups()
        values: dict[str, Json] = {}
        last = ""
        for name, digest, kind, shown in _opened(opened) if opened else ():
            if name <= last:
                return None
            last = name
            entry = {"digest": digest, "type": kind, "value": shown} if kind else {"digest": digest}
            values[name] = entry
        held: list[Json] = [int(state) for state in states.split(",")]
        found = {"call": call, "key": key, "kind": "call", "mac": mac, "open": values,
                 "seq": int(seq), "states": held}  # fmt: skip
        if ref:
            found["ref"] = ref
    else:
        return None
    if at_ms:
        found["at_ms"] = int(at_ms)
    return found, body.replace(member.encode(), b"", 1)


# Reasons of refusals, by code.

UNKNOWN_TOOL = "unknown tool"  # recorded in place of a name that is not in the core

REFUSALS: Mapping[Code, str] = {
    Code.UNKNOWN_TOOL: "the grammar has no such tool",
    Code.UNDECLARED_ARGUMENT: "the tool has no such argument",
    Code.MISSING_ARGUMENT: "an argument is missing",
    Code.UNLISTED_VALUE: "the value is not listed",
    Code.OPEN_VALUE: "the value has another type, is outside its limits, or has a member that is"
    " not declared",
    Code.NO_VALUE: "JSON cannot hold the value without loss",
    Code.NOT_PLANNED: "no plan continues with this call",
    Code.STATEMENT_REFUSES: "a statement refuses the call",
    Code.TOTAL_EXCEEDED: "a total would exceed its bound",
    Code.MAY_NOT_FINISH: "the session may not finish here",
    Code.NO_MODEL: "no model that may make the call fits the remaining budget",
    Code.EVALUATION_CUT: "a statement would have to look at too many earlier calls",
    Code.OVERDUE: "a call that is owed is overdue",
    Code.DENIED: "a person denied the call",
    Code.CLOCK_BEHIND: "the clock shows a time long before the last record",
    Code.PENDING: "a person has to decide about the call",
    Code.MANY_STATES: "too many outcomes are unknown",
    Code.ENDED: "the session has ended",
    Code.ALREADY_DONE: "the ledger has a call with this id",
    Code.NESTED_CALL: "another call of the same thread or task has not returned",
    Code.NOT_WRITTEN: "the ledger cannot be written",
    Code.SERVER_AWAY: "the server of this tool is away",
    Code.MANY_WAITING: "too many calls wait for calls that are under way",
    Code.MANY_QUESTIONS: "too many questions to persons are open",
}
# The codes that a refusal record may have.
RECORDED = frozenset(REFUSALS) - {
    Code.MAY_NOT_FINISH, Code.ENDED, Code.NOT_WRITTEN, Code.PENDING,
}  # fmt: skip
# The codes of refused calls that a shadow session makes anyway. It asks nobody, so it records R211.
SHADOWED = (RECORDED | {Code.PENDING}) - {
    Code.NO_MODEL, Code.CLOCK_BEHIND, Code.ALREADY_DONE, Code.NESTED_CALL, Code.SERVER_AWAY,
    Code.MANY_WAITING, Code.MANY_QUESTIONS,
}  # fmt: skip
# By code, the kinds of statements that refuse with it.
REFUSING: Mapping[str, frozenset[str]] = {
    Code.STATEMENT_REFUSES: frozenset({"require", "forbid", "limit"}),
    Code.EVALUATION_CUT: frozenset({"require", "forbid", "limit"}),
    Code.TOTAL_EXCEEDED: frozenset({"total"}),
    Code.OVERDUE: frozenset({"owe"}),
    Code.DENIED: frozenset({"ask"}),
    Code.PENDING: frozenset({"ask"}),
}


# The first record.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """The parts of the first record that the rest of the session depends on.

    Attributes:
        name: the `session_id`.
        shown: pairs of a tool and an open field whose values are shown.
        key: the key of the digests, if it is known.
        shadow: whether refused calls may be made.  Such a session claims nothing.
        given: the entries of the attributes that it starts with.
        constants: the digests of the constants of statements.
    """

    name: str
    started_ms: int
    shown: frozenset[tuple[str, str]]
    key: bytes | None
    shadow: bool
    given: Mapping[str, Json]
    constants: tuple[str, ...]


def read_header(
    record: Record,
    artifact: CheckedArtifact,
    key: bytes | None,
    findings: Findings,
    first: Record | None = None,
) -> SessionHeader:
    """Return the header of a session of this artifact.

    Args:
        record: a record whose members are well formed.
        key: the key of the digests; None: it is not known.
        first: the first record of the ledger, which determines the session id; None: `record`.

    Raises:
        Rejected: D102 another schema.  L202 another artifact.  S101 a shown field does not exist,
            or `given` is missing or not allowed.  S104 another key.
    """
    schema = text(record, "schema")
    ensure(schema == SCHEMA, Code.UNKNOWN_VERSION, "schema", SCHEMA, schema)
    _compare(record, "session_id", session_id(record if first is None else first), findings)
    digest, found = artifact.file.digest.hex(), text(record, "artifact")
    ensure(found == digest, Code.LEDGER_ARTIFACT, "artifact", digest, found)
    manifest, core = artifact.file.manifest, artifact.core
    _compare(record, "grammar", manifest.grammar, findings)
    _compare(record, "grammar_version", manifest.version, findings)
    _compare(record, "root_state", manifest.root.hex(), findings)
    _compare(record, "statements", [statement_text(one) for one in core.statements], findings)
    if key is not None:
        expected, found = key_commitment(key).hex(), text(record, "key_commitment")
        ensure(found == expected, Code.SESSION_KEY, "key_commitment", expected, found)
    given, constants = record.get("given"), record.get("constants")
    starts = any(not isinstance(one, Learned) for one in core.given)
    expected = "an object of attributes" if starts else "no member"
    ensure(starts == (given is not None), Code.SESSION_HEADER, "given", expected, given)
    return SessionHeader(
        name=text(record, "session_id"),
        started_ms=size(record, "started_ms"),
        shown=shown_of(record, core),
        key=key,
        shadow="shadow" in record,
        given=given if isinstance(given, dict) else {},
        constants=tuple(map(str, constants)) if isinstance(constants, list) else (),
    )


def session_id(record: Record) -> str:
    """Return the `session_id` that follows from the other members of a header."""
    left_out = ("session_id", "continues", MAC)
    body = encode({name: value for name, value in record.items() if name not in left_out})
    return uuid7(size(record, "started_ms"), blake(body))


_CODES = {"session_id": Code.SESSION_ID, "statements": Code.SESSION_STATEMENTS}


def _compare(record: Record, name: str, expected: Json, findings: Findings) -> None:
    if record[name] != expected:
        findings.add(_CODES.get(name, Code.SESSION_HEADER), 1, name, expected, record[name])


def shown_of(record: Record, core: Core) -> frozenset[tuple[str, str]]:
    """Return the fields whose values a header shows, as pairs of a tool and a field.

    Raises:
        Rejected: S101: the core has no such open field, or the names are not increasing.
    """
    arguments = record["arguments"]
    names = arguments["show"] if isinstance(arguments, dict) else ()
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    known = {
        open_name(tool.name, field.name): (tool.name, field.name)
        for tool in core.tools if listed
        for field in (*tool.arguments, *tool.answers) if field.type is not None
    }  # fmt: skip
    found = [known[name] for name in listed if name in known]
    ordered = listed == sorted(set(listed)) and len(found) == len(listed)
    expected = "open fields as tool.field, strictly increasing"
    ensure(ordered, Code.SESSION_HEADER, "arguments", expected, arguments)
    return frozenset(found)


def open_name(tool: str, field: str) -> str:
    """Return the name of an open field in a header."""
    return f"{written(tool)}.{written(field)}"
