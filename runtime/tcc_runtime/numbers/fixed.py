"""The middle rung: integers of fixed size with a proven error.

Text: docs/spec/race.md, sections 5, 7 and 21; arithmetic and error analysis:
:mod:`tcc_runtime.numbers.arrivals`.  One published number in 2^19 is open and goes to MPFR.  Runs
with a ledger begin here; by MPFR alone they take 1.3 to 1.8 times as long (benchmarks, *rungs*).
Cost: two logarithms for a drawn arrival; a winner some products and sums.
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

# After the common members: mantissa and exponent of t, ln t, and -beta times the cost, the last two
# with 112 fractional bits.
MANTISSA, EXPONENT, LOG, SCORE = range(9, 13)
_TIME_UNITS = 1 << 76  # a time is within 2^-84, in units of 2^-160
_REALS = Reals(160)
_FLOORS = 1 << 12  # that much the scores of a path's calls, each rounded down, may add up to
_ALONE = arrivals.rate(1, 0)  # of a leaf
_STOP: Final[Edge] = (b"\x02", b"", None, None, 1 << 62, -1, 0, 0, 0, *_ALONE, 0)


class FixedView(View):
    """A state; 1 / n as `later` takes it, and the residual part of M."""

    __slots__ = ("inverse", "lift", "scale")

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.inverse, self.scale = arrivals.rate(state.count, state.scale)
        self.lift = state.residual << arrivals.FRACTION - 32


class _Views:
    """Views and calls, kept with their tables."""

    def __init__(self, tables: Tables) -> None:
        self._bits = tables.artifact.manifest.fraction_bits
        self._beta, self._unit = tables.beta, tables.unit
        self._views: dict[State, FixedView] = {}
        self._calls: dict[int, tuple[int, int, int, int]] = {}

    def view(self, state: State) -> FixedView:
        """Of a state."""
        found = self._views.get(state)
        if found is None:
            found = self._views[state] = FixedView(state)
        return found

    def call(self, call: WeightedCall) -> tuple[int, int, int, int]:
        """w = factor * 2^-(63 + shift), the factor of 63 bits; ln w, and -beta cost_low."""
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
    """Items by integers of fixed size.

    Args:
        error: the bound of an error, in units of 2^-112.
        path: the rungs above.
    """

    width = 0.0
    named = True
    clamping = False

    def __init__(self, tables: Tables, error: int, path: Path) -> None:
        self._views = _views_of(tables)
        self._beta, self._unit = tables.beta, tables.unit
        self._low, self._high = error, arrivals.PART - error
        self._path = path
        # -ln t of the items that were open; one that is realised later has a word then.
        self._opened: dict[tuple[bytes, int | None], int] = {}

    def view(self, state: State) -> View:
        """A state with its rate and its residual."""
        return self._views.view(state)

    def edge(self, view: View, place: int) -> Edge:
        """Then factor, shift, ln w, -beta cost, and of the target the residual and the rate.

        The last is what a winner's key adds to that of its source: score and residual, less ln w.
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
        """1 / n of what is left."""
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
        """E / n."""
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
        """A product and two sums."""
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
        """A sum for the key, and two for when it is to be made again; no t."""
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
        """The same, and an arrival."""
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
        """An arrival."""
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
        """The same logarithm, another score."""
        score = ((-self._beta * cost) << arrivals.FRACTION) // self._unit
        if abs(score - item[SCORE]) <= _FLOORS:
            return item
        view, shown = item[2], arrivals.HALF - item[LOG]
        key = shown + score + (0 if view is None else view.lift)
        changed = (-(key >> arrivals.DROP), *item[1:SCORE], score)
        return changed if arrivals.decided(shown, key, self._low) else self._open(changed, cost)

    def shown(self, item: Item) -> tuple[int, int]:
        """Nothing is clamped that this rung takes."""
        if self._opened:
            found = self._opened.get((item[1], item[7]))
            if found is not None:
                return found, 0
        return arrivals.HALF - item[LOG] >> arrivals.DROP, 0

    def arrival_word(self, leaf: Item) -> int:
        """Raises: Undecided, where no precision decides."""
        try:
            return _REALS.arrival_word(_REALS.scaled(leaf[9], leaf[10]), _TIME_UNITS)
        except Undecided:
            return self._path.arrival_word(leaf)

    def _open(self, item: Item, cost: int | None = None) -> Item:
        """The same item with its key, which its own numbers leave open.

        Raises:
            Undecided: no precision decides.
        """
        shown, key = self._path.published(item, cost)
        self._opened[(item[1], item[7])] = shown
        return (-key, *item[1:])


Arrival: TypeAlias = "tuple[int, int, int]"  # mantissa and exponent of t, ln t


class FixedWalk:
    """Integers of fixed size for paths."""

    def __init__(self, tables: Tables, error: int) -> None:
        self._bits = tables.artifact.manifest.fraction_bits
        self._beta, self._unit = tables.beta, tables.unit
        self._calls = _views_of(tables)
        self._error = error

    def drawn(
        self, before: Arrival | None, calls: list[WeightedCall], word: int, mass: int, scale: int
    ) -> Arrival:
        """The product of the weights is exact."""
        mantissa = exponent = 0
        if before is not None:
            mantissa, exponent, _ = before
            mantissa *= prod([call.numerator for call in calls])
            exponent += self._bits * len(calls)
        return arrivals.later(mantissa, exponent, word, *arrivals.rate(mass, scale))

    def published(
        self, arrival: Arrival, calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """A sum of logarithms."""
        log = arrival[2] + sum([self._calls.call(call)[2] for call in calls])
        bound = ((-self._beta * cost) << arrivals.FRACTION) // self._unit
        shown = arrivals.HALF - log
        key = shown + bound + (residual << arrivals.FRACTION - 32)
        if arrivals.decided(shown, key, self._error):
            return shown >> arrivals.DROP, key >> arrivals.DROP
        return None

    def exceeded(self, arrival: Arrival, calls: list[WeightedCall]) -> int | None:
        """Left to MPFR: nobody asks for it twice."""
        return None
