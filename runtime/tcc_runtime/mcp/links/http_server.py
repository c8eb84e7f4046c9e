"""Links to clients that post one message and wait for its answer; and their connections.

uvicorn and h11 implement HTTP.  This module adds five limits that uvicorn lacks: the time for a
head, the time of an idle connection, the size of a head (431), the time for the rest of an unread
body, and the number of connections.  The last one reserves descriptors for sessions.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final

import h11
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Inbox, Link

MAX_HEADERS: Final = 32 << 10
SECONDS: Final = 10.0  # for head and body of a request
_AT_ONCE: Final = 8  # connections that are accepted before surplus ones are closed
_BACKLOG: Final = 256  # connections that the system queues meanwhile
_IDLE: Final = 75.0  # seconds between two requests
_DRAIN: Final = 2.0  # seconds for the rest of a body that the gate does not read


class Exchange(Link):
    """The link of one posted message: the gate sends progress, and then the answer."""

    def __init__(self) -> None:
        self._inbox = Inbox()

    def send(self, message: wire.Message) -> None:
        self._inbox.put(message)

    async def receive(self) -> wire.Message:
        """Wait for the next message that was sent."""
        return await self._inbox.get()


class Limits:
    """Limits on connections.

    Args:
        most: the largest number of connections.
        count: counts answers by their status.

    Attributes:
        seconds: the time limit for head and body of a request.
    """

    def __init__(self, most: int, count: Callable[[int], None]) -> None:
        self.most, self.count = most, count
        self.seconds = SECONDS
        self._state = ServerState()

    def protocol(self, app: Any) -> Callable[[], asyncio.Protocol]:
        """Return a factory of protocols, whose connections an application answers."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            async def count(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self.count(message["status"])
                await send(message)

            await app(scope, receive, count)

        config = Config(
            counted,
            http="h11",
            log_config=None,
            log_level="error",
            proxy_headers=False,
            access_log=False,
            lifespan="off",
            ws="none",
            interface="asgi3",
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(_IDLE),
            h11_max_incomplete_event_size=MAX_HEADERS,
        )
        config.load()
        return lambda: Connection(config, self._state, self)

    def close(self) -> None:
        """Close all connections."""
        for one in tuple(self._state.connections):
            if isinstance(one, Connection):
                one.drop()


class Connection(H11Protocol):
    """A connection of HTTP/1.1.

    Attributes:
        until: the time by which the request must be complete, by the clock of the loop.
        silent_since: the time since which the connection waits for a request; None during a
            request.
    """

    def __init__(self, config: Config, state: ServerState, limits: Limits) -> None:
        super().__init__(config, state, {"connection": self})
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self.until = 0.0
        self.silent_since: float | None = None
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; if too many are open, close the one that is idle longest."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.most:
            silent = {
                one.silent_since: one
                for one in self.connections
                if isinstance(one, Connection) and one.silent_since is not None
            }
            wire.log("a connection is closed: too many are open", 503)
            (silent[min(silent)] if silent else self).drop()
        if not transport.is_closing():
            self._wait()

    def drop(self) -> None:
        """Close the connection without an answer."""
        self.connections.discard(self)
        self.silent_since = None
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer as well."""
        self._cancel_timer()
        super().connection_lost(exc)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _limit(self, seconds: float) -> None:
        self._cancel_timer()
        self.until = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._late)

    def _wait(self) -> None:
        """Wait for the next request."""
        self.silent_since = self.loop.time()
        self._has_begun = bool(self.conn.trailing_data[0])
        self._limit(self._limits.seconds if self._has_begun else _IDLE)

    def answered_by_app(self) -> None:
        """Stop the timer: the request is complete, and its answer has no limit here."""
        self._cancel_timer()
        self.silent_since = None

    def _late(self) -> None:
        """Handle the end of the time for a head, for silence, or for the rest of a body."""
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            return  # the application has its own limit on the body
        if self._has_begun and self.conn.our_state is h11.IDLE:
            self._refuse(408)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Start the time limit of a head with its first byte."""
        if not self._has_begun:
            self._has_begun = True
            self._limit(self._limits.seconds)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP, and close."""
        rest, _ = self.conn.trailing_data
        self._refuse(431 if len(rest) > MAX_HEADERS else 400)
        self.transport.close()

    def _refuse(self, status: int) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        self._limits.count(status)
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        for event in (h11.Response(status_code=status, headers=headers), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")

    def on_response_complete(self) -> None:
        """Wait for the next request.  Unread parts of the body get a short time limit."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self._limit(_DRAIN)
        elif self.cycle.response_complete:
            self._wait()
        else:  # the next request has arrived already
            self._limit(self._limits.seconds)


async def listen(
    app: Any, host: str, port: int, limits: Limits, tls: ssl.SSLContext | None = None
) -> tuple[asyncio.Server, str, int]:
    """Start accepting connections; return the server, the host as URLs have it, and the port.

    `uvicorn.Server` is not used, because it handles the signals of the process.

    Raises:
        OSError: the address is not available.
    """
    server = await asyncio.get_running_loop().create_server(
        limits.protocol(app),
        host,
        port,
        ssl=tls,
        ssl_handshake_timeout=None if tls is None else SECONDS,
        backlog=_AT_ONCE,
    )
    for socket in server.sockets:
        with socket.dup() as same:
            same.listen(_BACKLOG)
    shown = f"[{host}]" if ":" in host else host
    return server, shown, server.sockets[0].getsockname()[1]
