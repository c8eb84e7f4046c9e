"""What a verb reads, and what it hands back to be printed: here alone text leaves the kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tcc_certs.errors import escaped, escaped_json
from tcc_certs.formats.codec import Json, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbResult:
    """An exit code, lines for people, and a document for programs."""

    exit_code: int
    lines: Sequence[str]
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


def misused(options: Sequence[str], kind: str) -> VerbResult:
    """Decline options that do not apply to a file.

    Args:
        options: as messages name them.
        kind: what the file is, such as "a proof".
    """
    line = f"DECLINED: {', '.join(options)} cannot be used: this is {kind}"
    return VerbResult(exit_code=2, lines=[line], document={"verdict": "DECLINED", "summary": line})


def show(answer: VerbResult, *, as_json: bool) -> None:
    """Print an answer: its lines, each on one line whatever is in it, or its document.

    Raises:
        OSError: it cannot be written.
    """
    if as_json:
        _write(escaped_json(encode(answer.document).decode("utf-8")), sys.stdout)
    else:
        for line in answer.lines:
            _write(escaped(line), sys.stdout)


def complain(line: str) -> None:
    """Print one line apart from what was asked for."""
    _write(escaped(line), sys.stderr)


def drop_unwritten() -> None:
    """Drop what an output did not take: else the interpreter tries again, and exits with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed: the exit code still tells
        return
    # A name from a file may hold what the terminal's encoding does not.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()
