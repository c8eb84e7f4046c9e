"""The last rung: MPFR, at the first precision that decides.

Text: docs/spec/race.md, section 7; :mod:`tcc_runtime.numbers.reals` has the errors.  Only this rung
works for unverified artifacts and for numbers that have to be clamped.
Cost: one MPFR logarithm for an arrival and another for the arrival's logarithm.  About once in 2^60
numbers, the arrivals of a whole path are computed again.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_runtime.artifact.constraints import Held
from tcc_runtime.errors import Undecided
from tcc_runtime.item import Item, NodeRemainder
from tcc_runtime.numbers.reals import Real, Reals, clamped, units
from tcc_runtime.numbers.rung import KEY_CLAMP, SHOWN_CLAMP, Path, Published, Rung
from tcc_runtime.states import Edge, State, Tables, View, WeightedCall

# Members after the common ones: t and its relative error in units; ln t and a bound of its error. A
# bounded item has these of the arrival that bounds it. Then the cost of the prefix in nano-units,
# the published -ln t, and flags of the published numbers that were clamped.
TIME, UNITS, LOG, ERROR, COST, SHOWN, CLAMP = range(9, 16)


class RealView(View):
    """View of a state; `rate` is its n."""

    __slots__ = ("rate",)

    def __init__(self, state: State, reals: Reals) -> None:
        super().__init__(state)
        self.rate: Real = reals.scaled(state.count, state.scale)


class _Views:
    """Views and numbers of calls at one precision, stored with the tables."""

    def __init__(self, tables: Tables, bits: int) -> None:
        self.reals: Final = Reals(bits)
        self.bits: Final = tables.artifact.manifest.fraction_bits
        self._views: dict[State, RealView] = {}
        self._calls: dict[int, tuple[Real, int, int]] = {}

    def view(self, state: State) -> RealView:
        """Return the view of a state."""
        found = self._views.get(state)
        if found is None:
            found = self._views[state] = RealView(state, self.reals)
        return found

    def call(self, call: WeightedCall) -> tuple[Real, int, int]:
        """Return w, which is exact, ln w in units of 2^-S, and an error bound of ln w."""
        found = self._calls.get(call.index)
        if found is None:
            reals = self.reals
            weight = reals.scaled(call.numerator, self.bits)
            log = error = 0
            if call.numerator != 1 << self.bits:
                log = reals.log(weight)
                error = reals.log_error(log, 0)
            found = self._calls[call.index] = weight, log, error
        return found


def _views_of(tables: Tables, bits: int) -> _Views:
    name = f"mpfr.{bits}"
    found = tables.views.get(name)
    if not isinstance(found, _Views):
        found = tables.views[name] = _Views(tables, bits)
    return found


class Mpfr(Rung):
    """Makes items at a working precision.

    Args:
        bits: the precision.
        path: the same rung at higher precisions.
    """

    width = 0.0
    named = True
    clamping = True

    def __init__(self, tables: Tables, bits: int, path: Path) -> None:
        self._views = views = _views_of(tables, bits)
        self._reals = views.reals
        self._tables = tables
        self._path = path

    def view(self, state: State) -> View:
        """Return the view of a state, with its rate."""
        return self._views.view(state)

    def edge(self, view: View, place: int) -> Edge:
        """Create the edge to the child at `place`.

        Members after the common ones: w, ln w, an error bound of ln w, and the cost of the call.
        """
        found: Edge
        if place < len(view.state.edges):
            call, target = view.state.edges[place]
            numbers = self._views.call(call)
            found = (b"\x01", call.raw, call, self._views.view(target), *numbers, call.cost_low)
        else:
            found = (b"\x02", b"", None, None, 1, 0, 0, 0)
        view.edges[place] = found
        return found

    def rate(self, view: View, mass: int) -> Any:
        """Return mass / 2^scale."""
        return self._reals.scaled(mass, view.state.scale)

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
        """Create an item with t = E / n.

        Raises:
            Undecided: no precision decides the key; :meth:`won`, :meth:`lost`, :meth:`after` and
                :meth:`recost` raise it too.
        """
        reals = self._reals
        rate = view.rate if isinstance(view, RealView) else 1
        time = reals.div(reals.exponential(word), rate)
        cost = 0 if source is None else source[COST]
        if edge is not None:
            cost += edge[7]
        common = view, None, source, place, edge, word, held
        return self._drawn(ident, common, time, units(0), cost)

    def won(
        self,
        source: Item,
        edge: Edge,
        ident: bytes,
        place: int,
        word: int | None,
        held: Held | None,
    ) -> Item:
        """Create a winner; its ln t is a sum."""
        time = self._reals.mul(edge[4], source[TIME])
        log, error = source[LOG] + edge[5], source[ERROR] + edge[6]
        common = edge[3], None, source, place, edge, word, held
        cost = source[COST] + edge[7]
        return self._published(ident, common, time, source[UNITS] + 1, log, error, cost)

    def lost(
        self, source: Item, edge: Edge, ident: bytes, place: int, word: int, held: Held | None
    ) -> Item:
        """Create a child with a drawn arrival; one fused operation makes the sum."""
        reals, target = self._reals, edge[3]
        residual = reals.div(reals.log_tail(word), 1 if target is None else target.rate)
        time = reals.fms(edge[4], source[TIME], residual)
        error = max(source[UNITS], units(0)) + 1
        common = target, None, source, place, edge, word, held
        return self._drawn(ident, common, time, error, source[COST] + edge[7])

    def after(
        self, source: Item, ident: bytes, left: NodeRemainder | int, word: int, rate: Any
    ) -> Item:
        """Create the remainder of a node; one fused operation makes the sum."""
        reals = self._reals
        time = reals.fms(1, source[TIME], reals.div(reals.log_tail(word), rate))
        error = max(source[UNITS], units(0)) + 1
        # The history of the statements belongs to the node.
        common = source[2], left, source, 0, None, word, source[8]
        return self._drawn(ident, common, time, error, source[COST])

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item with the same arrival and the key of another cost."""
        if cost == item[COST]:
            return item
        time, error, log, log_error = item[TIME:COST]
        return self._published(item[1], item[2:9], time, error, log, log_error, cost)

    def shown(self, item: Item) -> tuple[int, int]:
        """Return -ln t and the clamp flags, which the item stores."""
        return item[SHOWN], item[CLAMP]

    def arrival_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: no precision decides it.
        """
        try:
            return self._reals.arrival_word(leaf[TIME], leaf[UNITS])
        except Undecided:
            return self._path.arrival_word(leaf)

    def _drawn(
        self, ident: bytes, common: tuple[Any, ...], time: Real, error: int, cost: int
    ) -> Item:
        log = self._reals.log(time)
        log_error = self._reals.log_error(log, error)
        return self._published(ident, common, time, error, log, log_error, cost)

    def _published(
        self,
        ident: bytes,
        common: tuple[Any, ...],
        time: Real,
        error: int,
        log: int,
        log_error: int,
        cost: int,
    ) -> Item:
        numbers = time, error, log, log_error, cost
        view = common[0]
        residual = 0 if view is None else view.state.residual
        exact = _rounded(self._tables, self._reals, log, log_error, cost, residual)
        if exact is None:
            exact = self._path.published((0, ident, *common, *numbers), cost)
        shown, key = exact
        clamp = 0
        if max(exact) > Q64_MAX or min(exact) < Q64_MIN:
            shown, key = clamped(shown), clamped(key)
            clamp = SHOWN_CLAMP * (shown != exact[0]) | KEY_CLAMP * (key != exact[1])
        return -key, ident, *common, *numbers, shown, clamp


def _rounded(
    tables: Tables, reals: Reals, log: int, error: int, cost: int, residual: int
) -> Published | None:
    """Return -ln t and a key, or None if the error of ln t leaves one of them open."""
    bound = ((-tables.beta * cost) << reals.shift) // tables.unit
    bound += residual << (reals.shift - 32)
    try:
        return reals.nearest(-log, error, error), reals.nearest(bound - log, error, error + 1)
    except Undecided:
        return None


class MpfrWalk:
    """MPFR at one precision along a path; an arrival is t and its error in units.

    Each logarithm is of t times a product of weights, which takes two more roundings.
    """

    def __init__(self, tables: Tables, bits: int) -> None:
        self._tables = tables
        self._reals = Reals(bits)
        self._bits = tables.artifact.manifest.fraction_bits

    def drawn(
        self,
        before: tuple[Real, int] | None,
        calls: list[WeightedCall],
        word: int,
        mass: int,
        scale: int,
    ) -> tuple[Real, int]:
        """Return t and its error."""
        reals = self._reals
        residual = reals.div(reals.exponential(word), reals.scaled(mass, scale))
        if before is None:
            return residual, units(0)
        time, error = self._times(before, calls)
        return reals.add(time, residual), max(error, units(0)) + 1

    def published(
        self, arrival: tuple[Real, int], calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """Return -ln t and the key, from one logarithm, or None if one of them stays open."""
        reals = self._reals
        time, error = self._times(arrival, calls)
        log = reals.log(time)
        error = reals.log_error(log, error)
        return _rounded(self._tables, reals, log, error, cost, residual)

    def exceeded(self, arrival: tuple[Real, int], calls: list[WeightedCall]) -> int | None:
        """Return U_P of the product, or None if it stays open."""
        try:
            return self._reals.arrival_word(*self._times(arrival, calls))
        except Undecided:
            return None

    def _times(self, arrival: tuple[Real, int], calls: list[WeightedCall]) -> tuple[Real, int]:
        if not calls:
            return arrival
        weight = self._reals.scaled(prod([c.numerator for c in calls]), self._bits * len(calls))
        return self._reals.mul(weight, arrival[0]), arrival[1] + 2


class HeuristicWalk(MpfrWalk):
    """Computes PaM values along a path: G / tau - beta C - ln E, G = -ln(-ln U), U = 1 - e^-E.

    Args:
        tau: above 0, over `unit`.
    """

    def __init__(self, tau: int, unit: int, tables: Tables, bits: int) -> None:
        super().__init__(tables, bits)
        self._tau, self._tau_unit = tau, unit

    def published(
        self, arrival: tuple[Real, int], calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """Return the PaM value twice, from a logarithm of E and another of -ln U."""
        reals, tables = self._reals, self._tables
        time, error = self._times(arrival, calls)
        log, late = reals.log(time), reals.late(time, error)
        gumbel = -reals.log(late[0])
        off = reals.log_error(gumbel, late[1]) * self._tau_unit // self._tau
        off += reals.log_error(log, error) + 3
        value = ((-tables.beta * cost) << reals.shift) // tables.unit - log
        try:
            found = reals.nearest(value + gumbel * self._tau_unit // self._tau, off, off)
        except Undecided:
            return None
        return found, found
