"""A session that threads, tasks and processes share: how a call is decided, and what changes it.

Whether a call may be made is asked in this order: the tool, its arguments, the plans, the monitors.
Who wants to change a session waits for his turn (in the order of asking, within a process), then
for the lock of the file; then he reads what others have written.  The lock is kept while any call
of this process is under way.  Each change writes its record
first and then changes the session.  A call that its process left without an outcome is unknown from
then on.  After an error of the system nothing is written any more, and so nothing is allowed.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 6.
Cost: a decision is linear in the arguments, and a few look-ups for the rest, whatever was called
before; a record, and what others have written since; resolving is linear in the history.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from msgspec import Struct

from tcc_certs.core.across import Draw
from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json, written
from tcc_certs.formats.ledger_schema import MAX_TIME
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import SHADOWED
from tcc_certs.values.places import State
from tcc_runtime.account.windows import Across, Counting
from tcc_runtime.errors import (
    NEEDS_MODEL,
    BindingError,
    GivenOtherwise,
    LedgerError,
    ResumeError,
    SettingsError,
)
from tcc_runtime.gate.arguments import Asked, Given, read_given
from tcc_runtime.gate.budget import ModelCall
from tcc_runtime.gate.journal import InFile, Journal, News, Passes
from tcc_runtime.gate.keys import NONCE_BYTES, new_key, read_key, remove_key
from tcc_runtime.gate.permit import Crowded, Nested, NotYet, Permit, Ticket, Turns, turns_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.reasons import keep_up, reasons
from tcc_runtime.gate.refusals import (
    Allowed,
    AlreadyDone,
    Decision,
    More,
    Reason,
    Refused,
    Spent,
    argument_remedy,
    why,
)
from tcc_runtime.gate.session import Session, records
from tcc_runtime.gate.session.records import Parts, outcome_parts, parts_of
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.process import collection_put_off, process_number

# Decisions; they have no effect.


class Permitted(Struct, frozen=True, gc=False):
    """A call that may be made.

    Attributes:
        asked: which.
        seen: as monitors see it; states: its fields, for statements of version 1.2.
        opened: what a record has of its open arguments; None: nobody has asked yet.
        at_ms: when it was decided; None where no statement looks at the clock.
    """

    asked: Asked
    seen: Sequence[Seen] = ()
    opened: Mapping[str, Json] | None = None
    states: Mapping[str, State] | None = None
    at_ms: int | None = None


def decide(
    follower: Follower,
    tool: object,
    arguments: object,
    clock: Callable[[], int],
    *,
    kept: bool = True,
) -> Permitted | Decision:
    """The call, where it is allowed; else the refusal.

    Args:
        clock: UTC ms; a time before that of the last call counts as that.
        kept: whether a call that is allowed may be made; else nothing is remembered of it.
    """
    reading = follower.session.reading
    known = 0 if reading is None else len(reading.marks)
    found = _decided(follower, tool, arguments, clock)
    if reading is not None and not (kept and isinstance(found, Permitted)):
        reading.forget(known)
    return found


def _decided(
    follower: Follower, tool: object, arguments: object, clock: Callable[[], int]
) -> Permitted | Decision:
    session = follower.session
    if session.ended:
        return decision(session, Code.ENDED, "")
    table = session.policy.tables.named(tool)
    if table is None:
        more = partial(argument_remedy, session.policy.core, None, Code.UNKNOWN_TOOL, "")
        return decision(session, Code.UNKNOWN_TOOL, "", more=more)
    asked = table.read(arguments)
    if not isinstance(asked, Asked):
        more = partial(argument_remedy, session.policy.core, table.tool, *asked)
        return decision(session, asked[0], clip(asked[1], 80), more=more)
    policy, offer = session.policy, asked.offer
    machine = policy.machine
    seen: Sequence[Seen] = ()
    opened = states = at_ms = None
    if machine.statements is not None or offer.tool in machine.monitors.compared:
        try:
            opened = follower.writer.opened(asked)
        except Rejected as refusal:
            return decision(session, refusal.code, refusal.path)
        states = session.fields(offer, opened)
        seen = machine.monitors.read(offer.tool, offer.values, opened)
    if machine.statements is not None and machine.statements.timed:
        at_ms = max(clock(), session.stamp)
        if at_ms > MAX_TIME:
            return decision(session, Code.NOT_WRITTEN, "clock")
    refused = session.course.refuses(offer, seen, states, at_ms or 0)
    if refused is not None:
        code, text = refused
        if code in (Code.MONITOR_FORBIDS, Code.MANY_EARLIER):
            at = len(session.made) + 1, offer.tool, states, at_ms or 0
            return decision(session, code, text, asked, why(session.course, text, *at))
        return decision(session, code, text, asked)
    made_by = follower.executions
    if made_by is not None and made_by.makes(offer.tool) and made_by.choice(offer.tool) is None:
        return decision(session, Code.NO_MODEL, "budget", asked)
    return Permitted(asked, seen, opened, states, at_ms)


def is_call(follower: Follower, seq: int, tool: object, arguments: object) -> bool:
    """Whether a call of the session has these arguments: by its text, and digest by digest."""
    session = follower.session
    table = session.policy.tables.named(tool)
    if not 1 <= seq <= len(session.made) or table is None:
        return False
    asked, made = table.read(arguments), session.made[seq - 1]
    if not isinstance(asked, Asked) or asked.offer is not made.offer:
        return False
    expected = {given[0]: follower.writer.digest(given) for given in asked.opened}
    found = {
        name: item.get("digest") if isinstance(item, dict) else None
        for name, item in made.opened.items()
    }
    return expected == found


def decision(
    session: Session,
    code: Code | None,
    place: str,
    asked: Asked | None = None,
    more: More | None = None,
) -> Decision:
    """A decision; reasons beyond its code are computed when they are read.

    Args:
        code: why not; None where the call is allowed.
        place: the argument at fault, or the monitor.
        more: what the one reason says beside kind and text.
    """
    held, made, closed = session.held, len(session.made), session.ended
    under_way, resolved = session.under_way, len(session.resolved)
    lost = session.lost

    def because() -> list[Reason]:
        if code is None:
            return []
        offer = None if asked is None else asked.offer
        found = reasons(session, made, code, place, offer, resolved=resolved, under_way=under_way)
        return found if more is None else [{**found[0], **more()}, *found[1:]]

    def allowed_next() -> tuple[Allowed, ...]:
        nothing = closed or under_way or code is Code.NOT_WRITTEN
        return () if nothing else session.policy.allowed(held)

    def spent() -> Spent | None:
        if code is None or under_way or code is Code.NOT_WRITTEN:
            return None
        if not (closed or lost) and session.policy.next_offers(held):
            return None
        return Spent(session=session.identity, way_on=session.way_on)

    found = Decision(code, place, because, allowed_next, spent)
    found.offer = None if asked is None else asked.offer
    return found


# The session, its journal and its queue.


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """How the ledger of a session is kept.

    Attributes:
        rolls: a finished one is kept under another name, and a new session begun.
        private: it is of a store: it is there, and its owner's alone.
        begun: it was begun just now, for this gate alone.
        parent: the id of the session that its calls are calls of, too; None: there is none.
        way_on: what whoever is refused by a spent session can do.
        shadow: what would be refused is recorded as refused and made all the same.
        recorded: False, in memory alone: nobody will ask for its head, so none is made.
    """

    rolls: bool = False
    private: bool = False
    begun: bool = False
    parent: str | None = None
    way_on: str = "its owner ends it and opens another ledger"
    shadow: bool = False
    recorded: bool = True


_PLAIN: Final = Home()


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a session is given when it begins, or has to have been given.

    Attributes:
        values: None: whoever opens it says nothing of it.
        shown: the names of those whose values stand in the ledger.
    """

    values: tuple[Given, ...] | None = None
    shown: frozenset[str] = frozenset()

    def hold(self, follower: Follower) -> None:
        """A session that is taken up was given the same.

        Raises:
            GivenOtherwise: it was given something else.
        """
        if self.values is None:
            return
        expected = {one[0]: follower.writer.digest(one) for one in self.values}
        found = {
            name: item.get("digest") if isinstance(item, dict) else None
            for name, item in follower.given.items()
        }
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                why = "what the session was given when it began"
                raise GivenOtherwise(f"line 1: given: {written(name)}", why, "another value")


