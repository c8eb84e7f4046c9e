"""The relay: a server held to a grammar, as a server of its own, in one loop.

A turn of the loop reads what either side has sent and then does at most one thing: it goes on with
what is asked of the server (its start, its list of tools), takes the turn of the session, decides
one call.  Nothing waits outside of it: a lock that another process has is looked at again and
again, the server's answers are waited for with everything else.  Right before a call is decided,
with the session's turn in hand, the client is read once more, so that a call is not made that was
cancelled, or whose client is gone, while it waited.

What a client says is read strictly and taken from an allow-list; a call goes on only with a permit
of the gate, written anew from the values that were checked, under an id of ours.  Calls are decided
in their order; one that has to wait for another keeps those behind it waiting.  From its permit on,
a call is of :mod:`tcc_runtime.mcp.calls`.  Whatever else either side sends changes nothing.
Cost: a few system calls and the gate's, a message; memory is bounded by the longest line.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tcc_certs.errors import Code
from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.gate.permit import NotYet, Ticket
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp import calls, door, passing, upstream, wire
from tcc_runtime.mcp.door import ClientCall, ClientConnection, WaitingCalls
from tcc_runtime.mcp.gate_interface import GateSession, refusal_result
from tcc_runtime.mcp.hub import AWAY
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE, Pipe, StopNow, Stopping, ready

STOPPED = "asked to stop"
POLL = 0.005  # seconds between two looks at a lock that another process has
_GONE = "the client is gone"
_FULL = 1 << 20
_LINES = 64  # of the client, in one turn of the loop
_READS = 16  # of 64 KiB: as much as a pipe holds
_IN_A_ROW = 8  # calls, before the ledger is left to others for a while
_FLUSH = (1.0, 0.2)  # seconds for the last answers; where we were asked to stop
_MOST_EARLY = 256
_MOST_BYTES = 2 * MAX_CLIENT_LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the start of a relay gives.

    Attributes:
        session: the gate's.
        tools: those of the grammar by name.
        masked: says which tools may be called now, where clients are told; else None.
        look: whether the server's tools are still those that were there at the start.
    """

    session: GateSession
    tools: Mapping[str, calls.ToolTraits]
    masked: Callable[[], Sequence[str]] | None
    look: Callable[[], upstream.Steps[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Steps that are gone through: what they wait for, under which id, until when."""

    steps: upstream.Steps[None]
    ask: upstream.ServerRequest | None
    identity: int
    until: float


class Relay:
    """Between one client and one server.

    Args:
        client: the pipes to the client.
        door: how the client is spoken to.
        stopping: whether the process is asked to stop.
        seconds: how long a call may take.
        note: is told, for people, what went wrong.
        idle: seconds without a word of the client, and nothing under way, after which it is gone.
        meter: is told of each call that is refused or ends.

    Attributes:
        upstream: the server; None before it is started.
        served: what is relayed; None while the start is under way.
    """

    def __init__(
        self,
        *,
        client: Pipe,
        door: ClientConnection,
        stopping: Stopping,
        seconds: float,
        note: Callable[[str], None],
        idle: float | None = None,
        meter: calls.CallMeter | None = None,
    ) -> None:
        self._idle = idle
        self._heard = time.monotonic()  # when the client last said something, or was answered
        self.upstream: upstream.Upstream | None = None
        self.served: Served | None = None
        self._client = client
        self._door = door
        self._stopping = stopping
        self._seconds = seconds
        self._note = note
        self._lines: deque[bytes | None] = deque()
        self._early: deque[tuple[wire.Id, bytes]] = deque()
        self._waiting = WaitingCalls()
        self._late: calls.LateAnswers | None = None
        self._passing = passing.PassedRequests()
        self._calls = calls.OpenCalls(
            client=client,
            door=door,
            seconds=seconds,
            note=note,
            meter=meter,
            settled=self._call_settled,
        )
        self._task: _Task | None = None
        self._again = 0.0  # when the session's turn is asked for again
        self._asked: float | None = None  # since when another has it; None: nobody waits for it
        self._in_a_row = 0
        self._shown: Sequence[str] | None = None
        self._doubtful = False
        self._looked: ClientCall | None = None  # the call for which the tools were looked at again
        self._stopped: str | None = None
        self._away: Mapping[str, str] = {}  # of tools whose servers are away: why

    def run(self, start: upstream.Steps[None]) -> str | None:
        """Go through the start, then relay until the client is gone and answered.

        Args:
            start: sets `upstream`, and ends with :meth:`serve`.

        Returns:
            why it ended early, where it did.

        Raises:
            ServerError, ServerDrift: as the start does.
        """
        trouble: str | None = None
        try:
            self._begin_steps(start)
            while trouble is None and not self._is_over():
                self._hear(self._left())
                trouble = self._trouble()
                if trouble is None:
                    self._step()
        except StopNow:
            trouble = STOPPED
        except (ServerDrift, ServerError):
            self._leave("the server cannot be relayed")
            raise
        self._leave(trouble or _GONE)
        return trouble

    def serve(self, served: Served) -> None:
        """The start is over: what came early is answered now."""
        self.served = served
        self._late = calls.LateAnswers(served.session, served.tools, self._note)
        if self.upstream is not None:
            self._calls.serve(self.upstream, served.session, served.tools, self._late)
        self._shown = None if served.masked is None else served.masked()
        self._lines.extendleft(line for _, line in reversed(self._early))
        self._early.clear()

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way; from any thread."""
        return bool(self._calls)

    def _is_over(self) -> bool:
        if self._client.broken or self._idle_left() == 0:
            return True
        if not self._client.ended:
            return False
        if self.served is None:
            # Who is gone waits for no ledger; a server that was started is looked at to the end.
            return self.upstream is None
        busy = (self._calls or self._waiting or self._passing.open) or (
            self._lines or self._client.waiting
        )
        return not busy

    def _idle_left(self) -> float | None:
        """Seconds until a client that says nothing is taken to be gone; None: it is not."""
        if self._idle is None or self._calls or self._waiting or self._lines or self._task:
            return None
        if self._passing.open:
            return None
        return max(0.0, self._heard + self._idle - time.monotonic())

    def _is_full(self) -> bool:
        """Whether the client does not read what was sent to it: then nothing is read of it."""
        return self._client.waiting > _FULL

    def _left(self) -> float | None:
        """Seconds until something is to be done though nothing comes."""
        times = self._calls.deadlines
        times += [passed.until for passed in self._passing.open.values()]
        if self._task is not None:
            times.append(self._task.until)
        if not self._is_full():
            if self._lines:
                return 0.0
            if self._may_begin() and self._task is None and (self._waiting or self._late):
                times.append(self._again)
        idle = self._idle_left()
        if idle is not None:
            times.append(time.monotonic() + idle)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _trouble(self) -> str | None:
        if self._stopping.asked:
            return STOPPED
        upstream = self.upstream
        if upstream is None or not (upstream.pipe.ended or upstream.pipe.broken):
            return None
        if self._task is not None and self._task.ask is not None:
            what = f"the server ended before it answered {self._task.ask.method}"
            self._throw(ServerError(what))
        return "the server ended"

    def _leave(self, reason: str) -> None:
        """Settle what is open, and answer what waits, as far as the client still takes it."""
        self._calls.break_off(reason)
        for passed in self._passing.open.values():
            said = f"no answer: {reason}"
            self._client.send(door.error_line(passed.request.identity, wire.INTERNAL_ERROR, said))
        for identity, _ in self._early:
            self._client.send(
                door.error_line(identity, wire.INTERNAL_ERROR, f"not called: {reason}")
            )
        for call in self._waiting.empty():
            self._refuse(call, wire.INTERNAL_ERROR, f"not called: {reason}")
        if self.served is not None:
            while self._late and (turn := self._turn(self.served.session)) is not None:
                self._late.resolve(turn)
        until = time.monotonic() + _FLUSH[0]
        self._client.paused = True
        while self._client.waiting and not self._client.broken:
            left = min(until, self._stopping.until(*_FLUSH)) - time.monotonic()
            if left <= 0:
                break
            ready((self._client,), min(left, 0.05))

    # What comes.

    def _hear(self, seconds: float | None) -> bool:
        """Read what is there, `seconds` later at most; whether the client had sent something."""
        client, pipes = self._client, [self._client]
        client.paused = self._is_full() or len(self._lines) > _LINES
        if self.upstream is not None:
            self.upstream.pipe.paused = client.waiting > 32 * _FULL
            pipes.append(self.upstream.pipe)
        readable = ready(pipes, seconds, self._stopping.wakes)
        for pipe in readable:
            if pipe is client:
                self._heard = time.monotonic()
                self._lines.extend(pipe.read())
            else:
                for line in pipe.read():
                    self._from_server(line)
        for _ in range(_LINES):
            if not self._lines or self._is_full():
                break
            self._from_client(self._lines.popleft())
        return client in readable

    def _from_client(self, line: bytes | None) -> None:
        taken = self._door.take(line)
        size = 0 if line is None else len(line)
        if isinstance(taken, bytes):
            self._client.send(taken)
        elif isinstance(taken, door.Cancelled):
            self._cancel(taken)
        elif isinstance(taken, door.Early):
            self._keep(taken.identity, line or b"")
        elif isinstance(taken, door.PassedRequest):
            self._pass_on(taken)
        elif taken is not None:
            self._call(taken, size)

    def _call(self, call: ClientCall, size: int) -> None:
        """A call: to wait for its turn, or to go on with."""
        if call.state is not None and not self._calls.go_on(call, self._other_ids()):
            return
        begun = replace(call, state=None, responses=None)
        reason = self._waiting.add(begun, size, self._calls.identities | self._other_ids())
        if reason is not None:
            self._put_off(call, reason)

    def _other_ids(self) -> set[wire.Id]:
        """The ids under which the client waits for more than calls under way."""
        passed = {passed.request.identity for passed in self._passing.open.values()}
        return passed | self._waiting.identities

    def _pass_on(self, request: door.PassedRequest) -> None:
        """Pass a request on that is no call: it waits for nothing."""
        if self.upstream is None:
            return
        until = time.monotonic() + self._seconds
        taken = self._calls.identities | self._other_ids()
        refusal = self._passing.send(request, self.upstream, taken, until)
        if refusal is not None:
            self._client.send(refusal)

    def _keep(self, identity: wire.Id, line: bytes) -> None:
        """Keep a request until the server is known; bounded as calls that wait are."""
        size = sum(len(known) for _, known in self._early) + len(line)
        if len(self._early) >= _MOST_EARLY or size > _MOST_BYTES:
            self._client.send(door.busy_line(identity, "too many calls wait; not called"))
        else:
            self._early.append((identity, line))

    def _cancel(self, cancelled: door.Cancelled) -> None:
        """A call that waits is never made; one under way is unknown.  Neither is answered."""
        identity = cancelled.identity
        self._early = deque(early for early in self._early if early[0] != identity)
        if self._waiting.drop(identity):
            return
        number = self._passing.drop(identity) if self._passing.open else None
        if number is not None and self.upstream is not None:
            self.upstream.cancel(number)
        self._calls.cancel(identity)

    def _from_server(self, line: bytes | None) -> None:
        if line is None:
            self._unreadable("an answer that is too long")
            return
        try:
            message = wire.read_line(line)
        except wire.MalformedMessage as error:
            # What is no JSON object at all is noise of a server that prints where it should not.
            if line.lstrip()[:1] in (b"{", b"["):
                self._unreadable(f"a line that is refused: {error}")
            return
        if isinstance(message, wire.Request):
            self._told(message)
        elif self._task is not None and message.identity == self._task.identity:
            self._go_on(self._task, message)
        elif (opened := self._calls.of(message.identity)) is not None:
            self._calls.answer(opened, message)
        elif self._passing.open and (request := self._passing.take(message.identity)) is not None:
            self._heard = time.monotonic()
            self._client.send(passing.answer_line(self._door, request, message))
        elif self._late is not None:
            self._late.take(message)

    def _told(self, message: wire.Request) -> None:
        if message.identity is not None:
            if self.upstream is not None:
                self.upstream.refuse(message)
        elif message.method == "notifications/tools/list_changed":
            self._doubtful = True
        elif message.method == AWAY and self.upstream is not None and self.upstream.several:
            self._note_away(message.params["away"])
        elif message.method == "notifications/progress":
            number = message.params.get("progressToken")
            opened = self._calls.of(number)
            asked: ClientCall | door.PassedRequest | None = None if opened is None else opened.call
            if asked is None and self._passing.open:
                asked = self._passing.of(number)
            if asked is not None and asked.token is not None:
                self._client.send(self._door.progress(asked, message.params))
        elif (line := self._door.forwarded(message)) is not None and not self._is_full():
            self._client.send(line)

    def _note_away(self, away: Mapping[str, str]) -> None:
        """Some of several servers have come or gone."""
        for reason in sorted(set(away.values()) - set(self._away.values())):
            self._note(reason)
        self._away = away

    def _unreadable(self, what: str) -> None:
        """A line that may have been the answer to whatever is waited for."""
        if self._task is not None and self._task.ask is not None:
            self._throw(ServerError(f"the server sent {what}"))
        else:
            self._note(f"the server sent {what}")
        self._calls.break_off(f"the server sent {what}", asked=False)
        self._give_up_passed(float("inf"), f"the server sent {what}")

    # Steps that ask the server: one thing at a time.

    def _begin_steps(self, steps: upstream.Steps[None]) -> None:
        self._go_on(_Task(steps=steps, ask=None, identity=0, until=0.0), None)

    def _go_on(self, task: _Task, answer: wire.Response | None) -> None:
        """Go on with the steps until they wait again, or are over."""
        self._task = None
        try:
            ask = next(task.steps) if answer is None else task.steps.send(answer)
        except StopIteration:
            return
        identity, until = 0, time.monotonic() + POLL
        if ask is not None and self.upstream is not None:
            identity = self.upstream.request(ask.method, ask.params)
            until = time.monotonic() + self.upstream.seconds
        self._task = _Task(steps=task.steps, ask=ask, identity=identity, until=until)

    def _throw(self, error: ServerError) -> None:
        """The steps do not get the answer that they wait for."""
        task, self._task = self._task, None
        if task is not None:
            try:
                task.steps.throw(error)
            except StopIteration:
                return

    def _look_again(self, served: Served) -> upstream.Steps[None]:
        """After the server said that its list changed: is what was locked still there?"""
        try:
            yield from served.look()
        except (ServerDrift, ServerError) as error:
            self._stopped = f"the server's tools have changed: {error}"
            self._note(self._stopped)

    # What is done.

    def _step(self) -> None:
        """At most one thing, so that both sides are read before the next one."""
        now = time.monotonic()
        if self._client.ended and not self._lines:
            for call in self._waiting.empty():
                self._refuse(call, wire.INTERNAL_ERROR, f"not called: {_GONE}")
            self._calls.break_off(_GONE, asked=True)
        self._calls.give_up_overdue(now)
        self._give_up_passed(now, f"there was no answer in {self._seconds:g} s")
        if self._asked is not None and not (self._waiting or self._late):
            self._asked = None
            if self.served is not None:
                self.served.session.stop_waiting()
        if self._task is not None:
            self._step_of_task(self._task, now)
        elif not self._may_begin() or self.served is None or self._lines or now < self._again:
            return
        elif self._late or (self._waiting and not self._is_full() and self._is_ready()):
            self._with_turn(self.served)

    def _give_up_passed(self, now: float, reason: str) -> None:
        if not self._passing.open:
            return
        for number, request in self._passing.due(now):
            self._heard = time.monotonic()
            if self.upstream is not None:
                self.upstream.cancel(number)
            self._client.send(door.error_line(request.identity, wire.INTERNAL_ERROR, reason))

    def _may_begin(self) -> bool:
        """Whether the first call that waits may be decided, for all that is under way."""
        return self._calls.may_begin(self._waiting.first if self._waiting else None)

    def _step_of_task(self, task: _Task, now: float) -> None:
        if now < task.until:
            return
        if task.ask is None or self.upstream is None:
            self._go_on(task, None)
        else:
            self._throw(self.upstream.late(task.ask))

    def _is_ready(self) -> bool:
        """Whether the first call that waits is to be decided; else what is in its way is done."""
        stopped = self._stopped or (None if self._late is None else self._late.trouble)
        if stopped is not None:
            self._refuse(self._waiting.take(), wire.INTERNAL_ERROR, f"not called: {stopped}")
            return False
        if self.upstream is not None and self.upstream.pipe.waiting > _FULL:
            what = "not called: the server does not read what was sent to it"
            self._put_off(self._waiting.take(), what)
            return False
        if self._is_doubtful() and self.served is not None:
            if self._calls:
                # The tools are looked at with nothing under way.
                self._calls.blocked = self._waiting.first
                return False
            self._doubtful = False
            self._looked = self._waiting.first
            self._begin_steps(self._look_again(self.served))
            return False
        return True

    def _is_doubtful(self) -> bool:
        """Whether tools are to be looked at before this call; for one call they are once."""
        return self._doubtful and bool(self._waiting) and self._looked is not self._waiting.first

    def _turn(self, session: GateSession) -> Ticket | None:
        """The session's turn; None while another has it, or where the ledger has failed."""
        try:
            return session.try_turn()
        except Refused as refusal:
            if self._waiting:
                call = self._waiting.take()
                self._client.send(self._door.answer(call, refusal_result(refusal)))
            elif self._late is not None:
                self._late.forget()
            return None

    def _with_turn(self, served: Served) -> None:
        """Take the turn, and resolve what was answered late, or decide the first call."""
        turn = self._turn(served.session)
        if turn is None:
            self._wait_for_turn()
            return
        self._asked = None
        if self._late:
            self._late.resolve(turn)
            self._tell_changes()
            return
        for _ in range(_READS):
            if not self._hear(0.0):
                break
        ends = self._client.ended or self._client.broken or self._trouble() is not None
        if (
            ends
            or self._lines
            or self._is_full()
            or self._late
            or self._is_doubtful()
            or not self._waiting
        ):
            served.session.give_back(turn)
        else:
            self._begin(self._waiting.first, served.session, turn)

    def _wait_for_turn(self) -> None:
        """Another has the session; a call waits as long as one may take, and then is not made."""
        now = time.monotonic()
        self._again = now + POLL
        if self._asked is None:
            self._asked = now
        elif self._waiting and now - self._asked >= self._seconds:
            what = f"not called: another process had the session for {self._seconds:g} s"
            self._put_off(self._waiting.take(), what)

    def _begin(self, call: ClientCall, session: GateSession, turn: Ticket) -> None:
        """Decide the first call that waits, and make it where it is allowed."""
        if self.upstream is None:
            return
        leave = ExitStack()
        try:
            if call.tool in self._away:
                session.refuse(Code.SERVER_AWAY, call.tool, self._away[call.tool], turn=turn)
            permit = leave.enter_context(session.call(call.tool, call.arguments, turn=turn))
        except NotYet:
            self._calls.blocked = call
            return
        except Refused as refusal:
            self._waiting.take()
            self._calls.refuse(call, refusal)
            return
        self._waiting.take()
        self._calls.begin(call, permit, leave)

    def _call_settled(self) -> None:
        """A call has an outcome, and its client knows."""
        self._heard = time.monotonic()
        self._tell_changes()
        self._leave_to_others()

    def _leave_to_others(self) -> None:
        """After some calls without a pause: whoever else looks at the lock finds it free."""
        self._in_a_row = self._in_a_row + 1 if self._waiting else 0
        if self._in_a_row >= _IN_A_ROW:
            self._in_a_row = 0
            self._again = time.monotonic() + 2 * POLL

    def _refuse(self, call: ClientCall, code: int, message: str) -> None:
        self._client.send(self._door.refused(call, code, message))

    def _put_off(self, call: ClientCall, message: str) -> None:
        """Refuse a call for now: it is not made, and may be sent again."""
        self._client.send(door.busy_line(call.identity, message))

    def _tell_changes(self) -> None:
        """Tell a client of the handshake where other tools may be called than before."""
        masked = None if self.served is None else self.served.masked
        if masked is None or self._door.stateless is not False:
            return
        shown = masked()
        if shown != self._shown:
            self._shown = shown
            self._client.send(self._door.changed())
