"""The budget of a gate's session: who makes calls within it, and what is left of it.

Text: docs/budgets.md; what it writes: docs/spec/session.md, section 8.
Cost: a record of the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tcc_certs.core.atoms import Atom
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.gate.budget import adapters_in, atoms_in, budget_of
from tcc_runtime.gate.changes import begin_budget, note_search
from tcc_runtime.gate.inspection import Inspection
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.controller import Spending
from tcc_runtime.pricing.drawing import Drawing
from tcc_runtime.pricing.quotes import Quoter
from tcc_runtime.settings.settings import Settings


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
            whether it is new; a session that was taken up has the one that it began with.

        Raises:
            ResumeError: the session has another one.
            SettingsError: a setting is out of its range.
            Rejected: A102 a model names an adapter that is not among them.
            Refused: R303, R305, R306.
        """
        drawn_on = None if account is None else (account.id, account.caps)
        found = budget_of(self._policy.core, caps, atoms, adapters, drawn_on)
        shared = self._shared
        ticket = shared.enter("")
        try:
            with shared.lock:
                return begin_budget(shared, found, account)
        finally:
            shared.leave(ticket)

    @property
    def spent(self) -> Spending | None:
        """What asks and calls of models have taken; None where there is no budget."""
        self._looked_at()
        executions = self._shared.follower.executions
        return None if executions is None else executions.spent

    @property
    def budget_left(self) -> Mapping[str, Any]:
        """What is left of each cap, as texts; empty where there is none."""
        self._looked_at()
        executions = self._shared.follower.executions
        return {} if executions is None else executions.left()

    @property
    def limits(self) -> Mapping[str, Any]:
        """The settings of searches that follow from the budget; none where there is none."""
        executions = self._shared.follower.executions
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

        In a session with a budget its asks are held to what is left of that, and counted.

        Args:
            seed: 32 bytes; None draws one.
            quoter, atoms, adapters, settings: as of :func:`tcc.search`; ``after`` is the session's,
                and in a session with a budget the caps, `delta` and `atoms` are those of that.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
            SettingsError: a setting is out of its range.
            Rejected: A101 to A107, of the registry; E101 to E104, of atoms.
        """
        from tcc_runtime.search import search

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
        executions = self._shared.follower.executions
        return None if executions is None else executions.drawing()

    def searched(self, run: Run, before: Spending | None) -> None:
        """Notes what the asks of a search took, where there is a budget and they took anything.

        Args:
            before: what was spent when it began, and is in what the run has spent.

        Raises:
            Refused: R303, R305, R306.
        """
        if run.spent is None or self._shared.follower.executions is None:
            return
        then = Spending() if before is None else before
        took = Spending(
            price=run.spent.price - then.price,
            latency=run.spent.latency - then.latency,
            epsilon=run.spent.epsilon - then.epsilon,
        )
        if took == Spending() and not run.atoms:
            return
        shared = self._shared
        ticket = shared.enter("")
        try:
            with shared.lock:
                note_search(shared, took, run.atoms)
        finally:
            shared.leave(ticket)
