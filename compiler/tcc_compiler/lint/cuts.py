"""Redundant statements that `plan` is written anew for: `last`, counts, `unless`, limits over sets.

Such a statement takes words from the plans, or asks for words that they are, and is redundant if
the plans without it, with all others applied, have none of the words that it takes, or no other
ones than those that it asks for; beside strict tools, if the plans are the same.
Specification: docs/lint.md. Cost: that of compiling twice for each such statement, and for one that
is redundant once more, and about as many times as the logarithm of the statements to explain it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tcc_certs.core.model import Both, Diff, Expr
from tcc_compiler.automata.table import Machine, Table
from tcc_compiler.lint.plans import (
    Automaton,
    Cut,
    PlanAutomata,
    SourceStatement,
    Subset,
    same_plans,
)
from tcc_compiler.lint.redundancy import Redundancy, Redundant, Unsettled
from tcc_compiler.relax.contradiction import irreducible
from tcc_compiler.resources import CompileRefused, Statement


class Cuts:
    """The statements of a grammar that its plan is written anew for.

    Args:
        stated: all of its statements.
        full: the smallest table of the plans, before strict tools are considered.
    """

    def __init__(self, plans: PlanAutomata, stated: Sequence[SourceStatement], full: Table) -> None:
        self._plans, self._stated, self._full = plans, stated, full
        self._every: tuple[Statement, ...] = (*plans.limits, *plans.orders)

    def redundant(self) -> Redundancy:
        """Those without which the plans are the same."""
        found, unsettled = [], []
        for item in self._stated:
            if not item.cuts:
                continue
            try:
                if self._same(item.cuts, self._every):
                    found.append(Redundant(statement=item))
            except CompileRefused as refusal:
                unsettled.append(Unsettled(statement=item, why=refusal.message))
        return Redundancy(redundant=tuple(found), undecided=tuple(unsettled))

    def removable(
        self, redundant: Sequence[Redundant], removed: Iterable[SourceStatement]
    ) -> list[SourceStatement]:
        """Those that may be removed together, the last of the text first.

        Args:
            removed: statements of the core that are removed, too.
        """
        gone = {id(part) for item in removed for part in item.own}
        kept = tuple([part for part in self._every if id(part) not in gone])
        out: list[SourceStatement] = []
        for one in reversed(redundant):
            cuts = [cut for item in (*out, one.statement) for cut in item.cuts]
            try:
                if self._same(cuts, kept):
                    out.append(one.statement)
            except CompileRefused:
                continue
        return out

    def implied_by(self, item: SourceStatement) -> list[SourceStatement] | None:
        """Statements that imply it together with the plan expression and the signatures.

        Returns:
            an irreducible list; None beyond the limits, or where strict tools are why.
        """
        others = [one for one in self._stated if one is not item and (one.own or one.cuts)]
        every = [cut for one in self._stated for cut in one.cuts]

        def enough(chosen: Sequence[SourceStatement]) -> bool:
            left = {id(cut) for one in chosen for cut in one.cuts}
            parts = tuple([part for one in chosen for part in one.parts])
            dropped = [cut for cut in every if id(cut) not in left]
            return not self._more(item.cuts, dropped, parts)

        try:
            return irreducible(others, enough) if enough(others) else None
        except CompileRefused:
            return None

    def _same(self, cuts: Sequence[Cut], parts: tuple[Statement, ...]) -> bool:
        """Whether the plans without these, of these statements of the core, are those of all."""
        if not self._more(cuts, cuts, parts):
            return True
        if not self._plans.strict:
            return False
        wider = self._left(_without(self._plans.written.plan, cuts), parts)
        if not isinstance(wider, Table):
            return False
        return same_plans(self._plans.with_answers(wider), self._plans.with_answers(self._full))

    def _more(
        self, cuts: Iterable[Cut], dropped: Collection[Cut], parts: tuple[Statement, ...]
    ) -> bool:
        """Whether the plans without some have a word that one of these takes away."""
        plan = _without(self._plans.written.plan, dropped)
        return any(self._left(_taken(plan, cut), parts) is not None for cut in cuts)

    def _left(self, plan: Expr, parts: tuple[Statement, ...]) -> Automaton | None:
        """The plans of an expression under statements of the core; None without any.

        Raises:
            Refused: beyond the limits.
        """
        signed = self._plans.core.start is not None
        planned = self._plans.planned(plan)
        try:
            return planned.remaining(Subset(parts=parts, signed=signed))
        except CompileRefused as refusal:
            if refusal.code != "TCC401":
                raise
            return Machine(start=0, accept=[True], edges=[()])  # infinitely many


def _taken(plan: Expr, cut: Cut) -> Expr:
    """The plans that a statement takes away."""
    if not cut.asked:
        return Both((plan, cut.words))
    if isinstance(plan, Diff):
        return Diff(plan.base, (*plan.minus, cut.words))
    return Diff(plan, (cut.words,))


def _without(plan: Expr, cuts: Iterable[Cut]) -> Expr:
    """The plan expression without what statements take away, or ask for; what the grammar's own
    `plan` has stands before."""
    base, *minus = (plan.base, *plan.minus) if isinstance(plan, Diff) else (plan,)
    both: list[Expr] = list(base.items) if isinstance(base, Both) else [base]
    for cut in cuts:
        found: list[Expr] = both if cut.asked else minus
        del found[len(found) - 1 - found[::-1].index(cut.words)]
    base = both[0] if len(both) == 1 else Both(tuple(both))
    return Diff(base, tuple(minus)) if minus else base
