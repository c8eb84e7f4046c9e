"""Calls of a client: waiting, under way, answered late; and what the relay needs of a gate.

Only a plain result says that a call was done.  An error may have come before the deed or after it,
so it is unknown, unless the grammar says of the tool that errors mean failure.  An answer that
comes after its call was given up resolves what was unknown.  The relay is written against the
protocols here, which :class:`tcc_runtime.gate.Gate` satisfies.
Cost: that of the gate's records; memory is bounded by what may wait.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NoReturn, Protocol

from tcc_certs.errors import Code
from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.gate.permit import Ticket
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import TOLD_ERROR, UNDECIDED, is_error_text
from tcc_runtime.mcp.door import ClientCall
from tcc_runtime.mcp.upstream.pipes import MAX_CLIENT_LINE
from tcc_runtime.mcp.wire import Id, Member, Response, dumps, is_input_required

# What the relay needs of a gate, and what it tells a model of a refusal.

_MOST_NEXT = 24
_MOST_TOOLS = 256


class GatePermit(Protocol):
    """A call that was let through."""

    @property
    def seq(self) -> int:
        """Its number in the session."""

    model: str
    """That makes the call, by the budget of the session; empty where none does."""

    shadowed: str
    """Why it is refused and made all the same; then it has no number and no outcome. Else empty."""

    def done(self, result: Any = None, observed: Mapping[str, Any] | None = None) -> None:
        """It happened."""

    def failed(self, reason: str, *, answered: bool = False) -> None:
        """It did not happen; `answered`: it changed nothing, and its error was read."""

    def unknown(self, reason: str) -> None:
        """Nobody knows."""


class NextCall(Protocol):
    """A call that plans allow."""

    @property
    def tool(self) -> str:
        """Its tool."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Its listed arguments."""


class CallRecord(Protocol):
    """A call that was made."""

    @property
    def outcome(self) -> str:
        """How it ended."""


class GateSession(Protocol):
    """A session behind a gate; nothing of it waits for a lock, as a turn is had before."""

    @property
    def session_id(self) -> str:
        """Its id."""

    def try_turn(self) -> Ticket | None:
        """The turn and the lock; None while another has them."""

    def stop_waiting(self) -> None:
        """A turn that was not had is not wanted any more."""

    def give_back(self, turn: Ticket) -> None:
        """A turn that was not used."""

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, turn: Ticket
    ) -> AbstractContextManager[GatePermit]:
        """Let a call through, or raise ``Refused``; the turn is given back behind it."""

    def refuse(self, code: Code, tool: str, reason: str, *, turn: Ticket) -> NoReturn:
        """Refuses a call for a reason outside of the grammar; the turn is given back."""

    def resolve(
        self,
        seq: int,
        outcome: Literal["done", "failed"],
        observed: Mapping[str, Any] | None = None,
        *,
        turn: Ticket,
    ) -> object:
        """Say how a call ended that was unknown; the turn is given back."""

    @property
    def history(self) -> Sequence[CallRecord]:
        """The calls so far."""

    def allowed(self) -> Sequence[NextCall]:
        """The calls that plans allow now."""


class SpentSession(Protocol):
    """A session in which nothing more can be called."""

    @property
    def session(self) -> str:
        """Its id."""

    @property
    def way_on(self) -> str:
        """What whoever wants to go on can do."""


class CallRefusal(Protocol):
    """Why a call is not let through."""

    @property
    def code(self) -> str:
        """R101 to R308."""

    @property
    def because(self) -> Sequence[Mapping[str, str]]:
        """What forbids it."""

    @property
    def allowed_next(self) -> Sequence[NextCall]:
        """The calls that plans allow instead."""

    @property
    def spent(self) -> SpentSession | None:
        """Where nothing is allowed any more: in which session, and the way on."""


def refusal_result(refusal: CallRefusal) -> dict[str, Any]:
    """The result that says so to a model: an error, with what is allowed instead."""
    following = refusal.allowed_next
    told: dict[str, Any] = {
        "code": str(refusal.code),
        "because": [dict(reason) for reason in refusal.because],
        "allowed_next": [_call(call) for call in following[:_MOST_NEXT]],
    }
    spent = refusal.spent
    if spent is not None:
        told |= {"spent": True, "session": spent.session, "way_on": spent.way_on}
    if len(following) > _MOST_NEXT:
        told["allowed_next_left_out"] = len(following) - _MOST_NEXT
        told["allowed_tools"] = list(dict.fromkeys(call.tool for call in following))[:_MOST_TOOLS]
    return error_result(f"Not allowed, and nothing was called. {refusal}. {dumps(told)}", told)


def error_result(said: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A result of a tool that is an error, for people, models and programs."""
    return {
        "content": [{"type": "text", "text": said}],
        "structuredContent": dict(told),
        "isError": True,
    }


def is_kept(value: Any) -> bool:
    """Whether :func:`plain` gives the same numbers: a listed one may have more digits than it has.

    Cost: linear in the value; nested deeper than a gate takes it is not looked at.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 2):
        if not level:
            break
        if any(isinstance(part, Decimal) and Decimal(repr(plain(part))) != part for part in level):
            return False
        level = [inner for part in level for inner in _inside(part)]
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _call(call: NextCall) -> dict[str, Any]:
    return {"tool": call.tool, "arguments": plain(dict(call.arguments))}


