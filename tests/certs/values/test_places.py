"""Fields at their places in JSON: the definition of tests/oracle_values, and hostile values."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.values.declared import TextType
from tcc_certs.values.fields import Field, ListType, RecordType, TimeType, steps_of
from tcc_certs.values.places import NONE, UNKNOWN, Missing, Wrong, answered, moment, read
from tests.doubling import doubles
from tests.oracle_values import language as l, values as slow
from tests.oracle_values.fields import field_of, state_of

TIMES = ("2026-11-24T10:00:00Z", "2026-11-24T10:00:00.1239+05:30", "2026-11-24T10:00:00")
ATOMS: tuple[Any, ...] = (
    *TIMES, "2026-02-30", "2026-02-28", "a", "b", "\ud800", "", 0, 1, 1.0, 2.5, 1e400,
    2**53 + 1, 2**64, True, False, None, "2026-11-24T24:00:00Z", "٢026-11-24",
)  # fmt: skip
TYPES = (
    l.Type(kind="text"), l.Type(kind="text", low=1, high=1, pattern="[a-b]"),
    l.Type(kind="number"), l.Type(kind="integer", low=0, high=1), l.Type(kind="flag"),
    l.Type(kind="json", high=20), l.Type(kind="time"), l.Type(kind="time", zone="-05:00"),
    l.Type(kind="date", zone="utc"), l.Type(kind="date", zone="+01:00"),
)  # fmt: skip
PLACES = (None, "", "/x", "/*", "/x/*", "/*/x", "/-1", "/0/x", "/x/-1/y", "/a~1b", "/*/*")


def value(rng: random.Random, depth: int = 3) -> Any:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ATOMS)
    if rng.random() < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {k: value(rng, depth - 1) for k in rng.sample(["x", "y", "f", "a/b"], rng.randrange(4))}


def kind(rng: random.Random, depth: int = 2) -> l.Type:
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(TYPES)
    of = kind(rng, depth - 1)
    if rng.random() < 0.3:
        return l.Type(kind="record", fields=(l.Field(name="x", type=of, optional=True),))
    return l.Type(kind="list", of=of, high=rng.choice((None, 2)), distinct=rng.random() < 0.5)


def test_every_value_at_every_place_is_what_the_definition_says() -> None:
    rng, seen = random.Random(12), set()
    for _ in range(6000):
        listed = rng.random() < 0.2
        field = l.Field(
            name="f", values=("a", 1, True) if listed else None, type=None if listed else kind(rng),
            optional=rng.random() < 0.5, null=rng.random() < 0.3, place=rng.choice(PLACES),
            rest=listed and rng.random() < 0.5,
        )  # fmt: skip
        given = value(rng)
        if field.type is not None and "record" in repr(field.type) and not isinstance(given, dict):
            continue  # the definition takes anything for an object of optional fields
        found = _fast(given, field_of(field))
        due = slow.read(given, field)
        expected = {id(slow.MISSING): "missing", id(slow.WRONG): "wrong"}.get(id(due))
        if expected is None:
            expected = state_of(due)  # type: ignore[assignment, arg-type]
        if "record" not in repr(field.type):
            assert found == expected, (field, given)
        seen.add(found if isinstance(found, str) else found[0])
    assert seen >= {"missing", "wrong", "s", "n", "b", "t", "j", "l", "*", "none"}


def _fast(given: Any, field: Field) -> Any:
    try:
        return read(given, field)
    except Missing:
        return "missing"
    except Wrong:
        return "wrong"


TEXTS = Field(name="f", steps=("f", "*"), type=ListType(of=TextType()))


def test_an_answer_that_is_none_is_unknown() -> None:
    assert answered({"f": ["a"]}, TEXTS) == ("l", (("s", "a"),))
    for wrong in (None, 5, {}, {"f": 5}, {"f": [1]}, {"f": ["a"] * 1001}, [], "f"):
        assert answered(wrong, TEXTS) == UNKNOWN


def test_a_thousand_elements_are_read_in_all_and_no_more() -> None:
    both = Field(name="f", steps=("*", "*"), type=ListType(of=TextType()))
    assert len(answered([["a"] * 500] * 2, both)[1]) == 1000
    assert answered([["a"] * 500, ["a"] * 501], both) == UNKNOWN
    assert answered(["a"] * 10**6, both) == UNKNOWN


def test_hostile_nesting_is_unknown() -> None:
    deep: Any = "a"
    for _ in range(100_000):
        deep = [deep]
    whole = Field(name="f", steps=(), type=field_of(l.Field(name="f", type=TYPES[5])).type)
    assert answered(deep, whole) == UNKNOWN
    assert answered(deep, TEXTS) == UNKNOWN


class Liar(dict):  # type: ignore[type-arg]
    def __contains__(self, name: object) -> bool:
        raise AssertionError


def test_only_types_of_json_are_read() -> None:
    assert answered(Liar(f=["a"]), TEXTS) == UNKNOWN
    record = Field(name="f", steps=(), type=RecordType(fields=(TEXTS,)))
    assert answered("text", record) == UNKNOWN


def test_a_time_has_a_zone_and_a_day_that_there_is() -> None:
    time = Field(name="f", steps=(), type=TimeType())
    assert answered("1970-01-01T00:00:00.0019Z", time) == ("t", 1)
    for wrong in ("1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-01-01T00:00:60Z"):
        assert answered(wrong, time) == UNKNOWN
    assert answered("1970-01-01T00:00:00", Field(name="f", steps=(), type=TimeType(zone=60))) == (
        "t", -3_600_000,
    )  # fmt: skip


@pytest.mark.parametrize("digits", [3, 40, 41, 10_000, 1 << 24])
def test_digits_behind_a_millisecond_are_cut(digits: int) -> None:
    text = f"1970-01-01T00:00:00.{'9' * digits}"
    assert moment(f"{text}Z", None) == 999
    assert moment(f"{text}+00:01", None) == 999 - 60_000
    for wrong in (f"{text}x", f"{text}.Z", text):
        with pytest.raises(Wrong):
            moment(wrong, None)


def test_a_time_is_read_in_linear_time() -> None:
    def work(size: int) -> Any:
        text = f"1970-01-01T00:00:00.{'9' * size}x"
        return lambda: answered(text, Field(name="f", steps=(), type=TimeType()))

    doubles(work, 1 << 22)


def test_what_is_no_json_value_is_not_the_rest() -> None:
    field = Field(name="f", steps=("f",), values=("", "a", "*"), optional=True)
    assert answered({"f": object()}, field) == UNKNOWN


def test_rest_and_none() -> None:
    field = Field(name="f", steps=("f",), values=("", "a", "*"), optional=True, null=True)
    found = [
        answered(given, field) for given in ({"f": "a"}, {"f": "b"}, {"f": [1]}, {}, {"f": None})
    ]
    rest = ("*", frozenset([("s", "a")]))
    assert found == [("s", "a"), rest, rest, NONE, NONE]


@pytest.mark.parametrize("pointer", ["x", "/a~2", "/~", "/a" * 65])
def test_pointers_that_are_none(pointer: str) -> None:
    with pytest.raises(Rejected) as refusal:
        steps_of(pointer, "at", Code.CORE_SCHEMA)
    assert (refusal.value.code, refusal.value.path) == (Code.CORE_SCHEMA, "at")
