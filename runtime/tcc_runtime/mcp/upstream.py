"""The server behind: its handshake in either way of the protocol, its tools, its requests refused.

A client with no capabilities, standard library only.  Lines that are no messages are noise and are
passed over; what was asked is waited for until a deadline.  Cost: linear in what the server sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp.nesting import is_deeper
from tcc_runtime.mcp.pipes import ready
from tcc_runtime.mcp.process import Process
from tcc_runtime.mcp.versions import HANDSHAKE, STATELESS, envelope
from tcc_runtime.mcp.wire import (
    METHOD_NOT_FOUND,
    Answer,
    Member,
    Request,
    Unreadable,
    dumps,
    read_line,
    write_line,
)

Protocol: TypeAlias = Literal["auto", "handshake", "2026-07-28"]
Tool: TypeAlias = "Mapping[str, Any]"

_FULL = 1 << 20
_MAX_PAGES = 1000
_MAX_TOOLS = 10_000
DEEPEST_TOOL = 100


class Upstream:
    """A connection to a server.

    Args:
        command: the program and its arguments.
        seconds: how long an answer may take while the connection is made.
        version: ours, which servers are told.

    Attributes:
        pipe: to the server.
        stateless: whether it is spoken to as since 2026-07-28.
        info: what the server says of itself.
        aside: is given what comes while something else is waited for.

    Raises:
        ServerError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], *, seconds: float, version: str) -> None:
        self._process = Process(command)
        self._seconds = seconds
        self._version = version
        self._last = 0
        self.pipe = self._process.pipe
        self.stateless = False
        self.info: Mapping[str, Any] = {}
        self.aside: Callable[[Request | Answer], None] = self._no_request

    def close(self) -> None:
        """End the server."""
        self._process.close()

    def connect(self, protocol: Protocol = "auto") -> None:
        """Agree on a way to speak.

        Args:
            protocol: ``auto`` takes the handshake, and the stateless way where that is refused.

        Raises:
            ServerError: the server does not answer, or speaks no version that we speak.
        """
        refusal = None
        if protocol != STATELESS:
            refusal = self._initialize()
            if refusal is None:
                return
        if protocol != "handshake":
            self.stateless = True
            refusal = self._discover()
        if refusal is not None:
            raise ServerError(f"the server refuses the connection: {refusal}")

    def tools(self) -> tuple[Tool, ...]:
        """Its tools, sorted by name.

        Raises:
            ServerError: it does not list them as it should.
        """
        found: dict[str, Tool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            result = self._result(
                self.ask("tools/list", {} if cursor is None else {"cursor": cursor})
            )
            for tool in _tools_of(result):
                if tool["name"] in found:
                    raise ServerError(f"the server lists a tool twice: {tool['name']!r}")
                found[tool["name"]] = tool
            cursor = _cursor_of(result)
            if cursor is None:
                return tuple(found[name] for name in sorted(found))
            if cursor in cursors or len(cursors) >= _MAX_PAGES or len(found) > _MAX_TOOLS:
                raise ServerError("the server's list of tools does not end")
            cursors.add(cursor)

    @property
    def next_identity(self) -> int:
        """The id of the next request; what the server says of its progress comes under it."""
        return self._last + 1

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request, and say by which id its answer will come."""
        self._last += 1
        if self.stateless:
            meta = {**params.get("_meta", {}), **envelope(self._version)}
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.pipe.send(write_line(message))
        return self._last

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self.pipe.send(write_line(message if params is None else {**message, "params": params}))

    def refuse(self, request: Request) -> None:
        """Answer what the server asks: it may see that we are there, and nothing else.

        A server that asks and does not read is not answered: what waits for it is bounded.
        """
        if request.identity is None or self.pipe.waiting > _FULL:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.identity}
        if request.method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "nothing may be asked here"}
        self.pipe.send(write_line(answer))

    def ask(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Send a request and wait for its answer; what else comes goes to `aside`.

        Raises:
            ServerError: there is none in time, or the server is gone.
        """
        expected = self.request(method, params)
        until = time.monotonic() + self._seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise ServerError(f"the server gave no answer to {method} in {self._seconds:g} s")
            if not ready([self.pipe], left):
                continue
            for line in self.pipe.read():
                answer = self._taken(line, expected)
                if answer is not None:
                    return answer
            if self.pipe.ended:
                raise ServerError(f"the server ended before it answered {method}")

    def _no_request(self, message: Request | Answer) -> None:
        if isinstance(message, Request):
            self.refuse(message)

    def _taken(self, line: bytes | None, expected: int) -> Answer | None:
        """The answer that is waited for, if this is it; what is no message is noise."""
        if line is None:
            raise ServerError("the server sent a line that is too long")
        try:
            message = read_line(line)
        except Unreadable as error:
            if line.lstrip()[:1] in (b"{", b"["):
                raise ServerError(f"the server sent a line that is refused: {error}") from None
            return None
        if isinstance(message, Answer) and message.identity == expected:
            return message
        self.aside(message)
        return None

    def _result(self, answer: Answer) -> Mapping[str, Member]:
        if answer.error is not None:
            raise ServerError(f"the server answers with error {answer.error[0]}: {answer.error[1]}")
        if answer.result is None:
            raise ServerError("the server answers with a result that is no object")
        return answer.result

    def _initialize(self) -> str | None:
        """Make the handshake; the reason where it is refused."""
        asked = {
            "protocolVersion": HANDSHAKE[-1],
            "capabilities": {},
            "clientInfo": {"name": "tcc", "version": self._version},
        }
        answer = self.ask("initialize", asked)
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = self._result(answer)
        agreed = result["protocolVersion"].value if "protocolVersion" in result else None
        if agreed not in HANDSHAKE:
            raise ServerError("the server wants a protocol version that is not known here")
        self.info = _info(result.get("serverInfo"))
        self.notify("notifications/initialized")
        return None

    def _discover(self) -> str | None:
        answer = self.ask("server/discover", {})
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = self._result(answer)
        versions = result["supportedVersions"].value if "supportedVersions" in result else ()
        if not isinstance(versions, list) or STATELESS not in versions:
            raise ServerError("the server wants a protocol version that is not known here")
        meta = result["_meta"].value if "_meta" in result else {}
        key = "io.modelcontextprotocol/serverInfo"
        if isinstance(meta, dict) and isinstance(meta.get(key), dict):
            self.info = meta[key]
        return None


def _info(member: Member | None) -> Mapping[str, Any]:
    return member.value if member is not None and isinstance(member.value, dict) else {}


def _tools_of(result: Mapping[str, Member]) -> list[Tool]:
    tools = result["tools"].value if "tools" in result else None
    if not isinstance(tools, list):
        raise ServerError("the server's answer to tools/list has no list of tools")
    for tool in tools:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise ServerError("the server lists something that is no tool")
        if is_deeper(tool, DEEPEST_TOOL):
            raise ServerError(f"the server's tool {dumps(tool['name'])} is nested too deeply")
    return tools


def _cursor_of(result: Mapping[str, Member]) -> str | None:
    cursor = result["nextCursor"].value if "nextCursor" in result else None
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise ServerError("the server's list of tools goes on at a place that is no text")
