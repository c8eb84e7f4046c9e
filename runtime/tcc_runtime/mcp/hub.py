"""Several servers as one: what the relay speaks to where a policy spans more than one server.

The hub runs in a thread and is spoken to by pipes, as a server of its own: the relay's loop waits
for it as for any other.  Its tools are those of the grammar, each bound to a tool of a server.  A
server that is missing, has ended, or lists other tools than it should is *away*: the relay is told
which tools that takes with it (`notifications/tcc/away`), refuses their calls, and nothing is sent;
it is tried again, with 1 to 60 seconds between.  A call under way at a server that ends has an
error for an answer, so its outcome is unknown; nothing is sent twice.
Text: docs/mcp.md.  Cost: a hop through two pipes; memory is bounded by the longest line a server.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.upstream import Command, Protocol, ServerRequest, Steps, Upstream
from tcc_runtime.mcp.upstream.lock import check_tools, tool_digest
from tcc_runtime.mcp.upstream.pipes import MAX_REQUEST_LINE, Pipe, Stopping, ready

AWAY: Final = "notifications/tcc/away"
AWAY_ERROR: Final = -32097  # of a call that was not sent
_AGAIN: Final = (1.0, 60.0)  # seconds between two tries
_FULL: Final = 32 << 20
_BEHIND: Final = 1 << 20  # bytes that a server has not read, with which no call is sent to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The servers of a policy.

    Attributes:
        commands: of each server, by its name.
        tools: of each tool of the grammar, its server's name and the tool's name there.
        locked: digests of the grammar's tools; None takes them as they are first seen.
        seen: digests of those that were seen before, by whoever started the same servers.
        seconds: how long a server may take while the connection is made.
        protocol: how servers are spoken to.
        version: ours.
        several: that this is a hub.
    """

    commands: Mapping[str, Command]
    tools: Mapping[str, tuple[str, str]]
    locked: Mapping[str, str] | None
    seconds: float
    protocol: Protocol
    version: str
    several: bool = True
    seen: Mapping[str, str] = field(default_factory=dict)

    def start(self, most: int) -> HubProcess:
        """The hub, with its servers being started."""
        return HubProcess(self, most)


