"""C2, finiteness: every target precedes its source, and the rank is the longest way out.

Numbers fall along every edge, so there is no cycle, and at most rank(q) calls can still follow.
Cost: one pass over the edges for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import ge

from tcc_certs.errors import Code, Rejected
from tcc_certs.rules.sweep import Block


def check_targets(block: Block, first_edge: int) -> None:
    """Targets are less than their sources.

    Args:
        block: rows well formed (C1).
        first_edge: the number of the block's first edge.

    Raises:
        Rejected: C201 at the first edge whose target does not precede its source.
    """
    if max(block.targets, default=-1) < block.states.start:
        return
    at = next(compress(count(), map(ge, block.targets, block.each_edge(block.states))), None)
    if at is not None:
        place, found = f"edge_target[{first_edge + at}]", block.targets[at]
        raise Rejected(Code.TARGET_ORDER, place, "less than its source", found)


def check_ranks(block: Block, rank: Sequence[int]) -> None:
    """``rank = 0 | 1 + max rank(target)``.

    Args:
        block: its targets precede their sources.
        rank: [n], the column.

    Raises:
        Rejected: C202 at the first state whose rank differs.
    """
    below = block.fold(max, block.at_targets(rank), -1)
    block.compare([1 + top for top in below], rank, Code.RANK, "rank")
