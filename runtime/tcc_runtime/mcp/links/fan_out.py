"""A link to several servers, which the relay sees as one.

The grammar binds each of its tools to a tool of a server.  A server is *away* if it cannot be
reached, has ended, or lists other tools than before.  The relay refuses calls of its tools, and the
link sends no such call.  The link connects again after pauses of 1 to 60 seconds.  If a server
ends, its calls under way get an error as their answer, so their outcomes are unknown.  The link
sends no call twice.
Text: docs/mcp.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Inbox, Link, Stop, Target
from tcc_runtime.mcp.lock import check_tools, tool_digest
from tcc_runtime.mcp.server import Protocol, Server, progress_of, with_token

_AGAIN: Final = (1.0, 60.0)  # seconds between two tries
_MAX_PROGRESS: Final = 1 << 10  # with more unread messages than this, progress is dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The servers of a policy.

    Attributes:
        targets: the servers by name.
        tools: for each tool of the grammar, the name of its server and the tool's name there.
        locked: the digests of the grammar's tools; None: the tools count as locked when first
            listed.
        seconds: the time limit of each answer while connecting.
        protocol: the form of the protocol to agree on.
        version: the version of this program.
        seen: the digests of tools that an earlier start of the same servers listed.
    """

    targets: Mapping[str, Target]
    tools: Mapping[str, tuple[str, str]]
    locked: Mapping[str, str] | None
    seconds: float
    protocol: Protocol
    version: str
    seen: Mapping[str, str] = field(default_factory=dict)

    async def open(self, stop: Stop, note: Callable[[str], None]) -> FanOut:
        return FanOut(self, stop, note)


@dataclass(slots=True, kw_only=True, eq=False)
class _Peer:
    """One server.

    Attributes:
        link, server: the last link; and the server, None without a connection.
        is_there, reason: whether its tools may be called, and if not, why.
        tried: set after the first attempt to connect.
        doubt: whether the server announced a change of its tools.
        due: set if the tools have to be listed, or `lost` is set.
        lost: why the server counts as away although it has not ended.
        calls: calls under way, by the ids at the server.
        held: calls that wait for a list of the tools.
    """

    name: str
    link: Link | None = None
    server: Server | None = None
    is_there: bool = False
    reason: str = "it is being started"
    lost: str = ""
    pause: float = _AGAIN[0]
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    doubt: bool = False
    due: asyncio.Event = field(default_factory=asyncio.Event)
    calls: dict[int, wire.Request] = field(default_factory=dict)
    held: list[wire.Request] = field(default_factory=list)


