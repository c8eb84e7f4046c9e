"""A journal: where the records of a session go, one behind the other, and are read again.

One is a file that processes share (:mod:`tcc_runtime.gate.journal.ledger_file`), one keeps nothing
(:mod:`tcc_runtime.gate.journal.memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from msgspec import Struct

from tcc_certs.formats.ledger import Record


class News(Struct, frozen=True, kw_only=True):
    """A record that was read.

    Attributes:
        record: or its line, which is parsed where its bytes do not say enough.
        previous: the hash of the record before it.
        body: its canonical bytes.
        own: whether it was written here.
    """

    record: Record
    previous: bytes
    body: bytes
    own: bool


# Whether a record, by its bytes, the hash before it and its number, was followed.
Passes: TypeAlias = "Callable[[bytes, bytes, int], bool]"


class Journal(Protocol):
    """What a gate writes to.

    Attributes:
        records: how many there are.
        doubtful: whether records of others were read that the disk may not have.
    """

    records: int
    doubtful: bool

    @property
    def head(self) -> bytes:
        """The hash of the last record: the head of the chain."""

    @property
    def synced(self) -> bytes:
        """The last head that the disk has; where the disk is not waited for, the head."""

    def lock(self, *, wait: bool, process: int) -> bool:
        """Takes it for this gate alone; False where another has it and `wait` is not asked for.

        Others see that it is waited for, until it is had or :meth:`stop_waiting` is called.

        Args:
            process: the number of this one.
        """

    def unlock(self) -> None:
        """Gives it back."""

    def stop_waiting(self) -> None:
        """It is not waited for any more."""

    def others_wait(self) -> bool:
        """Whether another process waits for it, as far as the system can tell."""

    def news(self, *, locked: bool, passes: Passes | None = None) -> Iterable[News]:
        """Where others have written since: all records that were not read yet, one's own too.

        Args:
            passes: is asked of each record of others; those that pass are followed, and no news.
        """

    def append(self, render: Callable[[bytes], bytes]) -> None:
        """Write a record.

        Args:
            render: from the head of the chain to the canonical bytes of the record.
        """

    def sync(self) -> None:
        """Waits until the disk has what was written."""

    def sync_soon(self) -> None:
        """Has it synced within 100 ms by a thread, unless :meth:`sync` was called by then."""

    def had(self, head: bytes) -> bool:
        """Whether this was its head after some record, as far as it can be read again."""

    def close(self) -> None:
        """Lets go of it."""
