"""The file of an account: SQLite in WAL mode with a fixed schema, sums and reservations.

Text: docs/budgets.md.  A file from elsewhere is an account only if its schema is equal to this one,
statement by statement.  So no foreign trigger or view ever runs.  Errors of SQLite become one of
four codes.  Amounts are decimal texts, so they cannot leave the range of an SQLite integer.  Every
value that is read is checked.  Each change is one transaction, which is on the disk when it
returns.  Functions for rows run inside a transaction of the caller.
Cost: some milliseconds of the disk for each transaction; a look-up by key for each row.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, ensure
from tcc_runtime.account.amounts import NAMES, AccountAmounts, Caps, Remainder

# Rows: one row with the sums, and a row for each reservation.

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
    """The row of a reservation.

    Attributes:
        id, attempt: the id of the question, and the number of earlier attempts.
        run: the id of the run that asks it.
        state: ``held``, ``asking``, ``settled``, ``lapsed`` (asked, but its holder never settled
            it) or ``returned``.
        amounts: the reserved amounts.
        took: the amounts that the question took; None: not reported.
    """

    id: str
    attempt: int
    run: str
    state: str
    amounts: AccountAmounts
    took: AccountAmounts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The row of the account itself.

    Attributes:
        id: the id of the account, 64 hex digits.
        lease_ms: how long a reservation lasts, in milliseconds.
        spent, held: the amounts of settled and lapsed reservations, and of open ones.
    """

    id: str
    lease_ms: int
    caps: Caps
    spent: AccountAmounts
    held: AccountAmounts

    @property
    def left(self) -> Remainder:
        """The amounts that can still be reserved."""
        return self.caps.left(self.spent.plus(self.held))


def insert_account(database: sqlite3.Connection, name: str, lease_ms: int, caps: Caps) -> None:
    """Insert the row of a new account, of which nothing was spent."""
    texts = [None if cap is None else str(cap) for cap in caps]
    database.execute(
        f"INSERT INTO account (id, lease_ms, {_CAPPED}, {_SPENT}, {_HELD}) "
        "VALUES (?, ?, ?, ?, ?, '0', '0', '0', '0', '0', '0')",
        (name, lease_ms, *texts),
    )
    database.execute("INSERT INTO windows VALUES (?, 0)", (token_hex(32),))


def read_sums(database: sqlite3.Connection) -> Sums:
    """Return the caps and sums of an account.

    Raises:
        Rejected: K101: a value is invalid.
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


def write_sums(database: sqlite3.Connection, spent: AccountAmounts, held: AccountAmounts) -> None:
    """Write the two sums of an account."""
    database.execute(
        f"UPDATE account SET ({_SPENT}, {_HELD}) = (?, ?, ?, ?, ?, ?)",
        tuple(map(str, (*spent, *held))),
    )


def insert(database: sqlite3.Connection, row: Reservation, until_ms: int) -> None:
    """Insert a new reservation."""
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
    took: AccountAmounts | None = None,
) -> None:
    """Set the state of a reservation, and the amounts that its question took if they are known."""
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
    """Return the last attempt of a reservation, or None."""
    found = rows_of(database, "WHERE id = ? ORDER BY attempt DESC LIMIT 1", (name,))
    return next(found, None)


def ended_of(database: sqlite3.Connection, now: int) -> list[Reservation]:
    """Return the open reservations whose lease is over."""
    # The condition is written as in the index, so that SQLite uses the index.
    return list(rows_of(database, "WHERE state IN ('held', 'asking') AND until_ms <= ?", (now,)))


def rows_of(
    database: sqlite3.Connection, where: str = "", values: Sequence[object] = ()
) -> Iterator[Reservation]:
    """Yield reservations.

    Raises:
        Rejected: K101: a value is invalid.
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


def _amounts(row: Sequence[object]) -> AccountAmounts:
    return AccountAmounts(*(_whole(item, name) for name, item in zip(NAMES, row, strict=True)))


def _whole(value: object, name: str) -> int:
    text = str(value) if isinstance(value, int | str) else ""
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    ensure(plain, Code.ACCOUNT_FORM, name, "an integer of at least 0", value)
    return int(text)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Rejected(Code.ACCOUNT_FORM, name, "a text", value)
    return value


APPLICATION: Final = 0x74636361  # "tcca"
VERSION: Final = 2
SCHEMA: Final = (
    """CREATE TABLE account (
    id TEXT NOT NULL, lease_ms INTEGER NOT NULL,
    cap_price TEXT, cap_latency_ms TEXT, cap_epsilon TEXT,
    spent_price TEXT NOT NULL, spent_latency_ms TEXT NOT NULL, spent_epsilon TEXT NOT NULL,
    held_price TEXT NOT NULL, held_latency_ms TEXT NOT NULL, held_epsilon TEXT NOT NULL
)""",
    """CREATE TABLE reservation (
    id TEXT NOT NULL, attempt INTEGER NOT NULL, run TEXT NOT NULL, state TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    price TEXT NOT NULL, latency_ms TEXT NOT NULL, epsilon TEXT NOT NULL,
    took_price TEXT, took_latency_ms TEXT, took_epsilon TEXT,
    PRIMARY KEY (id, attempt)
) WITHOUT ROWID""",
    """CREATE INDEX live ON reservation (until_ms) WHERE state IN ('held', 'asking')""",
    """CREATE TABLE windows (secret TEXT NOT NULL, last_ms INTEGER NOT NULL)""",
    """CREATE TABLE use (
    number INTEGER PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, at_ms INTEGER NOT NULL,
    amount TEXT NOT NULL, state TEXT NOT NULL
)""",
    """CREATE INDEX use_of_call ON use (session, seq, attempt)""",
    """CREATE INDEX use_of_key ON use (name, key, at_ms)""",
    """CREATE TABLE tally (
    name TEXT NOT NULL, key TEXT NOT NULL, within INTEGER NOT NULL, since_ms INTEGER NOT NULL,
    total TEXT NOT NULL, PRIMARY KEY (name, key, within)
) WITHOUT ROWID""",
)
_TABLES: Final = sorted(SCHEMA)

