"""What the relay needs of a gate, and what it tells a model of a refusal.

The relay is written against these few names, which :class:`tcc_runtime.gate.Gate` has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any, Literal, Protocol

from tcc_certs.values.canonical import MAX_DEPTH
from tcc_runtime.gate.turns import Ticket
from tcc_runtime.mcp.wire import dumps

_MOST_NEXT = 24
_MOST_TOOLS = 256
_MOST_DIGITS = 400


class Permit(Protocol):
    """A call that was let through."""

    @property
    def seq(self) -> int:
        """Its number in the session."""

    model: str
    """That makes the call, by the budget of the session; empty where none does."""

    def done(self, result: Any = None, observed: Mapping[str, Any] | None = None) -> None:
        """It happened."""

    def failed(self, reason: str) -> None:
        """It did not happen."""

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


class Happened(Protocol):
    """A call that was made."""

    @property
    def outcome(self) -> str:
        """How it ended."""


class Session(Protocol):
    """A session behind a gate; nothing of it waits for a lock, as a turn is had before."""

    def try_turn(self) -> Ticket | None:
        """The turn and the lock; None while another has them."""

    def give_back(self, turn: Ticket) -> None:
        """A turn that was not used."""

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, turn: Ticket
    ) -> AbstractContextManager[Permit]:
        """Let a call through, or raise ``Refused``; the turn is given back behind it."""

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
    def history(self) -> Sequence[Happened]:
        """The calls so far."""

    def allowed(self) -> Sequence[NextCall]:
        """The calls that plans allow now."""


class Refusal(Protocol):
    """Why a call is not let through."""

    @property
    def code(self) -> str:
        """R101 to R306."""

    @property
    def because(self) -> Sequence[Mapping[str, str]]:
        """What forbids it."""

    @property
    def allowed_next(self) -> Sequence[NextCall]:
        """The calls that plans allow instead."""


def refusal_result(refusal: Refusal) -> dict[str, Any]:
    """The result that says so to a model: an error, with what is allowed instead."""
    following = refusal.allowed_next
    told: dict[str, Any] = {
        "code": str(refusal.code),
        "because": [dict(reason) for reason in refusal.because],
        "allowed_next": [_call(call) for call in following[:_MOST_NEXT]],
    }
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


def plain(value: Any) -> Any:
    """A value with its exact numbers as Python's own: the same ones, of a value a gate took."""
    if isinstance(value, Decimal):
        small = abs(value.adjusted()) < _MOST_DIGITS
        return int(value) if small and value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def is_kept(value: Any) -> bool:
    """Whether :func:`plain` gives the same numbers: a listed one may have more digits than it has.

    Cost: linear in the value; nested deeper than a gate takes it is not looked at.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 2):
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
