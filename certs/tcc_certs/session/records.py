"""The records of a session: fields of each kind, the header, values of a call, refusal codes.

Normative text: docs/spec/session.md, sections 2, 3 and 6.  The header is of this artifact, and says
what follows.  A value that is shown has its type, and its digest is the one of its bytes where the
key is known; without the key, digests of shown values are the same exactly where the values are.
Of a value that is not shown nothing is known but that.  What else the fields have to say is for
:mod:`tcc_certs.session.replay`.
Cost: one pattern match a field; linear in the arguments of a call, for the header in the tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from tcc_certs.core.model import Core, Tool
from tcc_certs.errors import Code, Rejected, clip, ensure
from tcc_certs.formats.codec import Json, blake, encode, written
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import HEX, SIZE, TEXT, TIME, TRUE, UUID, Format, size, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.findings import Findings
from tcc_certs.session.machine import Observed, Offer, SessionMachine
from tcc_certs.session.monitors import Seen
from tcc_certs.values.canonical import JSON, NUMBER, digest, json_value, key_commitment, utf8
from tcc_certs.values.declared import PLAIN
from tcc_certs.values.types import OpenParameter, check_text, type_byte

if TYPE_CHECKING:
    from tcc_certs.values.places import FieldType, State

SCHEMA = "tcc.session/1.1"
WITHOUT_MACS = "tcc.session/1.0"
MAC = "mac"
HIDDEN = ""  # the type of a value that is not shown
OUTCOMES = ("done", "failed", "unknown")
RESOLVED = ("done", "failed")

_short_hex = re.compile("[0-9a-f]{32}").fullmatch


def _is_texts(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_arguments(value: Json) -> bool:
    return isinstance(value, dict) and list(value) == ["show"] and _is_texts(value["show"])


def _is_open(value: Json) -> bool:
    return isinstance(value, dict) and all(_is_open_value(item) for item in value.values())


def _is_open_value(value: Json) -> bool:
    if not isinstance(value, dict) or not HEX[1](value.get("digest", "")):
        return False
    if len(value) == 1:
        return True
    shown = sorted(value) == ["digest", "type", "value"]
    return shown and value["type"] in ("b", "j", "n", "s") and isinstance(value["value"], str)


def _is_answers(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and len(value) > 0
        and all(_is_unknown(item) or _is_open_value(item) for item in value.values())
    )


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
ANSWERS: Format = ("an object of values as in open, or unknown, not empty", _is_answers)
OBSERVED: Format = ("an object of texts, not empty", _is_observed)
STATES: Format = ("a list of states", _is_states)
OUTCOME: Format = ("done, failed or unknown", lambda value: value in OUTCOMES)
RESOLUTION: Format = ("done or failed", lambda value: value in RESOLVED)

WHO: Format = (
    "a text of 1 to 255 characters",
    lambda value: isinstance(value, str) and 0 < len(value) <= 255,
)

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
    "session": {"given": OPEN, "principal": HEX, "parent": UUID, "shadow": TRUE},
    "call": {"at_ms": TIME},
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
    for name, value in record.items():
        form = fields.get(name)
        if form is None:
            place = f"line {line}: {clip(name, 80)}"
            raise Rejected(Code.LEDGER_SCHEMA, place, "no such field", value)
        if not form[1](value):
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", form[0], value)
    if kind == "resolve" and ("who" in record or "at_ms" in record):
        required = {**required, "who": WHO, "at_ms": TIME}  # both or neither
    for name in required:
        if name not in record:
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", "the field", "none")
    return kind


# Why a gate refuses: values are looked at before plans, plans before monitors.

UNKNOWN_TOOL = "unknown tool"  # stands in records for a name that is not the grammar's

REFUSALS: Mapping[Code, str] = {
    Code.UNKNOWN_TOOL: "the grammar has no such tool",
    Code.UNDECLARED_ARGUMENT: "the tool has no such parameter",
    Code.MISSING_ARGUMENT: "an argument is missing",
    Code.UNLISTED_VALUE: "the value is none of those that are listed",
    Code.OPEN_VALUE: "the value is of another type, or outside its limits",
    Code.NO_VALUE: "the value is none that JSON can hold without loss",
    Code.NOT_PLANNED: "no plan has this call here",
    Code.MONITOR_FORBIDS: "a statement over open parameters forbids it",
    Code.STATEMENT_FORBIDS: "a statement that is left to the run forbids it",
    Code.MAY_NOT_FINISH: "no plan ends here",
    Code.NO_MODEL: "no model that may make the call fits what is left of the budget",
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
    """

    name: str
    shown: frozenset[tuple[int, str]]
    key: bytes | None
    macs: bool
    shadow: bool
    started_ms: int
    given: Mapping[str, Json]


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


# The values of a recorded call: its open arguments, and what was observed once it was made.


