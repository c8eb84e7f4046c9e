"""The key and the nonce of a session: given by the owner, or kept in a file beside the ledger.

That file has the name of the ledger with ``.key`` behind it and 64 hexadecimal digits, and only its
owner may read it.  Who has the key can find values of low entropy from their digests; without it a
session can be validated, but not be gone on with.
Text: docs/gate.md; docs/spec/session.md, sections 1 and 2.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.ledger.outputs import sync_folder

_BYTES: Final = 32
NONCE_BYTES: Final = 16
_FORM: Final = re.compile(rb"([0-9a-f]{64})\n")
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def given_key(key: bytes | None) -> bytes | None:
    """The key that the caller gave.

    Raises:
        SettingsError: it is not 32 bytes.
    """
    if key is not None and (type(key) is not bytes or len(key) != _BYTES):
        raise SettingsError("key", "32 bytes", type(key).__name__)
    return key


def given_nonce(nonce: bytes | None) -> bytes | None:
    """The nonce that the caller gave.

    Raises:
        SettingsError: it is not 16 bytes.
    """
    if nonce is not None and (type(nonce) is not bytes or len(nonce) != NONCE_BYTES):
        raise SettingsError("nonce", "16 bytes", type(nonce).__name__)
    return nonce


def key_path(ledger: Path) -> Path:
    """Where the key of a ledger is kept."""
    return ledger.with_name(f"{ledger.name}.key")


def read_key(ledger: Path) -> bytes:
    """The key beside a ledger that is there.

    Raises:
        ResumeError: there is none, or the file is no key.
        LedgerError: it cannot be read.
    """
    path = key_path(ledger)
    try:
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise LedgerError(str(path), error) from error
    found = None if data is None else _FORM.fullmatch(data)
    if found is None:
        raise ResumeError(str(path), "64 hexadecimal digits", "none")
    return bytes.fromhex(found[1].decode())


def new_key(ledger: Path, *, durable: bool) -> tuple[bytes, bool]:
    """A key for a new ledger, on disk before the ledger names it, and whether it was made now.

    One that is there already stays: the process that made it was stopped before its first record.

    Args:
        durable: whether the disk is waited for.

    Raises:
        LedgerError: it cannot be written.
        ResumeError: something that is no key has its name.
    """
    path = key_path(ledger)
    if path.exists():
        return read_key(ledger), False
    key = os.urandom(_BYTES)
    # A file with the whole key or none: a process that is killed on the way leaves nothing that
    # another takes for a key. Whoever makes one has the lock of the ledger.
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        handle = os.open(beside, _NEW, 0o600)
        try:
            os.write(handle, f"{key.hex()}\n".encode())
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        beside.rename(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise LedgerError(str(path), error) from error
    if durable:
        sync_folder(path.parent)
    return key, True


def remove_key(ledger: Path) -> None:
    """Takes back the key of a ledger that was never begun; what the system refuses stays."""
    with suppress(OSError):
        key_path(ledger).unlink(missing_ok=True)
