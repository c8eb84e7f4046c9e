"""Numbers, canonical bytes, digests, listed values and types of values."""

from __future__ import annotations

import json
import math
import random
import struct
from decimal import Decimal
from typing import Any

import pytest
from blake3 import blake3

from tcc_certs.errors import Rejected
from tcc_certs.values import canonical as digests
from tcc_certs.values.canonical import canonical, json_text, json_value
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    OpenType,
    TextType,
    json_of,
    text_of,
)
from tcc_certs.values.numbers import canonical_number, compare, ensure_survives
from tcc_certs.values.types import check, check_text, encoded

_MOST = "9" * 4000
LONGEST = (_MOST, f"-{_MOST}", f"0.{_MOST}", f"{_MOST}.{_MOST}")


def code_of(refused: pytest.ExceptionInfo[Rejected]) -> str:
    return refused.value.code.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (Decimal("-0.00"), "0"), (5, "5"), (5.0, "5"), (-5, "-5"),
        (0.1, "0.1"), (Decimal("0.10"), "0.1"), (1e22, "1" + "0" * 22), (10**22, "1" + "0" * 22),
        (1e-7, "0.0000001"), (-1.5e-10, "-0.00000000015"), (2**53, "9007199254740992"),
        (2**53 + 1, "9007199254740993"), (-(2**53) - 1, "-9007199254740993"),
        (2**60, "1152921504606846976"), (-(2**63), "-9223372036854775808"),
        (2**63, "9223372036854775808"), (2**64 - 1, "18446744073709551615"),
        (Decimal(2**64 - 1), "18446744073709551615"), (Decimal("9007199254740993.00"),
        "9007199254740993"), (Decimal("9.223372036854775807E+18"), "9223372036854775807"),
        (float(2**63), "9223372036854776000"), (float(2**64), "18446744073709552000"),
        (float(2**60), "1152921504606847000"), (1152921504606847000, "1152921504606847000"),
        (5e-324, "0." + "0" * 323 + "5"), (Decimal("1.5e3"), "1500"), (123.456, "123.456"),
    ],
)  # fmt: skip
def test_a_number_has_one_text(value: Any, text: str) -> None:
    assert canonical_number(value) == text


@pytest.mark.parametrize(
    "value",
    [
        2**64, 2**64 + 1, -(2**63) - 1, 2**70, 10**400, math.inf, -math.inf, math.nan,
        Decimal("NaN"), Decimal("sNaN"),
        Decimal("Infinity"), Decimal("1e400"), Decimal("1e-400"), Decimal("1e999999999"),
        Decimal("1e-999999999"), Decimal("0.1000000000000000055"), 10**22 + 1,
        Decimal(2**64), Decimal("9007199254740993.5"), Decimal("18446744073709551615.5"),
    ],
)  # fmt: skip
def test_a_number_that_a_double_changes_is_none(value: Any) -> None:
    with pytest.raises(Rejected) as refused:
        canonical_number(value)
    assert code_of(refused) == "R106"


@pytest.mark.parametrize("value", [True, False, "1", None, [1], 1j])
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(Rejected) as refused:
        canonical_number(value)
    assert code_of(refused) == "R105"


def test_texts_of_random_doubles_are_exact_and_come_back() -> None:
    rng = random.Random(1)
    for _ in range(5000):
        (value,) = struct.unpack("<d", rng.randbytes(8))
        if not math.isfinite(value):
            continue
        text = canonical_number(value)
        assert float(text) == value
        assert Decimal(text) == Decimal(repr(value))
        assert canonical_number(Decimal(text)) == text
        ensure_survives(text, "x", _c801())
        other = rng.choice([value, -value, math.nextafter(value, 0), rng.random()])
        assert compare(text, canonical_number(other)) == (value > other) - (value < other)


def _c801() -> Any:
    from tcc_certs.errors import Code

    return Code.CORE_SCHEMA


