"""Calls under way, from permit to outcome; and those that are answered late.

A call is under way from its permit to its outcome, which is recorded once: the server's answer, or
unknown where there is none in time, the client cancels it, or what would carry an answer is gone.
Only a plain result says that a call was done.  An error may have come before the deed or after it,
so it is unknown, unless the grammar says of the tool that errors mean failure.  An answer that
comes after its call was given up resolves what was unknown.  A call of several rounds
(:mod:`tcc_runtime.mcp.rounds`) is one call: decided once, recorded once.
Cost: that of the gate's records; memory is bounded by what may wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from tcc_certs.errors import Code
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.answers import ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.gate.permit import Ticket
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.mcp import gate_interface as gate, rounds, wire
from tcc_runtime.mcp.door import ClientCall, ClientConnection, busy_line
from tcc_runtime.mcp.hub import AWAY_ERROR
from tcc_runtime.mcp.upstream import Upstream
from tcc_runtime.mcp.upstream.pipes import Pipe

_MOST_LATE = 256
_FULL = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTraits:
    """What the relay knows of a tool of the grammar.

    Attributes:
        observed: its observed parameters.
        errors_failed: whether its errors mean that nothing happened.
        error_text: the pattern of texts that are errors.
        parallel: whether calls of it may be under way beside others.
    """

    observed: tuple[str, ...] = ()
    errors_failed: bool = False
    error_text: str | None = None
    parallel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call that is under way.

    Attributes:
        identity: of the request to the server.
        until: when its outcome is unknown.
        leave: gives the permit back.
        asked: what the client is asked for; None: the server is asked.
        rounds: how many the client has answered.
    """

    call: ClientCall
    permit: gate.GatePermit
    identity: int
    until: float
    leave: ExitStack
    asked: rounds.Round | None = None
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a call ended.

    Attributes:
        answer: what the result says, of a call that is done.
        result: the members of the result, where it goes on to the client.
        reason: why it is not known to be done, in words of our own: logs have it.
        said: what the server says of it, for the client alone: it may quote the call.
    """

    outcome: Literal["done", "failed", "unknown"]
    answer: ToolAnswer | None = None
    result: Mapping[str, wire.Member] | None = None
    reason: str = ""
    said: str = ""

    @property
    def because(self) -> str:
        """The reason, as the client is told it."""
        return f"{self.reason}: {self.said}" if self.said else self.reason


def unknown(reason: str, said: str = "") -> Ending:
    """Nobody knows, for `reason`."""
    return Ending(outcome="unknown", reason=reason, said=said)


def ending_of(answer: wire.Response, tool: ToolTraits) -> Ending:
    """How a call of a tool ended that was answered so."""
    if answer.error is not None:
        return unknown(f"the server answered with error {answer.error[0]}", answer.error[1])
    members = answer.result
    if members is None:
        return unknown("the server answered with a result that is no object")
    kind = members["resultType"].value if "resultType" in members else "complete"
    if wire.is_input_required(members):
        return unknown("the server asks for more, and nothing may be asked here")
    if kind != "complete":
        return unknown("the server answered with a result of an unknown type")
    error = members["isError"].value if "isError" in members else False
    if not isinstance(error, bool) or not _is_content(members.get("content")):
        return unknown("the server answered with something that is not the result of a tool")
    structured = members["structuredContent"].value if "structuredContent" in members else None
    found = answer_of(members["content"].value, structured=structured, error=error, blocks=True)
    outcome, reason = outcome_of(tool, found)
    answered = found if outcome == "done" else None
    return Ending(outcome=outcome, answer=answered, result=members, reason=reason)


def record(permit: gate.GatePermit, ending: Ending, tool: ToolTraits) -> None:
    """Tell the gate how a call ended."""
    if ending.outcome == "done" and ending.result is not None:
        whole = {name: member.value for name, member in ending.result.items()}
        permit.done(whole, observed=ending.answer)
    elif ending.outcome == "failed":
        # The client reads what the server says.
        permit.failed(ending.reason, answered=True)
    else:
        permit.unknown(ending.reason)


def _is_content(member: wire.Member | None) -> bool:
    blocks = None if member is None else member.value
    return isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)


class CallMeter(Protocol):
    """Whoever counts what becomes of calls; told from the thread of the relay."""

    def refused(self, tool: str, code: str) -> None:
        """A call was refused; `tool` is what the client named."""

    def ended(self, tool: str, outcome: str) -> None:
        """A call that was let through has an outcome."""


class OpenCalls:
    """The calls under way, each from its permit to its outcome.

    Args:
        client: the pipe to the client.
        door: how the client is spoken to.
        seconds: how long a call may take.
        note: is told, for people, what went wrong.
        meter: is told of each call that is refused or ends.
        settled: is called when an outcome is recorded, and the client told.

    Attributes:
        blocked: the call that waits until another one has ended; None: none does.
    """

    def __init__(
        self,
        *,
        client: Pipe,
        door: ClientConnection,
        seconds: float,
        note: Callable[[str], None],
        meter: CallMeter | None,
        settled: Callable[[], None],
    ) -> None:
        self._client = client
        self._door = door
        self._seconds = seconds
        self._note = note
        self._meter = meter
        self._settled = settled
        self._open: dict[int, OpenCall] = {}  # by the ids of the requests to the server
        self.blocked: ClientCall | None = None
        self._upstream: Upstream | None = None
        self._tools: Mapping[str, ToolTraits] = {}
        self._session: gate.GateSession | None = None
        self._late: LateAnswers | None = None
        self._rounds: rounds.Rounds | None = None

    def serve(
        self,
        upstream: Upstream,
        session: gate.GateSession,
        tools: Mapping[str, ToolTraits],
        late: LateAnswers,
    ) -> None:
        """From here on there are calls: of tools of this grammar, to this server."""
        self._upstream = upstream
        self._session = session
        self._tools = tools
        self._late = late

    def __len__(self) -> int:
        return len(self._open)

    @property
    def identities(self) -> set[wire.Id]:
        """The ids under which the client waits for their answers."""
        return {opened.call.identity for opened in self._open.values()}

    @property
    def deadlines(self) -> list[float]:
        """When the outcome of each is unknown."""
        return [opened.until for opened in self._open.values()]

    def of(self, identity: object) -> OpenCall | None:
        """The call that has this id of ours."""
        return self._open.get(identity) if type(identity) is int else None

    def may_begin(self, first: ClientCall | None) -> bool:
        """Whether the first call that waits, if one does, may be decided beside these."""
        if not self._open:
            return True
        if first is None or first is self.blocked:
            return False
        return all(
            self._tool(opened).parallel or bool(opened.permit.shadowed)
            for opened in self._open.values()
        )

    def refuse(self, call: ClientCall, refusal: Refused) -> None:
        """Tell a client that the gate refused its call."""
        self._note_refusal(call, str(refusal.code))
        self._client.send(self._door.answer(call, gate.refusal_result(refusal)))

    def begin(self, call: ClientCall, permit: gate.GatePermit, leave: ExitStack) -> None:
        """Make a call that was let through.

        Args:
            leave: gives the permit back.
        """
        if permit.shadowed:
            self._note_refusal(call, permit.shadowed)
        if not is_kept(permit.arguments):
            what = "a number of which the server would get another one"
            with leave:
                permit.failed(what)
            said = f"not called: {what}"
            self._client.send(self._door.refused(call, wire.INVALID_PARAMS, said))
            return
        identity = self._request(call, permit.arguments, permit.model, {})
        until = time.monotonic() + self._seconds
        self._open[identity] = OpenCall(
            call=call, permit=permit, identity=identity, until=until, leave=leave
        )

    def _request(
        self, call: ClientCall, arguments: Mapping[str, Any], model: str, more: Mapping[str, Any]
    ) -> int:
        """Ask the server for a call, in the words that were decided on; under which id."""
        if self._upstream is None:
            return 0
        params: dict[str, Any] = {"name": call.tool, "arguments": plain(arguments), **plain(more)}
        meta: dict[str, Any] = {}
        if call.token is not None:
            meta["progressToken"] = self._upstream.next_identity
        if model:
            # A session that was begun with a budget: the ledger names who makes the call.
            meta["tcc/model"] = model
        if call.inputs:
            meta[wire.CAPABILITIES_KEY] = call.inputs
        if meta:
            params["_meta"] = meta
        return self._upstream.request("tools/call", params)

    def go_on(self, call: ClientCall, taken: Collection[wire.Id]) -> bool:
        """Go on with the call whose round a client answers; whether it is another one instead.

        Args:
            taken: ids under which the client waits for something else than calls under way.
        """
        opened, upstream = self._asked_by(call.state or ""), self._upstream
        if opened is None or opened.asked is None or upstream is None:
            said = "requestState is of no round of this session, or was used"
            self._client.send(self._door.refused(call, wire.INVALID_PARAMS, said))
            return False
        if not rounds.is_same(call, opened.call):
            return True
        answers = rounds.answers_of(call, opened.asked)
        others = [one.call.identity for one in self._open.values() if one is not opened]
        if call.identity in taken or call.identity in others:
            self._client.send(busy_line(call.identity, "a call has this id already"))
        elif isinstance(answers, str):
            self._client.send(self._door.refused(call, wire.INVALID_PARAMS, answers))
        elif upstream.pipe.waiting > _FULL:
            said = "the server does not read what was sent to it"
            self._client.send(busy_line(call.identity, said))
        else:
            del self._open[opened.identity]
            more: dict[str, Any] = {} if call.responses is None else {"inputResponses": answers}
            if opened.asked.state is not None:
                more["requestState"] = opened.asked.state
            permit = opened.permit
            identity = self._request(call, permit.arguments, permit.model, more)
            arguments = opened.call.arguments
            again = replace(call, arguments=arguments, state=None, responses=None)
            self._open[identity] = replace(
                opened, call=again, identity=identity, asked=None, rounds=opened.rounds + 1
            )
        return False

    def _asked_by(self, state: str) -> OpenCall | None:
        """The call under way whose client was given this state.

        None where there is none: a state that was made up, used, of another session or too old.
        """
        found = self.of(rounds.identity_in(state))
        if found is None or found.asked is None:
            return None
        return found if found.asked.has_token(state) else None

    def answer(self, opened: OpenCall, message: wire.Response) -> None:
        """The server's answer: the call has ended, or the client is asked for more first."""
        upstream, result = self._upstream, message.result
        if upstream is None:
            return
        if message.error and message.error[0] == AWAY_ERROR and upstream.several:
            self._give_up(opened, message.error[1])
        elif not upstream.was_sent(opened.identity):
            self._give_up(opened, "the server cannot be reached")
        elif opened.asked is not None:
            return  # it has its answer
        elif (
            result is None
            or opened.call.inputs is None
            or not (upstream.stateless or upstream.several)
            or not wire.is_input_required(result)
        ):
            self._settle(opened, ending_of(message, self._tool(opened)), answer=message)
        else:
            self._ask(opened, result, message)

    def _ask(
        self, opened: OpenCall, result: Mapping[str, wire.Member], message: wire.Response
    ) -> None:
        """Ask the client for what the server wants before it answers."""
        if self._session is None:
            return
        self._rounds = self._rounds or rounds.Rounds(self._session.session_id)
        place = opened.identity, opened.permit.seq, opened.rounds + 1
        try:
            asked = self._rounds.asked(result, opened.call.inputs or {}, place)
        except rounds.NotAsked as reason:
            self._settle(opened, unknown(str(reason)), answer=message)
            return
        self._open[opened.identity] = replace(opened, asked=asked)
        self._client.send(self._door.asks(opened.call, result, asked.token))

    def cancel(self, identity: wire.Id) -> None:
        """The client does not wait for an answer under this id any longer, and gets none."""
        for opened in tuple(self._open.values()):
            if opened.call.identity == identity:
                self._tell_cancelled(opened)
                self._settle(opened, unknown("the client cancelled it"), answered=False)

    def give_up_overdue(self, now: float) -> None:
        """Those that have no answer in time are unknown."""
        for opened in tuple(self._open.values()):
            if now >= opened.until:
                self._tell_cancelled(opened)
                self._settle(opened, unknown(f"there was no answer in {self._seconds:g} s"))

    def break_off(self, reason: str, *, asked: bool | None = None) -> None:
        """What would carry the answers is gone: they are unknown.

        Args:
            asked: only those whose client is asked for more, or only the others; None: all.
        """
        for opened in tuple(self._open.values()):
            if asked is None or asked == (opened.asked is not None):
                self._settle(opened, unknown(reason))

    def _give_up(self, opened: OpenCall, reason: str) -> None:
        """A call that was let through, and not sent: its server had just gone."""
        if opened.rounds:  # earlier rounds of it came to the server
            self._settle(opened, unknown(reason))
            return
        self._open.pop(opened.identity, None)
        self.blocked = None
        with opened.leave:
            opened.permit.failed("its server is away: not sent")
        refusal = Refused(Decision(Code.SERVER_AWAY, reason, list, tuple), opened.call.tool)
        self.refuse(opened.call, refusal)

    def _note_refusal(self, call: ClientCall, code: str) -> None:
        if self._meter is not None:
            self._meter.refused(call.tool, code)

    def _tell_cancelled(self, opened: OpenCall) -> None:
        if opened.asked is None and self._upstream is not None:
            self._upstream.cancel(opened.identity)

    def _settle(
        self,
        opened: OpenCall,
        ending: Ending,
        *,
        answer: wire.Response | None = None,
        answered: bool = True,
    ) -> None:
        """Record how an open call ended, and tell the client."""
        if self._open.pop(opened.identity, None) is None:
            return
        self.blocked = None
        try:
            with opened.leave:
                record(opened.permit, ending, self._tool(opened))
        except LedgerError as error:
            self._note(f"the outcome of call {opened.permit.seq} is not recorded: {error}")
        if self._meter is not None and not opened.permit.shadowed:
            self._meter.ended(opened.call.tool, ending.outcome)
        # One whose client is asked is answered already, and the server has nothing to answer.
        answered = answered and opened.asked is None
        known = answer is not None or opened.asked is not None or bool(opened.permit.shadowed)
        if not known and ending.outcome == "unknown" and self._late is not None:
            self._late.expect(opened.identity, opened.permit.seq, opened.call.tool)
        if answered:
            self._client.send(self._line(opened, ending, answer))
        self._settled()

    def _line(self, opened: OpenCall, ending: Ending, answer: wire.Response | None) -> bytes:
        """The answer to the client."""
        if ending.result is not None:
            return self._door.relayed(opened.call, ending.result)
        told = {"outcome": ending.outcome, "seq": opened.permit.seq, "because": ending.because}
        if answer is not None and answer.error is not None:
            return self._door.refused(opened.call, answer.error[0], answer.error[1], told)
        said = f"It is not known whether this call happened: {ending.because}. Do not repeat it."
        return self._door.answer(opened.call, gate.error_result(said, told))

    def _tool(self, opened: OpenCall) -> ToolTraits:
        return self._tools.get(opened.call.tool, ToolTraits())


