"""Turns of a session, and permits: a permit is the block in which one call is made.

The gate decides one call at a time, in the order of the requests: threads and tasks share one fair
queue.  A call keeps its turn until it is over.  A call of a `parallel` tool gives the turn to the
next caller once it is admitted.  A call inside the block of another call of the same thread or task
raises instead of deadlocking.  So does a call in a thread or task that was started in the block.
If the block reports no outcome, the outcome is recorded as unknown.
Text: docs/gate.md, docs/budgets.md.
Cost: constant time, and the gate's records; waiting threads and tasks use no processor time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakValueDictionary

from tcc_certs.errors import Code
from tcc_certs.policy.atoms import Codes, read_atom
from tcc_runtime.errors import LedgerError
from tcc_runtime.pricing.quotes import Answer, nano
from tcc_runtime.process import process_number

if TYPE_CHECKING:
    from tcc_runtime.gate.answers import Outcome, ToolAnswer

# Turns.


class Ticket:
    """A place in the queue, and the call that was admitted in its turn.

    Attributes:
        thread: the thread that asked for the turn.
        held: whether the ticket has the turn, or its call is under way.
        seq, began: the number of the call, and its start in milliseconds by the gate's clock.
        watched, outcome: the observer's state of this call, and the outcome that it reports at the
            end.
        waits: whether the caller has to wait for the disk after the outcome.
    """

    __slots__ = (
        "__weakref__", "_event", "_future", "_loop", "began", "held", "outcome", "seq", "thread",
        "waits", "watched",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.thread = threading.get_ident()
        self.held = False
        self._loop = loop
        self._event: threading.Event | None = None  # set when the turn of a waiting thread comes
        self._future = None if loop is None else loop.create_future()

    def begin(self, seq: int) -> None:
        """Note the call of this turn, whose outcome is unknown so far."""
        self.seq = seq
        self.began = 0
        self.watched: Any = None
        self.outcome: tuple[Outcome, str, bool] = "unknown", "", False
        self.waits = False

    def wait(self) -> None:
        """Block the thread until the turn has come."""
        if self._event is not None:
            self._event.wait()

    async def come(self) -> None:
        """Suspend the task until the turn has come."""
        if self._future is not None:
            await self._future

    def again(self) -> None:
        """Re-arm the ticket.  The caller holds the lock of the queue."""
        if self._loop is not None:
            self._future = self._loop.create_future()
        elif self._event is None:
            self._event = threading.Event()
        else:
            self._event.clear()

    def wake(self) -> bool:
        """Signal that the turn has come; return False if the loop of the task is closed."""
        if self._event is not None:
            self._event.set()
        elif self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._told)
            except RuntimeError:  # the loop is closed
                return False
        return True

    def _told(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


# The latest turns of this thread or task, and of the thread or task that started it.
_inside: ContextVar[tuple[Ticket, ...]] = ContextVar("tcc_gate_inside", default=())


_is_held: Final = attrgetter("held")


def _held_here() -> tuple[Ticket, ...]:
    """Return the turns of this thread or task, and of the thread or task that started it."""
    inside = _inside.get()
    if len(inside) == 1:  # usually the turn of the previous call
        return inside if inside[0].held else ()
    return tuple(filter(_is_held, inside))


class Nested(Exception):
    """The caller has the turn, or waiting would block the holder from giving it back."""


class Crowded(Exception):
    """The queue has MAX_WAITING entries."""


class NotYet(Exception):
    """The request has to wait for the outcome of a call that is under way."""


MAX_WAITING = 256


class Turns:
    """A fair queue: at most one ticket has the turn.

    Attributes:
        changes: how often a call under way got its outcome, or was left.
        passed: tickets of parallel calls under way, which gave the turn to the next ticket.
    """

    __slots__ = (
        "__weakref__", "_holder", "_lock", "_queue", "_waits", "changes", "passed", "pid",
    )  # fmt: skip

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Ticket | None = None
        self._queue: deque[Ticket] = deque()
        self.passed: set[Ticket] = set()
        self._waits = False  # whether the holder waits for a change
        self.changes = 0
        self.pid = process_number()

    def take(self) -> Ticket:
        """Wait for the turn in a thread.

        Raises:
            Nested: the thread, or the thread that started it, has the turn; or a task of this
                thread waits for it.
            Crowded: the queue is full.
        """
        ticket, own = Ticket(None), _held_here()
        with self._lock:
            free = self._holder is None and not self.passed  # no checks are needed
            if free:
                self._holder, ticket.held = ticket, True
        if not free and not self._enter(ticket, own, blocks=True):
            try:
                ticket.wait()
            except BaseException:
                self._leave(ticket)
                raise
        _inside.set((*own, ticket) if own else (ticket,))
        return ticket

    def try_take(self) -> Ticket | None:
        """Take the turn if it is free; else return None without waiting."""
        ticket = Ticket(None)
        with self._lock:
            if self._holder is not None:
                return None
            self._holder = ticket
            ticket.held = True
        _inside.set((*_held_here(), ticket))
        return ticket

    async def take_in_task(self) -> Ticket:
        """Wait for the turn in a task.

        Raises:
            Nested: the task, or the task that started it, has the turn.
            Crowded: the queue is full.
        """
        ticket = Ticket(asyncio.get_running_loop())
        own = _held_here()
        self._enter(ticket, own, blocks=False)
        try:
            await ticket.come()
        except BaseException:
            self._leave(ticket)
            raise
        _inside.set((*own, ticket))
        return ticket

    def _enter(self, ticket: Ticket, own: Sequence[Ticket], *, blocks: bool) -> bool:
        """Take the turn if it is free (True), or join the queue (False)."""
        with self._lock:
            holder = self._holder
            if self.passed:
                if any(known in self.passed for known in own):
                    raise Nested
                if blocks and any(known.thread == ticket.thread for known in self.passed):
                    raise Nested
            if holder is None:
                self._holder = ticket
                ticket.held = True
                if not blocks:
                    ticket.wake()  # in the next step of the loop, so that other tasks run, too
                return True
            if holder in own:
                raise Nested
            # If a thread waits, its own tasks cannot run, so they would never give the turn back.
            if blocks and any(known.thread == ticket.thread for known in (holder, *self._queue)):
                raise Nested
            if len(self._queue) >= MAX_WAITING:
                raise Crowded
            if blocks:
                ticket.again()
            self._queue.append(ticket)
            return False

    def _leave(self, ticket: Ticket) -> None:
        """Leave the queue after an interrupted wait; give the turn back if it has come."""
        with self._lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
                return
        self.give_back(ticket)

    def give_back(self, ticket: Ticket) -> None:
        """End the turn; the next ticket of the queue gets it."""
        with self._lock:
            if self._holder is ticket:
                ticket.held = False
                if self._queue:
                    self._go_on()
                else:
                    self._holder, self._waits = None, False
            elif ticket in self.passed:
                ticket.held = False
                self.passed.remove(ticket)
                self._changed()

    def pass_on(self, ticket: Ticket) -> None:
        """Give the turn to the next ticket, although the call of this one is under way."""
        with self._lock:
            if self._holder is ticket:
                self.passed.add(ticket)
                self._go_on()

    def _go_on(self) -> None:
        self._holder = None
        self._waits = False
        while self._queue and self._holder is None:
            after = self._queue.popleft()
            after.held = True
            self._holder = after
            if not after.wake():
                after.held = False
                self._holder = None

    def changed(self) -> None:
        """Note that a call under way got its outcome; wake the holder if it waits for that.

        Not needed if `passed` is empty: then the holder itself made the call.
        """
        with self._lock:
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        if self._waits and self._holder is not None:
            self._waits = False
            self._holder.wake()

    def rearm(self, ticket: Ticket, changes: int) -> bool:
        """Re-arm the holder's ticket, unless a call got its outcome since `changes` was read.

        Returns:
            True if the ticket was re-armed.
        """
        with self._lock:
            if self.changes != changes:
                return False
            ticket.again()
            self._waits = True
            return True


_shared: WeakValueDictionary[tuple[int, int], Turns] = WeakValueDictionary()
_sharing = threading.Lock()


def turns_of(device: int, inode: int) -> Turns:
    """Return the queue of a ledger file.  All gates of this process that write to the file share
    it.
    """
    with _sharing:
        found = _shared.get((device, inode))
        if found is None or found.pid != process_number():
            found = _shared[device, inode] = Turns()
        return found


# Permits.

_CODES = Codes(Code.ATOMS, Code.ATOM_VALUE)


@dataclass(frozen=True, slots=True)
class Took:
    """The result of a call that a model made, and its cost.  If a cost is None, the declared one
    counts.

    Attributes:
        result: the value that the call returned.
        price: cents.
        latency_ms: milliseconds; None: the gate measures them.
        epsilon: an exact decimal of at most nine places, as a text.
        atom: the privacy mechanism that was used, in the form of docs/privacy.md.

    Raises:
        AnswerError: a number is outside its range.
        Rejected: E101, E102: the atom is malformed.
    """

    result: object = None
    _: KW_ONLY
    price: int | None = None
    latency_ms: int | None = None
    epsilon: str | None = None
    atom: Mapping[str, Any] | None = None
    answer: Answer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        answer = Answer(
            price=self.price,
            latency_ms=self.latency_ms,
            epsilon=None if self.epsilon is None else nano(self.epsilon, "epsilon"),
            atom=None if self.atom is None else read_atom(dict(self.atom), "atom", _CODES),
        )
        object.__setattr__(self, "answer", answer)


class OverError(RuntimeError):
    """The call of a permit is over, or its outcome was reported already."""


_ONE: Final = "a permit is for one call"


class Door(Protocol):
    """The interface of a gate that its permits use."""

    def enter(self, permit: Permit) -> None:
        """Wait in a thread for the turn, decide the call, and record it."""

    async def enter_in_task(self, permit: Permit) -> None:
        """Wait in a task for the turn, decide the call, and record it."""

    def settle(
        self,
        ticket: Ticket,
        outcome: Outcome,
        result: object = None,
        observed: ToolAnswer | Mapping[str, Any] | None = None,
        reason: str = "",
        took: Took | None = None,
        *,
        sync: bool,
        read: bool = False,
    ) -> tuple[Outcome, bool]:
        """Record the outcome of a call; return it, and whether a part of the answer is unknown."""
        ...

    def leave(self, ticket: Ticket) -> None:
        """End the call."""

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Wait for the disk if the outcome has to be there."""

    def fail(self, error: LedgerError) -> None:
        """Refuse all further calls, because of this error."""


