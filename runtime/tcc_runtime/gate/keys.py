"""The key and the nonce of a session: given by the owner, or kept in a file next to the ledger.

The key of a ledger NAME is in NAME.key, as 64 hexadecimal digits.  Only its owner may read this
file.  A person with the key can find short values from their digests.  Without the key a session
can be validated, but not continued.
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
    """Check the key that the caller passes, and return it; None for None.

    Raises:
        SettingsError: it is not 32 bytes.
    """
    if key is not None and (type(key) is not bytes or len(key) != _BYTES):
        raise SettingsError("key", "32 bytes", type(key).__name__)
    return key


def given_nonce(nonce: bytes | None) -> bytes | None:
    """Check the nonce that the caller passes, and return it; None for None.

    Raises:
        SettingsError: it is not 16 bytes.
    """
    if nonce is not None and (type(nonce) is not bytes or len(nonce) != NONCE_BYTES):
        raise SettingsError("nonce", "16 bytes", type(nonce).__name__)
    return nonce


def key_path(ledger: Path) -> Path:
    """Return the path of the key file of a ledger."""
    return ledger.with_name(f"{ledger.name}.key")


def read_key(ledger: Path) -> bytes:
    """Return the key of an existing ledger from its key file.

    Raises:
        ResumeError: the file is missing or malformed.
        LedgerError: the file cannot be read.
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
    """Return a key for a new ledger, and whether it was created now.

    An existing key file is used: the process that created it stopped before its first record.

    Args:
        durable: whether to wait until the key is on the disk.

    Raises:
        LedgerError: the file cannot be written.
        ResumeError: an existing file is malformed.
    """
    path = key_path(ledger)
    if path.exists():
        return read_key(ledger), False
    key = os.urandom(_BYTES)
    # The file is renamed when it is complete, so a killed process leaves no incomplete key. The
    # caller has the lock of the ledger, so only one process creates a key.
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
    """Remove the key file of a ledger that never began.  Errors are ignored."""
    with suppress(OSError):
        key_path(ledger).unlink(missing_ok=True)
