"""What arguments a call may have: exact JSON values, each parameter once, nothing else."""

from __future__ import annotations

import random
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.policy.core import Tool
from tcc_certs.policy.course import argument_states
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType
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
from tcc_runtime.gate.arguments import FieldReader
from tests.gate.grammars import gate

ORDER = {"order": "ord-17", "part": "half", "amount": 3}


class Sly(dict):  # type: ignore[type-arg]
    """Says one thing when it is asked, and another when it is read."""

    def __getitem__(self, name: str) -> Any:
        return "full"

    def items(self) -> Any:
        return [("part", "half")]


class Text(StrEnum):
    HALF = "half"


class Number(IntEnum):
    ONE = 1


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def inside_itself() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


HOSTILE = [
    ("take", {"n": 1, "at": float("nan")}, "R106", "at"),
    ("take", {"n": 1, "at": float("inf")}, "R106", "at"),
    ("take", {"n": 1, "at": 10**400}, "R106", "at"),
    ("take", {"n": 1, "at": 2**64}, "R106", "at"),
    ("take", {"n": 1, "at": -(2**63) - 1}, "R106", "at"),
    ("odd-name", {"limit": 1, "data": [2**64]}, "R106", "data"),
    ("take", {"n": 1, "at": Decimal("NaN")}, "R106", "at"),
    ("take", {"n": 1, "at": Decimal("sNaN")}, "R106", "at"),
    ("take", {"n": 1, "at": Decimal("1e400")}, "R106", "at"),
    ("take", {"n": 1, "at": Decimal("0.1000000000000000055")}, "R106", "at"),
    ("take", {"n": 1, "at": True}, "R105", "at"),
    ("take", {"n": 1, "at": "1"}, "R105", "at"),
    ("take", {"n": 1, "at": None}, "R105", "at"),
    ("take", {"n": 1, "at": Number.ONE}, "R105", "at"),
    ("take", {"n": True, "at": 1}, "R105", "n"),
    ("take", {"n": 11, "at": 1}, "R105", "n"),
    ("take", {"n": -1, "at": 1}, "R105", "n"),
    ("take", {"n": 1.5, "at": 1}, "R105", "n"),
    ("take", {"n": 1 << 300_000, "at": 1}, "R106", "n"),
    ("take", {"n": 1, "at": 1, "flag": 1}, "R105", "flag"),
    ("take", {"n": 1, "at": 1, "flag": None}, "R105", "flag"),
    ("take", {"n": 1}, "R103", "at"),
    ("take", {"n": 1, "at": 1, "more": 1}, "R102", "more"),
    ("take", {"n": 1, "at": 1, 7: 1}, "R102", "int"),
    ("take", {"n": 1, "at": 1, None: 1}, "R102", "NoneType"),
    ("take", {"n": 1, "at": 1, b"n": 1}, "R102", "bytes"),
    ("take", [1], "R106", "arguments"),
    ("take", "n", "R106", "arguments"),
    ("take", Sly(n=1, at=1), "R106", "arguments"),
    ("refund", {**ORDER, "part": "most"}, "R104", "part"),
    ("refund", {**ORDER, "part": Text.HALF}, "R106", "part"),
    ("refund", {**ORDER, "part": b"half"}, "R106", "part"),
    ("refund", {**ORDER, "part": ["half"]}, "R104", "part"),
    ("refund", {**ORDER, "part": "\ud800"}, "R106", "part"),
    ("refund", {**ORDER, "part": None}, "R104", "part"),
    ("refund", {**ORDER, "order": "ord-"}, "R105", "order"),
    ("refund", {**ORDER, "order": "ord-1\n"}, "R105", "order"),
    ("refund", {**ORDER, "order": "x" * 70_000}, "R105", "order"),
    ("refund", {**ORDER, "why": "half of \udc80"}, "R106", "why"),
    ("refund", {**ORDER, "why": "x" * 65_537}, "R105", "why"),
    ("refund", {**ORDER, "amount": 500.01}, "R105", "amount"),
    ("refund", {**ORDER, "amount": float("nan")}, "R106", "amount"),
    ("odd-name", {"limit": 1, "data": deep(100_000)}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": deep(65)}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": inside_itself()}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": {1: 2}}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": {"a": {None: 2}}}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": {"\ud800": 2}}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": {"a": b""}}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": {"a": Sly(b=1)}}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": [float("nan")]}, "R106", "data"),
    ("odd-name", {"limit": 1, "data": ["x" * 65_536]}, "R105", "data"),
    ("odd-name", {"limit": 1, "data": {1, 2}}, "R106", "data"),
    ("odd-name", {"limit": True}, "R104", "limit"),
    ("odd-name", {"limit": 2.5}, "R104", "limit"),
    ("odd-name", {"limit": float("nan")}, "R106", "limit"),
    ("odd-name", {"limit": 10**400}, "R106", "limit"),
    ("listed", {"on": "null"}, "R104", "on"),
    ("listed", {"on": 0}, "R104", "on"),
    ("listed", {}, "R103", "on"),
    ("listed", {"on": 1, "more": None}, "R104", "more"),
    ("nothing", {}, "R101", ""),
    ("", {}, "R101", ""),
    (None, {}, "R101", ""),
    (["take"], {}, "R101", ""),
    ("odd_name", {}, "R101", ""),
]


