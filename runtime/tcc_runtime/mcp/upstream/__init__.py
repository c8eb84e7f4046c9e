"""The server behind the relay: its process, the handshake (both versions), its list of tools.

A client with no capabilities, standard library only.  What takes several requests is a generator
that yields each one and is sent its answer: a loop with other things to do waits for them in
between, :meth:`Upstream.connect` and :meth:`Upstream.tools` wait by themselves.
Cost: linear in what either side sends, bounded in memory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import typing
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.upstream.lock import DEEPEST_TOOL
from tcc_runtime.mcp.upstream.pipes import MAX_SERVER_LINE, Pipe, Stopping, ready

Protocol: TypeAlias = Literal["auto", "handshake", "2026-07-28"]
Tool: TypeAlias = "Mapping[str, Any]"

_FULL = 1 << 20
_MAX_PAGES = 1000
_MAX_TOOLS = 10_000
_GRACE = 2.0  # seconds for each way of ending a server
_HASTE = (0.3, 0.5, 0.6)  # by when each is over after we were asked to stop ourselves

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A request to a server."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


# What takes several requests; None asks to be gone on with soon.
Steps: TypeAlias = Generator[ServerRequest | None, wire.Response, T]


class ServerProcess(typing.Protocol):
    """What a connection to a server goes through.

    Attributes:
        pipe: to the server.
        unsent: the ids of requests that have an error for an answer, and were never sent.
    """

    pipe: Pipe

    @property
    def unsent(self) -> Collection[Any]:
        """The ids of requests that have an error for an answer, and were never sent."""

    def close(self, stopping: Stopping | None = None) -> None:
        """End it; as of :meth:`Process.close`."""


class Startable(typing.Protocol):
    """A server that is started otherwise than as a program: behind a URL, or several in one.

    Attributes:
        several: whether it is several servers in one.
    """

    @property
    def several(self) -> bool:
        """Whether it is several servers in one."""

    def start(self, most: int) -> ServerProcess:
        """Start it; lines of it may have `most` bytes."""


# The program and its arguments, or something else that can be started.
Command: TypeAlias = "Sequence[str] | Startable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProgram:
    """A program with an environment of its own.

    Attributes:
        command: the program and its arguments.
        env: variables beside ours; folder: where it runs, None is here.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    several: bool = False

    def start(self, most: int) -> Process:
        """Start it.

        Raises:
            ServerError: it cannot be started.
        """
        return Process(self.command, most, env={**os.environ, **self.env}, folder=self.folder)


