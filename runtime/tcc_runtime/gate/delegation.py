"""Delegation: the gate of a child, whose calls are calls of its parent's session, too.

The child has its own artifact, and a proof that each of its sessions is a session of the parent's
artifact.  The kernel checks the proof when the gate is opened.  The child decides a call first,
then the parent.  The record of the parent is on the disk before that of the child, and the parent
has each outcome first.  So after a kill the parent has every call that was made, and the child has
none that the parent lacks.  The lock of the child is taken before that of the parent.  Text:
docs/delegation.md; docs/spec/session.md, section 10.  Cost: that of a call in both gates; opening
checks the proof, and is linear in the calls of the child.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc_certs.proof.check import MAX_BYTES
from tcc_certs.proof.implication import check_implication
from tcc_certs.session.delegation import link, same_call
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.exact.planned import plan_of
from tcc_runtime.gate.answers import Outcome, ToolAnswer
from tcc_runtime.gate.permit import Permit, Ticket, Took

if TYPE_CHECKING:
    from tcc_runtime.account.windows import Across
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.gate.gate import Gate
    from tcc_runtime.gate.session.recovery import Follower
    from tcc_runtime.gate.session_access import Access


def require_proof(proof: bytes | str | Path | None, child: Artifact, parent: Artifact) -> None:
    """Check a proof that each session of one artifact is a session of another one.

    Raises:
        SettingsError: there is no proof.
        Rejected: T101 to T105, B1xx, D102, D201: the proof does not hold, or is about other
            artifacts.
        OSError: the file cannot be read.
    """
    if proof is None:
        expected = "the file that `tcc prove CHILD --implies PARENT -o PROOF` writes"
        raise SettingsError("proof", expected, "none")
    data = proof
    if not isinstance(data, bytes):
        with Path(data).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    check_implication(data, child.core, parent.core, lambda: plan_of(child))


class Above:
    """The parent's side of a child's calls.

    Args:
        gate, access: the gate of the parent, and its session.
    """

    def __init__(self, gate: Gate, access: Access) -> None:
        self.gate = gate
        self._access = access
        self._turns: dict[Ticket, Ticket] = {}  # the parent's turn by the child's turn
        self._permits: dict[Ticket, Permit] = {}  # the parent's permit by the child's turn

    @property
    def key(self) -> bytes:
        """The key of both sessions."""
        return self._access.follower.key

    def require_open(self) -> None:
        """Require that the parent is open, has not ended, and enforces its policy.

        Raises:
            SettingsError: it is closed, broken or ended, or its session is a shadow.
        """
        if self._access.look() is not None:
            raise SettingsError("parent", "a gate that is open", "one that is closed or broken")
        if self._access.session.ended:
            raise SettingsError("parent", "a session that goes on", "one that has ended")
        if self._access.follower.shadow:
            raise SettingsError("parent", "a session that is enforced", "one in the shadow")

    def require_counted_once(self, across: Across | None) -> None:
        """Require that no account counts a call for both the child and a parent.

        Raises:
            SettingsError: an account would count each call twice.
        """
        above: Above | None = self
        while across is not None and above is not None:
            theirs = above._access.across
            if theirs is not None and across.counts_with(theirs):
                expected = "another account than the parent's, which counts each call of the child"
                raise SettingsError("account", expected, "the parent's")
            above = above.gate.above

    # Turns.

    def try_turn(self, ticket: Ticket) -> bool:
        """Take the parent's turn for a turn of the child, if it is free now.

        Raises:
            Refused: R306.
        """
        turn = self.gate.try_turn()
        if turn is None:
            return False
        self._turns[ticket] = turn
        return True

    def give_back(self, ticket: Ticket) -> None:
        """Give the parent's turn back, if it was not used."""
        turn = self._turns.pop(ticket, None)
        if turn is not None:
            self.gate.give_back(turn)

    # Calls.

    def permit(self, child: Follower, ticket: Ticket, asked: Permit) -> Permit:
        """Return the parent's permit for the next call of the child; the caller enters it."""
        seq, attempt = len(child.session.made) + 1, 0
        while self.gate.seq_of(link(child.session_id, seq, attempt)) is not None:
            attempt += 1
        made = self._permits[ticket] = self.gate.call(
            asked.tool,
            asked.arguments,
            ref=link(child.session_id, seq, attempt),
            takes_model=asked.takes_model,
            turn=self._turns.pop(ticket, None),
        )
        return made

    def model(self, ticket: Ticket) -> str:
        """Return the model that the budget of the parent chose for a call, or ''."""
        return self._permits[ticket].model

    def settle(
        self,
        ticket: Ticket,
        outcome: Outcome,
        result: object,
        observed: ToolAnswer | Mapping[str, Any] | None,
        reason: str,
        told: Took | None,
        read: bool,
    ) -> bool:
        """Report the outcome to the parent; return whether a part of the answer is unknown there.

        Args:
            outcome, result, observed, reason, told, read: the report of the caller of the child's
                permit.
        """
        made = self._permits.get(ticket)
        if made is None or made.outcome is not None:
            return False
        if outcome == "done":
            made.done(result, observed, told)
        elif outcome == "failed":
            made.failed(reason, told, answered=read)
        else:
            made.unknown(reason, told)
        return made.unforeseen

    def leave(self, ticket: Ticket, *, made: bool = True) -> None:
        """End the parent's call; a call that the child did not begin has failed."""
        self.give_back(ticket)
        permit = self._permits.pop(ticket, None)
        if permit is None or permit.ticket is None:
            return
        if not made and permit.outcome is None:
            permit.failed("the child did not begin the call")
        permit.__exit__(None, None, None)

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Wait for the disk if it has to have the outcome.

        Raises:
            LedgerError: the system cannot write.
        """
        made = self._permits.get(ticket)
        if made is not None and made.ticket is not None:
            await self.gate.outcome_in_task(made.ticket)

    def resolve(
        self,
        child: Follower,
        seq: int,
        outcome: Outcome,
        observed: Mapping[str, Any] | None,
        *,
        turn: Ticket | None,
        who: str | None,
        answered: bool,
    ) -> None:
        """Record in the parent the outcome of a child's call that was unknown.

        If the parent already has this outcome, nothing is written.

        Args:
            seq: the number of the call in the child.
            turn: the child's turn; the parent's turn that was taken with it is used.  None: wait.
            outcome, observed, who, answered: see :meth:`Gate.resolve`.

        Raises:
            ValueError: the parent has no such call or another outcome, or an argument is invalid.
            Refused: R303, R305 or R306.
        """
        place = self._place(child, seq)
        known = None if place is None else self._access.session.made.get(place)
        if place is not None and known is not None and known.outcome == "unknown":
            given = None if turn is None else self._turns.pop(turn, None)
            self.gate.resolve(place, outcome, observed, turn=given, who=who, answered=answered)
            return
        found = "none" if place is None else self._access.session.made.outcome(place)
        if found != outcome:
            raise ValueError(f"the parent's session has the outcome of call {seq} as {found}")

    # The calls of a child in the parent's ledger.

    def _place(self, child: Follower, seq: int) -> int | None:
        """Return the number of the parent's call for call `seq` of the child; None: the parent has
        none.

        If several attempts were recorded, the last one counts.
        """
        found, attempt = None, 0
        while (place := self.gate.seq_of(link(child.session_id, seq, attempt))) is not None:
            found, attempt = place, attempt + 1
        return found

    def require_calls(self, child: Follower) -> None:
        """Require that the parent has each call of a reopened child session.

        Arguments are compared only for calls that both gates still remember.

        Raises:
            ResumeError: the parent lacks a call, or has another one.
        """
        session = child.session
        core, other = session.policy.core, self.gate.artifact.core
        for seq in range(1, len(session.made) + 1):
            place, made = self._place(child, seq), session.made.get(seq)
            line = "call" if made is None else f"line {made.line}"
            if place is None:
                raise ResumeError(f"{line}: call {seq}", "a call of the parent's ledger", "none")
            twin = self._access.session.made.get(place)
            if made is None or twin is None:
                continue
            sides = (core, made.offer, made.opened), (other, twin.offer, twin.opened)
            if not same_call(sides, child.key):
                raise ResumeError(f"{line}: call {seq}", "the parent's call", twin.offer.text)
