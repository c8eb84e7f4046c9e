"""Files that are read: only regular ones.  Written ones: :mod:`tcc_runtime.ledger.outputs`."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

GRAMMAR_ENDINGS = {".tcg", ".graphml", ".json"}
_HEAD = 1 << 16


def is_regular(path: Path) -> bool:
    """True for a regular file: not for a folder, a pipe or a device, which may never end."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def looks_like_ledger(first: bytes) -> bool:
    """Whether a file that begins so is a ledger, of a run or of a session.

    It is for telling somebody what he gave: that it is one is for the validator to say.
    """
    line = first.partition(b"\n")[0]
    return line[:2] == b'{"' and (b'"kind":"open"' in line or b'"kind":"session"' in line)


def looks_like_artifact(first: bytes) -> bool:
    """Whether a file that begins so is an artifact, and no ledger: a length, then its header."""
    return first[4:8] == bytes(4) and first[8:9] == b"{"


def first_bytes(path: Path) -> bytes:
    """What a regular file begins with; nothing where it is none, or cannot be read."""
    if not is_regular(path):
        return b""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def same_file(path: Path, others: Iterable[Path]) -> bool:
    """True where `path` is there and is one of `others`, by whatever name."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def ledger_name(folder: Path, number: int) -> Path:
    """The ledger of a batch's run of that number, from 1."""
    return folder.resolve() / f"{number:08d}.ledger"
