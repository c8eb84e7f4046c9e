"""The paper's own trees: the nodes at the last depth are the leaves, pushed and popped themselves.

In an artifact a plan ends at a node, and its leaf hangs below that.  Here it does not: a tree is a
shape, with the costs of its nodes, and whatever is searched is written out as the paper has it,
over values in floating point.  What the runtime does is not asked.
Cost: 2 ms a run of all methods on a tree of 243 leaves.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from math import exp, inf, log

from tcc_experiments.listing import Listing, exponential, gumbel

M, SCORE, REALISED = "M", "score LSE", "realised LSE"
BOUNDS = (M, SCORE, REALISED)
# Bounds of scores that are looser than M: by so much for each step that is left, and recipe R1.
LOOSE = {"M + 0.5 a step": 0.5, "M + 1 a step": 1.0}
R1 = "R1"


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes by number, parents before children; the children of a node stand together.

    Attributes:
        below: the children of each node; empty at a leaf.
    """

    below: Sequence[range]

    @property
    def leaves(self) -> list[int]:
        """The numbers of the leaves."""
        return [at for at, children in enumerate(self.below) if not children]


@lru_cache(maxsize=32)
def balanced(depth: int, branching: int) -> Shape:
    """Every node above the last depth has that many children."""
    below: list[range] = []
    inner = sum(branching**level for level in range(depth))
    for at in range(inner + branching**depth):
        first = branching * at + 1 if at < inner else 0
        below.append(range(first, first + branching) if at < inner else range(0))
    return Shape(below)


class Tree:
    """A shape with scores; it can be searched as a listing of an artifact can.

    Attributes:
        score: of the prefix that ends at each node, minus its cost.
        best: the greatest score of a leaf at or below each node.
        counts: the number of leaves at or below each node.
        heights: the most steps that are left at each node.
    """

    def __init__(self, shape: Shape, costs: Sequence[float]) -> None:
        self.shape = shape
        self.leaves = shape.leaves
        self.score = [-costs[0]] * len(costs)
        for at, children in enumerate(shape.below):
            for child in children:
                self.score[child] = self.score[at] - costs[child]
        self.best, self.counts = list(self.score), [1] * len(costs)
        self.heights = [0] * len(costs)
        for at in range(len(costs) - 1, -1, -1):
            if children := shape.below[at]:
                self.best[at] = max(self.best[children.start : children.stop])
                self.counts[at] = sum(self.counts[children.start : children.stop])
                self.heights[at] = 1 + max(self.heights[children.start : children.stop])

    @cached_property
    def totals(self) -> list[float]:
        """The sum of e^score over the leaves at or below each node."""
        found = [exp(score) for score in self.score]
        for at in range(len(found) - 1, -1, -1):
            if children := self.shape.below[at]:
                found[at] = sum(found[children.start : children.stop])
        return found

    def children(self, at: int) -> range:
        """The children of a node; empty at a leaf."""
        return self.shape.below[at]

    def bound(self, at: int) -> float:
        """M: the greatest score of a leaf at or below a node."""
        return self.best[at]

    def count(self, at: int) -> int:
        """The number of leaves at or below a node."""
        return self.counts[at]

    def total(self, at: int) -> float:
        """The sum of e^score over the leaves at or below a node."""
        return self.totals[at]


def drawn(shape: Shape, rng: random.Random) -> Tree:
    """A tree with costs uniform on 0..1 in thousandths, and none of the root."""
    costs = [int(rng.random() * 1001) / 1000 for _ in shape.below]
    costs[0] = 0.0
    return Tree(shape, costs)