_NOTHING: Final = Begun()


class Rolled(Exception):
    """A finished ledger has another name now: open the name again."""


_POLL: Final = (0.0005, 0.02)  # seconds between two looks at a lock: the first, the longest
_TRIES: Final = 10
_FAULTS: Final = (LedgerError, Rejected, ResumeError)
_IN_A_ROW: Final = 256  # calls beside others, where the system does not tell who waits
_WAY: Final = 0.25  # seconds that the lock is left to others who wait for it: they look that often


class Shared:
    """A session, its journal, and the queue before it.

    Attributes:
        policy: of its artifact.
        follower: the session, and what its ledger says of it; session: that session.
        lock: of everything here, for as long as it is looked at or changed; the lock of the file is
            given back with it.
        durable: whether the disk is waited for.
        clock: UTC ms.
        pending: the turns of this process whose calls are under way.
        overlaps: whether there are calls that others may be under way beside.
        turns: the queue before the session.
        across: the limits that are held across sessions; None: there are none.
    """

    def __init__(
        self,
        policy: Policy,
        journal: Journal,
        *,
        key: bytes | None,
        shown: tuple[str, ...],
        durable: bool,
        clock: Callable[[], int],
        nonce: bytes | None,
        wait: bool = True,
        home: Home = _PLAIN,
        given: Begun = _NOTHING,
        across: Across | None = None,
    ) -> None:
        self.policy = policy
        self.across = across
        self._given = given
        self.home = home
        self.lock = threading.Lock()
        self.pending: set[Ticket] = set()
        self.overlaps = any(tool.parallel for tool in policy.core.tools)
        self._users = 0  # of the lock of the file: the holder of the turn, and calls under way
        self._row = 0  # calls that began beside others since it was taken
        self._given_back = 0  # how often it was
        self._way_until = 0.0  # until then the lock is left to others who wait for it
        self._entered: Ticket | None = None  # the turn in which it was taken
        self.clock = clock
        self._nonce = nonce
        self.journal = journal
        self.durable = durable
        self._fault: Exception | None = None
        self._later: Exception | None = None  # why nothing is allowed behind the next record
        self._between = False  # a record is being written that the session does not know yet
        self._pid = process_number()
        # The process that began the session; 0 where it was there.
        self._begun_by = self._pid if home.begun else 0
        self._made_key = False
        if isinstance(journal, InFile):
            self.turns = turns_of(journal.device, journal.inode)
            self._take_up(journal, key, shown, wait=wait)
        else:
            self.turns = Turns()
            follower = self._follows(os.urandom(32) if key is None else key)
            self._begin(follower, shown)

    def _follows(self, key: bytes) -> Follower:
        follower = self.follower = Follower(self.policy, key)
        self.session = follower.session
        return follower

    def _begin(self, follower: Follower, shown: tuple[str, ...]) -> None:
        told = self._given.values or read_given(self.policy.core.given, {})
        started = self.clock()
        if not 0 <= started < 1 << 48:
            raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
        nonce = os.urandom(NONCE_BYTES) if self._nonce is None else self._nonce
        parent = follower.parent = self.home.parent
        shadow = follower.shadow = self.home.shadow
        record = records.session_record(
            self.policy,
            follower.key,
            started,
            nonce.hex(),
            shown,
            given=records.given_record(self.policy, follower.key, told, self._given.shown),
            parent=parent,
            shadow=shadow,
        )
        follower.open(shown, record)
        follower.session.way_on = self.home.way_on
        self.journal.append(follower.writer.sealed(parts_of(record), self.journal.head))
        self.sync()

    def _take_up(
        self, journal: InFile, key: bytes | None, shown: tuple[str, ...], *, wait: bool
    ) -> None:
        """A new session, or the one that the file has.

        Raises:
            LedgerError: with a `BlockingIOError`: without `wait`, where somebody has the lock.
        """
        try:
            ticket = self.turns.take() if wait else self.turns.try_take()
        except Nested:
            journal.close()
            raise Refused(Decision(Code.NESTED_CALL, "", list, tuple)) from None
        if ticket is None:
            journal.close()
            raise _held(journal)
        try:
            if not journal.lock(wait=wait, process=self._pid):
                raise _held(journal)
            new = journal.is_new()
            if new and self.home.private:
                raise ResumeError(journal.path.name, "the start of a session", "none")
            if key is None and new:
                key, self._made_key = new_key(journal.path, durable=self.durable)
            elif key is None:
                key = read_key(journal.path)
            follower = self._follows(key)
            follower.session.way_on = self.home.way_on
            with collection_put_off(True):  # all that is made of a long ledger stays
                self._read(follower, locked=True, passes=follower.passes)
            if new:
                self._begun_by = self._pid
                self._begin(follower, shown)
            elif follower.parent != self.home.parent:
                # Before anything is written: nobody goes on with a session without its parent.
                due, found = follower.parent, self.home.parent
                raise ResumeError("line 1: parent", due or "no parent", found or "no parent")
            elif follower.session.ended:
                if self.home.rolls:
                    journal.roll(follower.session_id)
                    raise Rolled
            elif follower.shadow != self.home.shadow:
                # One that was in the shadow has calls that no gate let through, and the other way.
                kinds = ("a session that is enforced", "a session in the shadow")
                mine, found = kinds[self.home.shadow], kinds[follower.shadow]
                raise ResumeError("line 1: shadow", mine, found)
            else:
                self._given.hold(follower)
                self._leave_unknown(follower)
            if journal.doubtful:
                journal.sync()
            self.give_back()
        except BaseException:
            if (self._begun_by and not self.home.private) or self._made_key:
                self._take_back(journal)
            journal.close()
            raise
        finally:
            journal.unlock()
            self.turns.give_back(ticket)

    @property
    def untouched(self) -> bool:
        """Whether the session was begun here, and nothing but its start is recorded."""
        return self._begun_by == process_number() and self.journal.records == 1

    def withdraw(self) -> bool:
        """Whether the session was begun here and nothing but its start recorded: its files go."""
        journal = self.journal
        if self._begun_by != process_number() or not isinstance(journal, InFile):
            return False
        ticket = self._soon()
        if ticket is None:
            return False
        try:
            with self.lock:
                if journal.records != 1:
                    return False
                self._take_back(journal)
        finally:
            self.leave(ticket)
        return True

    def _soon(self) -> Ticket | None:
        """The turn and the lock; None where they are not had at once.

        Who keeps the lock has a call under way, so more than the start is recorded.
        """
        for _ in range(_TRIES):
            try:
                ticket = self.try_enter("")
            except Refused:
                return None
            if ticket is not None:
                return ticket
            time.sleep(_POLL[1])
        self.stop_waiting()
        return None

    def _take_back(self, journal: InFile) -> None:
        # In this order: whoever comes between finds a new ledger, and no session without a key.
        if journal.emptied():
            if self._made_key:
                remove_key(journal.path)
            journal.remove()

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
            if self._between or self._fault is not None or self.session.course.torn:
                self._require_sound(tool)
            journal, session = self.journal, self.session
            news = journal.news(locked=True)
            if news or len(session.made) >= session.due:
                self._follow(self.follower, news)
            if journal.doubtful:
                journal.sync()  # what another process wrote is on the disk before it is used
            if self.across is not None:
                self.give_back()
            if session.under_way:
                self._leave_unknown(self.follower)

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
                        self._leave_one_unknown(self.follower, ticket.seq)
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
        if isinstance(journal, InFile):
            self.turns = turns_of(journal.device, journal.inode)
        else:
            self.turns = Turns()

    # What the ledger has.

    def give_back(self) -> None:
        """What calls drew across sessions that failed, as the disk has it by now."""
        if self.across is not None and self.follower.returns:
            self.across.give_back(self.follower)

    def _read(self, follower: Follower, *, locked: bool, passes: Passes | None = None) -> None:
        self._follow(follower, self.journal.news(locked=locked, passes=passes))

    def _follow(self, follower: Follower, records: Iterable[News]) -> None:
        for news in records:
            # A record that was read and not followed must not be gone on behind.
            self._between = True
            follower.apply(news)
            self._between = False
            if self.durable and not news.own:
                self.journal.sync_soon()
        session = follower.session
        if len(session.made) >= session.due:
            keep_up(session)

    def _leave_unknown(self, follower: Follower) -> None:
        """A call that its process did not end has an unknown outcome."""
        for seq in follower.session.under_way:
            self._leave_one_unknown(follower, seq)

    def _leave_one_unknown(self, follower: Follower, seq: int) -> None:
        executions = follower.executions
        took, fields = None, None
        if executions is not None and executions.pending is not None:
            took = executions.pending.choice.reserved
            fields = executions.took_fields(took, None)
        trouble = self.put(outcome_parts(seq, "unknown", 0, took=fields), sync=True)
        if trouble is not None:
            raise trouble
        if executions is not None and took is not None:
            executions.settle(took, False)
        follower.session.settle("unknown", None, False, seq=seq)
        self.followed()

    def look(self) -> Decision | None:
        """What others have written since, without the lock; why nothing can be said, if so."""
        self._require_process()
        if self._trouble() is None:
            try:
                self._read(self.follower, locked=False)
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
        trouble = self.put(parts_of(record), sync=True)
        if trouble is not None:
            self.broken(trouble, "")
        if then is not None:
            then()
        self.followed()

    def put(self, parts: Parts, *, sync: bool) -> Exception | None:
        """Writes a record; what it tells is not so before :meth:`followed` is said.

        What breaks off between both (an interrupt, say, while the disk is waited for) leaves a
        record that the session does not know: nothing is allowed until it is taken up again.

        Returns:
            why it is not written, and nothing is allowed from here on; None: it is.
        """
        if self._between or self._fault is not None or self.session.course.torn:
            trouble = self._trouble()
            if trouble is not None:
                return trouble
        self._between = True
        journal = self.journal
        try:
            if self.home.recorded:
                journal.append(self.follower.writer.sealed(parts, journal.head))
            if self.durable:
                if sync:
                    journal.sync()
                else:
                    journal.sync_soon()
        except LedgerError as error:
            self._fault = error
            return error
        return None

    def put_refusal(self, tool: object, code: str, *, made: bool = False) -> None:
        """Records that a call was refused; where that cannot be nothing is allowed any more."""
        known = type(tool) is str and self.policy.tables.named(tool) is not None
        parts = records.refusal_parts(str(tool) if known else "", code, made=made)
        if self.put(parts, sync=False) is None:
            self.followed()

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
        if (self._between or self.session.course.torn) and self._fault is None:
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
        raise Refused(decision(self.session, code, ""), tool)

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


