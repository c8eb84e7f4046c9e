"""Pipes to other processes: bytes to lines, lines out, signals, and nothing that waits.

A message is one line.  A line that is too long is thrown away as it comes in and reported once; a
line that the end of the pipe cuts off is no line, so that half a message is never acted on.  Pipes
are read and written where `poll` says that they can be, and written by so few bytes at a time that
a write cannot block; so no flag is set on a pipe that another process may share.  POSIX only: poll
takes no pipes elsewhere.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from types import FrameType, TracebackType

MAX_CLIENT_LINE = 4 << 20
MAX_SERVER_LINE = 16 << 20
# A request in ASCII: a client's line is three times as long there, and a state has 12 bytes a
# character.
MAX_REQUEST_LINE = 3 * MAX_CLIENT_LINE + (12 << 20) + (1 << 20)

_CHUNK = 1 << 16
_UNBLOCKED = min(select.PIPE_BUF, 4096)
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL
_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Lines:
    """Cuts a stream of bytes into lines.

    Args:
        most: bytes that a line may have.
    """

    __slots__ = ("_most", "_rest", "_seen", "_skipping")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self._seen = 0  # of `_rest`, how much is known to hold no line feed
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that `data` completes, without their ends; None for one that is too long."""
        found: list[bytes | None] = []
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._seen))) >= 0:
            if self._skipping:
                self._skipping = False
            else:
                found.append(self._line(start, end))
            start = end + 1
        del self._rest[:start]
        if self._skipping or len(self._rest) > self._most:
            if not self._skipping:
                found.append(None)
            self._skipping = True
            self._rest.clear()
        self._seen = len(self._rest)
        return found

    def _line(self, start: int, end: int) -> bytes | None:
        if end - start > self._most:
            return None
        return bytes(self._rest[start:end]).removesuffix(b"\r")


class Pipe:
    """A peer over two descriptors.

    Args:
        reads, writes: the descriptors.
        most: bytes that a line of the peer may have.

    Attributes:
        ended: whether the peer sends nothing more.
        broken: whether the peer takes nothing more.
        waiting: bytes that are still to be written.
        paused: whether nothing is to be read for now.
    """

    def __init__(self, reads: int, writes: int, most: int) -> None:
        self.reads = reads
        self.writes = writes
        self.ended = self.broken = self.paused = False
        self.waiting = 0
        self._lines = Lines(most)
        self._out: deque[memoryview] = deque()

    def send(self, line: bytes) -> None:
        """Put a line behind those that are to be written."""
        if not self.broken:
            self._out.append(memoryview(line))
            self.waiting += len(line)

    def read(self) -> list[bytes | None]:
        """What is there to be read, in lines; None for a line that is too long."""
        try:
            data = os.read(self.reads, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self.ended = True
            self._look()
        return self._lines.feed(data)

    def write(self) -> None:
        """Write what can be written without waiting."""
        try:
            count = os.write(self.writes, self._out[0][:_UNBLOCKED])
        except OSError:
            self._break()
            return
        self.waiting -= count
        rest = self._out.popleft()[count:]
        if rest:
            self._out.appendleft(rest)

    def _look(self) -> None:
        """One that sends nothing more may still take answers, or may be gone."""
        poll = select.poll()
        poll.register(self.writes, 0)
        if any(events & _GONE for _, events in poll.poll(0)):
            self._break()

    def _break(self) -> None:
        self.broken = True
        self._out.clear()
        self.waiting = 0


def ready(pipes: Sequence[Pipe], seconds: float | None, wakes: int | None = None) -> list[Pipe]:
    """Write to those pipes that take it, and say which have something to be read.

    Args:
        seconds: how long to wait at most; None waits for as long as it takes.
        wakes: a descriptor that ends the wait when it can be read.
    """
    poll = select.poll()
    wanted: dict[int, int] = {}
    for pipe in pipes:
        if not (pipe.ended or pipe.paused):
            wanted[pipe.reads] = wanted.get(pipe.reads, 0) | select.POLLIN
        if pipe.waiting:
            wanted[pipe.writes] = wanted.get(pipe.writes, 0) | select.POLLOUT
    if wakes is not None:
        wanted[wakes] = select.POLLIN
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    found = dict(poll.poll(None if seconds is None else max(0, ceil(seconds * 1000))))
    readable = []
    for pipe in pipes:
        if pipe.waiting and found.get(pipe.writes, 0) & (select.POLLOUT | _GONE):
            pipe.write()
        if not (pipe.ended or pipe.paused) and found.get(pipe.reads, 0) & (_READABLE | _GONE):
            readable.append(pipe)
    return readable


class StopNow(BaseException):
    """SIGTERM or SIGINT came where it ends a step at once."""


class Stopping:
    """SIGTERM and SIGINT as something to be read, so that they cut no step in two.

    The handlers only note that one came; a descriptor becomes readable, so a wait ends at once.  A
    second one ends the process as it would have without them.  A context manager, for the main
    thread.

    Attributes:
        asked: whether the process was asked to stop.
        wakes: a descriptor that can be read from then on.
    """

    def __init__(self) -> None:
        self.asked = False
        self._raises = False
        self._since = 0.0
        self.wakes, self._writes = os.pipe()
        os.set_blocking(self._writes, False)

    def __enter__(self) -> Stopping:
        self._before = [signal.signal(number, self._note) for number in _NUMBERS]
        self._wakeup = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in zip(_NUMBERS, self._before, strict=True):
            signal.signal(number, handler)
        os.close(self.wakes)
        os.close(self._writes)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A block that a signal breaks off, with :class:`StopNow`: one that undoes what it did."""
        if self.asked:
            raise StopNow
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def until(self, seconds: float, asked: float) -> float:
        """When to give something up: `seconds` from now, or `asked` after the process was asked."""
        now = time.monotonic()
        return min(now + seconds, self._since + asked) if self.asked else now + seconds

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._since = time.monotonic()
        self.asked = True
        if self._raises:
            raise StopNow
