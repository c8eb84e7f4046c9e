"""A table under a limit: one state for each pair (state, spent) that occurs, then minimised.

Edges are made in portions of many states, so that memory beside the result is bounded.
Cost: linear in the pairs and their edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcc_compiler.automata.constraint.spent import Pairs
from tcc_compiler.automata.merge import merged
from tcc_compiler.automata.table import Exact, Numbers, Table, distinct, spread, starts
from tcc_compiler.resources.guard import Guard

_PORTION = 1 << 16


def unfold(table: Table, pairs: Pairs, steps: Exact, stop: Exact, most: int, guard: Guard) -> Table:
    """The smallest table of the words of `table` that spend at most `most`.

    Args:
        steps, stop: as :func:`tcc_compiler.automata.constraint.spent.pairs_spent` has them.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    count = pairs.start[1:] - pairs.start[:-1]
    state = np.repeat(np.arange(table.states), count)
    left = most - pairs.spent
    degree = table.degree.take(state)
    before = starts(degree)
    cuts = np.searchsorted(before, np.arange(0, before[-1], _PORTION)).tolist()
    letters: list[Numbers] = []
    targets: list[Numbers] = []
    degrees = []
    held = 0
    for first, last in zip(cuts, [*cuts[1:], len(state)], strict=True):
        sizes = degree[first:last]
        edges = spread(table.edge_start.take(state[first:last]), sizes)
        room = np.repeat(left[first:last], sizes) - steps.take(edges)
        fits = room >= 0
        passed = starts(fits)
        passed = passed.take(before[first : last + 1] - before[first])
        degrees.append(passed[1:] - passed[:-1])
        kept = np.flatnonzero(fits)
        edges = edges.take(kept)
        letters.append(table.letter.take(edges))
        spent = most - room.take(kept)
        targets.append(pairs.locate(table.target.take(edges), spent).astype(np.int32))
        held += len(edges)
        guard.tick(len(fits))
        guard.room(held >> 2)
    unfolded = Table(
        accept=table.accept.take(state) & (stop.take(state) <= left),
        edge_start=starts(_joined(degrees)),
        letter=_joined(letters),
        target=_joined(targets),
        levels=distinct(pairs.start.take(table.levels)),
        nondeterministic=table.nondeterministic,
    )
    unfolded = merged(unfolded, guard)
    guard.room(unfolded.edges)
    return unfolded


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The parts side by side; mostly there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