_MOST_WAITING = 256
_MOST_BYTES = 2 * MAX_CLIENT_LINE
_MOST_LATE = 256


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
class Round:
    """What a server asks for before it answers a call.

    Attributes:
        keys: of its requests.
        state: the server's own.
        token: the state that the client has of us.
    """

    keys: frozenset[str]
    state: str | None
    token: str


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
    permit: GatePermit
    identity: int
    until: float
    leave: ExitStack
    asked: Round | None = None
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a call ended.

    Attributes:
        answer: the structured content of the result, else its one text, as JSON where it is some;
            None where there is neither.
        result: the members of the result, where it goes on to the client.
        reason: why it is not known to be done, in words of our own: logs have it.
        said: what the server says of it, for the client alone: it may quote the call.
    """

    outcome: Literal["done", "failed", "unknown"]
    answer: Any = None
    result: Mapping[str, Member] | None = None
    reason: str = ""
    said: str = ""

    @property
    def because(self) -> str:
        """The reason, as the client is told it."""
        return f"{self.reason}: {self.said}" if self.said else self.reason


def unknown(reason: str, said: str = "") -> Ending:
    """Nobody knows, for `reason`."""
    return Ending(outcome="unknown", reason=reason, said=said)


def ending_of(answer: Response, tool: ToolTraits) -> Ending:
    """How a call of a tool ended that was answered so."""
    if answer.error is not None:
        return unknown(f"the server answered with error {answer.error[0]}", answer.error[1])
    members = answer.result
    if members is None:
        return unknown("the server answered with a result that is no object")
    kind = members["resultType"].value if "resultType" in members else "complete"
    if is_input_required(members):
        return unknown("the server asks for more, and nothing may be asked here")
    if kind != "complete":
        return unknown("the server answered with a result of an unknown type")
    error = members["isError"].value if "isError" in members else False
    if not isinstance(error, bool) or not _is_content(members.get("content")):
        return unknown("the server answered with something that is not the result of a tool")
    structured = members["structuredContent"].value if "structuredContent" in members else None
    text = _text_in(members["content"].value) if structured is None else None
    said: bool | None = error
    if tool.error_text is not None and not error:
        said = is_error_text(tool.error_text, text)
    if said is False:
        told = structured if text is None else _json_in(text)
        return Ending(outcome="done", answer=told, result=members)
    if said is None:
        return Ending(outcome="unknown", result=members, reason=UNDECIDED)
    outcome: Literal["failed", "unknown"] = "failed" if tool.errors_failed else "unknown"
    return Ending(outcome=outcome, result=members, reason=TOLD_ERROR)


def record(permit: GatePermit, ending: Ending, tool: ToolTraits) -> None:
    """Tell the gate how a call ended."""
    if ending.outcome == "done" and ending.result is not None:
        whole = {name: member.value for name, member in ending.result.items()}
        permit.done(whole, observed={} if ending.answer is None else ending.answer)
    elif ending.outcome == "failed":
        # The client reads what the server says.
        permit.failed(ending.reason, answered=True)
    else:
        permit.unknown(ending.reason)


def _text_in(blocks: Any) -> str | None:
    """The one text of a result."""
    if len(blocks) != 1 or blocks[0].get("type") != "text":
        return None
    text = blocks[0].get("text")
    return text if type(text) is str else None


def _json_in(text: str) -> Any:
    """A text as JSON where it is some."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_content(member: Member | None) -> bool:
    blocks = None if member is None else member.value
    return isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)


class WaitingCalls:
    """The calls that wait for their turn, in their order; bounded."""

    def __init__(self) -> None:
        self._calls: deque[tuple[ClientCall, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def identities(self) -> frozenset[Id]:
        """The ids of all of them."""
        return frozenset([call.identity for call, _ in self._calls])

    def add(self, call: ClientCall, size: int, taken: Collection[Id]) -> str | None:
        """Put a call at the end; the reason where it cannot stand there, and is not made.

        Args:
            size: bytes of the line that it came in.
            taken: ids that others have, too.
        """
        if call.identity in taken or call.identity in self.identities:
            return "a call has this id already"
        if len(self._calls) >= _MOST_WAITING or self._bytes + size > _MOST_BYTES:
            return "too many calls wait; not called"
        self._calls.append((call, size))
        self._bytes += size
        return None

    @property
    def first(self) -> ClientCall:
        """The one whose turn is next."""
        return self._calls[0][0]

    def take(self) -> ClientCall:
        """The first of them; it waits no longer."""
        call, size = self._calls.popleft()
        self._bytes -= size
        return call

    def drop(self, identity: Id) -> bool:
        """Take one out; whether it was there."""
        for at, (call, size) in enumerate(self._calls):
            if call.identity == identity:
                del self._calls[at]
                self._bytes -= size
                return True
        return False

    def empty(self) -> tuple[ClientCall, ...]:
        """All of them; none waits any longer."""
        found = tuple([call for call, _ in self._calls])
        self._calls.clear()
        self._bytes = 0
        return found


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
        self, session: GateSession, tools: Mapping[str, ToolTraits], note: Callable[[str], None]
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

    def take(self, answer: Response) -> None:
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
        observed = ({} if ending.answer is None else ending.answer) if done else None
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
