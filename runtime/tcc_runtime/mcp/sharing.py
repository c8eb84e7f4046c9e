"""One server process behind many sessions: each speaks to it as if it were its own.

A thread reads the server and the sessions.  A request goes on under an id of ours, and its answer
goes back under the session's; so do cancellations and word of progress.  The handshake is made
once, and whoever comes later gets its answer from here.  What the server keeps in its memory is
shared by all sessions: that is what its owner asked for.  A server that ends is started again by
whoever comes next, and what was under way is unknown.
Cost: a thread, and each message is read and written once more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tcc_runtime.errors import ServerError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.mcp import upstream, wire
from tcc_runtime.mcp.upstream.pipes import MAX_REQUEST_LINE, Pipe, Stopping, ready

_FULL: Final = 1 << 20  # bytes that the server has not read, with which no session is read
_MOST: Final = 32 << 20  # bytes that a session has not read, with which it is let go
_NO_LINE: Final = b'{"a line that is too long"\n'


class SharedServer:
    """A program that is started once for all who start this.

    Args:
        command: the program and its arguments.
    """

    several = False

    def __init__(self, command: Sequence[str] | upstream.ServerProgram) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._running: _Sharing | None = None
        self._closed = False

    def start(self, most: int) -> SharedConnection:
        """A connection to the server, which is started where it does not run.

        Raises:
            ServerError: it cannot be started.
        """
        with self._lock:
            if self._closed:
                raise ServerError("the server is shared, and was ended")
            sharing = self._running
            if sharing is None or not sharing.take_in():
                command = self._command
                process: upstream.ServerProcess = (
                    command.start(most)
                    if isinstance(command, upstream.ServerProgram)
                    else upstream.Process(command, most)
                )
                sharing = self._running = _Sharing(process)
                sharing.take_in()
            return sharing.connect(most)

    def close(self, stopping: Stopping | None = None) -> None:
        """End the server."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                self._running.end(stopping)


class SharedConnection:
    """What stands for a process of its own, of one session.

    Attributes:
        pipe: to the thread that shares the server.
    """

    unsent: Collection[Any] = ()

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    def close(self, stopping: Stopping | None = None) -> None:
        """Let go of the server; it goes on for others."""
        self.pipe.ended = self.pipe.broken = True
        for descriptor in (self.pipe.writes, self.pipe.reads):
            with suppress(OSError):
                os.close(descriptor)