@pytest.mark.parametrize("text", ["", "-0", "00", "01", "1.", "1.0", ".5", "+1", "1e3", "1_0", "٣"])
def test_what_is_no_canonical_decimal(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        ensure_survives(text, "place", _c801())
    assert (code_of(refused), refused.value.path) == ("C801", "place")


def test_a_decimal_that_does_not_survive_is_refused_with_the_callers_code() -> None:
    with pytest.raises(Rejected) as refused:
        ensure_survives("18446744073709551616", "place", _c801())
    assert (code_of(refused), refused.value.path) == ("C801", "place")


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        (None, b"z", b""), (True, b"b", b"true"), (False, b"b", b"false"), ("a\n", b"s", b"a\n"),
        ("é", b"s", "é".encode()), (5.0, b"n", b"5"), ([], b"j", b"[]"), ({}, b"j", b"{}"),
        ({"b": [1.50, None], "a": "\x01é"}, b"j", '{"a":"\\u0001é","b":[1.5,null]}'.encode()),
        ((1, True), b"j", b"[1,true]"),
        ({"\U0001f600": 1, "\uffee": 2}, b"j", '{"\uffee":2,"\U0001f600":1}'.encode()),
    ],
)  # fmt: skip
def test_canonical_bytes(value: Any, kind: bytes, data: bytes) -> None:
    assert canonical(value) == (kind, data)


@pytest.mark.parametrize(
    "value",
    [
        "\ud800", {"\ud800": 1}, {1: 2}, {None: 1}, {1}, b"x", object(), [math.nan], [2**64],
        {"a": [object()]}, json.loads("[" * 65 + "]" * 65),
    ],
)  # fmt: skip
def test_what_is_no_json_value(value: Any) -> None:
    with pytest.raises(Rejected) as refused:
        canonical(value)
    assert code_of(refused) == "R106"


def test_a_value_without_end_is_left_at_the_bound() -> None:
    value: list[Any] = [1]
    for _ in range(60):
        value = [value, value]
    with pytest.raises(Rejected) as refused:
        json_text(value, most=1000)
    assert code_of(refused) == "R105"
    round_about: list[Any] = []
    round_about.append(round_about)
    with pytest.raises(Rejected) as refused:
        json_text(round_about)
    assert code_of(refused) == "R106"
    assert json_text(json.loads("[" * 64 + "]" * 64)) == b"[" * 64 + b"]" * 64


def test_json_texts_come_back() -> None:
    rng = random.Random(2)

    def made(depth: int) -> Any:
        kinds = [None, True, 0, -1.5, 1e20, "x", '\u2028\\"', 12345678901]
        if depth == 0 or rng.random() < 0.5:
            return rng.choice(kinds)
        if rng.random() < 0.5:
            return [made(depth - 1) for _ in range(rng.randint(0, 3))]
        return {rng.choice(["a", "b", "é", ""]): made(depth - 1) for _ in range(3)}

    for _ in range(500):
        value = made(4)
        data = json_text(value)
        assert json.loads(data) == value
        assert json_text(json_value(data.decode())) == data


@pytest.mark.parametrize("text", ["[", "[" * 100000, "NaN", "1" * 5000, "1e9999999999999999999"])
def test_what_is_no_json_text(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        json_text(json_value(text))
    assert code_of(refused) in ("R106", "R105")


def test_digests_are_keyed_and_say_what_is_in_them() -> None:
    key, other = bytes(range(32)), bytes(32)
    due = blake3(b"sabc", key=key).digest()
    assert digests.digest(key, b"s", b"abc") == due
    assert digests.digest(other, b"s", b"abc") != due
    assert digests.digest(key, b"n", b"abc") != due
    session = "018bcfe5-6800-76a0-9050-690e4aa91771"
    data = b"key" + bytes.fromhex(session.replace("-", "")) + b"\1" + bytes(7)
    assert digests.call_key(key, session, 1) == blake3(data, key=key).digest(16)
    assert digests.reference_digest(key, "é") == blake3(b"ref" + "é".encode(), key=key).digest()
    context = "tcc.session/2 digest key"
    assert digests.key_commitment(key) == blake3(key, derive_key_context=context).digest()
    with pytest.raises(Rejected) as refused:
        digests.reference_digest(key, "\ud800")
    assert code_of(refused) == "R106"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("abc", "abc"), ("_a1", "_a1"), ("true", '"true"'), ("null", '"null"'), ("", '""'),
        ("5", '"5"'), ("a b", '"a b"'), ("é", '"é"'), ('"', '"\\""'), (True, "true"),
        (False, "false"), (None, "null"), (5, "5"), (-3, "-3"), (Decimal("0.5"), "0.5"),
        (2**53 + 1, "9007199254740993"), ("any", "any"), ("plan", "plan"),
    ],
)  # fmt: skip
def test_listed_values_both_ways(value: Any, text: str) -> None:
    assert text_of(value) == text
    assert json_of(text) == value
    assert type(json_of(text)) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.0, "5"), (-0.0, "0"), (0.10, "0.1"), (1e22, "1" + "0" * 22), (Decimal("1E+2"), "100"),
     (Decimal("-0.0"), "0"), (10, "10"), (Decimal("100"), "100"),
     *((json_of(text), text) for text in LONGEST)],
)  # fmt: skip
def test_numbers_have_one_listed_text(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        math.nan,
        math.inf,
        "\ud800",
        object(),
        Decimal("1e99999"),
        Decimal("1e4000"),
        Decimal("1e-4001"),
        Decimal(f"5.{'0' * 4001}"),
        pytest.param(10**4000, id="4001 digits"),
        pytest.param(10**5000, id="huge"),
    ],
)
def test_what_no_listed_value_can_be(value: Any) -> None:
    assert text_of(value) is None


