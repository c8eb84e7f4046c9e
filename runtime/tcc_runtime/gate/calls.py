"""Calls of a gate, from permit to outcome: the turn, the decision, the record, the answer.

The record of a call is in the file before its permit is given.  An outcome that cannot be written
is unknown, and then no further call is allowed.  Logs and spans have each call.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: a decision and two records; with a durable ledger one fdatasync a call.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.policy.history import ANSWERED, FAILED
from tcc_certs.replay.amounts import SpentAmounts
from tcc_runtime.account.windows import Counting
from tcc_runtime.errors import LedgerError, SettingsError
from tcc_runtime.gate.admission import admit, admitted, counted
from tcc_runtime.gate.answers import Outcome, ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments import snapshot
from tcc_runtime.gate.inspection import Budgeted
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.permit import NotYet, OverError, Permit, Ticket, Took
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session.records import outcome_parts
from tcc_runtime.gate.session.values import NO_ANSWERS
from tcc_runtime.gate.session_access import Access

_log: Final = logging.getLogger("tcc.gate")
_API: Final = "opentelemetry.trace"
_LOGGED: Final = "logged"  # of a call that was told of in the log alone


class GateCalls(Budgeted):
    """The part of a gate that its permits ask (see :class:`tcc_runtime.gate.permit.Door`)."""

    _observer: Observer

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ref: str | None = None,
        takes_model: bool | None = None,
        turn: Ticket | None = None,
    ) -> Permit:
        """A permit for one call, for ``with`` and ``async with``; there it is decided.

        Args:
            tool: its name.
            arguments: JSON values by name.  The permit has a copy: make the call with
                `permit.arguments`, which are decided on and recorded.
            ref: the caller's own id of the call; one that the session has is not made again.
            takes_model: whether what is called is told which model makes the call: False, it has
                no parameter for it; True, it has one and needs it; None, either will do.
            turn: of :meth:`try_turn`; None waits for it.

        Raises:
            NotYet: at the start of the block, with `turn`: it has to wait for an outcome of a call
                that is under way; ask again then.
            Refused: at the start of the block: it is not allowed, and nothing was done.
            AlreadyDone: the same, as the session has the id.
            BindingError: there, too: a model would make the call and what is called is not told
                which; or none would, and it has to be told.  Nothing was done or recorded.
        """
        given = {} if arguments is None else snapshot(arguments, exact=True)
        return Permit(self, tool, given, ref, takes_model, turn)

    def try_turn(self) -> Ticket | None:
        """The turn and the ledger's lock, where nobody has them now; None else: nothing waits.

        For a caller that has other things to do than to wait.  What it is handed to (:meth:`call`,
        :meth:`resolve`, :meth:`finish`) gives it back, :meth:`give_back` does where it is not used.

        Raises:
            Refused: R306.
        """
        return self._access.try_enter("")

    def stop_waiting(self) -> None:
        """A turn that :meth:`try_turn` did not have is not wanted any more.

        Until then another process that has the ledger begins no call beside those under way.
        """
        self._access.stop_waiting()

    def give_back(self, turn: Ticket) -> None:
        """Gives back a turn of :meth:`try_turn` that was not used."""
        self._access.leave(turn)

    def enter(self, permit: Permit) -> None:
        """Waits for the turn, decides and records; of a thread."""
        access = self._access
        try:
            ticket = permit.turn or access.enter(permit.tool)
            try:
                while True:
                    changes = access.turns.changes
                    try:
                        with access.lock:
                            admit(access, permit, ticket, sync=True)
                        break
                    except NotYet:
                        if permit.turn is not None:
                            raise
                    access.wait(ticket, changes)
            except BaseException:
                access.leave(ticket)
                raise
        except Refused as refusal:
            if not self._shadowed(permit, refusal.decision):
                raise
            return
        self._begin(permit, ticket)

    def _shadowed(self, permit: Permit, found: Decision) -> bool:
        """Tell who watches of a refusal; whether the call is made all the same, in the shadow."""
        self._observer.refused(permit.tool, found.code)
        if not self._access.shadows(found):
            return False
        permit.shadow(str(found.code))
        return True

    async def enter_in_task(self, permit: Permit) -> None:
        """The same, of a task; the disk is waited for in another thread."""
        try:
            ticket = await self._enter_in_task(permit)
        except Refused as refusal:
            if not self._shadowed(permit, refusal.decision):
                raise
            return
        self._begin(permit, ticket)

    async def _enter_in_task(self, permit: Permit) -> Ticket:
        access = self._access
        ticket = permit.turn or await access.enter_in_task(permit.tool)
        try:
            while True:
                changes = access.turns.changes
                try:
                    counting = await self._count_in_task(permit)
                    self._admit_in_task(permit, ticket, counting)
                    break
                except NotYet:
                    if permit.turn is not None:
                        raise
                await access.wait_in_task(ticket, changes)
            await self.sync_in_task()
        except BaseException as error:
            if ticket in access.pending:
                self.settle(ticket, "unknown", sync=False)
                with access.lock:
                    access.pending.discard(ticket)
            access.leave(ticket)
            if isinstance(error, LedgerError):
                access.broken(error, permit.tool)
            raise
        return ticket

    def _begin(self, permit: Permit, ticket: Ticket) -> None:
        """Tell who watches; whatever that raises, the turn is not kept."""
        access = self._access
        try:
            ticket.watched = self._observer.began(permit.tool, ticket.seq)
            if access.overlaps:
                access.pass_on(ticket)
        except BaseException:
            permit.__exit__(None, None, None)
            raise

    async def _count_in_task(self, permit: Permit) -> Counting | None:
        """Counts a call across sessions, without keeping other tasks waiting."""
        access = self._access
        if access.across is None:
            return None
        with access.lock:
            found, _ = admitted(access, permit)
        work = asyncio.ensure_future(asyncio.to_thread(counted, access, found))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            across, follower = access.across, access.follower
            work.add_done_callback(lambda done: across.forget_later(follower, done))
            raise

    def _admit_in_task(self, permit: Permit, ticket: Ticket, counting: Counting | None) -> None:
        access = self._access
        try:
            with access.lock:
                admit(access, permit, ticket, sync=False, counting=counting)
        except BaseException:
            if counting is not None and access.across is not None:
                access.across.forget(access.follower, counting)
            raise

    def settle(
        self,
        ticket: Ticket,
        outcome: Outcome,
        result: object = None,
        observed: ToolAnswer | Mapping[str, Any] | None = None,
        reason: str = "",
        told: Took | None = None,
        *,
        sync: bool,
        read: bool = False,
    ) -> tuple[Outcome, bool]:
        """The outcome of that turn's call: as it is kept, and whether it was unforeseen.

        The answer of a call that is done decides whether it failed, whoever reports it.  Observed
        values that are no :class:`ToolAnswer` are the owner's word, and nothing else is looked at.
        An outcome that cannot be written is unknown, whatever it was.  Where the account cannot be
        told what the call took, it is written all the same, and nothing is allowed any more.

        Args:
            told: what a call of a model took.
            sync: whether the disk is waited for, where the outcome has to be there.
            read: of one that failed: with an error that whoever made it has read.

        Raises:
            SettingsError: an atom is told where none are counted; an error that was read is told of
                a tool whose errors do not mean failure.
            OverError: it is over, or was told already; nothing is told of another call.
        """
        access = self._access
        with access.lock:
            session, follower = access.session, access.follower
            if ticket not in access.pending or ticket.seq not in session.under_way:
                raise OverError("the call is over, or its outcome was told already")
            seq = ticket.seq
            made = session.made[seq - 1]
            tool = session.policy.core.tools[made.offer.tool]
            if outcome == "done" and (observed is None or isinstance(observed, ToolAnswer)):
                found = answer_of(result) if observed is None else observed
                outcome, why = outcome_of(tool, found)
                reason, read, observed = why or reason, outcome == "failed", found.value
            if read and not tool.errors_failed:
                raise SettingsError("answered", "a tool whose errors mean failed", tool.name)
            result = result if outcome == "done" else None
            now = access.clock()
            ms = max(0, now - ticket.began)
            executions, took = follower.executions, None
            if executions is not None and executions.pending is not None:
                took = executions.took(None if told is None else told.answer, ms)
            # The disk has the amounts that a model took, and a failure that gives a draw back,
            # before anybody continues.
            waits = took is not None or (
                outcome == "failed" and not read and made.drawn is not None
            )
            ticket.waits = waits and not sync
            answers = NO_ANSWERS
            if outcome == "done" and tool.answers:
                answers = follower.values.answers(made.offer.tool, observed)
            at_ms = session.at(now) if session.policy.timed else None
            drawn = None if took is None else _drawn_on(access, took)
            recorded, lacks = outcome, answers.lacks_one
            trouble = access.put(
                lambda: outcome_parts(
                    seq,
                    recorded,
                    ms,
                    answers=answers,
                    at_ms=at_ms,
                    result=None if result is None else follower.writer.result(result),
                    took=drawn,
                    read=read,
                ),
                sync=sync and waits,
            )
            if trouble is not None:
                outcome, lacks = "unknown", False
                if seq in session.under_way:
                    session.leave_unknown(seq)
            else:
                if executions is not None and took is not None:
                    executions.settle(took, outcome == "done")
                session.note_time(at_ms)
                known = (ANSWERED if read else FAILED) if outcome == "failed" else outcome
                session.settle(seq, known, answers.states, lacks)
                follower.values.keep()
                access.followed()
                follower.returned(seq)
                if sync and access.across is not None:
                    access.give_back()
                lacks = lacks or session.course.lost
            ticket.outcome = outcome, reason, lacks
        if access.turns.passed:
            access.turns.changed()
        return outcome, lacks

    def leave(self, ticket: Ticket) -> None:
        """The call is over."""
        if self._access.leave(ticket):
            self._observer.ended(ticket)

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Waits for the disk where the outcome that was told last has to be there.

        Raises:
            LedgerError: the system refuses.
        """
        if ticket in self._access.pending and ticket.waits:
            ticket.waits = False
            await self.sync_in_task()
            if self._access.follower.returns:
                await asyncio.to_thread(self._access.give_back)

    async def sync_in_task(self) -> None:
        """Waits for the disk, without keeping other tasks waiting.

        Raises:
            LedgerError: the system refuses.
        """
        if self._access.durable and isinstance(self._access.journal, InFile):
            await asyncio.to_thread(self._access.sync)

    def fail(self, error: LedgerError) -> None:
        """From here on nothing is allowed."""
        self._access.fail(error)


