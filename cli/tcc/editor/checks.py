"""The whole check of documents, in a process of its own, which keeps what it found.

A check takes a second at 2,000 lines.  In a thread it would share the interpreter with whatever
answers a keystroke, which then takes as long again; so it has a process, and with it the questions
about what was found: fixes, and numbers of plans.  One question is asked at a time.  A check of a
text that has changed meanwhile is revoked by a byte that both processes see; a process that is
lost is replaced at the next question, and knows nothing then.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from lsprotocol import types

from tcc.editor import Diagnosed, Document, Texts, code_actions, diagnose
from tcc.editor.answers import Held, held_of, is_current, plans_with
from tcc_runtime.errors import WorkerLost
from tcc_runtime.workers import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDocument:
    """What a check tells of a document and the files that it uses.

    Attributes:
        told: the diagnostics of each URI.
        uses: the resolved paths of the files that were read.
    """

    told: Mapping[str, tuple[types.Diagnostic, ...]]
    uses: frozenset[Path]


class Checks:
    """Checks documents in another process; its questions wait, each for the one before.

    Invariant: while `_running` is a URI, its check is what the process does, and the byte of
    `_revoked` is about it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this is
        self._file.write(b"\0")
        self._file.flush()
        self._number = self._file.fileno()
        self._revoked = mmap.mmap(self._number, 1)
        self._asking, self._lock = Lock(), Lock()
        self._running: str | None = None
        self._worker: Worker | None = None
        self._closed = False

    def start(self) -> None:
        """Start the process, where there is none."""
        with suppress(WorkerLost):
            self._ask(_begun)

    def check(self, uri: str, texts: Texts, wanted: Callable[[], bool]) -> CheckedDocument | None:
        """What is found in a document; None where it is not wanted any more.

        Raises:
            WorkerLost: the process ended before it answered.
        """
        with self._asking:
            with self._lock:
                if not wanted():
                    return None
                self._running, self._revoked[0] = uri, 0
            try:
                found: CheckedDocument = self._told(partial(_check, self._number, uri, texts))
            finally:
                with self._lock:
                    self._running = None
        return found if wanted() else None

    def revoke(self, uri: str) -> None:
        """Nobody wants to know any more what the document's text that is being checked holds."""
        with self._lock:
            if self._running == uri:
                self._revoked[0] = 1

    def forget(self, uri: str) -> None:
        """Keep nothing of a document."""
        with suppress(WorkerLost):
            self._ask(partial(_forget, uri))

    def actions(
        self, document: Document, texts: Texts, params: types.CodeActionParams
    ) -> list[types.CodeAction]:
        """What may be done about the lints of a range; nothing where the process is lost."""
        try:
            made: list[types.CodeAction] = self._ask(partial(_actions, document, texts, params))
        except WorkerLost:
            return []
        return made

    def plans_with(self, uri: str, sources: Sequence[str], tool: str) -> tuple[int, int] | None:
        """How many plans of a checked document call a tool, of how many; None where unknown.

        Args:
            sources: the texts that the answer is to be about.
        """
        try:
            counted: tuple[int, int] | None = self._ask(partial(_plans, uri, sources, tool))
        except WorkerLost:
            return None
        return counted

    def held_of(self, uri: str, sources: Sequence[str]) -> dict[str, Held]:
        """What holds the statements of a checked document, by their texts; empty where unknown.

        Args:
            sources: the texts that the answer is to be about.
        """
        try:
            found: dict[str, Held] = self._ask(partial(_held, uri, sources))
        except WorkerLost:
            return {}
        return found

    def close(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._revoked[0] = 1
            if self._worker is not None:
                self._worker.close(patient=False)
            self._file.close()

    def _ask(self, task: Callable[[], Any]) -> Any:
        with self._asking:
            return self._told(task)

    def _told(self, task: Callable[[], Any]) -> Any:
        with self._lock:
            if self._closed:
                raise WorkerLost("it was closed")
            if self._worker is not None and self._worker.ended:
                self._worker.close(patient=False)
                self._worker = None
            if self._worker is None:
                self._worker = Worker(shared=(self._number,))
            worker = self._worker
        try:
            return worker.ask(task)
        except WorkerLost:
            with self._lock:
                worker.close(patient=False)
                self._worker = None
            raise


# What the process does.

_found: dict[str, Diagnosed] = {}  # by the URI of the document


def _begun() -> None:
    """Nothing: to be asked this, the process has loaded what it needs."""


@cache
def _flag(number: int) -> mmap.mmap:
    """The byte that both processes see, by the number of its file."""
    return mmap.mmap(number, 1, access=mmap.ACCESS_READ)


def _check(flag: int, uri: str, texts: Texts) -> CheckedDocument:
    revoked = _flag(flag)
    found = diagnose(texts.documents[uri], texts, lambda: revoked[0] != 0)
    if not revoked[0] and not texts.documents[uri].is_large:
        _found[uri] = found  # of a large text it would take too much memory
    return CheckedDocument(told=found.told, uses=found.uses)


def _forget(uri: str) -> None:
    _found.pop(uri, None)


def _actions(
    document: Document, texts: Texts, params: types.CodeActionParams
) -> list[types.CodeAction]:
    made: list[types.CodeAction] = []
    for found in _found.values():
        if document.uri in found.told:
            made += code_actions(document, found, texts, params)
    return made


def _plans(uri: str, sources: Sequence[str], tool: str) -> tuple[int, int] | None:
    found = _found.get(uri)
    if found is None or found.linted is None or not is_current(sources, found):
        return None
    artifact = found.linted.artifact
    return None if artifact is None else plans_with(artifact, tool)


def _held(uri: str, sources: Sequence[str]) -> dict[str, Held]:
    found = _found.get(uri)
    return held_of(found) if found is not None and is_current(sources, found) else {}
