"""C3, plans: the number of plans below every state is what its own edges add up to.

As the edges of a state part its plans (C1) and there is no cycle (C2), the equation has exactly
one solution: the counts.  Source: SuffixCountDP, Appendix F of the paper.  Cost: one addition of
the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from tcc_certs.errors import Code, ensure
from tcc_certs.rules.sweep import Block


def check_plans(block: Block, accept: Sequence[int], plans: Sequence[int]) -> None:
    """``N(q) = accept(q) + sum of N(target)``.

    Args:
        block: its targets precede their sources (C2).
        accept: [n], 0 or 1.
        plans: [n], the column.

    Raises:
        Rejected: C301 at the first state whose count differs.
    """
    below = block.fold(sum, block.at_targets(plans), 0)
    due = list(map(add, block.at_states(accept), below))
    block.compare(due, plans, Code.PLAN_COUNT, "plans")


def check_width(counts: Sequence[int], width: int, path: str, code: Code) -> None:
    """Rows of `width` limbs are the least that hold `counts`.

    Raises:
        Rejected: `code`.
    """
    if width > 1:  # a row has one limb at least
        least = max(1, -(-max(counts).bit_length() // 64))
        ensure(width == least, code, path, f"{least} limbs", width)
