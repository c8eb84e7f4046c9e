"""The records of a session: fields of each kind, the header, refusal codes.

Normative text: docs/spec/session.md, sections 2 and 6.  The header is of this artifact, and says
what follows.  What else the fields have to say is for :mod:`tcc_certs.session.values` and
:mod:`tcc_certs.session.replay`.
Cost: one pattern match a field; for the header linear in the tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats import ledger_schema
from tcc_certs.formats.codec import Json, blake, encode, written
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import HEX, SIZE, TEXT, TIME, TRUE, UUID, Format, size, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.findings import Findings
from tcc_certs.values.canonical import key_commitment
from tcc_certs.values.numbers import is_decimal

SCHEMA = "tcc.session/1.1"
WITHOUT_MACS = "tcc.session/1.0"
MAC = "mac"
OUTCOMES = ("done", "failed", "unknown")
RESOLVED = ("done", "failed")
MAX_UNDER_WAY = 64  # calls together
MAX_BEHIND = 256  # records behind the oldest call under way, for another to begin

_short_hex = re.compile("[0-9a-f]{32}").fullmatch


def _is_texts(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_arguments(value: Json) -> bool:
    return isinstance(value, dict) and list(value) == ["show"] and _is_texts(value["show"])


def _is_open(value: Json) -> bool:
    return isinstance(value, dict) and all(map(_is_open_value, value.values()))


def _is_open_value(value: Json) -> bool:
    if not isinstance(value, dict) or not HEX[1](value.get("digest", "")):
        return False
    if len(value) == 1:
        return True
    if "type" in value or "value" in value:
        shown = value.get("type") in ("b", "j", "n", "s") and isinstance(value.get("value"), str)
    else:
        shown = True
    marks = value.get("like", "")
    return (
        shown
        and not set(value) - _MEMBERS
        and isinstance(marks, str)
        and not marks.strip("01-")
        and isinstance(value.get("of", []), list)
    )


_MEMBERS = frozenset(["digest", "type", "value", "of", "like"])
_ELEMENTS = (["of"], ["like", "of"])  # of a list that was answered the elements alone


def _is_answers(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and len(value) > 0
        and all(_is_answer(item) for item in value.values())
    )


def _is_answer(value: Json) -> bool:
    if isinstance(value, dict) and sorted(value) in _ELEMENTS:
        value = {**value, "digest": "0" * 64}
    return _is_unknown(value) or _is_open_value(value)


def _is_unknown(value: Json) -> bool:
    return isinstance(value, dict) and list(value) == ["unknown"] and value["unknown"] is True


def _is_observed(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and len(value) > 0
        and all(isinstance(item, str) for item in value.values())
    )


def _is_states(value: Json) -> bool:
    return isinstance(value, list) and all(type(q) is int for q in value)


SEQ: Format = ("an integer of at least 1", lambda value: type(value) is int and value >= 1)
KEY: Format = (
    "32 lower-case hex digits",
    lambda value: isinstance(value, str) and _short_hex(value) is not None,
)
BOOL: Format = ("true or false", lambda value: isinstance(value, bool))
TEXTS: Format = ("a list of texts", _is_texts)
ARGUMENTS: Format = ("an object of show, a list of names", _is_arguments)
OPEN: Format = ("an object of digests, type and value with them where shown", _is_open)
DIGESTS: Format = (
    "a list of digests", lambda value: _is_texts(value) and all(map(HEX[1], value)),
)  # fmt: skip
ANSWERS: Format = ("an object of values as in open, or unknown, not empty", _is_answers)
OBSERVED: Format = ("an object of texts, not empty", _is_observed)
STATES: Format = ("a list of states", _is_states)
OUTCOME: Format = ("done, failed or unknown", lambda value: value in OUTCOMES)
RESOLUTION: Format = ("done or failed", lambda value: value in RESOLVED)

WHO: Format = (
    "a text of 1 to 255 characters",
    lambda value: isinstance(value, str) and 0 < len(value) <= 255,
)


def _is_across(value: Json) -> bool:
    if not isinstance(value, dict) or sorted(value) != ["account", "at_ms", "attempt", "draws"]:
        return False
    draws = value["draws"]
    whole = TIME[1](value["at_ms"]) and SIZE[1](value["attempt"]) and HEX[1](value["account"])
    return whole and isinstance(draws, list) and all(map(_is_draw, draws))


def _is_draw(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and sorted(value) == ["amount", "key", "left", "limit"]
        and HEX[1](value["key"])
        and SIZE[1](value["limit"])
        and all(
            isinstance(text, str) and is_decimal(text) for text in (value["amount"], value["left"])
        )
    )


ACROSS: Format = ("an object of account, at_ms, attempt and draws", _is_across)
_REQUIRED: Mapping[str, Mapping[str, Format]] = {
    "session": {
        "kind": TEXT, "schema": TEXT, "session_id": UUID, "started_ms": TIME, "nonce": KEY,
        "artifact": HEX, "grammar": TEXT, "grammar_version": TEXT, "root_state": HEX,
        "monitors": TEXTS, "arguments": ARGUMENTS, "key_commitment": HEX,
    },
    "call": {"kind": TEXT, "seq": SEQ, "call": TEXT, "open": OPEN, "states": STATES, "key": KEY},
    "outcome": {"kind": TEXT, "seq": SEQ, "outcome": OUTCOME, "ms": SIZE},
    "budget": {"kind": TEXT},
    "asked": {"kind": TEXT},
    "refusal": {"kind": TEXT, "tool": TEXT, "code": TEXT},
    "resolve": {"kind": TEXT, "seq": SEQ, "outcome": RESOLUTION},
    "end": {"kind": TEXT, "abandoned": BOOL},
}  # fmt: skip
_OPTIONAL: Mapping[str, Mapping[str, Format]] = {
    "session": {},
    "call": {"ref": HEX},
    "outcome": {"observed": OBSERVED, "unforeseen": TRUE, "result": HEX},
    "budget": {},
    "asked": {},
    "refusal": {},
    "resolve": {"observed": OBSERVED},
    "end": {},
}
# What ledgers may have since their records have MACs.
_MORE: Mapping[str, Mapping[str, Format]] = {
    "session": {
        "given": OPEN,
        "constants": DIGESTS,
        "principal": HEX,
        "parent": UUID,
        "shadow": TRUE,
    },
    "call": {"at_ms": TIME, "across": ACROSS},
    "outcome": {"answered": TRUE, "answers": ANSWERS},
    "refusal": {"made": TRUE},
    "resolve": {"who": WHO, "at_ms": TIME, "answers": ANSWERS},
}
_SEALED = {kind: {**fields, MAC: KEY} for kind, fields in _REQUIRED.items()}
_SEALED_OPTIONAL = {kind: {**fields, **_MORE.get(kind, {})} for kind, fields in _OPTIONAL.items()}
# For ledgers without MACs and with them, and for each kind: the fields that are required, and all.
_FIELDS = [
    {kind: (required[kind], {**optional[kind], **required[kind]}) for kind in _REQUIRED}
    for required, optional in ((_REQUIRED, _OPTIONAL), (_SEALED, _SEALED_OPTIONAL))
]
KINDS = tuple(_REQUIRED)


def check_record(record: Record, line: int, *, macs: bool) -> str:
    """The kind of `record`, all of whose fields have their form.

    Args:
        macs: whether every record of the session has a MAC.

    Raises:
        Rejected: L103 an unknown kind, a field that is missing, unknown or malformed.
    """
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in _REQUIRED:
        raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: kind", KINDS, kind)
    required, fields = _FIELDS[macs][kind]
    if kind in ("asked", "budget") or "execute" in record or "took" in record:
        # What is said of models: a session without any has none of it to load.
        from tcc_certs.session.execution_forms import FIELDS

        needed, more = FIELDS.get(kind, ({}, {}))
        required, fields = {**required, **needed}, {**fields, **more, **needed}
    if kind == "resolve" and ("who" in record or "at_ms" in record):
        required = {**required, "who": WHO, "at_ms": TIME}  # both or neither
    ledger_schema.check_fields(record, line, required, fields)
    return kind


# Calls and outcomes of which a ledger has nothing but what it has of most: bytes of these forms are
# canonical, and every field of them has its form, so nobody has to parse and write them again.
_ASCII = r"[ !#-\[\]-~]*"  # nothing of it is escaped
_OPEN = (
    r'"([A-Za-z_][A-Za-z0-9_]*)":\{"digest":"([0-9a-f]{64})"'
    rf'(?:,"type":"([bjns])","value":"({_ASCII})")?\}}'
)
_opened = re.compile(_OPEN).findall
_call = re.compile(
    rf'\{{(?:"at_ms":([1-9][0-9]{{0,13}}),)?"call":"({_ASCII})","key":"([0-9a-f]{{32}})"'
    r',"kind":"call"(,"mac":"([0-9a-f]{32})"),"open":\{'
    rf'((?:{_OPEN}(?:,(?!\}})|(?=\}})))*)\}}(?:,"ref":"([0-9a-f]{{64}})")?,"seq":([1-9][0-9]{{0,14}})'
    r',"states":\[((?:-1|0|[1-9][0-9]{0,14})(?:,(?:0|[1-9][0-9]{0,14}))*)\]\}'
).fullmatch
_outcome = re.compile(
    r'\{"kind":"outcome"(,"mac":"([0-9a-f]{32})"),"ms":(0|[1-9][0-9]{0,14})'
    r',"outcome":"(done|failed|unknown)"(?:,"result":"([0-9a-f]{64})")?,"seq":([1-9][0-9]{0,14})\}'
).fullmatch


def plain_record(body: bytes) -> tuple[dict[str, Json], bytes] | None:
    """The record of a call or an outcome, and its canonical bytes without its MAC.

    None: the line says more, or is none; then :func:`check_record` says what it is.

    Args:
        body: a line without its link, of a ledger whose records have MACs.
    """
    line = body.decode("latin-1")  # a character a byte
    found: dict[str, Json]
    if match := _outcome(line):
        member, mac, ms, outcome, result, seq = match.groups()
        found = {"kind": "outcome", "mac": mac, "ms": int(ms), "outcome": outcome, "seq": int(seq)}
        more = {"result": result}
    elif match := _call(line):
        at_ms, call, key, member, mac, opened, *_, ref, seq, states = match.groups()
        entries = _opened(opened) if opened else []
        names = [entry[0] for entry in entries]
        if names != sorted(set(names)):
            return None
        values = {
            name: {"digest": one, "type": kind, "value": shown} if kind else {"digest": one}
            for name, one, kind, shown in entries
        }
        found = {"call": call, "key": key, "kind": "call", "mac": mac, "open": values,
                 "seq": int(seq), "states": list(map(int, states.split(",")))}  # fmt: skip
        more = {"at_ms": at_ms and int(at_ms), "ref": ref}
    else:
        return None
    if any(more.values()):
        found |= {name: value for name, value in more.items() if value}
        found = dict(sorted(found.items()))
    return found, body.replace(member.encode(), b"", 1)


# Why a gate refuses: values are looked at before plans, plans before monitors.

UNKNOWN_TOOL = "unknown tool"  # stands in records for a name that is not the grammar's

REFUSALS: Mapping[Code, str] = {
    Code.UNKNOWN_TOOL: "the grammar has no such tool",
    Code.UNDECLARED_ARGUMENT: "the tool has no such parameter",
    Code.MISSING_ARGUMENT: "an argument is missing",
    Code.UNLISTED_VALUE: "the value is none of those that are listed",
    Code.OPEN_VALUE: "the value is of another type, outside its limits, or has a member that is"
    " not declared",
    Code.NO_VALUE: "the value is none that JSON can hold without loss",
    Code.NOT_PLANNED: "no plan has this call here",
    Code.MONITOR_FORBIDS: "a statement over open parameters forbids it",
    Code.MANY_EARLIER: "more earlier calls may stand against it than are looked at",
    Code.STATEMENT_FORBIDS: "a statement that is left to the run forbids it",
    Code.MAY_NOT_FINISH: "no plan ends here",
    Code.NO_MODEL: "no model that may make the call fits the remaining budget",
    Code.MANY_STATES: "too many outcomes are unknown",
    Code.ENDED: "the session has ended",
    Code.ALREADY_DONE: "a call of this identity is in the ledger",
    Code.NESTED_CALL: "another call of the same thread or task is not over",
    Code.NOT_WRITTEN: "the ledger cannot be written",
    Code.SERVER_AWAY: "the server of this tool is away",
    Code.MANY_WAITING: "too many calls wait for those that are under way",
}
# Those that a record of a refusal may have: of a call, in a session that has not ended.
RECORDED = frozenset(REFUSALS) - {Code.MAY_NOT_FINISH, Code.ENDED, Code.NOT_WRITTEN}
# Of a call after an answer that was not foreseen, in ledgers of releases whose sessions it ended.
RETIRED = frozenset({"R302"})
# Those of calls that a shadow session makes all the same: what the grammar says, and no more.
SHADOWED = RECORDED - {
    Code.NO_MODEL, Code.ALREADY_DONE, Code.NESTED_CALL, Code.SERVER_AWAY, Code.MANY_WAITING,
}  # fmt: skip


# The first record.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """What the rest of a session depends on.

    Attributes:
        shown: pairs of a tool's index and the name of an open parameter whose values are shown.
        key: of the digests, where it is known; name: the session's id.
        macs: whether records have MACs.
        shadow: whether calls that are refused may be made: such a session shows nothing.
        started_ms: when it began; given: what it was given, as the record has it.
        constants: the digests of the constants that statements name.
    """

    name: str
    shown: frozenset[tuple[int, str]]
    key: bytes | None
    macs: bool
    shadow: bool
    started_ms: int
    given: Mapping[str, Json]
    constants: tuple[str, ...] = ()


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
) -> SessionHeader:
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
    return SessionHeader(
        name=text(record, "session_id"),
        shown=_shown(record["arguments"], core),
        key=key,
        macs=MAC in record,
        shadow="shadow" in record,
        started_ms=size(record, "started_ms"),
        given=_given(record, core),
        constants=_constants(record),
    )


def _given(record: Record, core: Core) -> Mapping[str, Json]:
    """What a session was given: all that has to be, and nothing that is not declared."""
    found = record.get("given")
    if not core.given:
        ensure(found is None, Code.SESSION_HEADER, "given", "no field", found)
        return {}
    given = found if isinstance(found, dict) else {}
    declared = {one.name for one in core.given}
    needed = {one.name for one in core.given if not one.optional}
    there = isinstance(found, dict) and needed <= set(given) <= declared
    expected = f"{sorted(needed)} of {sorted(declared)}"
    ensure(there, Code.SESSION_HEADER, "given", expected, sorted(given))
    return given


def _constants(record: Record) -> tuple[str, ...]:
    found = record.get("constants")
    return tuple(map(str, found)) if isinstance(found, list) else ()


_CODES = {"session_id": Code.SESSION_ID, "monitors": Code.SESSION_MONITORS}


def _compare(record: Record, name: str, expected: Json, findings: Findings) -> None:
    if record[name] != expected:
        findings.add(_CODES.get(name, Code.SESSION_HEADER), 1, name, expected, record[name])


def _shown(arguments: Json, core: Core) -> frozenset[tuple[int, str]]:
    names = arguments["show"] if isinstance(arguments, dict) else ()
    known = {
        open_name(tool.name, parameter.name): (at, parameter.name)
        for at, tool in enumerate(core.tools)
        for parameter in (*tool.opened, *tool.answers)
    }
    listed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    found = [known[name] for name in listed if name in known]
    ordered = listed == sorted(set(listed)) and len(found) == len(listed)
    expected = "open parameters and answers as tool.name, strictly increasing"
    ensure(ordered, Code.SESSION_HEADER, "arguments", expected, arguments)
    return frozenset(found)


def open_name(tool: str, parameter: str) -> str:
    """An open parameter as a header names it."""
    return f"{written(tool)}.{written(parameter)}"
