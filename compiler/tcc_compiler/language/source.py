"""Source texts: from bytes to characters, and from character offsets to lines and columns.

This module decides which files are accepted: regular files in UTF-8, without byte order mark and
NUL, of at most 8 MiB together (docs/spec/language.md, section 2). A region is three integers; every
token and tree node has one. A span is for diagnostics. Its lines and columns count from 1,
columns in characters, and its end is exclusive. Cost: linear in the bytes; one bisection per
lookup.
"""

from __future__ import annotations

import re
import stat
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tcc_compiler.frozen import frozen


class Region(NamedTuple):
    """The characters `start` to `end` (exclusive) of source number `source`; 0 is the root file."""

    source: int
    start: int
    end: int

    def to(self, other: Region) -> Region:
        """Return the region from this one's start to the end of `other`, in the same source."""
        return Region(self.source, self.start, other.end)


@frozen
class Span:
    """A range of a file in lines and columns.

    Attributes:
        file: the name that the file was read under.
        line, column: the first character; both count from 1, columns in characters.
        end_line, end_column: the place just after the last character.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


MAX_SOURCE_BYTES = 8 * 1024 * 1024
_WHAT_IS_READ = "a grammar is a text file; an artifact is opened by `tcc inspect`"
# Matches a string or comment, in which parentheses do not count, or a parenthesis.
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|#[^\n]*|[()]')


@frozen
class Source:
    """A text that was read.

    Attributes:
        name: its name in diagnostics.
        text: its characters.
        path: the resolved path; None if the text comes from no file.
        starts: the offset of each line's first character.
        folder: for a text from no file, the folder of the files that it may use; None if it may use
            none.
    """

    name: str
    text: str
    path: Path | None
    starts: Sequence[int]
    folder: Path | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of a character offset, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def span(self, region: Region) -> Span:
        """Return the span of a region of this source."""
        line, column = self.place(region.start)
        end_line, end_column = self.place(region.end)
        return Span(
            file=self.name, line=line, column=column, end_line=end_line, end_column=end_column
        )

    def statement(self, span: Span) -> str:
        """Return a statement's text with its closing parentheses, which its span may lack."""
        start = self.starts[span.line - 1] + span.column - 1
        end = self.starts[span.end_line - 1] + span.end_column - 1
        depth = 0
        for mark in _MARK.finditer(self.text, start):
            if mark.start() >= end and depth == 0:
                break
            depth += {"(": 1, ")": -1}.get(mark.group(), 0)
            end = max(end, mark.end()) if mark.group() == ")" else end
        return self.text[start:end]

    def line(self, number: int) -> str:
        """Return the line with this number, from 1, without its end; empty past the last line."""
        if not 1 <= number <= len(self.starts):
            return ""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r\n")


def source_of(text: str, name: str, path: Path | None = None, folder: Path | None = None) -> Source:
    """Return a source with this text."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return Source(name=name, text=text, path=path, starts=starts, folder=folder)


@frozen
class Unreadable:
    """The reason why bytes are no source text, with the code, message and hint of a diagnostic.

    Attributes:
        offset: the character offset of the problem.
        text: the readable text before it.
    """

    code: str
    message: str
    hint: str | None = None
    offset: int = 0
    text: str = ""


def read_bytes(path: Path, limit: int = MAX_SOURCE_BYTES) -> bytes | Unreadable:
    """Return the bytes of a regular file, at most `limit`; never wait on a pipe or device."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            message = "this is not a regular file"
            return Unreadable(code="TCC110", message=message, hint="name a file, or write to one")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"the file cannot be read: {reason}"
        hint = "look at its name and at who may read it"
        return Unreadable(code="TCC110", message=message, hint=hint)
    return too_large(limit) if len(data) > limit else data


def too_large(limit: int = MAX_SOURCE_BYTES) -> Unreadable:
    """Return the refusal of more than `limit` bytes of source."""
    return Unreadable(
        code="TCC107",
        message=f"the source is larger than the limit of {limit} bytes",
        hint="split the grammar, or generate less of it",
    )


def decode(data: bytes) -> str | Unreadable:
    """Return the text of UTF-8 bytes, or the problem: bad UTF-8, NUL, byte order mark."""
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        wide = not data.startswith(b"\xef")
        return Unreadable(
            code="TCC109",
            message="the file starts with a byte order mark" + (" of UTF-16" if wide else ""),
            hint="save it as UTF-8 without a byte order mark",
        )
    nul = data.find(b"\0")
    if nul >= 0:
        before = data[:nul].decode("utf-8", "replace")
        return Unreadable(
            code="TCC108",
            message=f"a NUL character at byte {nul}: this is not text",
            hint=_WHAT_IS_READ,
            offset=len(before),
            text=before,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        return Unreadable(
            code="TCC108",
            message=f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
            hint="save the file as UTF-8",
            offset=len(before),
            text=before,
        )
