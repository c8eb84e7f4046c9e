"""What the relay needs of a gate, and the result that tells a model of its refusal.

The relay is written against the protocols here, which :class:`tcc_runtime.gate.Gate` satisfies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NoReturn, Protocol

from tcc_certs.errors import Code
from tcc_runtime.gate.answers import ToolAnswer
from tcc_runtime.gate.arguments import plain
from tcc_runtime.gate.permit import Ticket
from tcc_runtime.mcp.wire import dumps

_MOST_NEXT = 24
_MOST_TOOLS = 256


class GatePermit(Protocol):
    """A call that was let through."""

    @property
    def seq(self) -> int:
        """Its number in the session."""

    arguments: dict[str, Any]
    """What the call is made with: a copy of the client's, decided on and recorded."""

    model: str
    """That makes the call, by the budget of the session; empty where none does."""

    shadowed: str
    """Why it is refused and made all the same; then it has no number and no outcome. Else empty."""

    def done(
        self, result: Any = None, observed: ToolAnswer | Mapping[str, Any] | None = None
    ) -> None:
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
    def because(self) -> Sequence[Mapping[str, str | None]]:
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


def _call(call: NextCall) -> dict[str, Any]:
    return {"tool": call.tool, "arguments": plain(dict(call.arguments))}
