"""A connection of HTTP/1.1: requests read and answers written, whatever either is about.

h11 reads and writes.  A request that is no HTTP, too large or too slow is answered, and the
connection closed.  Of a body that nobody wants the rest is read for a while: a client that still
sends would not see its answer.
Cost: that of the bytes; memory is bounded by the body of a request, 4 MiB.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import h11

MOST_BODY: Final = 4 << 20  # as a line of a client over stdio (upstream.pipes.MAX_CLIENT_LINE)
MOST_HEADERS: Final = 32 << 10
SECONDS: Final = 10.0  # for headers and body of a request
CHUNK: Final = 1 << 16
_IDLE: Final = 75.0  # seconds that a connection may be open between two requests
_DRAIN: Final = (2.0, 8 << 20)  # seconds and bytes of a body that is not read
_REASONS: Final = {
    200: b"OK", 202: b"Accepted", 204: b"No Content", 400: b"Bad Request", 401: b"Unauthorized",
    403: b"Forbidden", 404: b"Not Found", 405: b"Method Not Allowed", 406: b"Not Acceptable",
    408: b"Request Timeout", 413: b"Content Too Large", 415: b"Unsupported Media Type",
    421: b"Misdirected Request", 429: b"Too Many Requests",
    431: b"Request Header Fields Too Large", 503: b"Service Unavailable",
}  # fmt: skip

Answer: TypeAlias = "Callable[[Connection, h11.Request, asyncio.Timeout], Awaitable[None]]"


class Answered(Exception):
    """A request that is answered before it is a message.

    Args:
        status: of HTTP.
        body: of the answer.
        headers: further headers.
    """

    def __init__(
        self, status: int, body: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        self.status, self.body, self.headers = status, body, tuple(headers)
        super().__init__(str(status))


class Connection:
    """One connection: its requests, one after the other.

    Args:
        reader, writer: its two streams.
        answer: answers the request of a head; it may take the time of the limit, or change it.
        count: is told the status of each answer.

    Attributes:
        silent_since: since when a request is waited for, by the loop's clock; None while one is
            answered, which `answer` says.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer: Answer,
        count: Callable[[int], None],
    ) -> None:
        self._answer = answer
        self._count = count
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADERS)
        self._ended = False
        self.silent_since: float | None = asyncio.get_running_loop().time()
        self._until = 0.0  # when the request that has begun is to be there, by the loop's clock
        self._watch: asyncio.Task[bytes] | None = None

    async def run(self) -> None:
        """Until the client is gone, or has sent what is not read on."""
        try:
            while await self._one():
                self._http.start_next_cycle()
        finally:
            if self._watch is not None:
                self._watch.cancel()

    async def _one(self) -> bool:
        """A request and its answer; whether another may follow."""
        try:
            head = await self._head()
            if head is None:
                return False
            async with asyncio.timeout_at(self._until) as limit:
                await self._answer(self, head, limit)
        except Answered as told:
            await self.reply(told.status, told.body, told.headers)
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint)
            return False
        except TimeoutError:
            await self._refuse(408)
            return False
        if self._http.their_state is h11.SEND_BODY:
            await self._drain()
        done = (h11.DONE, h11.DONE)
        return (self._http.our_state, self._http.their_state) == done and not self._ended

    async def _refuse(self, status: int) -> None:
        """Answer what cannot be read on; the connection closes behind it."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = status if status in _REASONS else 400
            await self.reply(status, close=True)

    async def _drain(self) -> None:
        """Read on what nobody wants, for a while: who still sends would not see the answer."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN[0]):
                left = _DRAIN[1]
                while left > 0 and not self._ended:
                    left -= len(await self._read())

    async def _head(self) -> h11.Request | None:
        """The head of the next request; None where the client is gone."""
        clock = asyncio.get_running_loop().time
        self.silent_since = clock()
        begun = bool(self._http.trailing_data[0])
        self._until = clock() + (SECONDS if begun else _IDLE)
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                if sum(len(name) + len(value) for name, value in event.headers) > MOST_HEADERS:
                    raise Answered(431)
                return event
            if isinstance(event, h11.ConnectionClosed):
                return None
            if event is h11.PAUSED:
                return None
            async with asyncio.timeout_at(self._until):
                data = await self._read()
            if not data and not begun:
                return None
            if not begun:
                begun, self._until = True, clock() + SECONDS
            self._http.receive_data(data)

    async def body(self) -> AsyncIterator[bytes]:
        """The body of the request, as it comes."""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._read())
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise Answered(400)

    async def continue_(self) -> None:
        """Tell a client that waits for it that its body is read now."""
        if self._http.they_are_waiting_for_100_continue:
            headers: list[tuple[bytes, bytes]] = []
            await self._send(h11.InformationalResponse(status_code=100, headers=headers))

    async def _read(self) -> bytes:
        if self._watch is not None:
            watch, self._watch = self._watch, None
            data = await watch
        else:
            data = await self._reader.read(CHUNK)
        self._ended = self._ended or not data
        return data

    async def gone(self) -> None:
        """Until the client has closed its connection; what it sends meanwhile is kept."""
        while not self._ended:
            if self._watch is None:
                self._watch = asyncio.ensure_future(self._reader.read(CHUNK))
            data = await asyncio.shield(self._watch)
            self._watch = None
            if data:
                self._http.receive_data(data)
                if len(self._http.trailing_data[0]) > MOST_BODY:
                    self._ended = True
            else:
                self._ended = True

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        headers: Iterable[tuple[bytes, bytes]] = (),
        *,
        close: bool = False,
    ) -> None:
        """A whole answer."""
        unread = self._http.their_state is h11.SEND_BODY
        fields = [*headers, (b"cache-control", b"no-store")]
        if status != 204:
            fields.append((b"content-length", b"%d" % len(body)))
        if close or unread:
            fields.append((b"connection", b"close"))
        reason = _REASONS.get(status, b"")
        self._count(status)
        head = h11.Response(status_code=status, headers=fields, reason=reason)
        parts = (head, h11.Data(data=body)) if body else (head,)
        await self._send(*parts, h11.EndOfMessage())

    async def stream(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin an answer that is a stream of events."""
        fields = [
            *headers,
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
        ]
        self._count(200)
        await self._send(h11.Response(status_code=200, headers=fields, reason=b"OK"))

    async def event(self, message: bytes) -> None:
        """A message in the stream."""
        await self._send(h11.Data(data=b"event: message\ndata: " + message.strip() + b"\n\n"))

    async def end(self) -> None:
        """End the stream."""
        await self._send(h11.EndOfMessage())

    async def _send(self, *events: Any) -> None:
        """Events in one write: an answer that is small is one packet."""
        data = b"".join(self._http.send(event) or b"" for event in events)
        if data:
            self._writer.write(data)
            async with asyncio.timeout(SECONDS):
                await self._writer.drain()
