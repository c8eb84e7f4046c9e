"""The keys of an unrecorded run by integers, for the few items that want one.

Text: docs/spec/race.md, sections 5, 7, 18 and 21; the numbers and their error bound are those of
:mod:`tcc_runtime.arrivals`, and what they leave open is for :mod:`tcc_runtime.exact`.
Cost: two logarithms of integers for each drawn arrival.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

from tcc_runtime.arrivals import FRACTION, OPEN, later, rate, rounded
from tcc_runtime.exact import Exact
from tcc_runtime.items import GAUGE, LEAF, Item
from tcc_runtime.paths import Paths
from tcc_runtime.tables import Call

# Mantissa and exponent of t, ln t, and the cost of the prefix in nano-units.
Arrival: TypeAlias = tuple[int, int, int, int]


class Near(Paths[Arrival]):
    """Keys by integers, exact where these do not decide."""

    __slots__ = ()

    def key(self, item: Item) -> int:
        """The published key of an item; at a leaf its value.

        Raises:
            Undecided: the working precision does not decide the rounding.
        """
        finer = self._tables.reals.shift - FRACTION  # of the calls' logarithms
        if finer < 0:
            return self._exact(item)
        calls: list[Call] = []
        _, _, log, cost = self._reached(item, calls)
        if calls:
            cost += sum([call.cost_low for call in calls])
            log += sum([call.log for call in calls]) >> finer
        bound = ((-self._beta * cost) << FRACTION) // self._unit
        if item[GAUGE] != LEAF:
            bound += self._table[item[GAUGE]].state.residual << FRACTION - 32
        key = rounded(log, bound)
        return self._exact(item) if key == OPEN else key

    def _exact(self, item: Item) -> int:
        exact = Exact(self._gauges, self._records, self._draw, self._first_word, self._rest)
        return exact.key(item)

    def _first(self, word: int, mass: int, scale: int) -> Arrival:
        return *later(0, 0, word, *rate(mass, scale)), 0

    def _later(
        self, source: Arrival, calls: list[Call], word: int, mass: int, scale: int
    ) -> Arrival:
        mantissa, exponent, _, cost = source
        if calls:
            mantissa *= prod([call.numerator for call in calls])
            exponent += self._bits * len(calls)
            cost += sum([call.cost_low for call in calls])
        return *later(mantissa, exponent, word, *rate(mass, scale)), cost
