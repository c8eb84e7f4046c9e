"""Fields of version 1.2: types of lists, records and times, pointers to places, time zones.

Normative text: docs/spec/core.md, section 7.  A core is read with these declarations alone; which
value stands in a field is decided in :mod:`tcc_certs.values.places`.  Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.values.declared import JsonType, NumberType, OpenType, PathType, TextType, UrlType

MOST_ELEMENTS = 1000  # of a list
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeType:
    """RFC 3339; `zone` is the offset in minutes of a text without one, None: there is none."""

    zone: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DateType:
    """``YYYY-MM-DD``, its midnight at an offset of `zone` minutes."""

    zone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    """An array of `least` to `most` values; no two equal where `distinct`."""

    of: FieldType
    least: int = 0
    most: int = MOST_ELEMENTS
    distinct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """An object with fields, each at its place.

    Other members are ignored in an answer, and refused in an argument
    (:mod:`tcc_certs.values.members`).
    """

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NullableType:
    """A value of a type, or null."""

    of: FieldType


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionType:
    """A value of the first of these types that has it: at most one of them a list, one an object.

    A list or an object is compared as a whole, like a value of the type `json`.
    """

    of: tuple[FieldType, ...]


FieldType: TypeAlias = (
    "OpenType | TimeType | DateType | ListType | RecordType | NullableType | UnionType"
)


def fits_union(types: Sequence[FieldType]) -> bool:
    """Return whether a union may have these types, which no value of another one hides."""
    plain = not any(isinstance(one, JsonType | NullableType | UnionType) for one in types)
    structures = [type(one) for one in types if isinstance(one, ListType | RecordType)]
    distinct = len(set(types)) == len(types) and len(set(structures)) == len(structures)
    return len(types) > 1 and plain and distinct


def hides(kind: FieldType | None, inside: bool = False) -> bool:
    """Return whether a union inside a list or object has values that canonical JSON writes alike.

    Texts, paths and URLs are strings there, and numbers and moments are numbers.
    """
    match kind:
        case NullableType(of=of):
            return hides(of, inside)
        case ListType(of=of):
            return hides(of, True)
        case RecordType(fields=fields):
            return any(hides(one.type, True) for one in fields)
        case UnionType(of=types):
            kinds = {_VALUE_KINDS.get(type(one), type(one)) for one in types}
            alike = any(len(kinds & group) > 1 for group in _WRITTEN_ALIKE)
            return (inside and alike) or any(hides(one, inside) for one in types)
    return False


_VALUE_KINDS: dict[type, type] = {DateType: TimeType}
_WRITTEN_ALIKE = ({TextType, PathType, UrlType}, {NumberType, TimeType})


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a call, a record or a session.

    Attributes:
        type: of an open one; values: canonical texts of a listed one, ``*`` last for the rest.
        steps: of its pointer.
        null: whether null counts as left out; only of an optional answer.
    """

    name: str
    steps: tuple[str, ...]
    type: FieldType | None = None
    values: tuple[str, ...] = ()
    optional: bool = False
    null: bool = False


def steps_of(pointer: str, path: str, code: Code) -> tuple[str, ...]:
    """The steps of a pointer of RFC 6901.

    Raises:
        Rejected: `code` at `path`: it is none, or has more than 64 steps.
    """
    if not pointer:
        return ()
    bad = not pointer.startswith("/") or re.search("~(?![01])", pointer) is not None
    ensure(not bad, code, path, "a pointer of RFC 6901", pointer)
    parts = pointer[1:].split("/")
    ensure(len(parts) <= _MOST_STEPS, code, path, f"at most {_MOST_STEPS} steps", len(parts))
    return tuple([part.replace("~1", "/").replace("~0", "~") for part in parts])


def pointer_of(steps: Sequence[str]) -> str:
    """The pointer of steps."""
    return "".join([f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps])


def zone_of(text: str) -> int | None:
    """Minutes ahead of UTC of ``Z``, ``utc`` or ``+hh:mm``; None of what is no zone."""
    if text in ("utc", "Z", "z"):
        return 0
    if re.fullmatch("[+-][0-9]{2}:[0-9]{2}", text, re.ASCII) is None:
        return None
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    return (-1 if text[0] == "-" else 1) * (60 * hours + minutes)
