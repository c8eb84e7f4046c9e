"""The exact keys of an unrecorded run, for the few items that want one.

Text: docs/spec/race.md, sections 5, 7 and 18; the arrivals and the error bounds are those of
:mod:`tcc_runtime.numbers`.  A winner's arrival is its source's times weights, and ln of it a sum;
so a key costs the sums along the winners above it, and numbers of working precision where somebody
on the way did not win.  These are kept, as many paths share them.
Cost: a winner on the way an addition or two; a drawn arrival one logarithm, its own one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcc_certs.digest import (
    FIRST_ARRIVAL,
    RESIDUAL,
    REST_ARRIVAL,
    rest_digest,
    rest_place,
)
from tcc_runtime.gauges import Gauges
from tcc_runtime.items import CODE, GAUGE, LAST, LEAF, MORE, NAME, ROOT, SOURCE, WHOLE, Item, Left
from tcc_runtime.items import left_after_first as first_left
from tcc_runtime.numbers import Real, units
from tcc_runtime.race import Draw
from tcc_runtime.tables import Call


class Arrival:
    """An arrival that was drawn.

    Attributes:
        time, units: t, and its relative error in units of 2^-p.
        cost: of the prefix, nano-units.
        log, log_error: ln t as an integer and a bound of its error, once it was asked for.
    """

    __slots__ = ("cost", "log", "log_error", "time", "units")

    def __init__(self, time: Real, units: int, cost: int) -> None:
        self.time = time
        self.units = units
        self.cost = cost
        self.log: int | None = None
        self.log_error = 0


class Exact:
    """Keys, costs and calls of items, from the items that they come after.

    Args:
        gauges: of the artifact, the recipe and the inflation.
        records: the items of the run that others were drawn from, by number.
        draw: the PRF.
        rest: whether children are drawn one at a time.
    """

    __slots__ = (
        "_beta",
        "_bits",
        "_draw",
        "_drawn",
        "_reals",
        "_records",
        "_rest",
        "_root",
        "_table",
        "_tables",
        "_unit",
    )

    def __init__(self, gauges: Gauges, records: Sequence[Item], draw: Draw, rest: bool) -> None:
        tables = gauges.tables
        manifest = tables.artifact.manifest
        self._beta, places = manifest.beta
        self._unit: int = 10 ** (places + 9)
        self._bits = manifest.fraction_bits
        self._tables = tables
        self._table = gauges.table
        self._reals = tables.reals
        self._records = records
        self._draw = draw
        self._rest = rest
        self._root: Arrival | None = None
        self._drawn: dict[bytes, Arrival] = {}

    def key(self, item: Item) -> int:
        """The published key of an item; at a leaf its value.

        Raises:
            Undecided: the working precision does not decide the rounding.
        """
        calls: list[Call] = []
        arrival = self._arrival(item if item[LAST] >= 0 else self._before(item, calls))
        log, error = self._log(arrival)
        log += sum([call.log for call in calls])
        error += sum([call.log_error for call in calls])
        cost = arrival.cost + sum([call.cost_low for call in calls])
        shift = self._reals.shift
        bound = ((-self._beta * cost) << shift) // self._unit
        if item[GAUGE] != LEAF:
            bound += self._table[item[GAUGE]].state.residual << (shift - 32)
        return self._reals.nearest(bound - log, error, error + 1)

    def name(self, item: Item) -> bytes:
        """D, L, or the id of what is left."""
        if item[LAST] == WHOLE:
            return item[NAME]
        left = item[MORE]
        if isinstance(left, Left):
            return rest_digest(left.digest, left.step)
        return rest_digest(item[NAME], 1)

    def calls(self, item: Item) -> list[Call]:
        """The calls that lead to a node or a leaf, first to last."""
        found, table, records = [], self._table, self._records
        while item[6] != ROOT:
            source, code = records[item[6]], item[7]
            call = table[source[4]].calls[~code if code < 0 else code]
            if call is not None and not isinstance(item[8], Left):
                found.append(call)
            item = source
        found.reverse()
        return found

    def _before(self, item: Item, calls: list[Call]) -> Item | None:
        """The item that a node or leaf has its arrival from by winning all along; None: the root.

        Args:
            calls: gets those on the way, last to first.
        """
        table, records, rest = self._table, self._records, self._rest
        while item[6] != ROOT:
            source, code = records[item[6]], item[7]
            if code < 0 and not rest:
                return item
            call = table[source[4]].calls[~code if code < 0 else code]
            if call is not None:
                calls.append(call)
            if code < 0:
                return source
            item = source
        return None

    def _arrival(self, item: Item | None) -> Arrival:
        """That of an item that did not win, or of what is left of a node; None: of the root."""
        pending: list[tuple[Item, list[Call]]] = []
        while item is not None and item[NAME] not in self._drawn:
            calls: list[Call] = []
            pending.append((item, calls))
            if isinstance(item[MORE], Left):
                item = self._records[item[SOURCE]]
            elif self._rest:
                item = self._before(item, calls)
            else:
                item = self._before(self._records[item[SOURCE]], calls)
        arrival = self._first() if item is None else self._drawn[item[NAME]]
        for step, calls in reversed(pending):
            arrival = self._won(arrival, calls)
            arrival = self._left(step, arrival) if self._rest else self._lost(step, arrival)
            self._drawn[step[NAME]] = arrival
        return arrival

    def _first(self) -> Arrival:
        """That of the root."""
        if self._root is None:
            artifact, reals = self._tables.artifact, self._reals
            word = self._draw(FIRST_ARRIVAL, artifact.root_digest)
            rate = self._tables.state((artifact.root,)).rate
            self._root = Arrival(reals.div(reals.exponential(word), rate), units(0), 0)
        return self._root

    def _won(self, arrival: Arrival, calls: list[Call]) -> Arrival:
        """That of the node to which `calls` lead, each the winner: two roundings."""
        if not calls:
            return arrival
        weight = self._reals.scaled(
            prod([call.numerator for call in calls]), self._bits * len(calls)
        )
        time = self._reals.mul(weight, arrival.time)
        cost = arrival.cost + sum([call.cost_low for call in calls])
        return Arrival(time, arrival.units + 2, cost)

    def _left(self, item: Item, source: Arrival) -> Arrival:
        """What a draw leaves: T' = T + E / mass."""
        state, left = self._table[item[GAUGE]].state, item[MORE]
        if isinstance(left, Left):
            digest, step, mass = left.digest, left.step, left.mass
        else:
            digest, step, mass = item[NAME], 1, first_left(state, item[LAST])
        word = self._draw(REST_ARRIVAL, rest_place(digest, step))
        rate = self._reals.scaled(mass, state.scale)
        return self._later(word, rate, 1, source, source.cost)

    def _lost(self, item: Item, parent: Arrival) -> Arrival:
        """A child that did not win: t' = w t + E / n."""
        source = self._records[item[SOURCE]]
        call = self._table[source[GAUGE]].calls[~item[CODE]]
        word = self._draw(RESIDUAL, item[NAME])
        rate: Real = 1 if item[GAUGE] == LEAF else self._table[item[GAUGE]].state.rate
        if call is None:
            return self._later(word, rate, 1, parent, parent.cost)
        return self._later(word, rate, call.weight, parent, parent.cost + call.cost_low)

    def _later(self, word: int, rate: Real, weight: Real, source: Arrival, cost: int) -> Arrival:
        reals = self._reals
        time = reals.fms(weight, source.time, reals.div(reals.log_tail(word), rate))
        return Arrival(time, max(source.units, units(0)) + 1, cost)

    def _log(self, arrival: Arrival) -> tuple[int, int]:
        if arrival.log is None:
            arrival.log = self._reals.log(arrival.time)
            arrival.log_error = self._reals.log_error(arrival.log, arrival.units)
        return arrival.log, arrival.log_error
