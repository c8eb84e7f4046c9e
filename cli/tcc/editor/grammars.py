"""Which grammars a name is looked up in: that of a document, and all that use the same file.

A file is used from its own folder or from one above, so only there is looked, and only inside the
folders that the editor has open.  Cost: that of parsing, within a time and a number of files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tcc.editor.texts import Document, Texts, document_of
from tcc_compiler.editing.project import Project, read_project
from tcc_compiler.language.source import Unreadable, decode

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
