"""Lint rule TCC707: a smallest set of statements that leave no plan together.

`plan`, and `start` with `goal`, are statements here like the others: without `plan` any sequence of
calls is one.  Specification: docs/lint.md.
Cost: about as many automata as the logarithm of the statements for each of the set; then one for
each smaller set, within a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tcc_compiler.language.ast import GoalStatement, PlanStatement
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.language.source import Source, Span
from tcc_compiler.lint.finding import LintFinding, statement_text
from tcc_compiler.lint.plans import PlanAutomata, SourceStatement, Subset
from tcc_compiler.relax.contradiction import smallest
from tcc_compiler.resolve.program import Program
from tcc_compiler.resources import CompileRefused

_MOST_QUESTIONS = 2000

_Member: TypeAlias = SourceStatement | PlanStatement | GoalStatement


def contradictory(
    plans: PlanAutomata,
    stated: Sequence[SourceStatement],
    program: Program,
    sources: Sequence[Source],
) -> Iterator[LintFinding]:
    """TCC707: a smallest set of statements that leave no plan, at the last of them.

    Raises:
        Refused: the question exceeds the limits.
    """
    found, _ = contradiction(plans, stated, program.plan, program.goal)
    if not found:
        return
    *others, last = found
    texts = [statement_text(sources, member.region) for member in found]
    if not others:
        message = f"{texts[-1]} leaves no plan by itself"
    elif len(others) == 1:
        message = f"{texts[-1]} and {texts[0]} leave no plan together"
    else:
        message = f"{texts[-1]} and {len(others)} other statements leave no plan together"
    yield LintFinding(
        diagnostic=Diagnostic(
            code="TCC707",
            message=message,
            span=_span(sources, last),
            hint="change one of them; without any one of them the others leave plans",
            notes=tuple(
                Note(message="it cannot stand with this", span=_span(sources, other))
                for other in others
            ),
        )
    )


def contradiction(
    plans: PlanAutomata,
    stated: Sequence[SourceStatement],
    plan: PlanStatement | None,
    goal: GoalStatement | None,
) -> tuple[tuple[_Member, ...], bool]:
    """The statements that leave no plan, in the order of the text, and whether no fewer do.

    Returns:
        no statements where there are plans before strict tools are considered.

    Raises:
        Refused: TCC403, TCC404, TCC406: the question exceeds the limits.
    """
    items: list[_Member] = [
        *(head for head in (plan, goal) if head is not None),
        *(item for item in stated if item.parts),
    ]
    items.sort(key=lambda item: item.region)

    def impossible(chosen: Sequence[_Member]) -> bool:
        parts = {
            id(part): part
            for one in chosen
            if isinstance(one, SourceStatement)
            for part in one.parts
        }
        kept = Subset(
            parts=tuple(parts.values()),
            planned=any(one is plan for one in chosen if plan is not None),
            signed=any(one is goal for one in chosen if goal is not None),
        )
        try:
            return plans.remaining(kept) is None
        except CompileRefused as refusal:
            if refusal.code == "TCC401":
                return False  # infinitely many are not none
            raise

    if not impossible(items):
        return (), False
    found, known = smallest(items, impossible, _MOST_QUESTIONS)
    return tuple(found), known


def _span(sources: Sequence[Source], member: _Member) -> Span:
    return sources[member.region.source].span(member.region)
