"""An account that several runs, threads and processes draw on, and that is never overdrawn.

Text: docs/budgets.md.  Before a question is put, what it is expected to take is *reserved*, in one
transaction: it is granted only where all that was spent and all that is held leave room for it.
Then the reservation is *begun*, the question put, and what it took *settled*.  A reservation is a
lease.  One whose time ends before it was begun goes back; one that was begun counts as spent in
full, until its holder settles it: whether its question was answered nobody else can know.

    spent + held <= cap      always, where no question takes more than was reserved for it

Sums are kept beside the rows, so a transaction costs the same however many there were.
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
    """What an account says to a wish.

    Attributes:
        granted: whether it is reserved.
        left: what is left after it; where it is not granted, what there is.
    """

    granted: bool
    left: Remainder


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStatement:
    """What is in an account.

    Attributes:
        sums: caps, what was spent, what is held.
        numbers: of reservations, by state.
    """

    sums: file.Sums
    numbers: Mapping[str, int]


class Account:
    """An account in a file; where there is none, one is made.

    Args:
        path: of the file.
        price, latency_ms: the most cents and milliseconds; None is no cap.
        epsilon: the most epsilon, an exact decimal of at most nine places; None is no cap.  Of an
            account that is there, what is given has to be what it was made with.
        lease_ms: how long a reservation stands that nobody begins or settles; of a new account.
        wait_ms: how long a transaction waits for those of others.
        clock: milliseconds, the same for all who draw on the account.
        must_exist: do not make one.

    Attributes:
        id: of the account, 64 hex digits.
        caps: as it was made.

    Raises:
        Rejected: K101 what is there is no account; K102 it is of another version; K103 it cannot be
            read or written; K104 it is locked for too long; K105 it has other caps.
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
        # Runs and gates share an account and none of them ends it, so its last reader does: since
        # Python 3.13 SQLite warns of a connection that nobody closed.
        if getattr(self, "_connection", None) is not None:
            self.close()

    def close(self) -> None:
        """Lets go of the file; whatever is reserved stays so."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
                self._connection = None

    def reserve(self, reservation: str, run: str, amounts: AccountAmounts) -> Granted:
        """Holds `amounts`, where they are left.

        One of that name that is there belongs to a run that was cut off and is resumed: if
        its question was put, that counts as spent, and this is one more.

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
        """From here on the question may be put: the reservation counts, whatever happens.

        Raises:
            Rejected: K106 its lease has ended, or there is none; K101, K103, K104.
        """
        with self.transaction() as database:
            now = self._sweep(database)
            row = _of_state(database, reservation, ("held",), "a reservation that is held")
            file.mark(database, row, "asking", now + file.read_sums(database).lease_ms)

    def settle(self, reservation: str, took: AccountAmounts) -> Remainder:
        """Puts what a question took in the place of what was reserved for it; what is left.

        Raises:
            Rejected: K106 it was not begun, or settled before; K101, K103, K104.
        """
        with self.transaction() as database:
            self._sweep(database)
            expected = "a reservation whose question was put"
            row = _of_state(database, reservation, ("asking", "lapsed"), expected)
            _move(database, row, "settled", took)
            return file.read_sums(database).left

    def give_back(self, reservation: str) -> None:
        """Ends a reservation whose question was not put and will not be.

        Raises:
            Rejected: K101, K103, K104.
        """
        with self.transaction() as database:
            self._sweep(database)
            last = file.last_of(database, reservation)
            if last is not None and last.state == "held":
                _end(database, last)

    def statement(self) -> AccountStatement:
        """What is in the account now; its sums are made again, from all of its reservations.

        Raises:
            Rejected: K101 they are not those that it has; K103, K104.
        """
        numbers: Counter[str] = Counter()
        spent = held = AccountAmounts()
        with self.transaction() as database:
            self._sweep(database)
        # All of them take a while to read, in which others may draw.
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
        """Those of one run, every attempt of each."""
        with self.transaction(reading=True) as database:
            return list(file.rows_of(database, "WHERE run = ? ORDER BY id, attempt", (run,)))

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        """The file, for changes that are made together and are on the disk then, or not at all.

        Raises:
            Rejected: K101, K103, K104.
        """
        with self._lock:
            if self._connection is None or self._owner != os.getpid():
                # A connection is of the process that made it; what a fork has copied is let alone.
                _LEFT_ALONE.append(self._connection)
                self._connection = file.connect(self.path, self._wait_ms)
                self._owner = os.getpid()
            with file.transaction(self._connection, self.path, self._wait_ms, reading=reading):
                yield self._connection

    def _sweep(self, database: sqlite3.Connection) -> int:
        """Ends what is over; the time."""
        now = time.time_ns() // 1_000_000 if self._clock is None else self._clock()
        for row in file.ended_of(database, now):
            _end(database, row)
        return now


_LEFT_ALONE: list[Any] = []  # connections of other processes: closing one would drop their locks


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
    """Ends an open reservation without its holder."""
    _move(database, row, "returned" if row.state == "held" else "lapsed")


def _move(
    database: sqlite3.Connection,
    row: file.Reservation,
    state: str,
    took: AccountAmounts | None = None,
) -> None:
    """Takes a reservation out of the sum that it is in, and into that of its new state."""
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
