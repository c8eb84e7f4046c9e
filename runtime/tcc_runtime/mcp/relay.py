"""The relay: one session's calls, from the client's request to the recorded outcome.

It owns the calls that wait and those under way, their time limits and their cancellation.  Links do
the I/O, and :mod:`tcc_runtime.mcp.deciding` asks the gate for decisions.  Everything runs as tasks
of one event loop; only waits for the disk run in threads.

Calls are decided in their order.  The task that decides takes the turn of the session, lets the
client's link catch up, and only then decides, so a call is not made if its cancellation has
arrived.  A call that depends on one under way delays the calls after it.  After its permit, each
call has its own task.  A call of several rounds is one call: decided once, recorded once.
Cost: that of the gate and of the messages.  Waiting calls are bounded in number and bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.errors import ServerDrift, ServerError
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.permit import NotYet, Permit, Ticket
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp import asking, deciding, rounds, wire
from tcc_runtime.mcp.client import Client, ClientCall, PassedRequest
from tcc_runtime.mcp.deciding import Decisions, Ending, unknown
from tcc_runtime.mcp.server import Server, refused

POLL: Final = 0.005  # seconds between two looks at a lock that another process has
GONE: Final = "the client is gone"
_MAX_WAITING: Final = 256
_MAX_BYTES: Final = 8 << 20  # of calls that wait
_MAX_PASSED: Final = 64
_MAX_FORMS: Final = 64  # open forms at the client
_CATCH_UP: Final = 16  # reads of 64 KiB, as much as a pipe holds
# calls in a row, before the ledger is left free for other processes for a moment
_IN_A_ROW: Final = 8

Look = Callable[[], Awaitable[None]]


class CallMeter(Protocol):
    """Counts the outcomes of calls."""

    def refused(self, tool: str, code: str) -> None:
        """Count a refused call of the tool that the client named."""

    def ended(self, tool: str, outcome: str) -> None:
        """Count an outcome."""


@dataclass(slots=True, kw_only=True, eq=False)
class _OpenCall:
    """A call under way.

    Attributes:
        identity: the id of the last request to the server.
        ended: set to the end of the call, and the server's answer if that ended the call.
        asked: the round that the client has to answer; None: the server has to answer.
        rounds: the number of rounds that the client has answered.
        answers: whether the client waits for an answer.
    """

    call: ClientCall
    permit: Permit
    ended: asyncio.Future[tuple[Ending, wire.Response | None]]
    identity: int = 0
    asked: rounds.Round | None = None
    rounds: int = 0
    answers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenRequest:
    """A forwarded request without an answer, and the timer of its time limit."""

    request: PassedRequest
    timer: asyncio.TimerHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A call that waits for the person at its client, and the timer of its time limit."""

    call: ClientCall
    question: Pending
    timer: asyncio.TimerHandle


