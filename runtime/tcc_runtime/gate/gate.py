"""The gate: an agent proposes one call at a time, and what the grammar does not allow is not made.

Text: docs/gate.md, docs/budgets.md; what it writes: docs/spec/session.md.  Everything that is not
foreseen is a refusal.  The record of a call is on disk before the call is permitted; an outcome
that cannot be written is unknown, and then nothing further is allowed.
Cost: a decision a few look-ups, whatever was called before; with a durable ledger one fdatasync a
call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from tcc_certs.errors import Code
from tcc_certs.session.machine import Outcome
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import Across, across_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import keys
from tcc_runtime.gate.calls import GateCalls, Observer
from tcc_runtime.gate.delegation import Above, require_proof
from tcc_runtime.gate.journal import ledger_file, memory
from tcc_runtime.gate.permit import NotYet, Ticket
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session_access import Home, changes, reopening
from tcc_runtime.gate.wrapping import wrap

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


class Gate(GateCalls):
    """Holds one session of an agent to an artifact.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`, or the path of one, whose
            certificates are then checked.
        ledger: the record of the session; one that is there is reopened.  None keeps the session
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
        given: what the session is given, JSON values by name.  Of one that is reopened it has to
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
        shown = reopening.shown_of(policy, show)
        begun = reopening.begun_with(policy, given, show)
        kept = home or Home(rolls=rolls, shadow=shadow)
        across = across_of(policy.core, account, kept.recorded)
        if parent is not None:
            require_proof(proof, policy.artifact, parent.artifact)
            _ensure_counted_once(across, parent)
            if kept.shadow or parent._access.follower.shadow:
                raise SettingsError("parent", "sessions that are not in the shadow", "one that is")
            if key not in (None, parent._access.follower.key):
                raise SettingsError("key", "the key of the parent's session, or none", "another")
            key, kept = parent._access.follower.key, replace(kept, parent=parent.session_id)
        elif proof is not None:
            raise SettingsError("proof", "a parent, whose sessions the proof is about", "none")
        self._above = None if parent is None else Above(parent, parent._access)
        access = None
        while access is None:
            with suppress(reopening.Rolled):
                access = reopening.open_session(
                    policy,
                    memory.InMemory()
                    if ledger is None or not kept.recorded
                    else ledger_file.InFile(Path(ledger), durable=durable, private=kept.private),
                    key=keys.given_key(key),
                    shown=shown,
                    durable=durable,
                    clock=records.now_ms if clock is None else clock,
                    nonce=keys.given_nonce(nonce),
                    wait=wait,
                    home=kept,
                    given=begun,
                    across=across,
                )
        super().__init__(policy, access)
        grammar = policy.artifact.manifest.grammar
        self._observer = Observer(access.follower.session_id, grammar)
        if access.session.ended:
            self.close()
            line = f"line {access.journal.records}"
            raise ResumeError(line, "a session that goes on", "its end")
        if show and access.follower.shown != shown:
            self.close()
            raise ResumeError("line 1: arguments", list(shown), list(access.follower.shown))
        if self._above is not None:
            try:
                self._above.require_calls(access.follower)
            except BaseException:
                self.close()
                raise

    @property
    def session_id(self) -> str:
        """The UUID of the session."""
        return self._access.follower.session_id

    @property
    def principal(self) -> str | None:
        """Whose session it is, as its ledger names a principal; None: nobody's in particular."""
        return self._access.follower.principal

    @property
    def shadow(self) -> bool:
        """Whether calls that are refused are made all the same."""
        return self._access.home.shadow

    @property
    def ended(self) -> bool:
        """Whether the session has ended, as its ledger has it now."""
        self._looked_at()
        return self._access.session.ended

    @property
    def untouched(self) -> bool:
        """Whether this gate began the session, and nothing but its start is recorded."""
        return reopening.is_untouched(self._access)

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now, by the parent too where there is one.

        A call that is under way counts as unknown.
        """
        found = super().check(tool, arguments)
        above = self._above if found.allowed else None
        return found if above is None else above.gate.check(tool, arguments)

    def refuse(self, code: Code, tool: str, reason: str, *, turn: Ticket | None = None) -> NoReturn:
        """Records the refusal of a call for a reason outside of the grammar.

        Args:
            code: R307 or R308.
            reason: for whoever asked; it is not in the ledger.
            turn: of :meth:`try_turn`; None waits for it.

        Raises:
            Refused: always.
        """
        access = self._access
        ticket = access.enter("") if turn is None else turn
        try:
            with access.lock:
                refusal = changes.refuse(access, code, tool, reason)
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
        access = self._access
        inside = False
        if turn is None:
            with access.lock:
                # A call of this process that is under way has the lock of the file, and keeps it.
                inside = bool(access.pending)
                if inside:
                    try:
                        self._resolve(seq, outcome, observed, who)
                    finally:
                        access.turns.changed()
        if not inside:
            ticket = access.enter("") if turn is None else turn
            try:
                self._give_back_above(ticket)
                with access.lock:
                    self._resolve(seq, outcome, observed, who)
            finally:
                self.give_back(ticket)
        self._observer.resolved(seq, outcome)

    def _resolve(
        self, seq: int, outcome: Outcome, observed: Mapping[str, Any] | None, who: str | None
    ) -> None:
        """The parent first: what is broken off between both can be said again."""
        if self._above is not None:
            changes.resolution(self._access, seq, outcome, observed, who)  # may it be said at all?
            session_id = self._access.follower.session_id
            self._above.resolve(session_id, seq, outcome, observed, who)
        changes.resolve(self._access, seq, outcome, observed, who)

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
        access = self._access
        try:
            ticket = access.enter_alone() if turn is None else turn
            try:
                with access.lock:
                    if access.pending:
                        raise NotYet
                    changes.finish(access, abandon)
            finally:
                self.give_back(ticket)
        except Refused as refusal:
            self._observer.refused("", refusal.decision.code)
            raise
        self._observer.closed("abandoned" if abandon else "ended")

    def close(self) -> None:
        """Lets go of the ledger; the session can be reopened."""
        access = self._access
        with access.lock:
            access.fail(LedgerError("ledger", OSError(0, "the gate is closed")))
            access.journal.close()
        self._observer.closed("let go")

    def withdraw(self) -> bool:
        """Lets go of the ledger, and takes back a start that came to nothing.

        Where this gate began the session, nothing else was recorded and nobody was told its head,
        the ledger goes, and the key that was made for it; else all stays.

        Returns:
            whether it was taken back.
        """
        gone = not self._told and reopening.withdraw(self._access)
        self.close()
        return gone

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gate is one session's: open another one on its ledger")


def _ensure_counted_once(across: Across | None, parent: object) -> None:
    """A call of a child is one of its parent's: one account would count it twice.

    Raises:
        SettingsError: both count the same on one account.
    """
    while across is not None and isinstance(parent, Gate):
        above = parent._access.across
        if above is not None and across.counts_with(above):
            expected = "another account than the parent's: it would count each call twice"
            raise SettingsError("account", expected, "the parent's")
        parent = None if parent._above is None else parent._above.gate
