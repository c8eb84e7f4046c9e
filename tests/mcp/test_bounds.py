"""What the relay passes on is what was checked, and what waits in it is bounded."""

from __future__ import annotations

from pathlib import Path

import tcc
from tcc_runtime.mcp.client import Client, ClientCall
from tcc_runtime.mcp.links import Stop
from tcc_runtime.mcp.links.http_server import Exchange
from tcc_runtime.mcp.links.stdio import MAX_CLIENT_LINE, Program
from tcc_runtime.mcp.relay import Relay
from tcc_runtime.mcp.server import Server
from tcc_runtime.mcp.wire import Request, Response
from tests.mcp.behind import run
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
    async def whole() -> int:
        link = await Program(command=["sleep", "60"]).open(Stop(), lambda _: None)
        try:
            server = Server(link, seconds=1, version="0")
            asks = iter(range(40_000))

            async def receive() -> Request:
                number = next(asks, None)
                if number is None:
                    raise EOFError
                return Request(identity=number, method="ping", params={})

            link.receive = receive  # type: ignore[method-assign]
            await server.listen(lambda _: None)
            return link.waiting
        finally:
            await link.close()

    assert 1 << 20 <= run(whole()) < 2 << 20


def test_what_waits_is_bounded_by_its_bytes() -> None:
    async def whole() -> None:
        relay, exchange = Relay(seconds=1, note=lambda _: None), Exchange()
        client = Client(exchange)

        def wait(identity: int, size: int) -> None:
            relay.take(
                ClientCall(client=client, identity=identity, tool="t", arguments={}, size=size)
            )

        async def refused() -> str:
            answer = await exchange.receive()
            assert isinstance(answer, Response) and answer.busy and answer.error is not None
            return answer.error[1]

        wait(1, MAX_CLIENT_LINE)
        wait(2, MAX_CLIENT_LINE)
        wait(3, 1)
        assert await refused() == "too many calls wait; not called"
        relay.cancel(2)
        wait(3, 1)
        wait(1, 1)
        assert await refused() == "a call has this id already"
        for identity in range(4, 4 + 255):
            wait(identity, 1)
        assert await refused() == "too many calls wait; not called"

    run(whole())
