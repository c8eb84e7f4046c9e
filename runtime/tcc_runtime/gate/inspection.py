"""What a session may be asked: what is allowed now, what was done, what is left, without effect.

Text: docs/gate.md.  Each answer is about the session as its ledger has it now, so what others have
written since is read first.
Cost: that, and a few look-ups; the history is linear in the calls, what is left in the limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import add
from pathlib import Path
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.atoms import Atom
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.machine import Outcome
from tcc_certs.session.monitors.keyed import PLACES
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate import schemas
from tcc_runtime.gate.admission import Permitted, decide, drawn, is_call
from tcc_runtime.gate.budget import adapters_in, atoms_in, budget_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed, Decision
from tcc_runtime.gate.session import Session, records
from tcc_runtime.gate.session_access import Access, changes, decision
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.drawing import Drawing
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.settings.settings import Settings

# What was called.


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A call of the session.

    Attributes:
        seq: its number, from 1.
        call: canonical text, without observed parameters.
        outcome: ``done``, ``failed``, ``unknown``; ``open`` while it is under way.
        observed: the values that came back, as texts of the grammar.
        unforeseen: of what came back a part is not known.
        model: that made it; empty where none was chosen.
    """

    seq: int
    call: str
    outcome: str
    observed: Mapping[str, str]
    unforeseen: bool
    model: str = ""


def history(session: Session) -> tuple[Happened, ...]:
    """All calls of a session."""
    return tuple(_happened(session, at) for at in range(len(session.made)))


def _happened(session: Session, at: int) -> Happened:
    made = session.made[at]
    table = session.policy.tables.numbered(made.offer.tool)
    told = records.observed_texts(table, made.observed) or {}
    under_way = at + 1 in session.under_way
    return Happened(
        seq=at + 1,
        call=made.offer.text,
        outcome="open" if under_way else made.outcome,
        observed={name: str(text) for name, text in told.items()},
        unforeseen=made.unforeseen,
        model=made.model,
    )


# What limits still leave; an unknown call counts with the most that it may have taken.

_NANO: Final = 9


def remaining(session: Session) -> dict[str, int | Decimal]:
    """By name: ``calls``, the most that may still follow, then each limit as a grammar has it.

    Price and latency are whole (cents, ms), uses are calls, everything else is a decimal.
    """
    policy, taken = session.policy, session.taken
    for seq in session.under_way if taken else ():
        taken = tuple(map(add, taken, policy.takes(session.made[seq - 1].offer, None)))
    found: dict[str, int | Decimal] = {"calls": policy.most_calls(session.held)}
    for limit, took in zip(policy.core.limits, taken, strict=True):
        if limit.least:
            continue
        left = limit.value - took
        if limit.kind == "depth":
            found["calls"] = min(found["calls"], left)
            continue
        name = limit.text.rpartition("<=")[0].strip()
        exact = limit.kind in ("cost", "epsilon", "sum")
        value = Decimal(format_decimal(left, _NANO)) if exact else left
        found[name] = min(found.get(name, value), value)
    return {**found, **_of_monitors(session)}


def _of_monitors(session: Session) -> Mapping[str, Decimal]:
    """What monitors that add up still leave."""
    found: dict[str, Decimal] = {}
    for text, units in session.course.memory.left_of_sums():
        name = text.removeprefix("limit ").rpartition("<=")[0].strip()
        left = Decimal(format_decimal(units, PLACES))
        # Of two limits on one sum the tighter one counts.
        found[name] = min(found.get(name, left), left)
    return found


