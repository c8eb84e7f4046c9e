"""Exclusive access to a session: the turn within a process, and the file lock between processes.

A thread or task that changes a session takes these steps:

1. It waits for its turn.  Turns of one process follow the order of the requests.
2. It takes the lock of the ledger file.  The process keeps the lock while a call is under way.
3. It reads the records that other processes have written.
4. It writes the record of its change, and then changes the session.

Waits have no time limit: a thread blocks in the file lock, a task polls it.  If a process ends
without the outcome of a call, the next process records the outcome as unknown.  After an error of
the system the gate writes nothing and allows nothing.
:mod:`tcc_runtime.gate.session_access.reopening` begins and reopens sessions.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 6.
Cost: one record, and the records of other processes since the last look.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import FIRST_HEAD
from tcc_certs.session.machine import Offer
from tcc_certs.session.records import RECORDED, REFUSALS, SHADOWED
from tcc_runtime.account.windows import Across
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate.journal import Journal, News, ledger_file
from tcc_runtime.gate.permit import Crowded, Nested, NotYet, Ticket, Turns, turns_of
from tcc_runtime.gate.refusals import Allowed, Because, Decision, Reason, Refused, Spent
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.session.records import Parts, outcome_parts, parts_of, refusal_parts
from tcc_runtime.gate.session.recovery import Carried, Follower
from tcc_runtime.process import process_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Options of the ledger of a session.

    Attributes:
        rolls: whether an ended ledger is renamed and a new session begins.
        private: whether the ledger belongs to a store, which has created its file.
        begun: whether the store created the file for this gate.
        way_on: advice in refusals once the session allows no further call.
        shadow: whether calls that the grammar refuses are recorded as refused, and made.
        roll_bytes: the size in bytes at which the ledger continues in another file; None: never.
        recorded: False: the session is in memory, and no account counts its calls.
        carried: set if earlier files of the ledger have another artifact.
        parent: the id of the parent of a delegated session; None: the session is not delegated.
    """

    rolls: bool = False
    private: bool = False
    begun: bool = False
    way_on: str = "its owner ends it and opens another ledger"
    shadow: bool = False
    roll_bytes: int | None = None
    recorded: bool = True
    carried: Carried | None = None
    parent: str | None = None


_POLL: Final = (0.0005, 0.02)  # seconds between two looks at a lock: the first, the longest
_FAULTS: Final = (LedgerError, Rejected, ResumeError)
# parallel calls in a row, on systems that cannot tell whether a process waits for the lock
_IN_A_ROW: Final = 256
_WAY: Final = 0.25  # seconds that the lock is left free for waiting processes


def decision(
    session: Session,
    code: Code | None,
    place: str = "",
    *,
    offer: Offer | None = None,
    statement: int | None = None,
    because: Because | None = None,
    at_ms: int = 0,
) -> Decision:
    """Return a decision; reasons and allowed calls are computed when they are read.

    Args:
        code: the code of the refusal; None: the call is allowed.
        place: see :class:`Decision`.
        statement: the number of the statement that refuses the call.
        because: computes the reasons; None: the text of the code is the only reason.
        at_ms: the time of the decision.
    """
    held, changes, closed = session.held, session.changes, session.ended
    under_way, lost = session.under_way, session.lost

    def reasons() -> list[Reason]:
        if code is None or because is not None:
            return [] if because is None else because()
        return [{"kind": "gate", "text": REFUSALS[code], "because": None}]

    def allowed_next() -> tuple[Allowed, ...]:
        if closed or under_way or code is Code.NOT_WRITTEN:
            return ()
        if session.changes == changes:
            return session.allowed(at_ms)
        return session.policy.allowed(session.policy.next_offers(held))

    def spent() -> Spent | None:
        if code is None or under_way or code is Code.NOT_WRITTEN:
            return None
        if not (closed or lost) and session.policy.next_offers(held):
            return None
        return Spent(session=session.identity, way_on=session.way_on)

    return Decision(code, place, reasons, allowed_next, spent, statement=statement, offer=offer)