class Permit:
    """The block of one call, from :meth:`Gate.call`; the gate decides when the block is entered.

    Attributes:
        tool, ref, takes_model: see :meth:`Gate.call`.
        arguments: a copy of the arguments in plain JSON types.  The gate decides on this copy and
            records it, so make the call with it.
        turn: the turn that the caller has already; None: the block waits for one.
        outcome: ``done``, ``failed`` or ``unknown``, as in the ledger; None: not reported yet.
        unforeseen: whether a part of the answer is missing, has another type, or is not listed.
        model: the model that makes the call, chosen when the block is entered; or empty.
        shadowed: the code of a call that a shadow session refuses and makes.  Such a call has no
            number and no key, and its outcome is not recorded.
    """

    __slots__ = (
        "_gate", "_in_task", "_key", "_seq", "_ticket", "arguments", "model", "outcome", "ref",
        "shadowed", "takes_model", "tool", "turn", "unforeseen",
    )  # fmt: skip

    def __init__(
        self,
        gate: Door,
        tool: str,
        arguments: dict[str, Any],
        ref: str | None,
        takes_model: bool | None = None,
        turn: Ticket | None = None,
    ) -> None:
        self._gate = gate
        self._in_task = False
        self.tool = tool
        self.arguments = arguments
        self.ref = ref
        self.takes_model = takes_model
        self.turn = turn
        self.outcome: Outcome | None = None
        self.unforeseen = False
        self.shadowed = ""
        self.model = ""
        self._seq = 0
        self._key = ""
        self._ticket: Ticket | None = None

    @property
    def ticket(self) -> Ticket | None:
        """The turn of the call while it is under way; else None."""
        return self._ticket

    @property
    def seq(self) -> int:
        """The number of the call in its session, from 1; 0 if it is `shadowed`."""
        if not (self._seq or self.shadowed):
            raise RuntimeError(f"{self.tool}: the block was not entered")
        return self._seq

    @property
    def key(self) -> str:
        """The idempotency key of the call: no other call has it.  Empty if it is `shadowed`."""
        if not (self._seq or self.shadowed):
            raise RuntimeError(f"{self.tool}: the block was not entered")
        return self._key

    def done(
        self,
        result: object = None,
        observed: ToolAnswer | Mapping[str, Any] | None = None,
        took: Took | None = None,
    ) -> None:
        """Report that the call was made.

        Args:
            result: the answer of the tool; the ledger has its digest.
            observed: the values of the answer by name, instead of reading them from `result`; or a
                `ToolAnswer` if the caller has read `result` already.  Unless values are given, the
                texts of the answer decide whether the call failed or its outcome is unknown.
            took: the cost of a call of a model; None: the declared cost and the measured time.
        """
        self._settle("done", result, observed, took=took)

    def failed(self, reason: str = "", took: Took | None = None, *, answered: bool = False) -> None:
        """Report that the call had no effect.

        Args:
            reason: for logs, which print it as it is: do not put arguments into it.
            took: see :meth:`done`.
            answered: whether the agent has read an error of the tool.  Then the call counts under
                `no` and `not`.  Only for tools with `errors mean failed`.
        """
        self._settle("failed", reason=reason, took=took, read=answered)

    def unknown(self, reason: str = "", took: Took | None = None) -> None:
        """Report that the outcome is unknown; `reason` as in :meth:`failed`."""
        self._settle("unknown", reason=reason, took=took)

    def _settle(
        self,
        outcome: Outcome,
        result: object = None,
        observed: ToolAnswer | Mapping[str, Any] | None = None,
        reason: str = "",
        took: Took | None = None,
        read: bool = False,
    ) -> None:
        if self.shadowed:
            self.outcome = self.outcome or outcome
            return
        ticket = self._ticket
        if ticket is None:
            raise OverError(f"{self.tool}: the block is not entered, or is left")
        if self.outcome is not None:
            raise RuntimeError(f"{self.tool}: the outcome was told already")
        self.outcome, self.unforeseen = self._gate.settle(
            ticket, outcome, result, observed, reason, took, sync=not self._in_task, read=read
        )

    def admitted(self, seq: int, key: str, ticket: Ticket, model: str = "") -> None:
        """Note that the gate has admitted the call."""
        self._seq, self._key, self._ticket, self.model = seq, key, ticket, model

    def shadow(self, code: str) -> None:
        """Note that the gate refuses the call, and that the shadow session makes it."""
        self.shadowed = code

    def __enter__(self) -> Permit:
        if self._seq or self.shadowed:
            raise RuntimeError(f"{self.tool}: {_ONE}")
        self._gate.enter(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ticket = self._ticket
        if ticket is None:
            return
        try:
            if self.outcome is None:
                self._leave_unknown(kind)
        finally:
            self._ticket = None
            self._gate.leave(ticket)

    async def __aenter__(self) -> Permit:
        if self._seq or self.shadowed:
            raise RuntimeError(f"{self.tool}: {_ONE}")
        self._in_task = True
        try:
            await self._gate.enter_in_task(self)
        except BaseException:
            self._ticket = None  # the wait for the disk may fail after the admission
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ticket = self._ticket
        if ticket is None:
            return
        try:
            if self.outcome is None:
                self._leave_unknown(kind)
            await self._gate.outcome_in_task(ticket)
        except LedgerError as trouble:
            self._gate.fail(trouble)
        finally:
            self._ticket = None
            self._gate.leave(ticket)

    def _leave_unknown(self, kind: type[BaseException] | None) -> None:
        """Report an unknown outcome, unless another thread reports one at this moment."""
        with suppress(OverError):
            self.unknown("" if kind is None else kind.__name__)
