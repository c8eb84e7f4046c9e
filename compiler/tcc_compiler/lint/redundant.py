"""Statements that never bite: what makes them so, and which of them may go together.

Specification: docs/lint.md.  Cost: for each such statement about as many automata as the logarithm
of the statements, and one to see whether it may go with those before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.lint.biting import Idle
from tcc_compiler.lint.keeping import keeps
from tcc_compiler.lint.plans import Kept, Plans
from tcc_compiler.lint.statements import Stated
from tcc_compiler.lint.subsets import irreducible
from tcc_compiler.resources.place import Statement
from tcc_compiler.resources.refusal import Refused

MOST_EXPLAINED = 32  # statements; the others are told without what implies them


def implied_by(plans: Plans, item: Stated, stated: Sequence[Stated]) -> list[Stated] | None:
    """Statements that imply it together with the plan expression and the signatures.

    Returns:
        none of them can be left out; None where it takes too much to tell, or where only what
        is asked of strict tools makes it so.
    """
    others = [other for other in stated if other is not item and other.parts]

    def enough(chosen: Sequence[Stated]) -> bool:
        parts = tuple([part for other in chosen for part in other.parts])
        signed = plans.core.start is not None
        left = plans.left(Kept(parts=_without(parts, item), signed=signed))
        return left is None or all(keeps(plans, left, part) for part in item.own)

    try:
        return irreducible(others, enough) if enough(others) else None
    except Refused:
        return None


def _without(parts: Sequence[Statement], item: Stated) -> tuple[Statement, ...]:
    own = frozenset(map(id, item.own))
    unique = {id(part): part for part in parts if id(part) not in own}
    return tuple(unique.values())


def removable(plans: Plans, idle: Sequence[Idle]) -> list[Stated]:
    """Of the statements that never bite some that may go together, the last of the text first.

    What is asked of strict tools is looked at as it is where each of them goes by itself only.
    """
    gone: list[Stated] = []
    every = (*plans.limits, *plans.orders)
    for found in reversed(idle):
        item = found.stated
        if item.monitors:
            continue
        own = {id(part) for other in (*gone, item) for part in other.own}
        kept = tuple([part for part in every if id(part) not in own])
        try:
            left = plans.left(Kept(parts=kept, signed=plans.core.start is not None))
        except Refused:
            continue
        if left is not None and all(keeps(plans, left, part) for part in item.own):
            gone.append(item)
    return gone
