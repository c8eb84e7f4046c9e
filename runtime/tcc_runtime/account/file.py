"""Reads and writes the file of an account: SQLite in WAL mode, one schema, sums and reservations.

Text: docs/budgets.md.  The file comes from outside: it is an account only if its schema is this
one, statement by statement, so that no foreign trigger or view ever runs here.  Whatever SQLite
reports becomes one of four codes.  Amounts are decimal texts, so that no number leaves the range
of an SQLite integer, and every value that is read is checked.  Each change is one transaction that
is on disk when it returns; row functions run inside a transaction of the caller.
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

# Rows: one with the sums, and one for each reservation.

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
    amounts: AccountAmounts
    took: AccountAmounts | None


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
    spent: AccountAmounts
    held: AccountAmounts

    @property
    def left(self) -> Remainder:
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
    database.execute("INSERT INTO windows VALUES (?, 0)", (token_hex(32),))


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


def write_sums(database: sqlite3.Connection, spent: AccountAmounts, held: AccountAmounts) -> None:
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
    took: AccountAmounts | None = None,
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
# SQLite looks less and less often whether a file is free, in the end every 100 ms, and first come
# is not first served: among many, one that has waited long would wait on.  So it is asked anew.
_LOOKING_MS = 20


def connect(path: Path, wait_ms: int) -> sqlite3.Connection:
    """A connection to the account that is at `path`.

    Args:
        wait_ms: how long a transaction waits for those of others.

    Raises:
        Rejected: K101 what is there is no account, K102 it is one of another version, K103 it
            cannot be opened, K104 it is locked for longer than that.
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
    """A new account at `path`, whole or not at all; one that is there by then stays as it is.

    Args:
        fill: writes its first row.

    Raises:
        Rejected: K103 it cannot be made there.
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
    """What is done in it is done wholly and alone, or not at all.

    Args:
        wait_ms: how long it waits for those of others.
        reading: nothing is changed in it: it sees the file as it is now, and nobody waits for it.

    Raises:
        Rejected: K101, K103, K104, as of :func:`coded`.
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
                connection.execute("SELECT id FROM account").fetchone()  # what is seen is as of now
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
    """What SQLite and the operating system say of a file, as a code.

    Raises:
        Rejected: K101 it is no account, or a damaged one, K103 it cannot be read or written, K104
            it is locked for too long.
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
