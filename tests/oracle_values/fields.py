"""Fields of :mod:`tests.oracle_values.language` as certs has them, and some to draw from."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tcc_certs.errors import Code
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType, text_of
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    RecordType,
    TimeType,
    steps_of,
    zone_of,
)
from tcc_certs.values.places import NONE, UNKNOWN, State
from tests.oracle_values import language as l, values as slow

_NUMBER = l.Type(kind="number", low=0, high=100)
_TEXT = l.Type(kind="text", high=20)
POOL: tuple[tuple[str, l.Type], ...] = (  # open fields
    ("order", _TEXT),
    ("user", _TEXT),
    ("amount", _NUMBER),
    ("pieces", l.Type(kind="integer", low=0, high=100)),
    ("urgent", l.Type(kind="flag")),
    ("extra", l.Type(kind="json")),
    ("code", l.Type(kind="text", low=1, high=9, pattern="[a-z]( d)?")),
    ("at", l.Type(kind="time")),
    ("since", l.Type(kind="time", zone="-05:00")),
    ("until", l.Type(kind="time", zone="utc")),
    ("day", l.Type(kind="date", zone="utc")),
    ("ids", l.Type(kind="list", of=l.Type(kind="text"))),
    ("tags", l.Type(kind="list", low=1, high=3, distinct=True, of=l.Type(kind="text"))),
    ("sizes", l.Type(kind="list", of=_NUMBER)),
    (
        "legs",
        l.Type(
            kind="list",
            of=l.Type(
                kind="record",
                fields=(
                    l.Field(name="number", type=_TEXT),
                    l.Field(name="price", type=_NUMBER, place="/cost/total"),
                ),
            ),
        ),
    ),
)


def field_of(one: l.Field) -> Field:
    """A field."""
    pointer = "/" + one.name.replace("~", "~0").replace("/", "~1")
    values: tuple[str, ...] = ()
    if one.values is not None:
        values = tuple([str(text_of(value)) for value in one.values])
        values = ("",) * one.optional + values + ("*",) * one.rest
    return Field(
        name=one.name,
        steps=steps_of(pointer if one.place is None else one.place, "at", Code.CORE_SCHEMA),
        type=None if one.type is None else type_of(one.type),
        values=values,
        optional=one.optional,
        null=one.null,
    )


def type_of(kind: l.Type) -> FieldType:
    """An open type."""
    match kind.kind:
        case "text":
            most = 65536 if kind.high is None else kind.high
            return TextType(least=kind.low or 0, most=most, pattern=kind.pattern)
        case "integer" | "number":
            ends = (
                {} if kind.low is None
                else {"low": number_text(kind.low), "high": number_text(kind.high)}
            )  # fmt: skip
            return NumberType(whole=kind.kind == "integer", **ends)
        case "flag":
            return FlagType()
        case "json":
            return JsonType(most=65536 if kind.high is None else kind.high)
        case "time":
            return TimeType(zone=None if kind.zone is None else zone_of(kind.zone))
        case "date":
            return DateType(zone=0 if kind.zone is None else zone_of(kind.zone) or 0)
        case "list":
            assert kind.of is not None
            most = 1000 if kind.high is None else kind.high
            of = type_of(kind.of)
            return ListType(of=of, least=kind.low or 0, most=most, distinct=kind.distinct)
    return RecordType(fields=tuple(map(field_of, kind.fields)))


def state_of(state: slow.State) -> State:
    """A state of the definition as the kernel has it."""
    match state:
        case "none":
            return NONE
        case "unknown":
            return UNKNOWN
        case ("n", exact):
            whole = Fraction(exact)
            return "n", whole.numerator if whole.denominator == 1 else whole
        case ("j", text):
            return "j", text.encode()
        case ("*", listed):
            return "*", frozenset(map(state_of, listed))
        case ("l", items):
            return "l", tuple(map(state_of, items))
        case ("r", cells):
            return "r", tuple([(name, state_of(cell)) for name, cell in cells])
    return state  # type: ignore[return-value]


def number_text(value: Any) -> str:
    """A number without an exponent."""
    return slow.decimal_text(Fraction(Decimal(repr(value)) if isinstance(value, float) else value))
