"""Peers of a gate in virtual time: servers and clients, over links in memory and over HTTP.

Time passes when nothing else can be done.  Every delay, fault and choice is drawn from the seed of
a schedule.  HTTP is the gate's own: its uvicorn connections and its httpx2 client, each with a
transport in memory in place of a socket.
"""

from __future__ import annotations

import asyncio
import json
import random
import selectors
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import h11
import httpx2

from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Permit, Ticket
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import Inbox, Link, Stop
from tcc_runtime.mcp.links.http_client import HttpClientLink, Remote

TOOLS = ("drop", "look", "open_case", "pay")
Say = Callable[[wire.Message | wire.MalformedMessage | None], None]


class Virtual(asyncio.SelectorEventLoop):
    """A loop whose time passes when nothing else is to be done."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Never(self))

    def time(self) -> float:
        return self.now


class _Never(selectors.SelectSelector):
    def __init__(self, loop: Virtual) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits, and nothing comes"
        self._loop.now += max(0.0, timeout)
        return []


class Locked(Gate):
    """A session whose ledger another process has now and then."""

    world: World
    until = 0.0

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.world.gates[self.session_id] = self

    def call(self, tool: str, arguments: Any = None, **more: Any) -> Permit:
        permit = super().call(tool, arguments, **more)
        self.world.permits.append((self.session_id, permit, arguments["ref"]))
        return permit

    def try_turn(self) -> Ticket | None:
        world, now = self.world, asyncio.get_running_loop().time()
        if now < self.until:
            return None
        if world.chance.random() < 0.05:
            # Longer than the limit on a call once in a while: each look costs a step.
            self.until = now + world.chance.choice((0.01, 0.01, 0.3, 0.3, 0.3, 6.0))
            return None
        turn = super().try_turn()
        world.meddle()  # at the latest moment
        return turn


class World:
    """What happened in one schedule.

    Attributes:
        chance: draws everything.
        gates: of the sessions, by their ids.
        permits: of calls, with their sessions and refs.
        executed: by `ref`: the connection and the id at the server, the tool and the case.
        plain: connections and ids of calls that the server answered with a plain result.
        errors: those that it answered with `isError`.
        sent: refs of calls that the gate sent.
        never: those of calls that were cancelled before.
        faults: what should not have happened.
        crashed: whether a server ended or could not be reached.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.gates: dict[str, Gate] = {}
        self.permits: list[tuple[str, Permit, int]] = []
        self.executed: dict[int, tuple[object, Any, str, str]] = {}
        self.plain: set[tuple[object, Any]] = set()
        self.errors: set[tuple[object, Any]] = set()
        self.sent: set[int] = set()
        self.never: set[int] = set()
        self.crashed = False
        self.refs = 0
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.meddle: Callable[[], None] = lambda: None

    def later(self, seconds: float, work: Callable[..., None], *given: Any) -> None:
        self.loop.call_later(self.chance.random() * seconds, work, *given)

    def draw_call(self) -> tuple[int, dict[str, Any]]:
        """Return the ref of a new call, and its parameters."""
        self.refs += 1
        tool = self.chance.choice(("open_case", "pay", "pay", "look", "look", "drop", "never"))
        arguments: dict[str, Any] = {"id": self.chance.choice("ab"), "ref": self.refs}
        if tool == "pay":
            arguments["amount"] = self.chance.randrange(11)
        return self.refs, {"name": tool, "arguments": arguments}

    def send(self, message: wire.Message) -> None:
        """Check a call as the gate sends it: it is recorded as open, not cancelled, and new."""
        if not isinstance(message, wire.Request) or message.method != "tools/call":
            return
        ref = message.params["arguments"]["ref"]
        self.check(ref not in self.sent, f"{ref} is sent twice")
        self.check(ref not in self.never, f"{ref} is sent, though it was cancelled before")
        self.sent.add(ref)
        session, seq = {one: place for place, one in self.recorded().items()}.get(ref, ("", 0))
        history = self.gates[session].history if session else ()
        calls = [call for call in history if call.outcome == "open"]
        self.check(seq in [call.seq for call in calls], f"{ref} is sent, and not recorded")
        tools = {call.call.split("(")[0] for call in calls}
        self.check(len(calls) == 1 or tools == {"look"}, "two calls that stand alone")

    def execute(self, connection: object, identity: Any, params: Any) -> None:
        """Note that a server executes a call."""
        ref, tool = params["arguments"]["ref"], params["name"]
        self.check(ref in self.sent, f"{ref} is executed, and was not sent")
        self.check(ref not in self.executed, f"{ref} is executed twice")
        self.executed[ref] = connection, identity, tool, params["arguments"]["id"]

    def check_answer(self, ref: int | None, text: str) -> None:
        """Check the gate's answer to a call: it waited for a server only if it asked that one."""
        waited = "there was no answer in" in text
        self.check(not waited or ref in self.sent, f"{ref} waited, and no server had it")

    def check(self, is_so: bool, what: str) -> None:
        """Note what is wrong; where it happens, an exception would be an answer of the server."""
        if not is_so:
            self.faults.append(what)

    def recorded(self) -> dict[tuple[str, int], int]:
        """Return the refs of calls that were allowed, by session and number."""
        found: dict[tuple[str, int], int] = {}
        for name, permit, ref in self.permits:
            with suppress(RuntimeError):  # it was refused
                found[name, permit.seq] = ref
        return found

    def judge(self) -> None:
        """Check what the sessions recorded against what the servers did and said."""
        assert not self.faults, self.faults
        refs = self.recorded()
        for session, gate in self.gates.items():
            opened: set[str] = set()
            paid = 0
            for call in gate.history:
                ref, tool = refs[session, call.seq], call.call.split("(")[0]
                assert call.outcome in ("done", "failed", "unknown"), call
                made = self.executed.get(ref)
                if made is None:
                    assert call.outcome != "done", "done, and no server had it"
                    continue
                place, case = made[:2], made[3]
                assert call.outcome != "done" or place in self.plain, "done, and no server said so"
                if call.outcome == "failed":
                    assert tool == "drop" and place in self.errors, "failed, and no server said so"
                paid += tool == "pay"
                assert tool != "pay" or case in opened, "a call that the grammar forbids"
                if tool == "open_case":
                    opened.add(case)
            assert paid <= 3, "more calls than the limit"


