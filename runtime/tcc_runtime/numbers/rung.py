"""Interface of a rung of numbers, precision of the ladder, and an item's numbers by a finer rung.

Text: docs/spec/race.md, sections 5, 7, 14 and 18.  A comparison that a rung leaves open is decided
by walking the item's path again with the next rung: a winner's arrival is its source's times
weights, so a path costs products and sums along its winners, and an arrival where an item did not
win.  These are kept, as many paths share them.
Cost: one or two additions for a winner on the path; for a drawn arrival that of the rung.
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
    """How far each rung is trusted; a wider error costs time, and changes no number.

    Attributes:
        margin: of enclosures, relative to the greatest size in them.
        error: of integers of fixed size, in units of 2^-112.
        first, last: bits of MPFR to begin and to end with.
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
        width: how far above its order an item's exact one may be, where that is a float.
        named: whether the remainder of a node needs its id; else D and the step stand for it.
        clamping: whether a number that it publishes may have to be clamped.
    """

    width: float
    named: bool
    clamping: bool

    def view(self, state: State) -> View:
        """A state with this rung's numbers."""

    def edge(self, view: View, place: int) -> Edge:
        """The child of an opened view at `place`; kept there."""

    def first_edge(self, view: View, place: int) -> First:
        """The child that is drawn first, and the rate of the others; kept there."""
        mass, size = view.left(place)
        others = self.rate(view, mass) if size else None
        edge = None
        if place < view.size:
            edge = view.edges[place] or self.edge(view, place)
        view.firsts[place] = edge, others
        return edge, others

    def rate(self, view: View, mass: int) -> Any:
        """What :meth:`after` takes for the remainder of a node."""

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
        """An arrival of its own, t = E / n: the root, or in the literal race any node or leaf."""

    def won(
        self,
        source: Item,
        edge: Edge,
        ident: bytes,
        place: int,
        word: int | None,
        held: Held | None,
    ) -> Item:
        """A child with t = w t(source): the winner, or one that is bounded by it."""

    def lost(
        self, source: Item, edge: Edge, ident: bytes, place: int, word: int, held: Held | None
    ) -> Item:
        """A child with t = w t(source) + E / n."""

    def bounded(
        self,
        source: Item,
        places: Iterable[int],
        edges: Iterable[Edge],
        idents: Iterable[bytes],
        held: Iterable[Held | None],
    ) -> list[Item]:
        """Children with the key that t = w t(source) gives each, whose own t is not drawn yet."""
        rows = zip(places, edges, idents, held, strict=False)
        return [self.won(source, edge, ident, at, None, kept) for at, edge, ident, kept in rows]

    def after(
        self, source: Item, ident: bytes, left: NodeRemainder | int, word: int, rate: Any
    ) -> Item:
        """What a draw from `source` has left of its node: T' = T + E / rate."""

    def recost(self, item: Item, cost: int) -> Item:
        """The same arrival, another cost in nano-units; the same item where it is no other."""

    def order(self, item: Item) -> Item:
        """The item with its exact order and its id; itself where it has them.

        Raises:
            Undecided: the last precision does not decide it.
        """
        return item

    def shown(self, item: Item) -> tuple[int, int]:
        """-ln t as it is published, and which had to be clamped: SHOWN_CLAMP, KEY_CLAMP."""

    def arrival_word(self, leaf: Item) -> int:
        """U_P of a leaf.

        Raises:
            Undecided: the last precision does not decide it.
        """


# Paths.

Published: TypeAlias = "tuple[int, int]"  # -ln t and the key, rounded, not clamped


class Finer(Protocol):
    """A rung that can be walked to."""

    def drawn(
        self, before: Any, calls: list[WeightedCall], word: int, mass: int, scale: int
    ) -> Any:
        """E over ``mass * 2^-scale`` after an arrival times the weights of `calls`; None is 0."""

    def published(
        self, arrival: Any, calls: list[WeightedCall], cost: int, residual: int
    ) -> Published | None:
        """-ln t and the key of an arrival times the weights of `calls`; None: not decided.

        Args:
            cost: of the prefix, nano-units.
            residual: of the state, Q31.32; 0 at a leaf.
        """

    def exceeded(self, arrival: Any, calls: list[WeightedCall]) -> int | None:
        """U_P; None: not decided."""


class Path:
    """The ladder above one rung, for one run.

    Args:
        rungs: what to try, each made when it is wanted.
        fresh: whether every arrival is one of its own, as in the literal race.
        cost_of: the cost of an item's prefix, where it is not the sum of cost_low.
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
        """-ln t and the key of an item.

        Args:
            cost: of its prefix, where the caller knows it.

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
        """U_P of a leaf.

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
        """The drawn arrival that an item has its own from by winning all along, and its cost.

        Args:
            calls: gets those that won on the way.
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
            # A fresh arrival owes nothing to the one before.
            before, weights = (None, []) if self._fresh else (arrival, on_way)
            arrival = rung.drawn(before, weights, step[WORD], mass, scale)
            kept[step[ID]] = arrival, cost
        return arrival, cost


def _rate(step: Item) -> tuple[int, int]:
    """The rate of a drawn arrival: mass / 2^scale."""
    view, left = step[VIEW], step[LEFT]
    if view is None:
        return 1, 0
    state = view.state
    return (state.count if left is None else mass_of(left, view)), state.scale
