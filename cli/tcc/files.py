"""Files in and out: only regular ones, and a crash leaves the old bytes or the new ones."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path


def is_regular(path: Path) -> bool:
    """True for a regular file: not for a folder, a pipe or a device, which may never end."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def same_file(path: Path, others: Iterable[Path]) -> bool:
    """True where `path` is there and is one of `others`, by whatever name."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def ledger_name(folder: Path, number: int) -> Path:
    """The ledger of a batch's run of that number, from 1."""
    return folder.resolve() / f"{number:08d}.ledger"


def write_atomically(path: Path, data: bytes | memoryview) -> None:
    """Write `data` so that after a crash at any moment `path` holds the old bytes or the new ones.

    A link is followed; what is there and is no regular file is left alone.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    target = path.resolve()
    if target.exists() and not is_regular(target):
        raise OSError(0, "it is there, and is not a regular file", str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            # mkstemp makes files for the owner alone; an artifact is as public as its folder.
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