@pytest.mark.parametrize(
    "text", ["", '"abc"', "a b", "-0", "01", "1.0", "1e3", '"', '"a', '"\\u0041"']
)
def test_what_is_no_text_of_a_listed_value(text: str) -> None:
    with pytest.raises(Rejected):
        json_of(text)


TYPES: list[tuple[OpenType, Any, str]] = [
    (TextType(), "abc", ""), (TextType(), 5, "R105"), (TextType(), None, "R105"),
    (TextType(), "\ud800", "R106"), (TextType(least=2), "a", "R105"),
    (TextType(most=2), "abc", "R105"),
    (TextType(most=1), "😀", ""), (TextType(pattern="a+"), "aaa", ""),
    (TextType(pattern="a+"), "aab", "R105"), (TextType(pattern="a"), "a\n", "R105"),
    (NumberType(whole=False), 1.5, ""), (NumberType(whole=True), 1.5, "R105"),
    (NumberType(whole=True), 5.0, ""), (NumberType(whole=True), True, "R105"),
    (NumberType(whole=False), "5", "R105"), (NumberType(whole=False), math.nan, "R106"),
    (NumberType(whole=True), 2**53 + 1, ""), (NumberType(whole=False), 2**64 - 1, ""),
    (NumberType(whole=True), 2**64, "R106"), (NumberType(whole=True), -(2**63), ""),
    (NumberType(whole=True, low="0", high="9223372036854775807"), 2**63, "R105"),
    (NumberType(whole=True, low="0", high="9223372036854775807"), 2**63 - 1, ""),
    (JsonType(), {"id": [2**63, -(2**63), 2**64 - 1]}, ""), (JsonType(), [2**64], "R106"),
    (NumberType(whole=False, low="0", high="1.5"), 1.5, ""),
    (NumberType(whole=False, low="0", high="1.5"), 1.5000000000000002, "R105"),
    (NumberType(whole=False, low="0", high="1.5"), -5e-324, "R105"),
    (FlagType(), True, ""), (FlagType(), 1, "R105"), (FlagType(), None, "R105"),
    (JsonType(), {"a": None}, ""), (JsonType(), None, ""), (JsonType(most=3), "a", ""),
    (JsonType(most=2), "a", "R105"), (JsonType(), [math.inf], "R106"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "code"), TYPES)
def test_types(kind: OpenType, value: Any, code: str) -> None:
    finding = check(kind, value)
    assert ("" if finding is None else finding.code.value) == code
    if not code:
        _, data = encoded(kind, value)
        check_text(kind, data.decode())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TextType(most=1), "ab"), (NumberType(whole=False), "1.0"), (NumberType(whole=True), "1.5"),
        (NumberType(whole=False), "18446744073709551616"), (NumberType(whole=False), "1e3"),
        (JsonType(), "[18446744073709551616]"), (JsonType(), "-9223372036854775809"),
        (NumberType(whole=False, low="0", high="1"), "2"), (FlagType(), "True"),
        (JsonType(), "[1, 2]"), (JsonType(), '{"b":1,"a":2}'), (JsonType(), '{"a":1,"a":1}'),
        (JsonType(), "NaN"), (JsonType(), "1e1"), (JsonType(), "[" * 9999),
        (JsonType(most=1), "[]"),
    ],
)  # fmt: skip
def test_texts_that_no_value_of_the_type_has(kind: OpenType, text: str) -> None:
    with pytest.raises(Rejected) as refused:
        check_text(kind, text)
    assert code_of(refused) in ("R105", "R106")
