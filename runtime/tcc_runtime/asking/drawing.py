"""What a run draws on an account that others draw on too.

Text: docs/spec/race.md, section 19; docs/budgets.md.  Each wish of a run has a name that follows
from the account, the run and its number, so a run that is taken up again finds its own.
Cost: three transactions of the account a question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.hashes import blake
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import Amounts, Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What came of a wish.

    Attributes:
        name: of the reservation.
        granted: whether it is reserved.
        left: what is left of each cap of the account.
    """

    name: str
    granted: bool
    left: Left


def reservation_name(account: str, run: str, number: int) -> str:
    """The name of the wish of that number, of a run or a session."""
    named = bytes.fromhex(account) + run.encode()
    return blake(b"tcc.reservation.v1\0" + named + number.to_bytes(8, "big")).hex()


class Drawing(Protocol):
    """Draws for one run."""

    def wish(self, amounts: Amounts) -> Wish:
        """Reserves what a question is expected to take."""

    def begin(self) -> None:
        """The question is put now."""

    def settle(self, took: Amounts) -> Left:
        """It took that; what is left."""


class Drawn:
    """Draws on an account.

    Args:
        run: the identity of the run.
    """

    def __init__(self, account: Account, run: str) -> None:
        self.account = account
        self._run = run
        self._wishes = 0
        self._name = ""

    def next_name(self) -> str:
        """The name of the next wish."""
        self._wishes += 1
        self._name = reservation_name(self.account.id, self._run, self._wishes)
        return self._name

    def wish(self, amounts: Amounts) -> Wish:
        """See :class:`Drawing`."""
        return self.reserve(self.next_name(), amounts)

    def reserve(self, name: str, amounts: Amounts) -> Wish:
        """Holds that much under that name."""
        found = self.account.reserve(name, self._run, amounts)
        return Wish(name=name, granted=found.granted, left=found.left)

    def begin(self) -> None:
        """See :class:`Drawing`."""
        self.account.begin(self._name)

    def settle(self, took: Amounts) -> Left:
        """See :class:`Drawing`."""
        return self.account.settle(self._name, took)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a ledger has of an account: in a `budget` or a `refine` record.

    Attributes:
        event: ``reserve``, ``refused`` or ``refine``.
    """

    event: str
    left: Left


class Redrawn:
    """Draws what a ledger has already, without the account, and then on it.

    Args:
        drawn: where the ledger ends.
        told: what it has, in order.
    """

    def __init__(self, drawn: Drawn, told: Sequence[Told]) -> None:
        self._drawn = drawn
        self._told: Iterator[Told] = iter(told)
        self._last = len(told)
        self._met = 0
        self._real = False

    def _next(self) -> Told | None:
        found = next(self._told, None)
        self._met += found is not None
        return found

    def wish(self, amounts: Amounts) -> Wish:
        """See :class:`Drawing`.

        Raises:
            Rejected: K106 a question of the ledger has to be put again, and the account has too
                little left for it.
        """
        told, name = self._next(), self._drawn.next_name()
        self._real = told is None or (self._met == self._last and told.event == "reserve")
        if not self._real and told is not None:
            return Wish(name=name, granted=told.event == "reserve", left=told.left)
        found = self._drawn.reserve(name, amounts)
        if told is None:
            return found
        if not found.granted:
            expected = "as much left as the question takes that has to be put again"
            raise Rejected(Code.ACCOUNT_LEASE, f"reservation {name}", expected, tuple(found.left))
        return Wish(name=name, granted=True, left=told.left)

    def begin(self) -> None:
        """See :class:`Drawing`."""
        if self._real:
            self._drawn.begin()

    def settle(self, took: Amounts) -> Left:
        """See :class:`Drawing`."""
        told = self._next()
        return self._drawn.settle(took) if told is None else told.left
