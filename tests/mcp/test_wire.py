"""Lines and messages: cut from any pieces, bounded, and read as strictly as can be."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links.stdio import Lines
from tcc_runtime.mcp.wire import (
    MalformedMessage,
    Member,
    Request,
    Response,
    is_deeper,
    read_json,
    read_line,
    write,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(st.binary(max_size=12)), st.integers(1, 8))
def test_lines_do_not_depend_on_how_they_come(pieces: list[bytes], most: int) -> None:
    whole = b"".join(pieces)
    due = [
        None if len(line) > most else line.removesuffix(b"\r") for line in whole.split(b"\n")[:-1]
    ]
    at_once, bit_by_bit = Lines(most), Lines(most)
    found = at_once.feed(whole)
    assert found[: len(due)] == due
    assert found[len(due) :] in ([], [None])  # a line that is too long is told before its end
    piecewise = [line for piece in pieces for line in bit_by_bit.feed(piece)]
    assert piecewise == found


def test_a_line_without_end_is_not_kept() -> None:
    lines = Lines(1000)
    assert lines.feed(b"x" * 1001) == [None]
    for _ in range(1000):
        assert lines.feed(b"x" * 1000) == []
    assert lines.feed(b"x\nab\n") == [b"ab"]


@given(JSON, st.integers(0, 2**40) | st.text(max_size=20))
def test_a_result_comes_through_as_it_was(value: Any, identity: Any) -> None:
    text = json.dumps({"content": value, "isError": False}, ensure_ascii=False)
    if any(0xD800 <= ord(char) < 0xE000 for char in text):
        return
    line = f' {{ "id" : {json.dumps(identity)} , "result" : {text},"jsonrpc":"2.0" }}\r'
    found = read_line(line.encode())
    assert isinstance(found, Response)
    assert found.identity == identity
    assert found.result is not None
    assert json.loads(found.result["content"].text) == value
    assert plain(found.result["content"].value) == value


@given(st.binary(max_size=60))
@settings(max_examples=500)
def test_bytes_are_a_message_or_unreadable(data: bytes) -> None:
    for line in (
        data,
        b'{"jsonrpc":"2.0","id":1,' + data,
        b'{"jsonrpc":"2.0","id":1,"result":' + data,
    ):
        try:
            read_line(line)
        except MalformedMessage as error:
            assert error.code in (-32700, -32600)


_CALL = (
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":1.50}}}'
)
_PIECES = (
    _CALL,
    "",
    " ",
    "\t\r",
    "\x0b",
    "\ufeff",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "1" * 401,
    "1e999",
    "NaN",
    '"id":8',
    '"id":8,',
    ',"id":8',
    '"result":{"a":1}',
    ',"result":{"a":1}',
    ',"re\\u0073ult":{}',
    '"method":1',
    ',"error":{"code":1,"message":"m"}',
    '"params":{"a":1,"a":2}',
    ',"params":[]',
    '"\\ud800"',
    "null",
    "[" * 510 + "]" * 510,
    ',"deep":' + "[" * 501 + "]" * 501,
    ',"flat":' + "[" * 499 + "]" * 499,
    "x",
)


def read(line: bytes) -> object:
    try:
        return read_line(line)
    except MalformedMessage as error:
        return error.code, str(error), error.identity


def test_what_is_read_at_once_is_what_is_read_member_by_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, lines = random.Random(1), [_CALL + tail for tail in _PIECES]
    lines += [_CALL[:-1] + piece + "}" for piece in _PIECES]
    for _ in range(3000):
        text = rng.choice((_CALL, '{"jsonrpc":"2.0","id":7,"result":{"a":[1.0]}}'))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(_PIECES) + text[at + rng.randrange(4) :]
        lines.append(text)
    data = [line.encode("utf-8", "surrogatepass") for line in lines]
    found = [read(line) for line in data]
    assert sum(isinstance(one, Request) for one in found) > 100
    monkeypatch.setattr(wire, "_at_once", lambda text: None)
    assert found == [read(line) for line in data]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("0.1", True),
        ("0.10", True),
        ("1e2", True),
        ("0.10000000000000000000001", False),
        ("7", True),
        ("9007199254740993.5", False),
        ("123456789012345678901234567890", True),
    ],
)
def test_numbers_are_kept_at_any_depth_or_not(text: str, kept: bool) -> None:
    for depth in (0, 1, 2, 40):
        assert is_kept(read_json(f"{'[' * depth}{text}{']' * depth}".encode())) is kept
        nested = '{"a":[],"b":' * depth + text + "}" * depth
        assert is_kept(read_json(nested.encode())) is kept


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "NaN", "[1,]", '{"a":1,}', "01", "+1", "1 2", '"\n"', "'a'", "[", "1" * 401,
     "1e9" + "9" * 400, '{"a":{"b":1,"b":1}}', "\ufeff1"],
)  # fmt: skip
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(MalformedMessage):
        read_json(text.encode())


def test_numbers_are_exact() -> None:
    found = read_json(b"[1, 1.10, -0.0, 1e400, 123456789012345678901234567890]")
    assert found == [
        1,
        Decimal("1.10"),
        Decimal("-0.0"),
        Decimal("1e400"),
        123456789012345678901234567890,
    ]
    assert [str(number) for number in found[:3]] == ["1", "1.10", "-0.0"]


def test_depth_is_counted_without_recursion() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert is_deeper(deep, 100)
    assert not is_deeper([[1], {"a": [2]}], 3)
    assert is_deeper([[1], {"a": [2]}], 2)


def test_requests_and_answers_are_told_apart() -> None:
    ask = read_line(b'{"jsonrpc":"2.0","id":"a","method":"m"}')
    assert ask == Request(identity="a", method="m", params={})
    assert read_line(b'{"jsonrpc":"2.0","method":"m","params":{"a":1}}') == Request(
        identity=None, method="m", params={"a": 1}
    )
    failed = read_line(b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":5}}')
    assert failed == Response(identity=1, error=(-32603, ""))
    told = Response(identity=1, result={"a": "é\u2028\ud800"})
    assert write(told) == b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\u00e9\\u2028\\ud800"}}\n'


def test_a_result_is_one_line_for_whoever_reads_it() -> None:
    inner = '{"jsonrpc":"2.0","id":7,"result":{}}'
    found = read_line(f'{{"jsonrpc":"2.0","id":1,"result":{{"a":\r{inner}\r}}}}'.encode())
    assert isinstance(found, Response) and found.result is not None
    text = "[\r" + inner + "\n]"
    line = write(Response(identity=1, result={"a": Member(value=None, text=text)}))
    assert line.splitlines() == [line.rstrip(b"\n")]
    assert json.loads(line)["result"]["a"] == [json.loads(inner)]