class Inspection:
    """The questions of a gate; :class:`tcc_runtime.gate.gate.Gate` is what changes a session.

    Args:
        policy: of its artifact.
        access: the session.
    """

    def __init__(self, policy: Policy, access: Access) -> None:
        self._policy = policy
        self._access = access
        self._told: set[bytes] = set()  # heads that others may have kept

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now; a call that is under way counts as unknown."""
        access = self._access
        with access.lock:
            trouble = access.look()
            if trouble is not None:
                return trouble
            asked = {} if arguments is None else arguments
            found = decide(access.follower, tool, asked, access.clock, kept=False)
            if isinstance(found, Permitted):
                lacks = self._of_account(found)  # a refusal is false
                return decision(access.session, None, "", found.asked) if lacks is None else lacks
        return found

    def _of_account(self, found: Permitted) -> Decision | None:
        """Why a call may not be made for what other sessions have used; None: it may."""
        access, session = self._access, self._access.session
        if access.across is None:
            return None
        draws = drawn(access, found)
        try:
            lacks = access.across.lacks(draws, found.at_ms or access.clock())
        except Rejected as error:
            return decision(session, Code.NOT_WRITTEN, clip(error, 200))
        if lacks is None:
            return None
        return decision(session, Code.MONITOR_FORBIDS, lacks.limit.text, found.asked)

    def allowed(self) -> tuple[Allowed, ...]:
        """The calls that plans allow now, one for each listed call, in order of their texts."""
        with self._access.lock:
            session = self._session()
            if session is None or session.ended or session.lost:
                return ()
            held = session.held
        return self._policy.allowed(held)

    def tools(self) -> tuple[str, ...]:
        """The names of the tools of those calls, in order."""
        return tuple(dict.fromkeys(found.tool for found in self.allowed()))

    def allowed_tools(
        self, api: str, tools: Iterable[Mapping[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Definitions of the tools that may be called now, narrowed to what :meth:`allowed` has.

        Args:
            api: `openai`, `openai-responses`, `anthropic` or `mcp`: whose form they have.
            tools: your own definitions, in any of these forms, for descriptions and for schemas of
                `json` parameters.

        Raises:
            SettingsError: there is no such API.
        """
        return schemas.definitions(self.artifact.core, self.allowed(), api, tools)

    def tool_choice(self, api: str = "openai") -> dict[str, Any] | str:
        """What says the same to an API that keeps its list of tools, and the prompt's cache.

        Returns:
            ``allowed_tools`` with the names; "none" where nothing may be called.

        Raises:
            SettingsError: the API has nothing of the kind.
        """
        return schemas.choice(self.tools(), api)

    @property
    def may_finish(self) -> bool:
        """Whether the session may end here."""
        with self._access.lock:
            session = self._session()
            return session is not None and not session.ended and session.may_finish()

    @property
    def remaining(self) -> dict[str, int | Decimal]:
        """What the limits still leave, with unknown outcomes counted."""
        self._looked_at()
        with self._access.lock:
            return remaining(self._access.session)

    @property
    def history(self) -> tuple[Happened, ...]:
        """The calls so far."""
        self._looked_at()
        with self._access.lock:
            return history(self._access.session)

    @property
    def head(self) -> str:
        """The last head of the ledger that the disk has, hex; reading it waits for nothing.

        Whoever has it can tell whether a record before it was changed.
        """
        self._looked_at()
        head = self._access.journal.synced
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
        with self._access.lock:
            if sought not in self._told and self._access.journal.had(sought):
                self._told.add(sought)
        return sought in self._told

    def outcome_of(self, ref: str) -> Outcome | None:
        """The outcome of the call with this id of the caller's; None where there is none."""
        seq = self.seq_of(ref)
        with self._access.lock:
            return None if seq is None else self._access.session.made[seq - 1].outcome

    def seq_of(self, ref: str) -> int | None:
        """The number of the call with this id of the caller's; None where there is none."""
        self._looked_at()
        with self._access.lock:
            follower = self._access.follower
            return follower.refs.get(follower.writer.reference(ref))

    def word(self) -> tuple[str, ...]:
        """The calls that were done, in order, canonical texts: what a search begins after.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
        """
        with self._access.lock:
            session = self._session()
            word = None if session is None else session.word()
        if word is None:
            raise ValueError("it is not known where the session is: resolve what is unknown first")
        return tuple([self.artifact.texts[call] for call in word])

    def key_of(self, seq: int) -> str:
        """The idempotency key of a call, made or to be made: that of its permit."""
        with self._access.lock:
            return self._access.follower.writer.call_key(seq)

    def is_call(self, seq: int, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the session's call of that number has these arguments, the open ones too."""
        self._looked_at()
        with self._access.lock:
            return is_call(self._access.follower, seq, tool, arguments)

    @property
    def artifact(self) -> Artifact:
        """What the session is held to."""
        return self._policy.artifact

    def _looked_at(self) -> None:
        """What others have written to its ledger is read."""
        with self._access.lock:
            self._session()

    def _session(self) -> Session | None:
        """The session as its ledger has it; None where that cannot be said.

        The lock is kept for as long as it is asked anything: where it may be is found when that is
        asked, which a call of another thread must not do at the same time.
        """
        return self._access.session if self._access.look() is None else None


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
            whether it is new; a session that was reopened has the one that it began with.

        Raises:
            ResumeError: the session has another one.
            SettingsError: a setting is out of its range.
            Rejected: A102 a model names an adapter that is not among them.
            Refused: R303, R305, R306.
        """
        drawn_on = None if account is None else (account.id, account.caps)
        found = budget_of(self._policy.core, caps, atoms, adapters, drawn_on)
        access = self._access
        if access.follower.parent is not None:
            raise SettingsError("parent", "the budget of the parent's gate", "one of the child's")
        ticket = access.enter_alone()
        try:
            with access.lock:
                return changes.begin_budget(access, found, account)
        finally:
            access.leave(ticket)

    @property
    def spent(self) -> SpentAmounts | None:
        """What asks and calls of models have taken; None where there is no budget."""
        self._looked_at()
        executions = self._access.follower.executions
        return None if executions is None else executions.spent

    @property
    def budget_left(self) -> Mapping[str, Any]:
        """The remainder of each cap, as texts; empty where there is none."""
        self._looked_at()
        executions = self._access.follower.executions
        return {} if executions is None else executions.left()

    @property
    def limits(self) -> Mapping[str, Any]:
        """The settings of searches that follow from the budget; none where there is none."""
        executions = self._access.follower.executions
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
        from tcc_runtime.run import search

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
        executions = self._access.follower.executions
        return None if executions is None else executions.drawing()

    def searched(self, run: Run, before: SpentAmounts | None) -> None:
        """Notes what the asks of a search took, where there is a budget and they took anything.

        Args:
            before: what was spent when it began, and is in what the run has spent.

        Raises:
            Refused: R303, R305, R306.
        """
        if run.spent is None or self._access.follower.executions is None:
            return
        then = SpentAmounts() if before is None else before
        took = SpentAmounts(
            price=run.spent.price - then.price,
            latency=run.spent.latency - then.latency,
            epsilon=run.spent.epsilon - then.epsilon,
        )
        if took == SpentAmounts() and not run.atoms:
            return
        access = self._access
        ticket = access.enter_alone()
        try:
            with access.lock:
                changes.note_search(access, took, run.atoms)
        finally:
            access.leave(ticket)
