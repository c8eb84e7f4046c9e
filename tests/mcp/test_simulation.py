"""Seeded schedules of a whole gate in virtual time, over every link.

Clients send calls, cancellations and garbage at random, over stdio or HTTP, and leave or go on.
Servers answer late, twice, wrongly, for others or never, and crash: a program, a URL, several
behind a fan-out, or one program that all sessions share.  The ledger is another process's now and
then.  Whatever they do: nothing is executed that the gate did not record, that was cancelled
before, that was executed already, or beside a call that stands alone; every request has one answer
or was cancelled; each outcome is what the server said; a ping is answered in 50 ms; every ledger is
valid; and everything ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs import kernel
from tcc_certs.formats import container
from tcc_certs.session.validation import validate
from tcc_runtime.errors import ServerError
from tcc_runtime.gate import store
from tcc_runtime.gate.store import Sessions
from tcc_runtime.mcp import guarding, hosting, wire
from tcc_runtime.mcp.guarding import Guarded, Guarding, Probed
from tcc_runtime.mcp.hosting import Hosting, HostingTerms
from tcc_runtime.mcp.http import Listener, Listening
from tcc_runtime.mcp.links import Stop
from tcc_runtime.mcp.links.fan_out import Servers
from tcc_runtime.mcp.links.shared import SharedServer
from tests.mcp.simulated import (
    TOOLS,
    Desk,
    Locked,
    Memory,
    Program,
    Socket,
    Url,
    Virtual,
    World,
    messages_of,
)

SECONDS = 5.0  # limit on a call
ONCE_WRONG = (18847, 23903)  # schedules that showed a fault
GRAMMAR = """grammar desk version "1"

tool open_case(id: text max 9, ref: integer 0 .. 9999)
tool pay(id: text max 9, ref: integer 0 .. 9999, amount: integer 0 .. 9)
tool look(id: text max 9, ref: integer 0 .. 9999) { parallel }
tool drop(id: text max 9, ref: integer 0 .. 9999) { errors mean failed }

limit depth <= 60
limit count(pay) <= 3
before pay require open_case(same id)
before drop require no pay(same id)
"""
ARTIFACT = tcc.compile_text(GRAMMAR)
CHECKED = kernel.check(bytes(container.write_container(ARTIFACT.file.columns)))
PROBED = Probed(
    artifact=ARTIFACT.digest, info={}, instructions="", headers={}, locked={}, passes={},
    rounds=False,
    shown={name: {"name": name, "inputSchema": {"type": "object"}} for name in TOOLS},
)  # fmt: skip
HANDSHAKE, STATELESS = "2025-11-25", wire.STATELESS
META = {wire.VERSION_KEY: STATELESS, wire.CAPABILITIES_KEY: {}}


@dataclass(slots=True, kw_only=True)
class Asked:
    """A request of a client.

    Attributes:
        at: when the gate had all of it.
        ref: of a call.
        handle: of the session at that time, if there is a handshake.
        answers: that came.
        is_cancelled: whether nobody waits for an answer any more.
    """

    method: str
    at: float
    ref: int | None = None
    handle: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)
    is_cancelled: bool = False

    def check(self, place: object, is_cut: bool) -> None:
        assert len(self.answers) <= 1, (place, self)
        assert self.answers or self.is_cancelled or is_cut, (place, self)


class Schedule:
    """One schedule of clients and servers."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.world = world = World(seed)
        self.chance, self.loop, self.folder = world.chance, world.loop, folder

    def target(self, kind: str) -> Any:
        """Return a server that is reached in one way."""
        crashes = 1.0 if kind == "fan-out" else 0.3  # behind a fan-out it is started again
        desk = Desk(self.world, crashes)
        if kind == "url":
            return Url(self.world, desk, SECONDS)
        if kind == "fan-out":
            targets: dict[str, Any] = {
                "a": Program(desk),
                "b": Url(self.world, Desk(self.world, crashes), SECONDS),
            }
            tools = {name: ("ab"[number % 2], name) for number, name in enumerate(TOOLS)}
            return Servers(
                targets=targets, tools=tools, locked=None, seconds=SECONDS, protocol="handshake",
                version="0",
            )  # fmt: skip
        return SharedServer(Program(desk)) if kind == "shared" else Program(desk)

    def guarded(self, target: Any) -> Guarded:
        forms: tuple[Any, ...] = ("handshake", "handshake", STATELESS)
        shared = isinstance(target, SharedServer)
        form: Any = "handshake" if shared else self.chance.choice(forms)
        return Guarded(
            target=target, locked=None, seconds=SECONDS, finishes=False, masks=False,
            protocol=form, version="0",
        )  # fmt: skip

    async def run(self) -> None:
        raise NotImplementedError

    def judge(self) -> None:
        self.world.judge()
        for path in self.folder.rglob("*.ledger"):
            found = validate(path.read_bytes(), CHECKED)
            assert found.verdict != 1, found.findings