class Arguments:
    """The open arguments of a session's calls.

    Attributes:
        hidden: names of open parameters of which a call had a value that is not shown.
        shown: the same, of values that are shown.
    """

    def __init__(self, machine: SessionMachine, header: SessionHeader) -> None:
        self._core = machine.core
        self._monitors = machine.monitors
        self._statements = machine.statements
        self._header = header
        self._digest_of: dict[bytes, str] = {}  # of each shown value, by a hash of it
        self._value_of: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        self.shown: set[str] = set()

    def given(self) -> Mapping[str, State]:
        """What the session was given, as statements see it.

        Raises:
            Rejected: S101 a statement speaks of what is not shown; S204, S205 as :meth:`read`.
        """
        if not self._core.given:
            return {}
        named = frozenset() if self._statements is None else self._statements.named
        for one in self._core.given:
            entry = self._header.given.get(one.name)
            if not isinstance(entry, dict):
                continue
            name = f"session.{written(one.name)}"
            expected = "type and value, as a statement speaks of it"
            shown = "value" in entry
            place = f"given: {written(one.name)}"
            ensure(shown or one.name not in named, Code.SESSION_HEADER, place, expected, entry)
            (self.shown if shown else self.hidden).add(name)
            if shown:
                self._checked(place, one, entry)
        return {} if self._statements is None else self._statements.given(self._header.given)

    def read(
        self, offer: Offer, found: Json
    ) -> tuple[tuple[Seen, ...], Mapping[str, State] | None]:
        """The call as monitors see it, and its fields for the statements of version 1.2.

        Raises:
            Rejected: S203 which arguments there are, or which are shown; S204 a value that is none
                of its type; S205 a digest that is not of its value.
        """
        tool = self._core.tools[offer.tool]
        given = found if isinstance(found, dict) else {}
        _check_names(tool, given)
        opened: dict[str, object] = {}
        numbers: dict[str, str] = {}
        values: dict[str, tuple[str, str]] = {}
        for parameter in tool.opened:
            if parameter.name not in given:
                continue
            entry = given[parameter.name]
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            opened[parameter.name] = str(members["digest"])
            value = self._value(offer.tool, parameter, members)
            kind = _byte(parameter)
            values[parameter.name] = (HIDDEN, "") if value is None else (kind.decode(), value)
            if value is not None and kind == NUMBER:
                numbers[parameter.name] = value
        if any(given.at is not None for given in tool.opened):
            _check_places(tool, values)
        if any(param.at is not None for param in tool.parameters):
            _check_listed(tool, offer, values)
        seen = self._monitors.see(offer.tool, offer.values, opened, numbers)
        statements = self._statements
        if statements is None:
            return seen, None
        return seen, statements.states(offer.tool, offer.values, values)

    def told(self, offer: Offer, outcome: str, record: Record) -> tuple[Mapping[str, State], bool]:
        """The open answers of a call, and whether one that is shown is not known.

        Raises:
            Rejected: S210 there are others than are shown, or some of a call that was not done;
                S204, S205 as :meth:`read`.
        """
        tool = self._core.tools[offer.tool]
        due = {
            one.name: one for one in tool.answers if (offer.tool, one.name) in self._header.shown
        }
        found = record.get("answers")
        given: Mapping[str, Json] = found if isinstance(found, dict) else {}
        needed = [name for name, one in due.items() if not one.optional and outcome == "done"]
        there = set(needed) <= set(given) <= set(due if outcome == "done" else ())
        expected = f"{sorted(needed)} of {sorted(due)}" if due else "no field"
        ensure(there, Code.SESSION_OBSERVED, "answers", expected, sorted(given))
        stray = found is not None and not given
        ensure(not stray, Code.SESSION_OBSERVED, "answers", "no field, as none is there", "one")
        values: dict[str, tuple[str, str]] = {}
        for name, entry in given.items():
            members: Mapping[str, Json] = entry if isinstance(entry, dict) else {}
            if "unknown" in members:
                values[name] = HIDDEN, ""
                continue
            value = self._value(offer.tool, due[name], members, "answers")
            values[name] = (_byte(due[name]).decode(), value or "")
        lacks = any(not kind for kind, _ in values.values())
        statements = self._statements
        return ({} if statements is None else statements.told(offer.tool, values)), lacks

    def _value(
        self,
        tool: int,
        parameter: OpenParameter,
        members: Mapping[str, Json],
        where: str = "open",
    ) -> str | None:
        """The text of a value that is shown."""
        name = open_name(self._core.tools[tool].name, parameter.name)
        shown = (tool, parameter.name) in self._header.shown
        expected = (
            "type and value, as it is shown" if shown else "a digest alone, as it is not shown"
        )
        ensure(
            shown == ("value" in members), Code.SESSION_OPEN, f"{where}: {name}", expected, members
        )
        (self.shown if shown else self.hidden).add(name)
        return self._checked(f"{where}: {name}", parameter, members) if shown else None

    def _checked(self, place: str, parameter: OpenParameter, members: Mapping[str, Json]) -> str:
        """The text of a value that is shown, which is of its type and has this digest."""
        kind, text = _byte(parameter), str(members["value"])
        byte = kind.decode()
        ensure(members["type"] == byte, Code.SESSION_VALUE, place, byte, members["type"])
        try:
            _check_text(parameter, text)
        except Rejected as refusal:
            raise Rejected(Code.SESSION_VALUE, place, refusal.expected, refusal.found) from None
        self._check_digest(place, kind, utf8(text, "value"), str(members["digest"]))
        return text

    def _check_digest(self, place: str, kind: bytes, data: bytes, found: str) -> None:
        if self._header.key is not None:
            expected = digest(self._header.key, kind, data).hex()
            ensure(found == expected, Code.SESSION_DIGEST, place, expected, found)
        value = blake(kind + data)
        expected = self._digest_of.setdefault(value, found)
        ensure(found == expected, Code.SESSION_DIGEST, place, f"{expected}, as before", found)
        other = self._value_of.setdefault(found, value)
        ensure(other == value, Code.SESSION_DIGEST, place, "a digest of its own", found)


