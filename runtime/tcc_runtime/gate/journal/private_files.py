"""Files of a store: only their owner may access them, none is a link, and none is incomplete.

If other users could have opened or placed a file, it is refused before its content is read.  A new
file is written under another name, synced and renamed.  So a process that is killed leaves the old
file or none.
Text: docs/sessions.md.
Cost: a look at a file, and reading or writing its content.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Final

from tcc_runtime.errors import ResumeError
from tcc_runtime.ledger.outputs import sync_folder

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC: Final = getattr(os, "O_CLOEXEC", 0)
_PRIVATE: Final = _NO_LINK | getattr(os, "O_NONBLOCK", 0)
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _CLOEXEC


def open_private(path: Path, flags: int) -> int:
    """Open an existing file of a store; return the handle.

    Raises:
        ResumeError: the file is missing, is a link or no regular file, belongs to another user, or
            is open to others.
        OSError: the file cannot be opened.
    """
    expected = "a file of this store"
    try:
        handle = os.open(path, flags | _PRIVATE | _CLOEXEC)
    except FileNotFoundError:
        raise ResumeError(str(path), expected, "none") from None
    except OSError as error:
        if path.is_symlink():
            raise ResumeError(str(path), expected, "a link") from None
        raise error
    try:
        check_private(path, os.fstat(handle), folder=False)
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_private(path: Path, found: os.stat_result, *, folder: bool) -> None:
    """Require that a file or folder of a store belongs to this user, and is closed to others.

    Raises:
        ResumeError: otherwise.
    """
    kind, name = (stat.S_ISDIR, "a folder") if folder else (stat.S_ISREG, "a regular file")
    if not kind(found.st_mode):
        raise ResumeError(str(path), name, "something else")
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise ResumeError(str(path), f"{name} of this user", f"one of user {found.st_uid}")
    if found.st_mode & 0o077:
        mode = "700" if folder else "600"
        said = f"{name} that its owner alone may open (chmod {mode})"
        raise ResumeError(str(path), said, oct(stat.S_IMODE(found.st_mode)))


def check_folder(folder: Path) -> None:
    """Require a folder that is no link, belongs to this user, and is closed to others.

    Raises:
        ResumeError: otherwise.
    """
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        raise ResumeError(str(folder), "a store", "none") from None
    check_private(folder, found, folder=True)


def bytes_of(path: Path, most: int) -> bytes:
    """Return the content of a file of a store, at most `most` + 1 bytes.

    A result longer than `most` means that the file is too large.

    Raises:
        ResumeError, OSError: see :func:`open_private`.
    """
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        return file.read(most + 1)


def put_whole(
    path: Path,
    data: bytes | memoryview,
    *,
    durable: bool,
    beside: Path | None = None,
    mode: int = 0o600,
) -> None:
    """Write a whole file: it gets its name after all of it was written.

    Args:
        beside: the temporary path, used by one writer at a time; None: `.new` in the same folder.
    """
    beside = path.with_name(".new") if beside is None else beside
    beside.unlink(missing_ok=True)
    handle = os.open(beside, NEW, mode)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)
    beside.replace(path)
    if durable:
        sync_folder(path.parent)
