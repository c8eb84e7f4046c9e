"""A link to a server behind a URL: streamable HTTP, in both forms of the protocol.

Each message is posted by a task; its answer is JSON or a stream of events. httpx2, the client of
the MCP SDK, does HTTP.  Redirects are not followed, and no proxy or cookie is used.  Headers come
from the message and from the owner's options, never from headers of a client.  If the server
forgets its MCP session (404), the link begins another one.  Calls under way are then unknown.  The
link never posts a message twice.  Text: docs/mcp.md.

Why not the SDK's transport: it parses messages into models (see :mod:`tcc_runtime.mcp.wire`), does
not say whether a request was sent, and resumes streams by itself.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Inbox, Link, Stop
from tcc_runtime.mcp.links.stdio import MAX_SERVER_LINE, Lines

if TYPE_CHECKING:
    import httpx2

_SECONDS: Final = 30.0  # for a connection, and for answers that no client asks for
_MAX_POSTS: Final = 80
_VISIBLE: Final = re.compile(r"[\x20-\x7e]*")
_FIRST: Final = ("initialize", "notifications/initialized")
_OURS_ASK: Final = ("initialize", "server/discover", "tools/list")
_OURS: Final = ("host", "connection", "transfer-encoding")
_CHANGED: Final = wire.Request(identity=None, method="notifications/tools/list_changed", params={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A server behind a URL.

    Attributes:
        url: a URL with https, or with http to this machine.
        headers: headers that the owner adds.
        seconds: the time limit of an answer to a call.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 300.0

    async def open(self, stop: Stop, note: Callable[[str], None]) -> HttpClientLink:
        try:
            import httpx2
        except ModuleNotFoundError:
            said = "httpx2 is not installed: pip install 'tcc[mcp]'"
            raise ServerError(said) from None
        return HttpClientLink(self, stop, httpx2)


def is_url(text: str) -> bool:
    """Return whether a text begins with http:// or https://."""
    return text.lower().startswith(("http://", "https://"))


