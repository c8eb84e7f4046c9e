"""The file of a session's ledger: it is locked, read and appended to.

docs/spec/ledger.md defines the chain.  A process locks the file while a call is under way.  After
taking the lock it reads new records.  A crash may leave a *torn* last line, of which only the start
was written: the process that holds the lock cuts it off.  If another process has written, this one
reads its own records again, too, in one pass in the order of the file.  After an error of the
system the file is not written any more, because nobody knows what the disk has.

Text: docs/gate.md; docs/spec/session.md, sections 1 and 2.
Cost: a hash and a write for each record; an fdatasync if it has to be durable; one thread of the
process, which syncs records that no later call has synced.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from binascii import hexlify
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import ref

from blake3 import blake3

from tcc_certs.errors import clip
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Line
from tcc_runtime.errors import LedgerError, OutputRefused, ResumeError
from tcc_runtime.gate.journal import News, Passes
from tcc_runtime.gate.journal.private_files import open_private
from tcc_runtime.ledger.outputs import sync_folder, target_of
from tcc_runtime.process import process_number

_CHUNK: Final = 1 << 16
_FLAGS: Final = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_BEGINS: Final = b'{"arguments":{"show":['
_sync = getattr(os, "fdatasync", os.fsync)


class InFile:
    """A ledger on disk.

    Args:
        private: whether the file belongs to a store: it exists, is no link, and only its owner
            may read it.

    Attributes:
        path: the file.
        device, inode: the identity of the file, independent of its name.
    """

    def __init__(self, path: Path, *, durable: bool = True, private: bool = False) -> None:
        self.path = path
        self._durable = durable
        self.private = private
        self._hasher = blake3()
        self._disk = threading.Lock()  # held while waiting for the disk, and while closing
        self._synced = FIRST_HEAD
        self.doubtful = False
        self.unsynced_since: float | None = None
        self.queued = False
        self._read_to = 0, 0, FIRST_HEAD  # bytes, records, head of what was read
        self.head = FIRST_HEAD
        self.records = 0
        self._size = 0
        self._broken = self._locked = self._waits = False
        self._handle = -1
        self._pid = process_number()
        self._is_ours = not private and not path.exists()
        self._open()
        found = os.fstat(self._handle)
        self.device, self.inode = found.st_dev, found.st_ino

    def _open(self) -> None:
        try:
            if self.private:
                self._handle = open_private(self.path, _FLAGS)
                return
            target = target_of(self.path)
            new = not target.exists()
            self._handle = os.open(target, _FLAGS | os.O_CREAT, 0o644)
            if new and self._durable:
                sync_folder(target.parent)
        except OutputRefused:
            raise
        except OSError as error:
            raise LedgerError(str(self.path), error) from error

    def _require_own(self) -> None:
        """Open the file again after a fork, which would share the lock of its parent.

        Raises:
            LedgerError: an earlier write failed; or another file has the name now.
        """
        if self._handle < 0 or self._broken:
            raise LedgerError(str(self.path), OSError(0, "an earlier write has failed"))
        if process_number() == self._pid:
            return
        with suppress(OSError):
            os.close(self._handle)
        self._pid = process_number()
        self._locked = self.queued = self._waits = False
        self._disk = threading.Lock()
        self._open()
        found = os.fstat(self._handle)
        if (found.st_dev, found.st_ino) != (self.device, self.inode):
            self._broken = True
            raise LedgerError(str(self.path), OSError(0, "another file has its name"))

    def _require_locked(self) -> None:
        """Require the lock; a fork inside a block of its parent does not have it."""
        self._require_own()
        if not self._locked:
            raise LedgerError(str(self.path), OSError(0, "the lock is another process's"))

    def lock(self, *, wait: bool, process: int) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: an earlier write has failed; the file is gone, or is another one now.
        """
        if self._handle < 0 or self._broken or process != self._pid:
            self._require_own()
        try:
            _flock(self._handle, _AT_ONCE)
            self._locked = True
        except BlockingIOError:
            self._locked = self._wait_for_lock(wait)
        except OSError as error:
            raise self._fail(error) from error
        if self._waits and self._locked:
            self.stop_waiting()
        return self._locked

    def _wait_for_lock(self, wait: bool) -> bool:
        """Mark that this process wants the lock; with `wait`, take it.  Return `wait`."""
        try:
            if not self._waits:
                _mark(self._handle, waits=True)
                self._waits = True
            if wait:
                _flock(self._handle, _IN_TIME)
        except OSError as error:
            raise self._fail(error) from error
        finally:
            if wait:
                self.stop_waiting()
        return wait

    def stop_waiting(self) -> None:
        """See :class:`Journal`."""
        if self._waits and self._handle >= 0 and process_number() == self._pid:
            with suppress(OSError):
                _mark(self._handle, waits=False)
        self._waits = False

    def others_wait(self) -> bool:
        """See :class:`Journal`."""
        try:
            return self._handle >= 0 and _is_marked(self._handle)
        except OSError:
            return False

    def is_new(self) -> bool:
        """Whether there is no whole record yet.

        Raises:
            LedgerError: the file cannot be read, or was removed during the wait for its lock.
            ResumeError: the file is no ledger of a session.
        """
        if os.fstat(self._handle).st_nlink == 0:
            raise self._fail(OSError(0, "the file was removed or cut"))
        _require_session(self._piece(0), _BEGINS[: _BEGINS.index(b":") + 1])
        at = 0
        while piece := self._piece(at):
            if b"\n" in piece:
                return False
            at += len(piece)
        return True

    def unlock(self) -> None:
        """See :class:`Journal`."""
        if self._handle >= 0 and process_number() == self._pid:
            self._locked = False
            with suppress(OSError):
                _flock(self._handle, _UNLOCK)

    def news(self, *, locked: bool, passes: Passes | None = None) -> Iterable[News]:
        """See :class:`Journal`; with the lock a torn last line is cut off.

        Raises:
            LedgerError: the file was removed or cut, or cannot be read or cut.
            Rejected: L101, L102 or D201: the new lines do not continue the chain, or a record of
                this process is missing.
        """
        if not locked:  # taking the lock has checked this
            self._require_own()
        found = os.fstat(self._handle)
        size = found.st_size
        if found.st_nlink == 0 or size < self._size:
            raise self._fail(OSError(0, "the file was removed or cut"))
        return () if size == self._size else self._read(locked, passes)

    def _read(self, locked: bool, passes: Passes | None) -> Iterator[News]:
        size, records, previous = self._read_to
        reader = LedgerReader(self._chunks(size))
        reader.head, reader.records = previous, records
        for raw in reader.unverified():
            body, number, head = reader.body(raw), reader.records, reader.head
            size += len(raw) + 1
            own = number <= self.records
            if own and number == self.records and head != self.head:
                raise self._fail(OSError(0, "what was written is not there any more"))
            if own or passes is None or not passes(body, previous, number):
                line = Line(reader, raw, previous, body)
                yield News(record=line, previous=previous, body=body, own=own)
            # Advance only after the caller applied the record: an interrupted record is read
            # again.  An interrupt between these lines would mix up own records and others, so it
            # stops the ledger.
            self._broken = True
            if not own:
                self.head, self.records, self._size = head, number, size
                self.doubtful = self._durable
            self._read_to = size, number, head
            self._broken = False
            previous = head
        if reader.records < self.records:
            raise self._fail(OSError(0, "what was written is not there any more"))
        if reader.tail and locked:
            self._cut_torn(reader.tail)

    def had(self, head: bytes) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: the file cannot be read.
            Rejected: L101, L102 or D201: the file was changed.
        """
        self._require_own()
        reader = LedgerReader(self._chunks(0))
        for raw in reader.unverified():
            reader.verified(raw)
            if reader.head == head:
                return True
            if reader.records == self.records:
                break
        return False

    def _chunks(self, at: int) -> Iterator[bytes]:
        while chunk := self._piece(at):
            at += len(chunk)
            yield chunk

    def _piece(self, at: int) -> bytes:
        try:
            os.lseek(self._handle, at, os.SEEK_SET)
            return os.read(self._handle, _CHUNK)
        except OSError as error:
            raise self._fail(error) from error

    def _cut_torn(self, tail: bytes) -> None:
        # A file that is no ledger of a session is never cut.
        if not self.records:
            _require_session(tail, _BEGINS)
        try:
            os.ftruncate(self._handle, self._size)
            if self._durable:
                _sync(self._handle)
        except OSError as error:
            raise self._fail(error) from error

    def append(self, render: Callable[[bytes], bytes]) -> None:
        """See :class:`Journal`.

        Raises:
            LedgerError: the system refuses to write.
        """
        if not self._locked or self._handle < 0 or self._broken or process_number() != self._pid:
            self._require_locked()
        body = render(self.head)
        hasher = self._hasher
        hasher.reset()
        hasher.update(self.head + body)
        head = hasher.digest()
        # As `seal` of the format has it.
        line = b"".join((body[:-1], b',"~":"', hexlify(head), b'"}\n'))
        try:
            put, whole = os.write(self._handle, line), len(line)
            while put < whole:
                put += os.write(self._handle, line[put:])
        except OSError as error:
            raise self._fail(error) from error
        self.head = head
        self.records += 1
        self._size += whole

    def sync(self) -> None:
        """See :class:`Journal`.

        Raises:
            LedgerError: the system refuses to write.
        """
        self._require_locked()
        self._wait_for_disk()
        self.doubtful = False

    @property
    def synced(self) -> bytes:
        """See :class:`Journal`."""
        return self._synced if self._durable else self.head

    def sync_soon(self) -> None:
        """See :class:`Journal`."""
        if not self._durable:
            return
        if self.unsynced_since is None:
            self.unsynced_since = time.monotonic()
        if not self.queued:
            self.queued = True
            _later.put(self)

    def flush(self) -> None:
        """Wait until the disk has all records, if it may lack some; the lock is not needed.

        Raises:
            LedgerError: the system refuses to write.
        """
        mine = self._handle >= 0 and process_number() == self._pid
        if self._durable and mine and not self._broken and self.unsynced_since is not None:
            self._wait_for_disk()

    def _wait_for_disk(self) -> None:
        """Sync all records that are in the file by now, also those of other processes."""
        with self._disk:
            if self._handle < 0:
                return
            self.unsynced_since = None  # before reading the head: a record in between is synced
            head = self.head
            try:
                _sync(self._handle)
            except OSError as error:
                raise self._fail(error) from error
            self._synced = head

    def _has_name(self) -> bool:
        """Whether the path still names this file.

        Raises:
            OSError: the path cannot be looked up.
        """
        found = os.lstat(self.path) if self.private else target_of(self.path).stat()
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def roll(self, session_id: str) -> None:
        """Rename an ended ledger to its name and the session's id; the lock is needed.

        Another process may have done so already; then this does nothing.

        Raises:
            ResumeError: another file has that name.
            LedgerError: the system refuses.
        """
        self._require_locked()
        try:
            if not self.path.exists() or not self._has_name():
                return
            target = target_of(self.path)
            kept = target.with_name(f"{target.name}.{session_id}")
            try:
                os.link(target, kept)  # it replaces nothing
            except FileExistsError:
                if not (os.path.lexists(kept) and kept.samefile(target)):
                    raise ResumeError(str(kept), "a name that is free", "a file") from None
            target.unlink()
            if self._durable:
                sync_folder(target.parent)
        except OSError as error:
            raise self._fail(error) from error

    def emptied(self) -> bool:
        """Remove all records; False: that failed, or the path names another file."""
        self._broken = True
        if not self._locked or process_number() != self._pid:
            return False
        try:
            if not self._has_name():
                return False
            if self.private:  # in one step: no process finds a ledger of a store without a header
                self.path.unlink()
                return True
            os.ftruncate(self._handle, 0)
        except (OSError, LedgerError):
            return False
        return True

    def remove(self) -> None:
        """Remove the file if this object created it; call :meth:`emptied` first, with the lock."""
        if self._is_ours:
            with suppress(OSError, LedgerError):
                target_of(self.path).unlink()

    def _fail(self, error: OSError) -> LedgerError:
        # No second try: after a failed write or fsync nobody knows what the disk has.
        self._broken = True
        return LedgerError(str(self.path), error)

    def close(self) -> None:
        """See :class:`Journal`; it waits until the disk has all records."""
        if process_number() != self._pid:
            self._disk = threading.Lock()
        with suppress(LedgerError):
            self.flush()
        with self._disk:
            handle, self._handle = self._handle, -1
            if handle >= 0:
                with suppress(OSError):
                    os.close(handle)

    def __del__(self) -> None:
        if hasattr(self, "queued"):
            self.close()


_SOON: Final = 0.05  # seconds; the promise is a tenth


class _Later:
    """Syncs ledgers whose last records no later call has synced; it owns one thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: deque[tuple[float, ref[InFile]]] = deque()
        self._thread: threading.Thread | None = None

    def put(self, journal: InFile) -> None:
        """Sync a ledger in a while, unless a call has done so by then."""
        with self._changed:
            self._due.append((time.monotonic() + _SOON, ref(journal)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tcc-sync", daemon=True)
                self._thread.start()
            elif len(self._due) == 1:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            journal = self._next()
            if journal is None:
                continue
            journal.queued = False
            since = journal.unsynced_since
            if since is not None and since + _SOON > time.monotonic():
                journal.queued = True
                self.put(journal)  # a newer record: wait again
            else:
                with suppress(LedgerError):  # the next call raises it
                    journal.flush()
            del journal

    def _next(self) -> InFile | None:
        """Wait for the time of the next ledger; None: it does not exist any more."""
        with self._changed:
            while not self._due:
                self._changed.wait()
            until, known = self._due.popleft()
        time.sleep(max(0.0, until - time.monotonic()))
        return known()


_later = _Later()


def _forked() -> None:
    """Start anew in a fork: the thread is the parent's, and its lock may never be released."""
    global _later
    _later = _Later()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _require_session(data: bytes, begins: bytes) -> None:
    """Require the start of a session's first line, as far as the file has it.

    Raises:
        ResumeError: the file starts with something else.
    """
    if data[: len(begins)] != begins[: len(data)]:
        line = data.partition(b"\n")[0]
        of_run = line[:2] == b'{"' and b'"kind":"open"' in line
        found = "that of a run" if of_run else clip(line.decode("utf-8", "replace"), 80)
        raise ResumeError("line 1", "the ledger of a session", found)


if sys.platform == "win32":
    _AT_ONCE = _IN_TIME = _UNLOCK = 0

    def _flock(handle: int, operation: int, /) -> None:
        return None
else:
    import fcntl

    _AT_ONCE: Final = fcntl.LOCK_EX | fcntl.LOCK_NB
    _IN_TIME: Final = fcntl.LOCK_EX
    _UNLOCK: Final = fcntl.LOCK_UN
    _flock = fcntl.flock


# A process that waits for a ledger's lock holds a mark: a shared lock of the open file, which ends
# with the process (Linux).  The holder of the ledger sees the mark.  Other systems have no marks:
# there a holder releases the ledger after a fixed number of calls.

if sys.platform == "linux" and sys.maxsize > 1 << 32:
    _MARK: Final = struct.Struct("@hhqqi4x")  # type, whence, start, length, process
    _MARK_AT: Final = 1 << 62

    def _mark(handle: int, *, waits: bool) -> None:
        kind = fcntl.F_RDLCK if waits else fcntl.F_UNLCK
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _MARK.pack(kind, os.SEEK_SET, _MARK_AT, 1, 0))

    _ASKED: Final = _MARK.pack(fcntl.F_WRLCK, os.SEEK_SET, _MARK_AT, 1, 0)

    def _is_marked(handle: int) -> bool:
        found = fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _ASKED)
        return bool(_MARK.unpack(found)[0] != fcntl.F_UNLCK)
else:

    def _mark(handle: int, *, waits: bool) -> None:
        return None

    def _is_marked(handle: int) -> bool:
        return False
