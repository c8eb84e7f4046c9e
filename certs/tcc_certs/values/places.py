"""Reads the values of fields from arguments and answers.

Normative text: docs/spec/core.md, sections 2 and 3.  A state is a value, NONE (absent, or a null
that counts as absent) or UNKNOWN.  A value is a pair of a kind and its content.  Two values are
equal exactly if the pairs are equal: ``("s", text)``, ``("n", int or Fraction)``, ``("b", bool)``,
``("t", UTC milliseconds)``, ``("p", path)`` and ``("u", URL)`` in normal form, ``("z", None)``,
``("j", canonical bytes)``, ``("*", values)`` for a value that is not listed, ``("l", values)``,
``("r", states)``.  For a value that a session ledger has only by its digest, a validator uses
``("d", Digested)``.

Arguments and answers are untrusted.  A list has at most 1,000 elements, reading stops at the bounds
on nesting and size, and only methods of JSON's own Python types are called.  Cost: linear in the
values that are read.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import format_decimal
from tcc_certs.values.canonical import json_text
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    PathType,
    TextType,
    UrlType,
    json_of,
)
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    zone_of,
)
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE, canonical_number
from tcc_certs.values.text_pattern import pattern_of
from tcc_certs.values.types import encoded, located
from tcc_certs.values.zones import DAY

State: TypeAlias = "tuple[str, Any]"

NONE: State = ("none", None)
UNKNOWN: State = ("unknown", None)
REST: State = ("*", None)  # in a pattern, any value that is not listed


class Digested:
    """A value that a session ledger has by its digest.

    Each digest of a session has one object, so objects are equal exactly if the values are.

    Attributes:
        constants: the constants whose digests the ledger has.
        digest: hex; the whole digest, or its first half.
        value: the state of the value, if the ledger shows it.
        kind: the type byte of the value, if the ledger has it without the value; else empty.
        marks: for each pattern, and each constant after `under`, whether the value passes it.
    """

    __slots__ = ("__weakref__", "constants", "digest", "kind", "marks", "value")

    def __init__(self, digest: str = "", constants: Container[State] = ()) -> None:
        """Make a value whose digest is not the digest of a constant.

        Args:
            digest: hex; the whole digest, or its first half.
            constants: the constants whose digests the ledger has.
        """
        self.digest = digest
        self.constants = constants
        self.value: State | None = None
        self.kind = ""
        self.marks: dict[object, bool | None] = {}


MOST_WORK = 1 << 23  # most characters times positions of patterns, in a list or in a field
_JSON = frozenset({str, bool, int, float, Decimal, dict, list, tuple})


class Missing(Exception):
    """Raised if a place has no value."""


class Wrong(Exception):
    """Raised if a value has another type, exceeds a limit, is not listed or is not JSON.

    Attributes:
        code: R104 the value is not listed.  R105 its type or limits.  R106 it is not JSON.
    """

    def __init__(self, code: Code = Code.OPEN_VALUE) -> None:
        super().__init__(code)
        self.code = code


def at(value: object, steps: Sequence[str]) -> object:
    """Return the value at a place.

    The step ``*`` gives one flat list of the values inside, object members in order of names.

    Raises:
        Missing: the place has no value.
        Wrong: there are more than 1,000 elements, or a value is not JSON.
    """
    if len(steps) == 1 and type(value) is dict and steps[0] in value:
        return value[steps[0]] if steps[0] != "*" else _spread([value])
    level, many = [value], False
    for step in steps:
        if step == "*":
            many, level = True, _spread(level)
        else:
            level = members_named(level, step) or [_member(one, step) for one in level]
    return level if many else level[0]


def _spread(level: Sequence[object]) -> list[object]:
    found: list[object] = []
    for one in level:
        if type(one) is not dict and type(one) is not list and type(one) is not tuple:
            raise _nothing_in(one)
        if len(found) + len(one) > MOST_ELEMENTS:
            raise Wrong
        found += _members_of(one) if type(one) is dict else one
    return found


def members_named(level: Sequence[object], step: str) -> list[object]:
    """Return this member of each object; empty if a value is no object or lacks the member."""
    if set(map(type, level)) != {dict}:
        return []
    objects: Sequence[Any] = level
    try:
        return [one[step] for one in objects]
    except KeyError:
        return []


def _members_of(one: dict[object, object]) -> list[object]:
    """Return the members of an object sorted by name, because JSON objects have no order."""
    names = [name for name in one if type(name) is str]
    if len(names) < len(one):
        raise Wrong
    return [one[name] for name in sorted(names)]


def _member(one: object, step: str) -> object:
    if type(one) is dict:
        if step in one:
            return one[step]
    elif type(one) is list or type(one) is tuple:
        if step == "-1" and one:
            return one[-1]
        short = len(step) <= 9 and re.fullmatch("0|[1-9][0-9]*", step, re.ASCII) is not None
        if short and int(step) < len(one):
            return one[int(step)]
    raise _nothing_in(one)


def _nothing_in(one: object) -> Missing | Wrong:
    """Return the exception for a value without members: Missing for JSON, else Wrong."""
    return Missing() if one is None or type(one) in _JSON else Wrong()


def read(value: object, field: Field) -> State:
    """Return the state of a field in an object: a value, or NONE.

    Raises:
        Missing: the place has no value, and the field is not optional.
        Wrong: the value has another type, or is not listed.
    """
    try:
        found = at(value, field.steps)
    except Missing:
        if field.optional:
            return NONE
        raise
    if found is None and field.null:
        return NONE
    if field.type is None:
        return _listed(found, field.values)
    try:
        return typed(found, field.type)
    except Rejected as refusal:
        raise Wrong(refusal.code) from None


def answered(value: object, field: Field) -> State:
    """Return the state of an answer field.

    UNKNOWN if it is missing, of another type or not listed.
    """
    try:
        return read(value, field)
    except (Missing, Wrong):
        return UNKNOWN


def constant(text: str) -> State:
    """Return the value of the canonical text of a listed value."""
    return REST if text == "*" else plain(json_of(text))


@cache
def rest_of(values: tuple[str, ...]) -> State:
    """Return the state of a value that is none of these listed values."""
    return "*", frozenset([constant(text) for text in values if text and text != "*"])


def listed_states(field: Field) -> tuple[State, ...]:
    """Return the states of a listed field, in the order of the indices in calls of plans."""
    rest = rest_of(field.values)
    states = [rest if text == "*" else constant(text) for text in field.values if text]
    return (NONE, *states) if field.optional else tuple(states)


def plain(value: object) -> State:
    """Return a text, number, flag or null as a value.

    Raises:
        Rejected: R105, R106: it is no such value.
    """
    if value is None or type(value) is bool:
        return ("z", None) if value is None else ("b", value)
    if type(value) is str:
        _ensure_whole(value)
        return "s", value
    if type(value) is int and LEAST_WHOLE <= value <= MOST_WHOLE:
        return "n", value
    return "n", exact_number(canonical_number(value))


def exact_number(decimal: str) -> int | Fraction:
    """Return an exact number: an int if it is whole, else a Fraction."""
    return Fraction(decimal) if "." in decimal else int(decimal)


def decimal_of(value: int | Fraction) -> str:
    """Return the canonical decimal of an exact number."""
    if isinstance(value, int):  # the usual case
        return str(value)
    places = 0
    while value.denominator != 1:
        places, value = places + 1, value * 10
    return format_decimal(value.numerator, places)


def _ensure_whole(text: str) -> None:
    lone = any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else False
    ensure(not lone, Code.NO_VALUE, "value", "no lone surrogate", "one")


def _listed(value: object, values: tuple[str, ...]) -> State:
    if value is not None and type(value) not in _JSON:
        raise Wrong(Code.NO_VALUE)
    try:
        found = plain(value)
    except Rejected as refusal:
        found, code = REST, refusal.code
    else:
        if found in _by_text(values):
            return found
        code = Code.UNLISTED_VALUE
    if values[-1:] != ("*",):
        raise Wrong(Code.NO_VALUE if code is Code.NO_VALUE else Code.UNLISTED_VALUE)
    return rest_of(values)


@cache
def _by_text(values: tuple[str, ...]) -> frozenset[State]:
    return frozenset([constant(text) for text in values if text])


def typed(value: object, kind: FieldType) -> State:
    """Return a value of an open type.

    Raises:
        Wrong, Rejected: it has another type.
    """
    match kind:
        case TextType(least=least, most=most, pattern=pattern):
            if type(value) is not str or not value.isascii():  # ASCII texts have no lone surrogates
                encoded(kind, value)
                return plain(value)
            if not least <= len(value) <= most:
                raise Wrong
            if pattern is not None and not pattern_of(pattern).matches(value):
                raise Wrong
            if kind.among and value not in kind.among:
                raise Wrong
            return "s", value
        case NullableType(of=of):
            return ("z", None) if value is None else typed(value, of)
        case UnionType(of=types):
            return _one_of(value, types)
        case NumberType(low=low, high=high) if (
            type(value) is int and LEAST_WHOLE <= value <= MOST_WHOLE
        ):
            if low is not None and high is not None:
                ends = ends_of(low, high)
                if not ends[0] <= value <= ends[1]:
                    raise Wrong
            return "n", value
        case TimeType(zone=zone):
            return "t", moment(value, zone)
        case DateType(zone=zone):
            return "t", _midnight(value) - zone * 60_000
        case ListType():
            return _list(value, kind)
        case RecordType(fields=fields):
            if type(value) is not dict and not _may_hold(fields, type(value)):
                raise Wrong
            try:
                return "r", tuple([(one.name, read(value, one)) for one in fields])
            except Missing:
                raise Wrong from None
        case JsonType(most=most):
            return "j", json_text(value, most=most)
        case PathType():
            return "p", located(kind, value)
        case UrlType():
            return "u", located(kind, value)
        case _:
            encoded(kind, value)
            return plain(value)


def _may_hold(fields: Sequence[Field], kind: type) -> bool:
    """Return whether a value of this class, which is no object, may have these fields.

    An array may have fields at positions.  Any value may be a field as a whole.
    """
    if kind is list or kind is tuple:
        return any(one.steps and _POSITION.fullmatch(one.steps[0]) for one in fields) or not any(
            one.steps for one in fields
        )
    return not any(one.steps for one in fields)


_POSITION = re.compile(r"\*|-1|0|[1-9][0-9]*", re.ASCII)


def _one_of(value: object, types: Sequence[FieldType]) -> State:
    """Return the value of the first type that has it."""
    code = Code.OPEN_VALUE
    others = _NO_TEXTS if isinstance(value, str) else _TEXTS
    for kind in types:
        if type(kind) in others:
            continue
        try:
            state = typed(value, kind)
        except (Wrong, Rejected) as refusal:
            code = Code.NO_VALUE if refusal.code is Code.NO_VALUE else code
        else:
            return ("j", json_text(value)) if state[0] in ("l", "r") else state
    raise Wrong(code)


_TEXTS = frozenset({TextType, PathType, UrlType, TimeType, DateType})
_NO_TEXTS = frozenset({NumberType, FlagType})


@cache
def ends_of(low: str, high: str) -> tuple[int | Fraction, int | Fraction]:
    """Return the bounds of a number as exact numbers."""
    return exact_number(low), exact_number(high)


def _list(value: object, kind: ListType) -> State:
    if type(value) is not list and type(value) is not tuple:
        raise Wrong
    if not kind.least <= len(value) <= min(kind.most, MOST_ELEMENTS):
        raise Wrong
    if _is_matched(kind.of) and _work(value, kind) > MOST_WORK:
        raise Wrong
    items = _at_once(value, kind.of) or tuple([typed(item, kind.of) for item in value])
    if kind.distinct and len(set(items)) < len(items):
        raise Wrong
    return "l", items


@cache
def texts_in(kind: FieldType | None) -> tuple[TextType, ...]:
    """Return the types of all texts inside a value of this type."""
    match kind:
        case TextType():
            return (kind,)
        case ListType(of=of):
            return texts_in(of)
        case RecordType(fields=fields):
            return tuple([text for one in fields for text in texts_in(one.type)])
        case UnionType(of=types):
            return tuple([text for one in types for text in texts_in(one)])
    return ()


@cache
def _is_matched(kind: FieldType | None) -> bool:
    """Return whether any text inside a value of this type has a pattern."""
    return any(text.pattern is not None for text in texts_in(kind))


def _work(value: object, kind: FieldType) -> int:
    """Return the characters times positions for matching all texts in a value."""
    match kind:
        case TextType(pattern=str() as pattern) if type(value) is str:
            return len(value) * pattern_of(pattern).size
        case UnionType(of=types):
            return sum([_work(value, one) for one in types])
        case ListType(of=of) if type(value) is list or type(value) is tuple:
            return sum([_work(item, of) for item in value]) if _is_matched(of) else 0
        case RecordType(fields=fields):
            found = 0
            for one in fields:
                if one.type is not None and _is_matched(one.type):
                    with suppress(Missing, Wrong):
                        found += _work(at(value, one.steps), one.type)
            return found
    return 0


def _at_once(value: Sequence[object], of: FieldType) -> tuple[State, ...]:
    """Return the elements of a list of plain texts or records, if no element needs its own check.

    Else empty.
    """
    if isinstance(of, TextType):
        return _short_texts(value, of)
    if not isinstance(of, RecordType) or set(map(type, value)) != {dict}:
        return ()
    columns: list[list[tuple[str, State]]] = []
    for one in of.fields:
        if len(one.steps) != 1 or one.steps[0] == "*" or one.type is None:
            return ()
        cells = members_named(value, one.steps[0])
        if not cells or (one.null and None in cells):
            return ()
        found: Sequence[State] = _short_texts(cells, one.type)
        found = found or [typed(c, one.type) for c in cells]
        columns.append(list(zip(repeat(one.name), found, strict=False)))
    return tuple(zip(repeat("r"), zip(*columns, strict=True), strict=False))


def _short_texts(value: Sequence[Any], of: FieldType) -> tuple[State, ...]:
    return tuple(zip(repeat("s"), value, strict=False)) if _are_short(value, of) else ()


def _are_short(value: Sequence[object], of: FieldType | None) -> bool:
    """Return whether all values are short ASCII texts that a type without pattern accepts."""
    if not isinstance(of, TextType) or of.pattern is not None or of.among:
        return False
    if set(map(type, value)) != {str}:
        return False
    texts: Sequence[Any] = value
    sizes = set(map(len, texts))
    most = min(of.most, _SHORT_TEXT)  # the texts are joined into one copy
    return of.least <= min(sizes) and max(sizes) <= most and "".join(texts).isascii()


_SHORT_TEXT = 1 << 12


# Times.

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = date(1970, 1, 1).toordinal()


def moment(value: object, zone: int | None) -> int:
    """Return the UTC milliseconds of a time; finer digits are cut off.

    Raises:
        Wrong: it is no time, or it has no zone and `zone` is None.
    """
    found = _TIME.fullmatch(value) if type(value) is str else None
    if found is None:
        raise Wrong
    day, hours, minutes, seconds, part, said = found.groups()
    offset = zone if said is None else zone_of(said)
    if offset is None or int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        raise Wrong
    clock = (int(hours) * 60 + int(minutes) - offset) * 60_000 + int(seconds) * 1000
    return _midnight(day) + clock + int((part or "0")[:3].ljust(3, "0"))


_FIRST, _BEHIND = ((day - _EPOCH) * DAY for day in (1, date.max.toordinal() + 1))


def is_moment(ms: int, kind: TimeType | DateType) -> bool:
    """Return whether some text of the type means these UTC milliseconds."""
    if isinstance(kind, DateType):
        midnight = ms + kind.zone * 60_000
        return _FIRST <= midnight < _BEHIND and midnight % DAY == 0
    # a text may name its own zone, less than a day from UTC
    return _FIRST - DAY < ms < _BEHIND + DAY


def _midnight(value: object) -> int:
    if type(value) is not str or _DATE.fullmatch(value) is None:
        raise Wrong
    try:
        day = date(int(value[:4]), int(value[5:7]), int(value[8:]))
    except ValueError:
        raise Wrong from None
    return (day.toordinal() - _EPOCH) * DAY
