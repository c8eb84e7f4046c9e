"""A limit on a sum, applied to a table: what is spent of it rides along with the state.

The weights are first made non-negative by the least weight to go (a potential), so negative costs
need no case of their own, and ``>=`` is ``<=`` with the signs turned round: what counts is how much
is spent beyond what the cheapest way to finish takes.
Cost: a few passes over the edges, then that of :mod:`tcc_compiler.automata.constraint.unfold`.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import add

import numpy as np

from tcc_compiler.automata.constraint.spent import pairs_spent
from tcc_compiler.automata.constraint.unfold import unfold
from tcc_compiler.automata.table import Exact, Table
from tcc_compiler.resources.guard import Guard

_SAFE = 1 << 62
_SOME = 64


def at_most(table: Table, weights: Sequence[int], bound: int, guard: Guard) -> Table | None:
    """The smallest table of the words whose letters weigh at most `bound`; None without any.

    Args:
        table: minimal.
        weights: [letters], of any sign.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    weight = exact(weights, len(table.levels) + 1, bound).take(table.letter)
    least = best_to_go(table, weight, np.minimum, guard)
    spare = bound - int(least[table.start])
    if spare < 0:
        return None
    steps = weight + least.take(table.target) - np.repeat(least, table.degree)
    stop = np.where(table.accept, -least, 0)
    unit = _unit(steps, stop)
    most = spare // unit
    if unit > 1:
        steps, stop = steps // unit, stop // unit
    to_go = best_to_go(table, steps, np.maximum, guard, stop)
    if int(to_go[table.start]) <= most:
        return table
    # Beyond the limit all amounts are alike.
    past = np.array(most + 1, dtype=np.int64 if most + 1 < _SAFE else object)
    steps, stop, to_go = (
        np.minimum(found, past).astype(past.dtype, copy=False) for found in (steps, stop, to_go)
    )
    pairs = pairs_spent(table, steps, stop, to_go, most, guard)
    return unfold(table, pairs, steps, stop, most, guard)


def at_least(table: Table, weights: Sequence[int], bound: int, guard: Guard) -> Table | None:
    """The smallest table of the words whose letters weigh at least `bound`; None without any."""
    return at_most(table, [-weight for weight in weights], -bound, guard)


def _unit(steps: Exact, stop: Exact) -> int:
    """The greatest number that all amounts are multiples of; 1 where all are 0."""
    unit = int(np.gcd.reduce(stop, initial=0))
    # A few steps mostly decide it.
    for part in (steps[:_SOME], steps[_SOME:]):
        unit = unit if unit == 1 else int(np.gcd.reduce(part, initial=unit))
    return unit or 1


def exact(values: Sequence[int], times: int, other: int = 0) -> Exact:
    """`values` as an array in which sums of so many of them are exact, `other` among them."""
    greatest = max(map(abs, values), default=0) * times + abs(other)
    return np.array(values, dtype=np.int64 if greatest < _SAFE else object)


def best_to_go(
    table: Table, weight: Exact, best: np.ufunc, guard: Guard, stop: Exact | None = None
) -> Exact:
    """[states], the least or greatest weight of a word from each state.

    Args:
        weight: [edges], so small that sums over a word are exact.
        best: ``minimum`` or ``maximum``.
        stop: [states], the weight of stopping, looked at where a state accepts; 0 where left out.
    """
    found: Exact = np.zeros(table.states, dtype=weight.dtype) if stop is None else stop.copy()
    if table.is_narrow:
        return _narrow_best(table, weight, best, found)
    for states, edges in table.bands():
        guard.tick(edges.stop - edges.start)
        ways = found.take(table.target[edges])
        ways += weight[edges]
        ways = best.reduceat(ways, table.edge_start[states] - edges.start)
        found[states] = np.where(table.accept[states], best(ways, found[states]), ways)
    return found


def _narrow_best(table: Table, weight: Exact, best: np.ufunc, stop: Exact) -> Exact:
    """:func:`best_to_go` where levels have few states: one at a time."""
    choose: Callable[[Iterable[int]], int] = min if best is np.minimum else max
    target, weights = table.target.tolist(), weight.tolist()
    found, accept = stop.tolist(), table.accept.tolist()
    for q, (first, last) in enumerate(pairwise(table.edge_start.tolist())):
        if first < last:
            ways = map(add, weights[first:last], map(found.__getitem__, target[first:last]))
            found[q] = choose([*ways, found[q]] if accept[q] else ways)
    return np.array(found, dtype=weight.dtype)
