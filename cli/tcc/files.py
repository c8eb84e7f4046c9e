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


def looks_like_ledger(path: Path) -> bool:
    """Whether a file begins as ledgers do, of a run or of a session; False where it cannot be read.

    It is for telling somebody what he gave: that it is one is for the validator to say.
    """
    line = _first_bytes(path).partition(b"\n")[0]
    return line[:2] == b'{"' and (b'"kind":"open"' in line or b'"kind":"session"' in line)


def looks_like_artifact(path: Path) -> bool:
    """Whether a file begins as artifacts do: the length of a manifest, then the manifest."""
    head = _first_bytes(path)
    return head[:2] != b'{"' and head[8:10] == b'{"' and head[6:8] == bytes(2)


def _first_bytes(path: Path) -> bytes:
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
