"""Canonical JSON: one value has one text, and nothing else is read."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import (
    MAX_NAME,
    decode,
    encode,
    large,
    parse_decimal,
    read_large,
    read_name,
)
from tcc_certs.formats.schema import (
    MAX_VERSION_BYTES,
    as_text,
    as_true,
    as_tuple,
    as_unsigned,
    as_version,
    format_version,
    listed,
    one_of,
    tagged,
    whole,
)

GOOD = [
    b"-9007199254740991", b"[" * 896 + b"]" * 896,
    b"[" * 895 + b"[],[]" + b"]" * 895,
    b"{}", b"[]", b'""', b"0", b"-1", b"true", b"9007199254740991", b'{"a":[1,"b"],"b":{}}',
    '"\u00e9\U0001f600"'.encode(), b'"\\u0001\\b\\t\\n\\f\\r\\"\\\\/"',
]  # fmt: skip
BAD = [
    (b"", "B101"), (b"{", "B101"), (b"\xff", "B101"), (b"[1,]", "B101"), (b"01", "B101"),
    (b" {}", "B102"), (b"{}\n", "B102"), (b'{"b":1,"a":2}', "B102"), (b'{"a":1,"a":1}', "B102"),
    (b'"\\u0041"', "B102"), (b'"\\/"', "B102"), (b'"\\u001F"', "B102"), (b'"\\u00e9"', "B102"),
    (b"-0", "B102"), (b"\xef\xbb\xbf{}", "B101"),
    (b"1.0", "B103"), (b"1e3", "B103"), (b"NaN", "B103"), (b"-Infinity", "B103"),
    (b"null", "B103"), (b"[null]", "B103"), (b"9007199254740992", "B103"),
    (b"1" * 5000, "B103"), (b'"\\ud800"', "B103"), ('{"\u00e9":1}'.encode(), "B103"),
    (b"[" * 897 + b"]" * 897, "D201"), (b"-9007199254740992", "B103"),
    (b"[" * 2000 + b"]" * 2000, "D201"), (b"[" * 10**6, "D201"), (b'{"a":' * 1000, "D201"),
]  # fmt: skip


@pytest.mark.parametrize("data", GOOD)
def test_reads_what_it_writes(data: bytes) -> None:
    assert encode(decode(data, "x")) == data


@pytest.mark.parametrize(("data", "code"), BAD)
def test_refuses(data: bytes, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        decode(data, "x")
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("data", "place", "due", "found"),
    [
        (b'{"a": 1}', "x byte 5", "b'1}'", "b' 1}'"),
        (b"{}\r", "x byte 2", "b''", "b'\\r'"),
        (b'"\\u0041"', "x byte 1", "b'A\"'", "b'\\\\u0041\"'"),
    ],
)
def test_the_first_byte_that_differs_is_named(data: bytes, place, due, found) -> None:
    with pytest.raises(Rejected) as refusal:
        decode(data, "x")
    told = refusal.value
    assert (told.code, told.path, told.expected, told.found) == ("B102", place, due, found)


def test_brackets_in_strings_are_no_nesting() -> None:
    data = b'"' + b"[" * 5000 + b'"'
    assert decode(data, "x") == "[" * 5000


@pytest.mark.parametrize("value", [0, 1, -1, 2**53 - 1, 2**53, -(2**53), 2**64 - 1, -(2**63)])
def test_large_integers_have_one_form(value: int) -> None:
    assert read_large(large(value), "x", Code.JSON_VALUE) == value


@pytest.mark.parametrize("value", ["1", "9007199254740991", "0", "-0", "1e20", "", True, [], 2.5])
def test_other_forms_of_large_integers_are_refused(value: object) -> None:
    with pytest.raises(Rejected):
        read_large(value, "x", Code.JSON_VALUE)  # type: ignore[arg-type]


def test_integers_of_too_many_bits_are_refused() -> None:
    with pytest.raises(Rejected):
        read_large(str(2**64), "x", Code.JSON_VALUE)
    assert read_large(str(2**64), "x", Code.JSON_VALUE, bits=65) == 2**64


# Forms of values that have an end.

ENDED = [(Code.PROOF_SCHEMA, "at"), (Code.PROOF_SCHEMA, "at pairs")]


def exact(value: str, path: str, code: Code, _: object) -> object:
    return parse_decimal(value, path, code)


def pair(value: Any, path: str, code: Code, _: object) -> object:
    return as_tuple(value, path, code, 2, "pairs")


def refuses(form: Any, value: Any) -> bool:
    try:
        form(value, "at", Code.PROOF_SCHEMA, {})
    except Rejected as refused:
        return (refused.code, refused.path) in ENDED
    return False


@pytest.mark.parametrize(
    ("form", "last", "wrong"),
    [
        (read_name, "a" * MAX_NAME, "a" * (MAX_NAME + 1)),
        (as_version, "a" * MAX_VERSION_BYTES, "a" * (MAX_VERSION_BYTES + 1)),
        (as_unsigned, 0, -1),
        (exact, "0", "-0"),
        (exact, "1.5", "1.50"),
        (read_name, "a", ""),
        (read_name, "a", 5),
        (read_name, "a", "a\u200b"),
        (as_text, "", 5),
        (as_true, True, False),
        (whole(3), 2, 3),
        (whole(3), 0, "0"),
        (listed(as_text, least=1), ["a"], []),
        (listed(as_text, least=1), ["a"], "a"),
        (format_version(3), [1, 3], 5),
        (format_version(3), [1, 3], [1, "3"]),
        (pair, [1, 2], [1]),
        (one_of("a", "b"), "b", "c"),
    ],
)
def test_a_form_has_an_end(form: Any, last: Any, wrong: Any) -> None:
    assert not refuses(form, last) and refuses(form, wrong)


def test_the_values_of_a_list_increase_strictly() -> None:
    form = listed(as_text, rises=str)
    assert form(["a", "b"], "at", Code.PROOF_SCHEMA, {}) == ("a", "b")
    for wrong in (["b", "a"], ["a", "a"]):
        with pytest.raises(Rejected) as refused:
            form(wrong, "at", Code.PROOF_SCHEMA, {})
        assert refused.value.path == "at[1]"


def test_a_later_version_is_declined() -> None:
    with pytest.raises(Rejected) as refused:
        format_version(3)([1, 4], "at", Code.PROOF_SCHEMA, {})
    assert refused.value.code is Code.UNKNOWN_VERSION


@pytest.mark.parametrize("tag", [[], {}, 5, None, "other"])
def test_a_tag_is_one_of_the_texts_of_its_tables(tag: Any) -> None:
    rest: Any = ("kind", {"a": ()}, "a", "at", Code.PROOF_SCHEMA, {})
    assert tagged({"kind": "a"}, *rest) == ("a", {})
    with pytest.raises(Rejected) as refused:
        tagged({"kind": tag}, *rest)
    assert (refused.value.code, refused.value.path) == (Code.PROOF_SCHEMA, "at.kind")


def test_only_readers_that_ask_for_ascii_refuse_other_keys() -> None:
    data = encode({"\u00e9": "null"})
    assert decode(data, "", ascii_keys=False) == {"\u00e9": "null"}
    with pytest.raises(Rejected):
        decode(data, "", ascii_keys=True)
