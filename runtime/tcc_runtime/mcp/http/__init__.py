"""The relay over HTTP: what a request has to be, looked at in order, before it is a message.

Text: docs/http.md; the order is a table there, and :meth:`_Exchange.check` is that table.  What a
request is refused for is found as early as it can be: nothing of a body is read before path, Host,
Origin, token, method and type are what they should be.  A client is
answered in JSON.  A stream is opened for progress alone.
Cost: that of the message; memory is bounded by the body of each connection, 4 MiB.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import h11

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.mcp import door, wire
from tcc_runtime.mcp.hosting import HostFull, Hosting, NotFound, descriptors
from tcc_runtime.mcp.hosting.cookies import (
    NO_COOKIES,
    SESSION,
    ClientCookies,
    read_cookies,
    set_cookie,
)
from tcc_runtime.mcp.hosting.hosted import Hosted
from tcc_runtime.mcp.http.connection import CHUNK, MOST_BODY, SECONDS, Answered, Connection
from tcc_runtime.mcp.tokens import InvalidToken, MissingClaim, Principal, Tokens

HEADER_MISMATCH: Final = -32020
_MOST_CONNECTIONS: Final = 4096
_AT_ONCE: Final = 8  # that are accepted before those that are too many are closed
_BACKLOG: Final = 256  # that the system keeps meanwhile
_DEPTH: Final = MAX_DEPTH + 2  # of the parameters, the arguments in them, and a value in these
_JSON: Final = b"application/json"
_STATUS: Final = {
    wire.PARSE_ERROR: 400,
    wire.INVALID_REQUEST: 400,
    wire.INVALID_PARAMS: 400,
    wire.UNSUPPORTED_VERSION: 400,
    HEADER_MISMATCH: 400,
    wire.METHOD_NOT_FOUND: 404,
}
# Requests that may be answered by "ask again", and the state with which the client asks again.  It
# is public: it says that a cookie was sent before, and nothing more.
_ASKED_AGAIN: Final = frozenset(("tools/call", "resources/read", "prompts/get"))
_ASK_AGAIN: Final = "tcc:with-cookie"
_NO_COOKIE: Final = (
    "this client returns no cookie, so its calls belong to no session; not called: use a version "
    "of the protocol with a handshake, or a bearer token (--jwt-key)"
)
_OVER: Final = "this session is over, or was not begun here; not called: connect again"
_ENCODED: Final = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where and how is listened.

    Attributes:
        host, port: the address; port 0 is drawn.
        names: further names that a `Host` header may have.
        origins: of pages that may call from a browser, besides our own.
        tls: of a server that speaks TLS itself.
        tokens: that are taken; None where nobody has to say who he is.
    """

    host: str
    port: int
    names: Sequence[str] = ()
    origins: Sequence[str] = ()
    tls: ssl.SSLContext | None = None
    tokens: Tokens | None = None