def _drawn_on(access: Access, took: SpentAmounts) -> Mapping[str, Json] | None:
    """What the record of an outcome says of what a model took; the account is told."""
    executions, left = access.follower.executions, None
    if executions is None:
        return None
    try:
        left = executions.draw(took)
    except Rejected as error:
        access.fail_after(error)
    return executions.took_fields(took, left)


class Observer:
    """Tells programs that watch of one session: log records under ``tcc``, and spans.

    Spans are made where the application has imported OpenTelemetry's API; nothing is imported for
    them here.  A call's span is named and marked as the conventions for tools have it
    (``execute_tool``), it is the current one inside of the block, and one that was refused has none
    but a log record.  No argument, result or id of the caller's is told.

    Args:
        session_id: of its ledger.
        grammar: its name.
    """

    __slots__ = ("_api", "_session", "_tracer", "session_id")

    def __init__(self, session_id: str, grammar: str) -> None:
        self.session_id = session_id
        self._api: Any = sys.modules.get(_API)
        self._tracer: Any = None if self._api is None else self._api.get_tracer("tcc")
        self._session: Any = None
        if self._tracer is not None:
            marks = {"tcc.session.id": session_id, "tcc.grammar": grammar}
            self._session = self._tracer.start_span("tcc.session", attributes=marks)
        _log.debug("session %s of %s", session_id, grammar)

    def began(self, tool: str, seq: int) -> Any:
        """A call may be made; what to hand to :meth:`ended`, None where nobody watches."""
        watched = None
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("session %s: call %d, %s", self.session_id, seq, tool)
            watched = _LOGGED
        if self._tracer is None:
            return watched
        marks = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "tcc.session.id": self.session_id,
            "tcc.call.seq": seq,
        }
        link = [self._api.Link(self._session.get_span_context())]
        span = self._tracer.start_span(f"execute_tool {tool}", attributes=marks, links=link)
        inside = self._api.use_span(span, end_on_exit=False, record_exception=False)
        inside.__enter__()
        return span, inside

    def ended(self, call: Ticket) -> None:
        """The block of a call is left: told where its start was, or where something is amiss."""
        outcome, reason, unforeseen = call.outcome
        if call.watched is None and outcome != "unknown" and not unforeseen:
            return
        level = logging.WARNING if outcome == "unknown" or unforeseen else logging.DEBUG
        if _log.isEnabledFor(level):
            came = f"{outcome}, unforeseen" if unforeseen else outcome
            said = f" ({clip(reason, 200)})" if reason else ""
            _log.log(level, "session %s: call %d is %s%s", self.session_id, call.seq, came, said)
        if call.watched is None or call.watched is _LOGGED:
            return
        came = f"{outcome}, unforeseen" if unforeseen else outcome
        span, inside = call.watched
        call.watched = None  # whoever was started inside of the block keeps its turn in mind
        span.set_attribute("tcc.call.outcome", outcome)
        if outcome != "done" or unforeseen:
            span.set_status(self._api.StatusCode.ERROR, came)
        inside.__exit__(None, None, None)
        span.end()

    def refused(self, tool: object, code: Code | None) -> None:
        """A call or an end is not allowed."""
        name = clip(tool, 80) if isinstance(tool, str) else type(tool).__name__
        level = logging.ERROR if code is Code.NOT_WRITTEN else logging.INFO
        _log.log(level, "session %s: %s refused, %s", self.session_id, name or "end", code)
        if self._session is not None:
            self._session.add_event("tcc.refused", {"tcc.refusal.code": str(code)})

    def resolved(self, seq: int, outcome: str) -> None:
        """An unknown outcome is known."""
        _log.debug("session %s: call %d was %s", self.session_id, seq, outcome)

    def closed(self, ending: str) -> None:
        """The session has ended, or this gate lets go of it."""
        _log.debug("session %s: %s", self.session_id, ending)
        if self._session is not None:
            self._session.set_attribute("tcc.session.ending", ending)
            self._session.end()
            self._session = self._tracer = None
