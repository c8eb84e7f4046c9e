"""Interface of a rung of numbers, precision of the ladder, and an item's numbers by a finer rung.

Text: docs/spec/race.md, sections 5, 7, 14 and 18.  If a rung leaves a comparison open, the next
rung decides it along the item's path.  A winner's arrival is its source's arrival times weights.
So a path costs products and sums along its winners, and an arrival for each item that did not win.
Many paths share these arrivals, so they are stored.
Cost: one or two additions for a winner on the path; the rung's own cost for a drawn arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from tcc_runtime.artifact.constraints import Held
from tcc_runtime.errors import Undecided
from tcc_runtime.item import EDGE, ID, LEFT, SOURCE, VIEW, WORD, Item, NodeRemainder, mass_of
from tcc_runtime.numbers.arrivals import ERROR
from tcc_runtime.numbers.reals import FIRST_BITS, LAST_BITS
from tcc_runtime.states import Edge, First, State, View, WeightedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The error bound assumed for each rung; a wider bound costs time and changes no number.

    Attributes:
        margin: of enclosures, relative to the greatest size in them.
        error: of integers of fixed size, in units of 2^-112.
        first, last: bits of the first and of the last MPFR precision.
    """

    margin: float = 2.0**-38
    error: int = ERROR
    first: int = FIRST_BITS
    last: int = LAST_BITS


PROVEN = Precision()
SHOWN_CLAMP, KEY_CLAMP = 1, 2


class Rung(Protocol):
    """Makes the items of one run.

    Attributes:
        width: the most by which an item's exact order can exceed its order, if that is a float.
        named: True if a node's remainder needs its id; else D and the step replace the id.
        clamping: True if a published number may have to be clamped.
    """

    width: float
    named: bool
    clamping: bool

    def view(self, state: State) -> View:
        """Return the view of a state, with this rung's numbers."""

    def edge(self, view: View, place: int) -> Edge:
        """Create the edge to the child of an opened view at `place`, and store it in the view."""

    def first_edge(self, view: View, place: int) -> First:
        """Return the edge to the child drawn first and the rate of the others; store both in the
        view.
        """
        mass, size = view.left(place)
        others = self.rate(view, mass) if size else None
        edge = None
        if place < view.size:
            edge = view.edges[place] or self.edge(view, place)
        view.firsts[place] = edge, others
        return edge, others

    def rate(self, view: View, mass: int) -> Any:
        """Return the rate of a node's remainder in the form that :meth:`after` takes."""

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
        """Create an item with an independent arrival t = E / n.

        The item is the root; in the literal race it is any node or leaf.
        """

    def won(
        self,
        source: Item,
        edge: Edge,
        ident: bytes,
        place: int,
        word: int | None,
        held: Held | None,
    ) -> Item:
        """Create a child with t = w t(source): the winner, or a child that this t bounds."""

    def lost(
        self, source: Item, edge: Edge, ident: bytes, place: int, word: int, held: Held | None
    ) -> Item:
        """Create a child with t = w t(source) + E / n."""

    def bounded(
        self,
        source: Item,
        places: Iterable[int],
        edges: Iterable[Edge],
        idents: Iterable[bytes],
        held: Iterable[Held | None],
    ) -> list[Item]:
        """Create children whose own t is not drawn yet, each with the key for t = w t(source)."""
        rows = zip(places, edges, idents, held, strict=False)
        return [self.won(source, edge, ident, at, None, kept) for at, edge, ident, kept in rows]

    def after(
        self, source: Item, ident: bytes, left: NodeRemainder | int, word: int, rate: Any
    ) -> Item:
        """Create the remainder of a node after a draw from `source`: T' = T + E / rate."""

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item with another cost, in nano-units; return `item` itself if the cost is the
        same.
        """

    def order(self, item: Item) -> Item:
        """Return the item with its exact order and its id, or `item` itself if it has both.

        Raises:
            Undecided: the last precision does not decide the order.
        """
        return item

    def shown(self, item: Item) -> tuple[int, int]:
        """Return the published -ln t and the clamp flags: SHOWN_CLAMP, KEY_CLAMP."""

    def arrival_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: the last precision does not decide it.
        """


# Paths.

Published: TypeAlias = "tuple[int, int]"  # -ln t and the key, rounded, not clamped