def _held(journal: InFile) -> LedgerError:
    return LedgerError(str(journal.path), BlockingIOError(0, "somebody else has its lock"))


# What changes it. Callers have the turn, the lock of the file and that of the session.


def admitted(shared: Shared, permit: Permit) -> tuple[Permitted, str | None]:
    """A call that may begin now, and what stands for the caller's id; only a refusal is recorded.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        NotYet: it has to wait for an outcome of a call that is under way.
    """
    tool, session = permit.tool, shared.session
    reference = None if permit.ref is None else _reference(shared, tool, permit.ref)
    deciding = _decided if session.reading is None else decide
    found = deciding(shared.follower, tool, permit.arguments, shared.clock)
    if not isinstance(found, Permitted):
        code, offer = found.code, found.offer
        if code is not None and offer is not None and session.may_come(code, found.place, offer):
            shared.not_yet(tool)
        if code is not Code.NOT_WRITTEN:  # no record can say when that was
            record_refusal(shared, found, tool)
        raise Refused(found, tool)
    if session.under_way and _waits(shared, found):
        shared.not_yet(tool)
    return found, reference


def counted(shared: Shared, found: Permitted, known: Counting | None = None) -> Counting | None:
    """A call that is allowed, counted across sessions; None: it draws nothing.

    Args:
        known: what was counted for it already; of other draws it is given back.

    Raises:
        Refused: R306 the account cannot be asked.
    """
    session, across = shared.session, shared.across
    draws = drawn(shared, found)
    if known is not None and known.draws == draws:
        return known
    if across is None or not draws:
        return None
    if known is not None:
        across.forget(shared.follower, known)
    now = shared.clock() if found.at_ms is None else found.at_ms
    try:
        return across.count(shared.follower, len(session.made) + 1, draws, now)
    except Rejected as error:
        raise Refused(decision(session, Code.NOT_WRITTEN, clip(error, 200))) from error