class HubProcess:
    """What stands for a server's process: the thread of a hub, and pipes to it.

    Attributes:
        pipe: to the hub.
    """

    unsent: Collection[Any] = ()

    def __init__(self, servers: Servers, most: int) -> None:
        reads, answers = os.pipe()
        asked, writes = os.pipe()
        self.pipe = Pipe(reads, writes, most)
        self._hub = _Hub(servers, Pipe(asked, answers, MAX_REQUEST_LINE))
        self._thread = threading.Thread(target=self._hub.run, daemon=True)
        self._thread.start()

    def close(self, stopping: Stopping | None = None) -> None:
        """End the servers, all at once."""
        self._hub.stopping = stopping
        os.close(self.pipe.writes)
        self._thread.join(8.0)
        self.pipe.ended = self.pipe.broken = True
        os.close(self.pipe.reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call at a server.

    Attributes:
        identity: of the relay's request.
        token: of its progress, as the relay has it.
    """

    identity: Any
    token: Any


@dataclass(slots=True, kw_only=True)
class _Peer:
    """One server.

    Attributes:
        name: as the grammar binds tools to it.
        command: its program, or its URL.
        upstream: the connection; None while there is none.
        steps, ask, until: what is gone through with it: its start, its list of tools.
        is_there: whether its tools may be called.
        reason: why not.
        again: when it is tried again.
        pause: seconds until then, the next time.
        calls: those under way, by our ids.
        doubtful: whether its list of tools may have changed behind the one that is looked at.
        held: calls that wait until its list was looked at; looking: for the look under way.
    """

    name: str
    command: Command
    upstream: Upstream | None = None
    steps: Steps[None] | None = None
    asked: int = 0
    until: float = 0.0
    is_there: bool = False
    was_tried: bool = False
    reason: str = "it is being started"
    again: float = 0.0
    pause: float = _AGAIN[0]
    calls: dict[int, _Call] = field(default_factory=dict)
    doubtful: bool = False
    held: list[wire.Request] = field(default_factory=list)
    looking: list[wire.Request] = field(default_factory=list)


class _Hub:
    """The loop.

    Attributes:
        stopping: of the relay, once it ends.
    """

    def __init__(self, servers: Servers, relay: Pipe) -> None:
        self.stopping: Stopping | None = None
        self._servers = servers
        self._relay = relay
        self._peers = {
            name: _Peer(name=name, command=command) for name, command in servers.commands.items()
        }
        self._known: dict[str, str] = {**servers.seen, **(servers.locked or {})}
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._first: list[wire.Request] = []  # what waits until each server was tried once
        self._open = False
        self._closing: list[threading.Thread] = []

    def run(self) -> None:
        """Until the relay lets go."""
        try:
            while not self._relay.ended and not self._relay.broken:
                for peer in self._peers.values():
                    self._tend(peer)
                self._begin()
                self._turn()
        finally:
            for peer in self._peers.values():
                self._close(peer)
            for thread in self._closing:
                thread.join(7.0)
            for descriptor in (self._relay.reads, self._relay.writes):
                with suppress(OSError):
                    os.close(descriptor)

    def _turn(self) -> None:
        """Wait for whoever has something to say, and hear it."""
        pipes = {id(self._relay): None} | {
            id(peer.upstream.pipe): peer for peer in self._peers.values() if peer.upstream
        }
        waiting = self._relay.waiting > _FULL
        listened = [self._relay]
        for peer in self._peers.values():
            if peer.upstream is not None:
                peer.upstream.pipe.paused = waiting
                listened.append(peer.upstream.pipe)
        for pipe in ready(listened, self._left()):
            peer_of = pipes[id(pipe)]
            for line in pipe.read():
                if peer_of is None:
                    self._from_relay(line)
                else:
                    self._from_peer(peer_of, line)

    def _left(self) -> float:
        """Seconds until something is to be done though nothing comes."""
        now = time.monotonic()
        times = [
            peer.until if peer.steps is not None else peer.again
            for peer in self._peers.values()
            if peer.steps is not None or not peer.is_there
        ]
        return max(0.0, min([*times, now + 60.0]) - now)

    # Servers come and go.

    def _tend(self, peer: _Peer) -> None:
        now = time.monotonic()
        if peer.upstream is None:
            if now >= peer.again:
                self._start(peer)
            return
        pipe = peer.upstream.pipe
        if pipe.ended or pipe.broken:
            self._lose(peer, "it has ended")
        elif peer.steps is not None and now >= peer.until:
            self._lose(peer, "it gives no answer")

    def _start(self, peer: _Peer) -> None:
        servers = self._servers
        try:
            upstream = Upstream(peer.command, seconds=servers.seconds, version=servers.version)
        except ServerError as error:
            self._lose(peer, str(error))
            return
        peer.upstream = upstream

        def steps() -> Steps[None]:
            yield from upstream.connecting(servers.protocol)
            self._take(peer, (yield from upstream.listing()))

        self._go_on(peer, steps(), None)

    def _look(self, peer: _Peer) -> None:
        """After a server said that its list changed: are its tools still those?"""
        upstream = peer.upstream
        if upstream is None or peer.steps is not None:
            return
        peer.doubtful = False
        peer.looking, peer.held = peer.held, []

        def steps() -> Steps[None]:
            self._take(peer, (yield from upstream.listing()))

        self._go_on(peer, steps(), None)

    def _looked(self, peer: _Peer) -> None:
        """The tools are those: what waited for this is sent; what came in a new doubt waits on."""
        held, peer.looking = peer.looking, []
        if not peer.doubtful:
            held, peer.held = [*held, *peer.held], []
        for message in held:
            self._call(message)
        if peer.doubtful:
            self._look(peer)

    def _go_on(self, peer: _Peer, steps: Steps[None], answer: wire.Response | None) -> None:
        peer.steps = None
        try:
            ask = next(steps) if answer is None else steps.send(answer)
            while ask is None:
                ask = next(steps)
        except StopIteration:
            self._looked(peer)
            return
        except ServerDrift as drift:
            self._lose(peer, drift.findings[0])
            return
        except ServerError as error:
            self._lose(peer, str(error))
            return
        self._ask(peer, steps, ask)

    def _ask(self, peer: _Peer, steps: Steps[None], ask: ServerRequest) -> None:
        if peer.upstream is not None:
            peer.asked = peer.upstream.request(ask.method, ask.params)
            peer.steps, peer.until = steps, time.monotonic() + self._servers.seconds

    def _take(self, peer: _Peer, listed: Sequence[Mapping[str, Any]]) -> None:
        """A server lists its tools: those of the grammar, under the grammar's names.

        Raises:
            ServerDrift: one is missing, or another one than it was.
        """
        there = {tool["name"]: tool for tool in listed}
        own = {name: tool for name, (server, tool) in self._bound() if server == peer.name}
        found = [{**there[tool], "name": name} for name, tool in own.items() if tool in there]
        known = {name: self._known[name] for name in own if name in self._known}
        locked = known if known or self._servers.locked is not None else None
        check_tools(tuple(own), found, locked)
        for tool in found:
            self._known[tool["name"]] = tool_digest(tool)
            self._tools[tool["name"]] = tool
        was = peer.is_there
        peer.is_there, peer.was_tried, peer.pause = True, True, _AGAIN[0]
        if not was and self._open:
            self._tell()

    def _bound(self) -> Sequence[tuple[str, tuple[str, str]]]:
        return tuple(self._servers.tools.items())

    def _lose(self, peer: _Peer, reason: str) -> None:
        """A server is away: what is under way there is unknown, and it is tried again later."""
        peer.reason = reason
        was, peer.is_there, peer.was_tried = peer.is_there, False, True
        self._close(peer)
        peer.again = time.monotonic() + peer.pause
        peer.pause = min(2 * peer.pause, _AGAIN[1])
        calls, peer.calls = peer.calls, {}
        held, peer.held, peer.looking = [*peer.looking, *peer.held], [], []
        peer.doubtful = False
        if was and self._open:
            self._tell()
        for message in held:
            self._error(message.identity, AWAY_ERROR, reason)
        for call in calls.values():
            self._error(call.identity, wire.INTERNAL_ERROR, f"the server {peer.name} is away")

    def _close(self, peer: _Peer) -> None:
        upstream, peer.upstream, peer.steps = peer.upstream, None, None
        if upstream is not None:
            # It may take seconds, and others are not to wait for it.
            thread = threading.Thread(target=upstream.close, args=(self.stopping,), daemon=True)
            thread.start()
            self._closing = [one for one in self._closing if one.is_alive()] + [thread]

    def _tell(self) -> None:
        """Tell the relay which tools are away, and why."""
        away = {
            name: f"the server {server} is away: {self._peers[server].reason}"
            for name, (server, _) in self._bound()
            if not self._peers[server].is_there
        }
        message = {"jsonrpc": "2.0", "method": AWAY, "params": {"away": away}}
        self._relay.send(wire.write_line(message))

    # What the relay says.

    def _from_relay(self, line: bytes | None) -> None:
        if line is None:
            return
        try:
            message = wire.read_line(line)
        except wire.MalformedMessage:
            return
        if not isinstance(message, wire.Request):
            return
        if message.method == "notifications/cancelled":
            self._cancel(message.params.get("requestId"))
        elif message.identity is not None and message.method == "tools/call":
            self._call(message)
        elif message.identity is not None:
            self._first.append(message)

    def _begin(self) -> None:
        """Answer what waits until each server was tried once."""
        if not self._first or not all(peer.was_tried for peer in self._peers.values()):
            return
        for message in self._first:
            if not self._open and not any(peer.is_there for peer in self._peers.values()):
                said = "; ".join(f"{one.name}: {one.reason}" for one in self._peers.values())
                self._error(message.identity, wire.INTERNAL_ERROR, f"no server is there: {said}")
            elif message.method == "initialize":
                self._open = True
                self._tell()
                self._answer(
                    message.identity,
                    {
                        "protocolVersion": wire.HANDSHAKE[-1],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "tcc", "version": self._servers.version},
                    },
                )
            elif message.method == "tools/list":
                tools = [self._tools[name] for name in sorted(self._tools)]
                self._answer(message.identity, {"tools": tools})
            else:
                self._error(message.identity, wire.METHOD_NOT_FOUND, "no such method here")
        self._first.clear()

    def _call(self, message: wire.Request) -> None:
        name = str(message.params.get("name"))
        if name not in self._servers.tools:  # in the shadow: one that the grammar has not
            self._error(message.identity, wire.INVALID_PARAMS, "no such tool here")
            return
        server, tool = self._servers.tools[name]
        peer = self._peers[server]
        if not peer.is_there or peer.upstream is None:
            self._error(message.identity, AWAY_ERROR, peer.reason)
            return
        if peer.steps is not None:  # its tools are looked at again
            peer.held.append(message)
            return
        if peer.upstream.pipe.waiting > _BEHIND:
            self._error(message.identity, AWAY_ERROR, "it does not read what was sent to it")
            return
        params = {**message.params, "name": tool}
        meta = message.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if isinstance(meta, dict) and token is not None:
            params["_meta"] = {**meta, "progressToken": peer.upstream.next_identity}
        sent = peer.upstream.request("tools/call", plain(params))
        peer.calls[sent] = _Call(identity=message.identity, token=token)

    def _cancel(self, identity: Any) -> None:
        for peer in self._peers.values():
            peer.held = [one for one in peer.held if one.identity != identity]
            peer.looking = [one for one in peer.looking if one.identity != identity]
            for sent, call in tuple(peer.calls.items()):
                if call.identity == identity and peer.upstream is not None:
                    peer.upstream.cancel(sent)

    # What a server says.

    def _from_peer(self, peer: _Peer, line: bytes | None) -> None:
        try:
            message = None if line is None else wire.read_line(line)
        except wire.MalformedMessage:
            message = None
            if line is not None and line.lstrip()[:1] not in (b"{", b"["):
                return  # noise of a server that prints where it should not
        if message is None:
            # It may have been the answer to whatever is waited for.
            calls, peer.calls = peer.calls, {}
            if peer.steps is not None:
                self._lose(peer, "it sent a line that is refused")
            for call in calls.values():
                said = f"the server {peer.name} sent a line that is refused"
                self._error(call.identity, wire.INTERNAL_ERROR, said)
        elif isinstance(message, wire.Request):
            self._told(peer, message)
        elif peer.steps is not None and message.identity == peer.asked:
            self._go_on(peer, peer.steps, message)
        elif isinstance(message.identity, int) and message.identity in peer.calls:
            call = peer.calls.pop(message.identity)
            if peer.upstream is not None and not peer.upstream.was_sent(message.identity):
                self._unreached(peer, call)
            elif message.error is not None:
                self._error(call.identity, *_own(message.error))
            elif not _may_ask(peer) and wire.is_input_required(message.result or {}):
                said = "the server asks for more, and nothing may be asked here"
                self._error(call.identity, wire.INTERNAL_ERROR, said)
            else:
                self._pass(call.identity, message.result)

    def _unreached(self, peer: _Peer, call: _Call) -> None:
        """A call was not sent, for its server is not to be reached any more."""
        reason = "it cannot be reached"
        self._error(call.identity, AWAY_ERROR, reason)
        if not peer.calls:  # else it is there for others; those that come ask again
            self._lose(peer, reason)

    def _told(self, peer: _Peer, message: wire.Request) -> None:
        if message.identity is not None:
            if peer.upstream is not None:
                peer.upstream.refuse(message)
        elif message.method == "notifications/tools/list_changed":
            peer.doubtful = True
            self._look(peer)
        elif message.method == "notifications/progress":
            sent = message.params.get("progressToken")
            call = peer.calls.get(sent) if isinstance(sent, int) else None
            if call is not None and call.token is not None and self._relay.waiting < _FULL:
                params = plain({**message.params, "progressToken": call.token})
                told = {"jsonrpc": "2.0", "method": message.method, "params": params}
                self._relay.send(wire.write_line(told))

    # What the relay is told.

    def _pass(self, identity: Any, result: Mapping[str, wire.Member] | None) -> None:
        """A server's result, its members as they were written."""
        parts = (
            [] if result is None else [f"{wire.dumps(one)}:{result[one].text}" for one in result]
        )
        text = "0" if result is None else "{" + ",".join(parts) + "}"
        self._relay.send(wire.write_line({"jsonrpc": "2.0", "id": identity}, result=text))

    def _answer(self, identity: Any, result: Mapping[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": identity, "result": plain(result)}
        self._relay.send(wire.write_line(message))

    def _error(self, identity: Any, code: int, said: str) -> None:
        error = {"code": code, "message": said}
        self._relay.send(wire.write_line({"jsonrpc": "2.0", "id": identity, "error": error}))


def _may_ask(peer: _Peer) -> bool:
    """Whether a server may ask before it answers: those of the handshake were told of nothing."""
    return peer.upstream is not None and peer.upstream.stateless


def _own(error: tuple[int, str]) -> tuple[int, str]:
    """A server's error; that a call was not sent is for us to say."""
    return (wire.INTERNAL_ERROR if error[0] == AWAY_ERROR else error[0]), error[1]
