"""The exact keys of an unrecorded run, for the few items whose numbers leave a rounding open.

Text: docs/spec/race.md, sections 5, 7 and 18; the error bounds are those of
:mod:`tcc_runtime.numbers`.
Cost: a drawn arrival one logarithm of MPFR, its own one more; wanted for one key in 2^19.
"""

from __future__ import annotations

from math import prod

from tcc_runtime.items import GAUGE, LEAF, Item
from tcc_runtime.numbers import Real, units
from tcc_runtime.paths import Paths
from tcc_runtime.tables import Call


class Arrival:
    """An arrival that was drawn.

    Attributes:
        time, units: t, and its relative error in units of 2^-p.
        cost: of the prefix, nano-units.
    """

    __slots__ = ("cost", "time", "units")

    def __init__(self, time: Real, units: int, cost: int) -> None:
        self.time = time
        self.units = units
        self.cost = cost


class Exact(Paths[Arrival]):
    """Keys by numbers of working precision."""

    __slots__ = ()

    def key(self, item: Item) -> int:
        """The published key of an item; at a leaf its value.

        Raises:
            Undecided: the working precision does not decide the rounding.
        """
        reals, calls = self._tables.reals, list[Call]()
        arrival = self._reached(item, calls)
        log = reals.log(arrival.time)
        error = reals.log_error(log, arrival.units)
        log += sum([call.log for call in calls])
        error += sum([call.log_error for call in calls])
        cost = arrival.cost + sum([call.cost_low for call in calls])
        bound = ((-self._beta * cost) << reals.shift) // self._unit
        if item[GAUGE] != LEAF:
            bound += self._table[item[GAUGE]].state.residual << (reals.shift - 32)
        return reals.nearest(bound - log, error, error + 1)

    def _first(self, word: int, mass: int, scale: int) -> Arrival:
        reals = self._tables.reals
        time = reals.div(reals.exponential(word), reals.scaled(mass, scale))
        return Arrival(time, units(0), 0)

    def _later(
        self, source: Arrival, calls: list[Call], word: int, mass: int, scale: int
    ) -> Arrival:
        reals, time, error = self._tables.reals, source.time, source.units
        if calls:  # two roundings: of the weights' product, and of what it is multiplied by
            weight = reals.scaled(prod([call.numerator for call in calls]), self._bits * len(calls))
            time, error = reals.mul(weight, time), error + 2
        time = reals.add(time, reals.div(reals.exponential(word), reals.scaled(mass, scale)))
        cost = source.cost + sum([call.cost_low for call in calls])
        return Arrival(time, max(error, units(0)) + 1, cost)
