"""What the relay passes on is what was checked, and what waits in it is bounded."""

from __future__ import annotations

from pathlib import Path

import tcc
from tcc_runtime.mcp.door import ClientCall, WaitingCalls
from tcc_runtime.mcp.upstream import Upstream
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE
from tcc_runtime.mcp.wire import Request
from tests.mcp.speaking import Relayed

_DIGITS = """grammar g version "1"
tool open_case(id: 0.5 | 9007199254740993)
plan = any{0,9}
"""
_CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
    b'"params":{"name":"open_case","arguments":{"id":%b}}}\n'
)


def test_a_listed_number_is_passed_on_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "g.tcca"
    tcc.save(tcc.compile_text(_DIGITS), path)
    with Relayed(tmp_path, path) as relay:
        relay.greet()
        relay.send(_CALL % (72, b"0.50"))
        assert "isError" not in relay.answer_to(72)["result"]
        relay.send(_CALL % (73, b"9007199254740993"))
        assert "isError" not in relay.answer_to(73)["result"]
        relay.send(_CALL % (74, b"9007199254740992"))
        assert relay.answer_to(74)["result"]["structuredContent"]["code"] == "R104"
    assert relay.executed == [("open_case", {"id": 0.5}), ("open_case", {"id": 9007199254740993})]
    assert relay.outcomes() == ["done", "done"]
    assert relay.process.returncode == 0


def test_a_server_that_asks_and_does_not_read_fills_no_memory() -> None:
    upstream = Upstream(["sleep", "60"], seconds=1, version="0")
    try:
        for number in range(40_000):
            upstream.refuse(Request(identity=number, method="ping", params={}))
        assert 1 << 20 <= upstream.pipe.waiting < 2 << 20
    finally:
        upstream.close()


def test_what_waits_is_bounded_by_its_bytes() -> None:
    def call(identity: int) -> ClientCall:
        return ClientCall(identity=identity, tool="t", arguments={}, token=None)

    waiting = WaitingCalls()
    assert waiting.add(call(1), MAX_CLIENT_LINE, ()) is None
    assert waiting.add(call(2), MAX_CLIENT_LINE, ()) is None
    assert waiting.add(call(3), 1, ()) == "too many calls wait; not called"
    assert waiting.drop(2)
    assert waiting.add(call(3), 1, ()) is None
    assert [waiting.take().identity, waiting.take().identity] == [1, 3]
    assert waiting.add(call(4), 2 * MAX_CLIENT_LINE, ()) is None
