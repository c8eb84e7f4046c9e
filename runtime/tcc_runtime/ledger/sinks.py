"""Receivers of a ledger's lines: a file, memory, or only the hash chain.

Text: docs/spec/ledger.md, section 1.  A ledger has one writer, which only appends.  Lines are
written in groups of 64 KiB.  An fsync follows at open, at close, and when `sync_ms` have passed
since the last one.  After an error nothing more is written; the file keeps the lines so far.  A
file is locked while it is written, so two runs never write the same ledger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tcc_runtime.errors import LedgerBusy, LedgerError, OutputBusy
from tcc_runtime.ledger.outputs import create, locked, target_of

_GROUP = 1 << 16


class LineSink(Protocol):
    """The interface of a receiver of lines."""

    def open(self) -> None:
        """Prepare for the first line."""

    def write(self, line: bytes) -> None:
        """Receive one line or several, each with its line feed."""

    def sync(self) -> None:
        """Make all received lines durable."""

    def close(self) -> None:
        """Finish after the last line, or when the run is given up.  A second call has no effect."""


class HashOnly:
    """Drops all lines: the run has a ledger head, but no ledger."""

    __slots__ = ()

    def open(self) -> None:
        """Do nothing."""

    def write(self, line: bytes) -> None:
        """Drop the line."""

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class MemorySink:
    """Keeps the bytes of the ledger, as the pieces that it received."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    @property
    def data(self) -> bytes:
        """The bytes of the ledger so far.  Pieces are joined when this is read.

        Use it only in the thread that writes.
        """
        pieces = self._pieces
        if len(pieces) != 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0]

    def open(self) -> None:
        """Do nothing."""

    def write(self, line: bytes) -> None:
        """Append the line."""
        self._pieces.append(line)

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class LedgerFile:
    """Writes to a new file.

    Args:
        path: the ledger.
        overwrite: whether to replace an existing file.  False: it is refused (a LedgerError whose
            cause is FileExistsError).
        sync_ms: a line is followed by an fsync if the last one is at least this many milliseconds
            ago.
        clock: returns seconds that never decrease.
    """

    def __init__(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        sync_ms: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._overwrite = overwrite
        self._every = sync_ms / 1000
        self._clock = clock
        self._handle = -1
        self._waiting = bytearray()
        self._synced = 0.0

    def open(self) -> None:
        """Create the file.

        Raises:
            LedgerError: the file exists, or cannot be created.
            LedgerBusy: another run writes the file.
        """
        try:
            # Creates a new file instead of truncating the old one, and never replaces one that is
            # being written.
            self._handle = create(self._path, overwrite=self._overwrite)
        except OutputBusy:
            raise LedgerBusy(str(self._path)) from None
        except OSError as error:
            raise LedgerError(str(self._path), error) from error
        self._synced = self._clock()

    def write(self, line: bytes) -> None:
        """Queue a line; lines are written in groups.

        Raises:
            LedgerError: the system refuses to write.
        """
        self._waiting += line
        if self._clock() - self._synced >= self._every:
            self.sync()
        elif len(self._waiting) >= _GROUP:
            self._guarded(self._flush)

    def sync(self) -> None:
        """Write the queued lines, and wait until the disk has them.

        Raises:
            LedgerError: the system refuses to write.
        """
        self._guarded(self._flush)
        self._guarded(lambda: os.fsync(self._handle))
        self._synced = self._clock()

    def close(self) -> None:
        """Write the queued lines if the system allows it, and close the file."""
        if self._handle < 0:
            return
        with suppress(OSError):
            self._flush()
        self._release()

    def _flush(self) -> None:
        while self._waiting:
            written = os.write(self._handle, self._waiting)
            del self._waiting[:written]

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except LedgerError:
            raise
        except OSError as error:
            # Do not try again: after a failed write or fsync the content of the disk is not known.
            self._release()
            raise LedgerError(str(self._path), error) from error

    def _release(self) -> None:
        handle, self._handle = self._handle, -1
        with suppress(OSError):
            os.close(handle)


class LedgerTail(LedgerFile):
    """Continues an existing file, after :meth:`begin` is called.

    Args:
        path: the ledger.
        size: the number of bytes to keep; :meth:`begin` cuts off the rest.
        whole: the number of bytes that the file had when it was read.
        sync_ms, clock: see :class:`LedgerFile`.
    """

    def __init__(
        self,
        path: Path,
        size: int,
        whole: int,
        *,
        sync_ms: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(path, sync_ms=sync_ms, clock=clock)
        self._size = size
        self._whole = whole

    @property
    def untouched(self) -> bool:
        """True if :meth:`begin` was not called yet."""
        return self._handle < 0

    def open(self) -> None:
        """Do nothing: :meth:`begin` opens the file."""

    def begin(self) -> None:
        """Open the file and cut it to its size.

        Raises:
            LedgerError: the file cannot be opened or cut.
            LedgerBusy: another run writes the file, or has written it since it was read.
        """
        self._take()
        if os.fstat(self._handle).st_size != self._whole:
            self._release()
            raise LedgerBusy(str(self._path))
        self._guarded(lambda: os.ftruncate(self._handle, self._size))
        self.sync()

    def _take(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._handle = os.open(target_of(self._path), flags)
        except OSError as error:
            raise LedgerError(str(self._path), error) from error
        if not locked(self._handle):
            self._release()
            raise LedgerBusy(str(self._path))

    def sync(self) -> None:
        """See :class:`LedgerFile`; does nothing before :meth:`begin`.

        Raises:
            LedgerError: the system refuses to write.
        """
        if not self.untouched:
            super().sync()
