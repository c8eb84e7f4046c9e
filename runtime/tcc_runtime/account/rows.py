"""The rows of an account: one with its sums, and one for each reservation.

Amounts stand as decimal texts, so that no number of anybody leaves the range of an integer of
SQLite; whatever is read is held to its form.  All of this is within a transaction of the caller.
Cost: a look-up by the key of a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, ensure
from tcc_runtime.account.amounts import NAMES, Amounts, Caps, Left

STATES: Final = ("held", "asking", "settled", "lapsed", "returned")
OPEN: Final = ("held", "asking")
_CAPPED = ", ".join(f"cap_{name}" for name in NAMES)
_SPENT = ", ".join(f"spent_{name}" for name in NAMES)
_HELD = ", ".join(f"held_{name}" for name in NAMES)
_RESERVED = ", ".join(NAMES)
_TOOK = ", ".join(f"took_{name}" for name in NAMES)
_MOST_DIGITS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A row.

    Attributes:
        id, attempt: of the question, and how often it was reserved for before.
        run: whose it is.
        state: ``held``, ``asking``, ``settled``, ``lapsed`` (asked, and its holder never came
            back) or ``returned``.
        amounts: what was reserved.
        took: what it took; None where nobody has said so.
    """

    id: str
    attempt: int
    run: str
    state: str
    amounts: Amounts
    took: Amounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The row of the account itself.

    Attributes:
        id: 64 hex digits.
        lease_ms: how long a reservation stands.
        spent: by settled and lapsed reservations; held: by those that are open.
    """

    id: str
    lease_ms: int
    caps: Caps
    spent: Amounts
    held: Amounts

    @property
    def left(self) -> Left:
        """What may still be reserved."""
        return self.caps.left(self.spent.plus(self.held))


def insert_account(database: sqlite3.Connection, name: str, lease_ms: int, caps: Caps) -> None:
    """A new account, of which nothing was spent."""
    texts = [None if cap is None else str(cap) for cap in caps]
    database.execute(
        f"INSERT INTO account (id, lease_ms, {_CAPPED}, {_SPENT}, {_HELD}) "
        "VALUES (?, ?, ?, ?, ?, '0', '0', '0', '0', '0', '0')",
        (name, lease_ms, *texts),
    )


def read_sums(database: sqlite3.Connection) -> Sums:
    """Caps and sums.

    Raises:
        Rejected: K101 a value is none of an account's.
    """
    chosen = f"SELECT id, lease_ms, {_CAPPED}, {_SPENT}, {_HELD} FROM account LIMIT 2"
    found = database.execute(chosen).fetchall()
    ensure(len(found) == 1, Code.ACCOUNT_FORM, "account", "one row", len(found))
    row = found[0]
    return Sums(
        id=_text(row[0], "id"),
        lease_ms=_whole(row[1], "lease_ms"),
        caps=Caps(*(None if cap is None else _whole(cap, "cap") for cap in row[2:5])),
        spent=_amounts(row[5:8]),
        held=_amounts(row[8:11]),
    )


def write_sums(database: sqlite3.Connection, spent: Amounts, held: Amounts) -> None:
    """The two sums of an account."""
    database.execute(
        f"UPDATE account SET ({_SPENT}, {_HELD}) = (?, ?, ?, ?, ?, ?)",
        tuple(map(str, (*spent, *held))),
    )


def insert(database: sqlite3.Connection, row: Reservation, until_ms: int) -> None:
    """A new reservation."""
    database.execute(
        f"INSERT INTO reservation (id, attempt, run, state, until_ms, {_RESERVED}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (row.id, row.attempt, row.run, row.state, until_ms, *map(str, row.amounts)),
    )


def mark(
    database: sqlite3.Connection,
    row: Reservation,
    state: str,
    until_ms: int = 0,
    took: Amounts | None = None,
) -> None:
    """Gives a reservation another state, and what it took, where that is known now."""
    key = (row.id, row.attempt)
    database.execute(
        "UPDATE reservation SET state = ?, until_ms = ? WHERE id = ? AND attempt = ?",
        (state, until_ms, *key),
    )
    if took is not None:
        database.execute(
            f"UPDATE reservation SET ({_TOOK}) = (?, ?, ?) WHERE id = ? AND attempt = ?",
            (*map(str, took), *key),
        )


def last_of(database: sqlite3.Connection, name: str) -> Reservation | None:
    """The last attempt of a reservation; None where there is none."""
    found = rows_of(database, "WHERE id = ? ORDER BY attempt DESC LIMIT 1", (name,))
    return next(found, None)


def ended_of(database: sqlite3.Connection, now: int) -> list[Reservation]:
    """Open reservations whose lease is over."""
    # Written as the index has it, so that it is what is looked into.
    return list(rows_of(database, "WHERE state IN ('held', 'asking') AND until_ms <= ?", (now,)))


def rows_of(
    database: sqlite3.Connection, where: str = "", values: Sequence[object] = ()
) -> Iterator[Reservation]:
    """Reservations, one at a time.

    Raises:
        Rejected: K101 a value is none of a reservation's.
    """
    chosen = f"SELECT id, attempt, run, state, {_RESERVED}, {_TOOK} FROM reservation {where}"
    for row in database.execute(chosen, values):
        yield _reservation(row)


def _reservation(row: Sequence[Any]) -> Reservation:
    name, attempt, run, state, *amounts = row
    ensure(state in STATES, Code.ACCOUNT_FORM, "state", " or ".join(STATES), state)
    took = amounts[3:]
    return Reservation(
        id=_text(name, "id"),
        attempt=_whole(attempt, "attempt"),
        run=_text(run, "run"),
        state=state,
        amounts=_amounts(amounts[:3]),
        took=None if took == [None, None, None] else _amounts(took),
    )


def _amounts(row: Sequence[object]) -> Amounts:
    return Amounts(*(_whole(item, name) for name, item in zip(NAMES, row, strict=True)))


def _whole(value: object, name: str) -> int:
    text = str(value) if isinstance(value, int | str) else ""
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    ensure(plain, Code.ACCOUNT_FORM, name, "an integer of at least 0", value)
    return int(text)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Rejected(Code.ACCOUNT_FORM, name, "a text", value)
    return value
