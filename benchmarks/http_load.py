"""500 durable calls a second over HTTP, compared with the SDK's server and fastmcp's proxy.

Open loop: call n is due n / rate seconds after the start, and its time counts from then.  So if a
server stops for a second, all calls that were due in that second count the delay.  Sixteen sessions
take turns, each over connections that stay open.

The floor is an fdatasync of a line of the ledger's length, measured before; a durable call waits
for at least one.  The gate runs in front of the SDK's server, and of a server that costs almost
nothing, so that their costs can be separated.  fastmcp runs in a separate environment, whose Python
is in `TCC_FASTMCP`; without it the row is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import tcc
from benchmarks.mcp import ROOT

RATE = int(os.environ.get("TCC_LOAD_RATE", "500"))
SECONDS = float(os.environ.get("TCC_LOAD_SECONDS", "20"))
SESSIONS = 16
CONNECTIONS = 4  # connections of a session
GRAMMAR = """grammar echo version "1"

tool echo(text: text max 2000) { parallel }

limit depth <= 4000
"""
SERVER = """\
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("echo", version="1")
@server.tool()
def echo(text: str) -> str:
    return text
port = os.environ.get("PORT")
if port is None:
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(port))
"""
BARE = """\
import json, sys
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    told = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)
"""
PROXY = """\
import os, sys
from fastmcp.server import create_proxy
proxy = create_proxy({"mcpServers": {"echo": {"command": sys.argv[1], "args": sys.argv[2:]}}})
proxy.run(transport="http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
"""
COLUMNS = ("in between", "calls a second", "p50, ms", "p99, ms", "worst, ms", "not answered")


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "server.py").write_text(SERVER)
        (home / "proxy.py").write_text(PROXY)
        yield f"| fdatasync of 300 bytes, alone | {_floor(home)} | | |"
        server = [sys.executable, str(home / "server.py")]
        yield _row("nothing: the SDK's server", server, {"PORT": str(port := _port())}, port)
        peer = os.environ.get("TCC_FASTMCP")
        if peer is not None:
            env = {"PORT": str(port := _port()), "FASTMCP_LOG_LEVEL": "ERROR"}
            yield _row("fastmcp's proxy", [peer, str(home / "proxy.py"), *server], env, port)
        artifact = home / "echo.tcca"
        tcc.save(tcc.compile_text(GRAMMAR), artifact)
        (home / "bare.py").write_text(BARE)
        bare = [sys.executable, str(home / "bare.py")]
        for durable, what, behind in (
            ("--durable", "the SDK's server", server),
            ("--no-durable", "the SDK's server", server),
            ("--durable", "a bare server", bare),
        ):
            gate = [
                *(sys.executable, "-m", "tcc", "gate", str(artifact), "--share-server", durable),
                *("--store", str(home / f"{durable}-{what}")),
                *("--http", f"127.0.0.1:{(port := _port())}", "--", *behind),
            ]
            yield _row(f"`tcc gate {durable} --share-server`, {what}", gate, {}, port)


def _floor(home: Path) -> str:
    """Measure the disk: syncs per second, median and 99th percentile in ms, as table cells."""
    handle = os.open(home / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    times = []
    for _ in range(300):
        began = time.perf_counter()
        os.write(handle, b"x" * 300)
        os.fdatasync(handle)
        times.append(time.perf_counter() - began)
    os.close(handle)
    times.sort()
    return f"{len(times) / sum(times):.0f} | {times[150] * 1e3:.2f} | {times[297] * 1e3:.2f}"


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _row(name: str, command: list[str], env: dict[str, str], port: int) -> str:
    rooms = ("certs", "compiler", "runtime", "experiments", "cli")
    path = os.pathsep.join(str(ROOT / room) for room in rooms)
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        times, lost, took = asyncio.run(_load(port))
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
    times.sort()
    cells = [f"{len(times) / took:.0f}"]
    cells += [f"{times[int(len(times) * part)] * 1e3:.1f}" for part in (0.5, 0.99)]
    return f"| {name} | {' | '.join(cells)} | {times[-1] * 1e3:.1f} | {lost} |"


class _Client:
    """A session with connections that stay open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._headers = ""
        self._idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.Queue()
        )

    async def begin(self) -> None:
        """Open the connections and do the handshake."""
        for _ in range(CONNECTIONS):
            self._idle.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))
        info = {"name": "load", "version": "1"}
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        _, headers = await self._post({"id": 0, "method": "initialize", "params": told})
        self._headers = f"Mcp-Session-Id: {headers['mcp-session-id']}\r\n"
        await self._post({"method": "notifications/initialized"})

    async def call(self, number: int) -> bool:
        """Make one call; return whether the answer is as expected."""
        params = {"name": "echo", "arguments": {"text": f"call {number}"}}
        body, _ = await self._post({"id": number + 1, "method": "tools/call", "params": params})
        return f'"text":"call {number}"'.encode() in body.replace(b'": "', b'":"')

    async def _post(self, message: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        reader, writer = await self._idle.get()
        try:
            head = (
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
                "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                f"{self._headers}Content-Length: {len(data)}\r\n\r\n"
            )
            writer.write(head.encode() + data)
            return await _answer(reader)
        finally:
            self._idle.put_nowait((reader, writer))


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, str]]:
    """Read the body and the headers of an answer, with a length or in chunks."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
    headers = {
        name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
    }
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0"))), headers
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body, headers


async def _load(port: int) -> tuple[list[float], int, float]:
    """Return the times of answered calls, the number of other calls, and the total seconds."""
    clients = [_Client(port) for _ in range(SESSIONS)]
    for client in clients:
        await client.begin()
        await client.call(0)
    times: list[float] = []
    lost = 0
    loop = asyncio.get_running_loop()
    start = loop.time() + 0.2

    async def one(number: int) -> None:
        nonlocal lost
        due = start + number / RATE
        await asyncio.sleep(max(0.0, due - loop.time()))
        try:
            async with asyncio.timeout(60):
                good = await clients[number % SESSIONS].call(number)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            good = False
        if good:
            times.append(loop.time() - due)
        else:
            lost += 1

    await asyncio.gather(*[one(number) for number in range(int(RATE * SECONDS))])
    return times, lost, loop.time() - start