# Servers.


class Desk:
    """A server: it answers late, twice, wrongly, for others or never, and crashes.

    Args:
        name: of the server; its tools are TOOLS.
        calls: the part of its connections that crash in a call, of 1.
    """

    def __init__(self, world: World, crashes: float) -> None:
        self.world, self._crashes = world, crashes
        self._is_restless = world.chance.random() < 0.2  # it announces a change at every list

    def take(self, connection: object, message: wire.Message, say: Say) -> None:
        """Take a message; `say` gets what the server says then, None for its end."""
        if not isinstance(message, wire.Request) or message.identity is None:
            return
        identity, world = message.identity, self.world
        stateless = wire.VERSION_KEY in message.params.get("_meta", {})
        if message.method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            self._reply(0.2, connection, identity, told, say)
        elif message.method == "server/discover":
            told = {"supportedVersions": [wire.STATELESS], "capabilities": {}}
            self._reply(0.2, connection, identity, told, say)
        elif message.method == "tools/list":
            if self._is_restless:
                say(_changed())
            elif world.chance.random() < 0.1:
                world.later(1.0, say, _changed())
            listed = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            self._reply(1.0, connection, identity, {"tools": listed}, say)
        else:
            world.execute(connection, identity, message.params)
            self._answer(connection, identity, say, stateless)

    def _reply(
        self, seconds: float, connection: object, identity: Any, result: dict[str, Any], say: Say
    ) -> None:
        if "content" in result:
            kind = self.world.errors if "isError" in result else self.world.plain
            kind.add((connection, identity))
        line = wire.write(wire.Response(identity=identity, result=result))
        self.world.later(seconds, say, wire.read_line(line))

    def _answer(self, connection: object, identity: Any, say: Say, stateless: bool) -> None:
        world, fine = self.world, {"content": [{"type": "text", "text": "ok"}]}
        how = world.chance.randrange(20)
        if how < 10:
            self._reply(0.3, connection, identity, fine, say)
        elif how < 12:
            self._reply(12.0, connection, identity, fine, say)  # perhaps too late
        elif how == 12:
            self._reply(0.3, connection, identity, {**fine, "isError": True}, say)
        elif how == 13:
            for seconds in (0.2, 2.0):
                self._reply(seconds, connection, identity, fine, say)
        elif how == 14:
            world.later(0.5, say, wire.error(identity, -32050, "no luck"))
        elif how == 15:
            # Perhaps the answer to another call.
            self._reply(0.3, connection, world.chance.randrange(90), fine, say)
            self._reply(0.6, connection, identity, fine, say)
        elif how == 16:
            world.later(0.3, say, wire.MalformedMessage(wire.PARSE_ERROR, "no JSON"))
        elif how == 17:
            say(_changed())
            self._reply(0.3, connection, identity, fine, say)
        elif how == 18 and world.chance.random() < self._crashes:
            world.crashed = True
            world.later(0.3, say, None)


