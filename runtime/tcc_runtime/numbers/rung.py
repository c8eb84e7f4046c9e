"""What a race asks of a rung, and the precision of the whole ladder.

Text: docs/spec/race.md, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tcc_runtime.artifact.constraints import Held
from tcc_runtime.item import Item, Left
from tcc_runtime.numbers.arrivals import ERROR
from tcc_runtime.numbers.reals import FIRST_BITS, LAST_BITS
from tcc_runtime.states import Edge, First, State, View


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
        named: whether what is left of a node needs its id; else D and the step stand for it.
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
        """What :meth:`after` takes for what is left of a node."""

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

    def after(self, source: Item, ident: bytes, left: Left | int, word: int, rate: Any) -> Item:
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
