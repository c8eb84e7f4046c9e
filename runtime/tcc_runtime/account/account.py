"""An account that several runs, threads and processes draw on, and that is never overdrawn.

Text: docs/budgets.md.  Before a question is asked, its expected cost is *reserved* in one
transaction.  The reservation is granted only if the amounts spent and held leave room for it.  Then
the reservation is *begun*, the question is asked, and its cost is *settled*.  A reservation is a
lease.  If its time ends before it was begun, it is returned.  After it was begun it counts as spent
in full, until its holder settles it, because only the holder knows whether the question was
answered.

    spent + held <= cap

This always holds if no question costs more than was reserved for it.  The sums are stored, so the
cost of a transaction does not depend on the number of reservations.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tcc_certs.errors import Code, Rejected, require
from tcc_runtime.account import file
from tcc_runtime.account.amounts import NAMES, AccountAmounts, Remainder, caps_of, whole_cap

LEASE_MS: Final = 60_000
WAIT_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The answer to a wish for a reservation.

    Attributes:
        granted: whether the amounts are reserved.
        left: the remainder of each cap, after the reservation if it is granted.
    """

    granted: bool
    left: Remainder


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatement:
    """The content of an account.

    Attributes:
        sums: the caps, and the amounts spent and held.
        numbers: the number of reservations in each state.
    """

    sums: file.Sums
    numbers: Mapping[str, int]


