"""JSON that is refused takes time in proportion to its bytes, whatever they are."""

from __future__ import annotations

from functools import partial

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode
from tcc_certs.formats.container import read_container
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.limits import MAX_HEADER_BYTES, MAX_JSON_DEPTH
from tests.doubling import doubles, processor_time

MANY = b"[" + b"[]," * (MAX_JSON_DEPTH + 4)  # so many brackets that their depth is looked at
SHAPES = {
    "a string that does not end": lambda n: MANY + b'"' + b'\\"' * n,
    "quotes": lambda n: MANY + b'"' * n,
    "backslashes": lambda n: MANY + b"\\" * n,
    "backslashes in a string": lambda n: MANY + b'"' + b"\\" * n,
    "escaped line feeds": lambda n: MANY + b'"\\\n' * n,
    "strings that do not end, one after the other": lambda n: MANY + b'"\\' * n,
    "a long string": lambda n: MANY + b'"' + b"a" * n,
    "brackets": lambda n: b"[" + b"[]," * n + b"[]]",
    "brackets in a string": lambda n: MANY + b'"' + b"[]" * n,
    "closing brackets": lambda n: MANY + b"]" * n,
    "bytes that are no text": lambda n: MANY + b'"' + b"\xff\\" * n,
}


def refused(data: bytes) -> None:
    try:
        decode(data, "x")
    except Rejected:
        return
    assert data.startswith(b"[[]")


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_bytes_take_twice_the_time(name: str) -> None:
    doubles(lambda n: partial(refused, SHAPES[name](n)), 1 << 14)
    doubles(lambda n: partial(refused, SHAPES[name](n)), 1 << 17)


@pytest.mark.parametrize("name", SHAPES)
def test_a_header_and_a_line_of_a_ledger_take_no_time(name: str) -> None:
    header = SHAPES[name](1 << 15)[:MAX_HEADER_BYTES]
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header

    def read() -> None:
        with pytest.raises(Rejected):
            read_container(data)
        with pytest.raises(Rejected):
            list(LedgerReader([SHAPES[name](1 << 15) + b"\n"]))

    assert processor_time(read) < 1


@pytest.mark.parametrize("text", [b'"[[["', b'"\\"[[["', b'"\\\\"', b'"\\\\\\"[[["', b'"a\\"]"'])
def test_brackets_in_strings_have_no_depth(text: bytes) -> None:
    deep = b"[" * (MAX_JSON_DEPTH - 1) + text + b"]" * (MAX_JSON_DEPTH - 1)
    many = b",".join([text] * 400)
    assert decode(deep, "x")
    assert decode(b"[" + many + b"]", "x")
    with pytest.raises(Rejected) as refusal:
        decode(b"[" * (MAX_JSON_DEPTH + 1) + many + b"]" * (MAX_JSON_DEPTH + 1), "x")
    assert refusal.value.code == "D201"
