"""Delegation: the gate of a child, each of whose calls is a call of its parent's session, too.

A child has a grammar of its own, and a proof that all of its sessions are sessions of the parent's
(docs/spec/proof.md), which the kernel checks when the gate is opened.  A call is decided by the
child, then by the parent, whose record is on disk before that of the child; only then it may be
made.  What is refused by either is a call of neither.  An outcome is told to the parent first.  So
whatever a kill leaves, the parent has each call that was made, and the child none that the parent
has not.  The two ledgers have one key: who has it can hold the one to the other
(:mod:`tcc_certs.session.delegation`).
Text: docs/gate.md, docs/spec/session.md, section 10.  Cost: a call of each gate; opening checks
the proof and both artifacts, and is linear in the calls of the child.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tcc_certs.session.machine import Outcome
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.gate.permit import Permit, Ticket, Took

if TYPE_CHECKING:
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.gate.answers import ToolAnswer
    from tcc_runtime.gate.refusals import Decision
    from tcc_runtime.gate.session.recovery import Follower
    from tcc_runtime.gate.session_access import Access


def require_proof(proof: bytes | str | Path | None, child: Artifact, parent: Artifact) -> None:
    """Require a proof that all sessions of the child are sessions of the parent.

    Raises:
        SettingsError: always: this release has no engine that proves it (TCC491).
    """
    raise SettingsError(
        "parent", "no parent, because this release cannot prove a delegation (TCC491)", "a parent"
    )


class Parent(Protocol):
    """What is asked of the gate of a parent."""

    @property
    def artifact(self) -> Artifact:
        """What its session is held to."""
        ...

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now."""
        ...

    def seq_of(self, ref: str) -> int | None:
        """The number of the call with this id."""

    def try_turn(self) -> Ticket | None:
        """Its turn, where that is free."""

    def give_back(self, turn: Ticket) -> None:
        """Gives it back."""

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ref: str | None = None,
        takes_model: bool | None = None,
        turn: Ticket | None = None,
    ) -> Permit:
        """A permit for a call."""
        ...

    def resolve(
        self,
        seq: int,
        outcome: Outcome,
        observed: Mapping[str, Any] | None = None,
        *,
        turn: Ticket | None = None,
        who: str | None = None,
    ) -> None:
        """What an unknown outcome turned out to be."""

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Waits for the disk, where an outcome has to be there."""


class Above:
    """The parent's side of a child's calls.

    Args:
        gate: the parent's; access: its session.
    """

    def __init__(self, gate: Parent, access: Access) -> None:
        self.gate = gate
        self._access = access
        self._turns: dict[Ticket, Ticket] = {}  # turns of the parent that wait for a child's call
        self._permits: dict[Ticket, Permit] = {}  # by the turns of the child

    # Turns.

    def try_turn(self, ticket: Ticket) -> bool:
        """Whether the parent's turn is free now, for a call in this turn of the child.

        Raises:
            Refused: R306.
        """
        turn = self.gate.try_turn()
        if turn is None:
            return False
        self._turns[ticket] = turn
        return True

    def give_back(self, ticket: Ticket) -> None:
        """The parent's turn, where the child's was not used."""
        turn = self._turns.pop(ticket, None)
        if turn is not None:
            self.gate.give_back(turn)

    # Calls.

    def permit(self, child: Follower, ticket: Ticket, asked: Permit) -> Permit:
        """The parent's permit for the next call of the child; its block is to be entered."""
        turn = self._turns.pop(ticket, None)
        seq, attempt = len(child.session.made) + 1, 0
        while self._seq(child.session_id, seq, attempt) is not None:
            attempt += 1
        made = self.gate.call(
            asked.tool,
            asked.arguments,
            ref=_link(child.session_id, seq, attempt),
            takes_model=asked.takes_model,
            turn=turn,
        )
        self._permits[ticket] = made
        return made

    def model(self, ticket: Ticket) -> str:
        """The model that makes the call, chosen by the parent's budget."""
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
        """The outcome of the call for the parent; whether it was unforeseen there."""
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
        """The call is over for the parent; one that was not `made` failed."""
        self.give_back(ticket)
        permit = self._permits.pop(ticket, None)
        if permit is None or permit.ticket is None:
            return
        if not made and permit.outcome is None:
            permit.failed("the child did not begin it")
        permit.__exit__(None, None, None)

    async def outcome_in_task(self, ticket: Ticket) -> None:
        """Waits for the disk where the parent's outcome has to be there.

        Raises:
            LedgerError: the system refuses.
        """
        made = self._permits.get(ticket)
        if made is not None and made.ticket is not None:
            await self.gate.outcome_in_task(made.ticket)

    def resolve(
        self,
        session_id: str,
        seq: int,
        outcome: Outcome,
        observed: Mapping[str, Any] | None,
        who: str | None,
    ) -> None:
        """What an unknown call of the child turned out to be, for the parent.

        Raises:
            ValueError: the parent has it as something else.
            Refused: R303, R305 or R306.
        """
        place = self._last(session_id, seq)
        known = None if place is None else self._access.session.made[place - 1].outcome
        if place is None or known not in ("unknown", outcome):
            raise ValueError(f"the parent's session has call {seq} as {known or 'none'}")
        if known == "unknown":
            self.gate.resolve(place, outcome, observed, who=who)

    # What the parent's ledger has of a child.

    def _seq(self, session_id: str, seq: int, attempt: int) -> int | None:
        return self.gate.seq_of(_link(session_id, seq, attempt))

    def _last(self, session_id: str, seq: int) -> int | None:
        found, attempt = None, 0
        while (place := self._seq(session_id, seq, attempt)) is not None:
            found, attempt = place, attempt + 1
        return found

    def require_calls(self, child: Follower) -> None:
        """Hold the calls that a child's ledger has to those of the parent's.

        Raises:
            ResumeError: the parent has not one of them, or another call in its place.
        """
        session = child.session
        if not session.made:
            return
        from tcc_certs.session.delegation import same_call

        core, above = session.policy.core, self.gate.artifact.core
        for seq, made in enumerate(session.made, 1):
            place = self._last(child.session_id, seq)
            beside = None if place is None else self._access.session.made[place - 1]
            sides = (
                None
                if beside is None
                else (
                    (core, made.offer, made.opened),
                    (above, beside.offer, beside.opened),
                )
            )
            if sides is None or not same_call(sides, child.key):
                found = "none" if beside is None else beside.offer.text
                raise ResumeError(f"line {made.line}: call", "a call of the parent's", found)


def _link(session_id: str, seq: int, attempt: int) -> str:
    from tcc_certs.session.delegation import link

    return link(session_id, seq, attempt)
