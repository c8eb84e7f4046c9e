"""The turn of a session, and a permit: the block in which one call is made and its outcome told.

Calls are decided one at a time, in the order in which they were asked for: threads and tasks wait
in one queue; nobody is passed over.  The turn is kept until a call is over, or passed on as soon as
it is permitted, where others may be under way beside it.  Who would wait for himself (a call inside
a call, in one thread, in one task or in what it has started) is told so at once.  What a permit's
block leaves untold is unknown.
Text: docs/gate.md, docs/budgets.md.
Cost: constant, and that of the gate's records; a thread or a task that waits takes no time.
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

# Whose turn it is.


class Ticket:
    """A place in the queue, and the call that was admitted in its turn.

    Attributes:
        thread: in which it was asked for.
        held: whether its turn has come and is not over.
        seq: the number of the call; began: when, by the gate's clock.
        watched: what who watches of calls was told; outcome: what it is to be told at the end.
        waits: whether the disk is to be waited for behind its outcome.
    """

    __slots__ = (
        "__weakref__", "_event", "_future", "_loop", "began", "held", "outcome", "seq", "thread",
        "waits", "watched",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.thread = threading.get_ident()
        self.held = False
        self._loop = loop
        self._event: threading.Event | None = None  # of a thread that has to wait
        self._future = None if loop is None else loop.create_future()

    def begin(self, seq: int) -> None:
        """A call is under way in it; until it is told how that came out it is unknown."""
        self.seq = seq
        self.began = 0
        self.watched: Any = None
        self.outcome: tuple[Outcome, str, bool] = "unknown", "", False
        self.waits = False

    def wait(self) -> None:
        """Until the turn has come; of a thread."""
        if self._event is not None:
            self._event.wait()

    async def come(self) -> None:
        """Until the turn has come; of a task."""
        if self._future is not None:
            await self._future

    def again(self) -> None:
        """It is to be waited for, or once more; with the lock of the queue."""
        if self._loop is not None:
            self._future = self._loop.create_future()
        elif self._event is None:
            self._event = threading.Event()
        else:
            self._event.clear()

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


_is_held: Final = attrgetter("held")


def _held_here() -> tuple[Ticket, ...]:
    """The turns that this thread or task, or what started it, holds."""
    inside = _inside.get()
    if len(inside) == 1:  # nearly always that of the call before
        return inside if inside[0].held else ()
    return tuple(filter(_is_held, inside))


class Nested(Exception):
    """Whoever asks for a turn holds it, or would keep its holder from giving it back."""


class Crowded(Exception):
    """So many wait for a turn that nobody else may."""


class NotYet(Exception):
    """What was asked for has to wait for an outcome of a call that is under way."""


MAX_WAITING = 256


class Turns:
    """A queue; one turn is held at a time, beside those that were passed on.

    Attributes:
        changes: how often a call under way came to an outcome, or was left.
        passed: turns whose calls are under way without the turn.
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
        """Waits for a turn; of a thread.

        Raises:
            Nested: the thread, or what started it, has it; or a task of this thread waits for it.
            Crowded: too many wait.
        """
        ticket, own = Ticket(None), _held_here()
        with self._lock:
            free = self._holder is None and not self.passed  # nobody is about
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
        """A turn that is free now; None where somebody has it: nothing waits, nobody is queued."""
        ticket = Ticket(None)
        with self._lock:
            if self._holder is not None:
                return None
            self._holder = ticket
            ticket.held = True
        _inside.set((*_held_here(), ticket))
        return ticket

    async def take_in_task(self) -> Ticket:
        """Waits for a turn; of a task.

        Raises:
            Nested: the task, or what started it, has it.
            Crowded: too many wait.
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
        """Whether the turn is had at once; else it is to be waited for."""
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
                    ticket.wake()  # at the next turn of the loop: other tasks go on in between
                return True
            if holder in own:
                raise Nested
            # A thread that waits keeps its own tasks from ever giving the turn back.
            if blocks and any(known.thread == ticket.thread for known in (holder, *self._queue)):
                raise Nested
            if len(self._queue) >= MAX_WAITING:
                raise Crowded
            if blocks:
                ticket.again()
            self._queue.append(ticket)
            return False

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
        """The call is under way, and the next one has the turn."""
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
        """A call under way came to an outcome: who waits for that decides again.

        Where nothing was `passed` on, nobody waits: whoever waits for others has the turn.
        """
        with self._lock:
            self._changed()

    def _changed(self) -> None:
        self.changes += 1
        if self._waits and self._holder is not None:
            self._waits = False
            self._holder.wake()

    def rearm(self, ticket: Ticket, changes: int) -> bool:
        """Whether the holder of the turn is to wait: nothing has changed since `changes`."""
        with self._lock:
            if self.changes != changes:
                return False
            ticket.again()
            self._waits = True
            return True


_shared: WeakValueDictionary[tuple[int, int], Turns] = WeakValueDictionary()
_sharing = threading.Lock()


def turns_of(device: int, inode: int) -> Turns:
    """The queue of a ledger: all gates of this process that write it share one."""
    with _sharing:
        found = _shared.get((device, inode))
        if found is None or found.pid != process_number():
            found = _shared[device, inode] = Turns()
        return found


# The block of a call.

# What a call of a model took.

_CODES = Codes(Code.ATOMS, Code.ATOM_VALUE)


@dataclass(frozen=True, slots=True)
class Took:
    """What a call gave back, and what it took; what is left out is as its model declares.

    Attributes:
        result: what the call gave back.
        price: cents.
        latency_ms: milliseconds; None is measured.
        epsilon: an exact decimal of at most nine places, as a text.
        atom: the mechanism that it privatised with, as docs/privacy.md has atoms.

    Raises:
        AnswerError: a number is out of its range.
        Rejected: E101, E102 the atom is none.
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
    """The call of a permit is over, or its outcome was told already."""