@dataclass(slots=True, eq=False)
class _Session:
    """A session that speaks to the server; its pipe, as the thread has it."""

    pipe: Pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request at the server.

    Attributes:
        session: whose it is; identity: its id there.
        token: of its progress, as the session has it.
    """

    session: _Session
    identity: wire.Id
    token: Any
    method: str


@dataclass(slots=True, eq=False)
class _Sharing:
    """The loop, and the process that it shares."""

    process: upstream.ServerProcess
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: bool = False
    _new: list[_Session] = field(default_factory=list)
    _sessions: list[_Session] = field(default_factory=list)
    _asked: dict[int, _Asked] = field(default_factory=dict)
    _last: int = 0
    _begun: bytes | None = None  # the members of the answer to the handshake
    _beginning: list[_Asked] = field(default_factory=list)  # that wait for it
    _told: bool = False
    _stopping: Stopping | None = None
    _thread: threading.Thread | None = None
    _wakes: int = -1
    _wake: int = -1

    def __post_init__(self) -> None:
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._wakes, False)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def take_in(self) -> bool:
        """Whether another may connect: it has not ended."""
        with self._lock:
            return not self._over

    def connect(self, most: int) -> SharedConnection:
        """A session's connection; where the server ended just now it ends at once."""
        reads, answers = os.pipe()
        asked, writes = os.pipe()
        session = _Session(Pipe(asked, answers, MAX_REQUEST_LINE))
        with self._lock:
            if self._over:
                os.close(asked)
                os.close(answers)
            else:
                self._new.append(session)
                with suppress(BlockingIOError):
                    os.write(self._wake, b"\n")
        return SharedConnection(Pipe(reads, writes, most))

    def end(self, stopping: Stopping | None) -> None:
        """End the process, and wait for it."""
        with self._lock:
            self._stopping = stopping
            over, self._over = self._over, True
            if not over:
                with suppress(BlockingIOError):
                    os.write(self._wake, b"\n")
        if self._thread is not None:
            self._thread.join(8.0)

    def _run(self) -> None:
        try:
            while self._take_new():
                server = self.process.pipe
                for session in self._sessions:
                    session.pipe.paused = server.waiting > _FULL
                pipes = [server, *[session.pipe for session in self._sessions]]
                readable = ready(pipes, None, self._wakes)
                for line in server.read() if server in readable else ():
                    self._from_server(line)
                if server.ended or server.broken:
                    break
                for session in tuple(self._sessions):
                    if session.pipe in readable:
                        for line in session.pipe.read():
                            self._from_session(session, line)
                    if session.pipe.ended or session.pipe.broken or session.pipe.waiting > _MOST:
                        self._drop(session)
        finally:
            with self._lock:
                self._over = True
                self._sessions += self._new
                self._new = []
                os.close(self._wakes)
                os.close(self._wake)
            for session in tuple(self._sessions):
                self._drop(session)
            self.process.close(self._stopping)

    def _take_new(self) -> bool:
        """Those that came since; whether the process goes on."""
        with self._lock:
            with suppress(BlockingIOError):
                os.read(self._wakes, 1 << 10)
            self._sessions += self._new
            self._new = []
            return not self._over

    def _drop(self, session: _Session) -> None:
        """A session that is gone, or does not read: nothing is for it any more."""
        self._sessions.remove(session)
        self._asked = {
            at: one
            for at, one in self._asked.items()
            if one.session is not session or one.method == "initialize"  # others wait for it, too
        }
        self._beginning = [one for one in self._beginning if one.session is not session]
        for descriptor in (session.pipe.reads, session.pipe.writes):
            with suppress(OSError):
                os.close(descriptor)

    # What a session says.

    def _from_session(self, session: _Session, line: bytes | None) -> None:
        try:
            message = None if line is None else wire.read_line(line)
        except wire.MalformedMessage:
            return
        if not isinstance(message, wire.Request):
            return
        if message.identity is None:
            self._noted(session, message)
            return
        meta = message.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        asked = _Asked(
            session=session, identity=message.identity, token=token, method=message.method
        )
        if message.method == "initialize":
            if self._begun is not None:
                self._pass(asked, self._begun)
                return
            self._beginning.append(asked)
            if any(one.method == "initialize" for one in self._asked.values()):
                return
        self._last += 1
        self._asked[self._last] = asked
        params = dict(message.params)
        if isinstance(meta, dict) and token is not None:
            params["_meta"] = {**meta, "progressToken": self._last}
        self._send({"id": self._last, "method": message.method, "params": plain(params)})

    def _noted(self, session: _Session, message: wire.Request) -> None:
        if message.method == "notifications/initialized":
            if not self._told:
                self._told = True
                self._send({"method": message.method})
        elif message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            for at, asked in self._asked.items():
                if asked.session is session and asked.identity == wanted:
                    self._send({"method": message.method, "params": {"requestId": at}})

    def _send(self, members: Mapping[str, Any]) -> None:
        self.process.pipe.send(wire.write_line({"jsonrpc": "2.0", **members}))

    # What the server says.

    def _from_server(self, line: bytes | None) -> None:
        try:
            message = None if line is None else wire.read_line(line)
        except wire.MalformedMessage:
            message = None
            if line is not None and line.lstrip()[:1] not in (b"{", b"["):
                return  # noise of a server that prints where it should not
        if message is None:
            # It may have been the answer to whatever is waited for, whoever waits.
            waiting = {one.session for one in (*self._asked.values(), *self._beginning)}
            for session in waiting.intersection(self._sessions):
                session.pipe.send(_NO_LINE)
            self._asked.clear()
            self._beginning.clear()
        elif isinstance(message, wire.Request):
            self._notified(message)
        elif isinstance(message.identity, int):
            asked = self._asked.pop(message.identity, None)
            if asked is not None:
                self._answered(asked, message)

    def _answered(self, asked: _Asked, message: wire.Response) -> None:
        members = _members(message)
        if asked.method != "initialize":
            self._pass(asked, members)
            return
        waiting, self._beginning = self._beginning, []
        self._begun = members if message.error is None else None
        for one in waiting:
            self._pass(one, members)

    def _notified(self, message: wire.Request) -> None:
        if message.identity is not None:
            answer: dict[str, Any] = {"id": message.identity}
            if message.method == "ping":
                answer["result"] = {}
            else:
                answer["error"] = {
                    "code": wire.METHOD_NOT_FOUND,
                    "message": "nothing may be asked here",
                }
            if self.process.pipe.waiting <= _FULL:
                self._send(answer)
        elif message.method == "notifications/tools/list_changed":
            for session in self._sessions:
                session.pipe.send(wire.write_line({"jsonrpc": "2.0", "method": message.method}))
        elif message.method == "notifications/progress":
            at = message.params.get("progressToken")
            asked = self._asked.get(at) if isinstance(at, int) else None
            if asked is not None and asked.token is not None:
                params = plain({**message.params, "progressToken": asked.token})
                told = {"jsonrpc": "2.0", "method": message.method, "params": params}
                asked.session.pipe.send(wire.write_line(told))

    def _pass(self, asked: _Asked, members: bytes) -> None:
        head = b'{"jsonrpc":"2.0","id":' + wire.dumps(asked.identity).encode()
        asked.session.pipe.send(head + b"," + members + b"}\n")


def _members(message: wire.Response) -> bytes:
    """The members of an answer but its id, those of a result as they were written."""
    if message.error is not None:
        code, said = message.error
        return b'"error":' + wire.dumps({"code": code, "message": said}).encode()
    result = message.result
    if result is None:
        return b'"result":0'
    parts = [f"{wire.dumps(name)}:{result[name].text}" for name in result]
    return ('"result":{' + ",".join(parts) + "}").encode()