class Process:
    """A server that runs, with pipes of its own, and is ended for certain.

    It stands in a session of its own, so that whatever it has started ends with it.  What it says
    on its standard error goes where ours goes.

    Args:
        command: the program and its arguments.
        most: bytes that a line of it may have.

    Raises:
        ServerError: it cannot be started.
    """

    unsent: Collection[Any] = ()

    def __init__(
        self,
        command: Sequence[str],
        most: int = MAX_SERVER_LINE,
        *,
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                env=env,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ServerError(f"cannot start {command[0]}: {reason or error}") from None
        if self._process.stdin is None or self._process.stdout is None:
            raise ServerError(f"cannot start {command[0]}: no pipes")
        self._ends = (self._process.stdin, self._process.stdout)
        self.pipe = Pipe(self._ends[1].fileno(), self._ends[0].fileno(), most)

    def close(self, stopping: Stopping | None = None) -> None:
        """End it: by the end of its input, then by a signal, then by one that it cannot refuse.

        Args:
            stopping: says whether we are asked to stop ourselves, and have less time for it.
        """
        for end in self._ends:
            with suppress(OSError):
                end.close()
        self.pipe.ended = self.pipe.broken = True
        for number, haste in zip((None, signal.SIGTERM, signal.SIGKILL), _HASTE, strict=True):
            if number is not None:
                self._signal(number)
            if self._has_ended(_GRACE, haste, stopping):
                break
        self._signal(signal.SIGKILL)

    def _has_ended(self, seconds: float, haste: float, stopping: Stopping | None) -> bool:
        """Wait for its end, a short while."""
        limit, pause = time.monotonic() + seconds, 0.001
        while self._process.poll() is None:
            if stopping is not None:
                limit = min(limit, stopping.until(seconds, haste))
            if time.monotonic() >= limit:
                return False
            time.sleep(pause)
            pause = min(0.01, 2 * pause)
        return True

    def _signal(self, number: int) -> None:
        # Its group outlives the process itself where it has started others.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class Upstream:
    """A connection to a server.

    Args:
        command: the program and its arguments, or what is started in place of one.
        seconds: how long an answer may take while the connection is made.
        version: ours, which servers are told.

    Attributes:
        several: whether it is several servers in one (:mod:`tcc_runtime.mcp.hub`).
        pipe: to the server.
        stateless: whether it is spoken to as since 2026-07-28.
        info: what the server says of itself; capabilities: what it says that it offers.
        hears: whether what it says by itself arrives here, and not answers alone.
        seconds: how long an answer may take while the connection is made, or tools are listed.

    Raises:
        ServerError: it cannot be started.
    """

    def __init__(self, command: Command, *, seconds: float, version: str) -> None:
        self.hears = isinstance(command, Sequence | ServerProgram)
        if isinstance(command, Sequence):
            self._process: ServerProcess = Process(command)
            self.several = False
        else:
            self._process = command.start(MAX_SERVER_LINE)
            self.several = command.several
        self.seconds = seconds
        self._version = version
        self._last = 0
        self.pipe = self._process.pipe
        self.stateless = False
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}

    def close(self, stopping: Stopping | None = None) -> None:
        """End the server; as of :meth:`Process.close`."""
        self._process.close(stopping)

    def connect(self, protocol: Protocol = "auto") -> None:
        """Go through :meth:`connecting`, and wait for it."""
        self._through(self.connecting(protocol))

    def tools(self) -> tuple[Tool, ...]:
        """Go through :meth:`listing`, and wait for it."""
        return self._through(self.listing())

    def connecting(self, protocol: Protocol = "auto") -> Steps[None]:
        """Agree on a way to speak.

        Args:
            protocol: ``auto`` takes the handshake, and the stateless way where that is refused.

        Raises:
            ServerError: the server does not answer, or speaks no version that we speak.
        """
        refusal = None
        if self.several:
            protocol = "handshake"  # of the hub; `protocol` is how it speaks to its servers
        if protocol != wire.STATELESS:
            refusal = yield from self._initialize()
            if refusal is None:
                return
        if protocol != "handshake":
            self.stateless = True
            refusal = yield from self._discover()
        if refusal is not None:
            raise ServerError(f"the server refuses the connection: {refusal}")

    def listing(self) -> Steps[tuple[Tool, ...]]:
        """Its tools, sorted by name.

        Raises:
            ServerError: it does not list them as it should.
        """
        found: dict[str, Tool] = {}
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            asked = {} if cursor is None else {"cursor": cursor}
            result = _result((yield ServerRequest(method="tools/list", params=asked)))
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

    def was_sent(self, identity: int) -> bool:
        """Whether a request may have come to the server, for all that is known here."""
        return identity not in self._process.unsent

    @property
    def next_identity(self) -> int:
        """The id of the next request; what the server says of its progress comes under it."""
        return self._last + 1

    def request(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request, and say by which id its answer will come."""
        self._last += 1
        meta = params.get("_meta", {})
        if self.stateless:
            # What a client can be asked for is told where it may be asked.
            params = {**params, "_meta": {**wire.envelope(self._version), **meta}}
        elif wire.CAPABILITIES_KEY in meta and not self.several:
            told = {name: value for name, value in meta.items() if name != wire.CAPABILITIES_KEY}
            params = {**params, "_meta": told}
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.pipe.send(wire.write_line(message))
        return self._last

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self.pipe.send(
            wire.write_line(message if params is None else {**message, "params": params})
        )

    def cancel(self, identity: int) -> None:
        """Say that a request's answer is not waited for any longer."""
        self.notify("notifications/cancelled", {"requestId": identity})

    def refuse(self, request: wire.Request) -> None:
        """Answer what the server asks: it may see that we are there, and nothing else.

        A server that asks and does not read is not answered: what waits for it is bounded.
        """
        if request.identity is None or self.pipe.waiting > _FULL:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.identity}
        if request.method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {
                "code": wire.METHOD_NOT_FOUND,
                "message": "nothing may be asked here",
            }
        self.pipe.send(wire.write_line(answer))

    def late(self, ask: ServerRequest) -> ServerError:
        """That there was no answer in time."""
        return ServerError(f"the server gave no answer to {ask.method} in {self.seconds:g} s")

    def _through(self, steps: Steps[T]) -> T:
        """Go through `steps`, and wait for each answer.

        Raises:
            ServerError: as they do; there is no answer in time, or the server is gone.
        """
        try:
            ask = next(steps)
            while True:
                ask = next(steps) if ask is None else steps.send(self._ask(ask))
        except StopIteration as end:
            found: T = end.value
            return found

    def _ask(self, ask: ServerRequest) -> wire.Response:
        expected = self.request(ask.method, ask.params)
        until = time.monotonic() + self.seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise self.late(ask)
            if not ready([self.pipe], left):
                continue
            for line in self.pipe.read():
                answer = self._taken(line, expected)
                if answer is not None:
                    return answer
            if self.pipe.ended:
                raise ServerError(f"the server ended before it answered {ask.method}")

    def _taken(self, line: bytes | None, expected: int) -> wire.Response | None:
        """The answer that is waited for, if this is it; what is no message is noise."""
        if line is None:
            raise ServerError("the server sent a line that is too long")
        try:
            message = wire.read_line(line)
        except wire.MalformedMessage as error:
            if line.lstrip()[:1] in (b"{", b"["):
                raise ServerError(f"the server sent a line that is refused: {error}") from None
            return None
        if isinstance(message, wire.Response) and message.identity == expected:
            return message
        if isinstance(message, wire.Request):
            self.refuse(message)
        return None

    def _initialize(self) -> Steps[str | None]:
        """Make the handshake; the reason where it is refused."""
        asked = {
            "protocolVersion": wire.HANDSHAKE[-1],
            "capabilities": {},
            "clientInfo": {"name": "tcc", "version": self._version},
        }
        answer = yield ServerRequest(method="initialize", params=asked)
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = _result(answer)
        agreed = result["protocolVersion"].value if "protocolVersion" in result else None
        if agreed not in wire.HANDSHAKE:
            raise ServerError("the server wants a protocol version that is not known here")
        self.info = _info(result.get("serverInfo"))
        self.capabilities = _info(result.get("capabilities"))
        self.notify("notifications/initialized")
        return None

    def _discover(self) -> Steps[str | None]:
        answer = yield ServerRequest(method="server/discover")
        if answer.error is not None:
            return answer.error[1] or str(answer.error[0])
        result = _result(answer)
        versions = result["supportedVersions"].value if "supportedVersions" in result else ()
        if not isinstance(versions, list) or wire.STATELESS not in versions:
            raise ServerError("the server wants a protocol version that is not known here")
        self.capabilities = _info(result.get("capabilities"))
        meta = result["_meta"].value if "_meta" in result else {}
        key = "io.modelcontextprotocol/serverInfo"
        if isinstance(meta, dict) and isinstance(meta.get(key), dict):
            self.info = meta[key]
        return None


def _result(answer: wire.Response) -> Mapping[str, wire.Member]:
    # What a server says in an error may quote a call: it is told to nobody but who made the call.
    if answer.error is not None:
        raise ServerError(f"the server answers with error {answer.error[0]}")
    if answer.result is None:
        raise ServerError("the server answers with a result that is no object")
    return answer.result


def _info(member: wire.Member | None) -> Mapping[str, Any]:
    return member.value if member is not None and isinstance(member.value, dict) else {}


def _tools_of(result: Mapping[str, wire.Member]) -> list[Tool]:
    tools = result["tools"].value if "tools" in result else None
    if not isinstance(tools, list):
        raise ServerError("the server's answer to tools/list has no list of tools")
    for tool in tools:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise ServerError("the server lists something that is no tool")
        if wire.is_deeper(tool, DEEPEST_TOOL):
            raise ServerError(f"the server's tool {wire.dumps(tool['name'])} is nested too deeply")
    return tools


def _cursor_of(result: Mapping[str, wire.Member]) -> str | None:
    cursor = result["nextCursor"].value if "nextCursor" in result else None
    if cursor is None or isinstance(cursor, str):
        return cursor
    raise ServerError("the server's list of tools goes on at a place that is no text")
