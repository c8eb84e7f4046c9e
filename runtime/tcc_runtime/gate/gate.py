"""The gate: an agent proposes a call, and the gate refuses it unless the grammar allows it.

Text: docs/gate.md, docs/budgets.md; its ledgers: docs/spec/session.md.  The record of a call is on
the disk before the call is permitted.  An outcome that cannot be written is unknown, and then no
further call is allowed.
Cost: a decision a few look-ups, whatever was called before; with a durable ledger one fdatasync a
call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tcc_certs.errors import Code
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import across_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import keys
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.calls import GateCalls, Observer
from tcc_runtime.gate.journal import ledger_file, memory
from tcc_runtime.gate.permit import NotYet, Ticket
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.refusals import Refused
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
        show: open fields whose values the ledger has, as ``tool.field``, beside those that
            statements need.
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
        parent, proof: a delegated session is not opened, because this release cannot prove that
            its sessions are sessions of the parent (TCC491).

    Raises:
        ResumeError: the ledger is another artifact's or key's, has ended, or was changed; it is
            that of a delegated session; the session was given something else.
        GivenRefused: what is given is not what the grammar declares: R102, R103, R105, R106.
        Rejected: the artifact is refused; L1xx: the ledger's lines are no chain.
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
        if parent is not None or proof is not None:
            expected = "no parent, because this release cannot prove a delegation (TCC491)"
            raise SettingsError("parent", expected, "a parent")
        policy = policy_of(opened(artifact, checked))
        shown = reopening.shown_of(policy, show)
        begun = reopening.begun_with(policy, given)
        kept = home or Home(rolls=rolls, shadow=shadow)
        across = across_of(policy.core, account, kept.recorded)
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
                        changes.resolve(access, seq, outcome, observed, who)
                    finally:
                        access.turns.changed()
        if not inside:
            ticket = access.enter("") if turn is None else turn
            try:
                with access.lock:
                    changes.resolve(access, seq, outcome, observed, who)
            finally:
                self.give_back(ticket)
        self._observer.resolved(seq, outcome)

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
