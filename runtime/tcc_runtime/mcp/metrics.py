"""Counts of a gate over HTTP, and the listener where a monitoring system reads them.

Labels are tools of the grammar, codes and outcomes.  They contain no session, principal or
argument.  All other tools share one label.
Text: docs/http.md.  Cost: an addition for each call.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tcc_runtime.mcp.links.http_server import Limits, listen

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
UNKNOWN_TOOL: Final = "unknown tool"
_MAX_CONNECTIONS: Final = 16
_HELP: Final = {
    "tcc_calls_total": "Calls that were let through, by how they ended.",
    "tcc_refusals_total": "Calls that were refused, and not made but in the shadow, by code.",
    "tcc_http_answers_total": "Answers over HTTP, by status.",
}
_Key = tuple[str, tuple[tuple[str, str], ...]]


class Meter:
    """Counts of calls, refusals and answers.

    Args:
        tools: the names of the grammar's tools.
    """

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)
        self._counts: Counter[_Key] = Counter()

    def ended(self, tool: str, outcome: str) -> None:
        """Count the outcome of a call that was made."""
        self._add("tcc_calls_total", ("tool", self._tool(tool)), ("outcome", outcome))

    def refused(self, tool: str, code: str) -> None:
        """Count a refused call."""
        self._add("tcc_refusals_total", ("tool", self._tool(tool)), ("code", code))

    def answered(self, status: int) -> None:
        """Count an answer over HTTP."""
        self._add("tcc_http_answers_total", ("code", str(status)))

    def text(self, gauges: Iterable[tuple[str, str, int]]) -> bytes:
        """Return all counts, in the text format of Prometheus.

        Args:
            gauges: name, help and value of further metrics.
        """
        lines = []
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
        self._counts[name, labels] += 1


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class MetricsListener:
    """Answers `GET /metrics`, and nothing else, at a separate address.

    Args:
        text: returns the answer.
        names: further host names that a `Host` header may have.
    """

    def __init__(self, text: Callable[[], bytes], names: Iterable[str] = ()) -> None:
        self._text = text
        self._names = tuple(names)
        self._hosts: frozenset[str] = frozenset()
        self._limits = Limits(_MAX_CONNECTIONS, lambda _: None)
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> str:
        """Start accepting connections; return the URL.

        Raises:
            OSError: the address is not available.
        """
        app = Starlette(routes=[Route("/metrics", _App(self._answer))])
        self._server, shown, port = await listen(app, host, port, self._limits)
        names = (shown, "localhost", *self._names)
        self._hosts = frozenset(f"{name}:{port}".lower() for name in names) | frozenset(
            name.lower() for name in self._names
        )
        return f"http://{shown}:{port}/metrics"

    def close(self) -> None:
        """Stop accepting connections, and close the open ones."""
        if self._server is not None:
            self._server.close()
        self._limits.close()

    def _answer(self, request: Request) -> Response:
        """Answer a request.  Pages in a browser may not read metrics."""
        headers = {"cache-control": "no-store", "connection": "close"}
        hosts = request.headers.getlist("host")
        status = 200
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            status = 421
        elif "origin" in request.headers:
            status = 403
        elif request.method != "GET":
            status = 405
        body = self._text() if status == 200 else b""
        return Response(body, status, headers, media_type=CONTENT_TYPE)


class _App:
    """An application for all methods. starlette would restrict a plain function to GET."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(Request(scope))(scope, receive, send)