@pytest.mark.parametrize(("tool", "arguments", "code", "place"), HOSTILE)
def test_what_is_no_call_is_refused_with_its_place(
    tool: Any, arguments: Any, code: str, place: str
) -> None:
    session = gate()
    found = session.check(tool, arguments)
    assert (found.allowed, found.code, found.place) == (False, code, place)
    with pytest.raises(Exception, match=code), session.call(tool, arguments):
        pytest.fail("nothing is permitted")
    assert session.history == () and len(repr(found)) < 200


GOOD = [
    ("take", {"n": 5, "at": 0.1}),
    ("take", {"n": 5.0, "at": -(2**53)}),
    ("take", {"n": Decimal("5.00"), "at": Decimal("0.1")}),
    ("take", {"n": 10, "at": 1e300, "flag": False}),
    ("take", {"n": -0.0, "at": 1e-300}),
    *[("take", {"n": 1, "at": n}) for n in (2**53 + 1, -(2**63), 2**63, 2**64 - 1)],
    ("odd-name", {"limit": 1, "data": {"ids": [2**64 - 1, -(2**63), {"": 2**53 + 1}]}}),
    ("refund", {**ORDER, "why": ""}),
    ("refund", {**ORDER, "amount": 500.0}),
    ("odd-name", {"limit": 3}),
    ("odd-name", {"limit": 3.0, "data": None}),
    ("odd-name", {"limit": Decimal(3), "data": deep(64)}),
    ("odd-name", {"limit": 1, "data": {"a": (1, "x", None, True), "": {}}}),
    *[("listed", {"on": value}) for value in (True, False, None, "true", 1, 1.0, 0.5, "1", "word")],
    ("listed", {"on": "word", "more": "x"}),
]


@pytest.mark.parametrize(("tool", "arguments"), GOOD)
def test_json_values_are_taken_however_they_are_written(tool: str, arguments: Any) -> None:
    session = gate()
    with session.call("approve", {"order": "ord-17"}) as permit:
        permit.done()
    with session.call(tool, arguments) as permit:
        permit.done()


def test_one_listed_value_is_one_call() -> None:
    session = gate()
    for value in (True, "true", 1.0, "1", None, 0.5, "word"):
        with session.call("listed", {"on": value}) as permit:
            permit.done()
    assert [found.call for found in session.history] == [
        "listed(on=true)", 'listed(on="true")', "listed(on=1)", 'listed(on="1")',
        "listed(on=null)", "listed(on=0.5)", "listed(on=word)",
    ]  # fmt: skip


def test_allowed_gives_arguments_that_are_taken() -> None:
    session = gate()
    found = [one for one in session.allowed() if one.tool == "listed"]
    assert len(found) == 8 * 3
    assert {"on": True} in [one.arguments for one in found]
    assert all(session.check("listed", dict(one.arguments)).allowed for one in found)


TYPES: list[FieldType] = [
    TextType(), TextType(least=2, most=3), TextType(pattern="[a-c]{1,3}|x.*"), FlagType(),
    TextType(among=("a", "x")), NumberType(whole=False), NumberType(whole=True), JsonType(),
    JsonType(most=12), NumberType(whole=False, low="-0.5", high="0.1"),
    NumberType(whole=True, low="0", high="7"), ListType(of=JsonType(most=9), most=2),
    NullableType(of=NumberType(whole=True)), TimeType(zone=0), DateType(), PathType(),
    UnionType(of=(TextType(most=2), NumberType(whole=True), ListType(of=FlagType(), most=2))),
    UnionType(
        of=(RecordType(fields=(Field(name="a", steps=("a",), type=TextType()),)), FlagType())
    ),
    RecordType(fields=(Field(name="a", steps=("a",), type=TextType(), optional=True),)),
]  # fmt: skip


def drawn(rng: random.Random, depth: int = 3) -> Any:
    kinds = [
        lambda: rng.choice((True, False, None)),
        lambda: rng.choice((0, 1, -1, 7, 8, 2**53, 2**53 + 1, 2**60, 10**22, 10**23, -(10**400))),
        lambda: rng.choice((0.0, -0.0, 0.1, -0.5, 7.0, 1e22, 1e23, 5e-324, 1e308, float("inf"))),
        lambda: rng.choice((Decimal("0.1"), Decimal("7.00"), Decimal("1e-400"), Decimal("1E+2"))),
        lambda: "".join(rng.choices("abcx\n\ud800\u20ac", k=rng.randint(0, 4))),
        lambda: rng.uniform(-1, 1),
        lambda: [drawn(rng, depth - 1) for _ in range(rng.randint(0, 3))] if depth else 1,
        lambda: {drawn_name(rng): drawn(rng, depth - 1) for _ in range(2)} if depth else 2,
    ]
    return rng.choice(kinds)()


def drawn_name(rng: random.Random) -> Any:
    return rng.choice(("a", "b", "\u20ac", "", 1, None) if rng.random() < 0.3 else ("a", "b"))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_arguments_are_read_as_the_definition_reads_them(kind: FieldType) -> None:
    rng = random.Random(str(kind))
    declared = [
        Field(name="a", steps=("a",), type=kind, optional=rng.random() < 0.5),
        Field(name="b", steps=("b",), values=("x", "7", "null"), optional=True),
    ]
    tool, reader, codes = Tool(name="t", arguments=tuple(declared)), FieldReader(declared), set()
    for _ in range(3_000):
        given = {name: drawn(rng) for name in rng.choice(("a", "a", "ab", "b", "c"))}
        try:
            due: Any = argument_states(tool, given)
        except Rejected as refusal:
            due = refusal.code, refusal.path
            codes.add(str(refusal.code))
        assert reader.read(given) == due, given
    assert {"R102"} < codes
