"""Verdicts of persons, as a gate records them.

A verdict comes from a caller of this process, or from a file next to the ledger
(:mod:`tcc_runtime.gate.asking.verdict_files`).  The gate looks for files when a call needs a
person.  While a question is open, a thread also looks every 0.25 seconds.
Text: docs/ask.md; docs/spec/session.md, section 6.  Cost: a record for each verdict.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Final
from weakref import WeakSet

from tcc_certs.errors import Code
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.asking import verdict_files
from tcc_runtime.gate.asking.questions import MOST_REASON, Verdict, VerdictError
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session_access import Access

_log: Final = logging.getLogger("tcc.gate")
_EVERY: Final = 0.25  # seconds between two looks for files


def record(access: Access, question_id: str, verdict: Verdict, who: str, reason: str) -> None:
    """Record a verdict on a question of the session.

    The caller has the turn, the lock of the file and the lock of the session.

    Args:
        who, reason: the name of the person, and the reason of a denial.

    Raises:
        VerdictError: no question has this id, it has a verdict, or it has expired.
        ValueError: `who` is no name, or `reason` is too long.
        Refused: R303: the session has ended; R306: the record cannot be written.
    """
    check(who, reason)
    session = access.session
    if session.ended:
        access.refuse(Code.ENDED)
    at_ms = session.at(access.clock())
    why = session.questions.why_not(question_id, at_ms)
    if why is not None:
        raise VerdictError(question_id, why)

    def decided() -> None:
        session.note_time(at_ms)
        session.questions.decide(question_id, verdict, at_ms, reason)

    access.write(records.approval_record(question_id, verdict, who, at_ms), decided)


def check(who: object, reason: object) -> None:
    """Check the name of a person and the reason of a denial.

    Raises:
        ValueError: `who` is no name, or `reason` is no text or too long.
    """
    if not records.is_name(who):
        raise ValueError(f"who: a text of 1 to {records.MOST_NAME} characters that can be printed")
    if not isinstance(reason, str) or len(reason) > MOST_REASON:
        raise ValueError(f"reason: a text of at most {MOST_REASON} characters")


# Verdicts in files.


def take(access: Access) -> bool:
    """Record the verdicts in files; return whether any was recorded.

    The caller has the turn, the lock of the file and the lock of the session.  Verdicts that cannot
    be recorded are logged, and their files removed.

    Raises:
        Refused: R303: the session has ended; R306: a record cannot be written.
    """
    journal, follower = access.journal, access.follower
    if not isinstance(journal, InFile):
        return False
    found = False
    for path, handed in verdict_files.waiting(journal.path, follower.key, follower.session_id):
        try:
            record(access, handed.id, handed.verdict, handed.who, handed.reason)
            found = True
        except (VerdictError, ValueError) as error:
            _log.warning("session %s: %s", follower.session_id, error)
        verdict_files.remove(path)
    return found


def watch(access: Access) -> None:
    """Start looking for files with verdicts, as long as a question of the session is open."""
    if isinstance(access.journal, InFile):
        _watch.add(access)


class _Watch:
    """Takes verdicts from files next to ledgers; it owns one thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: WeakSet[Access] = WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, access: Access) -> None:
        """Watch a session."""
        with self._changed:
            self._watched.add(access)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tcc-verdicts", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watched:
                    self._changed.wait()
            self._look_once()
            time.sleep(_EVERY)

    def _look_once(self) -> None:
        with self._changed:
            watched = list(self._watched)
        for access in watched:
            if not _look(access):
                with self._changed:
                    self._watched.discard(access)


def _look(access: Access) -> bool:
    """Take the verdicts of a session if it can be changed now; return whether to look again."""
    journal = access.journal
    if not isinstance(journal, InFile) or journal.closed:
        return False
    if not verdict_files.folder_of(journal.path).exists():
        with access.lock:
            return bool(access.session.questions.open(access.session.last_ms))
    try:
        with access.lock:
            if access.pending:  # a call of this process is under way, and has the file lock
                take(access)
                access.turns.changed()
                return True
        ticket = access.try_enter("")
        if ticket is None:
            access.stop_waiting()
            return True
        try:
            with access.lock:
                take(access)
        finally:
            access.leave(ticket)
    except (Refused, LedgerError):
        return False
    return True


_watch = _Watch()


def _forked() -> None:
    """Replace the watcher in a forked process: its thread does not exist there, and its lock may be
    locked forever.
    """
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
