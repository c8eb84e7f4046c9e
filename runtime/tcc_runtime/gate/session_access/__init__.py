"""Access to a session: whose turn it is, the lock of its ledger, and each record before its change.

Who wants to change a session waits for his turn (in the order of asking, within a process), then
for the lock of the file, which other processes have in between; then he reads what others have
written.  A wait has no limit: a thread waits in the lock of the file (`gate/journal`), a task looks
again every few milliseconds.  The lock is kept while any call of this process is under way.  Each
change writes its record first and then changes the session.  A call that its process left without
an outcome is unknown from then on.  After an error of the system nothing is written any more, and
so nothing is allowed.  How a session is begun and reopened:
:mod:`tcc_runtime.gate.session_access.reopening`.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 6.
Cost: a record, and what others have written since.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.session.machine import Offer
from tcc_certs.session.records import RECORDED, REFUSALS, SHADOWED
from tcc_runtime.account.windows import Across
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate.journal import Journal, News, ledger_file
from tcc_runtime.gate.permit import Crowded, Nested, NotYet, Ticket, Turns, turns_of
from tcc_runtime.gate.refusals import Allowed, Because, Decision, Reason, Refused, Spent
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.session.records import Parts, outcome_parts, parts_of, refusal_parts
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.process import process_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """How the ledger of a session is kept.

    Attributes:
        rolls: a finished one is kept under another name, and a new session begun.
        private: it is of a store: it is there, and its owner's alone.
        begun: it was begun just now, for this gate alone.
        way_on: what whoever is refused by a spent session can do.
        shadow: what would be refused is recorded as refused and made all the same.
        recorded: False: the session is in memory, and no account counts its calls.
    """

    rolls: bool = False
    private: bool = False
    begun: bool = False
    way_on: str = "its owner ends it and opens another ledger"
    shadow: bool = False
    recorded: bool = True


_POLL: Final = (0.0005, 0.02)  # seconds between two looks at a lock: the first, the longest
_FAULTS: Final = (LedgerError, Rejected, ResumeError)
_IN_A_ROW: Final = 256  # calls beside others, where the system does not tell who waits
_WAY: Final = 0.25  # seconds that the lock is left to others who wait for it: they look that often


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
    """A decision; the calls that are allowed instead are computed when they are read.

    Args:
        code: why not; None where the call is allowed.
        place: as of the decision.
        statement: the number of the statement that refuses.
        because: computes its reasons when they are read; None: they follow from the code.
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
    """A session, its journal, and the queue before it.

    Attributes:
        policy: of its artifact.
        follower: the session, and what its ledger says of it; session: that session.
        home: how its ledger is kept.
        lock: of everything here, for as long as it is looked at or changed; the lock of the file is
            given back with it.
        durable: whether the disk is waited for.
        clock: UTC ms.
        pending: the turns of this process whose calls are under way.
        overlaps: whether there are calls that others may be under way beside.
        turns: the queue before the session.
        across: the limits that are held across sessions; None: there are none.
        begun_by: the process that began the session; 0 where it was there.
        made_key: whether its key was made with it.
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
        self._users = 0  # of the lock of the file: the holder of the turn, and calls under way
        self._row = 0  # calls that began beside others since it was taken
        self._given_back = 0  # how often it was
        self._way_until = 0.0  # until then the lock is left to others who wait for it
        self._entered: Ticket | None = None  # the turn in which it was taken
        self.clock = clock
        self.journal = journal
        self.turns = turns
        self.durable = durable
        self._fault: Exception | None = None
        self._later: Exception | None = None  # why nothing is allowed behind the next record
        self._between = False  # a record is being written that the session does not know yet
        self._pid = process_number()
        self.begun_by, self.made_key = 0, False

    def shadows(self, found: Decision) -> bool:
        """Whether a call is made though it is refused so: the session is in the shadow."""
        return self.home.shadow and found.code in SHADOWED and self._trouble() is None

    def sync(self) -> None:
        """Waits for the disk, where that is asked for.

        Raises:
            LedgerError: the system refuses.
        """
        if self.durable:
            self.journal.sync()

    # The turn and the lock.

    def enter(self, tool: str) -> Ticket:
        """The turn, the lock, and what others have written; of a thread.

        Raises:
            Refused: R305, R306.
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
        """The same, where turn and lock are free now; None, and nothing is kept, where not.

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
        """The same, of a task; a lock that another process has is looked at again and again."""
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
        """Whether no call begins beside those under way, so that another process has the lock."""
        if not self.pending:
            return False
        return self._row >= _IN_A_ROW or self.journal.others_wait()

    def _leaves_way(self) -> bool:
        """Whether the lock, which was given back a moment ago, is left to others who wait."""
        if time.monotonic() < self._way_until and self.journal.others_wait():
            return True
        self._way_until = 0.0
        return False

    def _unlock(self) -> None:
        """Gives the lock back; of others who wait for it one has it first.

        To ask whether somebody waits takes longer than to give it back: whoever waits for no disk
        asks at every eighth time.
        """
        self._given_back += 1
        if (self.durable or not self._given_back & 7) and self.journal.others_wait():
            self._way_until = time.monotonic() + _WAY
        self.journal.unlock()

    def _takes_lock(self) -> bool:
        """Whether the holder of the turn has to take the lock; else it has it from here on.

        Nobody but that holder begins to use it: where none does, none will.
        """
        with self.lock:
            if self._users == 0:
                return True
            self._users += 1
            return False

    def _locked(self, ticket: Ticket, tool: str) -> None:
        """The lock was taken: what others have written is read."""
        with self.lock:
            self._users, self._row, self._entered = 1, 0, ticket
            if self._between or self._fault is not None or self.session.course.broken_off:
                self._require_sound(tool)
            journal, session = self.journal, self.session
            news = journal.news(locked=True)
            if news:
                self._follow(news)
            if journal.doubtful:
                journal.sync()  # what another process wrote is on the disk before it is used
            if self.across is not None:
                self.give_back()
            if session.under_way:
                self.leave_unknown()

    def _give_up(self, ticket: Ticket) -> None:
        """A turn that was not entered; the lock goes where nobody uses it."""
        with self.lock:
            if self._entered is ticket:
                self._users = max(0, self._users - 1)
            if self._users == 0:
                self.journal.stop_waiting()
                self._unlock()
        self.turns.give_back(ticket)

    def leave(self, ticket: Ticket) -> bool:
        """Gives the turn back, and the lock where no call of this process is under way.

        Returns:
            whether one was, in this turn.
        """
        with self.lock:
            if not ticket.held:  # a copy of a permit, say, whose block was left
                return False
            called = ticket in self.pending
            if called:
                self.pending.remove(ticket)
                if ticket.seq in self.session.under_way:  # its entry was broken off
                    with suppress(*_FAULTS):
                        self._leave_one_unknown(ticket.seq)
            if self._users <= 1:
                try:
                    self._unlock()
                finally:
                    self._users = 0  # not before: who sees this takes the lock himself
            else:
                self._users -= 1
        self.turns.give_back(ticket)
        return called

    def stop_waiting(self) -> None:
        """Nobody here waits for the lock any more, who was told that it is another's."""
        with self.lock:
            if self._users == 0:
                self.journal.stop_waiting()

    def pass_on(self, ticket: Ticket) -> None:
        """The call of this turn is under way; where others may be beside it the next is decided."""
        made = self.session.made[ticket.seq - 1]
        if self.policy.core.tools[made.offer.tool].parallel:
            self._row += 1
            self.turns.pass_on(ticket)

    def wait(self, ticket: Ticket, changes: int) -> None:
        """Until something has changed since `changes`; of a thread that has the turn."""
        if self.turns.rearm(ticket, changes):
            ticket.wait()

    async def wait_in_task(self, ticket: Ticket, changes: int) -> None:
        """The same, of a task."""
        if self.turns.rearm(ticket, changes):
            await ticket.come()

    def enter_alone(self) -> Ticket:
        """As :meth:`enter`, once nothing is under way.

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
        """After a fork: locks that threads of the other process held are not waited for."""
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

    # What the ledger has.

    def give_back(self) -> None:
        """What calls drew across sessions that failed, as the disk has it by now."""
        if self.across is not None and self.follower.returns:
            self.across.give_back(self.follower)

    def read(self, *, locked: bool) -> None:
        """Applies what others have written since."""
        self._follow(self.journal.news(locked=locked))

    def _follow(self, records: Iterable[News]) -> None:
        follower = self.follower
        for news in records:
            # A record that was read and not followed must not be gone on behind.
            self._between = True
            follower.apply(news)
            self._between = False
            if self.durable and not news.own:
                self.journal.sync_soon()

    def leave_unknown(self) -> None:
        """A call that its process did not end has an unknown outcome."""
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
        """What others have written since, without the lock; why nothing can be said, if so."""
        self._require_process()
        if self._trouble() is None:
            try:
                self.read(locked=False)
            except Rejected as error:
                if not self._between:  # a line that is being mended; who has the lock looks closely
                    return None
                self._fault = error
            except (LedgerError, ResumeError) as error:
                self._fault = error
        return None if self._fault is None else self._broken(self._fault)

    def write(self, record: dict[str, Json], then: Callable[[], None] | None = None) -> None:
        """Writes a record, waits for the disk, and changes the session.

        Args:
            then: the change that the record tells; None: it tells none.

        Raises:
            Refused: R306 it cannot be written; the session is as it was.
        """
        trouble = self.put(lambda: parts_of(record), sync=True)
        if trouble is not None:
            self.broken(trouble, "")
        if then is not None:
            then()
        self.followed()

    def put(self, make: Callable[[], Parts], *, sync: bool) -> Exception | None:
        """Write a record before the session changes; then the caller calls :meth:`followed`.

        If an interrupt comes between both, the ledger has a record that the session does not
        know.  Then nothing is allowed until the session is reopened.

        Args:
            make: renders the record; a session in memory does not need it.

        Returns:
            why the record is not written, and nothing is allowed any more; None: it is written.
        """
        if self._between or self._fault is not None or self.session.course.broken_off:
            trouble = self._trouble()
            if trouble is not None:
                return trouble
        self._between = True
        journal, sealed = self.journal, self.follower.writer.sealed
        try:
            journal.append(lambda head: sealed(make(), head))
            if self.durable:
                if sync:
                    journal.sync()
                else:
                    journal.sync_soon()
        except LedgerError as error:
            self._fault = error
            return error
        return None

    def record_time(self, *, always: bool = False) -> int | None:
        """The time of a record that is written now; None where the core does not use time.

        Args:
            always: the record has a time in any case.
        """
        return self.session.at(self.clock()) if always or self.policy.timed else None

    def put_refusal(
        self, tool: object, code: str, statement: int | None = None, *, made: bool = False
    ) -> None:
        """Record that a call was refused; if that fails, nothing is allowed any more.

        A call of an unknown tool is recorded with R101, whatever refuses it.
        """
        if type(tool) is not str or self.policy.tables.named(tool) is None:
            tool, code = "", Code.UNKNOWN_TOOL
        name = str(tool)
        if self.put(lambda: refusal_parts(name, code, statement, made=made), sync=False) is None:
            self.followed()

    def record_refusal(self, found: Decision, tool: str) -> None:
        """Record a decision, if a ledger has its code; an ended session has no more records."""
        if not self.session.ended and found.code in RECORDED:
            made = self.shadows(found)
            self.put_refusal(tool, str(found.code), found.statement, made=made)

    def followed(self) -> None:
        """The session is what its records tell."""
        self._between = False
        if self._later is not None:
            self._fault = self._fault or self._later

    def fail(self, error: Exception) -> None:
        """From here on nothing is allowed."""
        self._fault = self._fault or error

    def fail_after(self, error: Exception) -> None:
        """The next record is written, and then nothing is allowed."""
        self._later = self._later or error

    def _trouble(self) -> Exception | None:
        """Why nothing may be written any more."""
        if (self._between or self.session.course.broken_off) and self._fault is None:
            self._fault = LedgerError("ledger", OSError(0, "a record was broken off"))
        return self._fault

    def _require_sound(self, tool: str) -> None:
        trouble = self._trouble()
        if trouble is not None:
            self.broken(trouble, tool)

    # Refusals.

    def not_yet(self, tool: str) -> NoReturn:
        """A call waits for an outcome; of a session that is not gone on with none comes.

        Raises:
            NotYet: always, but for Refused: R306.
        """
        self._require_sound(tool)
        raise NotYet

    def refuse(self, code: Code, tool: str = "") -> NoReturn:
        """Refuse, for a reason that is no argument's.

        Raises:
            Refused: always.
        """
        raise Refused(decision(self.session, code), tool)

    def _refuse_nested(self, tool: str, code: Code = Code.NESTED_CALL) -> NoReturn:
        """A call inside a call, or one too many that waits.

        It is recorded where a call of this gate is under way, which has the lock.

        Raises:
            Refused: R305, R308.
        """
        with self.lock:
            if tool and self.pending and self._trouble() is None:
                self.put_refusal(tool, code)
        self.refuse(code, tool)

    def broken(self, error: Exception, tool: str) -> NoReturn:
        """Refuse this and everything that follows: the ledger cannot be gone on with.

        Raises:
            Refused: R306.
        """
        self._fault = error
        raise Refused(self._broken(error), tool) from error

    def _broken(self, error: Exception) -> Decision:
        return decision(self.session, Code.NOT_WRITTEN, clip(error, 200))