def drawn(shared: Shared, found: Permitted) -> tuple[Draw, ...]:
    """What a call that is allowed draws on an account."""
    across, given = shared.across, shared.follower.given
    if across is None:
        return ()
    course, opened = shared.session.course, found.opened or {}
    return across.draws(course, found.asked.offer, found.states, opened, given)


def _has_room(shared: Shared, counting: Counting, found: Permitted, tool: str) -> None:
    """Whether the limits across sessions have room for a call.

    Raises:
        Refused: R202 one has none; NotYet: a call under way may give some back.
    """
    draw, session = counting.found, shared.session
    if not isinstance(draw, Draw):
        return
    if any(session.made[seq - 1].drawn is not None for seq in session.under_way):
        shared.not_yet(tool)
    refused = decision(session, Code.MONITOR_FORBIDS, draw.limit.text, found.asked)
    record_refusal(shared, refused, tool)
    raise Refused(refused, tool)


def admit(
    shared: Shared,
    permit: Permit,
    ticket: Ticket,
    *,
    sync: bool,
    counting: Counting | None = None,
    chosen: Callable[[Ticket], str] | None = None,
) -> None:
    """The call of a permit begins, in a turn.

    Args:
        counting: what was counted for it across sessions; None: that is still to be done.
        chosen: the model that the parent has chosen for it; None: there is no parent.

    Raises:
        Refused: it is not allowed; AlreadyDone: the session has the id.
        NotYet: it has to wait for an outcome of a call that is under way.
        BindingError: what is called is not told the model that makes it, or has none to be told.
        Rejected: K101, K103, K104, K106 of the account.
    """
    tool, follower, session = permit.tool, shared.follower, shared.session
    if chosen is None and permit.takes_model is not None:
        _require_bound(shared, tool, permit.takes_model)
    found, reference = admitted(shared, permit)
    asked, seq = found.asked, len(session.made) + 1
    across = execute = execution = None
    if shared.across is not None:
        counting = counted(shared, found, counting)
        if counting is not None:
            _has_room(shared, counting, found, tool)
            across = counting.record()
    executions, model = follower.executions, ""
    if executions is not None:
        try:
            execution = _execution(shared, found, tool)
        except BaseException:
            if counting is not None and shared.across is not None:
                shared.across.forget(follower, counting)
            raise
        if execution is not None:
            execute, model = executions.fields(execution), execution.choice.model.name
    opened = found.opened
    if opened is None:
        opened = follower.writer.opened(asked) if asked.opened else {}
    parts, key = follower.writer.call(
        seq,
        asked.offer,
        opened,
        session.policy.machine.shown(session.course.held),
        reference=reference,
        at_ms=found.at_ms,
        across=across,
        execute=execute,
    )
    if counting is not None:
        counting.recorded = True  # from here on: what the disk has is not known
    trouble = shared.put(parts, sync=sync)
    if trouble is not None:
        if executions is not None and execution is not None:
            with suppress(Rejected):
                executions.give_back(execution)
        shared.broken(trouble, tool)
    line, at_ms = shared.journal.records, found.at_ms or 0
    made = session.begin(asked.offer, found.seen, found.states, line, at_ms, opened, model)
    if across is not None:
        follower.drew(made, across)
    if executions is not None and execution is not None:
        executions.begin(execution)
    if reference is not None:
        follower.refs[reference] = seq
    ticket.begin(seq)
    shared.pending.add(ticket)  # first: who leaves the turn finds it
    shared.followed()
    ticket.began = shared.clock()
    permit.admitted(seq, key, ticket, model if chosen is None else chosen(ticket))