class Stdio(Schedule):
    """One client over stdio."""

    def __init__(self, seed: int, folder: Path, kind: str) -> None:
        super().__init__(seed, folder)
        self.asked: dict[Any, Asked] = {}
        self.number = 0
        self.kind = kind
        Locked.world = self.world
        self.gate = Locked(ARTIFACT, ledger=folder / "s.ledger", durable=False)
        self.world.meddle = self.meddle
        self.client = Memory(self.hear)
        self.is_stateless = self.chance.random() < 0.3

    def hear(self, message: wire.Message) -> None:
        if isinstance(message, wire.Response) and message.identity is not None:
            asked = self.asked[message.identity]
            asked.answers.append({"error": message.error})
            self.world.check_answer(asked.ref, repr(message.result))
            if asked.method == "ping":
                assert self.loop.time() - asked.at < 0.05, "a ping that waited"

    def ask(self, method: str, params: dict[str, Any], ref: int | None = None) -> None:
        self.number += 1
        self.asked[self.number] = Asked(method=method, at=self.loop.time(), ref=ref)
        params = {**params, "_meta": META} if self.is_stateless else params
        self.client.inbox.put(wire.Request(identity=self.number, method=method, params=params))

    def call(self) -> None:
        ref, params = self.world.draw_call()
        self.ask("tools/call", params, ref)

    def cancel(self) -> None:
        waits = [n for n, one in self.asked.items() if not (one.answers or one.is_cancelled)]
        if waits:
            identity = self.chance.choice(waits)
            told = {"requestId": identity}
            method = "notifications/cancelled"
            self.client.inbox.put(wire.Request(identity=None, method=method, params=told))
            asked = self.asked[identity]
            asked.is_cancelled = True
            if asked.ref is not None and asked.ref not in self.world.sent:
                self.world.never.add(asked.ref)

    def meddle(self) -> None:
        if self.chance.random() < 0.1:
            self.cancel()

    def act(self) -> None:
        match self.chance.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                self.call()
            case 6 | 7:
                self.cancel()
            case 8:
                self.ask("tools/list" if self.is_stateless else "ping", {})
            case 9:
                self.client.inbox.put(wire.MalformedMessage(wire.PARSE_ERROR, "no JSON"))
            case 10:
                self.ask("tools/list", {})
            case _:
                for _ in range(self.chance.randrange(6)):
                    self.call()

    async def run(self) -> None:
        stop, began = Stop(), self.loop.time()
        if not self.is_stateless:
            self.ask("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}})
        at = 0.0
        for _ in range(self.chance.randrange(1, 30)):
            at += self.chance.choice((0.0, 0.001, 0.1, 1.0))
            self.loop.call_later(at, self.act)
        ends = at + self.chance.choice((0.001, 0.5, 40.0))
        stopped = self.chance.random() < 0.3
        self.loop.call_later(ends, stop.ask if stopped else self.client.inbox.end)
        how = self.guarded(self.target(self.kind))
        work = Guarding(self.client, stop, lambda: self.gate, how, self.world.notes.append)
        trouble = None
        try:
            trouble = await work.run()
        except ServerError:
            assert self.world.crashed
        took = self.loop.time() - began - ends
        assert took < (1.5 if stopped else 20 * SECONDS), took
        assert trouble in (None, guarding.STOPPED, "the server ended"), trouble
        for identity, asked in self.asked.items():
            asked.check(identity, stopped or trouble is not None or self.world.crashed)


class HttpClient:
    """A client over HTTP, of either form, with a session of its own.

    Attributes:
        handle: of the handshake; None before it, and after a DELETE.
        cookies: of the other form.
    """

    def __init__(self, schedule: Http, name: str) -> None:
        self.schedule, self.name = schedule, name
        self.world, self.chance, self.loop = schedule.world, schedule.chance, schedule.loop
        self.is_stateless = self.chance.random() < 0.4
        self.streams = self.chance.random() < 0.5
        self.handle: str | None = None
        self.cookies: dict[str, str] = {}
        self.asked: dict[str, Asked] = {}
        self.sockets: dict[str, Socket] = {}
        self.number = 0
        self.is_gone = False

    # Requests.

    def headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        streams = ", text/event-stream" if self.streams else ""
        found = {"Content-Type": "application/json", "Accept": f"application/json{streams}"}
        if self.is_stateless:
            found |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
            found |= {"Mcp-Name": str(params["name"])} if "name" in params else {}
            if self.cookies:
                told = [f"{name}={value}" for name, value in self.cookies.items()]
                found["Cookie"] = "; ".join(told)
        elif self.handle is not None:
            found["Mcp-Session-Id"] = self.handle
        return found

    def post(
        self,
        method: str,
        params: dict[str, Any],
        *,
        ref: int | None = None,
        identity: str | None = None,
        then: Callable[[int | None], None] = lambda _: None,
        verb: str = "POST",
    ) -> None:
        """Post a message in one or two parts."""
        if self.is_stateless and verb == "POST":
            params = {**params, "_meta": META}
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if identity is None and not method.startswith("notifications/"):
            self.number += 1
            identity = f"{self.name}{self.number}"
        if identity is not None and verb == "POST":
            message["id"] = identity
            asked = Asked(method=method, at=1e9, ref=ref, handle=self.handle)
            self.asked.setdefault(identity, asked)

        def answered(status: int | None, headers: Any, body: bytes) -> None:
            self.answered(identity, params, status, headers, body)
            then(status)

        socket = Socket(self.schedule.connection(), answered)
        if identity is not None:
            self.sockets[identity] = socket
        body = wire.dumps(message).encode() if verb == "POST" else b""
        head, data = socket.request(verb, self.headers(method, params), body)
        pause = self.chance.choice((0.0, 0.0, 0.0, 0.02, 1.0))
        half = self.chance.randrange(1 + len(head))

        def rest() -> None:
            if identity in self.asked:
                self.asked[identity].at = self.loop.time()
            socket.feed(head[half:] + data)

        if pause:
            socket.feed(head[:half])
            self.loop.call_later(pause, rest)
        else:
            half = 0
            rest()

    def answered(
        self, identity: str | None, params: Any, status: int | None, headers: Any, body: bytes
    ) -> None:
        """Take an answer."""
        for cookie in headers.get("set-cookie", ()):
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies.pop(name, None)
            if value:
                self.cookies[name] = value
        asked = self.asked.get(identity or "")
        if asked is None:
            return
        if asked.method == "ping" and status == 200:
            assert self.loop.time() - asked.at < 0.05, "a ping that waited"
        if status is None:
            # Only the client, or the end of the gate, closes a connection without an answer.
            assert asked.is_cancelled or self.schedule.is_over, (identity, asked)
            return
        found = [one for one in messages_of(headers, body) if "id" in one]
        assert status in (200, 404, 503) or not found, (status, body)
        result = found[0].get("result") if found else None
        if result is not None and result.get("resultType") == "input_required":
            # The gate wants the cookie; the same request is posted again, under its id.
            if not asked.is_cancelled:
                again = {**params, "requestState": result["requestState"]}
                again.pop("_meta")
                self.post(asked.method, again, identity=identity)
            return
        if asked.method == "initialize" and status == 200:
            self.handle = headers["mcp-session-id"][0]
        if status == 404:
            assert self.schedule.is_over or self.was_over, (asked, "a session that is lost")
        asked.answers.append(found[0] if found else {"status": status})
        if found:
            assert found[0]["id"] == identity, (found, identity)
            self.world.check_answer(asked.ref, repr(result))

    was_over = False

    # What it does.

    def greet(self) -> None:
        if not self.is_stateless:
            self.handle = None
            self.post("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}})

    def call(self) -> None:
        ref, params = self.world.draw_call()
        if self.chance.random() < 0.3:
            params["_meta"] = {"progressToken": ref}
        self.post("tools/call", params, ref=ref)

    def waits(self) -> list[str]:
        """Return ids of requests that the gate has, and that have no answer."""
        now = self.loop.time()
        return [
            identity
            for identity, one in self.asked.items()
            if not (one.answers or one.is_cancelled) and one.at + 0.001 < now
        ]

    def is_waiting(self) -> bool:
        return not all(one.answers or one.is_cancelled for one in self.asked.values())

    def cancel(self) -> None:
        """Cancel a request: by a notification, or since 2026-07-28 by the end of its connection."""
        # A session knows nothing of requests of the one before.
        waits = [one for one in self.waits() if self.asked[one].handle == self.handle]
        if not waits:
            return
        identity = self.chance.choice(waits)
        asked = self.asked[identity]

        def never() -> None:
            if asked.ref is not None and asked.ref not in self.world.sent:
                self.world.never.add(asked.ref)

        def accepted(status: int | None) -> None:
            if status == 202:
                never()
                asked.is_cancelled = True
                self.sockets[identity].leave()

        if self.is_stateless:
            asked.is_cancelled = True
            self.sockets[identity].leave()
            self.loop.call_later(0.0001, never)
        else:
            self.post("notifications/cancelled", {"requestId": identity}, then=accepted)

    def drop(self) -> None:
        """Close the connection of a request; with the handshake its call goes on."""
        waits = self.waits()
        if waits:
            identity = self.chance.choice(waits)
            self.asked[identity].is_cancelled = True
            self.sockets[identity].leave()

    def stall(self) -> None:
        """Begin a request, and send nothing more: the gate gives it up in 10 s."""
        began = self.loop.time()

        def ended(status: int | None, headers: Any, body: bytes) -> None:
            assert status in (408, None), status
            assert self.loop.time() - began < 11 or self.schedule.is_over

        socket = Socket(self.schedule.connection(), ended)
        head, data = socket.request("POST", self.headers("ping", {}), b"{" * 100)
        whole = head + data
        socket.feed(whole[: self.chance.randrange(1, len(whole))])

    def spoil(self) -> None:
        """Send bytes that are no HTTP, or a body that is no JSON."""

        def ended(status: int | None, headers: Any, body: bytes) -> None:
            assert status in (400, None), (status, body)

        socket = Socket(self.schedule.connection(), ended)
        if self.chance.random() < 0.5:
            socket.feed(b"\0\xff nonsense\r\n\r\n")
        else:
            head, data = socket.request("POST", self.headers("ping", {}), b'{"jsonrpc":')
            socket.feed(head + data)

    def delete(self) -> None:
        """End the session, and begin another one."""
        if self.handle is None or self.is_stateless or not self.schedule.begins_new:
            return
        began = self.loop.time()
        self.was_over = True

        def ended(status: int | None) -> None:
            assert status in (202, 204, 404, None), status
            assert self.loop.time() - began < 2.1, "a DELETE that waited"
            self.greet()

        self.post("notifications/delete", {}, verb="DELETE", then=ended)

    def act(self) -> None:
        if self.is_gone:
            return
        if self.handle is None and not self.is_stateless:
            return
        match self.chance.randrange(14):
            case 0 | 1 | 2 | 3 | 4 | 5:
                self.call()
            case 6 | 7:
                self.cancel()
            case 8:
                self.post("tools/list" if self.is_stateless else "ping", {})
            case 9:
                self.spoil()
            case 10:
                self.post("tools/list", {})
            case 11:
                (self.stall if self.chance.random() < 0.3 else self.drop)()
            case 12:
                if self.chance.random() < 0.3:
                    self.delete()
            case _:
                for _ in range(self.chance.randrange(4)):
                    self.call()


class Http(Schedule):
    """Several clients over HTTP."""

    def __init__(self, seed: int, folder: Path, kind: str) -> None:
        super().__init__(seed, folder)
        self.kind = kind
        self.is_over = False
        self.begins_new = self.chance.random() < 0.8
        self.protocols: Callable[[], Any] = lambda: None

    def connection(self) -> Any:
        return self.protocols()

    async def run(self) -> None:
        world, chance = self.world, self.chance
        sessions = Sessions(ARTIFACT, self.folder / "store", durable=False)
        kind = "new"
        if not self.begins_new:
            gate = sessions.open()
            kind = gate.session_id
            gate.close()
        target = self.target(self.kind)
        how = self.guarded(target)
        terms = HostingTerms(kind=kind, idle=chance.choice((3.0, 3600.0)))
        host = Hosting(store=sessions, how=how, probed=PROBED, terms=terms, note=world.notes.append)
        listener = Listener(Listening(host="gate", port=80), host)
        listener.hosts = frozenset(("gate",))
        self.protocols = listener.limits.protocol(listener.app)
        self.clients = [HttpClient(self, name) for name in "xyz"[: chance.randrange(1, 4)]]
        tending = asyncio.ensure_future(host.tend())
        at = 0.0
        for client in self.clients:
            client.was_over = terms.idle < 10
            self.loop.call_soon(client.greet)
        for _ in range(chance.randrange(1, 30)):
            at += chance.choice((0.0, 0.001, 0.1, 1.0))
            self.loop.call_later(at, chance.choice(self.clients).act)
        await asyncio.sleep(at + chance.choice((0.001, 0.5, 40.0)))
        stopped = chance.random() < 0.3
        until = self.loop.time() + 30 * SECONDS
        while not stopped and any(client.is_waiting() for client in self.clients):
            assert self.loop.time() < until, [client.asked for client in self.clients]
            await asyncio.sleep(0.2)
        self.is_over = stopped
        began = self.loop.time()
        tending.cancel()
        await host.stop(1.0)
        if isinstance(target, SharedServer):
            await target.close()
        assert self.loop.time() - began < 3, "a stop that waited"
        self.is_over = True
        listener.close()
        await asyncio.sleep(15)  # requests that were begun are given up
        for client in self.clients:
            for identity, asked in client.asked.items():
                asked.check(identity, stopped)
            if self.begins_new and not client.was_over:
                refs = {asked.ref for asked in client.asked.values()}
                places = {place[0] for place, ref in world.recorded().items() if ref in refs}
                assert len(places) <= 1, "a client with two sessions"


def kinds() -> Iterator[tuple[Callable[..., Schedule], str]]:
    yield from ((Stdio, kind) for kind in ("program", "program", "url", "fan-out"))
    yield from ((Http, kind) for kind in ("program", "shared", "url", "fan-out"))


def run(seeds: Iterable[int]) -> Counter[str]:
    """Run schedules; return how many of each kind, and how many calls were executed."""
    loop, counts, every = Virtual(), Counter[str](), list(kinds())
    root = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))

    async def one(seed: int) -> None:
        made, kind = every[seed % len(every)]
        folder = root / str(seed)
        folder.mkdir(mode=0o700)
        schedule = made(seed, folder, kind)
        Locked.world = schedule.world
        try:
            await schedule.run()
            schedule.judge()
        except BaseException as error:
            error.add_note(f"schedule {seed}: {made.__name__}, {kind}")
            raise
        for _ in range(3):
            await asyncio.sleep(0)
        left = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        assert not left, left
        shutil.rmtree(folder)
        counts[f"{made.__name__} {kind}".lower()] += 1
        counts["calls executed"] += len(schedule.world.executed)

    loop.set_exception_handler(
        lambda _, told: Locked.world.faults.append(f"{told['message']}: {told.get('exception')!r}")
    )
    try:
        for seed in seeds:
            loop.run_until_complete(one(seed))
    finally:
        loop.close()
        shutil.rmtree(root)
    return counts


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(monkeypatch)


def prepare(patch: pytest.MonkeyPatch) -> None:
    """No threads, because time is virtual; and each session is one that others have, too."""

    async def aside(work: Callable[[], Any], drop: Callable[[Any], None]) -> Any:
        return work()

    patch.setattr(guarding, "aside", aside)
    patch.setattr(hosting, "aside", aside)
    patch.setattr(store, "Gate", Locked)
    patch.setattr(logging.getLogger("tcc.gate"), "disabled", True)
    patch.setattr(logging.getLogger("uvicorn.error"), "error", failed)


def failed(message: str, *_: Any, **more: Any) -> None:
    """Note an exception that nothing but the HTTP server caught."""
    Locked.world.faults.append(f"{message}: {more.get('exc_info')!r}")


def test_schedules_in_virtual_time() -> None:
    counts = run([*range(104), *ONCE_WRONG])
    assert counts["calls executed"] > 200
    assert len(counts) == 1 + len(set(kinds()))


@pytest.mark.campaign
def test_many_schedules_in_virtual_time() -> None:
    first = int(os.environ.get("TCC_SCHEDULES_FIRST", "1000"))
    count = int(os.environ.get("TCC_SCHEDULES", "100000"))
    print(dict(run(range(first, first + count))))
