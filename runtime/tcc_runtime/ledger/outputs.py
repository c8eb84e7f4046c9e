"""Writing output files: the names that may be used, atomic replacement, and locks.

A name may be used if it is free, or if it names a regular file or a link to one.  In the latter
case the file is replaced and the link stays.  All other names (folder, device, pipe, socket,
dangling link) are rejected and left unchanged.  A file is replaced atomically by a new file in the
same folder with the same permissions, so the old content is kept until the new one is complete.
Locks end with the file or the process.
Cost: a few system calls, and writing the bytes.
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
        """Return True: the system has no locks."""
        return True
else:
    import fcntl

    def locked(handle: int) -> bool:
        """Lock an open file until it is closed; return False if another process has the lock.

        True also on file systems without locks.
        """
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
    """Return the path that a write to `path` creates or replaces, with links followed.

    Raises:
        OutputRefused: the name is used by something other than a regular file.
        OSError: the name cannot be looked up.
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
        OutputRefused: see :func:`target_of`.
        OSError: the file cannot be written.  No temporary file is left.
    """
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Return a context manager with a file to write, which gets the name `path` at the end of the
    block.

    If the block raises, the file is removed, and `path` is unchanged.

    Raises:
        OutputRefused: see :func:`target_of`.
        OSError: the file cannot be written.  No temporary file is left.
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
    """Create an empty file with the name `path`, open for appending and locked; return the handle.

    For files that are written gradually and remain readable after a crash.

    Args:
        overwrite: whether a regular file may be replaced.  It is replaced just before this returns.

    Raises:
        OutputRefused: see :func:`target_of`.
        FileExistsError: the file exists, and `overwrite` is False.
        OutputBusy: another process writes the file.
        OSError: the file cannot be created; nothing was changed.
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
    """Make new names in a folder durable, on systems that can sync a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _beside(target: Path) -> tuple[int, Path]:
    """Create a file in the folder of `target` with its permissions; return the handle and the
    path.
    """
    beside = target.parent / f".{target.name[:32]}.{os.urandom(8).hex()}"
    handle = os.open(beside, _NEW, _MODE)
    with suppress(FileNotFoundError):
        os.fchmod(handle, stat.S_IMODE(target.stat().st_mode) & 0o777)
    return handle, beside


def _rename(beside: Path, target: Path) -> None:
    """Rename the new file to `target`, if that name is free or names a regular file."""
    target_of(target)
    beside.replace(target)


def _locked(handle: int, path: Path) -> int:
    if not locked(handle):
        os.close(handle)
        raise OutputBusy(str(path))
    return handle