def _require_bound(shared: Shared, tool: str, takes_model: bool) -> None:
    """A model that the ledger names is one that whoever makes the call was told."""
    table, executions = shared.policy.tables.named(tool), shared.follower.executions
    if table is None:
        return
    made = executions is not None and executions.makes(table.number)
    if made and not takes_model:
        raise BindingError(tool, NEEDS_MODEL)
    if takes_model and not made:
        said = "its parameter 'model' has no default, and no model is chosen"
        raise BindingError(tool, f"{said}: begin a budget, with gate.budget(..)")


def _waits(shared: Shared, found: Permitted) -> bool:
    """Whether a call that is allowed may not begin beside those that are under way."""
    session, executions, offer = shared.session, shared.follower.executions, found.asked.offer
    if session.waits(offer, shared.journal.records):
        return True
    tools = {offer.tool, *[session.made[seq - 1].offer.tool for seq in session.under_way]}
    return executions is not None and any(map(executions.makes, tools))


def _execution(shared: Shared, found: Permitted, tool: str) -> ModelCall | None:
    """The model that makes a call that is allowed; None: calls of its tool are made by none.

    Raises:
        Refused: R205 the account has too little for any; Rejected: as :func:`admit`.
    """
    executions, number = shared.follower.executions, found.asked.offer.tool
    if executions is None or not executions.makes(number):
        return None
    execution = executions.reserve(number)
    if execution is None:
        refused = decision(shared.session, Code.NO_MODEL, "account", found.asked)
        record_refusal(shared, refused, tool)
        raise Refused(refused, tool)
    return execution


