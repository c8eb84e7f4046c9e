"""An item of the frontier: a node of the prefix tree, a leaf, or the remainder of a node.

Text: docs/spec/race.md, sections 2, 5, 8 and 18.  An item is a tuple, because millions of them are
created and compared.  The first nine members do not depend on the rung.  The others are the numbers
of the rung that made the item (:mod:`tcc_runtime.numbers`), or of the fallback.

The remainder of a node is a few numbers for each draw, shared by the items of the node.  Only the
last of these items is in a frontier.  An item refers to the item that it was drawn from, so that
its numbers can be computed again along its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from tcc_runtime.states import View, WeightedCall

ORDER: Final = 0  # minus the published key; with floating enclosures a lower bound of it, a float
ID: Final = 1  # D of a node, L of a leaf, the id of a remainder
VIEW: Final = 2  # the view of its state; None at a leaf
LEFT: Final = 3  # the remainder of a node; None at a node and at a leaf
SOURCE: Final = 4  # the item that it was drawn from; None at the root
PLACE: Final = 5  # index among the children of its parent
# the edge of the parent's view that leads here; None at the root and for remainders
EDGE: Final = 6
WORD: Final = 7  # the PRF word of its arrival; WON if it won; None until it is drawn
HELD: Final = 8  # the tally of the statements that the run enforces; None if it enforces none
OWN: Final = 9  # index of the first member that the rung defines

WON: Final = -1

Item: TypeAlias = tuple[Any, ...]


class UndrawnChildren:
    """The children of one node that were not drawn yet.

    `_taken` is a Fenwick tree over places from 1: entry i has the masses that were removed from the
    lowbit(i) places up to i.  Finding and removing take logarithmic time in the number of children.

    Attributes:
        drawn: the places of the children that were drawn.
    """

    __slots__ = ("_cumulative", "_taken", "drawn")

    def __init__(self, cumulative: list[int]) -> None:
        self._cumulative = cumulative
        self._taken: dict[int, int] = {}
        self.drawn: set[int] = set()

    def find(self, line: int) -> int:
        """Return the first place whose running sum over the undrawn children exceeds `line`.

        If no place does, return the number of children.
        """
        cumulative, taken = self._cumulative, self._taken
        size = len(cumulative)
        place, before = 0, 0
        step = 1 << size.bit_length() >> 1
        while step:
            ahead = place + step
            if ahead <= size:
                mass = cumulative[ahead - 1] - before - taken.get(ahead, 0)
                if mass <= line:
                    line -= mass
                    place, before = ahead, cumulative[ahead - 1]
            step >>= 1
        return place

    def mass(self, place: int) -> int:
        """Return the mass of a child."""
        return self._cumulative[place] - (self._cumulative[place - 1] if place else 0)

    def take(self, place: int) -> None:
        """Remove a child."""
        mass, taken, at = self.mass(place), self._taken, place + 1
        while at <= len(self._cumulative):
            taken[at] = taken.get(at, 0) + mass
            at += at & -at
        self.drawn.add(place)


class NodeRemainder:
    """The remainder of a node, from its second draw on.

    After the first draw an integer represents it, because most remainders are never drawn from.
    The integer is the place that was drawn (the number of children for a phantom), or its
    complement if no child was pushed.

    Attributes:
        node: the item of the node.
        step: the number of earlier draws, 1 or more.
        mass: the remainder of the node's race count, in units of m.
        size: the number of children that are left.
        pool: the children before the latest draw.
        last: the place of the latest draw, which is still in `pool`.
        barren: whether no child of the node has been pushed.
    """

    __slots__ = ("barren", "last", "mass", "node", "pool", "size", "step")

    def __init__(
        self,
        node: Item,
        step: int,
        mass: int,
        size: int,
        pool: UndrawnChildren,
        last: int,
        barren: bool,
    ) -> None:
        self.node = node
        self.step = step
        self.mass = mass
        self.size = size
        self.pool = pool
        self.last = last
        self.barren = barren

    def drawn(self) -> frozenset[int]:
        """Return the places that were drawn."""
        return frozenset((*self.pool.drawn, self.last))


def step_of(left: NodeRemainder | int) -> int:
    """Return the number of earlier draws of a remainder."""
    return 1 if isinstance(left, int) else left.step


def mass_of(left: NodeRemainder | int, view: View) -> int:
    """Return the rest of the race count of a node with this view."""
    if isinstance(left, int):
        return view.left(left if left >= 0 else ~left)[0]
    return left.mass


def whole(node: Item, left: NodeRemainder | int, view: View) -> NodeRemainder:
    """Return the remainder of a node as a NodeRemainder."""
    if not isinstance(left, int):
        return left
    last = left if left >= 0 else ~left
    pool = UndrawnChildren(view.state.cumulative)
    return NodeRemainder(node, 1, *view.left(last), pool, last, left < 0)


def node_of(item: Item) -> Item:
    """Return the node of an item: the item itself, or the node whose remainder it is."""
    left = item[LEFT]
    if left is None:
        return item
    found: Item = left.node if isinstance(left, NodeRemainder) else item[SOURCE]
    return found


def above(item: Item) -> Item | None:
    """Return the parent node of a node or a leaf; None at the root."""
    source = item[SOURCE]
    return None if source is None else node_of(source)


def nodes_up(item: Item) -> Iterator[Item]:
    """Yield a node or a leaf, its parent, and so on up to the root.  A remainder begins with its
    node.
    """
    step: Item | None = node_of(item)
    while step is not None:
        yield step
        step = above(step)


def call_of(item: Item) -> WeightedCall | None:
    """Return the call that leads to a node; None at the root and at a leaf."""
    edge = item[EDGE]
    if edge is None:
        return None
    call: WeightedCall | None = edge[2]
    return call


def calls_of(item: Item) -> list[WeightedCall]:
    """Return the calls that lead to an item, from the root on."""
    found: list[WeightedCall] = []
    step = node_of(item)
    while step[EDGE] is not None:
        if step[EDGE][2] is not None:
            found.append(step[EDGE][2])
        source = step[SOURCE]
        step = source if source[LEFT] is None else node_of(source)
    found.reverse()
    return found


def state_view(item: Item) -> View:
    """Return the view of an item that is no leaf."""
    view: View | None = item[VIEW]
    if view is None:
        raise ValueError("a leaf has no state")
    return view
