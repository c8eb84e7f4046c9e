"""Decisions and refusals of a gate, with their reasons, and the calls that it allows.

Codes: docs/spec/session.md, section 8.  The reasons of a refusal, and the calls that are allowed
instead, are computed when they are read, from the session as it was at the decision.
Cost: creating a decision takes constant time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from tcc_certs.errors import Code, clip
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.type_texts import domain_text, name_text, place_text
from tcc_certs.session.machine import Offer
from tcc_certs.session.records import REFUSALS

Scalar: TypeAlias = "str | int | float | Decimal | bool | None"
# The members of a reason: kind, text, because, and, if known, relation, arguments and remedy.
Reason: TypeAlias = "Mapping[str, str | None]"
Because: TypeAlias = "Callable[[], list[Reason]]"
AllowedNext: TypeAlias = "Callable[[], tuple[Allowed, ...]]"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that plans allow next.

    Attributes:
        tool: its tool.
        arguments: its listed arguments by name, without absent ones.  The caller adds the open
            arguments.
    """

    tool: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A session that allows no further call.

    Attributes:
        session: id of the session.
        way_on: advice for a caller who wants to continue.
    """

    session: str
    way_on: str


def _not_spent() -> Spent | None:
    return None


class Decision:
    """Decision of a gate about one call; it has no effect.

    Attributes:
        allowed: whether the call may be made.
        code: the reason of the refusal; None if the call is allowed.
        place: the argument at fault, the text of the statement that refuses, or another part of the
            gate that the refusal is about; or empty.
        statement: the number of the statement that refuses; None: no statement refuses.
        offer: the requested call of the artifact; None: the artifact has no such call.
    """

    __slots__ = (
        "_allowed_next", "_because", "_find_spent", "_next", "_reasons", "_spent", "allowed",
        "code", "offer", "place", "statement",
    )  # fmt: skip

    def __init__(
        self,
        code: Code | None,
        place: str,
        because: Because,
        allowed_next: AllowedNext,
        spent: Callable[[], Spent | None] = _not_spent,
        *,
        statement: int | None = None,
        offer: Offer | None = None,
    ) -> None:
        self.allowed = code is None
        self.code = code
        self.place = place
        self.statement, self.offer = statement, offer
        self._because, self._allowed_next = because, allowed_next
        self._reasons: list[Reason] | None = None
        self._next: tuple[Allowed, ...] | None = None
        self._find_spent: Callable[[], Spent | None] | None = spent
        self._spent: Spent | None = None

    @property
    def spent(self) -> Spent | None:
        """The session, if it refused this call and allows no further call; else None."""
        if self._find_spent is not None:
            self._spent, self._find_spent = self._find_spent(), None
        return self._spent

    @property
    def because(self) -> list[Reason]:
        """The reasons of a refusal; empty if the call is allowed.

        A reason is ``{"kind":.., "text":.., "because":..}``.  It may have `relation` (the part that
        is not true), `arguments` (the arguments that matter) and `remedy` (the condition under
        which the call would be allowed).  `kind` is the kind of the statement, or ``plan``,
        ``argument``, ``tool`` or ``gate``.
        """
        if self._reasons is None:
            self._reasons = self._because()
        return self._reasons

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """The calls that plans allowed at the time of the decision."""
        if self._next is None:
            self._next = self._allowed_next()
        return self._next

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, code={self.code!r}, place={self.place!r})"


class Refused(Exception):
    """A refused call, or a refused end.  The gate did nothing.

    Args:
        decision: the refusal.
        tool: name of the tool; empty for an end.

    Attributes:
        code: the reason, R101 to R309.
        place: see :class:`Decision`.
    """

    def __init__(self, decision: Decision, tool: str = "") -> None:
        self.decision = decision
        self.tool = tool
        code = decision.code or Code.NOT_WRITTEN
        self.code: str = code.value
        self.place = decision.place
        said = [_shown(tool), *_said(decision, code)]
        super().__init__(": ".join([code.value, *[part for part in said if part]]))

    @property
    def because(self) -> list[Reason]:
        """See :class:`Decision`."""
        return self.decision.because

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """See :class:`Decision`."""
        return self.decision.allowed_next

    @property
    def spent(self) -> Spent | None:
        """See :class:`Decision`."""
        return self.decision.spent

    def __str__(self) -> str:
        said, spent = super().__str__(), self.spent
        return said if spent is None else f"{said}. This session is spent: {spent.way_on}"

    def __reduce__(self) -> tuple[Callable[..., Refused], tuple[object, ...]]:
        found = (
            list(self.because), tuple(self.allowed_next), self.spent, self.decision.statement
        )  # fmt: skip
        return _again, (type(self), self.code, self.place, found, self.tool)


def _said(decision: Decision, code: Code) -> tuple[str, str]:
    """Return the parts of the message: the sentence of the policy comes first."""
    if code is Code.MAY_NOT_FINISH and decision.because:
        first = decision.because[0]
        return REFUSALS[code], first["because"] or first["text"] or ""
    if code is Code.DENIED:
        reason = decision.because[0].get("reason")
        said = f"{REFUSALS[code]}: {reason}" if reason else REFUSALS[code]
        return f"{said} ({decision.place})", ""
    because = None if decision.statement is None else decision.because[0]["because"]
    if because is None:
        return decision.place, REFUSALS[code]
    return f"{because} ({decision.place})", ""


class AlreadyDone(Refused):
    """The ledger already has a call with this id.

    Attributes:
        seq: the number of that call.
        outcome: ``done``, ``failed`` or ``unknown``.
    """

    seq: int = 0
    outcome: str = "unknown"

    def __reduce__(self) -> tuple[Callable[..., Refused], tuple[object, ...]]:
        again, given = super().__reduce__()
        return again, (*given, self.seq, self.outcome)


def _again(
    kind: type[Refused],
    code: str,
    place: str,
    found: tuple[list[Reason], tuple[Allowed, ...], Spent | None, int | None],
    tool: str,
    *more: object,
) -> Refused:
    because, following, spent, statement = found
    decision = Decision(
        Code(code), place, lambda: because, lambda: following, lambda: spent, statement=statement
    )
    error = kind(decision, tool)
    if isinstance(error, AlreadyDone) and len(more) == 2:
        error.seq, error.outcome = int(str(more[0])), str(more[1])
    return error


def _shown(text: str) -> str:
    """Return a name on one line, shortened to 80 characters."""
    return clip(text, 80) if text else ""


# Refused tools and arguments.

_SHOWN: Final = 24  # values, names
_WIDEST: Final = 1000


def argument_reason(core: Core, tool: Tool | None, code: Code, name: str) -> Reason:
    """Return the reason of a refusal because of the tool's name or an argument.

    Args:
        tool: the tool of the call; None: the grammar has no such tool.
        code: R101 to R106.
        name: the name of the argument.
    """
    kind = "tool" if tool is None else "argument"
    reason: dict[str, str | None] = {"kind": kind, "text": REFUSALS[code], "because": None}
    remedy = _argument_remedy(core, tool, code, name)
    return {**reason, "remedy": clip(remedy, _WIDEST)} if remedy else reason


def _argument_remedy(core: Core, tool: Tool | None, code: Code, name: str) -> str:
    """Return the declared tools, the declared arguments, or the type of the argument."""
    if tool is None:
        return _some([name_text(one.name) for one in core.tools])
    if code is Code.UNDECLARED_ARGUMENT:
        members = [one for one in tool.arguments if one.steps == (one.name,)]
        names = [name_text(one.name) + "?" * one.optional for one in members]
        return _some(names) or "no arguments"
    for one in tool.arguments:
        if one.name == name:
            values = [text for text in one.values if text]
            domain = _some(values, " | ") if one.type is None else domain_text(one)
            return f"{name_text(name)}: {domain}{place_text(one)}"
    return ""


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = [f"and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return between.join([*texts[:_SHOWN], *more])
