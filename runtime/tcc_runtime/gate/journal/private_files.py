"""Files of a store: their owner's alone, no links, and whole or not there.

A file that others could have opened, or put there, is no file of a store: it is refused before
anything in it is read.  One that is made is written beside, synced and renamed, so that a process
that is killed at any write leaves the old one or none.
Text: docs/sessions.md.
Cost: a look at a file, and what is read or written.
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
    """Opens a file of a store, which is there, a regular file and its owner's alone.

    Raises:
        ResumeError: there is none, or it is a link, something else, another's, or open to others.
        OSError: it cannot be opened.
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
    """Whether a file or folder of a store is this user's, and nobody else may open it.

    Raises:
        ResumeError: it is not.
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
    """Whether a folder is one, no link, this user's, and nobody else may open it."""
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        raise ResumeError(str(folder), "a store", "none") from None
    check_private(folder, found, folder=True)


def bytes_of(path: Path, most: int) -> bytes:
    """A small file of a store."""
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
        beside: its name until then, one writer at a time; None: `.new` in its folder.
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
