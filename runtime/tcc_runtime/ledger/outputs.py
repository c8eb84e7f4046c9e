"""Writes output files: which names may be taken, how they are replaced, how they are locked.

A name may be taken if it is free, or names a regular file, or a link to one; then the file is
replaced and the link stays.  Anything else (folder, device, pipe, socket, dangling link) is
rejected and left as it is.  A file is replaced atomically by one made beside it with the same
permissions, so nothing is lost before, whatever fails.  Locks end with the file or the process.
Cost: a few system calls, and the bytes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tcc_runtime.errors import OutputBusy, OutputRefused

# Locks on open files, where the system has them.

if sys.platform == "win32":

    def locked(handle: int) -> bool:
        """There is nothing to lock with."""
        return True
else:
    import fcntl

    def locked(handle: int) -> bool:
        """Locks an open file until it is closed; False where another one has it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks
        return True


_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_LOOK = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_MODE = 0o644
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def target_of(path: Path) -> Path:
    """The file that a write to `path` makes or replaces, with links followed.

    Raises:
        OutputRefused: something that is no regular file has the name.
        OSError: it cannot be looked up.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise OutputRefused(str(path), "a link that leads nowhere") from None
        return path
    if stat.S_ISREG(mode):
        return path.resolve()
    kind = next((name for holds, name in _KINDS if holds(mode)), "no regular file")
    raise OutputRefused(str(path), kind)


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Write `data` so that after a crash at any moment `path` has the old bytes or the new ones.

    Raises:
        OutputRefused: as :func:`target_of`.
        OSError: it cannot be written; nothing is left behind.
    """
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write that gets the name `path` at the end of the block, and not before.

    Where the block is left by an exception, nothing of it stays, and `path` is as it was.

    Raises:
        OutputRefused: as :func:`target_of`.
        OSError: it cannot be written; nothing is left behind.
    """
    target = target_of(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = _beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _rename(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def create(path: Path, *, overwrite: bool) -> int:
    """An empty file that is open for appending, locked, and has the name `path` from here on.

    It is for what is written as it goes, and read where that was cut off.

    Args:
        overwrite: a regular file may be there; it is gone when this returns, and not before.

    Raises:
        OutputRefused: as :func:`target_of`.
        FileExistsError: a file is there, and may not be replaced.
        OutputBusy: another process writes it.
        OSError: it cannot be made; nothing was changed.
    """
    target = target_of(path)
    if not overwrite or not target.exists():
        handle = _locked(os.open(target, _NEW, _MODE), path)
        sync_folder(target.parent)
        return handle
    old = _locked(os.open(target, _LOOK), path)
    try:
        handle, beside = _beside(target)
        try:
            _locked(handle, path)
            _rename(beside, target)
        except BaseException:
            with suppress(OSError):
                os.close(handle)
            beside.unlink(missing_ok=True)
            raise
    finally:
        os.close(old)
    sync_folder(target.parent)
    return handle


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, on systems that let a folder be synced."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _beside(target: Path) -> tuple[int, Path]:
    """A new file in the folder of `target`, open; with its permissions where it is there."""
    beside = target.parent / f".{target.name[:32]}.{os.urandom(8).hex()}"
    handle = os.open(beside, _NEW, _MODE)
    with suppress(FileNotFoundError):
        os.fchmod(handle, stat.S_IMODE(target.stat().st_mode) & 0o777)
    return handle, beside


def _rename(beside: Path, target: Path) -> None:
    """Give the new file its name, if that is still free or a regular file's."""
    target_of(target)
    beside.replace(target)


def _locked(handle: int, path: Path) -> int:
    if not locked(handle):
        os.close(handle)
        raise OutputBusy(str(path))
    return handle