def _reference(shared: Shared, tool: str, ref: str) -> str:
    """What stands for the caller's id.

    Raises:
        Refused: R106 it is no text; AlreadyDone: the session has it.
    """
    try:
        if type(ref) is not str:
            raise Rejected(Code.NO_VALUE, "ref", "a text", type(ref).__name__)
        reference = shared.follower.writer.reference(ref)
    except Rejected as refusal:
        found = decision(shared.session, refusal.code, "ref")
        record_refusal(shared, found, tool)
        raise Refused(found, tool) from None
    seq = shared.follower.refs.get(reference)
    if seq is None:
        return reference
    found = decision(shared.session, Code.ALREADY_DONE, "ref")
    record_refusal(shared, found, tool)
    error = AlreadyDone(found, tool)
    error.seq, error.outcome = seq, shared.session.made[seq - 1].outcome
    raise error


def record_refusal(shared: Shared, found: Decision, tool: str) -> None:
    """Of an ended session nothing is written any more."""
    if not shared.session.ended:
        shared.put_refusal(tool, str(found.code), made=shared.shadows(found))


def drawn_on(shared: Shared, took: SpentAmounts) -> Mapping[str, Json] | None:
    """What the record of an outcome says of what a model took; the account is told."""
    executions, left = shared.follower.executions, None
    if executions is None:
        return None
    try:
        left = executions.draw(took)
    except Rejected as error:
        shared.fail_after(error)
    return executions.took_fields(took, left)
