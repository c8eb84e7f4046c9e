"""Links over pipes: a client over this process's standard input and output, a server that is a
program.

A message is one line.  A line that is too long is dropped while it arrives, and reported once.  An
incomplete last line is dropped, so half a message has no effect.

asyncio's own streams are not used for two reasons.  They set O_NONBLOCK, also for every process
that shares this standard output.  And they end a connection at a line that is too long.  Here the
loop reports when a pipe can be read or written, and a write is so short that it cannot block.
POSIX only.
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.links import FULL, Link, Stop

MAX_CLIENT_LINE: Final = 4 << 20
MAX_SERVER_LINE: Final = 16 << 20
_CHUNK: Final = 1 << 16
_UNBLOCKED: Final = min(select.PIPE_BUF, 4096)
_MAX_LINES: Final = 64  # lines that were read but not received
_WRITES: Final = 64  # in a row, before other tasks run
_GRACE: Final = 2.0  # seconds for each way of ending a program
_HASTE: Final = (0.3, 0.5, 0.6)  # the same, in seconds after the request to stop
_GONE: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that can wait for the standard input, even if that is a file or /dev/null.

    The loop uses poll: epoll, the default on Linux, rejects files and /dev/null.
    """
    return asyncio.SelectorEventLoop(selectors.PollSelector())


