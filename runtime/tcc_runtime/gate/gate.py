"""The gate: an agent proposes one call at a time, and what the grammar does not allow is not made.

Text: docs/gate.md, docs/budgets.md; what it writes: docs/spec/session.md.  Everything that is not
foreseen is a refusal.  The record of a call is on disk before the call is permitted; an outcome
that cannot be written is unknown, and then nothing further is allowed.
Cost: a decision a few look-ups, whatever was called before; with a durable ledger one fdatasync a
call.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from tcc_certs.core.atoms import Atom
from tcc_certs.errors import Code, clip
from tcc_certs.formats.codec import Json
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.machine import Observed, Outcome
from tcc_certs.session.records import open_name
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import Across, Counting, across_of
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.budget import adapters_in, atoms_in, budget_of
from tcc_runtime.gate.delegation import Above, require_proof
from tcc_runtime.gate.inspection import Inspection
from tcc_runtime.gate.journal import InFile, InMemory, now_ms
from tcc_runtime.gate.keys import given_key, given_nonce
from tcc_runtime.gate.permit import NotYet, OverError, Permit, Ticket, Took
from tcc_runtime.gate.policy import Policy, policy_of, read_given
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session import lacks_one, observed_texts, outcome_parts
from tcc_runtime.gate.shared import (
    Begun,
    Home,
    Rolled,
    Shared,
    admit,
    admitted,
    begin_budget,
    counted,
    drawn_on,
    finish,
    note_search,
    refuse,
    resolution,
    resolve,
)
from tcc_runtime.gate.wrapping import as_told, wrap
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.drawing import Drawing
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.settings.settings import Settings

# The budget.


class Budgeted(Inspection):
    """The part of a gate that has to do with models that make calls."""

    def budget(
        self,
        *,
        atoms: Sequence[Atom] = (),
        adapters: Iterable[Adapter] | None = None,
        account: Account | None = None,
        **caps: Any,
    ) -> bool:
        """From here on the calls of tools with models that execute are made by one of them.

        Args:
            atoms: what privatised the input before the session.
            adapters: that models may run with, from a registry; None says nothing of any.
            account: that calls draw on, as other sessions and runs do.
            caps: `price_cap`, `sla_ms`, `epsilon_cap`, the weights, `margin` and `delta`, as of
                :func:`tcc.search`.

        Returns:
            whether it is new; a session that was taken up has the one that it began with.

        Raises:
            ResumeError: the session has another one.
            SettingsError: a setting is out of its range.
            Rejected: A102 a model names an adapter that is not among them.
            Refused: R303, R305, R306.
        """
        drawn_on = None if account is None else (account.id, account.caps)
        found = budget_of(self._policy.core, caps, atoms, adapters, drawn_on)
        shared = self._shared
        if shared.follower.parent is not None:
            raise SettingsError("parent", "the budget of the parent's gate", "one of the child's")
        ticket = shared.enter_alone()
        try:
            with shared.lock:
                return begin_budget(shared, found, account)
        finally:
            shared.leave(ticket)

    @property
    def spent(self) -> SpentAmounts | None:
        """What asks and calls of models have taken; None where there is no budget."""
        self._looked_at()
        executions = self._shared.follower.executions
        return None if executions is None else executions.spent

    @property
    def budget_left(self) -> Mapping[str, Any]:
        """The remainder of each cap, as texts; empty where there is none."""
        self._looked_at()
        executions = self._shared.follower.executions
        return {} if executions is None else executions.left()

    @property
    def limits(self) -> Mapping[str, Any]:
        """The settings of searches that follow from the budget; none where there is none."""
        executions = self._shared.follower.executions
        return {} if executions is None else executions.budget.limits

    def plan(
        self,
        *,
        seed: bytes | None = None,
        quoter: Quoter | None = None,
        atoms: Sequence[Mapping[str, Any] | Atom] = (),
        adapters: str | Path | Iterable[Adapter] | None = None,
        **settings: Any,
    ) -> Run:
        """The best ways on from here, certified (see :func:`tcc.search`); nothing is called.

        In a session with a budget its asks are held to the remainder of that, and counted.

        Args:
            seed: 32 bytes; None draws one.
            quoter, atoms, adapters, settings: as of :func:`tcc.search`; ``after`` is the session's,
                and in a session with a budget the caps, `delta` and `atoms` are those of that.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
            SettingsError: a setting is out of its range.
            Rejected: A101 to A107, of the registry; E101 to E104, of atoms.
        """
        from tcc_runtime.search import search

        texts = self.word()
        drawn = os.urandom(32) if seed is None else seed
        told: dict[str, Any] = {"atoms": atoms_in(atoms), **settings}
        spent = self.spent
        if not self.artifact.fixed_costs:
            told |= self.limits
        run = search(
            self.artifact,
            Settings(seed=drawn, after=texts, **told),
            quoter=quoter,
            adapters=adapters_in(adapters),
            spent=spent,
            drawing=self.drawing(),
        )
        self.searched(run, spent)
        return run

    def drawing(self) -> Drawing | None:
        """Draws on the account for the asks of the next search; None: there is none."""
        executions = self._shared.follower.executions
        return None if executions is None else executions.drawing()

    def searched(self, run: Run, before: SpentAmounts | None) -> None:
        """Notes what the asks of a search took, where there is a budget and they took anything.

        Args:
            before: what was spent when it began, and is in what the run has spent.

        Raises:
            Refused: R303, R305, R306.
        """
        if run.spent is None or self._shared.follower.executions is None:
            return
        then = SpentAmounts() if before is None else before
        took = SpentAmounts(
            price=run.spent.price - then.price,
            latency=run.spent.latency - then.latency,
            epsilon=run.spent.epsilon - then.epsilon,
        )
        if took == SpentAmounts() and not run.atoms:
            return
        shared = self._shared
        ticket = shared.enter_alone()
        try:
            with shared.lock:
                note_search(shared, took, run.atoms)
        finally:
            shared.leave(ticket)


SESSION: Final = "session"  # before the name of an attribute
_log: Final = logging.getLogger("tcc.gate")
_API: Final = "opentelemetry.trace"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_LOGGED: Final = "logged"  # of a call that was told of in the log alone


# What a gate is opened with.


def opened(artifact: Artifact | str | Path, checked: str | None) -> Artifact:
    """The artifact, or that in a file, checked.

    Raises:
        Rejected: it is refused.
        SettingsError: its certificates were never checked.
    """
    found = artifact if isinstance(artifact, Artifact) else load(Path(artifact), checked=checked)
    if not found.verified:
        raise SettingsError("artifact", "one whose certificates were checked", "verify=False")
    return found


def shown_of(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """The open parameters that are shown, sorted; those that are added up among them.

    Raises:
        SettingsError: one is none of the artifact's.
    """
    tools = policy.core.tools
    known = {
        open_name(tool.name, given.name)
        for tool in tools
        for given in (*tool.opened, *tool.answers)
    }
    attributes = {open_name(SESSION, given.name) for given in policy.core.given}
    foreign = sorted(set(show) - known - attributes)
    if foreign:
        raise SettingsError("show", "open parameters and answers as tool.name", foreign[0])
    show = sorted(set(show) & known)
    added = policy.machine.monitors.added.items()
    expected = {open_name(tools[tool].name, name) for tool, names in added for name in names}
    if policy.machine.statements is not None:
        compared = policy.machine.statements.shown
        expected |= {open_name(tools[tool].name, name) for tool, name in compared}
    return tuple(sorted({*show, *expected}))


def begun_with(policy: Policy, given: object, show: Sequence[str]) -> Begun:
    """What a session is given, where somebody says so: numbers that statements name are shown.

    Args:
        given: JSON values by name; None: nobody says.
        show: as of :func:`shown_of`, attributes as ``session.NAME``.

    Raises:
        GivenRefused: R102, R103, R105, R106.
    """
    told = dict(given) if isinstance(given, Mapping) else given
    values = None if told is None else read_given(policy.core.given, told)
    statements = policy.machine.statements
    forms = {} if statements is None else statements.ledger.session
    said = frozenset() if statements is None else statements.said
    named = said | {name for name, form in forms.items() if form.shown}
    asked = {one.name for one in policy.core.given if open_name(SESSION, one.name) in show}
    return Begun(values=values, shown=named | asked)


# The gate.


class Gate(Budgeted):
    """Holds one session of an agent to an artifact.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`, or the path of one, whose
            certificates are then checked.
        ledger: the record of the session; one that is there is taken up.  None keeps the session
            in memory, of this process alone.
        checked: as of :func:`tcc.load`, where `artifact` is a path.
        key: of the digests of values, 32 bytes; None keeps one in a file beside the ledger.
        show: open parameters, as ``tool.parameter``, whose values stand in the ledger as they are.
            Those that a monitor adds up always do; attributes of the session as ``session.NAME``.
        durable: wait for the disk before a call is permitted; its outcome is on the disk with the
            next call, or within 100 ms.  Without it nothing is waited for, the key beside the
            ledger included.
        clock: UTC milliseconds since 1970.
        nonce: of a new session, 16 bytes; None draws one.  Sessions of one key that begin in
            one millisecond differ by it, and so do the idempotency keys of their calls.
        wait: whether the ledger is waited for while another process has its lock.
        given: what the session is given, JSON values by name.  Of one that is taken up it has to
            be the same; None takes what its ledger says, and of a new one that it is given nothing.
        rolls: a ledger of a session that has ended is kept as its name with the session's id
            behind it, and a new session is begun; False refuses it.
        home: of :class:`tcc_runtime.gate.store.Sessions`, for the ledgers of a store.
        shadow: nothing that the grammar forbids is refused: it is recorded as refused, and the
            block of the call is entered, with a permit whose `shadowed` is the code.  Such a
            session shows nothing, and counts such calls as not made.
        account: that calls are counted in, where the grammar has limits across sessions.
        parent: another gate: each call of this session is one of the parent's session, too, and is
            decided by both (docs/gate.md).  The key is the parent's.
        proof: that every session of this artifact is one of the parent's, by
            ``tcc prove CHILD --implies PARENT -o PROOF``: the file, or its bytes.

    Raises:
        ResumeError: the ledger is another artifact's or key's, has ended, or was changed; it is a
            session of another parent, of none, or of one that has not its calls; the session was
            given something else.
        GivenRefused: what is given is not what the grammar declares: R102, R103, R105, R106.
        Rejected: the artifact is refused; L1xx: the ledger's lines are no chain; Txxx, Dxxx: there
            is a parent, and no proof that holds.
        LedgerError: the ledger cannot be read or written; its cause is a `BlockingIOError` where
            it is not waited for.
        SettingsError: an argument is out of its range.
    """

    def __init__(
        self,
        artifact: Artifact | str | Path,
        *,
        ledger: str | Path | None = None,
        checked: str | None = None,
        key: bytes | None = None,
        show: Sequence[str] = (),
        durable: bool = True,
        clock: Callable[[], int] | None = None,
        nonce: bytes | None = None,
        wait: bool = True,
        rolls: bool = False,
        home: Home | None = None,
        shadow: bool = False,
        parent: Gate | None = None,
        proof: bytes | str | Path | None = None,
        given: Mapping[str, Any] | None = None,
        account: Account | None = None,
    ) -> None:
        policy = policy_of(opened(artifact, checked))
        shown = shown_of(policy, show)
        begun = begun_with(policy, given, show)
        kept = home or Home(rolls=rolls, shadow=shadow)
        across = across_of(policy.core, account, kept.recorded)
        if parent is not None:
            require_proof(proof, policy.artifact, parent.artifact)
            _ensure_counted_once(across, parent)
            if kept.shadow or parent._shared.follower.shadow:
                raise SettingsError("parent", "sessions that are not in the shadow", "one that is")
            if key not in (None, parent._shared.follower.key):
                raise SettingsError("key", "the key of the parent's session, or none", "another")
            key, kept = parent._shared.follower.key, replace(kept, parent=parent.session_id)
        elif proof is not None:
            raise SettingsError("proof", "a parent, whose sessions the proof is about", "none")
        self._above = None if parent is None else Above(parent, parent._shared)
        shared = None
        while shared is None:
            with suppress(Rolled):
                shared = Shared(
                    policy,
                    InMemory()
                    if ledger is None or not kept.recorded
                    else InFile(Path(ledger), durable=durable, private=kept.private),
                    key=given_key(key),
                    shown=shown,
                    durable=durable,
                    clock=now_ms if clock is None else clock,
                    nonce=given_nonce(nonce),
                    wait=wait,
                    home=kept,
                    given=begun,
                    across=across,
                )
        super().__init__(policy, shared)
        grammar = policy.artifact.manifest.grammar
        self._observer = Observer(shared.follower.session_id, grammar)
        if shared.session.ended:
            self.close()
            line = f"line {shared.journal.records}"
            raise ResumeError(line, "a session that goes on", "its end")
        if show and shared.follower.shown != shown:
            self.close()
            raise ResumeError("line 1: arguments", list(shown), list(shared.follower.shown))
        if self._above is not None:
            try:
                self._above.require_calls(shared.follower)
            except BaseException:
                self.close()
                raise

    @property
    def session_id(self) -> str:
        """The UUID of the session."""
        return self._shared.follower.session_id

    @property
    def principal(self) -> str | None:
        """Whose session it is, as its ledger names a principal; None: nobody's in particular."""
        return self._shared.follower.principal

    @property
    def shadow(self) -> bool:
        """Whether calls that are refused are made all the same."""
        return self._shared.home.shadow

    @property
    def ended(self) -> bool:
        """Whether the session has ended, as its ledger has it now."""
        self._looked_at()
        return self._shared.session.ended

    @property
    def untouched(self) -> bool:
        """Whether this gate began the session, and nothing but its start is recorded."""
        return self._shared.untouched

    def try_turn(self) -> Ticket | None:
        """The turn and the ledger's lock, where nobody has them now; None else: nothing waits.

        For a caller that has other things to do than to wait.  What it is handed to (:meth:`call`,
        :meth:`resolve`, :meth:`finish`) gives it back, :meth:`give_back` does where it is not used.

        Raises:
            Refused: R306.
        """
        ticket = self._shared.try_enter("")
        if ticket is None or self._above is None:
            return ticket
        try:
            if self._above.try_turn(ticket):
                return ticket
        except BaseException:
            self._shared.leave(ticket)
            raise
        self._shared.leave(ticket)
        return None

    def stop_waiting(self) -> None:
        """A turn that :meth:`try_turn` did not have is not wanted any more.

        Until then another process that has the ledger begins no call beside those under way.
        """
        self._shared.stop_waiting()

    def give_back(self, turn: Ticket) -> None:
        """Gives back a turn of :meth:`try_turn` that was not used."""
        if self._above is not None:
            self._above.give_back(turn)
        self._shared.leave(turn)

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now, by the parent too where there is one.

        A call that is under way counts as unknown.
        """
        found = super().check(tool, arguments)
        above = self._above if found.allowed else None
        return found if above is None else above.gate.check(tool, arguments)

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
            arguments: JSON values by name.
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
        given = {} if arguments is None else arguments
        return Permit(self, tool, given, ref, takes_model, turn)

    def refuse(self, code: Code, tool: str, reason: str, *, turn: Ticket | None = None) -> NoReturn:
        """Records the refusal of a call for a reason outside of the grammar.

        Args:
            code: R307 or R308.
            reason: for whoever asked; it is not in the ledger.
            turn: of :meth:`try_turn`; None waits for it.

        Raises:
            Refused: always.
        """
        shared = self._shared
        ticket = shared.enter("") if turn is None else turn
        try:
            with shared.lock:
                refusal = refuse(shared, code, tool, reason)
        finally:
            self.give_back(ticket)
        self._observer.refused(tool, code)
        raise refusal

    def wrap(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        injected: Sequence[str] = (),
        observe: Callable[[Any], Mapping[str, object]] | None = None,
        refused: Callable[[Refused], Any] | None = None,
    ) -> Callable[..., Any]:
        """The same function, run only where this gate lets the call through.

        Args and errors: as of :func:`tcc_runtime.gate.wrapping.wrap`.
        """
        return wrap(self, function, name=name, injected=injected, observe=observe, refused=refused)

    def resolve(
        self,
        seq: int,
        outcome: Outcome,
        observed: Mapping[str, Any] | None = None,
        *,
        turn: Ticket | None = None,
        who: str | None = None,
    ) -> None:
        """What a call whose outcome is unknown turned out to be; the owner's word.

        Args:
            seq: its number.
            outcome: ``done`` or ``failed``.
            observed: its observed values, where it is done and has any.
            turn: of :meth:`try_turn`; None waits for it.
            who: says so, 1 to 255 characters; the ledger has it, and when.

        Raises:
            ValueError: there is no such unknown call, or no such outcome or value; `who` is no
                name; or validators would decline the ledger, as so many calls lie behind outcomes
                that came late.
            Refused: R303, R305 or R306.
        """
        shared = self._shared
        inside = False
        if turn is None:
            with shared.lock:
                # A call of this process that is under way has the lock of the file, and keeps it.
                inside = bool(shared.pending)
                if inside:
                    try:
                        self._resolve(seq, outcome, observed, who)
                    finally:
                        shared.turns.changed()
        if not inside:
            ticket = shared.enter("") if turn is None else turn
            try:
                self._give_back_above(ticket)
                with shared.lock:
                    self._resolve(seq, outcome, observed, who)
            finally:
                self.give_back(ticket)
        self._observer.resolved(seq, outcome)

    def _resolve(
        self, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None, who: str | None
    ) -> None:
        """The parent first: what is broken off between both can be said again."""
        if self._above is not None:
            resolution(self._shared, seq, outcome, observed, who)  # may it be said at all?
            session_id = self._shared.follower.session_id
            self._above.resolve(session_id, seq, outcome, observed, who)
        resolve(self._shared, seq, outcome, observed, who)

    def _give_back_above(self, ticket: Ticket) -> None:
        """The parent's turn of a :meth:`try_turn` that is not used for a call."""
        if self._above is not None:
            self._above.give_back(ticket)

    def finish(self, *, abandon: bool = False, turn: Ticket | None = None) -> None:
        """End the session; `abandon` ends it where no plan does.

        Args:
            turn: of :meth:`try_turn`; None waits for it, until nothing is under way.

        Raises:
            NotYet: with `turn`: a call is under way.
            Refused: R204 no plan ends here; R303, R305, R306, R308.
        """
        shared = self._shared
        try:
            ticket = shared.enter_alone() if turn is None else turn
            try:
                with shared.lock:
                    if shared.pending:
                        raise NotYet
                    finish(shared, abandon)
            finally:
                self.give_back(ticket)
        except Refused as refusal:
            self._observer.refused("", refusal.decision.code)
            raise
        self._observer.closed("abandoned" if abandon else "ended")

    def close(self) -> None:
        """Lets go of the ledger; the session can be taken up again."""
        shared = self._shared
        with shared.lock:
            shared.fail(LedgerError("ledger", OSError(0, "the gate is closed")))
            shared.journal.close()
        self._observer.closed("let go")

    def withdraw(self) -> bool:
        """Lets go of the ledger, and takes back a start that came to nothing.

        Where this gate began the session, nothing else was recorded and nobody was told its head,
        the ledger goes, and the key that was made for it; else all stays.

        Returns:
            whether it was taken back.
        """
        gone = not self._told and self._shared.withdraw()
        self.close()
        return gone

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gate is one session's: open another one on its ledger")

    # How a permit is had and given back (see :class:`tcc_runtime.gate.permit.Door`).

    def enter(self, permit: Permit) -> None:
        """Waits for the turn, decides and records; of a thread."""
        shared, above = self._shared, self._above
        chosen = None if above is None else above.model
        try:
            ticket = permit.turn or shared.enter(permit.tool)
            try:
                while True:
                    changes = shared.turns.changes
                    try:
                        if above is not None:
                            self._reserve(above, permit, ticket).__enter__()
                        with shared.lock:
                            admit(shared, permit, ticket, sync=True, chosen=chosen)
                        break
                    except NotYet:
                        if permit.turn is not None:
                            raise
                    self._leave_above(ticket, made=False)
                    shared.wait(ticket, changes)
            except BaseException:
                self._leave_above(ticket, made=False)
                shared.leave(ticket)
                raise
        except Refused as refusal:
            if not self._shadowed(permit, refusal.decision):
                raise
            return
        self._begin(permit, ticket)

    def _shadowed(self, permit: Permit, found: Decision) -> bool:
        """Tell who watches of a refusal; whether the call is made all the same, in the shadow."""
        self._observer.refused(permit.tool, found.code)
        if not self._shared.shadows(found):
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
        shared = self._shared
        ticket = permit.turn or await shared.enter_in_task(permit.tool)
        try:
            while True:
                changes = shared.turns.changes
                try:
                    if self._above is not None:
                        await self._reserve(self._above, permit, ticket).__aenter__()
                    counting = await self._count_in_task(permit)
                    await self._admit_in_task(permit, ticket, counting)
                    break
                except NotYet:
                    if permit.turn is not None:
                        raise
                self._leave_above(ticket, made=False)
                await shared.wait_in_task(ticket, changes)
            await self.sync_in_task()
        except BaseException as error:
            if ticket in shared.pending:
                self.settle(ticket, "unknown", sync=False)
                with shared.lock:
                    shared.pending.discard(ticket)
            self._leave_above(ticket, made=False)
            shared.leave(ticket)
            if isinstance(error, LedgerError):
                shared.broken(error, permit.tool)
            raise
        return ticket

    def _begin(self, permit: Permit, ticket: Ticket) -> None:
        """Tell who watches; whatever that raises, the turn is not kept."""
        shared = self._shared
        try:
            ticket.watched = self._observer.began(permit.tool, ticket.seq)
            if shared.overlaps:
                shared.pass_on(ticket)
        except BaseException:
            permit.__exit__(None, None, None)
            raise

    def _reserve(self, above: Above, permit: Permit, ticket: Ticket) -> Permit:
        """The parent's permit for a call that this gate lets through; it is to be entered.

        Nobody has a lock of this session while the parent is waited for: calls under way end.
        """
        shared = self._shared
        with shared.lock:
            admitted(shared, permit)
            return above.permit(shared.follower, ticket, permit)

    def _leave_above(self, ticket: Ticket, *, made: bool = True) -> None:
        if self._above is not None:
            self._above.leave(ticket, made=made)

    async def _count_in_task(self, permit: Permit) -> Counting | None:
        """Counts a call across sessions, without keeping other tasks waiting."""
        shared = self._shared
        if shared.across is None:
            return None
        with shared.lock:
            found, _ = admitted(shared, permit)
        work = asyncio.ensure_future(asyncio.to_thread(counted, shared, found))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            across, follower = shared.across, shared.follower
            work.add_done_callback(lambda done: across.forget_later(follower, done))
            raise

    async def _admit_in_task(
        self, permit: Permit, ticket: Ticket, counting: Counting | None
    ) -> None:
        shared, above = self._shared, self._above
        chosen = None if above is None else above.model
        try:
            with shared.lock:
                admit(shared, permit, ticket, sync=False, counting=counting, chosen=chosen)
        except BaseException:
            if counting is not None and shared.across is not None:
                shared.across.forget(shared.follower, counting)
            raise

    def settle(
        self,
        ticket: Ticket,
        outcome: Outcome,
        result: object = None,
        observed: Mapping[str, Any] | None = None,
        reason: str = "",
        told: Took | None = None,
        *,
        sync: bool,
        read: bool = False,
    ) -> tuple[Outcome, bool]:
        """The outcome of that turn's call: as it is kept, and whether it was unforeseen.

        A call that is done has failed if what came back is a text that says an error, whoever
        tells it: else the grammar's pattern would hold for those alone who read texts themselves.
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
        shared, parent = self._shared, self._above
        with shared.lock:
            session, follower = shared.session, shared.follower
            if ticket not in shared.pending or ticket.seq not in session.under_way:
                raise OverError("the call is over, or its outcome was told already")
            seq = ticket.seq
            made = session.made[seq - 1]
            table = session.policy.table(made.offer.tool)
            if outcome == "done" and observed is None and isinstance(result, str):
                outcome, reason, read = as_told(table.tool, result, reason)
                result = result if outcome == "done" else None
            if read and not table.tool.errors_failed:
                raise SettingsError("answered", "a tool whose errors mean failed", table.tool.name)
            above = parent is not None and parent.settle(
                ticket, outcome, result, observed, reason, told, read
            )
            ms = shared.clock() - ticket.began
            ms = ms if ms > 0 else 0
            executions, took = follower.executions, None
            if executions is not None and executions.pending is not None:
                took = executions.took(None if told is None else told.answer, ms)
            # What a model took, and an account was told, is on the disk before anybody goes on; and
            # that a call failed, before it counts no more.
            waits = took is not None or (
                outcome == "failed" and not read and made.drawn is not None
            )
            ticket.waits = waits and not sync
            indices: Observed | None = None
            answers: Mapping[str, Json] = _NOTHING
            texts: Mapping[str, Json] | None = None
            foreign = False
            if outcome == "done":
                answer, indices = result if observed is None else observed, ()
                if table.observed:
                    indices = table.observe(answer)
                    texts, foreign = observed_texts(table, indices), None in indices
                if table.answers:
                    answers = follower.writer.answers(table, answer)
            lacks = foreign or (bool(answers) and lacks_one(answers))
            states = _NOTHING if follower.reading is None else follower.told(made.offer, answers)
            parts = outcome_parts(
                seq,
                outcome,
                ms,
                observed=texts,
                unforeseen=foreign,
                result=None if result is None else follower.writer.result(result),
                took=None if took is None else drawn_on(shared, took),
                read=read,
                answers=answers,
            )
            if shared.put(parts, sync=sync and waits) is not None:
                outcome, lacks = "unknown", False
                if seq in session.under_way:
                    session.settle("unknown", None, False, seq=seq)
            else:
                if executions is not None and took is not None:
                    executions.settle(took, outcome == "done")
                session.settle(outcome, indices, lacks, read=read, seq=seq, told=states)
                shared.followed()
                if outcome == "failed":
                    follower.returned(seq, read)
                if sync and shared.across is not None:
                    shared.give_back()
                lacks = lacks or session.course.lost
            lacks = lacks or above
            ticket.outcome = outcome, reason, lacks
        if shared.turns.passed:
            shared.turns.changed()
        return outcome, lacks

    def leave(self, ticket: Ticket) -> None:
        """The call is over."""
        if self._above is not None:
            self._above.leave(ticket, made=True)
        if self._shared.leave(ticket):
            self._observer.ended(ticket)

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Waits for the disk where the outcome that was told last has to be there.

        Raises:
            LedgerError: the system refuses.
        """
        if self._above is not None:
            await self._above.outcome_in_task(ticket)
        if ticket in self._shared.pending and ticket.waits:
            ticket.waits = False
            await self.sync_in_task()
            if self._shared.follower.returns:
                await asyncio.to_thread(self._shared.give_back)

    async def sync_in_task(self) -> None:
        """Waits for the disk, without keeping other tasks waiting.

        Raises:
            LedgerError: the system refuses.
        """
        if self._shared.durable and isinstance(self._shared.journal, InFile):
            await asyncio.to_thread(self._shared.sync)

    def fail(self, error: LedgerError) -> None:
        """From here on nothing is allowed."""
        self._shared.fail(error)


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


def _ensure_counted_once(across: Across | None, parent: object) -> None:
    """A call of a child is one of its parent's: one account would count it twice.

    Raises:
        SettingsError: both count the same on one account.
    """
    while across is not None and isinstance(parent, Gate):
        above = parent._shared.across
        if above is not None and across.counts_with(above):
            expected = "another account than the parent's: it would count each call twice"
            raise SettingsError("account", expected, "the parent's")
        parent = None if parent._above is None else parent._above.gate
