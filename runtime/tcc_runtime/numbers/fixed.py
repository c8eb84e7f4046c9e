"""The middle rung: integers of fixed size with a proven error.

Text: docs/spec/race.md, sections 5, 7 and 21.  :mod:`tcc_runtime.numbers.arrivals` has the
arithmetic and the error analysis.  One published number in 2^19 stays open and goes to MPFR.  Runs
with a ledger begin at this rung.  With MPFR only, they take 1.3 to 1.8 times as long (benchmarks,
*rungs*).
Cost: two logarithms for a drawn arrival; some products and sums for a winner.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Final, TypeAlias

from tcc_runtime.artifact.constraints import Held
from tcc_runtime.errors import Undecided
from tcc_runtime.item import Item, NodeRemainder
from tcc_runtime.numbers import arrivals
from tcc_runtime.numbers.reals import Reals
from tcc_runtime.numbers.rung import Path, Published, Rung
from tcc_runtime.states import Edge, State, Tables, View, WeightedCall

# Members after the common ones: mantissa and exponent of t, ln t, and -beta times the cost. The
# last two have 112 fractional bits.
MANTISSA, EXPONENT, LOG, SCORE = range(9, 13)
_TIME_UNITS = 1 << 76  # a time is within 2^-84, in units of 2^-160
_REALS = Reals(160)
_FLOORS = 1 << 12  # the largest sum of the rounding errors of a path's scores
_ALONE = arrivals.rate(1, 0)  # the rate of a leaf
_STOP: Final[Edge] = (b"\x02", b"", None, None, 1 << 62, -1, 0, 0, 0, *_ALONE, 0)


class FixedView(View):
    """View of a state, with the residual part of M and with 1 / n in the form that `later`
    takes.
    """

    __slots__ = ("inverse", "lift", "scale")

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.inverse, self.scale = arrivals.rate(state.count, state.scale)
        self.lift = state.residual << arrivals.FRACTION - 32


class _Views:
    """Views of states and numbers of calls, computed once for each set of tables."""

    def __init__(self, tables: Tables) -> None:
        self._bits = tables.artifact.manifest.fraction_bits
        self._beta, self._unit = tables.beta, tables.unit
        self._views: dict[State, FixedView] = {}
        self._calls: dict[int, tuple[int, int, int, int]] = {}

    def view(self, state: State) -> FixedView:
        """Return the view of a state."""
        found = self._views.get(state)
        if found is None:
            found = self._views[state] = FixedView(state)
        return found

    def call(self, call: WeightedCall) -> tuple[int, int, int, int]:
        """Return factor, shift, ln w and -beta cost_low of a call.

        w = factor * 2^-(63 + shift), and the factor has 63 bits.
        """
        found = self._calls.get(call.index)
        if found is None:
            size = call.numerator.bit_length()
            factor, shift = call.numerator << 63 - size, self._bits - size
            score = ((-self._beta * call.cost_low) << arrivals.FRACTION) // self._unit
            log = arrivals.log_of_ratio(call.numerator, self._bits)
            found = self._calls[call.index] = factor, shift, log, score
        return found


def _views_of(tables: Tables) -> _Views:
    found = tables.views.get("fixed")
    if not isinstance(found, _Views):
        found = tables.views["fixed"] = _Views(tables)
    return found


class Fixed(Rung):
    """Makes items from integers of fixed size.

    Args:
        error: the bound of an error, in units of 2^-112.
        path: the finer rungs.
    """

    width = 0.0
    named = True
    clamping = False

    def __init__(self, tables: Tables, error: int, path: Path) -> None:
        self._views = _views_of(tables)
        self._beta, self._unit = tables.beta, tables.unit
        self._low, self._high = error, arrivals.PART - error
        self._path = path
        # -ln t of the items that a finer rung decided, by id and word. An item that is realised
        # later gets its word then, and so another entry.
        self._opened: dict[tuple[bytes, int | None], int] = {}

    def view(self, state: State) -> View:
        """Return the view of a state, with its rate and its residual."""
        return self._views.view(state)

    def edge(self, view: View, place: int) -> Edge:
        """Create the edge to the child at `place`.

        Members after the common ones: factor, shift, ln w, -beta cost, then residual, inverse rate
        and scale of the target.  The last member is score plus residual less ln w, which
        :meth:`bounded` adds to the numbers of the source.
        """
        found = _STOP
        if place < len(view.state.edges):
            call, to = view.state.edges[place]
            target = self._views.view(to)
            numbers = self._views.call(call)
            rates = target.lift, target.inverse, target.scale
            step = numbers[3] + target.lift - numbers[2]
            found = b"\x01", call.raw, call, target, *numbers, *rates, step
        view.edges[place] = found
        return found

    def rate(self, view: View, mass: int) -> Any:
        """Return the inverse rate of a remainder with that mass."""
        return arrivals.rate(mass, view.state.scale)

    def first(
        self,
        view: View | None,
        ident: bytes,
        word: int,
        source: Item | None = None,
        edge: Edge | None = None,
        place: int = 0,
        held: Held | None = None,
    ) -> Item:
        """Create an item with t = E / n."""
        own, lift = _ALONE, 0
        if isinstance(view, FixedView):
            own, lift = (view.inverse, view.scale), view.lift
        mantissa, exponent, log = arrivals.later(0, 0, word, *own)
        score = 0 if source is None else source[SCORE]
        if edge is not None:
            score += edge[7]
        shown = arrivals.HALF - log
        key = shown + score + lift
        item = (
            -(key >> arrivals.DROP), ident, view, None, source, place, edge, word, held,
            mantissa, exponent, log, score,
        )  # fmt: skip
        return item if arrivals.decided(shown, key, self._low) else self._open(item)

    def won(
        self,
        source: Item,
        edge: Edge,
        ident: bytes,
        place: int,
        word: int | None,
        held: Held | None,
    ) -> Item:
        """Create a winner, with one product and two sums."""
        mantissa, exponent = source[9] * edge[4] >> 63, source[10] + edge[5]
        if mantissa < arrivals.LEAST:
            mantissa, exponent = mantissa << 64, exponent + 64
        log, score = source[11] + edge[6], source[12] + edge[7]
        shown = arrivals.HALF - log
        key = shown + score + edge[8]
        item = (
            -(key >> arrivals.DROP), ident, edge[3], None, source, place, edge, word, held,
            mantissa, exponent, log, score,
        )  # fmt: skip
        low, high = self._low, self._high
        if low < shown & arrivals.PART < high and low < key & arrivals.PART < high:
            return item
        return self._open(item)

    def bounded(
        self,
        source: Item,
        places: Iterable[int],
        edges: Iterable[Edge],
        idents: Iterable[bytes],
        held: Iterable[Held | None],
    ) -> list[Item]:
        """Create bounded children: one sum for the key, two sums for a later recomputation, and no
        t.
        """
        log, score, low, high = source[11], source[12], self._low, self._high
        base = arrivals.HALF - log + score
        found: list[Item] = []
        for place, edge, ident, kept in zip(places, edges, idents, held, strict=False):
            key = base + edge[11]
            item = (
                -(key >> arrivals.DROP), ident, edge[3], None, source, place, edge, None, kept,
                0, 0, log + edge[6], score + edge[7],
            )  # fmt: skip
            found.append(item if low < key & arrivals.PART < high else self._open(item))
        return found

    def lost(
        self, source: Item, edge: Edge, ident: bytes, place: int, word: int, held: Held | None
    ) -> Item:
        """Create a child with a drawn arrival."""
        mantissa, exponent, log = arrivals.later(
            source[9] * edge[4] >> 63, source[10] + edge[5], word, edge[9], edge[10]
        )
        score = source[12] + edge[7]
        shown = arrivals.HALF - log
        key = shown + score + edge[8]
        item = (
            -(key >> arrivals.DROP), ident, edge[3], None, source, place, edge, word, held,
            mantissa, exponent, log, score,
        )  # fmt: skip
        low, high = self._low, self._high
        if low < shown & arrivals.PART < high and low < key & arrivals.PART < high:
            return item
        return self._open(item)

    def after(
        self, source: Item, ident: bytes, left: NodeRemainder | int, word: int, rate: Any
    ) -> Item:
        """Create the remainder of a node, with a drawn arrival."""
        mantissa, exponent, log = arrivals.later(source[9], source[10], word, rate[0], rate[1])
        view, score = source[2], source[12]
        shown = arrivals.HALF - log
        key = shown + score + view.lift
        item = (
            -(key >> arrivals.DROP), ident, view, left, source, 0, None, word, source[8],
            mantissa, exponent, log, score,
        )  # fmt: skip
        low, high = self._low, self._high
        if low < shown & arrivals.PART < high and low < key & arrivals.PART < high:
            return item
        return self._open(item)

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item with the same arrival and the score of another cost."""
        score = ((-self._beta * cost) << arrivals.FRACTION) // self._unit
        if abs(score - item[SCORE]) <= _FLOORS:
            return item
        view, shown = item[2], arrivals.HALF - item[LOG]
        key = shown + score + (0 if view is None else view.lift)
        changed = (-(key >> arrivals.DROP), *item[1:SCORE], score)
        return changed if arrivals.decided(shown, key, self._low) else self._open(changed, cost)

    def shown(self, item: Item) -> tuple[int, int]:
        """Return -ln t of an item; this rung never clamps a number."""
        if self._opened:
            found = self._opened.get((item[1], item[7]))
            if found is not None:
                return found, 0
        return arrivals.HALF - item[LOG] >> arrivals.DROP, 0

    def arrival_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: no precision decides it.
        """
        try:
            return _REALS.arrival_word(_REALS.scaled(leaf[9], leaf[10]), _TIME_UNITS)
        except Undecided:
            return self._path.arrival_word(leaf)

    def _open(self, item: Item, cost: int | None = None) -> Item:
        """Return the item with the key that a finer rung computes.

        Raises:
            Undecided: no precision decides the key.
        """
        shown, key = self._path.published(item, cost)
        self._opened[(item[1], item[7])] = shown
        return (-key, *item[1:])


Arrival: TypeAlias = "tuple[int, int, int]"  # mantissa and exponent of t, ln t


class FixedWalk:
    """The finer rung above the enclosures: integers of fixed size along a path."""

    def __init__(self, tables: Tables, error: int) -> None:
        self._bits = tables.artifact.manifest.fraction_bits
        self._beta, self._unit = tables.beta, tables.unit
        self._calls = _views_of(tables)
        self._error = error

    def drawn(
        self, before: Arrival | None, calls: list[WeightedCall], word: int, mass: int, scale: int
    ) -> Arrival:
        """Return a drawn arrival; the product of the weights is exact."""
        mantissa = exponent = 0
        if before is not None:
            mantissa, exponent, _ = before
            mantissa *= prod([call.numerator for call in calls])
            exponent += self._bits * len(calls)
        return arrivals.later(mantissa, exponent, word, *arrivals.rate(mass, scale))

    def published(
        self, arrival: Arrival, calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """Return -ln t and the key, from a sum of logarithms, or None if they stay open."""
        log = arrival[2] + sum([self._calls.call(call)[2] for call in calls])
        bound = ((-self._beta * cost) << arrivals.FRACTION) // self._unit
        shown = arrivals.HALF - log
        key = shown + bound + (residual << arrivals.FRACTION - 32)
        if arrivals.decided(shown, key, self._error):
            return shown >> arrivals.DROP, key >> arrivals.DROP
        return None

    def exceeded(self, arrival: Arrival, calls: list[WeightedCall]) -> int | None:
        """Return None: U_P is computed once for a leaf, so MPFR computes it directly."""
        return None
