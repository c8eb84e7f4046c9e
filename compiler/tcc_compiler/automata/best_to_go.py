"""The least or the greatest weight of a word from each state of a table, exact.

Cost: one pass over the edges; 64-bit integers where every sum fits, Python's own where one may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import add

import numpy as np
from numpy.typing import DTypeLike

from tcc_compiler.automata.table import Exact, Table
from tcc_compiler.resources.guard import Guard

_SAFE = 1 << 62


def exact_type(greatest: int) -> DTypeLike:
    """The type of an array whose numbers and sums are at most `greatest`, which is not negative."""
    return np.int64 if greatest < _SAFE else object


def exact_array(values: Sequence[int], times: int, other: int = 0) -> Exact:
    """`values` as an array in which a sum of `times` of them and `other` is exact."""
    greatest = max(map(abs, values), default=0) * times + abs(other)
    return np.array(values, dtype=exact_type(greatest))


def best_to_go(
    table: Table, weight: Exact, best: np.ufunc, guard: Guard, stop: Exact | None = None
) -> Exact:
    """[states], the least or greatest weight of a word from each state.

    Args:
        weight: [edges], so small that sums over a word are exact.
        best: ``minimum`` or ``maximum``.
        stop: [states], the weight of stopping, looked at where a state accepts; 0 where left out.
    """
    best_weights: Exact = (
        np.zeros(table.states, dtype=weight.dtype) if stop is None else stop.copy()
    )
    if table.is_narrow:
        return _narrow_best(table, weight, best, best_weights)
    for states, edges in table.bands():
        guard.tick(edges.stop - edges.start)
        ways = best_weights.take(table.target[edges])
        ways += weight[edges]
        ways = best.reduceat(ways, table.edge_start[states] - edges.start)
        best_weights[states] = np.where(
            table.accept[states], best(ways, best_weights[states]), ways
        )
    return best_weights


def _narrow_best(table: Table, weight: Exact, best: np.ufunc, stop: Exact) -> Exact:
    """:func:`best_to_go` where levels have few states: one at a time."""
    choose: Callable[[Iterable[int]], int] = min if best is np.minimum else max
    target, weights = table.target.tolist(), weight.tolist()
    best_weights, accept = stop.tolist(), table.accept.tolist()
    for q, (first, last) in enumerate(pairwise(table.edge_start.tolist())):
        if first < last:
            ways = map(add, weights[first:last], map(best_weights.__getitem__, target[first:last]))
            best_weights[q] = choose([*ways, best_weights[q]] if accept[q] else ways)
    return np.array(best_weights, dtype=weight.dtype)
