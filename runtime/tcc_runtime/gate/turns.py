"""Whose turn it is: one call at a time, in the order in which they were asked for.

Threads and tasks wait in one queue; nobody is passed over.  Who would wait for himself (a call
inside a call, in one thread, in one task or in what it has started) is told so at once.
Cost: constant; a thread or a task that waits takes no time.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextvars import ContextVar
from weakref import WeakValueDictionary


class Ticket:
    """A place in the queue.

    Attributes:
        held: whether its turn has come and is not over.
    """

    __slots__ = ("__weakref__", "_event", "_future", "_loop", "held", "thread")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.thread = threading.get_ident()
        self.held = False
        self._loop = loop
        self._event = None if loop is not None else threading.Event()
        self._future = None if loop is None else loop.create_future()

    def wait(self) -> None:
        """Until the turn has come; of a thread."""
        if self._event is not None:
            self._event.wait()

    async def come(self) -> None:
        """Until the turn has come; of a task."""
        if self._future is not None:
            await self._future

    def wake(self) -> bool:
        """Tells that the turn has come; False where nobody is left to be told."""
        if self._event is not None:
            self._event.set()
        elif self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._told)
            except RuntimeError:  # the loop is closed, and its tasks are gone
                return False
        return True

    def _told(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


# The turn that this thread or task, or what started it, holds or held last.
_inside: ContextVar[tuple[Ticket, ...]] = ContextVar("tcc_gate_inside", default=())


class Nested(Exception):
    """Whoever asks for a turn holds it, or would keep its holder from giving it back."""


class Turns:
    """A queue; one turn is held at a time."""

    __slots__ = ("__weakref__", "_holder", "_lock", "_queue", "pid")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Ticket | None = None
        self._queue: deque[Ticket] = deque()
        self.pid = os.getpid()

    def take(self) -> Ticket:
        """Waits for a turn; of a thread.

        Raises:
            Nested: the thread, or what started it, has it; or a task of this thread waits for it.
        """
        ticket = Ticket(None)
        self._enter(ticket, blocks=True)
        try:
            ticket.wait()
        except BaseException:
            self._leave(ticket)
            raise
        self._mark(ticket)
        return ticket

    def try_take(self) -> Ticket | None:
        """A turn that is free now; None where somebody has it: nothing waits, nobody is queued."""
        ticket = Ticket(None)
        with self._lock:
            if self._holder is not None:
                return None
            self._holder = ticket
            ticket.held = True
        self._mark(ticket)
        return ticket

    async def take_in_task(self) -> Ticket:
        """Waits for a turn; of a task.

        Raises:
            Nested: the task, or what started it, has it.
        """
        ticket = Ticket(asyncio.get_running_loop())
        self._enter(ticket, blocks=False)
        try:
            await ticket.come()
        except BaseException:
            self._leave(ticket)
            raise
        self._mark(ticket)
        return ticket

    def _mark(self, ticket: Ticket) -> None:
        _inside.set((*[known for known in _inside.get() if known.held], ticket))

    def _enter(self, ticket: Ticket, *, blocks: bool) -> None:
        own = [known for known in _inside.get() if known.held]
        with self._lock:
            holder = self._holder
            if holder is None:
                self._holder = ticket
                ticket.held = True
                ticket.wake()
                return
            if holder in own:
                raise Nested
            # A thread that waits keeps its own tasks from ever giving the turn back.
            if blocks and any(known.thread == ticket.thread for known in (holder, *self._queue)):
                raise Nested
            self._queue.append(ticket)

    def _leave(self, ticket: Ticket) -> None:
        """A wait that was broken off."""
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
                return
        self.give_back(ticket)

    def give_back(self, ticket: Ticket) -> None:
        """The turn is over; the next one has it."""
        with self._lock:
            if self._holder is not ticket:
                return
            ticket.held = False
            self._holder = None
            while self._queue and self._holder is None:
                after = self._queue.popleft()
                after.held = True
                self._holder = after
                if not after.wake():
                    after.held = False
                    self._holder = None


_shared: WeakValueDictionary[tuple[int, int], Turns] = WeakValueDictionary()
_sharing = threading.Lock()


def turns_of(device: int, inode: int) -> Turns:
    """The queue of a ledger: all gates of this process that write it share one."""
    with _sharing:
        found = _shared.get((device, inode))
        if found is None or found.pid != os.getpid():
            found = _shared[device, inode] = Turns()
        return found
