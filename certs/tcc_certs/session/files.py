"""The files of a ledger: NAME, NAME.1, NAME.2 and so on.

Normative text: docs/spec/session.md, sections 1 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_is_number = re.compile("[1-9][0-9]{0,8}").fullmatch


def file_name(first: Path, number: int) -> Path:
    """Return the name of a file of a ledger; number 0 is the first file."""
    return first.with_name(f"{first.name}.{number}") if number else first


def files_of(first: Path) -> list[Path]:
    """Return the files of a ledger that exist, in order; a number in between may be missing.

    Raises:
        OSError: the folder cannot be read.
    """
    stem = f"{first.name}."
    names = [path.name for path in first.parent.iterdir() if path.name.startswith(stem)]
    numbers = [name.removeprefix(stem) for name in names]
    found = sorted([int(number) for number in numbers if _is_number(number)])
    return [first, *[file_name(first, number) for number in found]]


def place_of(files: Sequence[Path], lines: Sequence[int], line: int) -> tuple[Path, int]:
    """Return the file of a line, and the number of the line in this file.

    Args:
        lines: the number of lines that were read of each file.
        line: the number of the line, counted over all files.
    """
    last = max(0, len(lines) - 1)
    for path, count in zip(files, lines[:last], strict=False):
        if line <= count:
            return path, line
        line -= count
    return files[last], line
