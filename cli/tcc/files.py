"""Files in and out: bounded reading, and writing that leaves the old file or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        click.ClickException: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` so that after a crash at any moment `path` holds the old bytes or the new ones.

    Raises:
        click.ClickException: it cannot be written; nothing is left behind.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
