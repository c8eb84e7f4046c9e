"""`tcc gate --http` where something runs out, or is damaged: it answers, and goes on."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import tcc
from tcc_runtime.mcp.links.http_server import Connection, Limits, listen
from tests.mcp.speaking import GRAMMAR
from tests.mcp.test_http import GREETING, KEYS, pem, signed, web

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
FEW = (
    "sh",
    "-c",
    'ulimit -n 256; exec "$@"',
    "sh",
)  # descriptors: of connections 64, of sessions 128


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exhausted") / "cases.tcca"
    tcc.save(tcc.compile_text(GRAMMAR), path)
    return path


def test_connections_take_no_descriptor_that_sessions_need(tmp_path: Path, compiled: Path) -> None:
    """Those that say nothing are closed for those that come, and what is live goes on."""
    with web(tmp_path, compiled, before=FEW) as found:
        handle = found.greet()
        with ExitStack() as stack:
            for _ in range(600):
                stack.enter_context(socket.create_connection(("127.0.0.1", found.port), timeout=20))
            found.greet()
            again = found.call(handle, "open_case", {"id": "c-7"})
            assert not again["result"].get("isError"), again
        assert found.ask(b"", path="/healthz", method="GET")[0] == 200
        done = found.call(handle, "delete_case", {"id": "c-7", "how": "plain"})
        assert not done["result"].get("isError"), done
    assert set(found.verdicts()) <= {"ConformantPrefix", "Conformant"}


def test_who_is_answered_keeps_the_connection(tmp_path: Path, compiled: Path) -> None:
    """Of connections that are too many a call under way is none that is closed."""
    with web(tmp_path, compiled, before=FEW) as found, ThreadPoolExecutor(1) as pool:
        handle = found.greet()
        slow = {"kind": "safe", "how": "late:2", "id": "c-7"}
        found.call(handle, "open_case", {"id": "c-7"})
        under_way = pool.submit(found.call, handle, "act", slow)
        until = time.monotonic() + 20
        while '"act"' not in found.executed_in.read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(socket.create_connection(("127.0.0.1", found.port), timeout=20))
            assert not under_way.result()["result"].get("isError")


def test_sessions_take_no_descriptor_that_connections_need(tmp_path: Path, compiled: Path) -> None:
    """Whoever begins one after the other is told that there are no more, and others are served."""
    with web(tmp_path, compiled, before=FEW) as found:
        first = found.greet()
        told = [found.ask(GREETING) for _ in range(140)]
        assert [status for status, _, _ in told] == [200] * 127 + [503] * 13
        assert told[-1][1]["retry-after"] == "1"
        assert found.ask(PING, first)[0] == 200
        # Servers that cannot be started are no calls that were made.
        for _, headers, _ in told[:80]:
            found.ask(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "open_case", "arguments": {"id": "c-7"}},
                },
                headers["mcp-session-id"],
            )
        assert found.ask(PING, first)[0] == 200
    assert set(found.verdicts()) <= {"ConformantPrefix", "Conformant"}


def test_a_head_has_its_time_in_all() -> None:
    """Bytes that come one by one do not make it longer, and those of a body have what is left."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"]["connection"]
        try:
            async with asyncio.timeout_at(connection.until):
                while (await receive()).get("more_body"):
                    pass
        except TimeoutError:
            await Response(status_code=408, headers={"connection": "close"})(scope, receive, send)

    async def dripped(server: asyncio.Server, first: bytes, rest: bytes) -> tuple[bytes, float]:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        clock = asyncio.get_running_loop().time
        began = clock()
        writer.write(first)
        answered = asyncio.ensure_future(reader.read(1 << 12))
        for byte in rest:
            await asyncio.wait((answered,), timeout=0.2)
            if answered.done():
                break
            writer.write(bytes([byte]))
        found = await answered
        writer.close()
        return found, clock() - began

    async def talk() -> list[tuple[bytes, float]]:
        limits = Limits(16, counted.append)
        limits.seconds = 1.0
        server, _, _ = await listen(app, "127.0.0.1", 0, limits)
        async with server:
            head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n"
            ways = [(b"P", head[1:] + b"\r\n"), (head, b"\r\n" + b"x" * 40)]
            return list(await asyncio.gather(*[dripped(server, *way) for way in ways]))

    counted: list[int] = []
    for found, seconds in asyncio.run(talk()):
        assert found.startswith(b"HTTP/1.1 408 ")
        assert seconds < 3.0
    assert counted == [408, 408]


@pytest.mark.parametrize("damage", ["byte", "folder"])
def test_a_principal_whose_ledger_is_damaged_is_answered(
    damage: str, tmp_path: Path, compiled: Path
) -> None:
    """No other session is begun for it, nobody else is kept out, and the owner is told."""
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk")
    ann, bob = (f"Bearer {signed(sub=name)}" for name in ("ann", "bob"))
    with web(tmp_path, compiled, *options) as found:
        handle = found.greet(Authorization=ann)
        found.call(handle, "open_case", {"id": "c-7"}, Authorization=ann)
        (path,) = found.ledgers()
    if damage == "byte":
        path.write_bytes(path.read_bytes().replace(b'"call"', b'"cell"', 1))
    else:
        path.unlink()
        path.mkdir()
    with web(tmp_path, compiled, *options) as found:
        for message, its in ((GREETING, None), (PING, handle)):
            status, told, body = found.ask(message, its, Authorization=ann)
            assert (status, body) in ((503, b""), (404, b"")), body
            assert status == 404 or told["retry-after"] == "1"
        assert found.ask(GREETING, Authorization=bob)[0] == 200
        _, said = found.stop()
        assert "a session is not to be had: " in said
    names = sorted(one.name for one in (tmp_path / "store" / "principals").iterdir())
    assert len(names) == 2


@pytest.mark.parametrize("claims", [{"sub": "\ud800"}, {"iss": "https://\udfff"}])
def test_whoever_has_no_name_in_utf8_is_nobody(
    claims: dict[str, Any], tmp_path: Path, compiled: Path
) -> None:
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk")
    with web(tmp_path, compiled, *options) as found:
        status, told, body = found.ask(GREETING, Authorization=f"Bearer {signed(**claims)}")
        assert (status, body) == (401, b"") and told["www-authenticate"]
        assert json.loads(found.ask(GREETING, Authorization=f"Bearer {signed()}")[2])["result"]