def _changed() -> wire.Request:
    return wire.Request(identity=None, method="notifications/tools/list_changed", params={})


class Memory(Link):
    """A link in memory: what is sent to it is taken by `takes`."""

    hears = True

    def __init__(self, takes: Callable[[wire.Message], None]) -> None:
        self._takes = takes
        self.inbox = Inbox()
        self._gone = asyncio.Event()

    def send(self, message: wire.Message) -> None:
        # What is written is what the peer reads.
        self._takes(wire.read_line(wire.write(message)))

    async def receive(self) -> wire.Message:
        try:
            return await self.inbox.get()
        except EOFError:
            self.is_ended = True
            self._gone.set()
            raise

    def is_quiet(self) -> bool:
        return not len(self.inbox)

    async def gone(self) -> None:
        await self._gone.wait()

    async def close(self) -> None:
        self.inbox.end()


class Program:
    """A target: each time that it is opened, the server is started."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def open(self, stop: Stop, note: Callable[[str], None]) -> Memory:
        def say(message: wire.Message | wire.MalformedMessage | None) -> None:
            if message is None:
                link.inbox.end()
            else:
                link.inbox.put(message)

        def take(message: wire.Message) -> None:
            self._desk.world.send(message)
            self._desk.take(link, message, say)

        link = Memory(take)
        return link


class Url:
    """A target: the server is behind HTTP, and forgets sessions or is not reached now and then."""

    def __init__(self, world: World, desk: Desk, seconds: float) -> None:
        self._world, self._desk, self._seconds = world, desk, seconds

    async def open(self, stop: Stop, note: Callable[[str], None]) -> HttpClientLink:
        posts = Posts(self._world, self._desk)

        def client(**options: Any) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=posts, **options)

        library = SimpleNamespace(**{**vars(httpx2), "AsyncClient": client})
        return Watched(
            self._world, Remote(url="http://127.0.0.1/", seconds=self._seconds), stop, library
        )


class Watched(HttpClientLink):
    """The gate's own link, of which the world sees what is sent."""

    def __init__(self, world: World, *given: Any) -> None:
        super().__init__(*given)
        self._world = world

    def send(self, message: wire.Message) -> None:
        self._world.send(message)
        super().send(message)


class Posts(httpx2.AsyncBaseTransport):
    """What an HTTP client posts, in place of a connection."""

    def __init__(self, world: World, desk: Desk) -> None:
        self._world, self._desk = world, desk
        self._sessions: set[str] = set()
        self._number = 0
        self._calls = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        world, chance = self._world, self._world.chance
        await asyncio.sleep(0.02 * chance.random())
        if request.method == "DELETE":
            return httpx2.Response(204)
        message = wire.read_line(await request.aread())
        is_call = isinstance(message, wire.Request) and message.method == "tools/call"
        if is_call and chance.random() < 0.03:
            world.crashed = True
            raise httpx2.ConnectError("refused")
        session, more = request.headers.get("mcp-session-id"), {}
        if isinstance(message, wire.Request) and message.method == "initialize":
            self._number += 1
            more = {"mcp-session-id": str(self._number)}
            self._sessions.add(str(self._number))
        elif "mcp-method" not in request.headers and session not in self._sessions:
            return httpx2.Response(404)
        if is_call and chance.random() < 0.02:
            self._sessions.clear()
        if not isinstance(message, wire.Request) or message.identity is None:
            return httpx2.Response(202)
        said: asyncio.Queue[Any] = asyncio.Queue()
        self._desk.take(self, message, said.put_nowait)
        seconds = request.extensions["timeout"]["read"]
        if chance.random() < 0.5:
            headers = {"content-type": "text/event-stream", **more}
            return httpx2.Response(200, headers=headers, stream=_Events(said, seconds))
        while True:
            item = await _next(said, seconds)
            if item is None:
                raise httpx2.ReadError("reset")
            if isinstance(item, wire.MalformedMessage):
                return _json(b"{", more)
            if isinstance(item, wire.Response):
                return _json(wire.write(item).strip(), more)


