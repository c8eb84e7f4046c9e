"""Reservations of a run on a shared account, and answers that its ledger already has.

Text: docs/spec/race.md, sections 17 and 19; docs/budgets.md.  The name of a run's request follows
from the account, the run and the request's number.  So a resumed run finds its own reservations.
It does not ask again for answers in its ledger.
Cost: three transactions of the account for a question; memory for one answer each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, blake
from tcc_certs.policy.atoms import Atom, canonical_atom
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts, Remainder
from tcc_runtime.errors import AnswerError, ResumeError
from tcc_runtime.pricing.quotes import Answer, Question, Quoter, nano


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Result of a wish: granted or refused.

    Attributes:
        name: of the reservation.
        granted: True if the amounts are reserved.
        left: the remainder of each cap of the account.
    """

    name: str
    granted: bool
    left: Remainder


def reservation_name(account: str, run: str, number: int) -> str:
    """Return the name of the wish with that number, of a run or a session."""
    named = bytes.fromhex(account) + run.encode()
    return blake(b"tcc.reservation.v1\0" + named + number.to_bytes(8, "big")).hex()


class Drawing(Protocol):
    """Reserves and settles amounts for one run."""

    def wish(self, amounts: AccountAmounts) -> Wish:
        """Reserve the expected amounts of a question."""

    def begin(self) -> None:
        """Record that the question is asked now."""

    def settle(self, took: AccountAmounts) -> Remainder:
        """Record the amounts that the question took, and return the remainder."""


class Drawn:
    """Reserves and settles amounts on an account.

    Args:
        run: the identity of the run.
    """

    def __init__(self, account: Account, run: str) -> None:
        self.account = account
        self._run = run
        self._wishes = 0
        self._name = ""

    def next_name(self) -> str:
        """Return the name of the next wish."""
        self._wishes += 1
        self._name = reservation_name(self.account.id, self._run, self._wishes)
        return self._name

    def wish(self, amounts: AccountAmounts) -> Wish:
        """See :class:`Drawing`."""
        return self.reserve(self.next_name(), amounts)

    def reserve(self, name: str, amounts: AccountAmounts) -> Wish:
        """Reserve `amounts` under `name`."""
        found = self.account.reserve(name, self._run, amounts)
        return Wish(name=name, granted=found.granted, left=found.left)

    def begin(self) -> None:
        """See :class:`Drawing`."""
        self.account.begin(self._name)

    def settle(self, took: AccountAmounts) -> Remainder:
        """See :class:`Drawing`."""
        return self.account.settle(self._name, took)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An account event of a ledger, from a `budget` or a `refine` record.

    Attributes:
        event: ``reserve``, ``refused`` or ``refine``.
        left: the remainder of each cap after the event.
    """

    event: str
    left: Remainder


class Redrawn:
    """Returns the account events of a ledger first, without the account, and then uses the account.

    Args:
        drawn: used after the last event of the ledger.
        told: the events of the ledger, in order.
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

    def wish(self, amounts: AccountAmounts) -> Wish:
        """See :class:`Drawing`.

        Raises:
            Rejected: K106, a question of the ledger has to be asked again, and the remainder of the
                account is too small for it.
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

    def settle(self, took: AccountAmounts) -> Remainder:
        """See :class:`Drawing`."""
        told = self._next()
        return self._drawn.settle(took) if told is None else told.left


# Answers that a ledger has already.


class RecordedAnswers:
    """A quoter that first gives the answers of a ledger, in order, and then asks `quoter`.

    A resumed run is the same run, so it asks the same questions.  The answers of another run would
    contradict the ledger.
    """

    def __init__(self, answers: Sequence[Answer], quoter: Quoter | None) -> None:
        self._answers = iter(answers)
        self._quoter = quoter

    def __call__(self, question: Question, /) -> Answer | None:
        """Return the next answer.

        Raises:
            ResumeError: the ledger has no further answer, and the caller gave no quoter.
        """
        known = next(self._answers, None)
        if known is not None:
            return known
        if self._quoter is None:
            raise ResumeError("quotes", f"somebody to ask for {question.call}", "nobody")
        return self._quoter(question)


def told_of(record: Mapping[str, Json], line: int) -> Told:
    """Return the account event of the `budget` or `refine` record on `line`.

    Raises:
        ResumeError: the record's amounts are invalid.
    """
    left = left_in(record["account_left"], line)
    return Told(event=str(record.get("budget_event", "refine")), left=left)


def left_in(stated: Any, line: int) -> Remainder:
    """Return the remainder in the member `account_left` of the record on `line`.

    Raises:
        ResumeError: its amounts are invalid.
    """
    try:
        return Remainder(
            **{
                name: nano(number, name) if name == "epsilon" else int(number)
                for name, number in stated.items()
            }
        )
    except (AnswerError, ValueError):
        raise ResumeError(f"line {line}: account_left", "amounts", stated) from None


def answer_of(record: Mapping[str, Json], line: int) -> Answer:
    """Return the answer in the `refine` record on `line`.

    Raises:
        ResumeError: the record has no valid answer.
    """
    try:
        ends = [
            nano(str(record[name]), name) for name in ("cost_low", "cost_high") if name in record
        ]
        return Answer(
            low=ends[0] if ends else None,
            high=ends[-1] if len(ends) == 2 else None,
            latency_ms=int(str(record["latency"])),
            price=int(str(record["price"])),
            epsilon=nano(str(record["epsilon"]), "epsilon"),
            atom=_atom(record),
        )
    except AnswerError as error:
        raise ResumeError(f"line {line}: {error.field}", error.expected, error.found) from None
    except Rejected as refusal:
        path = f"line {line}: {refusal.path}"
        raise ResumeError(path, refusal.expected, refusal.found) from None


def _atom(record: Mapping[str, Json]) -> Atom | None:
    stated = record.get("atom")
    return None if stated is None else canonical_atom(stated, "atom", Code.LEDGER_SCHEMA)
