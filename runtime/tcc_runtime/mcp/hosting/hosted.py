"""A session that is live behind an HTTP server: its relay, in a thread, and the calls that wait.

The relay is the loop that serves a client over pipes.  In place of pipes it has queues: HTTP hands
it calls, each under a number, and each line of the relay goes to the call of its number.
Cost: a thread and a server process, from the first call until the relay ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tcc_runtime import errors
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp import door
from tcc_runtime.mcp.guarding import Guarded, Start
from tcc_runtime.mcp.metrics import Meter
from tcc_runtime.mcp.relay import Relay
from tcc_runtime.mcp.tokens import MissingClaim, Principal
from tcc_runtime.mcp.upstream.pipes import Pipe, Stopping
from tcc_runtime.mcp.wire import INTERNAL_ERROR, Id, Member, write_line


class Host(Protocol):
    """What a session needs of the host that it is live at.

    Attributes:
        how: the server is relayed.
        note: is told, for people, what went wrong.
        meter: counts what happens, where somebody asks for that.
        begins_new: whether a session is of one connection, and ends with it.
    """

    how: Guarded
    note: Callable[[str], None]
    meter: Meter | None
    begins_new: bool

    def check_room_for_call(self, hosted: Hosted) -> None:
        """Reject a call where there are as many as there may be."""


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

    def asks(
        self, call: door.ClientCall | door.PassedRequest, result: Mapping[str, Member], state: str
    ) -> bytes:
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

    hosting: Host
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
            note=note, meter=self.hosting.meter,
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
