"""Values of one of several types: which type has a value, and what it equals."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.policy.meaning import compare, matches, under
from tcc_certs.values.declared import FlagType, NumberType, PathType, TextType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    RecordType,
    TimeType,
    UnionType,
    fits_union,
    hides,
)
from tcc_certs.values.members import declared_in, is_declared
from tcc_certs.values.places import Wrong, typed

_NAMED = RecordType(fields=(Field(name="a", steps=("a",), type=TextType()),))
_UNION = UnionType(
    of=(PathType(), TextType(most=3), NumberType(whole=True), ListType(of=FlagType()), _NAMED)
)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("/a/..", ("p", "/")), ("a", ("s", "a")), (5, ("n", 5)), ([True], ("j", b"[true]")),
        ({"a": "b"}, ("j", b'{"a":"b"}')),
    ],
)  # fmt: skip
def test_the_first_type_that_has_a_value(value: Any, state: Any) -> None:
    assert typed(value, _UNION) == state


@pytest.mark.parametrize("value", ["abcd", True, 0.5, None, [1], {"b": 1}, {}, "\ud800"])
def test_a_value_of_no_type(value: Any) -> None:
    with pytest.raises(Wrong) as refused:
        typed(value, _UNION)
    assert refused.value.code.value == ("R106" if value == "\ud800" else "R105")


def test_a_value_of_another_type_differs_and_matches_nothing() -> None:
    path, text, number = (typed(one, _UNION) for one in ("/a", "a", 5))
    assert compare("=", path, text) is compare("=", text, number) is False
    assert compare("=", ("s", "/a"), path) is False
    assert matches(number, ".*") is None and matches(path, "/.") is True
    assert under(text, ("p", "/")) is under(number, ("p", "/")) is None
    assert under(path, ("p", "/")) is True


@pytest.mark.parametrize(
    ("types", "fits"),
    [
        ((TextType(), FlagType()), True), ((TextType(most=1), TextType(most=2)), True),
        ((TextType(),), False), ((TextType(), TextType()), False),
        ((ListType(of=TextType()), ListType(of=FlagType())), False), ((_NAMED, FlagType()), True),
    ],
)  # fmt: skip
def test_which_types_a_union_has(types: tuple[FieldType, ...], fits: bool) -> None:
    assert fits_union(types) is fits


@pytest.mark.parametrize(
    ("types", "hidden"),
    [
        ((TextType(), PathType()), True), ((NumberType(whole=True), DateType()), True),
        ((TimeType(), DateType()), False), ((TextType(), NumberType(whole=True)), False),
    ],
)  # fmt: skip
def test_types_that_json_writes_alike_are_hidden_inside_lists(
    types: tuple[FieldType, ...], hidden: bool
) -> None:
    assert hides(ListType(of=UnionType(of=types))) is hidden
    assert not hides(UnionType(of=types))


@pytest.mark.parametrize(
    ("value", "declared"),
    [("x", True), ({"a": "b"}, True), ({"a": "b", "c": 1}, False), ([True], True)],
)
def test_an_object_has_only_declared_members(value: Any, declared: bool) -> None:
    places = declared_in([Field(name="u", steps=("u",), type=_UNION)])
    assert is_declared(value, places["u"]) is declared
    many = declared_in([Field(name="u", steps=("u",), type=ListType(of=_UNION))])
    assert is_declared([value], many["u"]) is declared
    assert is_declared([value, "x"], many["u"]) is declared
