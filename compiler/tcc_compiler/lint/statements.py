"""Lint rules TCC704, TCC705 and TCC706: limits and orders without effect, and void statements.

A statement that a gate enforces as a monitor has an effect as soon as the monitor may refuse a
call, whatever the automaton says.  A statement that `plan` is written anew for (`last`, counts,
`unless`, limits over sets) takes words from the plans, or asks for words that they are.  It is
redundant if the plans without it, with all others applied, have none of the words that it takes, or
no other ones than those that it asks for; beside strict tools, if the plans are the same.
Specification: docs/lint.md. Cost: that of :mod:`tcc_compiler.lint.redundancy`; for each statement
written anew that of two compilations, for one that is redundant some more to explain it; one pass
over the edges for each monitor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set as AbstractSet
from fractions import Fraction

import numpy as np

from tcc_certs.core import model
from tcc_certs.core.model import Both, Diff, Expr
from tcc_certs.values.declared import NumberType
from tcc_compiler.automata.constraint.statements import pattern_text
from tcc_compiler.automata.table import Machine, Table, best_to_go, exact_array
from tcc_compiler.counting import used_calls
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Region, Source, Span
from tcc_compiler.lint import redundancy
from tcc_compiler.lint.finding import LintFinding, removal, statement_text, sum_text
from tcc_compiler.lint.plans import (
    Automaton,
    Cut,
    PlanAutomata,
    SourceStatement,
    Subset,
    same_plans,
)
from tcc_compiler.relax.contradiction import irreducible
from tcc_compiler.resolve.program import Program
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

    def redundant(self) -> redundancy.Redundancy:
        """Those without which the plans are the same."""
        found, unsettled = [], []
        for item in self._stated:
            if not item.cuts:
                continue
            try:
                if self._same(item.cuts, self._every):
                    found.append(redundancy.Redundant(statement=item))
            except CompileRefused as refusal:
                unsettled.append(redundancy.Unsettled(statement=item, why=refusal.message))
        return redundancy.Redundancy(redundant=tuple(found), undecided=tuple(unsettled))

    def removable(
        self, redundant: Sequence[redundancy.Redundant], removed: Iterable[SourceStatement]
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


class StatementRules:
    """The rules on the statements of a grammar that has plans.

    Attributes:
        undecided: the text of each statement that the limits left undecided, and the reason.
    """

    def __init__(
        self,
        plans: PlanAutomata,
        statements: Sequence[SourceStatement],
        program: Program,
        sources: Sequence[Source],
    ) -> None:
        self.undecided: list[tuple[str, str]] = []
        self._plans = plans
        self._statements = statements
        self._sources = sources
        self._plan = None if program.plan is None else program.plan.region

    def findings(self, full: Table, table: Table) -> Iterator[LintFinding]:
        """TCC704, TCC705 and TCC706.

        Args:
            full: the plans before strict tools are considered.
            table: the plans.
        """
        found = redundancy.find_redundant(self._plans, self._statements, full)
        cuts = self._cuts = Cuts(self._plans, self._statements, full)
        more = cuts.redundant()
        undecided = (*found.undecided, *more.undecided)
        self.undecided += [(self._text(one.statement), one.why) for one in undecided]
        unknown = {id(one.statement) for one in undecided}
        redundant = {id(one.statement): one for one in (*found.redundant, *more.redundant)}
        used = frozenset(used_calls(table, self._plans.letters))
        gone = redundancy.removable(self._plans, found.redundant)
        gone += cuts.removable(more.redundant, gone)
        removed = {id(item) for item in gone}
        explained = 0
        for item in self._statements:
            if id(item) in unknown:
                continue
            if item.repeats:
                yield self._repeated(item)
            elif item.monitors:
                # A gate enforces it, whatever the automaton says.
                if not item.own or id(item) in redundant:
                    yield from self._monitored(item, table)
            elif not item.parts and not item.cut:
                yield self._void(item, "it applies to no calls")
            elif id(item) in redundant:
                explained += 1
                with_reason = explained <= redundancy.MOST_EXPLAINED
                yield self._redundant(redundant[id(item)], used, with_reason, id(item) in removed)

    def _repeated(self, item: SourceStatement) -> LintFinding:
        others = [
            other
            for other in self._statements
            if (
                other is not item
                and any(part is mine for part in other.parts for mine in item.parts)
            )
            or (other is not item and any(m in other.monitors for m in item.monitors))
        ]
        first = min((other.region for other in others), default=item.region)
        exact = next((o for o in others if o.region == first), item)
        later = first < item.region and exact.parts == item.parts
        later = later and exact.monitors == item.monitors
        notes = [("stated here too", other.region) for other in others[:4]]
        code = "TCC704" if item.is_limit else "TCC705"
        message = f"{self._text(item)} repeats other statements"
        return self._finding(code, item, message, notes, fix=later)

    def _monitored(self, item: SourceStatement, table: Table) -> Iterator[LintFinding]:
        reasons = [never_refuses(self._plans, table, monitor) for monitor in item.monitors]
        if None in reasons:
            return
        if item.is_limit:
            message = f"{self._text(item)} is redundant: {reasons[0]}"
            yield self._finding("TCC704", item, message)
        else:
            yield self._void(item, reasons[0] or "")

    def _void(self, item: SourceStatement, why: str) -> LintFinding:
        return self._finding("TCC706", item, f"{self._text(item)} is void: {why}", fix=True)

    def _redundant(
        self, found: redundancy.Redundant, used: AbstractSet[int], explained: bool, removable: bool
    ) -> LintFinding:
        item = found.statement
        void = [_void_pattern(self._plans, part, used) for part in item.own]
        if not item.is_limit and void and None not in void:
            message = f"{self._text(item)} is void: no plan calls `{void[0]}`"
            return self._finding("TCC706", item, message, fix=removable)
        message = f"{self._text(item)} is redundant"
        limit = item.own[0] if item.own else None
        if found.reach is not None and isinstance(limit, model.Limit) and len(item.own) == 1:
            side = "less" if limit.least else "more"
            message += f": no plan has {side} than {sum_text(limit, found.reach)} without it"
        else:
            message += ": without it the plans are the same"
        code = "TCC704" if item.is_limit else "TCC705"
        notes = self._why(item) if explained else []
        return self._finding(code, item, message, notes, fix=removable)

    def _why(self, item: SourceStatement) -> list[tuple[str, Region]]:
        if item.cuts:
            implied = self._cuts.implied_by(item)
        else:
            implied = redundancy.implied_by(self._plans, item, self._statements)
        if implied is None:
            return []
        if not implied:
            text = "the plan expression implies it"
            return [] if self._plan is None else [(text, self._plan)]
        text = "this implies it" if len(implied) == 1 else "these imply it together"
        return [(text, other.region) for other in implied]

    def _text(self, item: SourceStatement) -> str:
        return statement_text(self._sources, item.region)

    def _finding(
        self,
        code: str,
        item: SourceStatement,
        message: str,
        notes: Sequence[tuple[str, Region]] = (),
        *,
        fix: bool = False,
    ) -> LintFinding:
        return LintFinding(
            diagnostic=Diagnostic(
                code=code,
                severity="warning",
                message=message,
                span=_span(self._sources, item.region),
                hint="take it out, or say in a comment why it stays",
                notes=tuple(
                    Note(message=text, span=_span(self._sources, at)) for text, at in notes
                ),
            ),
            fix=removal(item.region, self._sources[item.region.source]) if fix else (),
        )


def _span(sources: Sequence[Source], region: Region) -> Span:
    return sources[region.source].span(region)


def _void_pattern(plans: PlanAutomata, part: Statement, used: AbstractSet[int]) -> str | None:
    """A pattern of a statement that no plan has a call of, in words."""
    if isinstance(part, model.Limit):
        return None
    patterns = part.patterns if isinstance(part, model.ForbidNext) else (part.second, part.first)
    for pattern in patterns:
        if not any(call in used for call in model.members(plans.core.patterns[pattern])):
            return pattern_text(plans.core, pattern)
    return None


def selected(plans: PlanAutomata, chosen: model.Selection) -> list[int]:
    """The calls of a selection."""
    where = dict(chosen.where)
    return [
        number
        for number, call in enumerate(plans.core.calls)
        if call.tool == chosen.tool
        and all(call.values[place] in values for place, values in where.items())
    ]


def most_used(plans: PlanAutomata, table: Table, chosen: model.Selection) -> int:
    """The most calls of a selection in a plan.

    A letter may have calls of the selection and others: where it may stand, one of the first may.
    """
    weights = [0] * len(plans.letters.calls)
    for call in selected(plans, chosen):
        weights[plans.letters.letter[call]] = 1
    weight = exact_array(weights, len(table.levels) + 1).take(table.letter)
    return int(best_to_go(table, weight, np.maximum, plans.guard())[table.start])


def never_refuses(plans: PlanAutomata, table: Table, monitor: model.Monitor) -> str | None:
    """Why a monitor refuses no call of any session, in words; None where it may refuse one."""
    match monitor:
        case model.OrderMonitor(kind=kind, first=first, second=second):
            for side in (second,) if kind == "require" else (first, second):
                if not most_used(plans, table, side):
                    return f"no plan has such a call of `{plans.core.tools[side.tool].name}`"
        case model.UsesMonitor(calls=calls, value=value):
            most = most_used(plans, table, calls)
            if most <= value:
                return f"no plan has more than {most} such calls"
        case model.PolicyMonitor():
            return None  # no automaton tells
        case model.SumMonitor():
            return _sum_never_reached(plans, table, monitor)
    return None


def _sum_never_reached(plans: PlanAutomata, table: Table, monitor: model.SumMonitor) -> str | None:
    tool = plans.core.tools[monitor.tool]
    most = most_used(plans, table, model.Selection(tool=monitor.tool))
    if most == 0:
        return f"no plan calls `{tool.name}`"
    kind = next(item.type for item in tool.opened if item.name == monitor.parameter)
    if not isinstance(kind, NumberType) or kind.high is None:
        return None
    if most * Fraction(kind.high) > Fraction(monitor.value):
        return None
    return f"no plan has more than {most} such calls, of at most {kind.high} each"
