"""Fields and their types: lists, records, times, pointers to places, time zones.

Normative text: docs/spec/core.md, sections 2 and 3.  A core needs only these declarations.
:mod:`tcc_certs.values.places` reads the values of fields.  Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.values.declared import JsonType, NumberType, OpenType, PathType, TextType, UrlType

MOST_ELEMENTS = 1000  # most elements of a list
_MOST_STEPS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeType:
    """An RFC 3339 time; `zone` is the offset in minutes of texts without a zone.

    None: they are refused.
    """

    zone: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DateType:
    """A date ``YYYY-MM-DD``.

    Its value is the midnight in the zone `zone` (minutes ahead of UTC).
    """

    zone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    """An array of `least` to `most` values; with `distinct`, no two are equal."""

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
    """A value of the first of these types that has it; at most one type is a list, one an object.

    A list or an object is compared as a whole, like a value of the type `json`.
    """

    of: tuple[FieldType, ...]


FieldType: TypeAlias = (
    "OpenType | TimeType | DateType | ListType | RecordType | NullableType | UnionType"
)


def fits_union(types: Sequence[FieldType]) -> bool:
    """Return whether the types may form a union, so that no type hides the values of another."""
    plain = not any(isinstance(one, JsonType | NullableType | UnionType) for one in types)
    structures = [type(one) for one in types if isinstance(one, ListType | RecordType)]
    distinct = len(set(types)) == len(types) and len(set(structures)) == len(structures)
    return len(types) > 1 and plain and distinct


def hides(kind: FieldType | None, inside: bool = False) -> bool:
    """Return whether a union inside a list or object has values with the same canonical JSON.

    In canonical JSON texts, paths and URLs are strings; numbers and moments are numbers.
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
        type: the type of an open field.
        values: the canonical texts of a listed field; ``*`` as the last one means any other value.
        steps: the steps of its pointer.
        null: whether null counts as absent; only for an optional answer.
    """

    name: str
    steps: tuple[str, ...]
    type: FieldType | None = None
    values: tuple[str, ...] = ()
    optional: bool = False
    null: bool = False


def steps_of(pointer: str, path: str, code: Code) -> tuple[str, ...]:
    """Return the steps of a pointer of RFC 6901.

    Raises:
        Rejected: `code` at `path`: the text is no pointer, or has more than 64 steps.
    """
    if not pointer:
        return ()
    bad = not pointer.startswith("/") or re.search("~(?![01])", pointer) is not None
    ensure(not bad, code, path, "a pointer of RFC 6901", pointer)
    parts = pointer[1:].split("/")
    ensure(len(parts) <= _MOST_STEPS, code, path, f"at most {_MOST_STEPS} steps", len(parts))
    return tuple([part.replace("~1", "/").replace("~0", "~") for part in parts])


def pointer_of(steps: Sequence[str]) -> str:
    """Return the pointer with these steps."""
    return "".join([f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps])


def zone_of(text: str) -> int | None:
    """Return the minutes ahead of UTC of ``Z``, ``utc`` or ``+hh:mm``; None for other texts."""
    if text in ("utc", "Z", "z"):
        return 0
    if re.fullmatch("[+-][0-9]{2}:[0-9]{2}", text, re.ASCII) is None:
        return None
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    return (-1 if text[0] == "-" else 1) * (60 * hours + minutes)