def _byte(parameter: OpenParameter) -> bytes:
    return type_byte(parameter.type) if isinstance(parameter.type, PLAIN) else JSON


def _check_text(parameter: OpenParameter, text: str) -> None:
    if isinstance(parameter.type, PLAIN):
        check_text(parameter.type, text)
        return
    from tcc_certs.values.places import check_json  # here: a core of 1.1 has none of it

    check_json(parameter.type, text)


def _check_places(tool: Tool, values: Mapping[str, tuple[str, str]]) -> None:
    """A field at a place in an argument that is shown is what stands there.

    Raises:
        Rejected: S204 it is not.
    """
    from tcc_certs.values.places import placed_text  # here: a core of 1.1 has none of it

    for field in tool.opened:
        head = _head_of(tool, field.at, values)
        kind, text = values.get(field.name, (HIDDEN, ""))
        if head is None or (field.name in values and kind == HIDDEN):
            continue
        found = placed_text(field, json_value(head))
        place = f"open: {open_name(tool.name, field.name)}"
        ensure(found == text, Code.SESSION_VALUE, place, found or "nothing at its place", text)


def _check_listed(tool: Tool, offer: Offer, values: Mapping[str, tuple[str, str]]) -> None:
    """A listed argument at a place in an argument that is shown is what stands there.

    Raises:
        Rejected: S204 it is not.
    """
    from tcc_certs.values import places  # here: a core of 1.1 has none of it

    for param, index in zip(tool.parameters, offer.values, strict=True):
        head = None if param.observed else _head_of(tool, param.at, values)
        if head is None or index is None or param.at is None:
            continue
        of = places.Field(
            name=param.name, steps=param.at, values=param.values, optional=param.optional
        )
        text = param.values[index]
        due = places.constant(text) if text else places.NONE
        found = places.answered({param.at[0]: json_value(head)}, of)
        place = f"open: {open_name(tool.name, param.at[0])}"
        ensure(found == due, Code.SESSION_VALUE, place, text or "nothing at its place", head)


def _head_of(
    tool: Tool, at: tuple[str, ...] | None, values: Mapping[str, tuple[str, str]]
) -> str | None:
    """The argument in which a place lies, where all of it is shown; None of other ones."""
    if not at:
        return None
    whole = any(one.name == at[0] and _is_whole(one.type) for one in tool.opened)
    kind, text = values.get(at[0], (HIDDEN, ""))
    return text if whole and kind == JSON.decode() else None


def _is_whole(of: FieldType) -> bool:
    """Whether a ledger has all of a value: of a record it has the fields alone."""
    from tcc_certs.values.places import ListType, RecordType

    return _is_whole(of.of) if isinstance(of, ListType) else not isinstance(of, RecordType)


def _check_names(tool: Tool, given: Mapping[str, Json]) -> None:
    expected = {parameter.name for parameter in tool.opened}
    needed = {parameter.name for parameter in tool.opened if not parameter.optional}
    there = needed <= set(given) <= expected
    ensure(
        there, Code.SESSION_OPEN, "open", f"{sorted(needed)} of {sorted(expected)}", sorted(given)
    )


def answer_of(core: Core, offer: Offer, outcome: str, record: Record) -> Observed | None:
    """The observed values of a call that was done, else None.

    Of an answer that was not foreseen the values are those that are known.

    Raises:
        Rejected: S209, S210 they are not those of the tool, or there are some of a call that was
            not done.
    """
    lacks = "unforeseen" in record
    if outcome != "done" or not offer.observed:
        ensure(not lacks, Code.SESSION_OUTCOME, "unforeseen", "no field", outcome)
        ensure("observed" not in record, Code.SESSION_OBSERVED, "observed", "no field", "one")
        return () if outcome == "done" else None
    found = record.get("observed")
    given: Mapping[str, Json] = found if isinstance(found, dict) else {}
    params = [core.tools[offer.tool].parameters[at] for at in offer.observed]
    names = sorted(param.name for param in params)
    there = set(given) < set(names) if lacks else sorted(given) == names
    ensure(there, Code.SESSION_OBSERVED, "observed", names, sorted(given))
    answer: list[int | None] = []
    for param in params:
        if param.name not in given:
            answer.append(None)
            continue
        value, values = given[param.name], param.values
        ensure(value in values, Code.SESSION_OBSERVED, "observed", " or ".join(values), value)
        answer.append(values.index(str(value)))
    return tuple(answer)
