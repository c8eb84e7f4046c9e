"""What a session may be asked: what is allowed now, what was done, what is left, without effect.

Text: docs/gate.md.  Each answer is about the session as its ledger has it now, so what others have
written since is read first.  Cost: that, and a few look-ups.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.deciding import Permitted, decide, decision, is_call
from tcc_runtime.gate.history import Happened, history
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed, Decision
from tcc_runtime.gate.remaining import remaining
from tcc_runtime.gate.session import Outcome, Session
from tcc_runtime.gate.shared import Shared


class Asked:
    """The questions of a gate; :class:`tcc_runtime.gate.gate.Gate` is what changes a session.

    Args:
        policy: of its artifact.
        shared: the session.
    """

    def __init__(self, policy: Policy, shared: Shared) -> None:
        self._policy = policy
        self._shared = shared
        self._told: set[bytes] = set()  # heads that others may have kept

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
