"""The file of an account: an SQLite database in WAL, of one schema, and of nothing else.

Text: docs/budgets.md.  The file comes from outside: it is an account only if its schema is this
one, statement by statement, so that no trigger and no view of somebody else's runs here.  Whatever
SQLite says of it is one of four codes.  Each change is one transaction that is on the disk when it
returns.  Cost: some milliseconds of the disk for each transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic
from typing import Final

from tcc_certs.errors import Code, Rejected, ensure

APPLICATION: Final = 0x74636361  # "tcca"
VERSION: Final = 1
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
)

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
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = FULL")
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
    ensure(found == sorted(SCHEMA), Code.ACCOUNT_FORM, str(path), _WHAT, "other tables")


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
