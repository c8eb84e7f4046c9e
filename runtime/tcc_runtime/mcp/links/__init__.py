"""Links: connections to a client or a server, in whole messages.

| module | a link to |
| --- | --- |
| `stdio` | a client over standard input and output; a server that is a program |
| `http_client` | a server behind a URL |
| `http_server` | a client that posts one message |
| `fan_out` | several servers as one |
| `shared` | one program that several sessions use |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tcc_runtime.mcp.wire import MalformedMessage, Message

FULL: Final = 1 << 20  # if a peer has more unread bytes than this, it gets no new message


class Link:
    """A connection to a client or a server.

    Attributes:
        hears: for servers: whether notifications arrive that belong to no request.
        broken: whether the peer has stopped reading.
        is_ended: whether the end of the peer's messages was received.
    """

    hears = False
    broken = False
    is_ended = False

    @property
    def waiting(self) -> int:
        """The number of bytes that were sent and that the peer has not read."""
        return 0

    @property
    def away(self) -> Mapping[str, str] | None:
        """The tools of servers that are away, with the reasons; None for a single server."""
        return None

    def send(self, message: Message) -> None:
        """Send a message without waiting.  It is lost if the peer is gone."""
        raise NotImplementedError

    def withdraw(self, identity: Any) -> bool:
        """Drop a request that this link has not sent yet; return whether it was dropped.

        A link that never delays a request returns False.
        """
        return False

    async def receive(self) -> Message:
        """Wait for the next message.

        Raises:
            EOFError: the peer sends no more messages.
            MalformedMessage: the peer sent something else than a message.
        """
        raise NotImplementedError

    async def drained(self, below: int = FULL) -> None:
        """Wait until at most `below` bytes are unread, or the peer is gone."""

    def is_quiet(self) -> bool:
        """Return whether all messages that have arrived were received."""
        return True

    async def gone(self) -> None:
        """Wait until the peer has ended, or has stopped reading."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the connection."""


class Stop:
    """A request to end a connection soon.

    Attributes:
        since: the time of the request, by the clock of the loop; None: there was no request.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Request the end."""
        if self.since is None:
            self.since = asyncio.get_running_loop().time()
            self._asked.set()

    async def wait(self) -> None:
        """Wait for the request."""
        await self._asked.wait()

    def until(self, seconds: float, asked: float) -> float:
        """Return the time limit of a step, by the clock of the loop.

        It is `seconds` from now; after the request at most `asked` seconds after the request.
        """
        now = asyncio.get_running_loop().time()
        return now + seconds if self.since is None else min(now + seconds, self.since + asked)


class Target(Protocol):
    """A server to connect to."""

    async def open(self, stop: Stop, note: Callable[[str], None]) -> Link:
        """Connect to the server.

        Args:
            stop: shortens the end of the connection.
            note: called with messages for the owner.

        Raises:
            ServerError: the server cannot be started.
        """


class Inbox:
    """A queue of messages that have arrived."""

    def __init__(self) -> None:
        self._items: deque[Message | MalformedMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Message | MalformedMessage) -> None:
        """Add a message, or the reason why a line is no message."""
        if not self._ended:
            self._items.append(item)
            self._wake()

    def end(self) -> None:
        """Make `get` raise EOFError after the last message."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> Message:
        """Wait for the first message, and remove it.

        Raises:
            EOFError, MalformedMessage: see :meth:`Link.receive`.
        """
        while not self._items:
            if self._ended:
                raise EOFError
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        item = self._items.popleft()
        if isinstance(item, MalformedMessage):
            raise item
        return item
