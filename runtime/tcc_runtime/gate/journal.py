"""Where a session's records go: what every journal does, and one that keeps a hash alone.

Text: docs/spec/session.md, section 1; the chain is that of docs/spec/ledger.md.  On disk it is
:mod:`tcc_runtime.gate.ledger_file`.  Cost: a hash for each record.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tcc_certs.formats.ledger import FIRST_HEAD, Record, seal
from tcc_runtime.errors import LedgerError


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A record that was read.

    Attributes:
        previous: the hash of the record before it.
        own: whether it was written here.
    """

    record: Record
    previous: bytes
    own: bool


class Journal(Protocol):
    """What a gate writes to.

    Attributes:
        head: of the chain.
        records: how many there are.
    """

    head: bytes
    records: int

    def lock(self, *, wait: bool) -> bool:
        """Takes it for this gate alone; False where another has it and `wait` is not asked for."""

    def unlock(self) -> None:
        """Gives it back."""

    def news(self, *, locked: bool) -> Iterator[News]:
        """Where others have written since: all records that were not read yet, one's own too."""

    def append(self, body: bytes) -> None:
        """Writes a record, as its canonical bytes."""

    def sync(self) -> None:
        """Waits until the disk has what was written."""

    def had(self, head: bytes) -> bool:
        """Whether this was its head after some record, as far as it can be read again."""

    def close(self) -> None:
        """Lets go of it."""


class InMemory:
    """Keeps nothing but the head of the chain; it belongs to the process that made it."""

    __slots__ = ("_pid", "head", "records")

    def __init__(self) -> None:
        self.head = FIRST_HEAD
        self.records = 0
        self._pid = os.getpid()

    def lock(self, *, wait: bool) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: this is a fork of that process, and two would go on with one session.
        """
        if os.getpid() != self._pid:
            raise LedgerError("memory", OSError(0, "the session is another process's"))
        return True

    def unlock(self) -> None:
        """See :class:`Journal`."""

    def news(self, *, locked: bool) -> Iterator[News]:
        """See :class:`Journal`."""
        return iter(())

    def append(self, body: bytes) -> None:
        """See :class:`Journal`."""
        self.lock(wait=False)
        _, self.head = seal(body, self.head)
        self.records += 1

    def sync(self) -> None:
        """See :class:`Journal`."""

    def had(self, head: bytes) -> bool:
        """See :class:`Journal`; nothing but the last one is kept."""
        return self.records > 0 and head == self.head

    def close(self) -> None:
        """See :class:`Journal`."""


def now_ms() -> int:
    """UTC, milliseconds since 1970."""
    return time.time_ns() // 1_000_000