class Lines:
    """Cuts a stream of bytes into lines.

    Args:
        most: the most bytes of a line.
    """

    __slots__ = ("_most", "_rest", "_seen", "_skipping")

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest = bytearray()
        self._seen = 0  # bytes of `_rest` that were searched for a line feed
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that `data` completes, without line ends.  None replaces a line that is
        too long.
        """
        found: list[bytes | None] = []
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", max(start, self._seen))) >= 0:
            if self._skipping:
                self._skipping = False
            elif end - start > self._most:
                found.append(None)
            else:
                found.append(bytes(self._rest[start:end]).removesuffix(b"\r"))
            start = end + 1
        del self._rest[:start]
        if self._skipping or len(self._rest) > self._most:
            if not self._skipping:
                found.append(None)
            self._skipping = True
            self._rest.clear()
        self._seen = len(self._rest)
        return found


class PipeLink(Link):
    """A link over two file descriptors.

    Args:
        reads, writes: the descriptors.
        most: the most bytes of a line of the peer.
        noisy: whether lines that cannot be JSON are skipped, because some programs print to
            standard output.
    """

    hears = True
    waiting = 0

    def __init__(self, reads: int, writes: int, most: int, *, noisy: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._reads, self._writes = reads, writes
        self._cutter = Lines(most)
        self._lines: deque[bytes | None] = deque()
        self._noisy = noisy
        self._out: deque[memoryview] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self._draining: list[tuple[int, asyncio.Future[None]]] = []
        self._gone = asyncio.Event()
        self._reading = self._writing = self._ended = False
        self._resume()

    # Reading.

    def _resume(self) -> None:
        if not (self._reading or self._ended) and len(self._lines) <= _MAX_LINES:
            self._loop.add_reader(self._reads, self._read)
            self._reading = True

    def _pause(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._reads)
            self._reading = False

    def _read(self) -> None:
        try:
            data = os.read(self._reads, _CHUNK)
        except OSError:
            data = b""
        self._lines.extend(self._cutter.feed(data))
        if not data:
            self._ended = True
            # A peer that has stopped sending may still read, or may be gone.
            if _poll(self._writes, 0) & _GONE:
                self._break()
        if self._ended or len(self._lines) > _MAX_LINES:
            self._pause()
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def receive(self) -> wire.Message:
        while True:
            if self._lines:
                line = self._lines.popleft()
                self._resume()
                if line is None:
                    raise wire.MalformedMessage(wire.INVALID_REQUEST, "a line that is too long")
                if not line.strip() or (self._noisy and line.lstrip()[:1] not in (b"{", b"[")):
                    continue
                return wire.read_line(line)
            if self._ended:
                self.is_ended = True
                self._gone.set()
                raise EOFError
            self._arrived = self._loop.create_future()
            await self._arrived

    def is_quiet(self) -> bool:
        if self._ended:
            return self.is_ended
        return not (self._lines or _poll(self._reads, select.POLLIN))

    # Writing.

    def send(self, message: wire.Message) -> None:
        if not self.broken:
            line = wire.write(message)
            self._out.append(memoryview(line))
            self.waiting += len(line)
            if not self._writing:
                self._write()

    def _write(self) -> None:
        """Write as much as the pipe takes now.  The loop calls this again for the rest."""
        for _ in range(_WRITES):
            if not self._out or not _poll(self._writes, select.POLLOUT):
                break
            try:
                count = os.write(self._writes, self._out[0][:_UNBLOCKED])
            except OSError:
                self._break()
                break
            self.waiting -= count
            rest = self._out.popleft()[count:]
            if rest:
                self._out.appendleft(rest)
        if bool(self._out) is not self._writing:
            if self._out:
                self._loop.add_writer(self._writes, self._write)
            else:
                self._loop.remove_writer(self._writes)
            self._writing = bool(self._out)
        self._wake()

    def _wake(self) -> None:
        for below, future in self._draining:
            if self.waiting <= below and not future.done():
                future.set_result(None)
        self._draining = [one for one in self._draining if not one[1].done()]

    def _break(self) -> None:
        self.broken = True
        self._gone.set()
        self._out.clear()
        self.waiting = 0
        if self._writing:
            self._loop.remove_writer(self._writes)
            self._writing = False
        self._wake()

    async def drained(self, below: int = FULL) -> None:
        while self.waiting > below:
            future = self._loop.create_future()
            self._draining.append((below, future))
            await future

    async def gone(self) -> None:
        await self._gone.wait()

    async def close(self) -> None:
        """Stop reading and writing.  The descriptors stay open."""
        self._pause()
        self._break()


def _poll(descriptor: int, events: int) -> int:
    """Return the events of a descriptor that are true now, including signs that the peer is
    gone.
    """
    poll = select.poll()
    poll.register(descriptor, events)
    return sum(found for _, found in poll.poll(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A server that is a program.

    Attributes:
        command: the program and its arguments.
        env: variables in addition to those of this process.
        folder: its working directory; None: that of this process.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None

    async def open(self, stop: Stop, note: Callable[[str], None]) -> ProgramLink:
        try:
            process = subprocess.Popen(
                list(self.command),
                env={**os.environ, **self.env},
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ServerError(f"cannot start {self.command[0]}: {reason or error}") from None
        return ProgramLink(process, stop)


class ProgramLink(PipeLink):
    """A link to a running program.

    The program leads a process group, so processes that it has started end with it.  It shares this
    process's standard error.
    """

    def __init__(self, process: subprocess.Popen[bytes], stop: Stop) -> None:
        if process.stdin is None or process.stdout is None:
            raise ServerError("a program without pipes")
        self._process, self._stop = process, stop
        self._ends = (process.stdin, process.stdout)
        self._ending: asyncio.Task[None] | None = None
        super().__init__(
            process.stdout.fileno(), process.stdin.fileno(), MAX_SERVER_LINE, noisy=True
        )

    async def close(self) -> None:
        """End the program.  If the caller is cancelled, the program is ended all the same."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        """End the program: close its input, then send SIGTERM, then SIGKILL."""
        await super().close()
        self._ended = True
        for end in self._ends:
            with suppress(OSError):
                end.close()
        try:
            for number, haste in zip((None, signal.SIGTERM, signal.SIGKILL), _HASTE, strict=True):
                if number is not None:
                    self._signal(number)
                if await self._has_ended(haste):
                    break
        finally:
            self._signal(signal.SIGKILL)  # also ends other processes of the group
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)

    async def _has_ended(self, haste: float) -> bool:
        began, pause = self._loop.time(), 0.001
        while self._process.poll() is None:
            left = min(_GRACE - (self._loop.time() - began), self._stop.until(_GRACE, haste)
                       - self._loop.time())  # fmt: skip
            if left <= 0:
                return False
            await asyncio.sleep(pause)
            pause = min(0.01, 2 * pause)
        return True

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
