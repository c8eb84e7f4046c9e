"""Open documents: positions as the protocol counts them, texts, and the grammars they belong to.

A position is a line and a column from 0, columns in units of the negotiated encoding.  An open text
stands for its file wherever that file is read.  A file is used from its own folder or from one
above, so only those folders are searched, within the editor's workspace.
Source: Language Server Protocol 3.17, section Text Documents.
Cost: one pass over a text, then a bisection per position; parsing, within a time and a number of
files, to find grammars.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol.types import Position, PositionEncodingKind, Range
from pygls import uris

from tcc_compiler.editing.project import Project, read_project
from tcc_compiler.language.source import Source, Unreadable, decode, read_bytes, too_large

_END = re.compile(r"\r\n|\r|\n")


class Places:
    """Offsets of a text to positions, and back."""

    def __init__(self, text: str, encoding: str = PositionEncodingKind.Utf16) -> None:
        """Find the lines.

        Args:
            encoding: what columns count: code units of ``utf-8``, ``utf-16`` or ``utf-32``.
        """
        self._text = text
        self._encoding = encoding
        ends = [(0, 0), *((end.start(), end.end()) for end in _END.finditer(text))]
        self._starts = [after for _, after in ends]
        self._ends = [*(before for before, _ in ends[1:]), len(text)]

    def offset(self, position: Position) -> int:
        """The character at a position."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[position.line], self._ends[position.line]
        line = self._text[start:end]
        if self._encoding == PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for at, char in enumerate(line):
            units += self._units(char)
            if units > position.character:
                return start + at
        return end

    def position(self, offset: int) -> Position:
        """The position of a character."""
        line = bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : offset]
        return Position(line=line, character=self._units(before))

    def range(self, start: int, end: int) -> Range:
        """From one character to just before another."""
        return Range(start=self.position(start), end=self.position(end))

    def _units(self, text: str) -> int:
        if self._encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(char > "\uffff" for char in text)


# Open texts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is open.

    Attributes:
        path: the file that it is in, its folder resolved; None where it is in none yet.
        name: how diagnostics name it.
    """

    uri: str
    text: str
    path: Path | None
    name: str


def document_of(uri: str, text: str) -> Document:
    """The document of a URI; only those of files have a path."""
    found = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if not found or "\0" in found:
        return Document(uri=uri, text=text, path=None, name=uri)
    path = Path(found)
    resolved = Path(os.path.realpath(path.parent)) / path.name
    return Document(uri=uri, text=text, path=resolved, name=str(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All that is open at one moment, and how its columns are counted.

    Attributes:
        documents: by URI.
        folders: those that the editor has open.
    """

    documents: Mapping[str, Document]
    folders: tuple[Path, ...] = ()
    encoding: str = "utf-16"

    def read(self, path: Path, limit: int) -> bytes | Unreadable:
        """The bytes of a file as the editor has them."""
        document = self.at(path)
        if document is None:
            return read_bytes(path, limit)
        data = document.text.encode("utf-8", "surrogatepass")
        return data if len(data) <= limit else too_large(limit)

    def at(self, path: Path) -> Document | None:
        """The open document of a file, by its resolved path."""
        for document in self.documents.values():
            if document.path is not None and os.path.realpath(document.path) == str(path):
                return document
        return None

    def uri(self, source: Source, root: Document) -> str:
        """The URI of a source of a grammar whose root is open."""
        if source.path is None or source.path == root.path:
            return root.uri
        document = self.at(Path(os.path.realpath(source.path)))
        if document is not None:
            return document.uri
        return uris.from_fs_path(str(source.path)) or root.uri

    def places(self, text: str) -> Places:
        """The places of a text."""
        return Places(text, self.encoding)


# Grammars: that of a document, and all that use the same file.

MOST_SECONDS = 3.0
MOST_FILES = 300  # that are looked at for one name


class OutOfTime(Exception):
    """A question of the editor took too long."""


class Budget:
    """The time for one question.

    Args:
        stale: whether nobody wants to know any more.
    """

    def __init__(
        self, seconds: float = MOST_SECONDS, stale: Callable[[], bool] | None = None
    ) -> None:
        self._end = time.monotonic() + seconds
        self._stale = stale

    def check(self) -> None:
        """End the question where its time is over.

        Raises:
            OutOfTime: it is.
        """
        if time.monotonic() > self._end or (self._stale is not None and self._stale()):
            raise OutOfTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooted:
    """A grammar, and the document of its root."""

    document: Document
    project: Project


def grammar_of(document: Document, texts: Texts, budget: Budget) -> Rooted | None:
    """The grammar of a document; None where it is no text."""
    project = read_project(document.text, document.path, document.name, texts.read, budget.check)
    return None if project is None else Rooted(document=document, project=project)


def grammars_with(
    mine: Rooted, path: Path | None, texts: Texts, budget: Budget
) -> tuple[tuple[Rooted, ...], bool]:
    """Every grammar that has a file, `mine` first; and whether all could be looked at.

    Args:
        path: the resolved path of the file; None for a text from no file.
    """
    found = [mine]
    if path is None or (path == mine.document.path and not mine.project.is_part):
        return tuple(found), True
    seen = {mine.document.path}
    for number, document in enumerate(_candidates(path, texts)):
        if number >= MOST_FILES:
            return tuple(found), False
        if document.path in seen:
            continue
        seen.add(document.path)
        rooted = grammar_of(document, texts, budget)
        if rooted is not None and any(s.path == path for s in rooted.project.sources):
            found.append(rooted)
    return tuple(found), True


def _candidates(path: Path, texts: Texts) -> Iterator[Document]:
    yield from texts.documents.values()
    for folder in _folders(path, texts):
        try:
            files = sorted(file for file in folder.iterdir() if file.suffix == ".tcg")
        except OSError:
            continue
        for file in files:
            if texts.at(file) is not None:
                continue
            data = texts.read(file, 1 << 23)
            text = data if isinstance(data, Unreadable) else decode(data)
            if not isinstance(text, Unreadable) and (file == path or "use" in text):
                yield document_of(file.as_uri(), text)


def _folders(path: Path, texts: Texts) -> Iterator[Path]:
    """The folder of a file, and those above it that the editor has open."""
    yield path.parent
    for folder in path.parent.parents:
        if any(folder.is_relative_to(opened) for opened in texts.folders):
            yield folder