class Access:
    """A session, its journal, and the queue of threads and tasks that want to change it.

    Attributes:
        policy: the policy of the artifact.
        follower, session: applies records to the session; and that session.
        home: options of the ledger.
        lock: guards all attributes.  A thread releases the file lock only while it has this lock.
        durable: whether the gate waits for the disk.
        clock: returns UTC milliseconds.
        pending: the turns of this process whose calls are under way.
        overlaps: whether a tool is `parallel`, so that calls may be under way together.
        turns: the queue of this process.
        across: the limits across sessions; None: the core has none.
        begun_by: the process that began the session; 0: the ledger existed before.
        made_key: whether this gate created the key of the session.
    """

    def __init__(
        self,
        follower: Follower,
        journal: Journal,
        turns: Turns,
        *,
        durable: bool,
        clock: Callable[[], int],
        home: Home,
        across: Across | None = None,
    ) -> None:
        self.follower = follower
        session = self.session = follower.session
        session.way_on = home.way_on
        self.policy = session.policy
        self.across = across
        self.home = home
        self.lock = threading.Lock()
        self.pending: set[Ticket] = set()
        self.overlaps = any(tool.parallel for tool in self.policy.core.tools)
        self._users = 0  # users of the file lock: the holder of the turn, and calls under way
        self._row = 0  # parallel calls that began since the file lock was taken
        self._given_back = 0  # how often the file lock was released
        self._way_until = 0.0  # monotonic time until which the lock is left to other processes
        self._entered: Ticket | None = None  # the turn that took the file lock
        self.clock = clock
        self.journal = journal
        self.turns = turns
        self.durable = durable
        self._fault: Exception | None = None
        # error after which the gate stops once the next record is written
        self._later: Exception | None = None
        self._between = False  # whether a record was written but not yet applied to the session
        self._pid = process_number()
        self.begun_by, self.made_key = 0, False

    def shadows(self, found: Decision) -> bool:
        """Return whether a refused call is made: this is a shadow session, and the code permits
        it.
        """
        return self.home.shadow and found.code in SHADOWED and self._trouble() is None

    def sync(self) -> None:
        """Wait until the disk has all records, if the gate is durable.

        Raises:
            LedgerError: the records cannot be written to the disk.
        """
        if self.durable:
            self.journal.sync()

    # The turn and the lock.

    def enter(self, tool: str) -> Ticket:
        """Wait in a thread for the turn and the file lock, and read new records.

        Raises:
            Refused: R305, R306, R308.
        """
        if process_number() != self._pid:
            self._require_process()
        try:
            ticket = self.turns.take()
        except Nested:
            self._refuse_nested(tool)
        except Crowded:
            self._refuse_nested(tool, Code.MANY_WAITING)
        try:
            while self.pending:
                changes = self.turns.changes
                if not self._gives_way():
                    break
                self.wait(ticket, changes)
            if not self._users or self._takes_lock():
                while self._way_until and self._leaves_way():
                    time.sleep(_POLL[0])
                self.journal.lock(wait=True, process=self._pid)
                self._locked(ticket, tool)
        except _FAULTS as error:
            self._give_up(ticket)
            self.broken(error, tool)
        except BaseException:
            self._give_up(ticket)
            raise
        return ticket

    def try_enter(self, tool: str) -> Ticket | None:
        """Take the turn and the file lock if both are free now; else take neither and return None.

        Raises:
            Refused: R306.
        """
        self._require_process()
        ticket = self.turns.try_take()
        if ticket is None:
            return None
        try:
            if self._gives_way():
                self.turns.give_back(ticket)
                return None
            if self._takes_lock():
                if self._leaves_way() or not self.journal.lock(wait=False, process=self._pid):
                    self.turns.give_back(ticket)
                    return None
                self._locked(ticket, tool)
        except _FAULTS as error:
            self._give_up(ticket)
            self.broken(error, tool)
        except BaseException:
            self._give_up(ticket)
            raise
        return ticket

    async def enter_in_task(self, tool: str) -> Ticket:
        """Wait in a task for the turn and the file lock, and read new records.

        Raises:
            Refused: R305, R306, R308.
        """
        self._require_process()
        try:
            ticket = await self.turns.take_in_task()
        except Nested:
            self._refuse_nested(tool)
        except Crowded:
            self._refuse_nested(tool, Code.MANY_WAITING)
        try:
            changes = self.turns.changes
            while self._gives_way():
                await self.wait_in_task(ticket, changes)
                changes = self.turns.changes
            if self._takes_lock():
                pause, longest = _POLL
                while self._leaves_way() or not self.journal.lock(wait=False, process=self._pid):
                    await asyncio.sleep(pause)
                    pause = min(longest, 2 * pause)
                self._locked(ticket, tool)
        except _FAULTS as error:
            self._give_up(ticket)
            self.broken(error, tool)
        except BaseException:
            self._give_up(ticket)
            raise
        return ticket

    def _gives_way(self) -> bool:
        """Return whether no further call may begin now, so that another process gets the file
        lock.
        """
        if not self.pending:
            return False
        return self._row >= _IN_A_ROW or self.journal.others_wait()

    def _leaves_way(self) -> bool:
        """Return whether a lock that was just released has to stay free for waiting processes."""
        if time.monotonic() < self._way_until and self.journal.others_wait():
            return True
        self._way_until = 0.0
        return False

    def _unlock(self) -> None:
        """Release the file lock; a waiting process may take it before this one.

        Looking for waiting processes takes longer than the release.  So a gate that is not durable
        looks only at every eighth release.
        """
        self._given_back += 1
        if (self.durable or not self._given_back & 7) and self.journal.others_wait():
            self._way_until = time.monotonic() + _WAY
        self.journal.unlock()

    def _takes_lock(self) -> bool:
        """Return whether the holder of the turn has to take the file lock.

        If this process has the lock, count one more user of it.  Only the holder of the turn calls
        this, so the number of users cannot rise from zero here.
        """
        with self.lock:
            if self._users == 0:
                return True
            self._users += 1
            return False

    def _locked(self, ticket: Ticket, tool: str) -> None:
        """Read the records of other processes, after the file lock was taken."""
        with self.lock:
            self._users, self._row, self._entered = 1, 0, ticket
            if self._between or self._fault is not None or self.session.course.broken_off:
                self._require_sound(tool)
            journal, session = self.journal, self.session
            news = journal.news(locked=True)
            if news:
                self._follow(news)
            if journal.doubtful:
                journal.sync()  # so that no decision uses a record that a crash could lose
            if self.across is not None:
                self.give_back()
            if session.under_way:
                self.leave_unknown()

    def _give_up(self, ticket: Ticket) -> None:
        """Give up a turn that did not succeed; release the file lock if it has no other user."""
        with self.lock:
            if self._entered is ticket:
                self._users = max(0, self._users - 1)
            if self._users == 0:
                self.journal.stop_waiting()
                self._unlock()
        self.turns.give_back(ticket)

    def leave(self, ticket: Ticket) -> bool:
        """Give the turn back; release the file lock if no call of this process is under way.

        Returns:
            whether the call of this turn was under way.
        """
        with self.lock:
            if not ticket.held:  # for example, the block of a copied permit
                return False
            called = ticket in self.pending
            if called:
                self.pending.remove(ticket)
                # an exception interrupted the start of the call
                if ticket.seq in self.session.under_way:
                    with suppress(*_FAULTS):
                        self._leave_one_unknown(ticket.seq)
            if self._users <= 1:
                try:
                    self._unlock()
                finally:
                    self._users = 0  # set last: a thread that reads 0 takes the lock
            else:
                self._users -= 1
        self.turns.give_back(ticket)
        return called

    def stop_waiting(self) -> None:
        """Stop waiting for the file lock, after :meth:`try_enter` returned None."""
        with self.lock:
            if self._users == 0:
                self.journal.stop_waiting()

    def pass_on(self, ticket: Ticket) -> None:
        """Give the turn to the next caller, if the call of this turn is of a `parallel` tool."""
        made = self.session.made.of(ticket.seq)
        if self.policy.core.tools[made.offer.tool].parallel:
            self._row += 1
            self.turns.pass_on(ticket)

    def wait(self, ticket: Ticket, changes: int) -> None:
        """Block the thread that has the turn until the number of changes is not `changes`."""
        if self.turns.rearm(ticket, changes):
            ticket.wait()

    async def wait_in_task(self, ticket: Ticket, changes: int) -> None:
        """Suspend the task that has the turn until the number of changes is not `changes`."""
        if self.turns.rearm(ticket, changes):
            await ticket.come()

    def enter_alone(self) -> Ticket:
        """Enter as :meth:`enter` does, and wait until no call is under way.

        Raises:
            Refused: R305, R306, R308.
        """
        ticket = self.enter("")
        try:
            while True:
                changes = self.turns.changes
                if not self.pending:
                    return ticket
                self.wait(ticket, changes)
        except BaseException:
            self.leave(ticket)
            raise

    def _require_process(self) -> None:
        """Create new locks after a fork, because threads of the parent process may hold the old
        ones.
        """
        if process_number() == self._pid:
            return
        self._pid = process_number()
        self.lock = threading.Lock()
        self.pending = set()
        self._users = 0
        journal = self.journal
        if isinstance(journal, ledger_file.InFile):
            self.turns = turns_of(journal.device, journal.inode)
        else:
            self.turns = Turns()

    # Records.

    def give_back(self) -> None:
        """Return to the account what failed calls drew.  Their outcomes are on the disk."""
        if self.across is not None and self.follower.returns:
            self.across.give_back(self.follower)

    def read(self, *, locked: bool) -> None:
        """Apply the records that other processes have written."""
        self._follow(self.journal.news(locked=locked))

    def _follow(self, records: Iterable[News]) -> None:
        follower = self.follower
        for news in records:
            # If this fails, the session lacks a record: `_between` then stops the gate.
            self._between = True
            follower.apply(news)
            self._between = False
            if self.durable and not news.own:
                self.journal.sync_soon()

    def leave_unknown(self) -> None:
        """Record that the outcome of each call under way is unknown."""
        for seq in self.session.under_way:
            self._leave_one_unknown(seq)

    def _leave_one_unknown(self, seq: int) -> None:
        executions = self.follower.executions
        took, fields = None, None
        if executions is not None and executions.pending is not None:
            took = executions.pending.choice.reserved
            fields = executions.took_fields(took, None)
        at_ms = self.record_time()
        trouble = self.put(
            lambda: outcome_parts(seq, "unknown", 0, took=fields, at_ms=at_ms), sync=True
        )
        if trouble is not None:
            raise trouble
        if executions is not None and took is not None:
            executions.settle(took, False)
        self.session.note_time(at_ms)
        self.session.leave_unknown(seq)
        self.followed()

    def look(self) -> Decision | None:
        """Read new records without the file lock; return a refusal if the ledger is broken."""
        self._require_process()
        if self._trouble() is None:
            try:
                self.read(locked=False)
            except Rejected as error:
                # may be a torn line that the holder of the lock is about to cut off
                if not self._between:
                    return None
                self._fault = error
            except (LedgerError, ResumeError) as error:
                self._fault = error
        return None if self._fault is None else self._broken(self._fault)

    def write(self, record: dict[str, Json], then: Callable[[], None] | None = None) -> None:
        """Write a record, wait for the disk, and change the session.

        Args:
            then: changes the session; None: the record changes nothing.

        Raises:
            Refused: R306: the record cannot be written, and the session is unchanged.
        """
        trouble = self.put(lambda: parts_of(record), sync=True)
        if trouble is not None:
            self.broken(trouble, "")
        if then is not None:
            then()
        self.followed()

    def put(self, make: Callable[[], Parts], *, sync: bool) -> Exception | None:
        """Write a record before the session changes; then the caller calls :meth:`followed`.

        If an exception interrupts the caller in between, the ledger has a record that the session
        lacks.  Then the gate refuses every call until the session is reopened.

        Args:
            make: renders the record.  Not called for a session in memory.
            sync: whether to wait until the record is on the disk.

        Returns:
            The error because of which the record was not written and the gate has stopped; None:
            the record was written.
        """
        if self._between or self._fault is not None or self.session.course.broken_off:
            trouble = self._trouble()
            if trouble is not None:
                return trouble
        self._between = True
        journal, sealed = self.journal, self.follower.writer.sealed
        try:
            if journal.is_full:
                self.roll(self.follower.first)
            journal.append(lambda head: sealed(make(), head))
            if self.durable:
                if sync:
                    journal.sync()
                else:
                    journal.sync_soon()
        except (LedgerError, ResumeError) as error:
            self._fault = error
            return error
        return None

    def roll(self, first: Mapping[str, Json]) -> None:
        """Continue the ledger in another file.

        Args:
            first: the first record of the file, without `continues` and its MAC.
        """
        sealed = self.follower.writer.sealed
        self.journal.roll(
            lambda head: sealed(parts_of({"kind": "roll"}), head),
            lambda head: sealed(parts_of({**first, "continues": head.hex()}), FIRST_HEAD),
        )

    def records_before_next(self) -> int:
        """Return the number of records before the next one.  If a file begins for it, two more are
        counted.
        """
        return self.journal.records + 2 * self.journal.is_full

    def record_time(self, *, always: bool = False) -> int | None:
        """Return the time for a record that is written now; None if no statement uses time.

        Args:
            always: return a time in any case.
        """
        return self.session.at(self.clock()) if always or self.policy.timed else None

    def put_refusal(
        self, tool: object, code: str, statement: int | None = None, *, made: bool = False
    ) -> None:
        """Record that a call was refused; if that fails, the gate stops.

        A call of an unknown tool is recorded with R101, whatever its code is.
        """
        if type(tool) is not str or self.policy.tables.named(tool) is None:
            tool, code = "", Code.UNKNOWN_TOOL
        name = str(tool)
        if self.put(lambda: refusal_parts(name, code, statement, made=made), sync=False) is None:
            self.followed()

    def record_refusal(self, found: Decision, tool: str) -> None:
        """Record a decision if ledgers have its code.  After the end of the session nothing is
        recorded.
        """
        made = self.shadows(found)
        if not self.session.ended and (made or found.code in RECORDED):
            self.put_refusal(tool, str(found.code), found.statement, made=made)

    def followed(self) -> None:
        """Note that the session has the last record, so that the next one may be written."""
        self._between = False
        if self._later is not None:
            self._fault = self._fault or self._later

    def fail(self, error: Exception) -> None:
        """Stop the gate because of this error: it refuses every further call."""
        self._fault = self._fault or error

    def fail_after(self, error: Exception) -> None:
        """Stop the gate because of this error once the next record is written."""
        self._later = self._later or error

    def _trouble(self) -> Exception | None:
        """Return the error that stops the gate; None: it may write records."""
        if (self._between or self.session.course.broken_off) and self._fault is None:
            self._fault = LedgerError("ledger", OSError(0, "a record was broken off"))
        return self._fault

    def _require_sound(self, tool: str) -> None:
        trouble = self._trouble()
        if trouble is not None:
            self.broken(trouble, tool)

    # Refusals.

    def not_yet(self, tool: str) -> NoReturn:
        """Raise NotYet, because a call has to wait for the outcome of another one.

        Raises:
            NotYet: the outcome may still be reported.
            Refused: R306: the gate has stopped, so no outcome will be recorded.
        """
        self._require_sound(tool)
        raise NotYet

    def refuse(self, code: Code, tool: str = "") -> NoReturn:
        """Refuse a call for a reason outside its arguments.

        Raises:
            Refused: always.
        """
        raise Refused(decision(self.session, code), tool)

    def _refuse_nested(self, tool: str, code: Code = Code.NESTED_CALL) -> NoReturn:
        """Refuse a call inside a call, or a call for which the queue is full.

        The refusal is recorded if a call of this gate is under way, because then this process has
        the lock.

        Raises:
            Refused: R305, R308.
        """
        with self.lock:
            if tool and self.pending and self._trouble() is None:
                self.put_refusal(tool, code)
        self.refuse(code, tool)

    def broken(self, error: Exception, tool: str) -> NoReturn:
        """Refuse this call and all later ones: the ledger is broken.

        Raises:
            Refused: R306.
        """
        self._fault = error
        raise Refused(self._broken(error), tool) from error

    def _broken(self, error: Exception) -> Decision:
        return decision(self.session, Code.NOT_WRITTEN, clip(error, 200))
