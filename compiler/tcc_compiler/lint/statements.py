"""Lint rules TCC704, TCC705 and TCC706: limits and orders without effect, and void statements.

A statement that a gate enforces as a monitor has an effect as soon as the monitor may refuse a
call, whatever the automaton says.
Specification: docs/lint.md. Cost: that of :mod:`tcc_compiler.lint.redundancy`; one pass over the
edges for each monitor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

import numpy as np

from tcc_certs.core import model
from tcc_certs.values.declared import NumberType
from tcc_compiler.automata.constraint.statements import pattern_text
from tcc_compiler.automata.table import Table, best_to_go, exact_array
from tcc_compiler.counting import used_calls
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Region, Source, Span
from tcc_compiler.lint.cuts import Cuts
from tcc_compiler.lint.finding import LintFinding, removal, statement_text, sum_text
from tcc_compiler.lint.plans import PlanAutomata, SourceStatement
from tcc_compiler.lint.redundancy import (
    MOST_EXPLAINED,
    Redundant,
    find_redundant,
    implied_by,
    removable,
)
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources import Statement


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
        found = find_redundant(self._plans, self._statements, full)
        cuts = self._cuts = Cuts(self._plans, self._statements, full)
        more = cuts.redundant()
        undecided = (*found.undecided, *more.undecided)
        self.undecided += [(self._text(one.statement), one.why) for one in undecided]
        unknown = {id(one.statement) for one in undecided}
        redundant = {id(one.statement): one for one in (*found.redundant, *more.redundant)}
        used = frozenset(used_calls(table, self._plans.letters))
        gone = removable(self._plans, found.redundant)
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
                with_reason = explained <= MOST_EXPLAINED
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
        self, found: Redundant, used: AbstractSet[int], explained: bool, removable: bool
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
            implied = implied_by(self._plans, item, self._statements)
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