class Account:
    """An account in a file, which is created if it does not exist.

    Args:
        path: the path of the file.
        price, latency_ms: the caps in cents and milliseconds; None: no cap.
        epsilon: the cap of epsilon, an exact decimal text of at most nine places; None: no cap.
            For an existing account, caps that are given must be its caps.
        lease_ms: how long a reservation lasts that is not begun or settled.  For an existing
            account, it must be its lease.
        wait_ms: how long a transaction waits for other transactions.
        clock: returns milliseconds; all users of the account need the same clock.
        must_exist: whether to refuse to create an account.

    Attributes:
        id: the id of the account, 64 hex digits.
        caps: the caps that it was created with.

    Raises:
        Rejected: K101: the file is no account.  K102: it has another version.  K103: it cannot be
            read or written.  K104: it is locked for too long.  K105: it has other caps.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        price: int | None = None,
        latency_ms: int | None = None,
        epsilon: str | None = None,
        lease_ms: int | None = None,
        wait_ms: int = WAIT_MS,
        clock: Callable[[], int] | None = None,
        must_exist: bool = False,
    ) -> None:
        self._connection: sqlite3.Connection | None = None
        self.path = Path(path)
        asked = caps_of(price, latency_ms, epsilon)
        lease, self._wait_ms = whole_cap("lease_ms", lease_ms), whole_cap("wait_ms", wait_ms) or 0
        self._clock = clock
        self._lock = threading.Lock()
        self._owner = 0
        if not must_exist and not self.path.exists():
            name, stands = os.urandom(32).hex(), LEASE_MS if lease is None else lease
            file.make(
                self.path, lambda database: file.insert_account(database, name, stands, asked)
            )
        with self.transaction(reading=True) as database:
            found = file.read_sums(database)
        self.id, self.caps = found.id, found.caps
        for field, expected, cap in zip(NAMES, asked, found.caps, strict=True):
            require(
                cap if expected is None else expected, cap, Code.ACCOUNT_CAPS, f"{path}: {field}"
            )
        expected = found.lease_ms if lease is None else lease
        require(expected, found.lease_ms, Code.ACCOUNT_CAPS, f"{path}: lease_ms")

    def __reduce__(self) -> tuple[Callable[[str, int], Account], tuple[str, int]]:
        if self._clock is not None:
            raise TypeError("an account with a clock of its own cannot be sent to a process")
        return _again, (str(self.path), self._wait_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Runs and gates share an account, and none of them closes it. So it is closed here: since
        # Python 3.13 SQLite warns about connections that were not closed.
        if getattr(self, "_connection", None) is not None:
            self.close()

    def close(self) -> None:
        """Close the file.  Reservations stay."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
                self._connection = None

    def reserve(self, reservation: str, run: str, amounts: AccountAmounts) -> Granted:
        """Reserve amounts, if they are left.

        An open reservation of this name belongs to an interrupted run that is resumed.  It is ended
        first: it counts as spent if its question was asked.  Then this is another attempt.

        Raises:
            Rejected: K101, K103, K104.
        """
        with self.transaction() as database:
            now = self._sweep(database)
            last = file.last_of(database, reservation)
            if last is not None and last.state in file.OPEN:
                _end(database, last)
            sums = file.read_sums(database)
            if not sums.left.holds(amounts):
                return Granted(granted=False, left=sums.left)
            row = file.Reservation(
                id=reservation,
                attempt=0 if last is None else last.attempt + 1,
                run=run,
                state="held",
                amounts=amounts,
                took=None,
            )
            file.insert(database, row, now + sums.lease_ms)
            held = sums.held.plus(amounts)
            file.write_sums(database, sums.spent, held)
            return Granted(granted=True, left=sums.caps.left(sums.spent.plus(held)))

    def begin(self, reservation: str) -> None:
        """Note that the question is about to be asked: from now on the reservation counts, whatever
        happens.

        Raises:
            Rejected: K106: its lease has ended, or no such reservation exists; K101, K103, K104.
        """
        with self.transaction() as database:
            now = self._sweep(database)
            row = _of_state(database, reservation, ("held",), "a reservation that is held")
            file.mark(database, row, "asking", now + file.read_sums(database).lease_ms)

    def settle(self, reservation: str, took: AccountAmounts) -> Remainder:
        """Replace the reserved amounts by the amounts that the question took.

        Returns:
            The remainder of each cap.

        Raises:
            Rejected: K106: the reservation was not begun, or was settled before; K101, K103, K104.
        """
        with self.transaction() as database:
            self._sweep(database)
            expected = "a reservation whose question was put"
            row = _of_state(database, reservation, ("asking", "lapsed"), expected)
            _move(database, row, "settled", took)
            return file.read_sums(database).left

    def give_back(self, reservation: str) -> None:
        """Return a reservation whose question was not asked.  Others are unchanged.

        Raises:
            Rejected: K101, K103, K104.
        """
        with self.transaction() as database:
            self._sweep(database)
            last = file.last_of(database, reservation)
            if last is not None and last.state == "held":
                _end(database, last)

    def statement(self) -> AccountStatement:
        """Return the content of the account, after adding up all reservations again.

        Raises:
            Rejected: K101: the sums differ from the stored ones; K103, K104.
        """
        numbers: Counter[str] = Counter()
        spent = held = AccountAmounts()
        with self.transaction() as database:
            self._sweep(database)
        # Reading all rows takes a while. A reading transaction lets others draw meanwhile.
        with self.transaction(reading=True) as database:
            sums = file.read_sums(database)
            for row in file.rows_of(database):
                numbers[row.state] += 1
                counts = row.amounts if row.took is None else row.took
                if row.state in file.OPEN:
                    held = held.plus(counts)
                elif row.state != "returned":
                    spent = spent.plus(counts)
        for name, expected, found in (("spent", spent, sums.spent), ("held", held, sums.held)):
            require(tuple(expected), tuple(found), Code.ACCOUNT_FORM, f"{self.path}: {name}")
        return AccountStatement(sums=sums, numbers={state: numbers[state] for state in file.STATES})

    def reservations(self, run: str) -> list[file.Reservation]:
        """Return the reservations of one run, with every attempt."""
        with self.transaction(reading=True) as database:
            return list(file.rows_of(database, "WHERE run = ? ORDER BY id, attempt", (run,)))

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        """Return a context manager with the open file, for changes that are made together or not at
        all.

        They are on the disk at the end of the block.

        Raises:
            Rejected: K101, K103, K104.
        """
        with self._lock:
            if self._connection is None or self._owner != os.getpid():
                # A connection belongs to the process that opened it. The copy in a fork is not
                # used.
                _LEFT_ALONE.append(self._connection)
                self._connection = file.connect(self.path, self._wait_ms)
                self._owner = os.getpid()
            with file.transaction(self._connection, self.path, self._wait_ms, reading=reading):
                yield self._connection

    def _sweep(self, database: sqlite3.Connection) -> int:
        """End the reservations whose lease is over; return the time."""
        now = time.time_ns() // 1_000_000 if self._clock is None else self._clock()
        for row in file.ended_of(database, now):
            _end(database, row)
        return now


# connections of parent processes are kept here, because closing one would drop its locks
_LEFT_ALONE: list[Any] = []


def _again(path: str, wait_ms: int) -> Account:
    return Account(path, wait_ms=wait_ms, must_exist=True)


def _of_state(
    database: sqlite3.Connection, name: str, states: tuple[str, ...], expected: str
) -> file.Reservation:
    last = file.last_of(database, name)
    if last is None or last.state not in states:
        found = "none of that name" if last is None else last.state
        raise Rejected(Code.ACCOUNT_LEASE, f"reservation {name}", expected, found)
    return last


def _end(database: sqlite3.Connection, row: file.Reservation) -> None:
    """End an open reservation without its holder: it is returned, or lapses if it was begun."""
    _move(database, row, "returned" if row.state == "held" else "lapsed")


def _move(
    database: sqlite3.Connection,
    row: file.Reservation,
    state: str,
    took: AccountAmounts | None = None,
) -> None:
    """Move a reservation from the sum of its state to the sum of its new state."""
    sums = file.read_sums(database)
    spent, held = sums.spent, sums.held
    if row.state in file.OPEN:
        held = held.less(row.amounts)
    else:
        spent = spent.less(row.amounts)
    if state != "returned":
        spent = spent.plus(row.amounts if took is None else took)
    file.write_sums(database, spent, held)
    file.mark(database, row, state, took=took)