class Finer(Protocol):
    """A finer rung, which recomputes the numbers of an item along its path."""

    def drawn(
        self, before: Any, calls: list[WeightedCall], word: int, mass: int, scale: int
    ) -> Any:
        """Return E over ``mass * 2^-scale`` after the arrival `before` times the weights of
        `calls`.

        If `before` is None, the earlier arrival is 0.
        """

    def published(
        self, arrival: Any, calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """Return -ln t and the key of an arrival times the weights of `calls`, or None if
        undecided.

        Args:
            cost: of the prefix, nano-units.
            residual: of the state, Q31.32; 0 at a leaf.
        """

    def exceeded(self, arrival: Any, calls: list[WeightedCall]) -> int | None:
        """Return U_P, or None if undecided."""


class Path:
    """The ladder above one rung, for one run.

    Args:
        rungs: the finer rungs in order; each is created at its first use.
        fresh: True if each arrival is drawn independently, as in the literal race.
        cost_of: returns the cost of an item's prefix, if that is not the sum of cost_low.
    """

    def __init__(
        self,
        rungs: list[Callable[[], Finer]],
        fresh: bool,
        cost_of: Callable[[Item], int] | None,
    ) -> None:
        self._make = rungs
        self._rungs: list[tuple[Finer, dict[bytes, tuple[Any, int]]]] = []
        self._fresh = fresh
        self._cost_of = cost_of

    def published(self, item: Item, cost: int | None = None) -> Published:
        """Return -ln t and the key of an item.

        Args:
            cost: of its prefix, if the caller knows it.

        Raises:
            Undecided: no rung decides.
        """
        view = item[VIEW]
        residual = 0 if view is None else view.state.residual
        if cost is None and self._cost_of is not None:
            cost = self._cost_of(item)
        for at in range(len(self._make)):
            rung, kept = self._rung(at)
            calls: list[WeightedCall] = []
            arrival, before = self._reached(item, calls, rung, kept)
            expected = before + sum([c.cost_low for c in calls]) if cost is None else cost
            found = rung.published(arrival, calls, expected, residual)
            if found is not None:
                return found
        raise Undecided("the last precision does not decide a rounding")

    def arrival_word(self, leaf: Item) -> int:
        """Return U_P of a leaf.

        Raises:
            Undecided: no rung decides.
        """
        for at in range(len(self._make)):
            rung, kept = self._rung(at)
            calls: list[WeightedCall] = []
            arrival, _ = self._reached(leaf, calls, rung, kept)
            found = rung.exceeded(arrival, calls)
            if found is not None:
                return found
        raise Undecided("the last precision does not decide an arrival")

    def _rung(self, at: int) -> tuple[Finer, dict[bytes, tuple[Any, int]]]:
        while at >= len(self._rungs):
            self._rungs.append((self._make[len(self._rungs)](), {}))
        return self._rungs[at]

    def _reached(
        self, item: Item, calls: list[WeightedCall], rung: Finer, kept: dict[bytes, tuple[Any, int]]
    ) -> tuple[Any, int]:
        """Return the last drawn arrival on the path of `item` and the cost up to there.

        From there on, every step of the path is a winner or bounded by a winner.

        Args:
            calls: receives the calls of these steps.
        """
        pending: list[tuple[Item, list[WeightedCall]]] = []
        step: Item | None = item
        on_way = calls
        found: tuple[Any, int] | None = None
        while step is not None:
            word = step[WORD]
            if word is None or word < 0:
                call = step[EDGE][2]
                if call is not None:
                    on_way.append(call)
                step = step[SOURCE]
                continue
            found = kept.get(step[ID])
            if found is not None:
                break
            on_way = []
            pending.append((step, on_way))
            edge = step[EDGE]
            if edge is not None and edge[2] is not None:
                on_way.append(edge[2])
            step = step[SOURCE]
        arrival, cost = (None, 0) if found is None else found
        for step, on_way in reversed(pending):
            cost += sum([call.cost_low for call in on_way])
            mass, scale = _rate(step)
            # A fresh arrival does not depend on the previous arrival.
            before, weights = (None, []) if self._fresh else (arrival, on_way)
            arrival = rung.drawn(before, weights, step[WORD], mass, scale)
            kept[step[ID]] = arrival, cost
        return arrival, cost


def _rate(step: Item) -> tuple[int, int]:
    """Return the rate of a drawn arrival: mass / 2^scale."""
    view, left = step[VIEW], step[LEFT]
    if view is None:
        return 1, 0
    state = view.state
    return (state.count if left is None else mass_of(left, view)), state.scale
