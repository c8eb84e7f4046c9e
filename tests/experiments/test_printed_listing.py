"""Algorithm 1 of the paper, transcribed, beside what its text says (docs/errata.md)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf, log, log1p
from statistics import mean

import pytest

from tcc_experiments import paper_trees
from tcc_experiments.listing import exponential, gumbel
from tcc_experiments.paper_trees import Tree


def open_uniform(rng: random.Random) -> float:
    return (rng.getrandbits(64) + 0.5) * 2.0**-64


def trees(number: int, depth: int = 3) -> Iterator[tuple[Tree, random.Random]]:
    for seed in range(number):
        rng = random.Random(seed)
        yield paper_trees.drawn(paper_trees.balanced(depth, 3), rng), rng


# ---- In doubles (errata, 6).


def test_in_doubles_1024_words_have_the_uniform_one() -> None:
    def uniform(x: int) -> float:
        return (x + 0.5) * 2.0**-64

    assert uniform(2**64 - 1024) == 1.0 > uniform(2**64 - 1025)
    assert uniform(0) > 0.0
    with pytest.raises(ValueError, match="math domain"):
        log1p(-uniform(2**64 - 1))
    with pytest.raises(ValueError, match="math domain"):
        log(-log(uniform(2**64 - 1)))
    assert 44.3 < exponential(2**64 - 1) < 45.1 and 44.3 < gumbel(2**64 - 1) < 45.8


# ---- Surrogate: U(root) is drawn when the root is pushed, and again when it is popped (18).


def surrogate(tree: Tree, rng: random.Random) -> list[tuple[float, list[float]]]:
    """Of each expansion in order: the key of the node, and those of its children."""
    rate, best = paper_trees.rates(tree, 2), tree.best
    u = open_uniform(rng)  # line 7: draw U(root), set t^(root)
    t = -log1p(-u) / rate[0]
    frontier = [(-(best[0] - log(t)), 0)]  # line 8
    incumbent, expanded = -inf, []
    while frontier and -frontier[0][0] > incumbent:  # lines 11 to 18
        key, v = heappop(frontier)  # line 19
        if not tree.children(v):  # lines 20 to 27
            incumbent = max(incumbent, tree.score[v] - log(-log1p(-open_uniform(rng))))
            continue
        u = open_uniform(rng)  # line 35: draw U(v), whichever node it is
        t = -log1p(-u) / rate[v]
        keys = [best[child] - log(t) for child in tree.children(v)]  # lines 36 and 37
        for child, provisional in zip(tree.children(v), keys, strict=True):
            heappush(frontier, (-provisional, child))
        expanded.append((-key, keys))
    return expanded


def test_the_root_has_two_arrivals_so_a_child_may_have_a_greater_key() -> None:
    greater = [
        max(keys) > key for tree, rng in trees(2000) for key, keys in surrogate(tree, rng)[:1]
    ]
    # The best child has the M of the root, and two independent arrivals of one law.
    assert len(greater) == 2000 and 0.46 < mean(greater) < 0.54


# ---- The printed race, with bounds and with exact counts (errata, 1).


@pytest.mark.parametrize(("factor", "share"), [(1, 0.66), (2, 0.54)])
def test_with_exact_counts_the_printed_race_misses_the_winner_no_less(
    factor: int, share: float
) -> None:
    missed = []
    for tree, rng in trees(2000):
        value = paper_trees.printed_values(tree, paper_trees.words(tree, rng))
        _, leaf = paper_trees.printed(tree, value, rng, factor)
        missed.append(leaf != max(tree.leaves, key=value.__getitem__))
    assert abs(mean(missed) - share) < 0.05


# ---- The monotone variant of Sec. surrogate, with exact counts (errata, 22).


def test_the_monotone_variant_without_winner_reuse_has_another_law() -> None:
    """A root with a leaf A and a node of two leaves: one of three equal plans is A."""
    rng, first, arrivals = random.Random(21), 0, []

    def later(rate: float) -> float:
        return -log1p(-open_uniform(rng)) / rate

    for _ in range(50_000):
        root = later(3)  # t^(root); each child then adds Exp(Nub(child)), the winner too
        leaf, node = root + later(1), root + later(2)
        first += leaf < min(node + later(1), node + later(1))
        arrivals.append(leaf)
    assert abs(first / 50_000 - 5 / 9) < 0.01  # the softmax of equal costs gives 1/3
    assert abs(mean(arrivals) - 4 / 3) < 0.03  # of an exponential arrival of rate 1: 1


# ---- Fallback: nothing takes a leaf from L (19).


def fallback(tree: Tree, rng: random.Random) -> tuple[float, list[int], int]:
    """B* at the stop, L as it is then, and how many leaves were pushed into it."""
    words = paper_trees.words(tree, rng)
    frontier, leaves, incumbent, pushed = [(-tree.best[0], 0)], list[int](), -inf, 0

    def score(leaf: int) -> float:  # line 41: G / tau - C, without - ln E
        return gumbel(words[leaf]) + tree.score[leaf]

    while True:
        v = heappop(frontier)[1]  # line 19; only inner nodes are ever in F
        for child in tree.children(v):  # lines 39 to 43
            if not tree.children(child):
                leaves.append(child)
                pushed += 1
            else:
                heappush(frontier, (-tree.best[child], child))
        bound = -frontier[0][0] if frontier else -inf
        if leaves and max(map(score, leaves)) >= bound:  # lines 44 and 45
            return incumbent, leaves, pushed


def test_nothing_pops_a_leaf_and_the_incumbent_stays_at_minus_infinity() -> None:
    for tree, rng in trees(200):
        incumbent, leaves, pushed = fallback(tree, rng)
        assert incumbent == -inf and len(leaves) == pushed > 0


# ---- Exact: residuals of all children when their parent is expanded, or on first touch (20).


def one_by_one(tree: Tree, rng: random.Random) -> tuple[int, int]:
    """The rest race on a tree: the words that it draws, and the nodes that it expands."""
    words = 0

    def arrival(rate: float) -> float:
        nonlocal words
        words += 1
        return -log1p(-open_uniform(rng)) / rate

    start = arrival(tree.counts[0])
    # (minus the key, node, its arrival, the children that are left of it; none: the node itself)
    frontier: list[tuple[float, int, float, tuple[int, ...]]] = []
    heappush(frontier, (log(start) - tree.best[0], 0, start, ()))
    expanded = 0
    while True:
        _, v, t, left = heappop(frontier)
        if not left:
            if not tree.children(v):
                return words, expanded
            expanded, left = expanded + 1, tuple(tree.children(v))
        words += 1
        won = rng.choices(left, [tree.counts[child] for child in left])[0]
        heappush(frontier, (log(t) - tree.best[won], won, t, ()))
        left = tuple(child for child in left if child != won)
        if left:
            later = t + arrival(sum(tree.counts[child] for child in left))
            heappush(frontier, (log(later) - tree.best[v], v, later, left))


def test_on_first_touch_fewer_words_are_drawn_than_for_all_children() -> None:
    every, touched, nodes = [], [], []
    for tree, rng in trees(4000):
        found = paper_trees.search(
            tree, paper_trees.coupled_keys(tree, paper_trees.arrivals(tree, rng))
        )
        # The root's arrival; a winner and the residuals of the others for each expanded node.
        every.append(1 + 3 * len(found.expanded))
        words, expanded = one_by_one(tree, rng)
        touched.append(words)
        nodes.append(expanded - len(found.expanded))
    assert abs(mean(every) - 11.6) < 0.2
    assert abs(mean(touched) - 9.5) < 0.2
    assert abs(mean(nodes)) < 0.1  # one law: as many nodes are expanded
