"""The files of a session's ledger: locking, reading and appending.

docs/spec/ledger.md defines the chain.  A process locks the first file while a call is under way.
After taking the lock it reads new records.  A crash may leave a *torn* last line, of which only the
start was written.  The process that holds the lock cuts it off.  If another process has written,
this one reads its own records again, too, in one pass in their order.  After an error of the
system, nothing more is written to the ledger, because the content of the disk is not known.

A ledger NAME that reaches its size continues in NAME.1, then in NAME.2.  The `roll` record is on
the disk before the next file is created.  The next file appears with its first record complete.  So
after a crash the ledger ends with `roll`, or has the next file.  Both can be continued.  The lock
of the first file covers all files.

Text: docs/gate.md; docs/spec/session.md, sections 1, 2 and 4.
Cost: a hash and a write for each record, and an fdatasync if it has to be durable.  One thread of
the process syncs records that no later call has synced.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from binascii import hexlify
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from weakref import ref

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Line, parsed, seal
from tcc_certs.session.files import file_name
from tcc_runtime.errors import LedgerError, OutputRefused, ResumeError
from tcc_runtime.gate.journal import News, Passes
from tcc_runtime.gate.journal.private_files import open_private, put_whole
from tcc_runtime.ledger.outputs import sync_folder, target_of
from tcc_runtime.process import process_number

_CHUNK: Final = 1 << 16
_FLAGS: Final = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
_BEGINS: Final = b'{"arguments":{"show":['
_ROLL: Final = b'{"kind":"roll"'  # no other record starts so
_MOST_PROBED: Final = 8  # probed file names after a missing file
_sync = getattr(os, "fdatasync", os.fsync)


class _Place(NamedTuple):
    """A place in a ledger.

    Attributes:
        number: the number of the file.
        size: the bytes of the file before the place.
        records: the number of records in all files before the place.
        head: the hash of the last record in the file.
        rolled: whether that record is a `roll`.
    """

    number: int = 0
    size: int = 0
    records: int = 0
    head: bytes = FIRST_HEAD
    rolled: bool = False


class InFile:
    """A ledger on disk.

    Args:
        private: whether the files belong to a store.  Then the first file must exist, no file may
            be a link, and only the owner may have access.
        roll_bytes: the size in bytes at which the ledger continues in another file; None: never.

    Attributes:
        path: the first file.
        device, inode: the identity of the first file, independent of its name.
        rolled: whether the last record is a `roll`, and no other file follows yet.
    """

    def __init__(
        self,
        path: Path,
        *,
        durable: bool = True,
        private: bool = False,
        roll_bytes: int | None = None,
    ) -> None:
        self.path = path
        self._durable = durable
        self.private = private
        self._roll_bytes = roll_bytes
        self._hasher = blake3()
        self._disk = threading.Lock()  # held while waiting for the disk, and while closing
        self._synced = FIRST_HEAD
        self.doubtful = False
        self.unsynced_since: float | None = None
        self.queued = False
        self._read_to = _Place()
        self.head = FIRST_HEAD
        self.records = 0
        self.rolled = False
        self._number = self._size = 0  # of the last file
        self._records_before = 0  # in the other files
        self._broken = self._locked = self._waits = False
        # handles of the first file, which is locked, and of the last file
        self._handle = self._last = -1
        self._pid = process_number()
        self._is_ours = not private and not path.exists()
        self._open()
        found = os.fstat(self._handle)
        self.device, self.inode = found.st_dev, found.st_ino

    def _open(self) -> None:
        try:
            if self.private:
                self._handle = self._last = open_private(self.path, _FLAGS)
                return
            target = target_of(self.path)
            new = not target.exists()
            self._handle = self._last = os.open(target, _FLAGS | os.O_CREAT, 0o644)
            if new and self._durable:
                sync_folder(target.parent)
        except OutputRefused:
            raise
        except OSError as error:
            raise LedgerError(str(self.path), error) from error

    def _name(self, number: int) -> Path:
        """Return the path of a file of the ledger."""
        return file_name(self.path if self.private else target_of(self.path), number)

    def _open_file(self, number: int) -> int:
        """Open a file of the ledger; return -1 if it is missing or has no whole line.

        Raises:
            OSError: the file cannot be opened.
            ResumeError: the file may not belong to a store.
        """
        path = self._name(number)
        if not os.path.lexists(path):
            return -1
        handle = open_private(path, _FLAGS) if self.private else os.open(path, _FLAGS)
        try:
            if self._has_line(handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return -1

    def _require_own(self) -> None:
        """Open the files again after a fork, because the child would share its parent's lock.

        Raises:
            LedgerError: an earlier write failed; or another file has the name now.
        """
        if self._handle < 0 or self._broken:
            raise LedgerError(str(self.path), OSError(0, "an earlier write has failed"))
        if process_number() == self._pid:
            return
        for handle in {self._handle, self._last}:
            with suppress(OSError):
                os.close(handle)
        self._pid = process_number()
        self._locked = self.queued = self._waits = False
        self._disk = threading.Lock()
        self._open()
        found = os.fstat(self._handle)
        is_same = (found.st_dev, found.st_ino) == (self.device, self.inode)
        if is_same and self._number:
            try:
                self._last = self._open_file(self._number)
            except OSError as error:
                raise self._fail(error) from error
            is_same = self._last >= 0
        if not is_same:
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
        """Return whether the ledger has no complete record; if so, remove files of an earlier
        session.

        Raises:
            LedgerError: the file cannot be read, or was removed during the wait for its lock.
            ResumeError: the file has another content than a session's ledger, or the next file
                names are taken.
        """
        if os.fstat(self._handle).st_nlink == 0:
            raise self._fail(OSError(0, "the file was removed or cut"))
        _require_session(self._piece(self._handle, 0), _BEGINS[: _BEGINS.index(b":") + 1])
        if self._has_line(self._handle):
            return False
        self._remove_set_aside()
        return True

    def _has_line(self, handle: int) -> bool:
        at = 0
        while piece := self._piece(handle, at):
            if b"\n" in piece:
                return True
            at += len(piece)
        return False

    def unlock(self) -> None:
        """See :class:`Journal`."""
        if self._handle >= 0 and process_number() == self._pid:
            self._locked = False
            with suppress(OSError):
                _flock(self._handle, _UNLOCK)

    def news(self, *, locked: bool, passes: Passes | None = None) -> Iterable[News]:
        """See :class:`Journal`.  With the lock, a torn last line is cut off.

        Raises:
            LedgerError: a file was removed or cut, or cannot be read or cut.
            Rejected: L101, L102, L104 or D201: the new lines do not continue the chain, or a record
                of this process is missing.
            ResumeError: a file of the ledger lost its end, and a later file exists.
        """
        if not locked:  # `lock` has checked this
            self._require_own()
        found = os.fstat(self._last)
        size = found.st_size
        is_gone = found.st_nlink == 0 or size < self._size
        if is_gone or (self._number and os.fstat(self._handle).st_nlink == 0):
            raise self._fail(OSError(0, "the file was removed or cut"))
        if size == self._size and not self.rolled:
            return ()
        return self._read(locked, passes)

    def _read(self, locked: bool, passes: Passes | None) -> Iterator[News]:
        while True:
            number = self._read_to.number
            is_last = number == self._number
            try:
                handle = self._last if is_last else self._open_file(number)
            except OSError as error:
                raise self._fail(error) from error
            if handle < 0:
                raise self._fail(OSError(0, "a file of the ledger was removed or cut"))
            try:
                tail = yield from self._read_file(handle, passes)
            finally:
                if not is_last:
                    os.close(handle)
            if not self._begin_reading_next():
                break
        if self._read_to.records < self.records:
            raise self._fail(OSError(0, "what was written is not there any more"))
        if tail and locked:
            self._cut_torn(tail)

    def _begin_reading_next(self) -> bool:
        """Move to the next file; return whether it exists.

        Raises:
            ResumeError: a file does not end with `roll`, or is missing, and a later one exists.
        """
        number, _, records, _, rolled = self._read_to
        if not rolled:
            later = self._later(number) if number == self._number else 0
            if later:
                self._require_no_other(later)
            return False
        if number == self._number:  # another process may have begun the next file
            # looked up first: another process creates the next file before later ones
            later = self._later(number + 1)
            try:
                handle = self._open_file(number + 1)
                if handle < 0:
                    if later:
                        expected = f"the file that {self._name(later).name} follows"
                        raise ResumeError(str(self._name(number + 1)), expected, "none")
                    self.rolled = True
                    return False
                if self._durable:
                    _sync(self._last)
            except OSError as error:
                raise self._fail(error) from error
            self._take(handle, number + 1, records)
        self._read_to = _Place(number + 1, 0, records)
        return True

    def _later(self, number: int) -> int:
        """Return the number of the first existing file after `number`, looking at the next few; 0:
        none exists.
        """
        numbers = range(number + 1, number + 1 + _MOST_PROBED)
        return next((one for one in numbers if os.path.lexists(self._name(one))), 0)

    def _take(self, handle: int, number: int, records: int) -> None:
        """Make another file the last one.

        Args:
            handle, number: of that file.
            records: the number of records in the files before it.
        """
        with self._disk:
            last, self._last = self._last, handle
            if last != self._handle:
                os.close(last)
        self._number, self._size, self._records_before = number, 0, records
        self.head, self.rolled = FIRST_HEAD, False

    def _read_file(self, handle: int, passes: Passes | None) -> Generator[News, None, bytes]:
        """Yield the new records of one file; return its torn last line."""
        number, size, records, previous, rolled = self._read_to
        reader = LedgerReader(self._chunks(handle, size))
        reader.head, reader.records = previous, records
        for raw in reader.unverified():
            body, count, head = reader.body(raw), reader.records, reader.head
            if rolled:
                raise Rejected(Code.LEDGER_ORDER, f"line {count}", "nothing after roll", raw[:40])
            size += len(raw) + 1
            own = count <= self.records
            if own and count == self.records and head != self.head:
                raise self._fail(OSError(0, "what was written is not there any more"))
            if own or passes is None or not passes(body, previous, count):
                line = Line(reader, raw, previous, body)
                yield News(record=line, previous=previous, body=body, own=own)
            # Advance only after the caller applied the record: an interrupted record is read
            # again.  An interrupt between these lines would mix up own records and others, so it
            # stops the ledger.
            self._broken = True
            rolled = body.startswith(_ROLL)
            if not own:
                self.head, self.records, self._size = head, count, size
                self.rolled = rolled
                self.doubtful = self._durable
            self._read_to = _Place(number, size, count, head, rolled)
            self._broken = False
            previous = head
        if reader.tail and rolled:
            expected = f"line {reader.records + 1}"
            raise Rejected(Code.LEDGER_ORDER, expected, "nothing after roll", reader.tail[:40])
        return reader.tail

    def had(self, head: bytes) -> bool:
        """See :class:`Journal`.

        Raises:
            LedgerError: a file cannot be read.
            Rejected: L101, L102 or D201: a file was changed.
        """
        self._require_own()
        records = 0
        for number in range(self._number + 1):
            try:
                handle = self._last if number == self._number else self._open_file(number)
            except OSError as error:
                raise self._fail(error) from error
            if handle < 0:
                return False
            try:
                reader = LedgerReader(self._chunks(handle, 0))
                for raw in reader.unverified():
                    reader.verified(raw)
                    if reader.head == head:
                        return True
                    if records + reader.records == self.records:
                        return False
                records += reader.records
            finally:
                if number < self._number:
                    os.close(handle)
        return False

    def _chunks(self, handle: int, at: int) -> Iterator[bytes]:
        while chunk := self._piece(handle, at):
            at += len(chunk)
            yield chunk

    def _piece(self, handle: int, at: int) -> bytes:
        try:
            os.lseek(handle, at, os.SEEK_SET)
            return os.read(handle, _CHUNK)
        except OSError as error:
            raise self._fail(error) from error

    def _cut_torn(self, tail: bytes) -> None:
        # Only files that begin like a session's ledger are cut.
        if not self.records:
            _require_session(tail, _BEGINS)
        try:
            os.ftruncate(self._last, self._size)
            if self._durable:
                _sync(self._last)
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
        # The same bytes as `seal` of the format.
        line = b"".join((body[:-1], b',"~":"', hexlify(head), b'"}\n'))
        try:
            put, whole = os.write(self._last, line), len(line)
            while put < whole:
                put += os.write(self._last, line[put:])
        except OSError as error:
            raise self._fail(error) from error
        self.head = head
        self.records += 1
        self._size += whole

    @property
    def is_full(self) -> bool:
        """See :class:`Journal`."""
        if self.rolled:
            return True
        most = self._roll_bytes
        return most is not None and self._size >= most and self.records > self._records_before + 1

    def roll(self, roll: Callable[[bytes], bytes], first: Callable[[bytes], bytes]) -> None:
        """See :class:`Journal`.  The `roll` record is on the disk before the next file is created.

        Raises:
            LedgerError: the system refuses to write.
            ResumeError: a file with the next file's name exists.
        """
        self._require_locked()
        number = self._number + 1
        path = self._name(number)
        try:
            other = self._open_file(number)
            if other >= 0:
                os.close(other)
                self._broken = True
                raise ResumeError(str(path), "no file: the ledger would continue there", "a file")
            if not self.rolled:
                self.append(roll)
                self.rolled = True
            if self._durable:
                self._wait_for_disk()
            line, first_head = seal(first(self.head), FIRST_HEAD)
            mode = 0o600 if self.private else 0o644
            put_whole(
                path, line, durable=self._durable, beside=path.with_name(f"{path.name}.new"),
                mode=mode,
            )  # fmt: skip
            handle = open_private(path, _FLAGS) if self.private else os.open(path, _FLAGS)
        except OSError as error:
            raise self._fail(error) from error
        self._take(handle, number, self.records)
        self.head, self._size = first_head, len(line)
        self.records += 1
        self._synced = first_head

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
        """Wait until the disk has all records, unless it has them.  Does not need the lock.

        Raises:
            LedgerError: the system refuses to write.
        """
        mine = self._handle >= 0 and process_number() == self._pid
        if self._durable and mine and not self._broken and self.unsynced_since is not None:
            self._wait_for_disk()

    def _wait_for_disk(self) -> None:
        """Sync all records in the file, including records of other processes."""
        with self._disk:
            if self._handle < 0:
                return
            self.unsynced_since = None  # before reading the head: a record in between is synced
            head = self.head
            try:
                _sync(self._last)
            except OSError as error:
                raise self._fail(error) from error
            self._synced = head

    def _has_name(self) -> bool:
        """Return whether the path still names this file.

        Raises:
            OSError: the path cannot be looked up.
        """
        found = os.lstat(self.path) if self.private else target_of(self.path).stat()
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def set_aside(self, session_id: str) -> None:
        """Rename the files of an ended ledger: NAME.1 becomes NAME.ID.1; the lock is needed.

        Does nothing if another process has renamed them.  Files after the first keep their old
        names as well, until the next session begins.  So as long as NAME exists, its other files
        exist, too.

        Raises:
            ResumeError: a new name belongs to another file.
            LedgerError: a file cannot be renamed.
        """
        self._require_locked()
        try:
            if not self.path.exists() or not self._has_name():
                return
            target = self._name(0)
            other = target.with_name(f"{target.name}.{session_id}")
            for number in range(self._number, -1, -1):
                source, kept = self._name(number), file_name(other, number)
                try:
                    os.link(source, kept)  # it replaces nothing
                except FileExistsError:
                    if not (os.path.lexists(kept) and kept.samefile(source)):
                        raise ResumeError(str(kept), "a name that is free", "a file") from None
            target.unlink()
            if self._durable:
                sync_folder(target.parent)
        except OSError as error:
            raise self._fail(error) from error

    def _remove_set_aside(self) -> None:
        """Remove the old names of files that :meth:`set_aside` has renamed.

        Raises:
            ResumeError: a file with such a name was not renamed.
            LedgerError: a file cannot be removed.
        """
        last = 0
        try:
            while os.path.lexists(self._name(last + 1)):
                last += 1
                self._require_no_other(last)
            for number in range(last, 0, -1):  # from the last: after a crash the first ones remain
                self._name(number).unlink()
        except OSError as error:
            raise self._fail(error) from error

    def _require_no_other(self, number: int) -> None:
        """Require that a file is only an old name of a file that :meth:`set_aside` renamed.

        Raises:
            ResumeError: it belongs to another ledger, or the file before it lost its end.
        """
        path, target = self._name(number), self._name(0)
        kept = path
        with suppress(OSError, ValueError, Rejected), path.open("rb") as file:
            name = parsed(file.readline().removesuffix(b"\n"), 1).get("session_id")
            kept = file_name(target.with_name(f"{target.name}.{name}"), number)
        if kept == path or not kept.exists() or not kept.samefile(path):
            expected = f"no file, as {file_name(target, number - 1).name} does not end with roll"
            raise ResumeError(str(path), expected, "a file")

    def emptied(self) -> bool:
        """Remove all records.  Return False without the lock, on a failure, or if the path names
        another file.
        """
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
        """Remove the file if this object created it.  The caller has the lock and has called
        :meth:`emptied`.
        """
        if self._is_ours:
            with suppress(OSError, LedgerError):
                target_of(self.path).unlink()

    def _fail(self, error: OSError) -> LedgerError:
        # Do not try again: after a failed write or fsync the content of the disk is not known.
        self._broken = True
        return LedgerError(str(self.path), error)

    @property
    def closed(self) -> bool:
        """True if :meth:`close` was called."""
        return self._handle < 0

    def close(self) -> None:
        """See :class:`Journal`.  First waits until the disk has all records."""
        if process_number() != self._pid:
            self._disk = threading.Lock()
        with suppress(LedgerError):
            self.flush()
        with self._disk:
            handles = {self._handle, self._last}
            self._handle = self._last = -1
            for handle in handles - {-1}:
                with suppress(OSError):
                    os.close(handle)

    def __del__(self) -> None:
        if hasattr(self, "queued"):
            self.close()


_SOON: Final = 0.05  # seconds; the documented bound is 0.1


class _Later:
    """Syncs ledgers whose last records no later call has synced; it owns one thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: deque[tuple[float, ref[InFile]]] = deque()
        self._thread: threading.Thread | None = None

    def put(self, journal: InFile) -> None:
        """Sync a ledger after a delay, unless a call has synced it by then."""
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
        """Wait until the next ledger is due, and return it; None: it was garbage-collected."""
        with self._changed:
            while not self._due:
                self._changed.wait()
            until, known = self._due.popleft()
        time.sleep(max(0.0, until - time.monotonic()))
        return known()


_later = _Later()


def _forked() -> None:
    """Replace the syncer in a forked process: its thread does not exist there, and its lock may be
    locked forever.
    """
    global _later
    _later = _Later()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _require_session(data: bytes, begins: bytes) -> None:
    """Require that a file starts like the ledger of a session, as far as `data` goes.

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


# A process that waits for a ledger's lock holds a mark: a shared lock on a byte of the file, which
# ends with the process (Linux). The holder of the ledger sees the mark. Other systems have no
# marks. There a holder releases the ledger after a fixed number of calls.

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
