"""C2, finiteness: every target precedes its source, and the rank is the longest way out.

Numbers fall along every edge, so there is no cycle, and at most rank(q) calls can still follow.
Cost: one pass over the edges for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice
from operator import ge, gt, lt

from tcc_certs.errors import Code, Rejected
from tcc_certs.rules.sweep import Block


def check_targets(block: Block) -> None:
    """Targets are less than their sources.

    Args:
        block: rows well formed (C1).

    Raises:
        Rejected: C201 at the first edge whose target does not precede its source.
    """
    if not all(map(lt, block.greatest, block.states)):
        at = next(compress(count(), map(ge, block.targets, block.each_edge(block.states))))
        place, found = f"edge_target[{block.first_edge + at}]", block.targets[at]
        raise Rejected(Code.TARGET_ORDER, place, "less than its source", found)


def check_ranks(block: Block, rank: Sequence[int], rising: bool = False) -> None:
    """``rank = 0 | 1 + max rank(target)``.

    Args:
        block: its targets precede their sources.
        rank: [n], the column.
        rising: whether it never falls, so that the greatest target has the greatest rank.

    Raises:
        Rejected: C202 at the first state whose rank differs.
    """
    if rising:
        due = [1 + rank[target] if target >= 0 else 0 for target in block.greatest]
    else:
        due = [1 + top for top in block.fold(max, block.at_targets(rank), -1)]
    block.compare(due, rank, Code.RANK, "rank")


def rises(rank: Sequence[int]) -> bool:
    """Whether the column never falls."""
    return not any(map(gt, rank, islice(rank, 1, None)))