def check_url(url: str) -> None:
    """Require a URL that the gate may call.

    Raises:
        ValueError: it may not; the message is the reason.
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
    """Require a header that the owner may add.

    Raises:
        ValueError: the owner may not; the message is the reason, without the value.
    """
    small = name.lower()
    if wire.HEADER_NAME.fullmatch(name) is None:
        raise ValueError("it is no name of a header")
    if small in _OURS or small.startswith(("content-", "mcp-")):
        raise ValueError("this header is made from the message")
    if not value or _VISIBLE.fullmatch(value) is None:
        raise ValueError("its value is not visible ASCII")


class HttpClientLink(Link):
    """A link to a server at a URL; see the module.  `waiting` counts bytes of unposted messages."""

    waiting = 0

    def __init__(self, remote: Remote, stop: Stop, http: Any) -> None:
        self._remote, self._stop, self._http = remote, stop, http
        self._inbox = Inbox()
        self._outbox: asyncio.Queue[tuple[wire.Message, bytes]] = asyncio.Queue()
        self._free = asyncio.Semaphore(_MAX_POSTS)
        self._posts: dict[wire.Id | None, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: str | None = None
        self._version: str | None = None
        self._initialize: wire.Request | None = None
        self._is_beginning = False  # whether a new MCP session is begun in place of a forgotten one
        # for each tool, the parameters by header token
        self._headers: dict[str, dict[str, str]] = {}
        is_tls = remote.url.lower().startswith("https")
        self._client: httpx2.AsyncClient = http.AsyncClient(
            verify=ssl.create_default_context() if is_tls else False,  # http to this machine
            trust_env=False,
            follow_redirects=False,
            limits=http.Limits(max_connections=None, max_keepalive_connections=_MAX_POSTS),
        )
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._dispatching = asyncio.ensure_future(self._dispatch())

    def send(self, message: wire.Message) -> None:
        body = wire.write(message).strip()
        self.waiting += len(body)
        self._outbox.put_nowait((message, body))

    async def receive(self) -> wire.Message:
        return await self._inbox.get()

    async def close(self) -> None:
        """End the MCP session within a second, and close all connections."""
        self._dispatching.cancel()
        tasks = (self._dispatching, *self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._inbox.end()
        session, self._session = self._session, None
        if session is not None and self._stop.since is None:
            with suppress(Exception):
                async with asyncio.timeout(1.0):
                    headers = {**self._remote.headers, "Mcp-Session-Id": session}
                    await self._client.delete(self._remote.url, headers=headers)
        with suppress(Exception):
            await self._client.aclose()

    # Posting.

    async def _dispatch(self) -> None:
        while True:
            message, body = await self._outbox.get()
            await self._free.acquire()
            self.waiting -= len(body)
            task = asyncio.ensure_future(self._work(message, body))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if isinstance(message, wire.Request):
                if message.identity is not None:
                    self._posts[message.identity] = task
                # later messages belong to the session that this one begins
                if message.method in _FIRST:
                    await asyncio.wait((task,))

    async def _work(self, message: wire.Message, body: bytes) -> None:
        # The id of an answer was chosen by the server. It may equal the id of a request of this
        # link.
        identity = message.identity if isinstance(message, wire.Request) else None
        try:
            await self._post(message, body, identity)
        except (
            self._http.ConnectError,
            self._http.ConnectTimeout,
            self._http.PoolTimeout,
        ) as error:
            self._fail(identity, f"no answer: {_root(error)}", unsent=True)
        except (self._http.HTTPError, self._http.StreamError, OSError, ValueError) as error:
            self._fail(identity, f"no answer: {_root(error)}")
        finally:
            self._free.release()
            if identity is not None:
                self._posts.pop(identity, None)

    async def _post(self, message: wire.Message, body: bytes, identity: wire.Id | None) -> None:
        method = message.method if isinstance(message, wire.Request) else ""
        if isinstance(message, wire.Request):
            if method == "notifications/cancelled" and self._version == wire.STATELESS:
                # Since 2026-07-28 a client cancels a call by closing its stream.
                task = self._posts.get(message.params.get("requestId"))
                if task is not None:
                    task.cancel()
                return
            if method == "initialize":
                self._initialize, self._session = message, None
        session = self._session
        seconds = _SECONDS if method in _OURS_ASK else self._remote.seconds
        async with self._request(message, body, session, seconds) as answer:
            if method == "initialize" and answer.status_code == 200:
                self._session = answer.headers.get("mcp-session-id")
            if answer.status_code == 404 and session is not None:
                await self._begin_again(session)
                self._fail(identity, "the server has forgotten its session")
            elif identity is not None:
                await self._read(answer, identity, method)

    def _request(
        self, message: wire.Message, body: bytes, session: str | None, seconds: float
    ) -> Any:
        return self._client.stream(
            "POST",
            self._remote.url,
            content=body,
            headers=self._made(message, session),
            timeout=self._http.Timeout(seconds, connect=min(seconds, _SECONDS)),
        )

    async def _begin_again(self, session: str) -> None:
        """Begin a new MCP session in place of one that the server has forgotten.

        The relay first gets the notification that tools may have changed, and then the error of the
        call.  So it lists the tools before the next call.
        """
        first = self._initialize
        if self._session != session or first is None or self._is_beginning:
            return
        self._is_beginning = True
        try:
            with suppress(self._http.HTTPError, OSError):
                async with self._request(
                    first, wire.write(first).strip(), None, _SECONDS
                ) as answer:
                    await answer.aread()
                    begun = answer.headers.get("mcp-session-id")
                    if answer.status_code != 200 or begun is None:
                        return  # a later call gets 404 again, and then this is repeated
                told = wire.Request(identity=None, method=_FIRST[1], params={})
                async with self._request(told, wire.write(told).strip(), begun, _SECONDS):
                    pass
                self._session = begun
                self._inbox.put(_CHANGED)
        finally:
            self._is_beginning = False

    def _made(self, message: wire.Message, session: str | None) -> dict[str, str]:
        """Return the headers of a message."""
        found = {
            **self._remote.headers,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",  # so that the limit on an answer also limits memory
        }
        request = message if isinstance(message, wire.Request) else None
        params = {} if request is None else request.params
        meta = params.get("_meta")
        version = meta.get(wire.VERSION_KEY) if isinstance(meta, dict) else None
        if request is None or version is None:
            if session is not None:
                found["Mcp-Session-Id"] = session
            if self._version is not None and (request is None or request.method != "initialize"):
                found["MCP-Protocol-Version"] = self._version
            return found
        self._version = found["MCP-Protocol-Version"] = str(version)
        method = found["Mcp-Method"] = request.method
        if method in wire.NAMED:
            found["Mcp-Name"] = _encoded(str(params.get(wire.NAMED[method])))
        if method == "tools/call":
            name, arguments = str(params.get("name")), params.get("arguments")
            for token, parameter in self._headers.get(name, {}).items():
                if isinstance(arguments, dict) and parameter in arguments:
                    found[f"Mcp-Param-{token}"] = _encoded(_text(arguments[parameter]))
        return found

    # Answers.

    async def _read(self, answer: httpx2.Response, identity: wire.Id, method: str) -> None:
        kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise ValueError("a compressed answer")
        if kind == "text/event-stream" and answer.status_code == 200:
            await self._read_stream(answer, identity, method)
            return
        data = bytearray()
        async for part in answer.aiter_raw():
            data += part
            if len(data) > MAX_SERVER_LINE:
                raise ValueError("an answer that is too long")
        if kind != "application/json" or not data.strip():
            self._fail(identity, f"the server answers with status {answer.status_code}")
        elif not self._pass(bytes(data), identity, method):
            self._fail(identity, "the server answers with something else than the answer")

    async def _read_stream(self, answer: httpx2.Response, identity: wire.Id, method: str) -> None:
        lines, parts, size = Lines(MAX_SERVER_LINE), list[bytes](), 0
        async for data in answer.aiter_raw():
            for line in lines.feed(data):
                if line is None or size > MAX_SERVER_LINE:
                    raise ValueError("an event that is too long")
                if line.startswith(b"data:"):
                    parts.append(line[5:].removeprefix(b" "))
                    size += len(line)
                elif not line and parts:
                    if self._pass(b" ".join(parts), identity, method):
                        return
                    parts, size = [], 0
        self._fail(identity, "the stream ended before the answer")

    def _pass(self, data: bytes, identity: wire.Id, method: str) -> bool:
        """Queue a message of the server; return whether it answers the request."""
        try:
            message = wire.read_line(data)
        except wire.MalformedMessage as error:
            # On this stream the line can only have been the answer to this request.
            self._fail(identity, f"the server sent a line that is refused: {error}")
            return True
        if isinstance(message, wire.Response):
            if message.identity is None:
                self._fail(identity, "the server answers with an error without an id")
                return True
            if message.identity != identity:
                return False
            result = message.result or {}
            if method == "initialize" and "protocolVersion" in result:
                self._version = str(result["protocolVersion"].value)
            if method == "tools/list" and "tools" in result:
                self._note_headers(result["tools"].value)
        self._inbox.put(message)
        return isinstance(message, wire.Response)

    def _note_headers(self, tools: object) -> None:
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._headers[tool["name"]] = wire.headers_of(tool)

    def _fail(self, identity: wire.Id | None, said: str, *, unsent: bool = False) -> None:
        if identity is not None:
            error = (wire.INTERNAL_ERROR, said)
            self._inbox.put(wire.Response(identity=identity, error=error, unsent=unsent))


def _root(error: BaseException) -> str:
    """Return the class name of the OSError that caused an error, or of the error itself."""
    found = error
    while (cause := found.__cause__ or found.__context__) is not None:
        found = cause
    return type(found if isinstance(found, OSError) else error).__name__


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _encoded(text: str) -> str:
    """Return a text as a header value: visible ASCII as it is, other texts encoded in base64."""
    plain = _VISIBLE.fullmatch(text) is not None and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
