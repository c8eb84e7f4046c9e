"""The server behind the relay: its pipes, process, handshake (both versions), tools, and lock file.

A message is one line.  A line that is too long is thrown away as it comes in and reported once; a
line that the end of the pipe cuts off is no line, so that half a message is never acted on.  Pipes
are read and written where `poll` says that they can be, and written by so few bytes at a time that
a write cannot block; so no flag is set on a pipe that another process may share.  POSIX only: poll
takes no pipes elsewhere.

A client with no capabilities, standard library only.  What takes several requests is a generator
that yields each one and is sent its answer: a loop with other things to do waits for them in
between, :meth:`Upstream.connect` and :meth:`Upstream.tools` wait by themselves.  ``tools.lock`` has
the digest of each tool, so that a server that changes is noticed: BLAKE3 over the canonical text of
what a model is shown and what is passed on: name, title, description, annotations and both schemas,
absent ones left out.  Canonical: members sorted by code point, no spaces, ASCII, numbers by their
exact value.
Cost: linear in what either side sends, bounded in memory.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
import typing
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

from blake3 import blake3

from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.mcp import wire

# Pipes to other processes: bytes to lines, lines out, signals, and nothing that waits.

MAX_CLIENT_LINE = 4 << 20
MAX_SERVER_LINE = 16 << 20
# A request in ASCII: a client's line is three times as long there, and a state has 12 bytes a
# character.
MAX_REQUEST_LINE = 3 * MAX_CLIENT_LINE + (12 << 20) + (1 << 20)

_CHUNK = 1 << 16
_UNBLOCKED = min(select.PIPE_BUF, 4096)
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL
_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Lines:
    """Cuts a stream of bytes into lines.

    Args:
        most: bytes that a line may have.
    """

    __slots__ = ("_most", "_rest", "_seen", "_skipping")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self._seen = 0  # of `_rest`, how much is known to hold no line feed
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that `data` completes, without their ends; None for one that is too long."""
        found: list[bytes | None] = []
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._seen))) >= 0:
            if self._skipping:
                self._skipping = False
            else:
                found.append(self._line(start, end))
            start = end + 1
        del self._rest[:start]
        if self._skipping or len(self._rest) > self._most:
            if not self._skipping:
                found.append(None)
            self._skipping = True
            self._rest.clear()
        self._seen = len(self._rest)
        return found

    def _line(self, start: int, end: int) -> bytes | None:
        if end - start > self._most:
            return None
        return bytes(self._rest[start:end]).removesuffix(b"\r")


