"""Questions about a session, without effect: the calls allowed now, the history, what is left.

Text: docs/gate.md.  Each answer is about the session as its ledger is now, so the records of other
processes are read first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.policy.atoms import Atom
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.session.entries import listed_text
from tcc_certs.values.places import NONE, UNKNOWN
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate import schemas
from tcc_runtime.gate.admission import Permitted, decide, is_call, no_room
from tcc_runtime.gate.answers import Outcome
from tcc_runtime.gate.budget import adapters_in, atoms_in, budget_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed, Decision
from tcc_runtime.gate.remaining import Remainder, owed, remaining
from tcc_runtime.gate.session import Made, Session
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
    return tuple([_happened(session, at, made) for at, made in enumerate(session.made, 1)])


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
            found = decide(access.follower, tool, asked, access.clock)
            if isinstance(found, Permitted):
                lacks = self._of_account(found)  # a refusal is false
                return decision(access.session, None) if lacks is None else lacks
        return found

    def _of_account(self, found: Permitted) -> Decision | None:
        """Why a call may not be made for what other sessions have used; None: it may."""
        access, session = self._access, self._access.session
        if access.across is None:
            return None
        draws = access.across.draws(session.course, found.call)
        try:
            lacks = access.across.lacks(draws, found.call.at_ms or access.clock())
        except Rejected as error:
            return decision(session, Code.NOT_WRITTEN, clip(error, 200))
        return None if lacks is None else no_room(session, lacks.limit.number, found)

    def allowed(self) -> tuple[Allowed, ...]:
        """The calls that are allowed now, one for each listed call, in order of their texts.

        A call with open arguments may still be refused by what these are.
        """
        with self._access.lock:
            session = self._session()
            if session is None or session.ended or session.lost:
                return ()
            return session.allowed(self._access.clock())

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
            session, now = self._session(), self._access.clock()
            return session is not None and not session.ended and session.may_finish(now)

    @property
    def remaining(self) -> dict[str, Remainder]:
        """What each limit still leaves, by the text of its statement (:mod:`.remaining`)."""
        self._looked_at()
        with self._access.lock:
            return remaining(self._access.session, self._access.clock())

    @property
    def owed(self) -> list[dict[str, Any]]:
        """The obligations that are open: `text`, `because`, and `due_ms` if it has a deadline."""
        self._looked_at()
        with self._access.lock:
            return owed(self._access.session, self._access.clock())

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
