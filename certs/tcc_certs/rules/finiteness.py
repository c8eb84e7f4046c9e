"""C2, finiteness: every target precedes its source, and the rank is the longest way out.

Numbers fall along every edge, so there is no cycle, and at most rank(q) calls can still follow.
Cost: one pass over the edges.
"""

from __future__ import annotations

from itertools import chain, compress, count, islice, repeat
from operator import ge

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected


def check_finiteness(automaton: Automaton) -> None:
    """Targets are less than their sources; ``rank = 0 | 1 + max rank(target)``.

    Args:
        automaton: rows well formed (C1).

    Raises:
        Rejected: C201 a target, C202 a rank.
    """
    targets, ranks = automaton.edge_target, automaton.rank
    degrees = automaton.degrees()
    sources = chain.from_iterable(map(repeat, range(automaton.states), degrees))
    at = next(compress(count(), map(ge, targets, sources)), None)
    if at is not None:
        raise Rejected(Code.TARGET_ORDER, f"edge_target[{at}]", "less than its source", targets[at])
    below = map(ranks.__getitem__, targets)
    for q, degree in enumerate(degrees):
        due = 1 + max(islice(below, degree), default=-1)
        if ranks[q] != due:
            raise Rejected(Code.RANK, f"rank[{q}]", due, ranks[q])
