"""Sessions behind an HTTP server: who has which, and the loop that relays the calls of each.

A session has a name that only this gate can make, its handle: the keyed hash of the artifact, the
principal and the session, so a made-up handle, another's and an ended one are alike.  It is a name
and no credential: where principals are known each request is authorised by its token.
Each session that calls has a server process of its own and a :class:`Relay` in a thread, the same
loop that serves a client over pipes: HTTP hands it calls, and is handed its answers.
Cost: a thread and a process a session that calls, 64 at most; a table entry any other.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID
from weakref import WeakValueDictionary

from blake3 import blake3

from tcc_runtime import errors
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp import door
from tcc_runtime.mcp.guarding import Guarded, Probed, Start
from tcc_runtime.mcp.metrics import Meter
from tcc_runtime.mcp.relay import Relay
from tcc_runtime.mcp.tokens import MissingClaim, Principal
from tcc_runtime.mcp.upstream import Pipe, Stopping
from tcc_runtime.mcp.wire import INTERNAL_ERROR, Id, Member, write_line

MOST_SESSIONS: Final = 10_000
MOST_OF_PRINCIPAL: Final = 16
MOST_PROCESSES: Final = 64
MOST_STREAMS: Final = 64
MOST_OPENING: Final = 256
_CONTEXT: Final = "tcc.store/1.0 handle"
_MAC: Final = 16
_NOBODY: Final = bytes(32)


class NotFound(Exception):
    """The handle is unknown, belongs to another principal, or its session has ended."""


class HostFull(Exception):
    """A limit is reached, for now.

    Args:
        status: of HTTP, 429 or 503.
    """

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(str(status))


class SessionStore(Protocol):
    """What hosting needs of a store of sessions."""

    key: bytes

    def open(
        self,
        given: Mapping[str, Any] | None = None,
        principal: tuple[str, str] | str | None = None,
    ) -> Gate:
        """A new session, or that of a principal."""

    def get(self, id: str, given: Mapping[str, Any] | None = None) -> Gate:
        """The session of an id, that was given this."""

    def name_of(self, principal: tuple[str, str] | str) -> str:
        """What a principal is called in the store, hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostingTerms:
    """How sessions are had.

    Attributes:
        kind: `new`, a session for each handshake; `principal`, one for each principal; else the id
            of the one that all connections go on with.
        idle: seconds without a request after which a connection is over.
        given: makes what a session is given of a principal.
    """

    kind: str
    idle: float
    given: Callable[[Principal | None], Mapping[str, Any]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCall(door.ClientCall):
    """A call that came over HTTP.

    Attributes:
        modern: whether it is answered as since 2026-07-28.
    """

    modern: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPassed(door.PassedRequest):
    """A request that came over HTTP and passes.

    Attributes:
        modern: as of :class:`HostedCall`.
    """

    modern: bool = False


class Waited:
    """A call that HTTP waits for, or a request that passes.

    Args:
        number: under which the relay has it.
        identity: under which the client has it.
        token: of its progress, where the client wants to hear of it.
        leave: is told when nobody waits any longer.
    """

    def __init__(
        self, number: int, identity: Id, token: Id | None, leave: Callable[[Waited], None]
    ) -> None:
        self.number = number
        self.identity = identity
        self.token = token
        self._lines: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        self._leave = leave

    def put(self, line: bytes, *, is_last: bool) -> None:
        """A line for it; from the loop of HTTP."""
        self._lines.put_nowait((line, is_last))

    async def next(self) -> tuple[bytes, bool]:
        """The next line, and whether it is the answer."""
        return await self._lines.get()

    def leave(self) -> None:
        """Nobody waits any longer."""
        self._leave(self)


class Hosting:
    """The sessions of one gate over HTTP.

    Args:
        store: where sessions are.
        how: how the server is relayed.
        probed: what the server is, as it was seen at the start.
        terms: how sessions are had.
        note: is told, for people, what went wrong.
        meter: counts what happens, where somebody asks for that.
    """

    def __init__(
        self,
        *,
        store: SessionStore,
        how: Guarded,
        probed: Probed,
        terms: HostingTerms,
        note: Callable[[str], None],
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter
        self._store = store
        self.how = how
        self._probed = probed
        self._terms = terms
        self.note = note
        self._key = blake3(store.key, derive_key_context=_CONTEXT).digest()
        self._live: dict[tuple[str, bytes], Hosted] = {}
        self._of_principals: dict[bytes, Hosted] = {}
        self._over: dict[str, None] = {}  # connections that are over, the latest of them
        self._beginning = asyncio.Lock()  # of new sessions: it waits for no ledger
        # A principal's session waits for its ledger, and nobody else does.
        self._taking: WeakValueDictionary[str | bytes, asyncio.Lock] = WeakValueDictionary()
        # Each in a thread of its own: of a pool those that wait would leave none to the others.
        self._opening: set[Future[Gate]] = set()
        self.stopping = False
        self.knows_principals = terms.kind == "principal"
        self.begins_new = terms.kind == "new"

    def connection(self) -> door.ClientConnection:
        """How a client is answered what is no call."""
        probed = self._probed
        made = door.ClientConnection(instructions=probed.instructions, info=probed.info)
        made.tools = lambda: probed.tools(modern=bool(made.stateless))
        made.passes, made.rounds = probed.passes, probed.rounds
        return made

    def headers_of(self, tool: str) -> Mapping[str, str]:
        """The parameter that each `Mcp-Param` header of a tool stands for, by its token."""
        return self._probed.headers.get(tool, {})

    async def begin(self, principal: Principal | None) -> Hosted:
        """The session of a handshake.

        Raises:
            HostFull: there are as many as there may be.
            MissingClaim: the principal lacks what a session is given.
        """
        if self._terms.kind == "principal" and principal is not None:
            return await self.of_principal(principal, connects=True)
        given = self._terms.given(principal)
        if self._terms.kind not in ("new", "principal"):
            return await self._taken_up(self._terms.kind, principal)
        async with self._beginning:
            self._check_room(principal)
            gate = await self._opened(given, None)
            try:
                self._check_room(principal)
            except HostFull:  # it stops
                gate.withdraw()
                raise
            return self._host(gate, principal, given)

    async def of_principal(self, principal: Principal, *, connects: bool = False) -> Hosted:
        """The session of a principal, begun where there is none.

        Args:
            connects: whether a connection comes, at which an old session is renewed.

        Raises:
            HostFull, MissingClaim: as of :meth:`begin`.
        """
        given = self._terms.given(principal)
        async with self._alone(self._of(principal)):
            known = self._of_principals.get(self._of(principal))
            # One with a call under way is not renewed; its ledger is locked until that call ends.
            stays = known is not None and (known.is_busy or not connects)
            if known is not None and stays and not await known.has_ended():
                known.check_given(given)
                known.used()
                return known
            name = (principal.issuer, principal.subject)
            gate = await self._opened(given, name)
            # One that a handle had taken up is live, too: one ledger has one host.
            same = self._live.get((gate.session_id, self._of(principal)))
            if same is not None:
                gate.close()
                same.check_given(given)
                same.used()
                self._of_principals[self._of(principal)] = same
                return same
            try:
                if known is not None:
                    await self.end(known)
                self._check_room(principal)
            except HostFull:
                gate.close()
                raise
            hosted = self._host(gate, principal, given)
            self._of_principals[self._of(principal)] = hosted
            return hosted

    async def _opened(self, given: Mapping[str, Any], name: tuple[str, str] | None) -> Gate:
        """A gate on a new session, or on that of a principal.

        Raises:
            MissingClaim: the grammar asks for something else than what it is given, or the session
                of the principal was given something else.
        """
        try:
            gate = await self._waits(lambda: self._store.open(given or None, name))
        except errors.GivenRefused as refused:
            raise MissingClaim(refused.name) from None
        except errors.GivenOtherwise as refused:
            raise MissingClaim(refused.path) from None
        return gate

    async def _waits(self, opens: Callable[[], Gate]) -> Gate:
        """A gate, for which another process may have to let go of a ledger first.

        Raises:
            HostFull: so many wait for theirs that this one would wait for another's.
        """
        if len(self._opening) >= MOST_OPENING:
            raise HostFull(503)
        opening: Future[Gate] = Future()
        opening.set_running_or_notify_cancel()

        def work() -> None:
            try:
                opening.set_result(opens())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                opening.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise

    async def find(self, handle: str, principal: Principal | None) -> Hosted:
        """The session of a handle.

        Raises:
            NotFound: there is none.
            HostFull, MissingClaim: as of :meth:`begin`.
        """
        identity = self._identity(handle, principal)
        given = self._terms.given(principal)
        known = self._live.get((identity, self._of(principal)))
        if known is None:
            if identity in self._over:
                raise NotFound
            known = await self._taken_up(identity, principal)
        known.check_given(given)
        known.used()  # before it is looked at: meanwhile it is not idle
        if await known.has_ended():
            await self.end(known)
            raise NotFound
        return known

    async def _taken_up(self, identity: str, principal: Principal | None) -> Hosted:
        """A session of the store that is not live here."""
        given = self._terms.given(principal)
        async with self._alone(identity if principal is None else self._of(principal)):
            known = self._live.get((identity, self._of(principal)))
            if known is not None:
                known.check_given(given)
                return known
            self._check_room(principal)
            try:
                gate = await self._waits(lambda: self._store.get(identity, given or None))
            except (errors.GivenOtherwise, errors.GivenRefused):
                raise MissingClaim(identity) from None
            except (errors.SettingsError, errors.ResumeError):
                raise NotFound from None
            try:
                self._check_room(principal)
            except HostFull:
                gate.close()
                raise
            return self._host(gate, principal, given)

    def _alone(self, whose: str | bytes) -> asyncio.Lock:
        """The lock under which a principal's session, or that of an id, is taken up once."""
        return self._taking.setdefault(whose, asyncio.Lock())

    def _host(self, gate: Gate, principal: Principal | None, given: Mapping[str, Any]) -> Hosted:
        handle = self._handle(gate.session_id, principal)
        hosted = Hosted(self, gate, principal, handle, given)
        self._live[gate.session_id, self._of(principal)] = hosted
        return hosted

    def _check_room(self, principal: Principal | None) -> None:
        if self.stopping or len(self._live) >= MOST_SESSIONS:
            raise HostFull(503)
        if principal is None:
            return
        mine = sum(1 for hosted in self._live.values() if hosted.principal == principal)
        if mine >= MOST_OF_PRINCIPAL:
            raise HostFull(429)

    def check_room_for_call(self, hosted: Hosted) -> None:
        """Whether another call may come.

        Raises:
            HostFull: there are as many as there may be.
        """
        if self.stopping:
            raise HostFull(503)
        running = sum(1 for other in self._live.values() if other.relays)
        if not hosted.relays and running >= MOST_PROCESSES:
            raise HostFull(503)
        if hosted.principal is None:
            return
        open_ = sum(
            other.under_way for other in self._live.values() if other.principal == hosted.principal
        )
        if open_ >= MOST_STREAMS:
            raise HostFull(429)

    async def end(self, hosted: Hosted) -> None:
        """The connection of a session is over; a principal's session itself goes on."""
        ends = self.begins_new
        principal = self._of(hosted.principal)
        self._live.pop((hosted.identity, principal), None)
        if self._of_principals.get(principal) is hosted:
            del self._of_principals[principal]
        if ends:
            self._over[hosted.identity] = None
            if len(self._over) > MOST_SESSIONS:
                del self._over[next(iter(self._over))]
        await asyncio.to_thread(hosted.close, ends=ends)

    async def tend(self) -> None:
        """End what is idle, from time to time; until it is cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._terms.idle / 4))
            now = time.monotonic()
            for hosted in tuple(self._live.values()):
                if not hosted.under_way and now - hosted.last >= self._terms.idle:
                    await self.end(hosted)

    async def stop(self, seconds: float) -> None:
        """Begin nothing more, give what is under way `seconds`, and let go of everything."""
        self.stopping = True
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(one.under_way for one in self._live.values()):
            await asyncio.sleep(0.02)
        closing = [
            asyncio.to_thread(hosted.close, ends=False) for hosted in tuple(self._live.values())
        ]
        await asyncio.gather(*closing)

    def metrics(self) -> bytes:
        """What a monitoring system reads."""
        if self.meter is None:
            return b""
        live = tuple(self._live.values())
        return self.meter.text(
            [
                ("tcc_sessions_live", "Sessions that are live here.", len(live)),
                (
                    "tcc_calls_under_way",
                    "Calls that wait or are under way.",
                    sum(one.under_way for one in live),
                ),
                (
                    "tcc_server_processes",
                    "Sessions that have a server started for them.",
                    sum(1 for one in live if one.relays),
                ),
            ]
        )

    # Handles.

    def _of(self, principal: Principal | None) -> bytes:
        """32 bytes that stand for a principal."""
        if principal is None:
            return _NOBODY
        return bytes.fromhex(self._store.name_of((principal.issuer, principal.subject)))

    def _mac(self, identity: bytes, principal: Principal | None) -> bytes:
        told = self._probed.artifact + self._of(principal) + identity
        return blake3(told, key=self._key).digest()[:_MAC]

    def _handle(self, identity: str, principal: Principal | None) -> str:
        name = UUID(identity).bytes
        whole = name + self._mac(name, principal)
        return base64.urlsafe_b64encode(whole).decode("ascii").rstrip("=")

    def _identity(self, handle: str, principal: Principal | None) -> str:
        """The id of the session that a handle names.

        Raises:
            NotFound: it was not made here for this principal.
        """
        if len(handle) != 43 or not handle.isascii():
            raise NotFound
        try:
            whole = base64.b64decode(handle + "=", altchars=b"-_", validate=True)
        except ValueError:
            raise NotFound from None
        name = whole[:16]
        if not hmac.compare_digest(whole[16:], self._mac(name, principal)):
            raise NotFound
        return str(UUID(bytes=name))


def _close_opened(opening: Future[Gate]) -> None:
    """Let go of a gate that nobody waits for any longer; one that began nothing leaves no file."""
    if opening.exception() is not None:
        return
    gate = opening.result()
    if gate.untouched:
        gate.withdraw()
    else:
        gate.close()


class ThreadStopping(Stopping):
    """Being asked to stop, of a thread: no signal is caught."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> ThreadStopping:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
            os.close(self.wakes)
            os.close(self._writes)

    def ask(self) -> None:
        """Ask it to stop; from any thread."""
        self._since = time.monotonic()
        self.asked = True
        with self._lock:
            if not self._is_closed:
                os.write(self._writes, b"\n")


class _Lines(Pipe):
    """What HTTP hands to a relay, and is handed by it, in place of a client's pipes."""

    def __init__(self, told: Callable[[bytes], None]) -> None:
        reads, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        super().__init__(reads, -1, 1)
        self._told = told
        self._given: deque[bytes] = deque()
        self._is_over = self._is_closed = False
        self._lock = threading.Lock()

    def give(self, line: bytes) -> None:
        """A line of the client's; from the loop of HTTP."""
        self._given.append(line)
        self._wake()

    def leave(self) -> None:
        """The client is gone."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        with self._lock, suppress(BlockingIOError):  # then it is awake
            if not self._is_closed:
                os.write(self._wakes, b"\n")

    def read(self) -> list[bytes | None]:
        os.read(self.reads, 1 << 16)
        found: list[bytes | None] = []
        while self._given:
            found.append(self._given.popleft())
        self.ended = self._is_over
        return found

    def send(self, line: bytes) -> None:
        self._told(line)

    def close(self) -> None:
        """Of no use any longer."""
        with self._lock:
            self._is_closed = True
            os.close(self.reads)
            os.close(self._wakes)


class _Door(door.ClientConnection):
    """The door of a relay whose client is HTTP: its lines name calls that HTTP has read."""

    def __init__(self, calls: Mapping[int, HostedCall | HostedPassed]) -> None:
        super().__init__(instructions="")
        self._calls = calls

    def take(self, line: bytes | None) -> door.Taken:
        """A call, a request that passes, or the end of one."""
        number = int((line or b"0").partition(b" ")[0])
        if number < 0:
            return door.Cancelled(identity=-number)
        call = self._calls.get(number)
        if call is None:
            return None
        return door.Early(identity=number) if self.info is None else call

    def answer(self, call: door.ClientCall, result: Mapping[str, Any]) -> bytes:
        with _Spoken(self, call):
            return super().answer(call, result)

    def relayed(self, call: door.ClientCall, result: Mapping[str, Member]) -> bytes:
        with _Spoken(self, call):
            return super().relayed(call, result)

    def asks(self, call: door.ClientCall, result: Mapping[str, Member], state: str) -> bytes:
        with _Spoken(self, call):
            return super().asks(call, result, state)

    def passed(self, request: door.PassedRequest, result: Mapping[str, Member]) -> bytes:
        with _Spoken(self, request):
            return super().passed(request, result)


class _Spoken:
    """A block in which a door speaks as a call wants it."""

    def __init__(self, door: _Door, call: door.ClientCall | door.PassedRequest) -> None:
        self._door = door
        self._modern = isinstance(call, HostedCall | HostedPassed) and call.modern

    def __enter__(self) -> None:
        self._door.stateless = self._modern

    def __exit__(self, *_: object) -> None:
        self._door.stateless = None


@dataclass(slots=True)
class _Running:
    """A relay that runs in a thread."""

    lines: _Lines
    stopping: ThreadStopping
    relay: Relay | None = None
    thread: threading.Thread | None = None


@dataclass(slots=True, eq=False)
class Hosted:
    """A session that is live here.

    Attributes:
        hosting: among which it is.
        gate: the session.
        principal: whose it is; None where nobody is known.
        handle: its name.
        given: what it was given when it began.
        last: when it was last used.
    """

    hosting: Hosting
    gate: Gate
    principal: Principal | None
    handle: str
    given: Mapping[str, Any]
    last: float = field(default_factory=time.monotonic)
    _calls: dict[int, HostedCall | HostedPassed] = field(default_factory=dict)
    _waited: dict[int, Waited] = field(default_factory=dict)
    _running: _Running | None = None
    _number: int = 0
    _looked: float = 0.0

    def check_given(self, given: Mapping[str, Any]) -> None:
        """Whoever comes later brings what the session was given.

        Raises:
            MissingClaim: something else.
        """
        for name in {*given, *self.given}:
            if repr(given.get(name)) != repr(self.given.get(name)):
                raise MissingClaim(name)

    async def has_ended(self) -> bool:
        """Whether the session has ended, as its ledger had it a second ago at most."""
        now = time.monotonic()
        if not self._calls and now - self._looked >= 1.0:
            self._looked = now
            return await asyncio.to_thread(lambda: self.gate.ended)
        return False

    @property
    def identity(self) -> str:
        """The id of the session."""
        return self.gate.session_id

    @property
    def under_way(self) -> int:
        """How many calls wait or are under way."""
        return len(self._calls)

    @property
    def is_busy(self) -> bool:
        """Whether a call waits or is under way, also one that waits for its client."""
        relay = None if self._running is None else self._running.relay
        return bool(self._calls) or (relay is not None and relay.is_busy)

    @property
    def relays(self) -> bool:
        """Whether it has a server of its own."""
        return self._running is not None

    def used(self) -> None:
        """It is used now."""
        self.last = time.monotonic()

    def call(
        self, call: door.ClientCall | door.PassedRequest, body: bytes, *, modern: bool
    ) -> Waited:
        """Hand a call, or a request that passes, to the relay.

        Raises:
            HostFull: there are as many as there may be.
        """
        self.hosting.check_room_for_call(self)
        self._number += 1
        number = self._number
        token = None if call.token is None else number
        told: HostedCall | HostedPassed
        if isinstance(call, door.ClientCall):
            told = HostedCall(
                identity=number, tool=call.tool, arguments=call.arguments, token=token,
                modern=modern, inputs=call.inputs, state=call.state, responses=call.responses,
            )  # fmt: skip
        else:
            told = HostedPassed(
                identity=number, method=call.method, params=call.params, token=token, modern=modern
            )
        waited = Waited(number, call.identity, call.token, self._left)
        self._calls[number] = told
        self._waited[number] = waited
        if self._running is None:
            self._run()
        if self._running is not None:
            self._running.lines.give(b"%d %s" % (number, body))
        return waited

    def cancel(self, identity: Id) -> None:
        """A client no longer wants the answer to a call of this id."""
        for waited in tuple(self._waited.values()):
            if waited.identity == identity:
                self.drop(waited)

    def drop(self, waited: Waited) -> None:
        """A call that is not wanted any longer: one that waits is never made."""
        if self._running is not None and waited.number in self._calls:
            self._running.lines.give(b"-%d" % waited.number)
            self._calls.pop(waited.number, None)

    def _left(self, waited: Waited) -> None:
        self._waited.pop(waited.number, None)
        self.used()

    def _run(self) -> None:
        loop = asyncio.get_running_loop()

        def told(line: bytes) -> None:
            loop.call_soon_threadsafe(self._hear, line)

        running = _Running(lines=_Lines(told), stopping=ThreadStopping())
        self._running = running

        def work() -> None:
            try:
                self._relay(running)
            finally:
                loop.call_soon_threadsafe(self._over, running)

        running.thread = threading.Thread(target=work, daemon=True)
        running.thread.start()

    def _relay(self, running: _Running) -> None:
        """In the thread: relay until there is nothing more to relay."""
        how, note = self.hosting.how, self.hosting.note
        door = _Door(self._calls)
        relay = Relay(
            client=running.lines, door=door, stopping=running.stopping, seconds=how.seconds,
            note=note, watch=self.hosting.meter,
        )  # fmt: skip
        running.relay = relay
        start = Start(relay, door, how, running.stopping)
        try:
            trouble = relay.run(start.steps(lambda: self.gate))
            if trouble is not None and not running.stopping.asked:
                note(f"session {self.identity}: {trouble}")
        except errors.ServerDrift as drift:
            for finding in drift.findings:
                note(f"session {self.identity}: {finding}")
        except errors.ServerError as error:
            note(f"session {self.identity}: {error}")
        finally:
            if relay.upstream is not None:
                relay.upstream.close(running.stopping)

    def _hear(self, line: bytes) -> None:
        """A line of the relay's, in the loop of HTTP."""
        number, is_last = _number_of(line)
        waited = self._waited.get(number)
        if is_last:
            self._calls.pop(number, None)
        if waited is not None:
            if not is_last:
                line = _with_token(line, waited.token)
            waited.put(line, is_last=is_last)

    def _over(self, running: _Running) -> None:
        """A relay has ended: what it left without an answer has one now."""
        if self._running is running:
            self._running = None
        for number in tuple(self._calls):
            del self._calls[number]
            waited = self._waited.get(number)
            if waited is not None:
                line = door.error_line(number, INTERNAL_ERROR, "not called: the server is away")
                waited.put(line, is_last=True)
        running.lines.close()
        running.stopping.__exit__()

    def close(self, *, ends: bool) -> None:
        """Let go of the session; from a thread.

        Args:
            ends: whether it ends, where its plan may end; else it is left as it is.
        """
        running = self._running
        if running is not None:
            running.lines.leave()
            if not ends:
                running.stopping.ask()
            if running.thread is not None:
                running.thread.join(10.0)
        if self.hosting.begins_new and self.gate.untouched:
            self.gate.withdraw()
            return
        if ends and self.gate.may_finish:
            try:
                self.gate.finish()
            except (Refused, errors.LedgerError) as error:
                self.hosting.note(f"session {self.identity} is not ended: {error}")
        self.gate.close()


_ANSWER: Final = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d{1,18}),')


def _number_of(line: bytes) -> tuple[int, bool]:
    """The number of the call that a line of a relay is about, and whether it is its answer."""
    found = _ANSWER.match(line)
    if found is not None:
        return int(found[1]), True
    params = json.loads(line).get("params", {})
    number = params.get("progressToken")
    return (number if isinstance(number, int) else 0), False


def _with_token(line: bytes, token: Id | None) -> bytes:
    """Word of progress under the client's own token."""
    told = json.loads(line)
    told["params"]["progressToken"] = token
    return write_line(told)
