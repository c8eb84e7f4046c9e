"""What a gate answers: a call that is allowed, a decision, a refusal.

Codes: docs/spec/session.md, section 6.  Why something is refused and what is allowed instead is
found when it is read, from the session as it was then; a decision itself does neither.
Cost: constant to make; what the reading costs stands with :mod:`tcc_runtime.gate.reasons`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from tcc_certs.errors import Code, clip
from tcc_certs.session.machine import Offer
from tcc_certs.session.records import REFUSALS

Scalar: TypeAlias = "str | int | float | Decimal | bool | None"
Reason: TypeAlias = "Mapping[str, str]"
Because: TypeAlias = "Callable[[], list[Reason]]"
AllowedNext: TypeAlias = "Callable[[], tuple[Allowed, ...]]"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A call that plans allow next.

    Attributes:
        tool: its tool.
        arguments: its listed arguments by name; absent ones are left out, and open ones are for
            the caller to add.
    """

    tool: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """That nothing more can be called in a session.

    Attributes:
        session: its id.
        way_on: what whoever wants to go on can do.
    """

    session: str
    way_on: str


def _not_spent() -> Spent | None:
    return None


class Decision:
    """What a gate says of one call; it has no effect.

    Attributes:
        allowed: whether the call may be made.
        code: why not; None where it may.
        place: the argument at fault, or what else the refusal is about; the empty text if nothing.
        offer: the call of the artifact that was asked for, where it is one.
    """

    __slots__ = (
        "_allowed_next", "_because", "_find_spent", "_next", "_reasons", "_spent", "allowed",
        "code", "offer", "place",
    )  # fmt: skip

    def __init__(
        self,
        code: Code | None,
        place: str,
        because: Because,
        allowed_next: AllowedNext,
        spent: Callable[[], Spent | None] = _not_spent,
    ) -> None:
        self.allowed = code is None
        self.code = code
        self.place = place
        self.offer: Offer | None = None
        self._because, self._allowed_next = because, allowed_next
        self._reasons: list[Reason] | None = None
        self._next: tuple[Allowed, ...] | None = None
        self._find_spent: Callable[[], Spent | None] | None = spent
        self._spent: Spent | None = None

    @property
    def spent(self) -> Spent | None:
        """Where it is refused in a session that allows nothing any more: which, and the way on."""
        if self._find_spent is not None:
            self._spent, self._find_spent = self._find_spent(), None
        return self._spent

    @property
    def because(self) -> list[Reason]:
        """What forbids it, as ``{"kind": .., "text": ..}``; empty where it is allowed."""
        if self._reasons is None:
            self._reasons = self._because()
        return self._reasons

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """The calls that plans allowed when this was decided."""
        if self._next is None:
            self._next = self._allowed_next()
        return self._next

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, code={self.code!r}, place={self.place!r})"


class Refused(Exception):
    """A call, or an end, that is not allowed.  Nothing was done.

    Args:
        decision: the refusal.
        tool: what was to be called; empty for an end.

    Attributes:
        code: why, R101 to R308.
        place: the argument at fault, if it is one.
    """

    def __init__(self, decision: Decision, tool: str = "") -> None:
        self.decision = decision
        self.tool = tool
        code = decision.code or Code.NOT_WRITTEN
        self.code: str = code.value
        self.place = decision.place
        where = ": ".join(part for part in (_shown(tool), decision.place) if part)
        super().__init__(f"{code.value}: {where + ': ' if where else ''}{REFUSALS[code]}")

    @property
    def because(self) -> list[Reason]:
        """As of the decision."""
        return self.decision.because

    @property
    def allowed_next(self) -> tuple[Allowed, ...]:
        """As of the decision."""
        return self.decision.allowed_next

    @property
    def spent(self) -> Spent | None:
        """As of the decision."""
        return self.decision.spent

    def __str__(self) -> str:
        said, spent = super().__str__(), self.spent
        return said if spent is None else f"{said}. This session is spent: {spent.way_on}"

    def __reduce__(self) -> tuple[Callable[..., Refused], tuple[object, ...]]:
        found = (list(self.because), tuple(self.allowed_next), self.spent)
        return _again, (type(self), self.code, self.place, found, self.tool)


class AlreadyDone(Refused):
    """The ledger has a call with this id: it is not made again.

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
    found: tuple[list[Reason], tuple[Allowed, ...], Spent | None],
    tool: str,
    *more: object,
) -> Refused:
    because, following, spent = found
    decision = Decision(Code(code), place, lambda: because, lambda: following, lambda: spent)
    error = kind(decision, tool)
    if isinstance(error, AlreadyDone) and len(more) == 2:
        error.seq, error.outcome = int(str(more[0])), str(more[1])
    return error


def _shown(text: str) -> str:
    """A name that came from outside, on one line and not too long."""
    return clip(text, 80) if text else ""
