"""C2, finiteness: every target precedes its source, and the rank is the longest way out.

Numbers fall along every edge, so there is no cycle, and at most rank(q) calls can still follow.
Cost: one pass over the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress, count, repeat
from operator import ge

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected
from tcc_certs.rules.sweep import Block, Differences


def check_finiteness(blocks: Sequence[Block], automaton: Automaton) -> None:
    """Targets are less than their sources; ``rank = 0 | 1 + max rank(target)``.

    Args:
        blocks: all states; rows well formed (C1).
        automaton: the same states.

    Raises:
        Rejected: C201 a target, C202 a rank.
    """
    for block in blocks:
        if any(map(ge, block.fold(max, block.targets, -1), block.states)):
            raise _first_late(automaton)
    rank = automaton.rank
    differences: Differences[int] = Differences()
    for block in blocks:
        below = block.fold(max, block.at_targets(rank), -1)
        differences.note(block.states, [1 + top for top in below], block.at_states(rank))
    differences.refuse(Code.RANK, "rank")


def _first_late(automaton: Automaton) -> Rejected:
    """The refusal of the first edge whose target does not precede its source."""
    sources = chain.from_iterable(map(repeat, range(automaton.states), automaton.degrees()))
    at = next(compress(count(), map(ge, automaton.edge_target, sources)))
    found = automaton.edge_target[at]
    return Rejected(Code.TARGET_ORDER, f"edge_target[{at}]", "less than its source", found)