class FanOut(Link):
    """A link to several servers; see the module."""

    def __init__(self, servers: Servers, stop: Stop, note: Callable[[str], None]) -> None:
        self._servers, self._stop, self._note = servers, stop, note
        self._inbox = Inbox()
        self._peers = {name: _Peer(name=name) for name in servers.targets}
        self._digests: dict[str, str] = {**servers.seen, **(servers.locked or {})}
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._is_open = False
        self._away: dict[str, str] = {}
        self._tasks = [asyncio.ensure_future(self._tend(peer)) for peer in self._peers.values()]
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def away(self) -> Mapping[str, str]:
        return self._away

    def send(self, message: wire.Message) -> None:
        if not isinstance(message, wire.Request):
            return
        if message.method == "notifications/cancelled":
            self._cancel(message.params.get("requestId"))
        elif message.method == "tools/call":
            self._call(message)
        elif message.identity is not None:
            task = asyncio.ensure_future(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def receive(self) -> wire.Message:
        return await self._inbox.get()

    async def close(self) -> None:
        """End all servers at the same time."""
        tasks = [*self._tasks, *self._answering]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        links = [peer.link for peer in self._peers.values() if peer.link is not None]
        await asyncio.gather(*[link.close() for link in links])
        self._inbox.end()

    # Servers come and go.

    async def _tend(self, peer: _Peer) -> None:
        """Keep a server connected: connect again after each end."""
        while True:
            await self._connected(peer)
            pause = peer.pause
            peer.pause = min(2 * pause, _AGAIN[1])
            await asyncio.sleep(pause)

    async def _connected(self, peer: _Peer) -> None:
        """Connect to a server; until it ends, list its tools whenever they may have changed."""
        servers, link, reason = self._servers, None, "it has ended"
        listening: asyncio.Task[None] | None = None
        try:
            link = peer.link = await servers.targets[peer.name].open(self._stop, self._note)
            server = Server(link, seconds=servers.seconds, version=servers.version)
            hear = partial(self._hear, peer)
            listening = asyncio.ensure_future(server.listen(hear))
            await server.connect(servers.protocol)
            peer.server, peer.pause, peer.lost = server, _AGAIN[0], ""
            peer.due.set()
            while not server.ended:
                due = asyncio.ensure_future(peer.due.wait())
                try:
                    await asyncio.wait((due, listening), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    due.cancel()
                if peer.lost:
                    raise ServerError(peer.lost)
                if peer.due.is_set():
                    peer.due.clear()
                    peer.doubt = False
                    before = {call.identity for call in peer.held}
                    self._take(peer, await server.tools())
                    self._release(peer, before)
        except ServerDrift as drift:
            reason = drift.findings[0]
        except ServerError as error:
            reason = str(error)
        finally:
            self._lose(peer, reason)  # before closing the link, which may take seconds
            if listening is not None:
                listening.cancel()
            if link is not None:
                await link.close()

    def _take(self, peer: _Peer, listed: Sequence[Mapping[str, Any]]) -> None:
        """Check the listed tools of a server, and store them under the names of the grammar.

        Raises:
            ServerDrift: a tool is missing or has changed.
        """
        there = {tool["name"]: tool for tool in listed}
        bound = self._servers.tools.items()
        own = {name: tool for name, (server, tool) in bound if server == peer.name}
        found = [{**there[tool], "name": name} for name, tool in own.items() if tool in there]
        known = {name: self._digests[name] for name in own if name in self._digests}
        locked = known if known or self._servers.locked is not None else None
        check_tools(tuple(own), found, locked)
        for tool in found:
            self._digests[tool["name"]] = tool_digest(tool)
            self._tools[tool["name"]] = tool
        peer.is_there = True
        peer.tried.set()
        self._note_away()

    def _release(self, peer: _Peer, before: Set[wire.Id | None]) -> None:
        """Send the calls that waited for a list of the tools.

        A call waits for at most one complete list.  So a server that announces a change during each
        list does not hold its calls, and its tools are listed at most once for each call.

        Args:
            before: the ids of calls that waited before this list.
        """
        held, peer.held = peer.held, []
        for call in held:
            if peer.doubt and call.identity not in before:
                peer.held.append(call)
                peer.due.set()
            else:
                self._pass(peer, call)

    def _lose(self, peer: _Peer, reason: str) -> None:
        """Note that a server is away, and end its calls under way as unknown."""
        peer.server, peer.is_there, peer.reason = None, False, reason
        peer.tried.set()
        peer.doubt = False
        peer.due.clear()
        calls, peer.calls = peer.calls, {}
        held, peer.held = peer.held, []
        self._note_away()
        for call in held:
            self._unsent(call, reason)
        for call in calls.values():
            self._error(call, wire.INTERNAL_ERROR, f"the server {peer.name} is away")

    def _note_away(self) -> None:
        if not self._is_open:
            return
        before, self._away = self._away, {
            name: f"the server {server} is away: {self._peers[server].reason}"
            for name, (server, _) in self._servers.tools.items()
            if not self._peers[server].is_there
        }  # fmt: skip
        for reason in sorted(set(self._away.values()) - set(before.values())):
            self._note(reason)

    # Messages of the relay.

    async def _answer(self, message: wire.Request) -> None:
        """Answer a request other than a call, once a connection to each server was tried."""
        for peer in self._peers.values():
            await peer.tried.wait()
        identity = message.identity
        if not self._is_open and not any(peer.is_there for peer in self._peers.values()):
            said = "; ".join(f"{one.name}: {one.reason}" for one in self._peers.values())
            self._error(message, wire.INTERNAL_ERROR, f"no server is there: {said}")
        elif message.method == "initialize":
            self._is_open = True
            self._note_away()
            info = {"name": "tcc", "version": self._servers.version}
            told = {"protocolVersion": wire.HANDSHAKE[-1], "capabilities": {"tools": {}}}
            self._say(identity, {**told, "serverInfo": info})
        elif message.method == "tools/list":
            self._say(identity, {"tools": [self._tools[name] for name in sorted(self._tools)]})
        else:
            self._error(message, wire.METHOD_NOT_FOUND, "no such method here")

    def _call(self, message: wire.Request) -> None:
        name = str(message.params.get("name"))
        if name not in self._servers.tools:  # possible only in shadow mode
            self._error(message, wire.INVALID_PARAMS, "no such tool here")
            return
        bound, _ = self._servers.tools[name]
        peer = self._peers[bound]
        is_looking = peer.server is not None and peer.server.is_looking
        if peer.is_there and (peer.doubt or is_looking):
            peer.held.append(message)
            if not is_looking:
                peer.due.set()
        else:
            self._pass(peer, message)

    def _pass(self, peer: _Peer, message: wire.Request) -> None:
        """Send a call to its server, with the name that the tool has there."""
        server = peer.server
        if not peer.is_there or server is None:
            self._unsent(message, peer.reason)
        elif server.is_full:
            self._unsent(message, "it does not read what was sent to it")
        else:
            _, tool = self._servers.tools[str(message.params.get("name"))]
            params = {**with_token(message, server), "name": tool}
            peer.calls[server.request("tools/call", params)] = message

    def withdraw(self, identity: Any) -> bool:
        """See :class:`Link`: a call may wait for a list of the tools."""
        for peer in self._peers.values():
            for call in peer.held:
                if call.identity == identity:
                    peer.held.remove(call)
                    return True
        return False

    def _cancel(self, identity: Any) -> None:
        for peer in self._peers.values():
            for sent, call in peer.calls.items():
                if call.identity == identity and peer.server is not None:
                    peer.server.cancel(sent)

    # Messages of a server.

    def _hear(self, peer: _Peer, message: wire.Message | wire.MalformedMessage) -> None:
        if isinstance(message, wire.MalformedMessage):
            # The line may have been the answer to any call.
            calls, peer.calls = peer.calls, {}
            for call in calls.values():
                said = f"the server {peer.name} sent a line that is refused"
                self._error(call, wire.INTERNAL_ERROR, said)
        elif isinstance(message, wire.Request):
            self._notified(peer, message)
        elif isinstance(message.identity, int) and message.identity in peer.calls:
            call = peer.calls.pop(message.identity)
            is_asking = wire.is_input_required(message.result or {})
            if message.unsent:
                self._unsent(call, "it cannot be reached")
                if not peer.calls:  # otherwise other calls show that the server can be reached
                    peer.lost = "it cannot be reached"
                    peer.due.set()
            elif is_asking and peer.server is not None and not peer.server.stateless:
                # A server of the handshake got no capabilities of the client, so it may not ask.
                said = "the server asks for more, and nothing may be asked here"
                self._error(call, wire.INTERNAL_ERROR, said)
            else:
                self._inbox.put(replace(message, identity=call.identity))

    def _notified(self, peer: _Peer, message: wire.Request) -> None:
        if message.method == "notifications/tools/list_changed":
            peer.doubt = True  # its tools are listed for the next call
        elif message.method == "notifications/progress":
            sent = message.params.get("progressToken")
            call = peer.calls.get(sent) if isinstance(sent, int) else None
            progress = None if call is None else progress_of(message, call)
            if progress is not None and len(self._inbox) < _MAX_PROGRESS:
                self._inbox.put(progress)

    # Messages to the relay.

    def _say(self, identity: wire.Id | None, result: Mapping[str, Any]) -> None:
        members = {name: wire.Member(value=value, text="") for name, value in plain(result).items()}
        self._inbox.put(wire.Response(identity=identity, result=members))

    def _error(self, request: wire.Request, code: int, said: str) -> None:
        self._inbox.put(wire.Response(identity=request.identity, error=(code, said)))

    def _unsent(self, request: wire.Request, reason: str) -> None:
        error = (wire.INTERNAL_ERROR, reason)
        self._inbox.put(wire.Response(identity=request.identity, error=error, unsent=True))
