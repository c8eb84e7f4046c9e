"""A server behind a URL, as the relay has one behind pipes: streamable HTTP, both versions.

Lines go in and out by pipes, so the relay's loop waits for a URL as for a process; between them
threads post each message and read its answer, JSON or a stream of events.  Redirects are not
followed, no proxy is used, and nothing that a client sent becomes a header: what goes out is made
from the message that was decided on, and from the owner's own headers.
An MCP session that the server forgets (404) is begun again; what was under way is unknown, and
nothing is posted twice.  Text: docs/mcp.md.
Cost: a thread and a connection a message; memory is bounded by the longest line.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import os
import re
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tcc_runtime.mcp import wire
from tcc_runtime.mcp.upstream.pipes import MAX_REQUEST_LINE, MAX_SERVER_LINE, Lines, Pipe, Stopping

_CHUNK: Final = 1 << 16
_SECONDS: Final = 30.0  # for a connection, and for what no client asks for
_MOST_THREADS: Final = 80
_VISIBLE: Final = re.compile(r"[\x20-\x7e]*")
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIRST: Final = ("initialize", "notifications/initialized")
_OURS_ASK: Final = ("initialize", "server/discover", "tools/list")
_OURS: Final = ("host", "connection", "transfer-encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A server behind a URL.

    Attributes:
        url: https, or http to this machine.
        headers: of the owner; no client's.
        seconds: how long an answer to a call may take.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 300.0
    several: bool = False

    def start(self, most: int) -> RemoteProcess:
        """Begin to speak to it; nothing is sent yet."""
        return RemoteProcess(self, most)


def is_url(text: str) -> bool:
    """Whether it is meant as a URL and not as a program."""
    return text.lower().startswith(("http://", "https://"))


def check_url(url: str) -> None:
    """Hold a URL to what may be called.

    Raises:
        ValueError: it is none; its message says why.
    """
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError as error:
        raise ValueError(f"it is no URL: {error}") from None
    if found.scheme not in ("http", "https") or not found.hostname or port == 0:
        raise ValueError("it is no URL of http or https")
    if found.username is not None or found.password is not None:
        raise ValueError("a URL with a user's name or password: use --upstream-header")
    if found.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("a URL is plain ASCII, and has no fragment")
    if found.scheme == "http" and not _is_loopback(found.hostname):
        raise ValueError("http is for servers on this machine: use https")


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_header(name: str, value: str) -> None:
    """Hold a header of the owner's to what may be sent.

    Raises:
        ValueError: it may not; its message says why, and not the value.
    """
    small = name.lower()
    if _NAME.fullmatch(name) is None:
        raise ValueError("it is no name of a header")
    if small in _OURS or small.startswith(("content-", "mcp-")):
        raise ValueError("this header is made from the message")
    if not value or _VISIBLE.fullmatch(value) is None:
        raise ValueError("its value is not visible ASCII")


class RemoteProcess:
    """What stands for a server's process: pipes, and threads that post what is written to them.

    Attributes:
        pipe: to the server.
        unsent: the ids of requests that have an error for an answer, and were never sent.
    """

    def __init__(self, remote: Remote, most: int = MAX_SERVER_LINE) -> None:
        self._remote = remote
        self._url = urlsplit(remote.url)
        self._most = most
        reads, self._answers = os.pipe()
        self._asked, writes = os.pipe()
        self.pipe = Pipe(reads, writes, most)
        self.unsent: set[Any] = set()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False
        self._session: str | None = None
        self._beginning = False  # another session, in place of one that was forgotten
        self._version: str | None = None
        self._initialize: bytes | None = None
        self._headers: dict[str, dict[str, str]] = {}  # of tools, parameters by header token
        self._open: dict[Any, http.client.HTTPConnection] = {}
        self._free = threading.Semaphore(_MOST_THREADS)
        threading.Thread(target=self._dispatch, daemon=True).start()

    def close(self, stopping: Stopping | None = None) -> None:
        """Let go of the server; its session is ended, where that takes no time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            connections = tuple(self._open.values())
        for connection in connections:
            _cut(connection)
        self.pipe.ended = self.pipe.broken = True
        os.close(self.pipe.writes)  # the thread that reads it ends, and closes the rest
        if self._session is not None and (stopping is None or not stopping.asked):
            ending = threading.Thread(target=self._end, args=(self._session,), daemon=True)
            ending.start()
            ending.join(1.0)

    def _end(self, session: str) -> None:
        with suppress(OSError, http.client.HTTPException):
            connection = self._connect(1.0)
            headers = {**self._remote.headers, "Mcp-Session-Id": session}
            connection.request("DELETE", self._target, headers=headers)
            connection.getresponse()
            connection.close()

    # What is written to the pipe.

    def _dispatch(self) -> None:
        lines = Lines(MAX_REQUEST_LINE)
        while data := os.read(self._asked, _CHUNK):
            for line in lines.feed(data):
                if line is not None:
                    self._free.acquire()
                    message = json.loads(line)
                    given = (line, message)
                    work = threading.Thread(target=self._work, args=given, daemon=True)
                    work.start()
                    if (
                        message.get("method") in _FIRST
                    ):  # whatever comes next is of the session that this begins
                        work.join()
        os.close(self._asked)
        os.close(self.pipe.reads)  # first: whoever waits for it to be read has an error, and ends
        with self._writing:
            os.close(self._answers)
            self._answers = -1

    def _work(self, line: bytes, message: dict[str, Any]) -> None:
        try:
            self._post(line, message)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if "id" in message and "method" in message:
                self._fail(message["id"], f"no answer: {type(error).__name__}")
        finally:
            self._free.release()

    def _post(self, line: bytes, message: dict[str, Any]) -> None:
        method = message.get("method")
        # An answer of ours has the server's id, which may be that of a call of ours, too.
        identity = None if method is None else message.get("id")
        if method == "notifications/cancelled" and self._version == wire.STATELESS:
            self._drop(message)
            return
        if method == "initialize":
            self._initialize, self._session = line, None
        connection = self._connect(_SECONDS if method in _OURS_ASK else self._remote.seconds)
        if identity is not None:
            with self._lock:
                if self._closed:
                    return
                self._open[identity] = connection
        try:
            try:
                connection.connect()
            except OSError:
                if identity is not None:
                    self.unsent.add(identity)
                raise
            session = self._session
            headers = self._made(message, session)
            connection.request("POST", self._target, body=line.strip(), headers=headers)
            answer = connection.getresponse()
            if method == "initialize" and answer.status == 200:
                self._session = answer.getheader("mcp-session-id")
            if answer.status == 404 and session is not None:
                self._forgotten(identity, session)
            elif identity is not None:
                self._read(answer, identity, str(method))
        finally:
            with self._lock:
                self._open.pop(identity, None)
            connection.close()

    def _forgotten(self, identity: Any, session: str) -> None:
        """The server has no such session any more: another one is begun, nothing is sent again.

        The relay is told first that tools may be others, then that the call has no answer: so it
        looks at them before it makes the next one.
        """
        with suppress(OSError, http.client.HTTPException, ValueError):
            self._begin_again(session)
        if identity is not None:
            self._fail(identity, "the server has forgotten its session")

    def _begin_again(self, session: str) -> None:
        with self._lock:
            if self._session != session or self._initialize is None or self._beginning:
                return
            self._beginning = True
        try:
            first = json.loads(self._initialize)
            begun = self._ask(self._initialize.strip(), self._made(first, None))
            if begun is None:
                return  # the next call meets the old session again, and then this is tried again
            told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self._ask(wire.write_line(told), self._made(told, begun))
            self._session = begun
            self._say(
                wire.write_line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            )
        finally:
            self._beginning = False

    def _ask(self, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Post a message of the handshake; the session that a good answer to it names."""
        connection = self._connect(_SECONDS)
        try:
            connection.request("POST", self._target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            answer.read(_CHUNK)
            return answer.getheader("mcp-session-id") if answer.status == 200 else None
        finally:
            connection.close()

    def _drop(self, message: Mapping[str, Any]) -> None:
        """A closed stream is how a call is cancelled since 2026-07-28."""
        params = message.get("params")
        identity = params.get("requestId") if isinstance(params, dict) else None
        with self._lock:
            connection = self._open.get(identity)
        if connection is not None:
            _cut(connection)

    # What is posted.

    @property
    def _target(self) -> str:
        path = self._url.path or "/"
        return f"{path}?{self._url.query}" if self._url.query else path

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=seconds)

    def _made(self, message: Mapping[str, Any], session: str | None) -> dict[str, str]:
        """The headers of a message."""
        found = {
            **self._remote.headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(wire.VERSION_KEY) if isinstance(meta, dict) else None
        if version is None:
            if session is not None:
                found["Mcp-Session-Id"] = session
            if self._version is not None and message.get("method") != "initialize":
                found["MCP-Protocol-Version"] = self._version
            return found
        self._version = str(version)
        found["MCP-Protocol-Version"] = self._version
        method = found["Mcp-Method"] = str(message.get("method"))
        if method in wire.NAMED:
            found["Mcp-Name"] = _encoded(str(params.get(wire.NAMED[method])))
        if method == "tools/call":
            name, arguments = str(params.get("name")), params.get("arguments")
            for token, parameter in self._headers.get(name, {}).items():
                if isinstance(arguments, dict) and parameter in arguments:
                    found[f"Mcp-Param-{token}"] = _encoded(_text(arguments[parameter]))
        return found

    # What comes back.

    def _read(self, answer: http.client.HTTPResponse, identity: Any, method: str) -> None:
        kind = (answer.getheader("content-type") or "").split(";")[0].strip().lower()
        if kind == "text/event-stream" and answer.status == 200:
            self._read_stream(answer, identity, method)
            return
        data = answer.read(self._most + 1)
        if len(data) > self._most:
            raise ValueError("an answer that is too long")
        if kind != "application/json" or not data.strip():
            self._fail(identity, f"the server answers with status {answer.status}")
        elif not self._pass(b" ".join(data.split(b"\n")), identity, method):
            self._fail(identity, "the server answers with something else than the answer")

    def _read_stream(self, answer: http.client.HTTPResponse, identity: Any, method: str) -> None:
        lines, parts, size = Lines(self._most), list[bytes](), 0
        while data := answer.read1(_CHUNK):
            for line in lines.feed(data):
                if line is None:
                    raise ValueError("an event that is too long")
                if line.startswith(b"data:"):
                    parts.append(line[5:].removeprefix(b" "))
                    size += len(line)
                    if size > self._most:
                        raise ValueError("an event that is too long")
                elif not line and parts:
                    if self._pass(b" ".join(parts), identity, method):
                        return
                    parts, size = [], 0
        self._fail(identity, "the stream ended before the answer")

    def _pass(self, data: bytes, identity: Any, method: str) -> bool:
        """Hand on a message of the server's; whether it is the answer that is waited for."""
        try:
            message = wire.read_line(data)
        except (
            wire.MalformedMessage
        ) as error:  # it may have been the answer, and of no other request
            self._fail(identity, f"the server sent a line that is refused: {error}")
            return True
        if isinstance(message, wire.Response):
            if message.identity is None:
                self._fail(identity, "the server answers with an error without an id")
                return True
            if message.identity != identity:
                return False  # whatever that is an answer to, it is none of this request
            if message.result is not None:
                if method == "initialize" and "protocolVersion" in message.result:
                    self._version = str(message.result["protocolVersion"].value)
                if method == "tools/list" and "tools" in message.result:
                    self._note_headers(message.result["tools"].value)
        self._say(data + b"\n")
        return isinstance(message, wire.Response)

    def _note_headers(self, tools: object) -> None:
        for tool in tools if isinstance(tools, list) else ():
            if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
                continue
            schema = tool.get("inputSchema")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            found = {}
            for name, told in properties.items() if isinstance(properties, dict) else ():
                token = told.get("x-mcp-header") if isinstance(told, dict) else None
                if isinstance(token, str) and _NAME.fullmatch(token):
                    found[token] = name
            self._headers[tool["name"]] = found

    def _fail(self, identity: Any, said: str) -> None:
        error = {"code": wire.INTERNAL_ERROR, "message": said}
        self._say(wire.write_line({"jsonrpc": "2.0", "id": identity, "error": error}))

    def _say(self, line: bytes) -> None:
        with self._writing, suppress(OSError):
            rest = memoryview(line)
            while rest and self._answers >= 0 and not self._closed:
                rest = rest[os.write(self._answers, rest) :]


def _cut(connection: http.client.HTTPConnection) -> None:
    """End a connection that another thread waits for."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(2)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _encoded(text: str) -> str:
    """A text as a header takes it: visible ASCII, else encoded."""
    plain = _VISIBLE.fullmatch(text) is not None and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