def contracted(listing: Listing, root: int = 0) -> Tree:
    """The tree of an artifact's prefixes; where a plan ends, and nothing goes on, is its leaf.

    Args:
        root: the place of the prefix that it begins with, whose score counts as 0.
    """
    places = listing.places
    kept: list[int] = [root]
    below: list[range] = []
    for at in kept:
        children = listing.children(at)
        if all(places[child].state is None for child in children):
            children = range(0)
        below.append(range(len(kept), len(kept) + len(children)))
        kept.extend(children)
    costs = [0.0] * len(kept)
    for at, children in enumerate(below):
        for child in children:
            costs[child] = places[kept[at]].score - places[kept[child]].score
    return Tree(Shape(below), costs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a search did.

    Attributes:
        popped: its leaves, in the order in which it popped them.
        expanded: its inner nodes, in their order.
        made: how many leaves were given a value.
    """

    popped: list[int]
    expanded: list[int]
    made: int

    @property
    def deferred(self) -> int:
        """|S|: leaves that were made and not popped."""
        return self.made - len(self.popped)


def search(tree: Tree, key: Sequence[float], top: int = 1) -> Searched:
    """Best first by keys that are known beforehand, those of leaves their values.

    A leaf is made when its parent is popped.  Ends when no key is above the `top`-th leaf's.
    By realised LSE: Fallback.v: leaves_are_kept, popped_are_the_best, expanded_are_those_above,
    edges_are_counted, work_bound.
    """
    heap = [(-key[0], 0)]
    popped: list[int] = []
    expanded: list[int] = []
    made, below = 0, tree.shape.below
    while heap and not (len(popped) >= top and -heap[0][0] <= key[popped[top - 1]]):
        at = heappop(heap)[1]
        if not below[at]:
            popped.append(at)
            continue
        expanded.append(at)
        for child in below[at]:
            made += not below[child]
            heappush(heap, (-key[child], child))
    return Searched(popped=popped, expanded=expanded, made=made)


def rates(tree: Tree, factor: int) -> list[float]:
    """The bound that each node races with: so many times its count, 1 at a leaf."""
    return [
        float(factor * count if children else 1)
        for count, children in zip(tree.counts, tree.shape.below, strict=True)
    ]


def arrivals(tree: Tree, rng: random.Random, factor: int = 1) -> list[float]:
    """t of every node in one race; what bounds have above the counts is phantom mass."""
    rate = rates(tree, factor)
    found = [0.0] * len(rate)
    found[0] = exponential(rng.getrandbits(64)) / rate[0]
    for at, children in enumerate(tree.shape.below):
        left = (rng.getrandbits(64) + 0.5) * 2.0**-64 * rate[at] if children else 0.0
        won = False
        for child in children:
            left -= rate[child]
            if left < 0 and not won:
                found[child], won = found[at], True
            else:
                found[child] = found[at] + exponential(rng.getrandbits(64)) / rate[child]
    return found


def coupled_keys(
    tree: Tree, arrival: Sequence[float], bound: Sequence[float] | None = None
) -> list[float]:
    """M - ln t of every node, which is the value of a leaf; another `bound` in place of M."""
    upper = tree.best if bound is None else bound
    return [best - log(t) for best, t in zip(upper, arrival, strict=True)]


def loose_bounds(tree: Tree) -> dict[str, list[float]]:
    """Bounds of the scores below each node that are not the best of them; of a leaf its score.

    R1 is the score of the prefix and the greatest gain of a step for each step that is left: no
    step gains anything here, as costs are not negative.
    """
    made = {
        name: [best + step * left for best, left in zip(tree.best, tree.heights, strict=True)]
        for name, step in LOOSE.items()
    }
    return made | {R1: tree.score}


def expected(tree: Tree, factor: int = 1) -> float:
    """The mean expansions of the coupled race, over its draws, of trees with these costs.

    A node is popped where its key, whose arrival has rate R = rate * e^M, is before the best of the
    other leaves, whose rates sum to Z less its own.
    """
    whole, rate, due = tree.totals[0], rates(tree, factor), 0.0
    for at, children in enumerate(tree.shape.below):
        if children:
            reach = rate[at] * exp(tree.best[at])
            due += reach / (reach + whole - tree.totals[at])
    return due


def words(tree: Tree, rng: random.Random) -> list[int]:
    """A word for each leaf, as from a PRF of its id."""
    return [0 if children else rng.getrandbits(64) for children in tree.shape.below]


def printed_values(tree: Tree, word: Sequence[int]) -> list[float]:
    """V of the leaves in the printed surrogate race: an arrival of its own for each."""
    found = [-inf] * len(word)
    for at in tree.leaves:
        found[at] = tree.score[at] - log(exponential(word[at]))
    return found


def printed(
    tree: Tree, value: Sequence[float], rng: random.Random, factor: int
) -> tuple[int, int | None]:
    """The surrogate race as Algorithm 1 prints it: (inner nodes popped, its leaf).

    A node draws its arrival when it is popped, the root when it is pushed; children, leaves among
    them, are pushed with that of their parent, and a leaf has its value when it is popped.
    """
    rate, below, best = rates(tree, factor), tree.shape.below, tree.best
    start = log(exponential(rng.getrandbits(64)) / rate[0])
    heap = [(start - best[0], 0)]
    incumbent, leaf, expanded = -inf, None, 0
    while heap and -heap[0][0] > incumbent:
        at = heappop(heap)[1]
        if not below[at]:
            if value[at] > incumbent:
                incumbent, leaf = value[at], at
            continue
        expanded += 1
        late = log(exponential(rng.getrandbits(64)) / rate[at]) if at else start
        for child in below[at]:
            heappush(heap, (late - best[child], child))
    return expanded, leaf


def fallback_values(
    tree: Tree, word: Sequence[int], tau: float = 1.0, arrival: bool = True
) -> list[float]:
    """G / tau - C - ln E of the leaves; without ln E as the algorithm's listing has it."""
    found = [-inf] * len(word)
    for at in tree.leaves:
        value = gumbel(word[at]) / tau + tree.score[at]
        found[at] = value - log(exponential(word[at])) if arrival else value
    return found


def fallback_keys(tree: Tree, value: Sequence[float], bound: str) -> list[float]:
    """What the fallback searches by: values of leaves, and of nodes one of `BOUNDS`."""
    if bound == REALISED:
        return log_sums(tree, value)
    upper = tree.best if bound == M else log_sums(tree, tree.score)
    return bounded_keys(tree, value, upper)


def bounded_keys(tree: Tree, value: Sequence[float], upper: Sequence[float]) -> list[float]:
    """The values of leaves, and the bounds of nodes."""
    return [upper[at] if children else value[at] for at, children in enumerate(tree.shape.below)]


def log_sums(tree: Tree, value: Sequence[float]) -> list[float]:
    """ln of the sum of e^value over the leaves at or below each node."""
    found = list(value)
    for at in range(len(found) - 1, -1, -1):
        if children := tree.shape.below[at]:
            under = found[children.start : children.stop]
            most = max(under)
            found[at] = most + log(sum(exp(v - most) for v in under))
    return found


def best_leaves(tree: Tree, value: Sequence[float], top: int = 1) -> list[int]:
    """The `top` leaves of greatest value, best first; equal ones by number."""
    return sorted(tree.leaves, key=lambda at: (-value[at], at))[:top]
