"""The input files and the output of the verbs; the kernel prints text only in this module."""

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
    """The result of a verb: an exit code, lines for people, and a document for programs."""

    exit_code: int
    lines: Sequence[str]
    document: Mapping[str, Json]


def regular(path: Path) -> Path:
    """`path`, if it is a regular file; reading from a pipe or a device might never end.

    Raises:
        OSError: the file does not exist or is not a regular file.
    """
    path.stat()
    if not path.is_file():
        raise OSError(0, "not a regular file", str(path))
    return path


def misused(options: Sequence[str], kind: str) -> VerbResult:
    """The result for options that do not apply to a file: exit code 2.

    Args:
        options: the options as messages name them.
        kind: the kind of the file, such as "a proof".
    """
    line = f"DECLINED: {', '.join(options)} cannot be used: this is {kind}"
    return VerbResult(exit_code=2, lines=[line], document={"verdict": "DECLINED", "summary": line})


def show(answer: VerbResult, *, as_json: bool) -> None:
    """Print the lines of a result with special characters escaped, or its document as JSON.

    Raises:
        OSError: the output cannot be written.
    """
    if as_json:
        _write(escaped_json(encode(answer.document).decode("utf-8")), sys.stdout)
    else:
        for line in answer.lines:
            _write(escaped(line), sys.stdout)


def complain(line: str) -> None:
    """Print one line to standard error."""
    _write(escaped(line), sys.stderr)


def drop_unwritten() -> None:
    """Drop output that could not be written.

    Otherwise the interpreter would try again at its end, and exit with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # closed by the caller; the exit code still gives the verdict
        return
    # A name from a file may have characters that the encoding of the terminal lacks.
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()
