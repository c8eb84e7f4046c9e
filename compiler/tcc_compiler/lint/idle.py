"""Statements that say nothing, as findings: those that never bite, void ones, contradictory ones.

Specification: docs/lint.md.  Cost: that of :mod:`tcc_compiler.lint.biting`,
:mod:`tcc_compiler.lint.redundant` and :mod:`tcc_compiler.lint.contradiction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from tcc_certs.core.model import ForbidNext, Limit, members
from tcc_compiler.automata.constraint.statements import pattern_text
from tcc_compiler.automata.table import Table
from tcc_compiler.counting.count import used_calls
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region, Span
from tcc_compiler.lint.biting import Idle, find_idle
from tcc_compiler.lint.contradiction import contradiction
from tcc_compiler.lint.finding import Finding, removed
from tcc_compiler.lint.monitors import never_refuses
from tcc_compiler.lint.plans import Plans
from tcc_compiler.lint.redundant import MOST_EXPLAINED, implied_by, removable
from tcc_compiler.lint.statements import Stated
from tcc_compiler.lint.texts import statement_text, sum_text
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources.place import Statement


class Statements:
    """The statements of a grammar that has plans.

    Attributes:
        undecided: statements of which it was not found out, each with the reason.
    """

    def __init__(
        self,
        plans: Plans,
        stated: Sequence[Stated],
        program: Program,
        sources: Sequence[Source],
    ) -> None:
        self.undecided: list[tuple[str, str]] = []
        self._plans = plans
        self._stated = stated
        self._sources = sources
        self._plan = None if program.plan is None else program.plan.region

    def findings(self, full: Table, table: Table) -> Iterator[Finding]:
        """TCC704, TCC705 and TCC706.

        Args:
            full: the plans without what is asked of strict tools.
            table: the plans.
        """
        answer = find_idle(self._plans, self._stated, full)
        self.undecided += [(self._text(open_.stated), open_.why) for open_ in answer.undecided]
        unknown = {id(open_.stated) for open_ in answer.undecided}
        idle = {id(found.stated): found for found in answer.idle}
        used = frozenset(used_calls(table, self._plans.letters))
        gone = {id(item) for item in removable(self._plans, answer.idle)}
        explained = 0
        for item in self._stated:
            if id(item) in unknown:
                continue
            if item.repeats:
                yield self._repeated(item)
            elif item.monitors:
                # A gate holds it whatever the automaton says.
                if not item.own or id(item) in idle:
                    yield from self._held(item, table)
            elif not item.parts:
                yield self._void(item, "nothing that it speaks of goes together")
            elif id(item) in idle:
                explained += 1
                told = explained <= MOST_EXPLAINED
                yield self._idle(idle[id(item)], used, told, id(item) in gone)

    def _repeated(self, item: Stated) -> Finding:
        others = [
            other
            for other in self._stated
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
        notes = [("said here, too", other.region) for other in others[:4]]
        code = "TCC704" if item.is_limit else "TCC705"
        message = f"{self._text(item)} says what is said already"
        return self._finding(code, item, message, notes, fix=later)

    def _held(self, item: Stated, table: Table) -> Iterator[Finding]:
        reasons = [never_refuses(self._plans, table, monitor) for monitor in item.monitors]
        if None in reasons:
            return
        if item.is_limit:
            message = f"{self._text(item)} never bites: {reasons[0]}"
            yield self._finding("TCC704", item, message)
        else:
            yield self._void(item, reasons[0] or "")

    def _void(self, item: Stated, why: str) -> Finding:
        return self._finding("TCC706", item, f"{self._text(item)} is void: {why}", fix=True)

    def _idle(
        self, found: Idle, used: AbstractSet[int], explained: bool, removable: bool
    ) -> Finding:
        item = found.stated
        void = [_void_pattern(self._plans, part, used) for part in item.own]
        if not item.is_limit and None not in void:
            message = f"{self._text(item)} is void: no plan calls `{void[0]}`"
            return self._finding("TCC706", item, message, fix=removable)
        message = f"{self._text(item)} never bites"
        limit = item.own[0]
        if found.reach is not None and isinstance(limit, Limit) and len(item.own) == 1:
            side = "less" if limit.least else "more"
            message += f": no plan has {side} than {sum_text(limit, found.reach)} without it"
        else:
            message += ": without it the plans are the same"
        code = "TCC704" if item.is_limit else "TCC705"
        notes = self._why(item) if explained else []
        return self._finding(code, item, message, notes, fix=removable)

    def _why(self, item: Stated) -> list[tuple[str, Region]]:
        implied = implied_by(self._plans, item, self._stated)
        if implied is None:
            return []
        if not implied:
            text = "the plan expression sees to it"
            return [] if self._plan is None else [(text, self._plan)]
        text = "this implies it" if len(implied) == 1 else "these imply it together"
        return [(text, other.region) for other in implied]

    def _text(self, item: Stated) -> str:
        return statement_text(self._sources, item.region)

    def _finding(
        self,
        code: str,
        item: Stated,
        message: str,
        notes: Sequence[tuple[str, Region]] = (),
        *,
        fix: bool = False,
    ) -> Finding:
        return Finding(
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
            fix=removed(item.region, self._sources[item.region.source]) if fix else (),
        )


def _span(sources: Sequence[Source], region: Region) -> Span:
    return sources[region.source].span(region)


def _void_pattern(plans: Plans, part: Statement, used: AbstractSet[int]) -> str | None:
    """A pattern of a statement that no plan has a call of, in words."""
    if isinstance(part, Limit):
        return None
    patterns = part.patterns if isinstance(part, ForbidNext) else (part.second, part.first)
    for pattern in patterns:
        if not any(call in used for call in members(plans.core.patterns[pattern])):
            return pattern_text(plans.core, pattern)
    return None


def contradictory(
    plans: Plans, stated: Sequence[Stated], program: Program, sources: Sequence[Source]
) -> Iterator[Finding]:
    """TCC707: a smallest set of statements that leave no plan, at the last of them.

    Raises:
        Refused: it takes too much to tell.
    """
    found = contradiction(plans, stated, program.plan, program.goal)
    if found is None:
        return
    *others, last = found.members
    texts = [statement_text(sources, member.region) for member in found.members]
    if not others:
        message = f"{texts[-1]} leaves no plan by itself"
    elif len(others) == 1:
        message = f"{texts[-1]} and {texts[0]} leave no plan together"
    else:
        message = f"{texts[-1]} and {len(others)} other statements leave no plan together"
    yield Finding(
        diagnostic=Diagnostic(
            code="TCC707",
            message=message,
            span=_span(sources, last.region),
            hint="change one of them; without any one of them the others leave plans",
            notes=tuple(
                Note(message="it cannot stand with this", span=_span(sources, other.region))
                for other in others
            ),
        )
    )
