"""A call of an MCP tool over stdio: direct, through `tcc gate`, through a gate made with the SDK.

Server and client are the same minimal programs for all three, so that the differences come from the
part between them.  The gate by the SDK is the SDK's client behind the SDK's server, and decides
nothing.  Neither does fastmcp's proxy, which runs in a separate environment whose Python is in
`TCC_FASTMCP`.  Medians of 1,000 calls, in turns of 100.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import tcc

ROOT = Path(__file__).parents[1]
CALLS = 1000
TURN = 100
GRAMMAR = """grammar echo version "1"

tool echo(kind: short | long, text: text max 2000, number: number 0 .. 1000)

limit depth <= 4000
"""
SERVER = """\
import json, sys
schema = {"type": "object", "properties": {"kind": {"enum": ["short", "long"]},
    "text": {"type": "string"}, "number": {"type": "number"}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": schema}]}
    else:
        text = message["params"]["arguments"]["text"]
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
PROXY = """\
import asyncio, sys
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

async def main():
    behind = StdioServerParameters(command=sys.executable, args=sys.argv[1:])
    async with Client(stdio_client(behind), mode="legacy") as client:
        async def listed(context, params):
            return await client.list_tools()

        async def called(context, params):
            return await client.call_tool(params.name, params.arguments)

        server = Server("proxy", on_list_tools=listed, on_call_tool=called)
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

asyncio.run(main())
"""
FASTMCP = """\
import sys
from fastmcp.server import create_proxy
proxy = create_proxy({"mcpServers": {"echo": {"command": sys.argv[1], "args": sys.argv[2:]}}})
proxy.run(transport="stdio", show_banner=False)
"""


class Peer:
    """A server process, and a minimal client of it."""

    def __init__(self, command: list[str]) -> None:
        rooms = ("certs", "compiler", "runtime", "experiments", "cli")
        path = os.pathsep.join(str(ROOT / room) for room in rooms)
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0
        self.times: list[float] = []
        info = {"name": "bench", "version": "1"}
        asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.ask("initialize", asked)
        self._send({"method": "notifications/initialized"})
        self.ask("tools/list", {})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert found["id"] == self._last, found
        return found

    def ask_all(self, method: str, asked: list[dict[str, Any]]) -> None:
        """Send several requests before reading, then wait for all answers."""
        for params in asked:
            self._last += 1
            self._send({"id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        for _ in asked:
            found = json.loads(self._process.stdout.readline())
            assert not found["result"].get("isError"), found

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def turn(self, text: str) -> None:
        """Make TURN calls, and record the seconds of each."""
        arguments = {"kind": "short", "text": text, "number": 12.5}
        for _ in range(TURN):
            before = time.perf_counter()
            answer = self.ask("tools/call", {"name": "echo", "arguments": arguments})
            self.times.append(time.perf_counter() - before)
            assert not answer["result"].get("isError"), answer

    def close(self) -> None:
        """Close the pipe and wait for the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


def measured() -> tuple[dict[str, list[float]], list[float]]:
    """Return the seconds of each call by the program in between, and of writing a line to disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server, proxy, artifact = folder / "server.py", folder / "proxy.py", folder / "echo.tcca"
        server.write_text(SERVER, "ascii")
        proxy.write_text(PROXY, "ascii")
        tcc.save(tcc.compile_text(GRAMMAR), artifact)
        direct = [sys.executable, str(server)]
        gate = [sys.executable, "-m", "tcc", "gate", str(artifact), "--ledger"]
        peers = {
            "direct": Peer(direct),
            "tcc gate": Peer([*gate, str(folder / "s.ledger"), "--", *direct]),
            "tcc gate --no-durable": Peer(
                [*gate, str(folder / "t.ledger"), "--no-durable", "--", *direct]
            ),
            "gate by the SDK": Peer([sys.executable, str(proxy), *direct[1:]]),
        }
        other = os.environ.get("TCC_FASTMCP")
        if other is not None:
            fastmcp = folder / "fastmcp.py_"
            fastmcp.write_text(FASTMCP, "ascii")
            peers["fastmcp's proxy"] = Peer([other, str(fastmcp), *direct])
        try:
            for peer in peers.values():
                peer.turn("warm")
                peer.times.clear()
            for _ in range(CALLS // TURN):
                for peer in peers.values():
                    peer.turn("x" * 200)
        finally:
            for peer in peers.values():
                peer.close()
        waits = [_synced(folder / "disk") for _ in range(100)]
    return {name: peer.times for name, peer in peers.items()}, waits


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    measured_times, waits = measured()
    base = median(measured_times["direct"])
    yield "| | median, ms | on top of direct, ms | 99th percentile, ms |"
    yield "| --- | ---: | ---: | ---: |"
    for label, found in measured_times.items():
        times = sorted(found)
        middle, far = median(times), times[len(times) * 99 // 100]
        yield f"| {label} | {middle * 1e3:.2f} | {(middle - base) * 1e3:.2f} | {far * 1e3:.2f} |"
    yield ""
    yield f"The disk takes {median(waits) * 1e3:.2f} ms for a line to be safe."


def _synced(path: Path) -> float:
    """Return the seconds that the disk takes to store a line durably."""
    before = time.perf_counter()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, b"x" * 400)
    os.fdatasync(handle)
    os.close(handle)
    return time.perf_counter() - before