_WHAT = "an account: a file that `tcc account create` has made"
_LOCKED = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"}
_CLOSED = {"SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"}
_FULL = {"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM"}
# SQLite polls a locked file at growing intervals up to 100 ms, and does not serve waiters in order.
# If many wait, the oldest waiter would wait even longer. So the statement is tried again often.
_LOOKING_MS = 20


def connect(path: Path, wait_ms: int) -> sqlite3.Connection:
    """Open the account at `path`; return the connection.

    Args:
        wait_ms: how long a transaction waits for other transactions.

    Raises:
        Rejected: K101: the file is no account.  K102: it has another version.  K103: it cannot be
            opened.  K104: it is locked for longer than `wait_ms`.
    """
    with coded(path):
        if not path.is_file():
            found = "no regular file" if path.exists() else "nothing"
            raise Rejected(Code.ACCOUNT_FORM, str(path), _WHAT, found)
        connection = _open(path, wait_ms)
        try:
            _hold_to_schema(connection, path)
            connection.execute(f"PRAGMA busy_timeout = {min(wait_ms, _LOOKING_MS)}")
        except BaseException:
            connection.close()
            raise
        return connection


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Create an account at `path`, completely or not at all.  An account that exists by then is
    kept.

    Args:
        fill: inserts its first rows.

    Raises:
        Rejected: K103: the file cannot be created.
    """
    beside = path.with_name(f".{path.name}.{token_hex(8)}.new")
    with coded(path):
        try:
            connection = _open(beside, 0)
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                with transaction(connection, path, 0):
                    _lay_out(connection)
                    fill(connection)
            finally:
                connection.close()
            with suppress(FileExistsError):
                os.link(beside, path)
        finally:
            beside.unlink(missing_ok=True)


def _open(path: Path, wait_ms: int) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=wait_ms / 1000, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _lay_out(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _hold_to_schema(connection: sqlite3.Connection, path: Path) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    ensure(application == APPLICATION, Code.ACCOUNT_FORM, str(path), _WHAT, "another database")
    known = f"version {VERSION}"
    ensure(version == VERSION, Code.ACCOUNT_VERSION, str(path), known, f"version {version}")
    listed = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' LIMIT 99"
    found = sorted(str(row[0]) for row in connection.execute(listed))
    ensure(found == _TABLES, Code.ACCOUNT_FORM, str(path), _WHAT, "other tables")


@contextmanager
def transaction(
    connection: sqlite3.Connection, path: Path, wait_ms: int, *, reading: bool = False
) -> Iterator[None]:
    """Run the block as one isolated transaction: all its changes are made, or none.

    Args:
        wait_ms: how long it waits for other transactions.
        reading: whether the block only reads.  It then sees the file as it is now, and blocks no
            other transaction.

    Raises:
        Rejected: K101, K103, K104: see :func:`coded`.
    """
    with coded(path):
        _begin(connection, wait_ms, reading)
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def _begin(connection: sqlite3.Connection, wait_ms: int, reading: bool) -> None:
    until = monotonic() + wait_ms / 1000
    while True:
        try:
            if reading:
                connection.execute("BEGIN")
                # fixes the snapshot that the transaction reads
                connection.execute("SELECT id FROM account").fetchone()
            else:
                connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not _is_locked(error) or monotonic() >= until:
                raise
        else:
            return


def _is_locked(error: sqlite3.Error) -> bool:
    return _family(error) in _LOCKED


def _family(error: sqlite3.Error) -> str:
    return "_".join(str(getattr(error, "sqlite_errorname", "")).split("_")[:2])


@contextmanager
def coded(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system about a file into Rejected.

    Raises:
        Rejected: K101: the file is no account, or is damaged.  K103: it cannot be read or written.
            K104: it is locked for too long.
    """
    try:
        yield
    except sqlite3.Error as error:
        family = _family(error)
        if _is_locked(error):
            expected = "to be free within the time that is waited"
            raise Rejected(
                Code.ACCOUNT_LOCKED, str(path), expected, "another process locks it"
            ) from None
        if family in _CLOSED or family in _FULL:
            expected = "a file that can be read and written, in a folder that can be written"
            raise Rejected(Code.ACCOUNT_CLOSED, str(path), expected, error) from None
        raise Rejected(Code.ACCOUNT_FORM, str(path), _WHAT, error) from None
    except OSError as error:
        found = error.strerror or os.strerror(error.errno or 0)
        expected = "a file that can be read and written"
        raise Rejected(Code.ACCOUNT_CLOSED, str(path), expected, found) from None
