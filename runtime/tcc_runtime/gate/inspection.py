"""Questions about a session that change nothing: the calls allowed now, the history, the rest of
limits.

Text: docs/gate.md.  Each answer first reads the records that other processes have written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcc_certs.policy.atoms import Atom
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.entries import listed_text
from tcc_certs.values.places import NONE, UNKNOWN
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate import schemas
from tcc_runtime.gate.admission import Held, decide, is_call, no_room_for, pending_decision
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.budget import adapters_in, atoms_in, budget_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed, Decision
from tcc_runtime.gate.remaining import Remainder, owed, remaining
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.session.made import MOST_TOLD, Made
from tcc_runtime.gate.session_access import Access, changes, decision
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.drawing import Drawing
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.settings.settings import Settings

# The history.


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A call of the session.

    Attributes:
        seq: the number of the call, from 1.
        call: its canonical text, without listed answers.
        outcome: ``done``, ``failed``, ``unknown``; ``open`` while it is under way.
        observed: its listed answers, as texts of the grammar.
        unforeseen: whether a part of its answer is unknown.
        model: the model that made the call, or ''.
    """

    seq: int
    call: str
    outcome: str
    observed: Mapping[str, str]
    unforeseen: bool
    model: str = ""


def history(session: Session) -> tuple[Happened, ...]:
    """Return the last calls of a session, at most 1,000."""
    return tuple([_happened(session, seq, made) for seq, made in session.made.latest()])


def _happened(session: Session, seq: int, made: Made) -> Happened:
    observed: dict[str, str] = {}
    if made.outcome == "done":
        for field in session.policy.tables.numbered(made.offer.tool).observed:
            state = made.call.answers[field.name]
            if state != UNKNOWN:
                observed[field.name] = "" if state == NONE else listed_text(field.values, state)
    return Happened(
        seq=seq,
        call=made.offer.text,
        outcome="open" if seq in session.under_way else made.outcome,
        observed=observed,
        unforeseen=made.unforeseen,
        model=made.model,
    )