def _json(body: bytes, more: dict[str, str]) -> httpx2.Response:
    headers = {"content-type": "application/json", **more}
    return httpx2.Response(200, stream=httpx2.ByteStream(body), headers=headers)


async def _next(said: asyncio.Queue[Any], seconds: float) -> Any:
    try:
        return await asyncio.wait_for(said.get(), seconds)
    except TimeoutError:
        raise httpx2.ReadTimeout("no answer") from None


class _Events(httpx2.AsyncByteStream):
    def __init__(self, said: asyncio.Queue[Any], seconds: float) -> None:
        self._said, self._seconds = said, seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (item := await _next(self._said, self._seconds)) is not None:
            if isinstance(item, wire.MalformedMessage):
                yield b"data: {\n\n"
            else:
                yield b"event: message\ndata: " + wire.write(item).strip() + b"\n\n"


# Clients over HTTP.


class Socket(asyncio.Transport):
    """A connection of a client: the gate's protocol on one side, h11 on the other.

    Args:
        protocol: of the gate.
        answered: gets the status, headers and body of an answer; None if the connection ends first.
    """

    def __init__(
        self, protocol: asyncio.Protocol, answered: Callable[[int | None, Any, bytes], None]
    ) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol, self._answered = protocol, answered
        self._reader = h11.Connection(h11.CLIENT)
        self._status: int | None = None
        self._headers: dict[str, list[str]] = {}
        self._body = b""
        self._is_paused = self._is_closing = self._is_answered = False
        self._unread: list[bytes] = []
        protocol.connection_made(self)

    # The client.

    def request(self, method: str, headers: dict[str, str], body: bytes) -> list[bytes]:
        """Return the bytes of a request, as head and body."""
        told = {"Host": "gate", "Content-Length": str(len(body)), **headers}
        request = h11.Request(method=method, target="/mcp", headers=list(told.items()))
        head = self._reader.send(request) or b""
        data = self._reader.send(h11.Data(data=body)) or b""
        self._reader.send(h11.EndOfMessage())
        return [head, data]

    def feed(self, data: bytes) -> None:
        """Send bytes to the gate."""
        if self._is_closing or not data:
            return
        if self._is_paused:
            self._unread.append(data)
        else:
            self._protocol.data_received(data)

    def leave(self) -> None:
        """Close the connection from the client's side."""
        self._end()

    # The gate's transport.

    def write(self, data: Any) -> None:
        if self._is_closing or not data:
            return
        self._reader.receive_data(bytes(data))
        while True:
            event = self._reader.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Response):
                self._status = event.status_code
                for name, value in event.headers:
                    self._headers.setdefault(name.decode(), []).append(value.decode())
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._loop.call_soon(self._tell)
            else:
                return

    def _tell(self) -> None:
        if not self._is_answered:
            self._is_answered = True
            self._answered(self._status, self._headers, self._body)

    def _end(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)
            self._loop.call_soon(self._lost)

    def _lost(self) -> None:
        if not self._is_answered:
            self._is_answered = True
            self._answered(None, {}, b"")

    def close(self) -> None:
        self._end()

    def abort(self) -> None:
        self._end()

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        unread, self._unread = self._unread, []
        for data in unread:
            self._loop.call_soon(self.feed, data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def messages_of(headers: dict[str, list[str]], body: bytes) -> list[dict[str, Any]]:
    """Return the messages in the body of an answer."""
    if not body:
        return []
    if headers["content-type"] == ["text/event-stream"]:
        lines = body.split(b"\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
    return [json.loads(body)]
