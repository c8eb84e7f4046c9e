"""Quick readers give the states that the definition gives, for any JSON value."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tcc_certs.values import places
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import Missing, State, Wrong
from tcc_runtime.gate.arguments.readers import answer_reader, member_reader

_TYPES: tuple[FieldType, ...] = (
    TextType(), TextType(least=1, most=3), TextType(pattern="[ab]+", most=40),
    TextType(pattern="ord-[0-9]{1,8}", most=12), TextType(among=("EUR", "", "a"), most=3),
    NumberType(whole=True), NumberType(whole=False), NumberType(whole=True, low="0", high="2"),
    NumberType(whole=False, low="-0.5", high="2.5"), NumberType(whole=False, low="0.1", high="0.9"),
    NumberType(whole=True, low="-9223372036854775808", high="18446744073709551615"),
    FlagType(), PathType(), PathType(under="/a"), UrlType(under="https://*.h/a"),
    JsonType(most=20), TimeType(zone=None), TimeType(zone=60), DateType(zone=0),
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, 5, 0.0, -0.0, 0.5, 2.5, 2.0, 0.1, 0.30000000000000004, 1e16,
    1e22, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740993, 9007199254740992.0,
    4503599627370496.5, 123456789.125, -0.5, float("nan"), float("inf"), -(1 << 63), (1 << 64) - 1,
    1 << 64, 1 << 70, Decimal("2.5"), Decimal("0.1"), Decimal("1e3"), Decimal("NaN"), "", "a", "b",
    "ab", "abc", "abcd", "ord-1", "ord-12345678", "ord-", "EUR", "x", "true", "1", "caf\u00e9",
    "\ud800", "\n", "/a/../b", "/a/./b", "/a\0",
    "https://x.h:443/a", "https://u@x.h/a",
    "2026-09-21", "2026-09-21T10:00:00Z", "2026-09-21T10:00:00", "open", "closed",
    b"a", object(), {1, 2}, 1j,
)  # fmt: skip
_LISTED = (("open", "closed"), ("open", "*"), ("1", "2.5", "true", "open"), ("null", "a", "*"),
           ("true", "false"), ('"true"', "b"))  # fmt: skip


class _Text(str):
    """A text of another class."""

    __slots__ = ()


def drawn_type(rng: random.Random, depth: int = 2) -> FieldType:
    """A type, perhaps with others inside."""
    what = rng.random()
    if depth and what < 0.15:
        least = rng.choice((0, 0, 1))
        return ListType(
            of=drawn_type(rng, depth - 1), least=least, most=rng.choice((2, 40, 1000)),
            distinct=rng.random() < 0.2,
        )  # fmt: skip
    if depth and what < 0.3:
        names = rng.sample("abcd", rng.randint(1, 3))
        return RecordType(fields=tuple([drawn_field(rng, name, depth - 1) for name in names]))
    kind = rng.choice(_TYPES)
    if what > 0.95:
        return UnionType(of=(kind, FlagType() if kind != FlagType() else TextType()))
    return NullableType(of=kind) if what < 0.45 else kind


def drawn_field(rng: random.Random, name: str, depth: int = 2) -> Field:
    """A field of a name, nearly always at the member of its name."""
    listed = rng.random() < 0.2
    optional = rng.random() < 0.4
    place = rng.random()
    steps = (name,) if place < 0.9 else (name, "x") if place < 0.95 else (name, "*")
    return Field(
        name=name, steps=steps, type=None if listed else drawn_type(rng, depth),
        values=rng.choice(_LISTED) if listed else (), optional=optional,
        null=optional and rng.random() < 0.5,
    )  # fmt: skip


def drawn_value(rng: random.Random, kind: FieldType | None, values: tuple[str, ...] = ()) -> Any:
    """A value, often one of the type."""
    if rng.random() < 0.15:
        return rng.choice(_VALUES)
    match kind:
        case None:
            text = rng.choice(values)
            return rng.choice(_VALUES) if text == "*" else places.json_of(text)
        case NullableType(of=of):
            return None if rng.random() < 0.3 else drawn_value(rng, of)
        case ListType(of=of):
            size = rng.choice((0, 1, 2, 3, 31, 32, 33, 41))
            found = [drawn_value(rng, of) for _ in range(size)]
            return tuple(found) if rng.random() < 0.1 else found
        case RecordType(fields=fields):
            return {
                one.name: drawn_value(rng, one.type, one.values)
                for one in fields
                if rng.random() < 0.9
            }
        case TextType():
            return rng.choice(("a", "ab", "ord-17", "EUR", "b", "abc", _Text("a"), "\u00e9", ""))
        case NumberType():
            return rng.choice((0, 1, 2, 0.5, 2.5, 1.0, 0.1, 49.99, -0.25, True, 3e-5, 1e15, 7))
        case FlagType():
            return rng.random() < 0.5
    return rng.choice(_VALUES)


def told(read: Callable[..., State], *values: Any) -> Any:
    """The state, or why there is none; numbers with the class that states have."""
    try:
        state = read(*values)
    except Missing:
        return "missing"
    except Wrong as wrong:
        return wrong.code
    return state, _classes(state)


def _classes(state: Any) -> Any:
    kind, value = state
    if kind == "l":
        return [_classes(one) for one in value]
    if kind == "r":
        return [(name, _classes(one)) for name, one in value]
    return Fraction if type(value) is Fraction and value.denominator != 1 else int(value) if (
        kind == "n"
    ) else type(value)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_readers_of_members_agree_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    read_quickly = 0
    for _ in range(400):
        field = drawn_field(rng, "f")
        read = member_reader(field)
        answered = answer_reader(field)
        for _ in range(8):
            value = drawn_value(rng, field.type, field.values)
            whole = {"f": value}
            if read is not None:
                found = told(read, value)
                assert found == told(places.read, whole, field), (field, value)
                read_quickly += 1
            for answer in (whole, {}, value, [value], {"g": value}):
                assert answered(answer) == places.answered(answer, field), (field, answer)
    assert read_quickly > 2000


def test_every_value_is_read_alike_for_every_type() -> None:
    for kind in _TYPES:
        for outer in (kind, NullableType(of=kind), ListType(of=kind)):
            field = Field(name="f", steps=("f",), type=outer)
            read = member_reader(field)
            assert read is not None
            for value in (*_VALUES, *[[one] for one in _VALUES], _Text("a"), {"a": 1}):
                found = told(read, value)
                expected = told(places.read, {"f": value}, field)
                assert found == expected, (outer, value)


def test_a_field_at_another_place_has_no_reader_of_members() -> None:
    assert member_reader(Field(name="f", steps=("g",), type=TextType())) is None
    assert member_reader(Field(name="f", steps=("f", "x"), type=TextType())) is None