class LateAnswers:
    """The calls whose answers may still come: so many as a session may leave unknown, and more.

    The oldest is forgotten first, and stays unknown.

    Args:
        session: that holds what is unknown.
        tools: those of the grammar by name.
        note: is told, for people, what cannot be resolved.

    Attributes:
        trouble: why nothing further may be called; None where it may.
    """

    def __init__(
        self,
        session: gate.GateSession,
        tools: Mapping[str, ToolTraits],
        note: Callable[[str], None],
    ) -> None:
        self._session = session
        self._tools = tools
        self._note = note
        self._expected: dict[int, tuple[int, str]] = {}
        self._came: deque[tuple[int, str, Ending]] = deque()
        self.trouble: str | None = None

    def __len__(self) -> int:
        """How many answers came, and are to be resolved."""
        return len(self._came)

    def expect(self, identity: int, seq: int, tool: str) -> None:
        """An answer to `identity` may still come."""
        self._expected[identity] = (seq, tool)
        if len(self._expected) > _MOST_LATE:
            del self._expected[next(iter(self._expected))]

    def take(self, answer: wire.Response) -> None:
        """An answer to something else than the call under way; one that nobody expects is none."""
        if not isinstance(answer.identity, int):
            return
        known = self._expected.pop(answer.identity, None)
        if known is None:
            return
        seq, tool = known
        ending = ending_of(answer, self._tools[tool])
        if ending.outcome != "unknown":
            self._came.append((seq, tool, ending))

    def resolve(self, turn: Ticket) -> None:
        """Resolve the first that came.

        Args:
            turn: that of the session, which is given back.
        """
        seq, _, ending = self._came.popleft()
        if self._session.history[seq - 1].outcome != "unknown":
            self._session.give_back(turn)  # the owner has resolved it in the meantime
            return
        done = ending.outcome == "done"
        observed = ending.answer.value if done and ending.answer is not None else None
        try:
            outcome: Literal["done", "failed"] = "done" if done else "failed"
            self._session.resolve(seq, outcome, observed, turn=turn)
        except (LedgerError, Refused, ValueError) as error:
            # An answer that the grammar does not foresee is no outcome of an unknown call.
            self.trouble = f"call {seq} was answered late, and stays unknown: {error}"
            self._note(self.trouble)

    def forget(self) -> None:
        """The ledger has failed: what is unknown there stays so."""
        self._came.clear()
