"""The gate: an agent proposes one call at a time, and what the grammar does not allow is not made.

Text: docs/gate.md; what it writes: docs/spec/session.md.  Everything that is not foreseen is a
refusal.  The record of a call is on disk before the call is permitted; an outcome that cannot be
written is unknown, and then nothing further is allowed.
Cost: a decision a few look-ups, whatever was called before; with a durable ledger two fdatasync a
call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate.changing import admit, finish, resolve, settle
from tcc_runtime.gate.deciding import Permitted, decide, decision, is_call
from tcc_runtime.gate.history import Happened, history
from tcc_runtime.gate.journal import InFile, InMemory, now_ms
from tcc_runtime.gate.keys import given_key, given_nonce
from tcc_runtime.gate.observe import Observer
from tcc_runtime.gate.permit import OverError, Permit
from tcc_runtime.gate.policy import Policy, policy_of
from tcc_runtime.gate.records import shown_name
from tcc_runtime.gate.refusals import Allowed, Decision, Refused
from tcc_runtime.gate.remaining import remaining
from tcc_runtime.gate.session import Outcome, Session
from tcc_runtime.gate.shared import Shared
from tcc_runtime.gate.turns import Ticket

if TYPE_CHECKING:
    from tcc_runtime.asking.quotes import Quoter
    from tcc_runtime.outcome import Run


class Gate:
    """Holds one session of an agent to an artifact.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`, or the path of one, whose
            certificates are then checked.
        ledger: the record of the session; one that is there is taken up.  None keeps the session
            in memory, of this process alone.
        checked: as of :func:`tcc.load`, where `artifact` is a path.
        key: of the digests of values, 32 bytes; None keeps one in a file beside the ledger.
        show: open parameters, as ``tool.parameter``, whose values stand in the ledger as they are.
            Those that a monitor adds up always do.
        durable: wait for the disk before a call is permitted, and after its outcome.
        clock: UTC milliseconds since 1970.
        nonce: of a new session, 16 bytes; None draws one.  Sessions of one key that begin in
            one millisecond differ by it, and so do the idempotency keys of their calls.

    Raises:
        ResumeError: the ledger is another artifact's or key's, has ended, or was changed.
        Rejected: the artifact is refused; L1xx: the ledger's lines are no chain.
        LedgerError: the ledger cannot be read or written.
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
    ) -> None:
        self._policy = policy_of(_opened(artifact, checked))
        shown = _shown(self._policy, show)
        self._shared = shared = Shared(
            self._policy,
            InMemory() if ledger is None else InFile(Path(ledger)),
            key=given_key(key),
            shown=shown,
            durable=durable,
            clock=now_ms if clock is None else clock,
            nonce=given_nonce(nonce),
        )
        grammar = self._policy.artifact.manifest.grammar
        self._observer = Observer(shared.follower.session_id, grammar)
        self._call: Any = None
        self._outcome: tuple[Outcome, str, bool] = ("unknown", "", False)
        self._began = 0
        self._told: set[bytes] = set()  # heads that others may have kept
        if shared.session.ended:
            self.close()
            line = f"line {shared.journal.records}"
            raise ResumeError(line, "a session that goes on", "its end")
        if show and shared.follower.shown != shown:
            self.close()
            raise ResumeError("line 1: arguments", list(shown), list(shared.follower.shown))

    # What may be asked, without effect.

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now; a call that is under way counts as unknown."""
        shared = self._shared
        with shared.lock:
            trouble = shared.look()
            if trouble is not None:
                return trouble
            found = decide(shared.follower, tool, {} if arguments is None else arguments)
            if isinstance(found, Permitted):
                return decision(shared.session, None, "", found.asked)
        return found

    def allowed(self) -> tuple[Allowed, ...]:
        """The calls that plans allow now, one for each listed call, in order of their texts."""
        session = self._looked_at()
        if session is None or session.ended or session.unforeseen:
            return ()
        return self._policy.allowed(session.known_places())

    def tools(self) -> tuple[str, ...]:
        """The names of the tools of those calls, in order."""
        return tuple(dict.fromkeys(found.tool for found in self.allowed()))

    @property
    def may_finish(self) -> bool:
        """Whether the session may end here."""
        session = self._looked_at()
        return session is not None and not session.ended and session.may_finish()

    @property
    def remaining(self) -> dict[str, int | Decimal]:
        """What the limits still leave, with unknown outcomes counted."""
        self._looked_at()
        with self._shared.lock:
            return remaining(self._shared.session)

    @property
    def history(self) -> tuple[Happened, ...]:
        """The calls so far."""
        self._looked_at()
        with self._shared.lock:
            return history(self._shared.session)

    @property
    def head(self) -> str:
        """The head of the ledger, hex; whoever has it can tell whether a record was changed."""
        self._looked_at()
        head = self._shared.journal.head
        self._told.add(head)
        return head.hex()

    def is_ancestor(self, head: str) -> bool:
        """Whether the ledger had this head once, so that whoever kept it speaks of this session.

        Cost: of a head that this gate has told, a look-up; else the ledger is read once.
        """
        try:
            sought = bytes.fromhex(head)
        except (TypeError, ValueError):
            return False
        self._looked_at()
        with self._shared.lock:
            if sought not in self._told and self._shared.journal.had(sought):
                self._told.add(sought)
        return sought in self._told

    def outcome_of(self, ref: str) -> Outcome | None:
        """The outcome of the call with this id of the caller's; None where there is none."""
        self._looked_at()
        with self._shared.lock:
            follower = self._shared.follower
            seq = follower.refs.get(follower.writer.reference(ref))
            return None if seq is None else follower.session.made[seq - 1].outcome

    def plan(
        self, *, seed: bytes | None = None, quoter: Quoter | None = None, **settings: Any
    ) -> Run:
        """The best ways on from here, certified (see :func:`tcc.search`); it has no effect.

        Args:
            seed: 32 bytes; None draws one.
            quoter, settings: as of :func:`tcc.search`; ``after`` is the session's.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
            SettingsError: a setting is out of its range.
        """
        from tcc_runtime.search import search
        from tcc_runtime.terms.settings import Settings

        texts = self.word()
        drawn = os.urandom(32) if seed is None else seed
        return search(self.artifact, Settings(seed=drawn, after=texts, **settings), quoter=quoter)

    def word(self) -> tuple[str, ...]:
        """The calls that were done, in order, canonical texts: what a search begins after.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
        """
        session = self._looked_at()
        word = None if session is None else session.word()
        if word is None:
            raise ValueError("it is not known where the session is: resolve what is unknown first")
        return tuple([self.artifact.texts[call] for call in word])

    def key_of(self, seq: int) -> str:
        """The idempotency key of a call, made or to be made: that of its permit."""
        return self._shared.follower.writer.call_key(seq)

    def is_call(self, seq: int, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the session's call of that number has these arguments, the open ones too."""
        self._looked_at()
        with self._shared.lock:
            return is_call(self._shared.follower, seq, tool, arguments)

    @property
    def artifact(self) -> Artifact:
        """What the session is held to."""
        return self._policy.artifact

    def _looked_at(self) -> Session | None:
        """The session as its ledger has it; None where that cannot be said."""
        with self._shared.lock:
            return self._shared.session if self._shared.look() is None else None

    # What has an effect.

    def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, ref: str | None = None
    ) -> Permit:
        """A permit for one call, for ``with`` and ``async with``; there it is decided.

        Args:
            tool: its name.
            arguments: JSON values by name.
            ref: the caller's own id of the call; one that the session has is not made again.

        Raises:
            Refused: at the start of the block: it is not allowed, and nothing was done.
            AlreadyDone: the same, as the session has the id.
        """
        return Permit(self, tool, {} if arguments is None else arguments, ref)

    def resolve(
        self, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None = None
    ) -> None:
        """What a call whose outcome is unknown turned out to be; the owner's word.

        Args:
            seq: its number.
            outcome: ``done`` or ``failed``.
            observed: its observed values, where it is done and has any.

        Raises:
            ValueError: there is no such unknown call, or no such outcome or value.
            Refused: R303, R305 or R306.
        """
        shared = self._shared
        with shared.lock:
            # A call of this process that is under way has the lock of the file, and keeps it.
            inside = shared.pending is not None
            if inside:
                resolve(shared, seq, outcome, observed)
        if not inside:
            ticket = shared.enter("")
            try:
                with shared.lock:
                    resolve(shared, seq, outcome, observed)
            finally:
                shared.leave(ticket)
        self._observer.resolved(seq, outcome)

    def finish(self, *, abandon: bool = False) -> None:
        """End the session; `abandon` ends it where no plan does.

        Raises:
            Refused: R204 no plan ends here; R303, R305, R306.
        """
        shared = self._shared
        try:
            ticket = shared.enter("")
            try:
                with shared.lock:
                    finish(shared, abandon)
            finally:
                shared.leave(ticket)
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

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gate is one session's: open another one on its ledger")

    # How a permit is had and given back (see :class:`tcc_runtime.gate.permit.Door`).

    def enter(self, permit: Permit) -> None:
        """Waits for the turn, decides and records; of a thread."""
        try:
            ticket = self._shared.enter(permit.tool)
            try:
                with self._shared.lock:
                    self._admit(permit, ticket, sync=True)
            except BaseException:
                self._shared.leave(ticket)
                raise
        except Refused as refusal:
            self._observer.refused(permit.tool, refusal.decision.code)
            raise
        self._begin(permit)

    async def enter_in_task(self, permit: Permit) -> None:
        """The same, of a task; the disk is waited for in another thread."""
        try:
            await self._enter_in_task(permit)
        except Refused as refusal:
            self._observer.refused(permit.tool, refusal.decision.code)
            raise
        self._begin(permit)

    async def _enter_in_task(self, permit: Permit) -> None:
        shared = self._shared
        ticket = await shared.enter_in_task(permit.tool)
        try:
            with shared.lock:
                self._admit(permit, ticket, sync=False)
            await self.sync_in_task()
        except BaseException as error:
            if shared.pending is ticket:
                self.settle(ticket, "unknown", sync=False)
                with shared.lock:
                    shared.pending = None
            shared.leave(ticket)
            if isinstance(error, LedgerError):
                shared.broken(error, permit.tool)
            raise

    def _begin(self, permit: Permit) -> None:
        """Tell who watches; whatever that raises, the turn is not kept."""
        try:
            self._call = self._observer.began(permit.tool, permit.seq)
        except BaseException:
            permit.__exit__(None, None, None)
            raise

    def _admit(self, permit: Permit, ticket: Ticket, *, sync: bool) -> None:
        seq, key = admit(self._shared, permit.tool, permit.arguments, permit.ref, sync=sync)
        self._shared.pending = ticket
        self._began = self._shared.clock()
        permit.admitted(seq, key, ticket)

    def settle(
        self,
        ticket: Ticket,
        outcome: Outcome,
        result: object = None,
        observed: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        sync: bool,
    ) -> tuple[Outcome, bool]:
        """The outcome of that turn's call: as it is kept, and whether it was unforeseen.

        Raises:
            OverError: it is over, or was told already; nothing is told of another call.
        """
        shared = self._shared
        with shared.lock:
            if shared.pending is not ticket or not shared.session.under_way:
                raise OverError("the call is over, or its outcome was told already")
            took = max(0, shared.clock() - self._began)
            kept = settle(shared, outcome, result, observed, took, sync=sync)
        self._outcome = kept[0], reason, kept[1]
        return kept

    def leave(self, ticket: Ticket) -> None:
        """The call is over."""
        call, told, seq = self._call, self._outcome, len(self._shared.session.made)
        self._call = None
        with self._shared.lock:
            self._shared.pending = None
        self._shared.leave(ticket)
        self._observer.ended(call, seq, *told)

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


def _opened(artifact: Artifact | str | Path, checked: str | None) -> Artifact:
    found = artifact if isinstance(artifact, Artifact) else load(Path(artifact), checked=checked)
    if not found.verified:
        raise SettingsError("artifact", "one whose certificates were checked", "verify=False")
    return found


def _shown(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """The open parameters that are shown, sorted; those that are added up among them."""
    tools = policy.core.tools
    known = {shown_name(tool.name, given.name) for tool in tools for given in tool.opened}
    foreign = sorted(set(show) - known)
    if foreign:
        raise SettingsError("show", "open parameters as tool.parameter", foreign[0])
    added = policy.monitors.added.items()
    due = {shown_name(tools[tool].name, name) for tool, names in added for name in names}
    return tuple(sorted({*show, *due}))
