"""What a verb reads, and what it hands back to be printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tcc_certs.codec import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An exit code, a text for people, and a document for programs."""

    exit_code: int
    text: str
    document: Mapping[str, Json]


def regular(path: Path) -> Path:
    """`path`, which has to be a regular file: a pipe or a device may never end.

    Raises:
        OSError: it is none, or is not there.
    """
    path.stat()
    if not path.is_file():
        raise OSError(0, "not a regular file", str(path))
    return path
