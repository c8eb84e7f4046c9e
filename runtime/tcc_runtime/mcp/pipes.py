"""Two pipes to another process: lines in, lines out, and nothing that waits on a slow reader.

Pipes are read and written where `poll` says that they can be, and written by so few bytes at a time
that a write cannot block; so no flag is set on a pipe that another process may share.  POSIX only:
poll takes no pipes elsewhere.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Sequence

from tcc_runtime.mcp.lines import Lines

_CHUNK = 1 << 16
_UNBLOCKED = min(select.PIPE_BUF, 4096)
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


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
    found = dict(poll.poll(None if seconds is None else max(0, int(seconds * 1000) + 1)))
    readable = []
    for pipe in pipes:
        if pipe.waiting and found.get(pipe.writes, 0) & (select.POLLOUT | _GONE):
            pipe.write()
        if not (pipe.ended or pipe.paused) and found.get(pipe.reads, 0) & (_READABLE | _GONE):
            readable.append(pipe)
    return readable
