"""Files that are read: only regular ones.  Written ones: :mod:`tcc_runtime.ledger.outputs`."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

GRAMMAR_ENDINGS = {".tcg", ".graphml", ".json"}


def is_regular(path: Path) -> bool:
    """True for a regular file: not for a folder, a pipe or a device, which may never end."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def looks_like_artifact(first: bytes) -> bool:
    """Whether a file that begins so is an artifact, and no ledger: a length, then its header."""
    return first[4:8] == bytes(4) and first[8:9] == b"{"


def same_file(path: Path, others: Iterable[Path]) -> bool:
    """True where `path` is there and is one of `others`, by whatever name."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def ledger_name(folder: Path, number: int) -> Path:
    """The ledger of a batch's run of that number, from 1."""
    return folder.resolve() / f"{number:08d}.ledger"
