"""Declared members of arguments; tests/oracle_values has the definition."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.values.declared import JsonType, NumberType, TextType
from tcc_certs.values.fields import Field, ListType, NullableType, RecordType, UnionType
from tcc_certs.values.members import declared_in, has_record, is_declared
from tests.oracle_values import language as l, members as slow
from tests.oracle_values.fields import field_of

TEXT, JSON = TextType(), JsonType()


def record(*fields: Field) -> RecordType:
    return RecordType(fields=fields)


def field(name: str, kind: Any = TEXT, *steps: str, null: bool = False) -> Field:
    return Field(name=name, steps=steps or (name,), type=kind, optional=True, null=null)


ROWS = ListType(of=record(field("a"), field("b", NumberType(whole=True), "in", "b", null=True)))
TAKEN: list[Any] = [
    [], [{}], [{"a": "x"}], [{"a": "x", "in": {"b": 1}}], [{"in": {}}], [{"in": {"b": None}}],
]  # fmt: skip
REFUSED: list[Any] = [
    [{"c": 1}], [{"a": "x", "": 1}], [{"in": {"b": 1, "c": 2}}], [{"in": 5}], [{"in": None}],
    [{"in": []}], [5], [None], "x", None, [{"a": "x"}, {"b": 1}], [{1: "x"}], [[]],
]  # fmt: skip


@pytest.mark.parametrize("value", [*TAKEN, *REFUSED], ids=str)
def test_a_record_has_its_declared_members_and_no_others(value: Any) -> None:
    inside = declared_in([field("rows", ROWS)])["rows"]
    assert is_declared(value, inside) is (value in TAKEN)


def test_an_element_that_may_be_null_is_declared() -> None:
    kind = ListType(of=NullableType(of=record(field("a"))))
    inside = declared_in([field("rows", kind)])["rows"]
    assert is_declared([None, {"a": None}, {}], inside)
    assert not is_declared([None, {"b": 1}], inside)


def test_a_name_that_only_looks_like_a_declared_one_is_none() -> None:
    class Name(str):
        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            return other == "a" or str.__eq__(self, other)

    inside = declared_in([field("rows", ListType(of=record(field("a"))))])
    assert is_declared([{"a": 1}], inside["rows"])
    assert not is_declared([{Name("secret"): 1}], inside["rows"])


def test_the_object_of_a_union_may_have_a_field_for_all_of_it() -> None:
    whole = Field(name="all", steps=(), type=JSON)
    kinds = UnionType(of=(record(whole, field("a")), TEXT, ListType(of=TEXT)))
    inside = declared_in([field("x", kinds), field("rows", ListType(of=kinds))])
    for value in ({"b": [1]}, {}, {"a": "x"}, "x", ["x"]):
        assert is_declared(value, inside["x"]) and is_declared([value], inside["rows"])
    strict = UnionType(of=(record(field("a")), TEXT))
    assert not is_declared({"b": 1}, declared_in([field("x", strict)])["x"])


def test_other_arguments_declare_members_too() -> None:
    rows = field("rows", ListType(of=record(field("a"))))
    prices = field("p", ListType(of=TEXT), "rows", "*", "price")
    first = field("f", JSON, "rows", "0", "more")
    listed = Field(name="k", steps=("rows", "-1", "k"), values=("x",))
    value = [{"a": "x", "price": "1", "more": {"any": 1}}, {"price": "2"}]
    assert is_declared(value, declared_in([listed, rows, prices, first])["rows"])
    assert not is_declared(value, declared_in([rows, prices])["rows"])
    value[1]["k"] = "listed"
    assert is_declared(value, declared_in([listed, rows, prices, first])["rows"])
    assert not is_declared(value, declared_in([rows, prices, first])["rows"])
    assert is_declared([{"z": 1}], declared_in([rows, field("all", JSON, "*")])["rows"])
    assert declared_in([prices, first]) == {}
    assert declared_in([rows, Field(name="all", steps=(), type=JSON)]) == {}


def test_what_is_nested_deeper_than_values_may_be_is_not_declared() -> None:
    steps = ("s",) * 60
    kind: Any = record(Field(name="x", steps=steps, type=TEXT))
    for _ in range(3):
        kind = record(Field(name="x", steps=steps, type=ListType(of=kind)))
    rows = field("rows", ListType(of=kind))
    value: Any = "x"
    for level in range(4):
        value = [value] if level else value
        for _ in range(60):
            value = {"s": value}
    assert not is_declared([value], declared_in([rows])["rows"])


TYPES = (l.Type(kind="text"), l.Type(kind="json", high=400))
NAMES = ("a", "b", "0", "-1")


def some_type(rng: random.Random, depth: int) -> l.Type:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(TYPES)
    if rng.random() < 0.4:
        return l.Type(kind="list", of=some_type(rng, depth - 1))
    fields = [
        l.Field(
            name=f"f{at}", place=some_place(rng), type=some_type(rng, depth - 1), optional=True,
            null=rng.random() < 0.3,
        )
        for at in range(rng.randint(1, 3))
    ]  # fmt: skip
    return l.Type(kind="list", of=l.Type(kind="record", fields=tuple(fields)))


def some_place(rng: random.Random) -> str:
    return "".join(f"/{rng.choice(NAMES)}" for _ in range(rng.choice((1, 1, 1, 2))))


def some_value(rng: random.Random, depth: int) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(("x", 1, None))
    if rng.random() < 0.5:
        return [some_value(rng, depth - 1) for _ in range(rng.randint(0, 2))]
    names = rng.sample(NAMES[:3], rng.randint(0, 2))
    return {name: some_value(rng, depth - 1) for name in names}


def some_arguments(rng: random.Random) -> list[l.Field]:
    found = [l.Field(name="a", type=some_type(rng, 3), optional=True, null=rng.random() < 0.3)]
    if rng.random() < 0.5:
        many = rng.random() < 0.3
        kind = some_type(rng, 1)
        kind = l.Type(kind="list", of=kind) if many else kind
        place = "/a" + some_place(rng) + ("/*" if many else "")
        found.append(l.Field(name="p", type=kind, place=place, optional=True))
    if rng.random() < 0.3:
        found.append(l.Field(name="k", values=("x",), place="/a" + some_place(rng)))
    return found


def test_every_value_is_declared_or_not_as_the_definition_says() -> None:
    rng, seen = random.Random(7), {True: 0, False: 0}
    while min(seen.values()) < 2000:
        fields = some_arguments(rng)
        made = [field_of(one) for one in fields]
        inside = declared_in(made)
        assert ("a" in inside) == has_record(made[0].type) == slow.has_record(fields[0].type)
        for _ in range(20 if "a" in inside else 0):
            value = some_value(rng, 4)
            found = is_declared(value, inside["a"])
            assert found == slow.are_declared({"a": value}, fields, "a"), (fields, value)
            seen[found] += 1
