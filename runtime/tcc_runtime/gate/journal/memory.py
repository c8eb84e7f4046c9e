"""A session that is kept in memory: of its ledger there is nothing but the head of the chain.

It belongs to the process that made it: a fork has no session.
Text: docs/gate.md; docs/spec/session.md, section 1.
Cost: a hash for each record.
"""

from __future__ import annotations

from collections.abc import Iterable

from blake3 import blake3

from tcc_certs.formats.ledger import FIRST_HEAD
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.journal import News, Passes
from tcc_runtime.process import process_number


class InMemory:
    """Keeps nothing but the head of the chain; it belongs to the process that made it."""

    __slots__ = ("_hasher", "_pid", "doubtful", "head", "records")

    def __init__(self) -> None:
        self._hasher = blake3()  # it is made in more time than it takes
        self.head = FIRST_HEAD
        self.records = 0
        self.doubtful = False
        self._pid = process_number()

    def lock(self, *, wait: bool, process: int) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: this is a fork of that process, and two would go on with one session.
        """
        if process != self._pid:
            raise LedgerError("memory", OSError(0, "the session is another process's"))
        return True

    def unlock(self) -> None:
        """See :class:`Journal`."""

    def stop_waiting(self) -> None:
        """See :class:`Journal`."""

    def others_wait(self) -> bool:
        """See :class:`Journal`."""
        return False

    def news(self, *, locked: bool, passes: Passes | None = None) -> Iterable[News]:
        """See :class:`Journal`."""
        return ()

    def append(self, body: bytes) -> None:
        """See :class:`Journal`."""
        if process_number() != self._pid:
            self.lock(wait=False, process=process_number())
        hasher = self._hasher
        hasher.reset()
        hasher.update(self.head + body)
        self.head = hasher.digest()
        self.records += 1

    @property
    def synced(self) -> bytes:
        """See :class:`Journal`."""
        return self.head

    def sync(self) -> None:
        """See :class:`Journal`."""

    def sync_soon(self) -> None:
        """See :class:`Journal`."""

    def had(self, head: bytes) -> bool:
        """See :class:`Journal`; nothing but the last one is kept."""
        return self.records > 0 and head == self.head

    def close(self) -> None:
        """See :class:`Journal`."""
