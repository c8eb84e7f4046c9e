"""What a gate over HTTP counts, and the listener where a monitoring system reads it.

Labels are tools of the grammar, codes and outcomes: no session, no principal, no argument, so that
whoever may read it learns nothing of either.  A name that is no tool of the grammar is one label.
Text: docs/http.md.  Cost: a lock and an addition for each call.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import h11

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
UNKNOWN_TOOL: Final = "unknown tool"
_SECONDS: Final = 10.0
_MOST_HEAD: Final = 8 << 10
_MOST_CONNECTIONS: Final = 16
_CHUNK: Final = 1 << 14
_HELP: Final = {
    "tcc_calls_total": "Calls that were let through, by how they ended.",
    "tcc_refusals_total": "Calls that were refused, and not made but in the shadow, by code.",
    "tcc_http_answers_total": "Answers over HTTP, by status.",
}
_Key = tuple[str, tuple[tuple[str, str], ...]]


class Meter:
    """Counts of what happened; threads share one.

    Args:
        tools: names of the grammar's tools.
    """

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)
        self._lock = threading.Lock()
        self._counts: Counter[_Key] = Counter()

    def ended(self, tool: str, outcome: str) -> None:
        """A call that was let through has an outcome."""
        self._add("tcc_calls_total", ("tool", self._tool(tool)), ("outcome", outcome))

    def refused(self, tool: str, code: str) -> None:
        """A call was refused."""
        self._add("tcc_refusals_total", ("tool", self._tool(tool)), ("code", code))

    def answered(self, status: int) -> None:
        """A request was answered over HTTP."""
        self._add("tcc_http_answers_total", ("code", str(status)))

    def text(self, gauges: Iterable[tuple[str, str, int]]) -> bytes:
        """All of it, in the text format of Prometheus.

        Args:
            gauges: name, help and value of what is not counted but looked at.
        """
        lines = []
        with self._lock:
            counts = sorted(self._counts.items())
        for name, told in _HELP.items():
            lines += [f"# HELP {name} {told}", f"# TYPE {name} counter"]
            lines += [
                f"{name}{{{','.join(f'{label}={_quoted(value)}' for label, value in labels)}}} {n}"
                for (of, labels), n in counts
                if of == name
            ]
        for name, told, value in gauges:
            lines += [f"# HELP {name} {told}", f"# TYPE {name} gauge", f"{name} {value}"]
        return ("\n".join(lines) + "\n").encode()

    def _tool(self, tool: str) -> str:
        return tool if tool in self._tools else UNKNOWN_TOOL

    def _add(self, name: str, *labels: tuple[str, str]) -> None:
        with self._lock:
            self._counts[name, labels] += 1


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class MetricsListener:
    """Answers `GET /metrics`, and nothing else, on an address of its own.

    Args:
        text: what is answered.
        names: further names that a `Host` header may have.
    """

    def __init__(self, text: Callable[[], bytes], names: Iterable[str] = ()) -> None:
        self._text = text
        self._names = tuple(names)
        self._hosts: frozenset[str] = frozenset()
        self._server: asyncio.Server | None = None
        self._open = 0

    async def listen(self, host: str, port: int) -> str:
        """Begin to accept; the URL.

        Raises:
            OSError: the address is not to be had.
        """
        self._server = await asyncio.start_server(self._connected, host, port, limit=_CHUNK)
        port = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        names = (shown, "localhost", *self._names)
        self._hosts = frozenset(f"{name}:{port}".lower() for name in names) | frozenset(
            name.lower() for name in self._names
        )
        return f"http://{shown}:{port}/metrics"

    def close(self) -> None:
        """Accept nothing more."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= _MOST_CONNECTIONS:
            writer.close()
            return
        self._open += 1
        try:
            with suppress(OSError, TimeoutError, h11.RemoteProtocolError):
                async with asyncio.timeout(_SECONDS):
                    await self._answer(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)
        while True:
            event = http.next_event()
            if isinstance(event, h11.Request):
                break
            if event is not h11.NEED_DATA:
                return
            http.receive_data(await reader.read(_CHUNK))
        status, body = self._of(event)
        fields = [
            (b"content-type", CONTENT_TYPE),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        parts = (
            h11.Response(status_code=status, headers=fields),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for part in parts:
            writer.write(http.send(part) or b"")
        await writer.drain()

    def _of(self, request: h11.Request) -> tuple[int, bytes]:
        """Status and body; a page in a browser is none of those who may read it."""
        hosts = [
            value.decode("latin-1").lower() for name, value in request.headers if name == b"host"
        ]
        if request.target.partition(b"?")[0] != b"/metrics":
            return 404, b""
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 421, b""
        if any(name == b"origin" for name, _ in request.headers):
            return 403, b""
        if request.method != b"GET":
            return 405, b""
        return 200, self._text()
