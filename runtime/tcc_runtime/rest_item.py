"""What is left of a node's children in the rest race: an item of the frontier.

Text: docs/spec/race.md, section 18.  Memory: a few numbers for each draw, shared by the items of a
node; of them only the last is ever in a frontier.
"""

from __future__ import annotations

from tcc_runtime.node import Expansion, Node


class Pool:
    """The children of one node that were not drawn yet.

    `taken` is a tree of partial sums over places from 1: entry i has the masses that were taken of
    the last lowbit(i) places.  Finding and taking cost a logarithm of the number of children.

    Attributes:
        drawn: the places of those that were.
    """

    __slots__ = ("_cumulative", "_taken", "drawn")

    def __init__(self, cumulative: list[int]) -> None:
        self._cumulative = cumulative
        self._taken: dict[int, int] = {}
        self.drawn: set[int] = set()

    def find(self, line: int) -> int:
        """The first place whose running sum over those left exceeds `line`; past the end: none."""
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
        """The mass of a child."""
        return self._cumulative[place] - (self._cumulative[place - 1] if place else 0)

    def take(self, place: int) -> None:
        """Removes a child."""
        mass, taken, at = self.mass(place), self._taken, place + 1
        while at <= len(self._cumulative):
            taken[at] = taken.get(at, 0) + mass
            at += at & -at
        self.drawn.add(place)


class Rest(Node):
    """The children of a node that were not drawn yet, and its phantom mass.

    As a node of the frontier it has the node's state, cost and depth, and an arrival, a digest and
    a key of its own.

    Attributes:
        of: the node.
        step: how many draws were before, 1 or more.
        pool: the children.
        mass, scale: what is left of the node's race count, mass / 2^scale.
        size: how many children are left.
        barren: whether no child of the node has been pushed.
    """

    __slots__ = ("barren", "mass", "of", "pool", "scale", "size", "step")

    of: Node
    step: int
    pool: Pool
    mass: int
    scale: int
    size: int
    barren: bool


class Drawing(Expansion):
    """What one draw gave: the child that won, and what is left after it.

    Attributes:
        step: which draw of the node it was, from 0.
        rest: what is left; None where no child is.
        barren: whether no child of the node has been pushed.
    """

    __slots__ = ("barren", "rest", "step")

    def __init__(
        self,
        node: Node,
        word: int | None,
        winner: int | None,
        children: list[Node],
        *,
        step: int,
        rest: Rest | None,
        barren: bool,
    ) -> None:
        super().__init__(node, word, winner, children)
        self.step = step
        self.rest = rest
        self.barren = barren

    @property
    def items(self) -> list[Node]:
        """What enters the frontier."""
        return self.children if self.rest is None else [*self.children, self.rest]

    @property
    def dead_end(self) -> bool:
        """Whether none of the node's children was pushed, nor will be."""
        return self.rest is None and self.barren
