"""Where the lines of a ledger go: a file, memory, or nowhere but into the hash chain.

Text: docs/spec/ledger.md, section 1.  One writer, append only.  Lines are committed in groups: a
write for 64 KiB of them, an fsync at open, at close, and when `sync_ms` have passed since the
last.  After an error nothing more is written; the file keeps its prefix.  A file is locked while it
is written, so that no two runs write one ledger.
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
    """What a recorder writes to."""

    def open(self) -> None:
        """Before the first line."""

    def write(self, line: bytes) -> None:
        """Takes one line, its LF included."""

    def sync(self) -> None:
        """Makes what was written so far durable."""

    def close(self) -> None:
        """After the last line, or when the run is given up; a second call does nothing."""


class HashOnly:
    """Keeps nothing: the run has a ledger head, and no ledger."""

    __slots__ = ()

    def open(self) -> None:
        """Nothing to do."""

    def write(self, line: bytes) -> None:
        """Drops the line."""

    def sync(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class MemorySink:
    """Keeps the ledger's bytes, in the pieces that they come in until somebody wants the whole."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    @property
    def data(self) -> bytes:
        """The ledger as far as it is written, copied where that is more than at the last look.

        For the thread that writes.
        """
        pieces = self._pieces
        if len(pieces) != 1:
            pieces[:] = [b"".join(pieces)]
        return pieces[0]

    def open(self) -> None:
        """Nothing to do."""

    def write(self, line: bytes) -> None:
        """Appends the line."""
        self._pieces.append(line)

    def sync(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class LedgerFile:
    """Writes to a new file.

    Args:
        path: the ledger; an existing file is refused (FileExistsError inside LedgerError).
        overwrite: put a new file in the place of an existing one.
        sync_ms: at most that long after an fsync the next line is followed by one.
        clock: seconds, never falling.
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
        """Creates the file.

        Raises:
            LedgerError: it is there already, or cannot be made; LedgerBusy: another run writes it.
        """
        try:
            # A new file, not a truncated one, in the place of none that is being written.
            self._handle = create(self._path, overwrite=self._overwrite)
        except OutputBusy:
            raise LedgerBusy(str(self._path)) from None
        except OSError as error:
            raise LedgerError(str(self._path), error) from error
        self._synced = self._clock()

    def write(self, line: bytes) -> None:
        """Takes one line; it reaches the file with its group.

        Raises:
            LedgerError: the system refuses to write.
        """
        self._waiting += line
        if self._clock() - self._synced >= self._every:
            self.sync()
        elif len(self._waiting) >= _GROUP:
            self._guarded(self._flush)

    def sync(self) -> None:
        """Writes what waits, and waits until the disk has it.

        Raises:
            LedgerError: the system refuses to write.
        """
        self._guarded(self._flush)
        self._guarded(lambda: os.fsync(self._handle))
        self._synced = self._clock()

    def close(self) -> None:
        """Writes what still waits as far as the system lets it, and lets go of the file."""
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
            # No second try: what the disk has after a failed write or fsync is not known.
            self._release()
            raise LedgerError(str(self._path), error) from error

    def _release(self) -> None:
        handle, self._handle = self._handle, -1
        with suppress(OSError):
            os.close(handle)


class LedgerTail(LedgerFile):
    """Writes on in a file that is there, once it is told to.

    Args:
        path: the ledger.
        size: bytes to keep; what follows them is cut off by :meth:`begin`.
        whole: bytes that the file had when it was read.
        sync_ms, clock: as of a new file.
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
        """True if nothing was written yet."""
        return self._handle < 0

    def open(self) -> None:
        """Nothing to do before :meth:`begin`."""

    def begin(self) -> None:
        """Opens the file and cuts it to its size.

        Raises:
            LedgerError: the system refuses; LedgerBusy: another run writes it, or has since.
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
        """As of a new file; nothing before :meth:`begin`.

        Raises:
            LedgerError: the system refuses to write.
        """
        if not self.untouched:
            super().sync()
