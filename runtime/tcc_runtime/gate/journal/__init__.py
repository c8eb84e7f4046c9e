"""A journal stores the records of a session in order, and reads the records of other processes.

One kind is a file that processes share (:mod:`tcc_runtime.gate.journal.ledger_file`).  The other
kind is in memory and stores nothing (:mod:`tcc_runtime.gate.journal.memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from msgspec import Struct

from tcc_certs.formats.ledger import Record


class News(Struct, frozen=True, kw_only=True):
    """A record that was read.

    Attributes:
        record: the record; or its line, which the reader parses only if its form is not a frequent
            one.
        previous: the hash of the record before it.
        body: the canonical bytes of the record.
        own: whether this journal object wrote the record.
    """

    record: Record
    previous: bytes
    body: bytes
    own: bool


# Applies a record, given its bytes, the hash before it and its number; returns whether it could.
Passes: TypeAlias = "Callable[[bytes, bytes, int], bool]"


class Journal(Protocol):
    """The records of one session.

    Attributes:
        records: the number of records, in all files.
        doubtful: whether the disk may lack records of other processes that were read.
    """

    records: int
    doubtful: bool

    @property
    def head(self) -> bytes:
        """The hash of the last record: the head of the chain."""

    @property
    def synced(self) -> bytes:
        """The last head that the disk has; if nothing waits for the disk, the head."""

    def lock(self, *, wait: bool, process: int) -> bool:
        """Take the lock; return False if another process has it and `wait` is False.

        Other processes see that this one wants the lock, until it has the lock or calls
        :meth:`stop_waiting`.

        Args:
            process: the number of this process.
        """

    def unlock(self) -> None:
        """Release the lock."""

    def stop_waiting(self) -> None:
        """Stop showing other processes that this one wants the lock."""

    def others_wait(self) -> bool:
        """Return whether another process waits for the lock; False if the system cannot tell."""

    def news(self, *, locked: bool, passes: Passes | None = None) -> Iterable[News]:
        """Return the records that were not read yet.

        If another process has written, the result also has the records that this object wrote
        meanwhile.

        Args:
            locked: whether the caller has the lock.
            passes: applies records of other processes.  Records that it applies are left out of the
                result.
        """

    def append(self, render: Callable[[bytes], bytes]) -> None:
        """Write a record.

        Args:
            render: from the head of the chain to the canonical bytes of the record.
        """

    @property
    def is_full(self) -> bool:
        """True if the next record belongs into another file: call :meth:`roll` first."""

    def roll(self, roll: Callable[[bytes], bytes], first: Callable[[bytes], bytes]) -> None:
        """Continue in another file.

        Args:
            roll: from the head of the chain to the canonical bytes of the `roll` record.
            first: from the hash of that record to the bytes of the first record of the next file.
        """

    def sync(self) -> None:
        """Wait until the disk has all records."""

    def sync_soon(self) -> None:
        """Let a thread sync the records within 100 ms, unless :meth:`sync` does so before."""

    def had(self, head: bytes) -> bool:
        """Return whether the chain once had this head, as far as its records can be read again."""

    def close(self) -> None:
        """Release all resources."""
