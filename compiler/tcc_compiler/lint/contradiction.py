"""A smallest set of statements that leave no plan together.

`plan`, and `start` with `goal`, are statements here like the others: without `plan` any sequence of
calls is one.  Specification: docs/lint.md.
Cost: about as many automata as the logarithm of the statements for each of the set; then one for
each smaller set, within a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import GoalStatement, PlanStatement
from tcc_compiler.lint.plans import Kept, Plans
from tcc_compiler.lint.statements import Stated
from tcc_compiler.lint.subsets import smallest
from tcc_compiler.resources.refusal import Refused

_MOST_QUESTIONS = 2000


@frozen
class Contradiction:
    """Statements that leave no plan, in the order of the text.

    Attributes:
        smallest: whether it is known that no set of fewer statements leaves none either.
    """

    members: tuple[Stated | PlanStatement | GoalStatement, ...]
    smallest: bool


def contradiction(
    plans: Plans,
    stated: Sequence[Stated],
    plan: PlanStatement | None,
    goal: GoalStatement | None,
) -> Contradiction | None:
    """The set for a grammar; None where there are plans before strict tools are looked at.

    Raises:
        Refused: TCC403, TCC404, TCC406: it takes too much to tell.
    """
    heads = [head for head in (plan, goal) if head is not None]
    items: list[Stated | PlanStatement | GoalStatement] = [
        *heads, *(item for item in stated if item.parts)
    ]  # fmt: skip
    items.sort(key=lambda item: item.region)

    def impossible(chosen: Sequence[Stated | PlanStatement | GoalStatement]) -> bool:
        parts = {id(part): part for one in chosen if isinstance(one, Stated) for part in one.parts}
        kept = Kept(
            parts=tuple(parts.values()),
            planned=any(one is plan for one in chosen if plan is not None),
            signed=any(one is goal for one in chosen if goal is not None),
        )
        try:
            return plans.left(kept) is None
        except Refused as refusal:
            if refusal.code == "TCC401":
                return False  # infinitely many are not none
            raise

    if not impossible(items):
        return None
    found, known = smallest(items, impossible, _MOST_QUESTIONS)
    return Contradiction(members=tuple(found), smallest=known)
