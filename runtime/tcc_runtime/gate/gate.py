"""The gate: an agent proposes a call, and the gate refuses it unless the grammar allows it.

Text: docs/gate.md, docs/budgets.md; its ledgers: docs/spec/session.md.  The disk has the record of
a call before the call is made.  If an outcome cannot be written, it is unknown, and the gate allows
no further call.
Cost: a decision takes a few look-ups, independent of the history; with a durable ledger, a call
takes one fdatasync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tcc_certs.errors import Code
from tcc_certs.session.carried import Reading
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import across_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SessionEnded, SettingsError
from tcc_runtime.gate import keys
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.asking import verdicts
from tcc_runtime.gate.asking.questions import Pending, Verdict, VerdictError
from tcc_runtime.gate.calls import GateCalls, Observer
from tcc_runtime.gate.journal import ledger_file, memory
from tcc_runtime.gate.permit import NotYet, Ticket
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session_access import Home, changes, reopening
from tcc_runtime.gate.wrapping import wrap

if TYPE_CHECKING:
    from tcc_runtime.account.windows import Across
    from tcc_runtime.gate.delegation import Above


def opened(artifact: Artifact | str | Path, checked: str | None) -> Artifact:
    """Return an artifact whose certificates were checked, loading it if it is a path.

    Raises:
        Rejected: the check refuses the artifact.
        SettingsError: the artifact was loaded without a check.
    """
    found = artifact if isinstance(artifact, Artifact) else load(Path(artifact), checked=checked)
    if not found.verified:
        raise SettingsError("artifact", "one whose certificates were checked", "verify=False")
    return found


def roll_bytes_of(given: object) -> int | None:
    """Check the size at which a ledger continues in another file, and return it.

    Raises:
        SettingsError: it is neither None nor a positive int.
    """
    if given is not None and (type(given) is not int or given < 1):
        raise SettingsError("roll", "bytes, at least 1", given)
    return given


def _above(
    parent: Gate,
    proof: bytes | str | Path | None,
    artifact: Artifact,
    across: Across | None,
    key: bytes | None,
) -> Above:
    """Return the parent's side of a delegated session, after all checks.

    Raises:
        SettingsError, Rejected, OSError: see :class:`Gate`.
    """
    # Imported lazily: most gates have no parent.
    from tcc_runtime.gate.delegation import Above, require_proof

    found = Above(parent, parent._access)
    found.require_open()
    found.require_counted_once(across)
    if key not in (None, found.key):
        raise SettingsError("key", "the key of the parent's session, or none", "another one")
    require_proof(proof, artifact, parent.artifact)
    return found


class Gate(GateCalls):
    """A gate enforces the policy of an artifact in one session of an agent.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`; or a path, whose artifact is
            checked.
        ledger: the path of the session's ledger; an existing session is reopened.  None: the
            session is in memory and belongs to this process.
        checked: see :func:`tcc.load`; only if `artifact` is a path.
        key: 32 bytes for the digests of values and the MACs of records; None: the key is in a file
            next to the ledger, which the gate creates for a new session.
        show: open fields, as ``tool.field``, whose values the ledger shows in addition to the
            values that statements need.
        durable: whether to wait for the disk before a call is made.  The outcome is on the disk
            with the next call, or within 100 ms.  False: the gate never waits for the disk.
        clock: returns UTC milliseconds since 1970.
        nonce: 16 bytes of a new session; None: drawn at random.  It distinguishes sessions of one
            key that begin in the same millisecond, and the idempotency keys of their calls.
        wait: whether to wait while another process has the lock of the ledger.
        given: the attributes that the session starts with, JSON values by name.  A reopened session
            must have the same.  None: the attributes in the ledger, and no attributes for a new
            session.
        rolls: if the session of the ledger has ended: True renames the ledger (it appends the
            session's id) and begins a new session; False raises SessionEnded.
        roll_bytes: the size at which a ledger NAME continues in NAME.1, then in NAME.2; None: the
            ledger is one file.
        home: set by :class:`tcc_runtime.gate.store.Sessions` for the ledgers of a store.
        shadow: whether refused calls are made, to try out a policy.  The ledger has their refusals.
            The attribute `shadowed` of the permit is the code of the refusal.  Statements do not
            count these calls.
        account: the account of the limits across sessions.
        parent: the gate of the parent, for a delegated session.  Each call of the session is a call
            of the parent's session, too, and both decide it.  The session has the parent's key.
        proof: the proof that `tcc prove CHILD --implies PARENT -o PROOF` writes: a file, or bytes.

    Raises:
        SessionEnded: the session of the ledger has ended, and `rolls` is False.
        ResumeError: the ledger has another artifact, key or parent, was changed, has a call that
            the parent lacks, or has other attributes than `given`.
        GivenRefused: R102 to R106: the grammar declares other attributes.
        Rejected: the check refuses the artifact.  L1xx: the lines of the ledger are no chain.  T101
            to T105: the proof does not hold, or is about other artifacts.
        LedgerError: the ledger cannot be read or written; its cause is a `BlockingIOError` if
            another process has the lock and `wait` is False.
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
        roll_bytes: int | None = None,
        home: Home | None = None,
        shadow: bool = False,
        parent: Gate | None = None,
        proof: bytes | str | Path | None = None,
        given: Mapping[str, Any] | None = None,
        account: Account | None = None,
    ) -> None:
        policy = policy_of(opened(artifact, checked))
        shown = reopening.shown_of(policy, show)
        begun = reopening.begun_with(policy, given)
        if home is None:
            home = Home(rolls=rolls, shadow=shadow, roll_bytes=roll_bytes_of(roll_bytes))
        across = across_of(policy.core, account, home.recorded)
        self.above = None
        if parent is not None:
            self.above = _above(parent, proof, policy.artifact, across, key)
            if home.shadow:
                raise SettingsError("shadow", "False, for a session with a parent", "True")
            key, home = self.above.key, replace(home, parent=parent.session_id)
        elif proof is not None:
            raise SettingsError("parent", "the gate of the parent that the proof names", "none")
        access = None
        while access is None:
            with suppress(reopening.Rolled):
                access = reopening.open_session(
                    policy,
                    memory.InMemory()
                    if ledger is None or not home.recorded
                    else ledger_file.InFile(
                        Path(ledger),
                        durable=durable,
                        private=home.private,
                        roll_bytes=home.roll_bytes,
                    ),
                    key=keys.given_key(key),
                    shown=shown,
                    durable=durable,
                    clock=records.now_ms if clock is None else clock,
                    nonce=keys.given_nonce(nonce),
                    wait=wait,
                    home=home,
                    given=begun,
                    across=across,
                )
        super().__init__(policy, access)
        grammar = policy.artifact.manifest.grammar
        self._observer = Observer(access.follower.session_id, grammar)
        if access.session.ended:
            self.close()
            remedy = "open a new session"
            if not home.private:
                remedy = "use another path, or rolls=True to rename this ledger and begin a new one"
            line = f"line {access.journal.records}"
            raise SessionEnded(line, "an open session", f"its end: {remedy}")
        if show and access.follower.shown != shown:
            self.close()
            raise ResumeError("line 1: arguments", list(shown), list(access.follower.shown))
        if self.above is not None:
            try:
                self.above.require_calls(access.follower)
            except BaseException:
                self.close()
                raise
        if access.session.questions.open(access.session.last_ms):
            verdicts.watch(access)

    @property
    def session_id(self) -> str:
        """The UUID of the session."""
        return self._access.follower.session_id

    @property
    def principal(self) -> str | None:
        """The principal that the ledger names, hex; None if it names none."""
        return self._access.follower.principal

    @property
    def shadow(self) -> bool:
        """True if calls that the policy refuses are made."""
        return self._access.home.shadow

    @property
    def ended(self) -> bool:
        """True if the ledger has the end of the session, possibly written by another process."""
        self._looked_at()
        return self._access.session.ended

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Decide a call without making it; a call under way counts as unknown.

        The parent of a delegated session decides, too.
        """
        found = super().check(tool, arguments)
        above = self.above if found.allowed else None
        return found if above is None else above.gate.check(tool, arguments)

    def is_only_question(self, id: str) -> bool:
        """Return whether a verdict without an id can only mean the question with this id."""
        if self.above is None or self._access.session.questions.why_not(id, 0) != "unknown":
            return super().is_only_question(id)
        return self.above.gate.is_only_question(id)

    @property
    def untouched(self) -> bool:
        """True if this gate began the session, and the ledger has no record except the header."""
        return reopening.is_untouched(self._access)

    def refuse(self, code: Code, tool: str, reason: str, *, turn: Ticket | None = None) -> NoReturn:
        """Record the refusal of a call for a reason outside the policy.

        Args:
            code: R307 or R308.
            reason: the text of the exception; it is not in the ledger.
            turn: a turn of :meth:`try_turn`; None: wait for one.

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
        pending: Callable[[Pending], Any] | None = None,
    ) -> Callable[..., Any]:
        """Return a function that calls `function` only if this gate allows the call.

        See :func:`tcc_runtime.gate.wrapping.wrap`.
        """
        return wrap(
            self, function, name=name, injected=injected, observe=observe, refused=refused,
            pending=pending,
        )  # fmt: skip

    def resolve(
        self,
        seq: int,
        outcome: Outcome,
        observed: Mapping[str, Any] | None = None,
        *,
        turn: Ticket | None = None,
        who: str | None = None,
        answered: bool = False,
    ) -> None:
        """Record the outcome of a call whose outcome was unknown.  The gate trusts the caller.

        Args:
            seq: the number of the call.
            outcome: ``done`` or ``failed``.
            observed: the values of the answer of a call that is done.
            turn: a turn of :meth:`try_turn`; None: wait for one.
            who: the person who reports the outcome, 1 to 255 characters; the ledger has the name
                and the time.
            answered: whether the agent has read the error of a call that failed.  Only for tools
                with `errors mean failed`.

        Raises:
            ValueError: the call is not unknown, or an argument is invalid.  Or so many calls follow
                that validators would decline the ledger.
            Refused: R303, R305 or R306.
        """

        access = self._access

        def resolve() -> None:
            changes.resolution(access, seq, outcome, observed, who, answered=answered)()

        if self.above is not None:
            # The parent records it first, without a lock of this session, because the parent may
            # wait for its turn.
            self._looked_at()
            with access.lock:
                changes.resolution(access, seq, outcome, observed, who, answered=answered)
            self.above.resolve(
                access.follower, seq, outcome, observed, turn=turn, who=who, answered=answered
            )
        self._change(resolve, turn)
        self._observer.resolved(seq, outcome)

    def approve(self, id: str, *, who: str, turn: Ticket | None = None) -> None:
        """Record that a person approved the call of a question: the call may then be made once.

        The gate does not check that the person has the role which the question names.

        Args:
            id: the id of the question, from :class:`Pending`; also of a question of the parent.
            who: the name of the person, 1 to 255 characters; the ledger has it.
            turn: a turn of :meth:`try_turn`; None: wait for one.

        Raises:
            VerdictError: no question has this id, it has a verdict, or it has expired.
            ValueError: `who` is no name.
            Refused: R303, R305 or R306.
        """
        self._decide(id, "approved", who, "", turn)

    def deny(self, id: str, *, who: str, reason: str = "", turn: Ticket | None = None) -> None:
        """Record that a person denied the call of a question: the call is refused until the
        question expires.

        Args:
            reason: a text of at most 1,000 characters.  Refusals in this process quote it; the
                ledger does not have it.
            id, who, turn: see :meth:`approve`.

        Raises:
            VerdictError, ValueError, Refused: see :meth:`approve`.
        """
        self._decide(id, "denied", who, reason, turn)

    def _decide(
        self, question_id: str, verdict: Verdict, who: str, reason: str, turn: Ticket | None
    ) -> None:
        def decide() -> None:
            verdicts.record(self._access, question_id, verdict, who, reason)

        try:
            self._change(decide, turn)
        except VerdictError as error:
            if self.above is None or error.why != "unknown":
                raise
            self.above.gate._decide(question_id, verdict, who, reason, None)
            return
        self._observer.decided(question_id, verdict)

    def _change(self, change: Callable[[], None], turn: Ticket | None) -> None:
        """Change the session in a turn, or without one while a call of this process is under
        way.
        """
        access = self._access
        inside = False
        if turn is None:
            with access.lock:
                # A call under way in this process holds the lock of the file.
                inside = bool(access.pending)
                if inside:
                    try:
                        change()
                    finally:
                        access.turns.changed()
        if not inside:
            ticket = access.enter("") if turn is None else turn
            try:
                with access.lock:
                    change()
            finally:
                self.give_back(ticket)

    def finish(self, *, abandon: bool = False, turn: Ticket | None = None) -> None:
        """End the session.

        Args:
            abandon: whether to end it even if the policy does not allow the end here.
            turn: a turn of :meth:`try_turn`; None: wait until no call is under way.

        Raises:
            NotYet: with `turn`: a call is under way.
            Refused: R204: the session may not end here; R303, R305, R306, R308.
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

    def carry_over(
        self, artifact: Artifact, earlier: Callable[[str], Reading | None], *, wait: bool
    ) -> None:
        """Continue the ledger in a new file, under another artifact.

        Afterwards this gate refuses every call: open a new one.  If the session has ended, nothing
        happens.  If its records do not fit the artifact, the ledger is unchanged.

        Args:
            earlier: returns how to read records that were written under an artifact, by the
                artifact's digest in hex; None if it does not know the artifact.
            wait: whether to wait until no call is under way.

        Raises:
            NotCarried: the records of the session do not fit the artifact.
            ResumeError: the session is in memory, or the next file exists.
            LedgerError: the ledger cannot be read or written.  Its cause is a `BlockingIOError` if
                `wait` is False and a call is under way, or another process has the lock.
            Refused: R306; with `wait` also R305 and R308.
        """
        access = self._access
        ticket = access.enter_alone() if wait else access.try_enter("")
        if ticket is None:
            access.stop_waiting()
            raise LedgerError("ledger", BlockingIOError(0, "a call is under way"))
        try:
            with access.lock:
                if access.pending:  # a parallel call that gave its turn to the next caller
                    raise LedgerError("ledger", BlockingIOError(0, "a call is under way"))
                if not access.session.ended:
                    changes.carry_over(access, policy_of(artifact), earlier)
        finally:
            access.leave(ticket)

    def close(self) -> None:
        """Close the ledger; the session can be reopened."""
        access = self._access
        with access.lock:
            access.fail(LedgerError("ledger", OSError(0, "the gate is closed")))
            access.journal.close()
        self._observer.closed("let go")

    def withdraw(self) -> bool:
        """Close the ledger, and remove it if the session is unused.

        The session is unused if this gate began it, its ledger has only the header, and no caller
        has read its head.  Then the gate removes the ledger and the key file that it created.

        Returns:
            True if the ledger was removed.
        """
        gone = not self._told and reopening.withdraw(self._access)
        self.close()
        return gone

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a gate cannot be copied: open another one on its ledger")
