"""The relay compared with a relay that only copies: stdio, HTTP, parallel reads, many calls.

A relay that only copies is the floor.  Over stdio it copies bytes between pipes.  Over HTTP it
passes the body of a request to the server's standard input, and the line that comes back to the
client (with starlette and uvicorn, like the gate).  It never parses, decides or records.  The
server is the same for all and costs almost nothing; in the table of parallel reads each call takes
50 ms.  Figures over stdio are medians of 1,000 calls, in turns of 100.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import tcc
from benchmarks import http_load
from benchmarks.mcp import TURN, Peer

CALLS = 1000
GRAMMAR = """grammar echo version "1"

tool echo(text: text max 2000) { parallel }

limit depth <= 20000
"""
COPY = """\
import os, select, subprocess, sys
behind = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
ways = {0: behind.stdin.fileno(), behind.stdout.fileno(): 1}
while True:
    for source in select.select(list(ways), [], [])[0]:
        data = os.read(source, 65536)
        if not data:
            sys.exit()
        os.write(ways[source], data)
"""
COPY_HTTP = """\
import asyncio, json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def main():
    behind = await asyncio.create_subprocess_exec(*sys.argv[2:], stdin=-1, stdout=-1)
    waiting = asyncio.Queue()

    async def post(request):
        body = await request.body()
        if b'"id"' not in body:
            return Response(status_code=202)
        answer = asyncio.get_running_loop().create_future()
        waiting.put_nowait(answer)
        behind.stdin.write(body + b"\\n")
        headers = {"mcp-session-id": "x"}
        return Response(await answer, headers=headers, media_type="application/json")

    async def read():
        while line := await behind.stdout.readline():
            waiting.get_nowait().set_result(line)

    reading = asyncio.ensure_future(read())
    app = Starlette(routes=[Route("/mcp", post, methods=["POST"])])
    config = uvicorn.Config(app, port=int(sys.argv[1]), log_level="error", http="h11")
    await uvicorn.Server(config).serve()

asyncio.run(main())
"""
SLOW = """\
import asyncio, json, sys
async def answer(message):
    await asyncio.sleep(0.05)
    result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
async def main():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "tools/call":
            asyncio.ensure_future(answer(message))
            continue
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
            "tools": [{"name": "echo", "inputSchema": schema}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told}), flush=True)
asyncio.run(main())
"""


def table() -> Iterator[str]:
    """Yield the rows of all tables, in Markdown."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for file, text in (
            ("copying", COPY), ("copying_http", COPY_HTTP), ("slow", SLOW), ("bare", http_load.BARE)
        ):  # fmt: skip
            (home / f"{file}.py").write_text(text)
        artifact = home / "echo.tcca"
        tcc.save(tcc.compile_text(GRAMMAR), artifact)
        yield from _stdio(home, artifact)
        yield ""
        yield from _parallel(home, artifact)
        yield ""
        yield from _http(home, artifact)


def _relays(home: Path, artifact: Path, server: str) -> dict[str, list[str]]:
    direct = [sys.executable, str(home / f"{server}.py")]
    gate = [sys.executable, "-m", "tcc", "gate", str(artifact), "--ledger"]
    return {
        "nothing": direct,
        "a relay that only copies": [sys.executable, str(home / "copying.py"), *direct],
        "tcc gate": [*gate, str(home / f"{server}-s"), "--", *direct],
        "tcc gate --no-durable": [*gate, str(home / f"{server}-t"), "--no-durable", "--", *direct],
    }


def _call(peer: Peer) -> float:
    arguments = {"name": "echo", "arguments": {"text": "x" * 200}}
    began = time.perf_counter()
    answer = peer.ask("tools/call", arguments)
    assert not answer["result"].get("isError"), answer
    return time.perf_counter() - began


def _stdio(home: Path, artifact: Path) -> Iterator[str]:
    """Yield the rows about a call over stdio."""
    peers = {name: Peer(line) for name, line in _relays(home, artifact, "bare").items()}
    times: dict[str, list[float]] = {name: [] for name in peers}
    for peer in peers.values():
        for _ in range(TURN):
            _call(peer)
    for _ in range(CALLS // TURN):
        for name, peer in peers.items():
            times[name] += [_call(peer) for _ in range(TURN)]
    for peer in peers.values():
        peer.close()
    yield "| a call over stdio: in between | median, ms | 99th percentile, ms |"
    yield "| --- | ---: | ---: |"
    for name, found in times.items():
        found.sort()
        yield f"| {name} | {median(found) * 1e3:.2f} | {found[len(found) * 99 // 100] * 1e3:.2f} |"


def _parallel(home: Path, artifact: Path) -> Iterator[str]:
    """Eight parallel reads of 50 ms each."""
    yield "| 8 reads at once, 50 ms each: in between | median of 40, ms |"
    yield "| --- | ---: |"
    for name, line in _relays(home, artifact, "slow").items():
        peer = Peer(line)
        times = []
        for _ in range(40):
            began = time.perf_counter()
            peer.ask_all("tools/call", [{"name": "echo", "arguments": {"text": "x"}}] * 8)
            times.append(time.perf_counter() - began)
        peer.close()
        yield f"| {name} | {median(times) * 1e3:.1f} |"


def _http(home: Path, artifact: Path) -> Iterator[str]:
    """Calls over HTTP, open loop."""
    server = [sys.executable, str(home / "bare.py")]
    yield f"| {http_load.RATE} calls a second over HTTP | {' | '.join(http_load.COLUMNS[1:])} |"
    yield "| --- " * len(http_load.COLUMNS) + "|"
    yield f"| fdatasync of 300 bytes, alone | {http_load._floor(home)} | | |"
    port = http_load._port()
    copy = [sys.executable, str(home / "copying_http.py"), str(port), *server]
    yield http_load._row("a relay that only copies", copy, {}, port)
    for durable in ("--no-durable", "--durable"):
        port = http_load._port()
        gate = [
            *(sys.executable, "-m", "tcc", "gate", str(artifact), "--share-server", durable),
            *("--store", str(home / durable), "--http", f"127.0.0.1:{port}", "--", *server),
        ]
        yield http_load._row(f"`tcc gate {durable} --share-server`", gate, {}, port)
