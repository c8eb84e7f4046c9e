"""The journal of a session in memory: it counts records and keeps none of them.

Only the process that created it can use it; a fork cannot.
Text: docs/gate.md; docs/spec/session.md, section 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blake3 import blake3

from tcc_certs.formats.ledger import FIRST_HEAD
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.journal import News, Passes
from tcc_runtime.process import process_number


class InMemory:
    """Counts the records of a session; it keeps only a digest of the first record.

    Its head is a digest of the first record and the number of records, not the hash of a ledger
    line.
    """

    __slots__ = ("_first", "_pid", "doubtful", "records")

    def __init__(self) -> None:
        self.records = 0
        self.doubtful = False
        self._first = FIRST_HEAD
        self._pid = process_number()

    def lock(self, *, wait: bool, process: int) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: this is a fork of that process, and both would continue one session.
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

    def append(self, render: Callable[[bytes], bytes]) -> None:
        """See :class:`Journal`; it renders the first record only.

        Raises:
            LedgerError: this is a fork of the process that made it.
        """
        if process_number() != self._pid:
            self.lock(wait=False, process=process_number())
        if not self.records:
            self._first = blake3(FIRST_HEAD + render(FIRST_HEAD)).digest()
        self.records += 1

    @property
    def is_full(self) -> bool:
        """See :class:`Journal`."""
        return False

    def roll(self, roll: Callable[[bytes], bytes], first: Callable[[bytes], bytes]) -> None:
        """See :class:`Journal`; it has no files."""

    @property
    def head(self) -> bytes:
        """See :class:`Journal`."""
        return blake3(self._first + self.records.to_bytes(8, "little")).digest()

    @property
    def synced(self) -> bytes:
        """See :class:`Journal`."""
        return self.head

    def sync(self) -> None:
        """See :class:`Journal`."""

    def sync_soon(self) -> None:
        """See :class:`Journal`."""

    def had(self, head: bytes) -> bool:
        """See :class:`Journal`.  Knows only the current head."""
        return self.records > 0 and head == self.head

    def close(self) -> None:
        """See :class:`Journal`."""