class Inspection:
    """The members of a gate that answer questions and change nothing.

    Args:
        policy: the policy of the artifact.
        access: the session.
    """

    def __init__(self, policy: Policy, access: Access) -> None:
        self._policy = policy
        self._access = access
        self._told: set[bytes] = set()  # the heads that callers have read

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Decide a call without making it; a call under way counts as unknown."""
        access = self._access
        with access.lock:
            trouble = access.look()
            if trouble is not None:
                return trouble
            asked = {} if arguments is None else arguments
            found = decide(access.follower, tool, asked, access.clock)
            if isinstance(found, Decision):
                return found
            lacks = no_room_for(access, found)
            if lacks is not None:
                return lacks
            if isinstance(found, Held):
                return pending_decision(access.session, found)
            return decision(access.session, None)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The open questions to persons, the oldest first."""
        with self._access.lock:
            session = self._session()
            if session is None or session.ended:
                return ()
            return session.questions.open(session.at(self._access.clock()))

    def is_only_question(self, id: str) -> bool:
        """Return whether a verdict without an id can only mean the question with this id."""
        with self._access.lock:
            session = self._session()
            now_ms = 0 if session is None else session.at(self._access.clock())
            return session is not None and session.questions.is_only(id, now_ms)

    def allowed(self) -> tuple[Allowed, ...]:
        """Return the listed calls that are allowed now, ordered by their texts.

        The gate may still refuse such a call because of its open arguments.
        """
        with self._access.lock:
            session = self._session()
            if session is None or session.ended or session.lost:
                return ()
            return session.allowed(self._access.clock())

    def tools(self) -> tuple[str, ...]:
        """Return the names of the tools of :meth:`allowed`, in its order."""
        return tuple(dict.fromkeys(found.tool for found in self.allowed()))

    def allowed_tools(
        self, api: str, tools: Iterable[Mapping[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Return definitions of the tools that may be called now, restricted to :meth:`allowed`.

        Args:
            api: `openai`, `openai-responses`, `anthropic` or `mcp`: the form of the definitions.
            tools: your own definitions in any of these forms.  The result copies their
                descriptions, and their schemas of `json` fields.

        Raises:
            SettingsError: the API is unknown.
        """
        return schemas.definitions(self.artifact.core, self.allowed(), api, tools)

    def tool_choice(self, api: str = "openai") -> dict[str, Any] | str:
        """Return the `tool_choice` that restricts an API to :meth:`tools`, so that its prompt cache
        stays valid.

        Returns:
            ``allowed_tools`` with the names; "none" if no tool may be called.

        Raises:
            SettingsError: the API cannot express this.
        """
        return schemas.choice(self.tools(), api)

    @property
    def may_finish(self) -> bool:
        """True if the session may end here."""
        with self._access.lock:
            session, now = self._session(), self._access.clock()
            return session is not None and not session.ended and session.may_finish(now)

    @property
    def remaining(self) -> dict[str, Remainder]:
        """The remainder of each limit, by the text of its statement (:mod:`.remaining`)."""
        self._looked_at()
        with self._access.lock:
            access = self._access
            return remaining(access.session, access.clock(), access.across)

    @property
    def owed(self) -> list[dict[str, Any]]:
        """The obligations that are open: `text`, `because`, and `due_ms` if it has a deadline."""
        self._looked_at()
        with self._access.lock:
            return owed(self._access.session, self._access.clock())

    @property
    def history(self) -> tuple[Happened, ...]:
        """The last 1,000 calls so far; the ledger has all."""
        self._looked_at()
        with self._access.lock:
            return history(self._access.session)

    @property
    def kept_history(self) -> tuple[Happened, ...]:
        """The calls that this gate remembers: the last ones, and all calls with unknown
        outcomes.
        """
        self._looked_at()
        with self._access.lock:
            session = self._access.session
            return tuple([_happened(session, seq, made) for seq, made in session.made.items()])

    @property
    def call_count(self) -> int:
        """The number of calls so far."""
        self._looked_at()
        return len(self._access.session.made)

    def happened(self, seq: int) -> Happened:
        """Return a call by its number, from 1.

        Raises:
            KeyError: no call has the number, or it is not in :attr:`kept_history`.
        """
        self._looked_at()
        with self._access.lock:
            session = self._access.session
            return _happened(session, seq, session.made.of(seq))

    @property
    def head(self) -> str:
        """The last head of the ledger that is on the disk, hex.  Does not wait for the disk.

        Store it elsewhere to check later that no earlier record of the ledger was changed.
        """
        self._looked_at()
        head = self._access.journal.synced
        self._told.add(head)
        return head.hex()

    def is_ancestor(self, head: str) -> bool:
        """Return whether the ledger had this head once, so that the head belongs to this session.

        Cost: a look-up if :attr:`head` returned this head; otherwise one pass over the ledger.
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
        """Return the outcome of the call with this `ref`; None: the session has no such call."""
        seq = self.seq_of(ref)
        with self._access.lock:
            return None if seq is None else self._access.session.made.outcome(seq)

    def seq_of(self, ref: str) -> int | None:
        """Return the number of the call with this `ref`; None: the session has no such call."""
        self._looked_at()
        with self._access.lock:
            follower = self._access.follower
            return follower.refs.get(follower.writer.reference(ref))

    def word(self) -> tuple[str, ...]:
        """Return the canonical texts of the calls that were done, in order.  A search continues
        them.

        Raises:
            ValueError: an outcome is unknown, so the position in the plan is unknown; or the
                session is so long that the gate does not remember all calls.
        """
        with self._access.lock:
            session = self._session()
            word = None if session is None else session.word()
            is_long = session is not None and not session.made.is_complete
        if is_long:
            raise ValueError(f"a session of more than {MOST_TOLD} calls is not planned")
        if word is None:
            raise ValueError("an outcome is unknown: resolve it first")
        return tuple([self.artifact.texts[call] for call in word])

    def key_of(self, seq: int) -> str:
        """Return the idempotency key of the call `seq`, also before the call is made."""
        with self._access.lock:
            return self._access.follower.writer.call_key(seq)

    def is_call(self, seq: int, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the call `seq` has this tool and these arguments."""
        self._looked_at()
        with self._access.lock:
            return is_call(self._access.follower, seq, tool, arguments)

    @property
    def artifact(self) -> Artifact:
        """The artifact that the gate enforces."""
        return self._policy.artifact

    def _looked_at(self) -> None:
        """Read new records of other processes."""
        with self._access.lock:
            self._session()

    def _session(self) -> Session | None:
        """Return the session after reading all records; None: the gate is broken or closed.

        The caller holds the lock while it uses the session, because positions are computed on
        demand.
        """
        return self._access.session if self._access.look() is None else None


# The budget.


class Budgeted(Inspection):
    """The part of a gate for calls that models make, within a budget."""

    def budget(
        self,
        *,
        atoms: Sequence[Atom] = (),
        adapters: Iterable[Adapter] | None = None,
        account: Account | None = None,
        **caps: Any,
    ) -> bool:
        """Begin a budget: the gate then chooses a model for each call of a tool that has models.

        Args:
            atoms: the privacy mechanisms that were applied before the session.
            adapters: adapters that models may run with, from a registry; None: adapters are not
                checked.
            account: an account that calls draw on, shared with other sessions and runs.
            caps: `price_cap`, `sla_ms`, `epsilon_cap`, the weights, `margin` and `delta`: see
                :func:`tcc.search`.

        Returns:
            True if the budget is new; False if the session already has the same budget, and
            continues with it.

        Raises:
            ResumeError: the session has another budget.
            SettingsError: a setting is outside its range, or the gate is a child's.
            Rejected: A102: the adapter of a model is not among `adapters`.
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
        """The cost of all calls and questions of models so far; None without a budget."""
        self._looked_at()
        executions = self._access.follower.executions
        return None if executions is None else executions.spent

    @property
    def budget_left(self) -> Mapping[str, Any]:
        """The remainder of each cap, as texts; empty without a budget."""
        self._looked_at()
        executions = self._access.follower.executions
        return {} if executions is None else executions.left()

    @property
    def limits(self) -> Mapping[str, Any]:
        """The settings that the budget gives to searches; empty without a budget."""
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
        """Search the best continuations (see :func:`tcc.search`); this makes no call.

        With a budget, the questions of the search are limited by its remainder, and counted.

        Args:
            seed: 32 bytes; None draws one.
            quoter, atoms, adapters, settings: see :func:`tcc.search`.  ``after`` is set to the
                calls of the session.  With a budget, the search takes caps, weights, `margin`,
                `delta` and `atoms` from it, unless the costs of the artifact are fixed.

        Raises:
            ValueError: see :meth:`word`.
            SettingsError: a setting is out of its range, or the budget has another value for it.
            Refused: R303, R305, R306: the cost of the search cannot be recorded.
            Rejected: A101 to A107, of the registry; E101 to E104, of atoms.
        """
        from tcc_runtime.run import search

        texts = self.word()
        drawn = os.urandom(32) if seed is None else seed
        told: dict[str, Any] = {"atoms": atoms_in(atoms), **settings}
        spent = self.spent
        if not self.artifact.fixed_costs:
            for name, value in self.limits.items():
                if name in told and told[name] not in ((), value):
                    raise SettingsError(name, f"that of the budget, {value}", told[name])
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
        """Return the reservations for the questions of the next search; None without an account."""
        executions = self._access.follower.executions
        return None if executions is None else executions.drawing()

    def searched(self, run: Run, before: SpentAmounts | None) -> None:
        """Record the cost of a search's questions, if the session has a budget.

        Args:
            before: the cost when the search began; `run.spent` includes it.

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