_ONE: Final = "a permit is for one call"


class Door(Protocol):
    """What a permit asks of the gate that gave it."""

    def enter(self, permit: Permit) -> None:
        """Waits for the turn, decides and records; of a thread."""

    async def enter_in_task(self, permit: Permit) -> None:
        """The same, of a task."""

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
        """The outcome of that turn's call: as it is kept, and whether it was unforeseen."""
        ...

    def leave(self, ticket: Ticket) -> None:
        """The call is over."""

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Waits for the disk, where the outcome that was told has to be there."""

    def fail(self, error: LedgerError) -> None:
        """From here on nothing is allowed."""


class Permit:
    """What :meth:`Gate.call` gives; it permits nothing before its block is entered.

    Attributes:
        tool, ref, takes_model: of the call.
        arguments: a copy of the call's, in plain kinds of JSON.  The gate decides on it and records
            it, so make the call with it.
        turn: that the caller has already; None: it is waited for.
        outcome: ``done``, ``failed`` or ``unknown`` as the ledger has it; None before.
        unforeseen: of the answer a part is missing, of another type or not listed: it is not known.
        model: that makes the call, chosen where the block is entered; empty where none does.
        shadowed: the code of a call that is refused and made all the same, as the session is in
            the shadow: it has no number and no key, and its outcome is told to nobody.
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
        """The turn that the call was admitted in; None before, and when it is over."""
        return self._ticket

    @property
    def seq(self) -> int:
        """The number of the call in its session, from 1; 0 of one that is `shadowed`."""
        if not (self._seq or self.shadowed):
            raise RuntimeError(f"{self.tool}: the block was not entered")
        return self._seq

    @property
    def key(self) -> str:
        """An idempotency key: the same for this call whoever asks, and for no other.

        Empty of one that is `shadowed`.
        """
        if not (self._seq or self.shadowed):
            raise RuntimeError(f"{self.tool}: the block was not entered")
        return self._key

    def done(
        self,
        result: object = None,
        observed: ToolAnswer | Mapping[str, Any] | None = None,
        took: Took | None = None,
    ) -> None:
        """The call was made.

        Args:
            result: what came back; the ledger has a digest of it.
            observed: the observed values, the owner's word; or a `ToolAnswer`, for a door that has
                taken `result` apart; None: those of `result`.  Without the owner's word the texts
                of the answer decide, too, whether the call failed, or its outcome is unknown.
            took: what the call of a model took; None: what it declares, and the time since.
        """
        self._settle("done", result, observed, took=took)

    def failed(self, reason: str = "", took: Took | None = None, *, answered: bool = False) -> None:
        """The call is known not to have happened.

        Args:
            reason: for logs, which have it as it is: words of your own, and no argument.
            took: as of :meth:`done`.
            answered: it changed nothing, but whoever made it has read an answer: for `forbid` it
                counts as done.  Of a tool whose errors mean failed.
        """
        self._settle("failed", reason=reason, took=took, read=answered)

    def unknown(self, reason: str = "", took: Took | None = None) -> None:
        """Nobody knows whether the call happened; `reason` as of :meth:`failed`."""
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
        """The gate lets it through."""
        self._seq, self._key, self._ticket, self.model = seq, key, ticket, model

    def shadow(self, code: str) -> None:
        """The gate refuses it, and lets it through all the same."""
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
            self._ticket = None  # it may have been admitted, and then given up
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
        """What nobody told is unknown; another thread may be telling it just now."""
        with suppress(OverError):
            self.unknown("" if kind is None else kind.__name__)
