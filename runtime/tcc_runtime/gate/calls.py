"""Calls of a gate: the turn, the decision, the record, the outcome, logs and spans.

The gate writes the record of a call before its block is entered.  If an outcome cannot be written,
it is unknown, and the gate allows no further call.
Text: docs/gate.md; docs/spec/session.md, sections 3 to 5.
Cost: a decision and two records; with a durable ledger one fdatasync a call.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.policy.history import ANSWERED, FAILED
from tcc_certs.replay.amounts import SpentAmounts
from tcc_runtime.account.windows import Counting
from tcc_runtime.errors import LedgerError, SettingsError
from tcc_runtime.gate.admission import admit, admitted, counted
from tcc_runtime.gate.answers import Outcome, ToolAnswer, answer_of, outcome_of
from tcc_runtime.gate.arguments import snapshot
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.inspection import Budgeted
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.permit import NotYet, OverError, Permit, Ticket, Took
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session.records import outcome_parts
from tcc_runtime.gate.session.values import NO_ANSWERS
from tcc_runtime.gate.session_access import Access

if TYPE_CHECKING:
    from tcc_runtime.gate.delegation import Above

_log: Final = logging.getLogger("tcc.gate")
_API: Final = "opentelemetry.trace"
_LOGGED: Final = "logged"  # the observer wrote a log record and no span


@contextmanager
def quiet() -> Iterator[None]:
    """Return a context manager; gates log nothing in its block.  For sessions that are simulated or
    replayed.
    """
    level = _log.level
    _log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _log.setLevel(level)


class GateCalls(Budgeted):
    """The part of a gate that makes calls (see :class:`tcc_runtime.gate.permit.Door`)."""

    _observer: Observer
    above: Above | None  # the parent's side of the calls of a delegated session

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ref: str | None = None,
        takes_model: bool | None = None,
        turn: Ticket | None = None,
    ) -> Permit:
        """Return a permit for one call, for ``with`` or ``async with``: its block makes the call.

        The gate decides the call when the block is entered.

        Args:
            tool: the name of the tool.
            arguments: JSON values by name.  The permit has a copy: make the call with
                `permit.arguments`, which the gate decides on and records.
            ref: the caller's own id of the call; the gate refuses a second call with the same id.
            takes_model: whether the function takes the name of the model that makes the call.
                True: its parameter `model` is required.  False: it has no such parameter.  None:
                either.
            turn: a turn of :meth:`try_turn`; None: the block waits for one.

        Raises:
            NotYet: at the start of a block with `turn`: the decision depends on the outcome of a
                call under way.  Try again after that outcome.
            Refused: at the start of the block: the call is not allowed, and was not made.
            Pending: at the start of the block: a person has to decide; the call was not made.
            AlreadyDone: at the start of the block: the session has a call with this id.
            BindingError: at the start of the block: a model would make the call, and the function
                does not take its name; or the other way round.  Nothing was recorded.
        """
        given = {} if arguments is None else snapshot(arguments, exact=True)
        return Permit(self, tool, given, ref, takes_model, turn)

    def ask(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Pending | None:
        """Ask a person about a call without making it; None: it needs no person.

        For frameworks that stop before a tool runs.  Waits for its turn.

        Raises:
            Refused: the call is not allowed.
        """
        pending = self._ask(tool, arguments)
        if pending is not None or self.above is None:
            return pending
        return self.above.gate.ask(tool, arguments)

    def _ask(self, tool: str, arguments: Mapping[str, Any] | None) -> Pending | None:
        access = self._access
        permit = self.call(tool, arguments)
        ticket = access.enter(tool)
        try:
            while True:
                changes = access.turns.changes
                try:
                    with access.lock:
                        admitted(access, permit, sync=True)
                    return None
                except NotYet:
                    access.wait(ticket, changes)
        except Pending as pending:
            self._observer.pending(tool, pending)
            return pending
        finally:
            access.leave(ticket)

    def try_turn(self) -> Ticket | None:
        """Take the turn and the ledger's lock if both are free now; else return None.

        For callers that must not wait.  Pass the turn to :meth:`call`, :meth:`resolve` or
        :meth:`finish`, which give it back; or give it back with :meth:`give_back`.

        Raises:
            Refused: R306.
        """
        ticket = self._access.try_enter("")
        if ticket is None or self.above is None:
            return ticket
        try:
            if self.above.try_turn(ticket):
                return ticket
        except BaseException:
            self._access.leave(ticket)
            raise
        self._access.leave(ticket)
        return None

    def stop_waiting(self) -> None:
        """Withdraw the wish for a turn after :meth:`try_turn` returned None.

        Until then, another process that has the ledger begins no further parallel call.
        """
        self._access.stop_waiting()
        if self.above is not None:
            self.above.gate.stop_waiting()

    def give_back(self, turn: Ticket) -> None:
        """Give back an unused turn of :meth:`try_turn`."""
        if self.above is not None:
            self.above.give_back(turn)
        self._access.leave(turn)

    def enter(self, permit: Permit) -> None:
        """See :class:`~tcc_runtime.gate.permit.Door`."""
        access, above = self._access, self.above
        try:
            ticket = permit.turn or access.enter(permit.tool)
            try:
                while True:
                    changes = access.turns.changes
                    try:
                        if above is not None:
                            self._reserve(above, permit, ticket, sync=True).__enter__()
                        with access.lock:
                            admit(access, permit, ticket, sync=True, above=above)
                        break
                    except NotYet:
                        if permit.turn is not None:
                            raise
                    self._leave_above(ticket)
                    access.wait(ticket, changes)
            except BaseException:
                self._leave_above(ticket)
                access.leave(ticket)
                raise
        except Pending as pending:
            self._observer.pending(permit.tool, pending)
            raise
        except Refused as refusal:
            if not self._shadowed(permit, refusal.decision):
                raise
            return
        self._begin(permit, ticket)

    def _shadowed(self, permit: Permit, found: Decision) -> bool:
        """Report a refusal to logs and spans; return whether the shadow session makes the call."""
        self._observer.refused(permit.tool, found.code)
        if not self._access.shadows(found):
            return False
        permit.shadow(str(found.code))
        return True

    async def enter_in_task(self, permit: Permit) -> None:
        """See :class:`~tcc_runtime.gate.permit.Door`; another thread waits for the disk."""
        try:
            ticket = await self._enter_in_task(permit)
        except Pending as pending:
            self._observer.pending(permit.tool, pending)
            raise
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
                    if self.above is not None:
                        await self._reserve(self.above, permit, ticket, sync=False).__aenter__()
                    counting = await self._count_in_task(permit)
                    self._admit_in_task(permit, ticket, counting)
                    break
                except Pending as pending:
                    if pending.is_new:
                        await self.sync_in_task()
                    raise
                except NotYet:
                    if permit.turn is not None:
                        raise
                self._leave_above(ticket)
                await access.wait_in_task(ticket, changes)
            await self.sync_in_task()
        except BaseException as error:
            if ticket in access.pending:
                self.settle(ticket, "unknown", sync=False)
                with access.lock:
                    access.pending.discard(ticket)
            self._leave_above(ticket)
            access.leave(ticket)
            if isinstance(error, LedgerError):
                access.broken(error, permit.tool)
            raise
        return ticket

    def _begin(self, permit: Permit, ticket: Ticket) -> None:
        """Report the start of a call to logs and spans; if that raises, leave the block."""
        access = self._access
        try:
            ticket.watched = self._observer.began(permit.tool, ticket.seq)
            if access.overlaps:
                access.pass_on(ticket)
        except BaseException:
            permit.__exit__(None, None, None)
            raise

    def _reserve(self, above: Above, permit: Permit, ticket: Ticket, *, sync: bool) -> Permit:
        """Return the parent's permit for a call that this gate allows; the caller enters it.

        The caller holds no lock of this session, so calls under way can end while the parent waits.
        """
        access = self._access
        with access.lock:
            admitted(access, permit, sync=sync)
        return above.permit(access.follower, ticket, permit)

    def _leave_above(self, ticket: Ticket) -> None:
        """End the parent's call, because this gate did not begin it."""
        if self.above is not None:
            self.above.leave(ticket, made=False)

    async def _count_in_task(self, permit: Permit) -> Counting | None:
        """Count a call across sessions in another thread, so that other tasks can run."""
        access = self._access
        if access.across is None:
            return None
        with access.lock:
            found, _ = admitted(access, permit, sync=False)
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
                admit(access, permit, ticket, sync=False, counting=counting, above=self.above)
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
        """Record the outcome of a call; return it, and whether a part of the answer is unknown.

        The answer of a call that is done decides whether it failed.  If the caller gives values in
        `observed`, the gate trusts them and does not read `result`.  An outcome that cannot be
        written is unknown.  If the account cannot record the cost of a call, the outcome is
        written, and the gate refuses all further calls.

        Args:
            told: the cost of a call of a model.
            sync: whether to wait for the disk, if the outcome has to be there.
            read: for a call that failed: whether the agent has read its error.

        Raises:
            SettingsError: an atom without a budget; `read` for a tool without `errors mean failed`.
            OverError: the call is over, or its outcome was reported before.
        """
        access, above = self._access, self.above
        with access.lock:
            session, follower = access.session, access.follower
            if ticket not in access.pending or ticket.seq not in session.under_way:
                raise OverError("the call is over, or its outcome was told already")
            seq = ticket.seq
            made = session.made.of(seq)
            tool = session.policy.core.tools[made.offer.tool]
            reported = outcome, result, observed, reason, told, read
            if outcome == "done" and (observed is None or isinstance(observed, ToolAnswer)):
                found = answer_of(result) if observed is None else observed
                outcome, why = outcome_of(tool, found)
                reason, read, observed = why or reason, outcome == "failed", found.value
            if read and not tool.errors_failed:
                raise SettingsError("answered", "a tool whose errors mean failed", tool.name)
            lacks_above = above is not None and above.settle(ticket, *reported)
            result = result if outcome == "done" else None
            now = access.clock()
            ms = max(0, now - ticket.began)
            executions, took = follower.executions, None
            if executions is not None and executions.pending is not None:
                took = executions.took(None if told is None else told.answer, ms)
            # Costs of a model, and a failure that gives a draw back, are on the disk before the
            # caller continues.
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
                lacks = lacks or lacks_above or session.course.lost
            ticket.outcome = outcome, reason, lacks
        if access.turns.passed:
            access.turns.changed()
        return outcome, lacks

    def leave(self, ticket: Ticket) -> None:
        """End a call: give the turn back, and report the end to logs and spans."""
        if self.above is not None:
            self.above.leave(ticket)
        if self._access.leave(ticket):
            self._observer.ended(ticket)

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Wait for the disk if the last outcome has to be there.

        Raises:
            LedgerError: the system cannot write.
        """
        if self.above is not None:
            await self.above.outcome_in_task(ticket)
        if ticket in self._access.pending and ticket.waits:
            ticket.waits = False
            await self.sync_in_task()
            if self._access.follower.returns:
                await asyncio.to_thread(self._access.give_back)

    async def sync_in_task(self) -> None:
        """Wait for the disk in another thread, so that other tasks can run.

        Raises:
            LedgerError: the system cannot write.
        """
        if self._access.durable and isinstance(self._access.journal, InFile):
            await asyncio.to_thread(self._access.sync)

    def fail(self, error: LedgerError) -> None:
        """Refuse all further calls, because of this error."""
        self._access.fail(error)


def _drawn_on(access: Access, took: SpentAmounts) -> Mapping[str, Json] | None:
    """Settle the cost of a call in the account; return the member `took` of its outcome.

    If the account fails, the gate refuses all further calls.
    """
    executions, left = access.follower.executions, None
    if executions is None:
        return None
    try:
        left = executions.draw(took)
    except Rejected as error:
        access.fail_after(error)
    return executions.took_fields(took, left)


class Observer:
    """Reports one session to programs that watch: log records under ``tcc``, and spans.

    It makes spans if the application has imported the API of OpenTelemetry.  The span of a call
    follows the conventions for tools (``execute_tool``) and is current inside the block.  A refused
    call has a log record and no span.  No argument, result or id of the caller is reported.

    Args:
        session_id: the id of the session.
        grammar: the name of its grammar.
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
        """Report the start of a call; return the state for :meth:`ended`, or None."""
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
        """Report the end of a call, if its start was reported or its outcome is unknown."""
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
        call.watched = None  # tasks that were started inside the block keep the ticket
        span.set_attribute("tcc.call.outcome", outcome)
        if outcome != "done" or unforeseen:
            span.set_status(self._api.StatusCode.ERROR, came)
        inside.__exit__(None, None, None)
        span.end()

    def refused(self, tool: object, code: Code | None) -> None:
        """Report the refusal of a call or of the end."""
        name = clip(tool, 80) if isinstance(tool, str) else type(tool).__name__
        level = logging.ERROR if code is Code.NOT_WRITTEN else logging.INFO
        _log.log(level, "session %s: %s refused, %s", self.session_id, name or "end", code)
        if self._session is not None:
            self._session.add_event("tcc.refused", {"tcc.refusal.code": str(code)})

    def pending(self, tool: str, found: Pending) -> None:
        """Report that a call waits for a person."""
        asked = "asked" if found.is_new else "waits for"
        _log.info("session %s: %s %s %r", self.session_id, clip(tool, 80), asked, found.who)
        if self._session is not None:
            self._session.add_event("tcc.pending", {"tcc.question.id": found.id})

    def decided(self, question_id: str, verdict: str) -> None:
        """Report the verdict of a person."""
        _log.info("session %s: question %s is %s", self.session_id, question_id, verdict)

    def resolved(self, seq: int, outcome: str) -> None:
        """Report that an unknown outcome became known."""
        _log.debug("session %s: call %d was %s", self.session_id, seq, outcome)

    def closed(self, ending: str) -> None:
        """Report that the session has ended, or that this gate has closed it."""
        _log.debug("session %s: %s", self.session_id, ending)
        if self._session is not None:
            self._session.set_attribute("tcc.session.ending", ending)
            self._session.end()
            self._session = self._tracer = None