class Relay:
    """The calls of one session.

    Args:
        seconds: the time limit of each call.
        note: called with messages for the owner.
        meter: counts calls.
        persons: the receivers of questions about calls.
        behind: returns whether the session has to continue under another policy.  Then no new call
            is accepted.  So the calls under way end, and the session can move.

    Attributes:
        heard: the time at which a call or request ended last, by the clock of the loop.
    """

    def __init__(
        self,
        *,
        seconds: float,
        note: Callable[[str], None],
        meter: CallMeter | None = None,
        persons: asking.Asking = asking.NOBODY,
        behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._seconds = seconds
        self._note = note
        self._meter = meter
        self._persons, self._behind = persons, behind
        self._forms: asking.Elicitation | None = None
        # Calls whose client was sent a form, by the id of the elicitation request.
        self._asked: dict[str, _Form] = {}
        self._verdicts: dict[ClientCall, asking.Told] = {}  # verdicts for calls that wait again
        self._loop = asyncio.get_running_loop()
        self.heard = self._loop.time()
        self._server: Server | None = None
        self._decisions: Decisions | None = None
        self._look: Look | None = None
        self._settled: Callable[[], None] = lambda: None
        self._forward: Callable[[wire.Request], None] = lambda _: None
        self._rounds: rounds.Rounds | None = None
        self._early: list[PassedRequest] = []  # requests that came before the server was known
        self._waiting: list[ClientCall] = []
        self._under_way: set[_OpenCall] = set()  # calls until their outcomes are recorded
        # calls until they have ended, by the id of the last request
        self._open: dict[int, _OpenCall] = {}
        self._passed: dict[int, _OpenRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()  # set if the next step may be possible
        self._blocked: ClientCall | None = None  # a call that waits for a call under way
        self._asked_turn: float | None = None  # time since which another process has the turn
        self._in_a_row = 0
        self._doubtful = False  # whether the server announced a change of its tools
        self._looked: ClientCall | None = None  # the call for which the tools were looked at
        self._stopped: str | None = None  # the reason why no further call is made
        self._fault: BaseException | None = None  # error of a call's task

    async def run(
        self,
        server: Server,
        start: Callable[[], Awaitable[tuple[Decisions, Look]]],
        *,
        ready: Callable[[], Awaitable[None]] | None = None,
        settled: Callable[[], None] = lambda: None,
        forward: Callable[[wire.Request], None] = lambda _: None,
    ) -> None:
        """Relay to a server until it ends.

        Args:
            start: connects to the server; returns the decisions, and a function that checks that
                the server's tools are unchanged.
            ready: awaited before each message of the server.
            settled: called after each outcome.
            forward: gets notifications that belong to no request.

        Raises:
            ServerError, ServerDrift: `start` fails.
        """
        self._server, self._settled, self._forward = server, settled, forward
        listening = asyncio.ensure_future(server.listen(self._hear, ready))
        deciding: asyncio.Task[None] | None = None
        try:
            self._decisions, self._look = await start()
            self._rounds = rounds.Rounds(self._decisions.gate.session_id)
            self._forms = asking.Elicitation(self._decisions.gate.session_id)
            early, self._early = self._early, []
            for request in early:
                self.take(request)
            deciding = asyncio.ensure_future(self._decide())
            await asyncio.wait((listening, deciding), return_when=asyncio.FIRST_COMPLETED)
            if deciding.done():
                deciding.result()
        finally:
            for task in (listening, deciding):
                if task is not None:
                    task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([one for one in (listening, deciding) if one is not None])

    @property
    def is_busy(self) -> bool:
        """True if a call or a request waits or is under way."""
        return bool(self._waiting or self._under_way or self._passed or self._early or self._asked)

    @property
    def is_calling(self) -> bool:
        """True if a call is under way, even if it waits for its client."""
        return bool(self._under_way)

    # Messages of clients.

    def take(self, request: ClientCall | PassedRequest) -> None:
        """Accept a request.  It gets one answer, unless it is cancelled."""
        client = request.client
        if isinstance(request, ClientCall):
            if request.state is not None and asking.is_state(request.state):
                self._take_form(request, request.state)
            elif request.state is None or self._is_other(request):
                self._wait(replace(request, state=None, responses=None))
        elif self._server is None or self._decisions is None:
            if len(self._early) < _MAX_WAITING:
                self._early.append(request)
            else:
                client.put_off(request, "too many requests wait; not passed on")
        else:
            self._pass_on(request, self._server)

    def _has_id(self, client: Client, identity: wire.Id, but: _OpenCall | None = None) -> bool:
        """Return whether a client waits for the answer to another request with this id."""
        requests: list[ClientCall | PassedRequest] = [*self._waiting, *self._early]
        requests += [one.call for one in self._under_way if one is not but]
        requests += [one.request for one in self._passed.values()]
        requests += [one.call for one in self._asked.values()]
        return any(one.client is client and one.identity == identity for one in requests)

    def _wait(self, call: ClientCall) -> None:
        size = sum(one.size for one in self._waiting) + call.size
        if self._has_id(call.client, call.identity):
            call.client.put_off(call, "a call has this id already")
        elif self._behind():
            call.client.put_off(call, "not called: the policy has changed, and a call is under way")
        elif len(self._waiting) >= _MAX_WAITING or size > _MAX_BYTES:
            call.client.put_off(call, "too many calls wait; not called")
        else:
            self._waiting.append(call)
            self._changed.set()

    def _pass_on(self, request: PassedRequest, server: Server) -> None:
        client = request.client
        if self._has_id(client, request.identity):
            client.put_off(request, "a request has this id already")
        elif len(self._passed) >= _MAX_PASSED or server.is_full:
            client.put_off(request, "too many requests wait; not passed on")
        elif wire.is_deeper(request.params, MAX_DEPTH) or not is_kept(request.params):
            said = "not passed on: nested too deeply, or with a number that the server would lose"
            client.refuse(request, said, wire.INVALID_PARAMS)
        else:
            params: dict[str, Any] = plain(dict(request.params))
            if request.token is not None:
                params["_meta"] = {"progressToken": server.next_identity}
            identity = server.request(request.method, params)
            timer = self._loop.call_later(self._seconds, self._give_up_passed, identity)
            # The server has the parameters; they need no memory here.
            self._passed[identity] = _OpenRequest(request=replace(request, params={}), timer=timer)

    def _give_up_passed(self, identity: int, reason: str | None = None) -> None:
        request = self._take_passed(identity)
        if request is not None:
            if self._server is not None:
                self._server.cancel(identity)
            said = reason or f"there was no answer in {self._seconds:g} s"
            request.client.refuse(request, said)

    def _take_passed(self, identity: object) -> PassedRequest | None:
        found = self._passed.pop(identity, None) if isinstance(identity, int) else None
        if found is None:
            return None
        found.timer.cancel()
        self.heard = self._loop.time()
        return found.request

    def cancel(self, identity: wire.Id, client: Client | None = None) -> None:
        """Cancel a client's request by its id; it gets no answer.

        A waiting call is never made.  The outcome of a call under way is unknown, unless the call
        was not sent yet.

        Args:
            client: the client; None: any client.
        """

        def is_meant(request: ClientCall | PassedRequest) -> bool:
            return request.identity == identity and client in (None, request.client)

        for dropped in [call for call in self._waiting if is_meant(call)]:
            self._drop(dropped)
        for number_of_form in [key for key, one in self._asked.items() if is_meant(one.call)]:
            self._take_asked(number_of_form)
        self._early = [request for request in self._early if not is_meant(request)]
        for number, one in tuple(self._passed.items()):
            if is_meant(one.request) and self._server is not None:
                self._take_passed(number)
                self._server.cancel(number)
        for opened in tuple(self._open.values()):
            if is_meant(opened.call):
                opened.answers = False
                cancelled = "the client cancelled it"
                self._end(opened, self._take_back(opened, cancelled, f"{cancelled}: not sent"))
        self._changed.set()

    def leave(self) -> None:
        """Refuse the waiting calls, and end calls that wait for a round: the client is gone."""
        self._refuse_waiting(f"not called: {GONE}")
        self._refuse_asked()
        for opened in tuple(self._open.values()):
            if opened.asked is not None:
                self._end(opened, unknown(GONE))

    def _refuse_waiting(self, said: str) -> None:
        waiting, self._waiting = self._waiting, []
        self._verdicts.clear()
        for call in waiting:
            call.client.refuse(call, said)
        self._changed.set()

    async def end(self, reason: str) -> None:
        """End all calls and requests.  Calls under way become unknown, and clients get an
        answer.
        """
        for opened in tuple(self._open.values()):
            self._end(opened, unknown(reason))
        passed = [self._take_passed(identity) for identity in tuple(self._passed)]
        for request in (*passed, *self._early):
            if request is not None:
                request.client.refuse(request, f"no answer: {reason}")
        self._early = []
        self._refuse_asked()
        self._refuse_waiting(f"not called: {reason}")
        if self._tasks:
            await asyncio.wait(self._tasks)
        decisions = self._decisions
        while decisions is not None and decisions.has_late(()):
            turn = self._turn(decisions)
            if turn is None:
                break
            decisions.resolve(turn)

    # Messages of the server.

    def _hear(self, message: wire.Message | wire.MalformedMessage) -> None:
        if isinstance(message, wire.MalformedMessage):
            # The line may have been the answer to any request.
            reason = f"the server sent {refused(message)}"
            wire.log("a message of the server is refused", message.code)
            for opened in tuple(self._open.values()):
                if opened.asked is None:
                    self._end(opened, unknown(reason))
            for identity in tuple(self._passed):
                self._give_up_passed(identity, reason)
        elif isinstance(message, wire.Request):
            self._notified(message)
        elif (answered := self._of(message.identity)) is not None:
            self._answered(answered, message)
        elif (request := self._take_passed(message.identity)) is not None:
            request.client.pass_back(request, message)
        elif self._decisions is not None and self._decisions.take_late(message):
            self._changed.set()
        else:
            wire.log("an answer to no request is ignored", wire.INVALID_REQUEST)

    def _of(self, identity: object) -> _OpenCall | None:
        return self._open.get(identity) if type(identity) is int else None

    def _notified(self, message: wire.Request) -> None:
        if message.method == "notifications/tools/list_changed":
            self._doubtful = True
        elif message.method == "notifications/progress":
            token = message.params.get("progressToken")
            opened = self._of(token)
            passed = self._passed.get(token) if type(token) is int else None
            if opened is not None:
                opened.call.client.progress(opened.call, message.params)
            elif passed is not None:
                passed.request.client.progress(passed.request, message.params)
        else:
            self._forward(message)

    def _answered(self, opened: _OpenCall, answer: wire.Response) -> None:
        """End a call with its answer, or ask its client for input first."""
        server, result = self._server, answer.result
        if server is None or self._decisions is None:
            return
        if answer.unsent and answer.error is not None:
            several = server.link.away is not None
            reason = answer.error[1] if several else "the server cannot be reached"
            # If an earlier round reached the server, the outcome is unknown.
            ending = unknown(reason) if opened.rounds else deciding.unsent(reason)
            self._end(opened, ending)
        elif opened.asked is not None:
            return  # the server has answered this request
        elif (
            result is None
            or opened.call.inputs is None
            or not (server.stateless or server.link.away is not None)
            or not wire.is_input_required(result)
        ):
            self._end(opened, self._decisions.ending(opened.call.tool, answer), answer)
        else:
            self._ask(opened, result, answer)

    # Rounds.

    def _ask(
        self, opened: _OpenCall, result: Mapping[str, wire.Member], answer: wire.Response
    ) -> None:
        if self._rounds is None:
            return
        place = opened.identity, opened.permit.seq, opened.rounds + 1
        try:
            asked = self._rounds.asked(result, opened.call.inputs or {}, place)
        except rounds.NotAsked as reason:
            self._end(opened, unknown(str(reason)), answer)
            return
        opened.asked = asked
        opened.call.client.ask(opened.call, result, asked.token)

    def _is_other(self, call: ClientCall) -> bool:
        """Continue the call whose round a client answers; return True if the client makes another
        call.
        """
        opened, server = self._of(rounds.identity_in(call.state or "")), self._server
        asked = None if opened is None else opened.asked
        if (
            opened is None
            or asked is None
            or server is None
            or not asked.has_token(call.state or "")
        ):
            said = "requestState is of no round of this session, or was used"
            call.client.refuse(call, said, wire.INVALID_PARAMS)
            return False
        if not rounds.is_same(call, opened.call):
            return True
        answers = rounds.answers_of(call, asked)
        if self._has_id(call.client, call.identity, opened):
            call.client.put_off(call, "a call has this id already")
        elif isinstance(answers, str):
            call.client.refuse(call, answers, wire.INVALID_PARAMS)
        elif server.is_full:
            call.client.put_off(call, "the server does not read what was sent to it")
        else:
            more: dict[str, Any] = {} if call.responses is None else {"inputResponses": answers}
            if asked.state is not None:
                more["requestState"] = asked.state
            opened.call = replace(call, arguments=opened.call.arguments, state=None, responses=None)
            opened.asked = None
            opened.rounds += 1
            self._send(opened, server, more)
        return False

    # Persons.

    def _wait_for_person(self, call: ClientCall, question: Pending) -> None:
        """Ask the person at the client if this person has the role; otherwise answer that the call
        waits.
        """
        self._persons.asked(question)
        if self._forms is None or question.who not in self._persons.roles or not call.elicits:
            self._tell_question(call, question)
        elif call.client.stateless:
            asked = {"inputRequests": asking.requests(question)}
            call.client.ask(call, asked, self._forms.state(question.id))
        elif len(self._asked) >= _MAX_FORMS:
            self._tell_question(call, question)
        else:
            identity = call.client.elicit(asking.form(question))
            timer = self._loop.call_later(self._seconds, self._give_up_asked, identity)
            self._asked[identity] = _Form(call=call, question=question, timer=timer)

    def _tell_question(self, call: ClientCall, question: Pending) -> None:
        self._count_refusal(call, question.code)
        call.client.answer(call, deciding.pending_result(question))

    def _take_form(self, call: ClientCall, state: str) -> None:
        """Accept a repeated call that has the answer of the person at the client."""
        question_id = None if self._forms is None else self._forms.question_of(state)
        if question_id is None:
            said = "requestState is of no question of this session"
            call.client.refuse(call, said, wire.INVALID_PARAMS)
            return
        answer = (call.responses or {}).get(asking.KEY)
        self._wait_with(replace(call, state=None, responses=None), question_id, answer)

    def answered(self, answer: wire.Response) -> None:
        """Handle a client's answer to a request of the gate.  Other answers are ignored."""
        identity = answer.identity
        form = self._take_asked(identity) if isinstance(identity, str) else None
        if form is not None:
            result = asking.plain_result(answer)
            if asking.verdict_in(result) is None:
                self._tell_question(form.call, form.question)
            else:
                self._wait_with(form.call, form.question.id, result)

    def _wait_with(self, call: ClientCall, question_id: str, answer: object) -> None:
        """Queue a call for its decision, with the verdict on its question if the answer has one."""
        verdict = asking.verdict_in(answer)
        # the person declines the form for now, so the client gets a plain answer
        if verdict is None:
            call = replace(call, elicits=False)
        before = len(self._waiting)
        self._wait(call)
        if verdict is not None and len(self._waiting) > before:
            self._verdicts[call] = asking.Told(question=question_id, verdict=verdict)

    def _take_asked(self, identity: str) -> _Form | None:
        form = self._asked.pop(identity, None)
        if form is not None:
            form.timer.cancel()
        return form

    def _give_up_asked(self, identity: str) -> None:
        form = self._take_asked(identity)
        if form is not None:
            self._tell_question(form.call, form.question)

    def _refuse_asked(self) -> None:
        for identity in tuple(self._asked):
            self._give_up_asked(identity)

    # Decisions.

    async def _decide(self) -> None:
        """Decide calls, one after another."""
        while True:
            self._changed.clear()
            if not await self._step():
                await self._changed.wait()

    async def _step(self) -> bool:
        """Take one step; return False if the next step needs a change first."""
        server, decisions = self._server, self._decisions
        if self._fault is not None:
            raise self._fault
        if server is None or decisions is None:
            return False
        first = self._waiting[0] if self._waiting else None
        late = decisions.has_late([one.permit.seq for one in self._under_way])
        if first is None and not late:
            self._stop_waiting(decisions)
            return False
        if not self._may_decide(first, decisions, late):
            return False
        stopped = self._stopped or decisions.trouble
        if first is not None and stopped is not None:
            self._drop(first)
            first.client.refuse(first, f"not called: {stopped}")
        elif first is not None and server.is_full:
            self._drop(first)
            first.client.put_off(first, "not called: the server does not read what was sent to it")
        elif first is not None and not late and self._has_doubt(first):
            if self._under_way:  # the tools are listed only while no call is under way
                self._blocked = first
                return False
            self._looked, self._doubtful = first, False
            await self._look_again()
        else:
            await self._take_turn(first, late, decisions)
        return True

    def _may_decide(self, first: ClientCall | None, decisions: Decisions, late: bool) -> bool:
        """Return whether the first call may be decided while others are under way."""
        if not self._under_way:
            return True
        if not late and (first is None or first is self._blocked):
            return False
        return all(
            decisions.is_parallel(one.call.tool) or bool(one.permit.shadowed)
            for one in self._under_way
        )

    def _has_doubt(self, first: ClientCall) -> bool:
        """Return whether the tools have to be listed before this call.  That happens at most once
        for a call.
        """
        return self._doubtful and self._looked is not first

    async def _look_again(self) -> None:
        if self._look is None:
            return
        try:
            await self._look()
        except (ServerDrift, ServerError) as error:
            if self._server is not None and not self._server.ended:
                self._stopped = f"the server's tools have changed: {error}"
                self._note(self._stopped)

    async def _take_turn(self, first: ClientCall | None, late: bool, decisions: Decisions) -> None:
        """Take the turn of the session; then record a late answer, or decide the first call."""
        if self._in_a_row >= _IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(2 * POLL)
        if first is not None:
            await first.client.link.drained()
        turn = self._turn(decisions)
        if turn is None:
            await self._wait_for_turn()
            return
        self._asked_turn = None
        if late:
            decisions.resolve(turn)
            self._settled()
            return
        try:
            ready = first is not None and await self._is_caught_up(first)
        except BaseException:
            decisions.gate.give_back(turn)
            raise
        if first is None or not ready:
            decisions.gate.give_back(turn)
            return
        told = self._verdicts.pop(first, None)
        if told is not None:  # the call is decided in the next turn
            decisions.decide(told, self._persons.who, turn)
            return
        decided = self._loop.create_future()
        task = asyncio.ensure_future(self._make(first, decisions, turn, decided))
        self._tasks.add(task)
        task.add_done_callback(self._made_one)
        if not await asyncio.shield(decided):
            self._blocked = first

    def _made_one(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            self._fault = self._fault or task.exception()
        self._changed.set()

    async def _is_caught_up(self, first: ClientCall) -> bool:
        """Read the client's messages; return whether the call may still be decided."""
        link = first.client.link
        for _ in range(_CATCH_UP):
            await asyncio.sleep(0)
            if link.is_quiet():
                break
        else:
            return False
        return first in self._waiting and not self._has_doubt(first)

    def _turn(self, decisions: Decisions) -> Ticket | None:
        """Return the turn; None if another process has it, or the ledger has failed."""
        try:
            return decisions.gate.try_turn()
        except Refused as refusal:
            if self._waiting:
                call = self._waiting[0]
                self._drop(call)
                call.client.answer(call, deciding.refusal_result(refusal))
            else:
                decisions.forget_late()
            return None

    async def _wait_for_turn(self) -> None:
        """Wait a moment.  If the first call has waited longer than the time limit, it is not
        made.
        """
        now = self._loop.time()
        if self._asked_turn is None:
            self._asked_turn = now
        elif self._waiting and now - self._asked_turn >= self._seconds:
            call = self._waiting[0]
            self._drop(call)
            said = f"not called: another process had the session for {self._seconds:g} s"
            call.client.put_off(call, said)
        await asyncio.sleep(POLL)

    def _stop_waiting(self, decisions: Decisions) -> None:
        if self._asked_turn is not None:
            self._asked_turn = None
            decisions.gate.stop_waiting()

    def _drop(self, call: ClientCall) -> bool:
        """Remove a waiting call; return whether it was waiting."""
        if call not in self._waiting:
            return False
        self._waiting.remove(call)
        self._verdicts.pop(call, None)
        return True

    # Calls under way.

    async def _make(
        self,
        call: ClientCall,
        decisions: Decisions,
        turn: Ticket,
        decided: asyncio.Future[bool],
    ) -> None:
        """Decide a call; if it is allowed, make it, record its end, and answer.

        Args:
            decided: set to False if the call has to wait for a call under way, else to True.
        """
        if not (call in self._waiting and call.client.link.is_quiet()):
            decisions.gate.give_back(turn)
            decided.set_result(True)
            return
        try:
            away = (self._server.link.away or {}).get(call.tool) if self._server else None
            async with decisions.permit(call.tool, call.arguments, away, turn) as permit:
                opened = _OpenCall(call=call, permit=permit, ended=self._loop.create_future())
                self._under_way.add(opened)
                # Writing the record may have taken time, so the client may have cancelled
                # meanwhile.
                is_wanted = self._drop(call)
                decided.set_result(True)
                ending, answer = await self._made(opened, decisions, is_wanted)
                decisions.record(permit, ending)
        except NotYet:
            decided.set_result(False)
            return
        except Refused as refusal:
            if self._drop(call):
                self._refuse(call, refusal)
            decided.set_result(True)
            return
        except Pending as question:
            if self._drop(call):
                self._wait_for_person(call, question)
            decided.set_result(True)
            return
        except BaseException:
            if not decided.done():
                decided.set_result(True)
            raise
        self._under_way.discard(opened)
        self._blocked = None
        self._finish(opened, ending, answer)
        self._in_a_row = self._in_a_row + 1 if self._waiting else 0

    async def _made(
        self, opened: _OpenCall, decisions: Decisions, is_wanted: bool
    ) -> tuple[Ending, wire.Response | None]:
        """Send an allowed call, and wait until it ends; return its end, and the answer that ended
        it.
        """
        permit, server = opened.permit, self._server
        if permit.shadowed:
            self._count_refusal(opened.call, permit.shadowed)
        if not is_wanted or server is None:
            opened.answers = False
            return deciding.unsent("the client did not want it any more: not sent"), None
        what = decisions.unsendable(permit)
        if what is not None:
            opened.answers = False
            opened.call.client.refuse(opened.call, f"not called: {what}", wire.INVALID_PARAMS)
            return deciding.unsent(what), None
        self._send(opened, server, {})
        timer = self._loop.call_later(self._seconds, self._overdue, opened)
        try:
            return await opened.ended
        finally:
            timer.cancel()

    def _send(self, opened: _OpenCall, server: Server, more: Mapping[str, Any]) -> None:
        """Send a call, or a round of it, with the arguments that the gate decided on."""
        call, permit = opened.call, opened.permit
        arguments = plain(permit.arguments)
        params: dict[str, Any] = {"name": call.tool, "arguments": arguments, **plain(more)}
        meta: dict[str, Any] = {}
        if call.token is not None:
            meta["progressToken"] = server.next_identity
        if permit.model:
            # In a session with a budget, the ledger names the model that makes the call.
            meta["tcc/model"] = permit.model
        if call.inputs:
            meta[wire.CAPABILITIES_KEY] = call.inputs
        if meta:
            params["_meta"] = meta
        self._open.pop(opened.identity, None)
        opened.identity = server.next_identity
        self._open[opened.identity] = opened
        server.request("tools/call", params)

    def _overdue(self, opened: _OpenCall) -> None:
        seconds = f"{self._seconds:g} s"
        unsent = f"its server listed no tools in {seconds}: not sent"
        self._end(opened, self._take_back(opened, f"there was no answer in {seconds}", unsent))

    def _take_back(self, opened: _OpenCall, reason: str, unsent: str) -> Ending:
        """Cancel a call at its server, and return its end.

        Args:
            reason, unsent: the reason if its outcome is unknown, and if the link had not sent it.
        """
        server = self._server
        if opened.asked is None and server is not None:
            if server.link.withdraw(opened.identity) and not opened.rounds:
                return deciding.unsent(unsent)
            server.cancel(opened.identity)
        return unknown(reason)

    def _end(self, opened: _OpenCall, ending: Ending, answer: wire.Response | None = None) -> None:
        """End a call.  Its task then records the outcome and answers the client."""
        if self._open.pop(opened.identity, None) is None:
            return
        permit = opened.permit
        known = answer is not None or opened.asked is not None or bool(permit.shadowed)
        if not known and ending.outcome == "unknown" and self._decisions is not None:
            self._decisions.expect(opened.identity, permit.seq, opened.call.tool)
        if opened.asked is not None:
            opened.answers = False  # the client has got an answer, which asked for input
        opened.ended.set_result((ending, answer))

    def _finish(self, opened: _OpenCall, ending: Ending, answer: wire.Response | None) -> None:
        """Answer the client of a call whose outcome is recorded."""
        call, permit = opened.call, opened.permit
        self.heard = self._loop.time()
        if ending.unsent and opened.answers:
            self._refuse(call, deciding.away(call.tool, ending.reason))
            return
        if self._meter is not None and not permit.shadowed and not ending.unsent:
            self._meter.ended(call.tool, ending.outcome)
        if opened.answers:
            if ending.result is not None:
                call.client.relay(call, ending.result)
            elif answer is not None and answer.error is not None:
                code, said = answer.error
                call.client.refuse(call, said, code, deciding.unknown_data(permit, ending))
            else:
                call.client.answer(call, deciding.unknown_result(permit, ending))
        self._settled()

    def _refuse(self, call: ClientCall, refusal: Refused) -> None:
        self._count_refusal(call, str(refusal.code))
        call.client.answer(call, deciding.refusal_result(refusal))

    def _count_refusal(self, call: ClientCall, code: str) -> None:
        if self._meter is not None:
            self._meter.refused(call.tool, code)