class Pipe:
    """A peer over two descriptors.

    Args:
        reads, writes: the descriptors.
        most: bytes that a line of the peer may have.

    Attributes:
        ended: whether the peer sends nothing more.
        broken: whether the peer takes nothing more.
        waiting: bytes that are still to be written.
        paused: whether nothing is to be read for now.
    """

    def __init__(self, reads: int, writes: int, most: int) -> None:
        self.reads = reads
        self.writes = writes
        self.ended = self.broken = self.paused = False
        self.waiting = 0
        self._lines = Lines(most)
        self._out: deque[memoryview] = deque()

    def send(self, line: bytes) -> None:
        """Put a line behind those that are to be written."""
        if not self.broken:
            self._out.append(memoryview(line))
            self.waiting += len(line)

    def read(self) -> list[bytes | None]:
        """What is there to be read, in lines; None for a line that is too long."""
        try:
            data = os.read(self.reads, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            self._look()
        return self._lines.feed(data)

    def write(self) -> None:
        """Write what can be written without waiting."""
        try:
            count = os.write(self.writes, self._out[0][:_UNBLOCKED])
        except OSError:
            self._break()
            return
        self.waiting -= count
        rest = self._out.popleft()[count:]
        if rest:
            self._out.appendleft(rest)

    def _look(self) -> None:
        """One that sends nothing more may still take answers, or may be gone."""
        poll = select.poll()
        poll.register(self.writes, 0)
        if any(events & _GONE for _, events in poll.poll(0)):
            self._break()

    def _break(self) -> None:
        self.broken = True
        self._out.clear()
        self.waiting = 0


def ready(pipes: Sequence[Pipe], seconds: float | None, wakes: int | None = None) -> list[Pipe]:
    """Write to those pipes that take it, and say which have something to be read.

    Args:
        seconds: how long to wait at most; None waits for as long as it takes.
        wakes: a descriptor that ends the wait when it can be read.
    """
    poll = select.poll()
    wanted: dict[int, int] = {}
    for pipe in pipes:
        if not (pipe.ended or pipe.paused):
            wanted[pipe.reads] = wanted.get(pipe.reads, 0) | select.POLLIN
        if pipe.waiting:
            wanted[pipe.writes] = wanted.get(pipe.writes, 0) | select.POLLOUT
    if wakes is not None:
        wanted[wakes] = select.POLLIN
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    found = dict(poll.poll(None if seconds is None else max(0, ceil(seconds * 1000))))
    readable = []
    for pipe in pipes:
        if pipe.waiting and found.get(pipe.writes, 0) & (select.POLLOUT | _GONE):
            pipe.write()
        if not (pipe.ended or pipe.paused) and found.get(pipe.reads, 0) & (_READABLE | _GONE):
            readable.append(pipe)
    return readable


class StopNow(BaseException):
    """SIGTERM or SIGINT came where it ends a step at once."""


class Stopping:
    """SIGTERM and SIGINT as something to be read, so that they cut no step in two.

    The handlers only note that one came; a descriptor becomes readable, so a wait ends at once.  A
    second one ends the process as it would have without them.  A context manager, for the main
    thread.

    Attributes:
        asked: whether the process was asked to stop.
        wakes: a descriptor that can be read from then on.
    """

    def __init__(self) -> None:
        self.asked = False
        self._raises = False
        self._since = 0.0
        self.wakes, self._writes = os.pipe()
        os.set_blocking(self._writes, False)

    def __enter__(self) -> Stopping:
        self._before = [signal.signal(number, self._note) for number in _NUMBERS]
        self._wakeup = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in zip(_NUMBERS, self._before, strict=True):
            signal.signal(number, handler)
        os.close(self.wakes)
        os.close(self._writes)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A block that a signal breaks off, with :class:`StopNow`: one that undoes what it did."""
        if self.asked:
            raise StopNow
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def until(self, seconds: float, asked: float) -> float:
        """When to give something up: `seconds` from now, or `asked` after the process was asked."""
        now = time.monotonic()
        return min(now + seconds, self._since + asked) if self.asked else now + seconds

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._since = time.monotonic()
        self.asked = True
        if self._raises:
            raise StopNow


# The server.

Protocol: TypeAlias = Literal["auto", "handshake", "2026-07-28"]
Tool: TypeAlias = "Mapping[str, Any]"

_FULL = 1 << 20
_MAX_PAGES = 1000
_MAX_TOOLS = 10_000
DEEPEST_TOOL = 100
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


# Lock file of a server's tools.

_CONTEXT = "tcc.tools_lock/1.0 tool"
_FORMAT = "tcc.tools_lock"
_VERSION = "1.0"
_LOCKED = ("annotations", "description", "inputSchema", "name", "outputSchema", "title")
_DEEPEST = 128
_HEX = re.compile("[0-9a-f]{64}")


def tool_digest(tool: Mapping[str, Any]) -> str:
    """The digest of a tool as a server lists it, hex.

    Raises:
        ServerError: it is nested too deeply.
    """
    shown = {name: tool[name] for name in _LOCKED if name in tool}
    text = _canonical(shown, _DEEPEST)
    return blake3(text.encode("ascii"), derive_key_context=_CONTEXT).hexdigest()


def lock_text(tools: Iterable[Mapping[str, Any]]) -> str:
    """The text of a lock file for these tools."""
    digests = {tool["name"]: tool_digest(tool) for tool in tools}
    document = {"format": _FORMAT, "format_version": _VERSION, "tools": digests}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def read_lock(path: Path) -> Mapping[str, str]:
    """The digests of a lock file by the tools' names.

    Raises:
        ServerError: it is no lock file.
        OSError: it cannot be read.
    """
    try:
        document = wire.read_json(path.read_bytes())
    except wire.MalformedMessage as error:
        raise ServerError(f"{path} is no lock file: {error}") from None
    tools = document.get("tools") if isinstance(document, dict) else None
    known = (
        isinstance(document, dict)
        and document.get("format") == _FORMAT
        and document.get("format_version") == _VERSION
        and document.keys() == {"format", "format_version", "tools"}
    )
    if not known or not isinstance(tools, dict) or not all(map(_is_digest, tools.values())):
        raise ServerError(f"{path} is no lock file")
    return tools


def check_tools(
    needed: Sequence[str], tools: Iterable[Mapping[str, Any]], locked: Mapping[str, str] | None
) -> None:
    """Whether a server has the tools of a grammar, as they were locked.

    Args:
        needed: the tools of the grammar; what else a server has can never be called.
        locked: digests by name; None where nothing was locked.

    Raises:
        ServerDrift: a tool is missing, or is another one.
    """
    there = {tool["name"]: tool for tool in tools}
    findings = []
    for name in sorted(needed):
        shown = wire.dumps(name)
        if name not in there:
            findings.append(f"the server has no tool {shown}")
        elif locked is not None and name not in locked:
            findings.append(f"the lock has no tool {shown}")
        elif locked is not None and locked[name] != tool_digest(there[name]):
            findings.append(f"tool {shown} is not the one that was locked")
    if findings:
        raise ServerDrift(tuple(findings))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def canonical_text(value: Any) -> str:
    """The one text of a JSON value: members sorted, numbers by their exact value.

    Raises:
        ServerError: it is nested too deeply.
    """
    return _canonical(value, DEEPEST_TOOL)


def _canonical(value: Any, depth: int) -> str:
    if depth == 0:
        raise ServerError("a tool's schema is nested too deeply")
    if isinstance(value, dict):
        members = (
            f"{wire.dumps(name)}:{_canonical(value[name], depth - 1)}" for name in sorted(value)
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item, depth - 1) for item in value) + "]"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return _number(Decimal(value))
    return wire.dumps(value)


def _number(value: Decimal) -> str:
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    if not short or not isinstance(exponent, int):
        return "0"
    return f"{'-' if sign else ''}{short}E{exponent + len(text) - len(short)}"
