"""The relay over HTTP: checks requests in the order of the table in docs/http.md, and answers them.

A request is refused as early as possible.  The body is read only after path, Host, Origin, token,
method and type were checked.  Clients get JSON answers; a stream is opened only for progress.
starlette provides routes and answers, uvicorn the connections
(:mod:`tcc_runtime.mcp.links.http_server`).
Cost: that of the message.  Memory is bounded by the body of each connection, 4 MiB.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import ssl
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.mcp import approvals, wire
from tcc_runtime.mcp.client import Cancelled, ClientCall, PassedRequest
from tcc_runtime.mcp.cookies import NO_COOKIES, SESSION, ClientCookies, read_cookies, set_cookie
from tcc_runtime.mcp.hosting import HostFull, Hosting, NotFound, Session, descriptors
from tcc_runtime.mcp.links.http_server import (
    MAX_HEADERS,
    SECONDS,
    Connection,
    Exchange,
    Limits,
    listen,
)
from tcc_runtime.mcp.links.stdio import MAX_CLIENT_LINE
from tcc_runtime.mcp.tokens import InvalidToken, MissingClaim, Principal, Tokens

HEADER_MISMATCH: Final = -32020
_MAX_CONNECTIONS: Final = 4096
# levels of the parameters, the arguments in them, and a value of these
_DEPTH: Final = MAX_DEPTH + 2
_LOGGED: Final = frozenset((400, 408, 413, 429, 431, 503))
_END_SECONDS: Final = 1.0  # for the end of a session before its client is answered
_JSON: Final = "application/json"
_STATUS: Final = {
    wire.PARSE_ERROR: 400,
    wire.INVALID_REQUEST: 400,
    wire.INVALID_PARAMS: 400,
    wire.UNSUPPORTED_VERSION: 400,
    HEADER_MISMATCH: 400,
    wire.METHOD_NOT_FOUND: 404,
}
# Requests that may be answered by "repeat the request", and the state that the client then sends.
# The state is public: it only means that a cookie was sent before.
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
    """The address of a server, and who may call it.

    Attributes:
        host, port: the address; for port 0 the system chooses a port.
        names: further host names that a `Host` header may have.
        origins: the origins of further pages that may call from a browser.
        tls: the TLS configuration; None: no TLS.
        tokens: checks tokens; None: clients need no token.
    """

    host: str
    port: int
    names: Sequence[str] = ()
    origins: Sequence[str] = ()
    tls: ssl.SSLContext | None = None
    tokens: Tokens | None = None


class Listener:
    """An HTTP server in front of hosted sessions.

    Args:
        how: the address, and who may call.
        hosting: the sessions.

    Attributes:
        hosts, origins: the values that `Host` headers may have, and the origins of this server's
            own pages.
    """

    def __init__(self, how: Listening, hosting: Hosting) -> None:
        self.how = how
        self.hosting = hosting
        self.hosts: frozenset[str] = frozenset()
        self.origins: frozenset[str] = frozenset()
        self.limits = Limits(min(_MAX_CONNECTIONS, descriptors() // 4), self._count)
        self._server: asyncio.Server | None = None
        self.app = Starlette(
            routes=[
                Route("/healthz", _healthz, methods=["GET"]),
                Route("/mcp", _Endpoint(self, _Posted)),
                Route("/approvals", _Endpoint(self, _Listed)),
                Route("/approvals/{id}", _Endpoint(self, _Decided)),
            ]
        )
        self.app.router.redirect_slashes = False

    async def listen(self) -> str:
        """Start accepting connections; return the URL.

        Raises:
            OSError: the address is not available.
        """
        how = self.how
        self._server, shown, port = await listen(self.app, how.host, how.port, self.limits, how.tls)
        scheme = "http" if how.tls is None else "https"
        names = {shown, "localhost", *how.names}
        self.hosts = frozenset(f"{name}:{port}".lower() for name in names) | frozenset(
            name.lower() for name in ("localhost", *how.names)
        )
        if port == (80 if how.tls is None else 443):
            self.hosts |= {shown.lower()}
        self.origins = frozenset(f"{scheme}://{host}" for host in self.hosts)
        return f"{scheme}://{shown}:{port}/mcp"

    def close(self) -> None:
        """Stop accepting connections, and close the open ones."""
        if self._server is not None:
            self._server.close()
        self.limits.close()

    def _count(self, status: int) -> None:
        if status in _LOGGED:
            wire.log("a request is refused", status)
        if self.hosting.meter is not None:
            self.hosting.meter.answered(status)


def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok")


class _Endpoint:
    """The application at a path; creates one object of a class for each request, which answers
    it.
    """

    def __init__(self, listener: Listener, answers: type[_Posted]) -> None:
        self._listener, self._answers = listener, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = self._answers(self._listener, scope, receive, send)
        try:
            await posted.answer()
        except _Answered as told:
            await posted.reply(told.status, headers=told.headers)
        except (ConnectionResetError, TimeoutError):
            scope["state"]["connection"].drop()  # the client is gone, or does not read


class _Answered(Exception):
    """The request gets this answer before its message is handled."""

    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        self.status, self.headers = status, headers
        super().__init__(str(status))


class _Posted:
    """One request and its answer."""

    _methods: tuple[str, ...] = ("POST", "DELETE")
    _most_body = MAX_CLIENT_LINE

    def __init__(self, listener: Listener, scope: Scope, receive: Receive, send: Send) -> None:
        self._listener, self._hosting = listener, listener.hosting
        self._receive, self._send, self._scope = receive, send, scope
        self._connection: Connection = scope["state"]["connection"]
        self._request = Request(scope)
        self._headers = self._request.headers
        self._method: str = scope["method"]
        self._cors: tuple[tuple[str, str], ...] = ()
        self._set_cookies: tuple[tuple[str, str], ...] = ()
        self._streams = False

    def _header(self, name: str) -> str | None:
        """Return the value of a header, or None.  For a repeated header return U+0000, which equals
        no valid value.
        """
        found = self._headers.getlist(name)
        if len(found) > 1:
            return "\0"
        return found[0] if found else None

    async def answer(self) -> None:
        """Check the request in order, and answer it.

        Raises:
            _Answered: the request is refused.
        """
        principal = self.check()
        if self._method == "DELETE":
            self._connection.answered_by_app()
            session = await self._session(principal)
            # Calls under way end, and are recorded, after the answer.
            seconds = 0 if session.is_busy else _END_SECONDS
            ending = self._hosting.end(session)
            await asyncio.wait((ending,), timeout=seconds)
            await self.reply(204 if ending.done() else 202)
            return
        try:
            async with asyncio.timeout_at(self._connection.until):
                body = await self._body()
        except TimeoutError:
            raise _Answered(408, ("connection", "close")) from None
        self._connection.answered_by_app()
        await self._take(body, principal)

    def check(self) -> Principal | None:
        """Check Host, Origin, token, method, type and length, in this order.

        Raises:
            _Answered: one of them is wrong, or the headers are too long.
        """
        size = sum(len(name) + len(value) for name, value in self._scope["headers"])
        if size > MAX_HEADERS:
            raise _Answered(431, ("connection", "close"))
        if (self._header("host") or "").lower() not in self._listener.hosts:
            raise _Answered(421)
        self._check_origin()
        principal = self._principal()
        if self._method not in self._methods:
            raise _Answered(405, ("allow", ", ".join(self._methods)))
        if self._method == "POST":
            self._check_types()
        length = self._header("content-length")
        if length is not None and (not length.isdigit() or int(length[:20]) > self._most_body):
            raise _Answered(413)
        return principal

    def _check_origin(self) -> None:
        origin = self._header("origin")
        if origin is None:
            return
        if origin in self._listener.how.origins:
            self._cors = (
                ("access-control-allow-origin", origin),
                ("access-control-expose-headers", "mcp-session-id"),
                ("vary", "origin"),
            )
            if self._method == "OPTIONS":
                raise _Answered(
                    204,
                    ("access-control-allow-methods", ", ".join(self._methods)),
                    (
                        "access-control-allow-headers",
                        self._header("access-control-request-headers") or "",
                    ),
                    ("access-control-max-age", "600"),
                )
        elif origin.lower() not in self._listener.origins:
            raise _Answered(403)

    def _principal(self) -> Principal | None:
        tokens = self._listener.how.tokens
        if tokens is None:
            return None
        told = self._header("authorization")
        try:
            return tokens.principal(None if told is None else told.encode("latin-1"))
        except InvalidToken:
            challenge = ("www-authenticate", 'Bearer error="invalid_token"')
            raise _Answered(401, challenge) from None

    def _check_types(self) -> None:
        kind = (self._header("content-type") or "").split(";")[0].strip().lower()
        if kind != _JSON:
            raise _Answered(415)
        accepted = ",".join(self._headers.getlist("accept") or ["*/*"])
        kinds = {part.split(";")[0].strip().lower() for part in accepted.split(",")}
        if not kinds & {_JSON, "*/*", "application/*"}:
            raise _Answered(406)
        self._streams = bool(kinds & {"text/event-stream", "*/*", "text/*"})

    async def _body(self) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ConnectionResetError
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._most_body:
                raise _Answered(413)
        return bytes(body)

    # The message.

    async def _take(self, body: bytes, principal: Principal | None) -> None:
        try:
            message = wire.read_line(body)
            if isinstance(message, wire.Request) and wire.is_deeper(message.params, _DEPTH):
                raise wire.MalformedMessage(wire.PARSE_ERROR, "nested too deeply", message.identity)
        except wire.MalformedMessage as error:
            told = wire.error(error.identity, error.code, str(error), error.data)
            await self._respond(told, 400)
            return
        if isinstance(message, wire.Response):
            # The gate only asks for forms. An answer without a session is ignored.
            if self._hosting.how.elicits and self._header("mcp-session-id") is not None:
                (await self._session(principal)).answered(message)
            await self.reply(202)
            return
        try:
            if self._is_modern(message):
                await self._modern(message, principal)
            else:
                await self._handshake(message, principal)
        except MissingClaim:
            raise _Answered(403) from None
        except NotFound:  # the shared session does not exist
            raise _Answered(404) from None
        except HostFull as error:
            raise _Answered(error.status, ("retry-after", "1")) from None

    def _is_modern(self, message: wire.Request) -> bool:
        meta = message.params.get("_meta")
        enveloped = isinstance(meta, dict) and wire.VERSION_KEY in meta
        return enveloped or self._header("mcp-protocol-version") == wire.STATELESS

    async def _modern(self, message: wire.Request, principal: Principal | None) -> None:
        """Handle a request of version 2026-07-28 or later, whose headers repeat parts of the
        body.
        """
        what = self._mismatch(message)
        if what is not None:
            await self._respond(wire.error(message.identity, HEADER_MISMATCH, what), 400)
            return
        if message.identity is None:
            await self.reply(202)
            return
        hosting, cookies = self._hosting, self._cookies()
        again = False
        if hosting.begins_new:
            message, again = _without_state(message)
        exchange = Exchange()
        client = hosting.client(exchange)
        if hosting.begins_new and not hosting.is_named(cookies, principal):
            # A client without cookies that knows both forms gets a session by the handshake.
            client.versions = wire.HANDSHAKE
        taken = client.take(message)
        if not isinstance(taken, ClientCall | PassedRequest):
            await self._told(taken, modern=True)
            return
        try:
            session = await hosting.without_handshake(cookies, principal)
            if session is not None:
                self._set_cookies = self._cookies_of(session, cookies)
                await self._call(session, taken, exchange, modern=True)
            elif message.method not in _ASKED_AGAIN:
                # A list that passes belongs to no session, so a session begins and ends with it.
                session = await hosting.begin(principal)
                try:
                    await self._call(session, taken, exchange, modern=True)
                finally:
                    hosting.end(session)
            elif "origin" in self._headers or (again and not cookies.begins):
                data = {"supported": list(wire.HANDSHAKE), "requested": wire.STATELESS}
                code = wire.UNSUPPORTED_VERSION
                await self._respond(wire.error(taken.identity, code, _NO_COOKIE, data), 400)
            else:
                self._set_cookies = (self._set_cookie(*hosting.begin_cookie(principal)),)
                client.ask(taken, {}, _ASK_AGAIN)
                await self._told(await exchange.receive(), modern=True)
        except NotFound:
            await self._respond(wire.error(taken.identity, wire.INVALID_REQUEST, _OVER), 404)

    def _cookies(self) -> ClientCookies:
        """Return the cookies of the request that this gate has set.

        Cookies from a page in a browser are ignored, because browsers send them to every port of
        the host.
        """
        if "origin" in self._headers or not self._hosting.begins_new:
            return NO_COOKIES
        return read_cookies(self._headers.getlist("cookie"))

    def _cookies_of(self, session: Session, cookies: ClientCookies) -> tuple[tuple[str, str], ...]:
        """Return headers that set the client's handle cookie, and delete its nonce cookies."""
        if not self._hosting.begins_new:
            return ()
        given = () if cookies.sessions else (self._set_cookie(SESSION, session.handle),)
        return (*given, *[self._set_cookie(name, "") for name, _ in cookies.begins])

    def _set_cookie(self, name: str, value: str) -> tuple[str, str]:
        return set_cookie(name, value, secure=self._listener.how.tls is not None)

    def _mismatch(self, message: wire.Request) -> str | None:
        """Return a text about the first header that differs from the body; None: all agree."""
        params = message.params
        meta = params.get("_meta")
        version = meta.get(wire.VERSION_KEY) if isinstance(meta, dict) else None
        if self._text("mcp-protocol-version") != version or version is None:
            return "MCP-Protocol-Version is not the version of the request"
        if self._text("mcp-method") != message.method:
            return "Mcp-Method is not the method of the request"
        name = params.get("name")
        named = wire.NAMED.get(message.method)
        if named is not None and self._text("mcp-name") != params.get(named):
            return "Mcp-Name is not what the request names"
        if message.method != "tools/call":
            return None
        arguments = params.get("arguments", {})
        arguments = arguments if isinstance(arguments, dict) else {}
        told = {str(key).lower(): value for key, value in arguments.items()}
        declared = self._hosting.headers_of(name if isinstance(name, str) else "")
        for header in self._headers:
            if header.startswith("mcp-param-"):
                token = header[len("mcp-param-") :]
                value = told.get(declared.get(token, token).lower())
                if not _is_same(self._text(header), value):
                    return f"Mcp-Param-{token} is not the argument of the call"
        return None

    def _text(self, name: str) -> str | None:
        """Return the value of a header, decoded if it is encoded."""
        text = self._header(name)
        found = None if text is None else _ENCODED.fullmatch(text)
        if found is None:
            return text
        try:
            return base64.b64decode(found[1], validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return "\0"

    async def _handshake(self, message: wire.Request, principal: Principal | None) -> None:
        """Handle a request of a version with a handshake."""
        version = self._header("mcp-protocol-version")
        if version is not None and version not in wire.HANDSHAKE:
            said = "no such version of the protocol"
            await self._respond(wire.error(message.identity, wire.INVALID_REQUEST, said), 400)
            return
        exchange = Exchange()
        client = self._hosting.client(exchange)
        if message.method == "initialize" and message.identity is not None:
            answer = client.take(message)
            if isinstance(answer, wire.Response) and answer.error is None:
                session = await self._hosting.begin(principal)
                session.elicits = client.elicits
                await self._respond(answer, 200, ("mcp-session-id", session.handle))
            else:
                await self._told(answer, modern=False)
            return
        session = await self._session(principal)
        client.open, client.stateless = True, False
        client.elicits = session.elicits and self._streams
        taken = client.take(message)
        if isinstance(taken, ClientCall | PassedRequest):
            await self._call(session, taken, exchange, modern=False)
            return
        if isinstance(taken, Cancelled):
            session.cancel(taken.identity)
        await self._told(taken, modern=False)

    async def _session(self, principal: Principal | None) -> Session:
        """Return the session whose handle the request has.

        Raises:
            _Answered: the request has no handle, the handle is invalid for this principal, or a
                limit is reached.
        """
        handle = self._header("mcp-session-id")
        if handle is None:
            raise _Answered(400)
        try:
            return await self._hosting.find(handle, principal)
        except NotFound:
            raise _Answered(404) from None
        except MissingClaim:
            raise _Answered(403) from None
        except HostFull as error:
            raise _Answered(error.status, ("retry-after", "1")) from None

    async def _call(
        self,
        session: Session,
        call: ClientCall | PassedRequest,
        exchange: Exchange,
        *,
        modern: bool,
    ) -> None:
        """Give a call to its session, and wait until it is answered or the client is gone."""
        session.take(call)
        session.under_way += 1
        gone = asyncio.ensure_future(self._gone())
        streaming, answered = False, False
        try:
            while True:
                coming = asyncio.ensure_future(exchange.receive())
                await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    raise ConnectionResetError
                message = coming.result()
                if isinstance(message, wire.Response):
                    answered = True
                    break
                if self._streams:
                    if not streaming:
                        streaming = True
                        await self._stream()
                    await self._event(message)
        finally:
            gone.cancel()
            session.under_way -= 1
            session.last = asyncio.get_running_loop().time()
            if modern and not answered:
                # Since 2026-07-28 a client cancels a call by closing its connection.
                session.cancel(call.identity, call.client)
        if streaming:
            await self._event(message, more=False)
        elif message.busy:
            await self._respond(message, 503, ("retry-after", "1"))
        else:
            await self._told(message, modern=modern)

    async def _gone(self) -> None:
        """Wait until the client has closed its connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # Answers.

    async def _told(self, answer: object, *, modern: bool) -> None:
        """Answer with a message, or with 202 and no body if `answer` is no response."""
        if not isinstance(answer, wire.Response):
            await self.reply(202)
            return
        status, code = 200, None if answer.error is None else answer.error[0]
        if code is not None and (modern or code in (wire.PARSE_ERROR, wire.INVALID_REQUEST)):
            status = _STATUS.get(code, 200)
        await self._respond(answer, status)

    async def _respond(self, answer: wire.Response, status: int, *headers: tuple[str, str]) -> None:
        await self.reply(status, wire.write(answer).strip(), headers)

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        media_type: str = _JSON,
    ) -> None:
        """Send the answer."""
        response = Response(body, status, media_type=media_type if body else None)
        for name, value in (*headers, *self._cors, *self._set_cookies, _NO_STORE):
            response.headers.append(name, value)
        async with asyncio.timeout(SECONDS):
            await response(self._scope, self._receive, self._send)

    async def _stream(self) -> None:
        """Start an answer that is a stream of events."""
        more = (*self._cors, *self._set_cookies, _NO_STORE, ("content-type", "text/event-stream"))
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in more]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _event(self, message: wire.Message, *, more: bool = True) -> None:
        data = b"event: message\ndata: " + wire.write(message).strip() + b"\n\n"
        async with asyncio.timeout(SECONDS):
            await self._send({"type": "http.response.body", "body": data, "more_body": more})


class _Listed(_Posted):
    """The page of the approvals, or the open questions as JSON."""

    _methods = ("GET",)

    async def answer(self) -> None:
        """Answer with the page, which needs no token; or with the questions as JSON, which need
        one.
        """
        if _JSON in (self._header("accept") or ""):
            principal = self.check()
            self._connection.answered_by_app()
            if principal is None:
                await self.say(403, _NO_TOKENS)
                return
            await _decided(self, self._list(principal))
            return
        if (self._header("host") or "").lower() not in self._listener.hosts:
            raise _Answered(421)
        if self._method != "GET":
            raise _Answered(405, ("allow", "GET"))
        self._connection.answered_by_app()
        body, policy = approvals.page()
        headers = (("content-security-policy", policy), *_PAGE_HEADERS)
        await self.reply(200, body, headers, media_type="text/html; charset=utf-8")

    async def _list(self, principal: Principal) -> None:
        questions = await self._hosting.desk.listed(principal)
        await self.reply(200, approvals.dumps({"questions": questions}))

    async def say(self, status: int, text: str) -> None:
        """Answer with an error that has a text."""
        await self.reply(status, approvals.dumps({"error": text}))


class _Decided(_Listed):
    """Records a verdict on a question."""

    _methods = ("POST",)
    _most_body = approvals.MOST_BODY

    async def answer(self) -> None:
        """Check the request, and record the verdict."""
        principal = self.check()
        if principal is None:
            self._connection.answered_by_app()
            await self.say(403, _NO_TOKENS)
            return
        try:
            async with asyncio.timeout_at(self._connection.until):
                body = await self._body()
        except TimeoutError:
            raise _Answered(408, ("connection", "close")) from None
        self._connection.answered_by_app()
        await _decided(self, self._decide(body, principal))

    async def _decide(self, body: bytes, principal: Principal) -> None:
        question_id = self._request.path_params["id"]
        told = approvals.told_in(body)
        await self._hosting.desk.decide(question_id, principal, told)
        found = {"id": question_id, "verdict": told.verdict, "who": principal.subject}
        await self.reply(200, approvals.dumps(found))


async def _decided(request: _Listed, work: Awaitable[None]) -> None:
    try:
        await work
    except approvals.NoVerdict as error:
        await request.say(error.status, str(error))


_NO_TOKENS: Final = "the gate knows nobody: approvals over HTTP need --jwt-key"
_PAGE_HEADERS: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
)
_NO_STORE: Final = ("cache-control", "no-store")


def _without_state(message: wire.Request) -> tuple[wire.Request, bool]:
    """Return a request without the state of a repeated request, and whether it had this state."""
    params = message.params
    if params.get("requestState") != _ASK_AGAIN or params.get("inputResponses"):
        return message, False
    dropped = ("requestState", "inputResponses")
    kept = {name: value for name, value in params.items() if name not in dropped}
    return replace(message, params=kept), True


def _is_same(header: str | None, value: Any) -> bool:
    """Return whether a header has the value of an argument."""
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, int | Decimal):
        try:
            return header is not None and Decimal(header) == Decimal(value)
        except ArithmeticError:
            return False
    return isinstance(value, str) and header == value
