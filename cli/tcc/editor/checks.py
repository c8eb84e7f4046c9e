"""Checks documents in a second process, which keeps the results.

Checking 2,000 lines takes a second.  A thread would slow down the answers to keystrokes, because it
shares the interpreter.  The process also answers the requests that need results of checks: code
actions, numbers of plans, and places of statements.  It handles one request at a time.  A shared
byte cancels a check when its text changes.  If the process ends, the next request starts a new one,
without results.
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
    """The result of checking a document and the files that it uses.

    Attributes:
        told: the diagnostics, by URI.
        uses: the resolved paths of the files that were read.
    """

    told: Mapping[str, tuple[types.Diagnostic, ...]]
    uses: frozenset[Path]


class Checks:
    """Checks documents in another process, one request after the other.

    Invariant: while `_running` is a URI, the process checks that document, and a nonzero byte in
    `_revoked` cancels the check.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this object
        self._file.write(b"\0")
        self._file.flush()
        self._number = self._file.fileno()
        self._revoked = mmap.mmap(self._number, 1)
        self._asking, self._lock = Lock(), Lock()
        self._running: str | None = None
        self._worker: Worker | None = None
        self._closed = False

    def start(self) -> None:
        """Start the process, and load its modules, if it is not running."""
        with suppress(WorkerLost):
            self._ask(_begun)

    def check(self, uri: str, texts: Texts, wanted: Callable[[], bool]) -> CheckedDocument | None:
        """Check a document.

        Args:
            wanted: returns whether the result is still needed.

        Returns:
            the result, or None if it is no longer needed.

        Raises:
            WorkerLost: the process ended during the check.
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
        """Cancel the check of a document if it is running."""
        with self._lock:
            if self._running == uri:
                self._revoked[0] = 1

    def forget(self, uri: str) -> None:
        """Discard the results for a document."""
        with suppress(WorkerLost):
            self._ask(partial(_forget, uri))

    def actions(
        self, document: Document, texts: Texts, params: types.CodeActionParams
    ) -> list[types.CodeAction]:
        """Return the code actions for a range; none if the process ended."""
        try:
            made: list[types.CodeAction] = self._ask(partial(_actions, document, texts, params))
        except WorkerLost:
            return []
        return made

    def plans_with(self, uri: str, sources: Sequence[str], tool: str) -> tuple[int, int] | None:
        """Return the numbers of plans that call a tool and of all plans, or None if unknown.

        Args:
            sources: the texts of the grammar; results for other texts are not used.
        """
        try:
            counted: tuple[int, int] | None = self._ask(partial(_plans, uri, sources, tool))
        except WorkerLost:
            return None
        return counted

    def held_of(self, uri: str, sources: Sequence[str]) -> dict[str, Held]:
        """Return the places of a checked document's statements by text; empty if unknown.

        Args:
            sources: the texts of the grammar; results for other texts are not used.
        """
        try:
            found: dict[str, Held] = self._ask(partial(_held, uri, sources))
        except WorkerLost:
            return {}
        return found

    def close(self) -> None:
        """Stop the process, even during a check."""
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


# Tasks that run in the process.

_found: dict[str, Diagnosed] = {}  # by the URI of the document


def _begun() -> None:
    """Do nothing: unpickling this task already loads all modules."""


@cache
def _flag(number: int) -> mmap.mmap:
    """Map the shared byte, given its file descriptor."""
    return mmap.mmap(number, 1, access=mmap.ACCESS_READ)


def _check(flag: int, uri: str, texts: Texts) -> CheckedDocument:
    revoked = _flag(flag)
    found = diagnose(texts.documents[uri], texts, lambda: revoked[0] != 0)
    if not revoked[0] and not texts.documents[uri].is_large:
        _found[uri] = found  # results for a large text would take too much memory
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
