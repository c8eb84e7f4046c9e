"""A session that threads, tasks and processes share: who may go on with it, and how it is kept.

Who wants to change it waits for his turn (in the order of asking, within a process), then for the
lock of the file; then he reads what others have written.  A call that its process left without an
outcome is unknown from then on.  After an error of the system nothing is written any more, and so
nothing is allowed.
Text: docs/gate.md.
Cost: constant, and what others have written since.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Final, NoReturn

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.decisions import decision
from tcc_runtime.gate.journal import InFile, Journal
from tcc_runtime.gate.opening import NONCE_BYTES, new_key, read_key, remove_key
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.records import outcome_record, refusal_record, session_record
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session import Follower, Session
from tcc_runtime.gate.turns import Nested, Ticket, Turns, turns_of

_POLL: Final = (0.0005, 0.02)  # seconds between two looks at a lock: the first, the longest
_TRIES: Final = 10
_FAULTS: Final = (LedgerError, Rejected, ResumeError)


class Shared:
    """A session, its journal, and the queue before it.

    Attributes:
        policy: of its artifact.
        follower: the session, and what its ledger says of it.
        lock: of everything here, for as long as it is looked at or changed.
        durable: whether the disk is waited for.
        pending: the turn in which a call of this process is under way.
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
    ) -> None:
        self.policy = policy
        self.lock = threading.Lock()
        self.pending: Ticket | None = None
        self.clock = clock
        self._nonce = nonce
        self.journal = journal
        self.durable = durable
        self._fault: Exception | None = None
        self._later: Exception | None = None  # why nothing is allowed behind the next record
        self._between = False  # a record is being written that the session does not know yet
        self._pid = os.getpid()
        self._begun_by = 0  # the process that began the session; 0 where it was there
        self._made_key = False
        if isinstance(journal, InFile):
            self._turns = turns_of(journal.device, journal.inode)
            self.follower = self._take_up(journal, key, shown, wait=wait)
        else:
            self._turns = Turns()
            self.follower = Follower(policy, os.urandom(32) if key is None else key)
            self._begin(self.follower, shown)

    @property
    def session(self) -> Session:
        """The session."""
        return self.follower.session

    def _begin(self, follower: Follower, shown: tuple[str, ...]) -> None:
        started = self.clock()
        if not 0 <= started < 1 << 48:
            raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
        nonce = os.urandom(NONCE_BYTES) if self._nonce is None else self._nonce
        record = session_record(self.policy, follower.key, started, nonce.hex(), shown)
        follower.open(shown, str(record["session_id"]))
        self.journal.append(follower.writer.sealed(record, self.journal.head))
        self.sync()

    def _take_up(
        self, journal: InFile, key: bytes | None, shown: tuple[str, ...], *, wait: bool
    ) -> Follower:
        """A new session, or the one that the file has.

        Raises:
            LedgerError: with a `BlockingIOError`: without `wait`, where somebody has the lock.
        """
        try:
            ticket = self._turns.take() if wait else self._turns.try_take()
        except Nested:
            journal.close()
            raise Refused(Decision(Code.NESTED_CALL, "", list, tuple)) from None
        if ticket is None:
            journal.close()
            raise _held(journal)
        try:
            if not journal.lock(wait=wait):
                raise _held(journal)
            new = journal.is_new()
            if key is None and new:
                key, self._made_key = new_key(journal.path, durable=self.durable)
            elif key is None:
                key = read_key(journal.path)
            follower = self.follower = Follower(self.policy, key)
            self._read(follower, locked=True)
            if new:
                self._begun_by = self._pid
                self._begin(follower, shown)
            elif not follower.session.ended:
                self._leave_unknown(follower)
        except BaseException:
            if self._begun_by or self._made_key:
                self._take_back(journal)
            journal.close()
            raise
        finally:
            journal.unlock()
            self._turns.give_back(ticket)
        return follower

    def withdraw(self) -> bool:
        """Whether the session was begun here and nothing but its start recorded: its files go."""
        journal = self.journal
        if self._begun_by != os.getpid() or not isinstance(journal, InFile):
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
        return None

    def _take_back(self, journal: InFile) -> None:
        # In this order: whoever comes between finds a new ledger, and no session without a key.
        if journal.emptied():
            if self._made_key:
                remove_key(journal.path)
            journal.remove()

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
        self._require_process()
        try:
            ticket = self._turns.take()
        except Nested:
            self._refuse_nested(tool)
        try:
            self.journal.lock(wait=True)
            self._catch_up(tool)
        except _FAULTS as error:
            self.leave(ticket)
            self.broken(error, tool)
        except BaseException:
            self.leave(ticket)
            raise
        return ticket

    def try_enter(self, tool: str) -> Ticket | None:
        """The same, where turn and lock are free now; None, and nothing is kept, where not.

        Raises:
            Refused: R306.
        """
        self._require_process()
        ticket = self._turns.try_take()
        if ticket is None:
            return None
        try:
            if not self.journal.lock(wait=False):
                self.leave(ticket)
                return None
            self._catch_up(tool)
        except _FAULTS as error:
            self.leave(ticket)
            self.broken(error, tool)
        except BaseException:
            self.leave(ticket)
            raise
        return ticket

    async def enter_in_task(self, tool: str) -> Ticket:
        """The same, of a task; a lock that another process has is looked at again and again."""
        self._require_process()
        try:
            ticket = await self._turns.take_in_task()
        except Nested:
            self._refuse_nested(tool)
        try:
            pause, longest = _POLL
            while not self.journal.lock(wait=False):
                await asyncio.sleep(pause)
                pause = min(longest, 2 * pause)
            self._catch_up(tool)
        except _FAULTS as error:
            self.leave(ticket)
            self.broken(error, tool)
        except BaseException:
            self.leave(ticket)
            raise
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Gives lock and turn back."""
        self.journal.unlock()
        self._turns.give_back(ticket)

    def _require_process(self) -> None:
        """After a fork: locks that threads of the other process held are not waited for."""
        if os.getpid() == self._pid:
            return
        self._pid = os.getpid()
        self.lock = threading.Lock()
        self.pending = None
        journal = self.journal
        if isinstance(journal, InFile):
            self._turns = turns_of(journal.device, journal.inode)
        else:
            self._turns = Turns()

    # What the ledger has.

    def _catch_up(self, tool: str) -> None:
        with self.lock:
            self._require_sound(tool)
            self._read(self.follower, locked=True)
            self._leave_unknown(self.follower)

    def _read(self, follower: Follower, *, locked: bool) -> None:
        for news in self.journal.news(locked=locked):
            # A record that was read and not followed must not be gone on behind.
            self._between = True
            follower.apply(news)
            self._between = False

    def _leave_unknown(self, follower: Follower) -> None:
        """A call that its process did not end has an unknown outcome."""
        session = follower.session
        if session.under_way:
            seq = len(session.made)
            executions = follower.executions
            took, fields = None, None
            if executions is not None and executions.pending is not None:
                took = executions.pending.choice.expected
                fields = executions.took_fields(took, None)
            record = outcome_record(seq, "unknown", 0, None, False, None, fields)

            def then() -> None:
                if executions is not None and took is not None:
                    executions.settle(took, False)
                session.settle("unknown", None, False)

            self._keep(record, then, sync=True)

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

    def write(
        self,
        record: dict[str, Json],
        then: Callable[[], None],
        tool: str = "",
        *,
        sync: bool = True,
    ) -> None:
        """Writes a record, waits for the disk unless `sync` is False, and changes the session.

        Args:
            then: the change that the record tells.

        Raises:
            Refused: R306 it cannot be written; the session is as it was.
        """
        self._require_sound(tool)
        try:
            self._keep(record, then, sync=sync)
        except LedgerError as error:
            self.broken(error, tool)

    def try_to_write(
        self, record: dict[str, Json], then: Callable[[], None], *, sync: bool
    ) -> bool:
        """The same; False where it cannot be written, and then nothing is allowed any more."""
        if self._trouble() is not None:
            return False
        try:
            self._keep(record, then, sync=sync)
        except LedgerError as error:
            self._fault = error
            return False
        return True

    def _keep(self, record: dict[str, Json], then: Callable[[], None], *, sync: bool) -> None:
        # What breaks this off (an interrupt, say, while the disk is waited for) leaves a record
        # that the session does not know: nothing is allowed until the ledger is taken up again.
        self._between = True
        self.journal.append(self.follower.writer.sealed(record, self.journal.head))
        if sync:
            self.sync()
        then()
        self._between = False
        self._fault = self._fault or self._later

    def fail(self, error: Exception) -> None:
        """From here on nothing is allowed."""
        self._fault = self._fault or error

    def fail_after(self, error: Exception) -> None:
        """The next record is written, and then nothing is allowed."""
        self._later = self._later or error

    def _trouble(self) -> Exception | None:
        """Why nothing may be written any more."""
        if self._between and self._fault is None:
            self._fault = LedgerError("ledger", OSError(0, "a record was broken off"))
        return self._fault

    def _require_sound(self, tool: str) -> None:
        trouble = self._trouble()
        if trouble is not None:
            self.broken(trouble, tool)

    # Refusals.

    def refuse(self, code: Code, tool: str = "") -> NoReturn:
        """Refuse, for a reason that is no argument's.

        Raises:
            Refused: always.
        """
        raise Refused(decision(self.session, code, ""), tool)

    def _refuse_nested(self, tool: str) -> NoReturn:
        """A call inside a call; the turn of the outer one is this gate's, so it may be recorded.

        Raises:
            Refused: R305.
        """
        with self.lock:
            if tool and self.pending is not None and self._trouble() is None:
                known = self.policy.tool(tool) is not None
                record = refusal_record(tool if known else "", Code.NESTED_CALL)
                self.try_to_write(record, _nothing, sync=False)
        self.refuse(Code.NESTED_CALL, tool)

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


def _nothing() -> None:
    """A refusal changes nothing."""
