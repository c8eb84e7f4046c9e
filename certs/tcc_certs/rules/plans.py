"""C3, plans: the number of plans below every state is what its own edges add up to.

As the edges of a state part its plans (C1) and there is no cycle (C2), the equation has exactly
one solution: the counts.  Source: SuffixCountDP, Appendix F of the paper.  Cost: one addition of
the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, ensure


def check_plans(automaton: Automaton, plans: Sequence[int], width: int) -> None:
    """``N(q) = accept(q) + sum of N(target)``; the column is no wider than its largest needs.

    Args:
        automaton: targets precede sources (C2).
        plans: [n], the column.
        width: limbs a row.

    Raises:
        Rejected: C301 at the first state whose count differs, C302 the width.
    """
    below = map(plans.__getitem__, automaton.edge_target)
    for q, degree in enumerate(automaton.degrees()):
        due = automaton.accept[q] + sum(islice(below, degree))
        if plans[q] != due:
            raise Rejected(Code.PLAN_COUNT, f"plans[{q}]", due, plans[q])
    check_width(plans, width, "plans", Code.PLAN_WIDTH)


def check_width(counts: Sequence[int], width: int, path: str, code: Code) -> None:
    """Rows of `width` limbs are the least that hold `counts`.

    Raises:
        Rejected: `code`.
    """
    least = max(1, -(-max(counts).bit_length() // 64))
    ensure(width == least, code, path, f"{least} limbs", width)
