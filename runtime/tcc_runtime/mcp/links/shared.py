"""One program that several sessions use, each through its own link.

The module translates ids between a session and the program, in requests, answers, cancellations and
progress.  The program sees one handshake; later sessions get a copy of its answer.  All sessions
share the program's state; the owner has chosen this.  If the program ends, the calls under way are
unknown, and the next session starts it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Inbox, Link, Stop, Target
from tcc_runtime.mcp.server import Server, progress_of, with_token

_MAX_UNREAD: Final = 256  # messages that a session may leave unread before its link ends


class SharedServer:
    """A server that is started once, for all sessions that open it.

    Args:
        target: the program.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._running: _Shared | None = None
        self._starting = asyncio.Lock()
        self._is_closed = False
        self._stop = Stop()

    async def open(self, stop: Stop, note: Callable[[str], None]) -> SharedLink:
        async with self._starting:
            if self._is_closed:
                raise ServerError("the server is shared, and was ended")
            if self._running is None or self._running.server.ended:
                link = await self._target.open(self._stop, note)
                self._running = _Shared(link)
            return self._running.add()

    async def close(self) -> None:
        """End the program, for all sessions."""
        self._is_closed = True
        self._stop.ask()
        if self._running is not None:
            await self._running.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request of a session to the program."""

    link: SharedLink
    request: wire.Request


class _Shared:
    """The program, and the links to it."""

    def __init__(self, link: Link) -> None:
        self.server = Server(link, seconds=0, version="")
        self.links: set[SharedLink] = set()
        self._asked: dict[int, _Asked] = {}
        self._greeting: list[_Asked] = []  # handshakes that wait for the program's answer
        self._greeted: wire.Response | None = None
        self._is_told = False  # whether the program knows that the handshake is complete
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        await self.server.listen(self._hear)
        for link in tuple(self.links):
            link.drop()
        await self.server.link.close()

    def add(self) -> SharedLink:
        link = SharedLink(self)
        self.links.add(link)
        return link

    async def close(self) -> None:
        self._listening.cancel()
        await self.server.link.close()
        for link in tuple(self.links):
            link.drop()

    # Messages of a session.

    def take(self, link: SharedLink, message: wire.Message) -> None:
        if not isinstance(message, wire.Request):
            return
        if message.identity is None:
            self._notified(link, message)
            return
        asked = _Asked(link=link, request=message)
        if message.method == "initialize":
            if self._greeted is not None:
                asked.link.put(replace(self._greeted, identity=message.identity))
                return
            self._greeting.append(asked)
            if any(one.request.method == "initialize" for one in self._asked.values()):
                return
        params = with_token(message, self.server)
        self._asked[self.server.request(message.method, params)] = asked

    def _notified(self, link: SharedLink, message: wire.Request) -> None:
        if message.method == "notifications/initialized":
            if not self._is_told:
                self._is_told = True
                self.server.notify(message.method, {})
        elif message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            for sent, asked in self._asked.items():
                if asked.link is link and asked.request.identity == wanted:
                    self.server.cancel(sent)

    def forget(self, link: SharedLink) -> None:
        self.links.discard(link)
        self._asked = {
            sent: asked
            for sent, asked in self._asked.items()
            # Other sessions wait for the answer to this handshake, too.
            if asked.link is not link or asked.request.method == "initialize"
        }
        self._greeting = [asked for asked in self._greeting if asked.link is not link]

    # Messages of the program.

    def _hear(self, message: wire.Message | wire.MalformedMessage) -> None:
        if isinstance(message, wire.MalformedMessage):
            # The line may have been the answer to any request of any session.
            for link in {asked.link for asked in (*self._asked.values(), *self._greeting)}:
                link.put(message)
            self._asked.clear()
            self._greeting.clear()
        elif isinstance(message, wire.Request):
            self._told(message)
        elif isinstance(message.identity, int) and message.identity in self._asked:
            asked = self._asked.pop(message.identity)
            if asked.request.method != "initialize":
                asked.link.put(replace(message, identity=asked.request.identity))
                return
            greeting, self._greeting = self._greeting, []
            self._greeted = message if message.error is None else None
            for one in greeting:
                one.link.put(replace(message, identity=one.request.identity))

    def _told(self, message: wire.Request) -> None:
        if message.method == "notifications/tools/list_changed":
            for link in tuple(self.links):
                link.put(message)
        elif message.method == "notifications/progress":
            sent = message.params.get("progressToken")
            asked = self._asked.get(sent) if isinstance(sent, int) else None
            progress = None if asked is None else progress_of(message, asked.request)
            if asked is not None and progress is not None:
                asked.link.put(progress)


class SharedLink(Link):
    """The link of one session to a shared program."""

    hears = True

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._inbox = Inbox()

    @property
    def waiting(self) -> int:
        return self._shared.server.link.waiting

    def send(self, message: wire.Message) -> None:
        if self in self._shared.links:
            self._shared.take(self, message)

    def put(self, message: wire.Message | wire.MalformedMessage) -> None:
        """Queue a message of the program; end the link if the session does not read."""
        self._inbox.put(message)
        if len(self._inbox) > _MAX_UNREAD:
            self.drop()

    async def receive(self) -> wire.Message:
        return await self._inbox.get()

    async def drained(self, below: int = 0) -> None:
        await self._shared.server.link.drained(below)

    def drop(self) -> None:
        """End the link; other sessions keep the program."""
        self._shared.forget(self)
        self._inbox.end()

    async def close(self) -> None:
        self.drop()