class Listener:
    """A server of HTTP in front of hosted sessions.

    Args:
        how: where and how it listens.
        hosting: the sessions.
    """

    def __init__(self, how: Listening, hosting: Hosting) -> None:
        self.how = how
        self.hosting = hosting
        self.hosts: frozenset[str] = frozenset()
        self.origins: frozenset[str] = frozenset()
        self._server: asyncio.Server | None = None
        self._most = min(_MOST_CONNECTIONS, descriptors() // 4)
        self._open: dict[asyncio.Task[None], Connection] = {}

    async def listen(self) -> str:
        """Begin to accept; the URL.

        Raises:
            OSError: the address is not to be had.
        """
        how = self.how
        self._server = await asyncio.start_server(
            self._connected,
            how.host,
            how.port,
            ssl=how.tls,
            ssl_handshake_timeout=None if how.tls is None else SECONDS,
            limit=CHUNK,
            backlog=_AT_ONCE,
        )
        for socket in self._server.sockets:
            with socket.dup() as same:
                same.listen(_BACKLOG)
        port = self._server.sockets[0].getsockname()[1]
        shown = f"[{how.host}]" if ":" in how.host else how.host
        scheme = "http" if how.tls is None else "https"
        names = {shown, "localhost", *how.names}
        self.hosts = frozenset(f"{name}:{port}".lower() for name in names) | frozenset(
            name.lower() for name in ("localhost", *how.names)
        )
        if port == (80 if how.tls is None else 443):
            self.hosts |= {shown.lower()}
        self.origins = frozenset(f"{scheme}://{host}" for host in self.hosts)
        return f"{scheme}://{shown}:{port}/mcp"

    async def close(self) -> None:
        """Accept nothing more, and end the connections."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(tuple(self._open), timeout=1.0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or (len(self._open) >= self._most and not self._makes_room()):
            writer.close()
            return
        connection = Connection(reader, writer, answer=self._answer, count=self._count)
        self._open[task] = connection
        try:
            await connection.run()
        except (OSError, asyncio.CancelledError, TimeoutError):
            pass  # whoever is gone is told nothing
        finally:
            self._open.pop(task, None)
            writer.close()

    def _makes_room(self) -> bool:
        """Whether a connection was closed: the one of which a request is waited for the longest."""
        silent = {
            task: one.silent_since
            for task, one in self._open.items()
            if one.silent_since is not None
        }
        if not silent:
            return False
        task = min(silent, key=silent.__getitem__)
        del self._open[task]
        task.cancel()
        return True

    async def _answer(
        self, connection: Connection, head: h11.Request, limit: asyncio.Timeout
    ) -> None:
        await _Exchange(self, connection, head, limit).answer()

    def _count(self, status: int) -> None:
        if self.hosting.meter is not None:
            self.hosting.meter.answered(status)


class _Exchange:
    """One request and its answer."""

    def __init__(
        self,
        listener: Listener,
        connection: Connection,
        head: h11.Request,
        limit: asyncio.Timeout,
    ) -> None:
        self._connection = connection
        self._listener = listener
        self._hosting = listener.hosting
        self._limit = limit
        self._method = head.method
        self._target = head.target
        self._headers: dict[bytes, list[bytes]] = {}
        for name, value in head.headers:
            self._headers.setdefault(name, []).append(value)
        self._cors: tuple[tuple[bytes, bytes], ...] = ()
        self._set_cookies: tuple[tuple[bytes, bytes], ...] = ()
        self._streams = False

    def _header(self, name: bytes) -> bytes | None:
        """The one value of a header; of one that is there twice, none that anything equals."""
        found = self._headers.get(name, ())
        if len(found) > 1:
            return b"\0"
        return found[0] if found else None

    async def answer(self) -> None:
        """Look at the request, in order, and answer it.

        Raises:
            Answered: it is refused, or answered, before it is a message.
        """
        try:
            principal = self.check()
            if self._method == b"DELETE":
                self._connection.silent_since = None
                await self._delete(principal)
                return
            body = await self._body()
        except Answered as told:
            raise Answered(told.status, told.body, (*told.headers, *self._cors)) from None
        self._limit.reschedule(None)  # what follows waits for a server
        self._connection.silent_since = None
        await self._take(body, principal)

    def check(self) -> Principal | None:
        """Path, Host, Origin, token, method, type and length, in this order.

        Raises:
            Answered: one of them is not what it should be.
        """
        path = self._target.partition(b"?")[0]
        if path == b"/healthz":
            if self._method != b"GET":
                raise Answered(405, headers=((b"allow", b"GET"),))
            raise Answered(200, b"ok", ((b"content-type", b"text/plain"),))
        if path != b"/mcp":
            raise Answered(404)
        host = (self._header(b"host") or b"").decode("latin-1").lower()
        if host not in self._listener.hosts:
            raise Answered(421)
        self._check_origin()
        principal = self._principal()
        if self._method not in (b"POST", b"DELETE"):
            raise Answered(405, headers=((b"allow", b"POST, DELETE"),))
        if self._method == b"POST":
            self._check_types()
        self._check_length()
        return principal

    def _check_origin(self) -> None:
        if b"origin" not in self._headers:
            return
        origin = (self._header(b"origin") or b"").decode("latin-1")
        if origin in self._listener.how.origins:
            self._cors = (
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"mcp-session-id"),
                (b"vary", b"origin"),
            )
            if self._method == b"OPTIONS":
                asked = self._header(b"access-control-request-headers") or b""
                allowed = (
                    (b"access-control-allow-methods", b"POST, DELETE"),
                    (b"access-control-allow-headers", asked),
                    (b"access-control-max-age", b"600"),
                )
                raise Answered(204, headers=allowed)
        elif origin.lower() not in self._listener.origins:
            raise Answered(403)

    def _principal(self) -> Principal | None:
        tokens = self._listener.how.tokens
        if tokens is None:
            return None
        try:
            return tokens.principal(self._header(b"authorization"))
        except InvalidToken:
            told = (b"www-authenticate", b'Bearer error="invalid_token"')
            raise Answered(401, headers=(told,)) from None

    def _check_types(self) -> None:
        kind = (self._header(b"content-type") or b"").split(b";")[0].strip().lower()
        if kind != _JSON:
            raise Answered(415)
        accepted = b",".join(self._headers.get(b"accept", (b"*/*",)))
        kinds = {part.split(b";")[0].strip().lower() for part in accepted.split(b",")}
        if not kinds & {_JSON, b"*/*", b"application/*"}:
            raise Answered(406)
        self._streams = bool(kinds & {b"text/event-stream", b"*/*", b"text/*"})

    def _check_length(self) -> None:
        length = self._header(b"content-length")
        if length is not None and (not length.isdigit() or int(length[:20]) > MOST_BODY):
            raise Answered(413)

    async def _body(self) -> bytes:
        await self._connection.continue_()
        parts = bytearray()
        async for part in self._connection.body():
            parts += part
            if len(parts) > MOST_BODY:
                raise Answered(413)
        return bytes(parts)

    # The message.

    async def _take(self, body: bytes, principal: Principal | None) -> None:
        try:
            message = wire.read_line(body)
            if isinstance(message, wire.Request) and wire.is_deeper(message.params, _DEPTH):
                raise wire.MalformedMessage(wire.PARSE_ERROR, "nested too deeply", message.identity)
        except wire.MalformedMessage as error:
            line = door.error_line(error.identity, error.code, str(error), error.data)
            await self._reply(400, line)
            return
        if isinstance(message, wire.Response):
            await self._reply(202)
        elif self._is_modern(message):
            await self._modern(message, body, principal)
        else:
            await self._handshake(message, body, principal)

    def _is_modern(self, message: wire.Request) -> bool:
        meta = message.params.get("_meta")
        enveloped = isinstance(meta, dict) and wire.VERSION_KEY in meta
        return enveloped or self._header(b"mcp-protocol-version") == wire.STATELESS.encode()

    async def _modern(
        self, message: wire.Request, body: bytes, principal: Principal | None
    ) -> None:
        """A request since 2026-07-28: it says what it is in its headers, too."""
        what = self._mismatch(message)
        if what is not None:
            await self._error(message.identity, HEADER_MISMATCH, what)
            return
        if message.identity is None:
            await self._reply(202)
            return
        hosting, cookies = self._hosting, self._cookies()
        message, again = _without_state(message) if hosting.uses_cookies else (message, False)
        connection = hosting.connection()
        if hosting.uses_cookies and not hosting.is_named(cookies, principal):
            # A client that keeps no cookies and knows both ways has its session by the handshake.
            connection.versions = wire.HANDSHAKE
        taken = connection.take_message(message)
        if not isinstance(taken, door.ClientCall | door.PassedRequest):
            await self._told(taken, modern=True)
            return
        try:
            hosted = await hosting.without_handshake(cookies, principal)
            if hosted is not None:
                self._set_cookies = self._cookies_of(hosted, cookies)
                await self._call(hosted, taken, body, principal, modern=True)
            elif message.method not in _ASKED_AGAIN:
                await self._list(taken, body, principal)
            elif b"origin" in self._headers or (again and not cookies.begins):
                supported = {"supported": list(wire.HANDSHAKE), "requested": wire.STATELESS}
                await self._error(taken.identity, wire.UNSUPPORTED_VERSION, _NO_COOKIE, supported)
            else:
                self._set_cookies = (self._set_cookie(*hosting.begin_cookie(principal)),)
                await self._reply(200, connection.asks(taken, {}, _ASK_AGAIN))
        except NotFound:
            line = door.error_line(taken.identity, wire.INVALID_REQUEST, _OVER)
            await self._reply(404, line)
        except (HostFull, MissingClaim) as error:
            raise self._unhosted(error) from None

    def _cookies(self) -> ClientCookies:
        """Cookies of the request.

        A page in a browser has none that count: the browser shows them to every port of this host.
        """
        if b"origin" in self._headers or not self._hosting.uses_cookies:
            return NO_COOKIES
        return read_cookies(self._headers.get(b"cookie", ()))

    def _cookies_of(
        self, hosted: Hosted, cookies: ClientCookies
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Headers that give the client the handle, and take away the nonces that it has shown."""
        if not self._hosting.uses_cookies:
            return ()
        given = () if cookies.sessions else (self._set_cookie(SESSION, hosted.handle),)
        return (*given, *[self._set_cookie(name, "") for name, _ in cookies.begins])

    def _set_cookie(self, name: str, value: str) -> tuple[bytes, bytes]:
        return set_cookie(name, value, secure=self._listener.how.tls is not None)

    async def _list(
        self,
        asked: door.ClientCall | door.PassedRequest,
        body: bytes,
        principal: Principal | None,
    ) -> None:
        """Answer a list that passes, and belongs to no session: a new session that ends with it."""
        hosted = await self._hosting.begin(principal)
        try:
            await self._call(hosted, asked, body, principal, modern=True)
        finally:
            await self._hosting.end(hosted)

    def _mismatch(self, message: wire.Request) -> str | None:
        """What of the headers is not what the body says; None where all is."""
        meta = message.params.get("_meta")
        version = meta.get(wire.VERSION_KEY) if isinstance(meta, dict) else None
        if self._text(b"mcp-protocol-version") != version or version is None:
            return "MCP-Protocol-Version is not the version of the request"
        if self._text(b"mcp-method") != message.method:
            return "Mcp-Method is not the method of the request"
        name = message.params.get("name")
        named = wire.NAMED.get(message.method)
        if named is not None and self._text(b"mcp-name") != message.params.get(named):
            return "Mcp-Name is not what the request names"
        if message.method != "tools/call":
            return None
        arguments = message.params.get("arguments", {})
        told = (
            {str(key).lower(): value for key, value in arguments.items()}
            if isinstance(arguments, dict)
            else {}
        )
        declared = self._hosting.headers_of(name if isinstance(name, str) else "")
        for header in self._headers:
            if not header.startswith(b"mcp-param-"):
                continue
            token = header[len(b"mcp-param-") :].decode("latin-1")
            value = told.get(declared.get(token, token).lower())
            if not _same(self._text(header), value):
                return f"Mcp-Param-{token} is not the argument of the call"
        return None

    def _text(self, name: bytes) -> str | None:
        """The value of a header, decoded where it was encoded."""
        value = self._header(name)
        if value is None:
            return None
        text = value.decode("latin-1")
        found = _ENCODED.fullmatch(text)
        if found is None:
            return text
        try:
            return base64.b64decode(found[1], validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return "\0"

    async def _handshake(
        self, message: wire.Request, body: bytes, principal: Principal | None
    ) -> None:
        version = self._header(b"mcp-protocol-version")
        if version is not None and version.decode("latin-1") not in wire.HANDSHAKE:
            said = "no such version of the protocol"
            await self._error(message.identity, wire.INVALID_REQUEST, said)
            return
        connection = self._hosting.connection()
        if message.method == "initialize" and message.identity is not None:
            await self._initialize(connection, message, principal)
            return
        hosted = await self._hosted(principal)
        connection.open, connection.stateless = True, False
        taken = connection.take_message(message)
        if isinstance(taken, door.ClientCall | door.PassedRequest):
            await self._call(hosted, taken, body, principal, modern=False)
        elif isinstance(taken, door.Cancelled):
            hosted.cancel(taken.identity)
            await self._reply(202)
        else:
            await self._told(taken, modern=False)

    async def _initialize(
        self,
        connection: door.ClientConnection,
        message: wire.Request,
        principal: Principal | None,
    ) -> None:
        answer = connection.take_message(message)
        if not isinstance(answer, bytes) or _code_of(answer) is not None:
            await self._told(answer, modern=False)
            return
        try:
            hosted = await self._hosting.begin(principal)
        except (HostFull, MissingClaim) as error:
            raise self._unhosted(error) from None
        await self._reply(200, answer, ((b"mcp-session-id", hosted.handle.encode("ascii")),))

    async def _hosted(self, principal: Principal | None) -> Hosted:
        """The session of the handle.

        Raises:
            Answered: there is no handle, or it is none of this principal's.
        """
        handle = self._header(b"mcp-session-id")
        if handle is None:
            raise Answered(400, headers=self._cors)
        try:
            return await self._hosting.find(handle.decode("latin-1"), principal)
        except NotFound:
            raise Answered(404, headers=self._cors) from None
        except (HostFull, MissingClaim) as error:
            raise self._unhosted(error) from None

    def _unhosted(self, error: HostFull | MissingClaim) -> Answered:
        if isinstance(error, MissingClaim):
            return Answered(403, headers=self._cors)
        return Answered(error.status, headers=((b"retry-after", b"1"), *self._cors))

    async def _delete(self, principal: Principal | None) -> None:
        hosted = await self._hosted(principal)
        await self._hosting.end(hosted)
        await self._reply(204)

    async def _call(
        self,
        hosted: Hosted,
        call: door.ClientCall | door.PassedRequest,
        body: bytes,
        principal: Principal | None,
        *,
        modern: bool,
    ) -> None:
        """Make a call, and wait for its answer and the client's end at once."""
        try:
            waited = hosted.call(call, body, modern=modern)
        except HostFull as error:
            raise self._unhosted(error) from None
        gone = asyncio.ensure_future(self._connection.gone())
        streaming = False
        try:
            while True:
                coming = asyncio.ensure_future(waited.next())
                await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    if modern:
                        hosted.drop(waited)
                    raise ConnectionResetError
                line, is_last = coming.result()
                if is_last:
                    break
                if self._streams:
                    if not streaming:
                        await self._connection.stream((*self._cors, *self._set_cookies))
                        streaming = True
                    await self._connection.event(line)
        finally:
            gone.cancel()
            waited.leave()
        answer = _with_id(line, call.identity)
        if streaming:
            await self._connection.event(answer)
            await self._connection.end()
        elif isinstance(line, door.BusyLine):
            retry = (b"retry-after", b"1")
            await self._reply(503, answer, (retry,))
        else:
            await self._told(answer, modern=modern)

    async def _told(self, answer: object, *, modern: bool) -> None:
        """Answer with a line of the door's; nothing for what needs no answer."""
        if not isinstance(answer, bytes):
            await self._reply(202)
            return
        code = _code_of(answer)
        status = 200
        if code is not None and (modern or code in (wire.PARSE_ERROR, wire.INVALID_REQUEST)):
            status = _STATUS.get(code, 200)
        await self._reply(status, answer)

    async def _error(
        self, identity: wire.Id | None, code: int, message: str, data: Any = None
    ) -> None:
        await self._reply(_STATUS.get(code, 400), door.error_line(identity, code, message, data))

    async def _reply(
        self, status: int, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        kind = ((b"content-type", _JSON),) if body else ()
        more = (*headers, *kind, *self._cors, *self._set_cookies)
        await self._connection.reply(status, body.strip(), more)


def _without_state(message: wire.Request) -> tuple[wire.Request, bool]:
    """Return a request without the state that asked for a cookie, and whether it had that state."""
    params = message.params
    if params.get("requestState") != _ASK_AGAIN or params.get("inputResponses"):
        return message, False
    dropped = ("requestState", "inputResponses")
    kept = {name: value for name, value in params.items() if name not in dropped}
    return replace(message, params=kept), True


def _same(header: str | None, value: Any) -> bool:
    """Whether a header says what an argument is."""
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, int | Decimal):
        try:
            return header is not None and Decimal(header) == Decimal(value)
        except ArithmeticError:
            return False
    return isinstance(value, str) and header == value


def _code_of(line: bytes) -> int | None:
    """The code of an answer that is an error."""
    if b'"error":{' not in line[:1200]:
        return None
    found: Mapping[str, Any] = json.loads(line)
    code = found["error"]["code"] if "error" in found else None
    return code if isinstance(code, int) else None


def _with_id(line: bytes, identity: wire.Id) -> bytes:
    """An answer under the id of the client's own; ours stands at its beginning."""
    head = wire.write_line({"jsonrpc": "2.0", "id": identity})[:-2]
    end = line.index(b",", len(b'{"jsonrpc":"2.0",'))
    return head + line[end:]
