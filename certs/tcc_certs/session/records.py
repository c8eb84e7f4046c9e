"""The records of a session: which fields each kind has, and in what form.

Normative text: docs/spec/session.md, section 3.  What the fields have to say is for
:mod:`tcc_certs.session.replay`.  Cost: one pattern match a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeGuard

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_forms import HEX, SIZE, TEXT, TIME, TRUE, UUID, Format

SCHEMA = "tcc.session/1.1"
WITHOUT_MACS = "tcc.session/1.0"
MAC = "mac"
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
OBSERVED: Format = ("an object of texts, not empty", _is_observed)
STATES: Format = ("a list of states", _is_states)
OUTCOME: Format = ("done, failed or unknown", lambda value: value in OUTCOMES)
RESOLUTION: Format = ("done or failed", lambda value: value in RESOLVED)

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
_SEALED = {kind: {**fields, MAC: KEY} for kind, fields in _REQUIRED.items()}
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
    required, optional = (_SEALED if macs else _REQUIRED)[kind], _OPTIONAL[kind]
    if kind in ("asked", "budget") or "execute" in record or "took" in record:
        # What is said of models: a session without any has none of it to load.
        from tcc_certs.session.execution_forms import FIELDS

        needed, more = FIELDS.get(kind, ({}, {}))
        required, optional = {**required, **needed}, {**optional, **more}
    for name, value in record.items():
        form = required.get(name) or optional.get(name)
        if form is None:
            place = f"line {line}: {clip(name, 80)}"
            raise Rejected(Code.LEDGER_SCHEMA, place, "no such field", value)
        if not form[1](value):
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", form[0], value)
    for name in required:
        if name not in record:
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", "the field", "none")
    return kind
