"""A limit on a sum, applied to a table: pairs of a state and the sum so far.

The weights are first made non-negative by the least weight to go (a potential), so negative costs
need no case of their own, and ``>=`` is ``<=`` with the signs reversed: the sum counts how much has
been spent beyond the cheapest way to finish.
Cost: a few passes over the edges, then that of :mod:`tcc_compiler.automata.constraint.unfold`.
Source: potentials as in Johnson, Efficient algorithms for shortest paths in sparse networks, 1977.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcc_compiler.automata.best_to_go import best_to_go, exact_array, exact_type
from tcc_compiler.automata.constraint.spent import pairs_spent
from tcc_compiler.automata.constraint.unfold import unfold
from tcc_compiler.automata.table import Exact, Table
from tcc_compiler.resources.guard import Guard

_SOME = 64


def at_most(table: Table, weights: Sequence[int], bound: int, guard: Guard) -> Table | None:
    """The smallest table of the words whose letters weigh at most `bound`; None without any.

    Args:
        table: minimal.
        weights: [letters], of any sign.

    Raises:
        Refused: TCC403, TCC404 from the guard.
    """
    weight = exact_array(weights, len(table.levels) + 1, bound).take(table.letter)
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
    # All amounts beyond the limit are equivalent.
    past = np.array(most + 1, dtype=exact_type(most + 1))
    steps, stop, to_go = (
        np.minimum(amounts, past).astype(past.dtype, copy=False) for amounts in (steps, stop, to_go)
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
