"""Searches without a run-wise certificate, on a realised race that is listed.

They look the value of a leaf up when they pop it, and know of the others nothing but bounds and
counts.  `expansions` counts internal nodes: over a listing of an artifact the node at the end of a
plan is one, and the leaf hangs below it; over one of the paper's trees it is the leaf itself.
Cost: a heap operation a place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, log
from typing import Protocol

EULER = 0.5772156649015329


class SearchTree(Protocol):
    """What is searched: places by number, the root first."""

    def children(self, at: int, /) -> range:
        """The children of a place; empty at a leaf."""
        ...

    def bound(self, at: int, /) -> float:
        """The greatest score of a plan at or below a place."""
        ...

    def count(self, at: int, /) -> int:
        """The number of plans at or below a place."""
        ...

    def total(self, at: int, /) -> float:
        """The sum of e^score over the plans at or below a place."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """What a baseline found.

    Attributes:
        leaf: the place of its best leaf, None where it popped none.
        expansions: nodes expanded when it stopped.
        due: nodes expanded when it had popped the winner of the race, had it gone on until then;
            None where it never would.
    """

    leaf: int | None
    expansions: int
    due: int | None


def greedy(listing: SearchTree, value: list[float]) -> BaselineResult:
    """Greedy by bound: the greatest M first; stops when no bound exceeds the incumbent."""
    return best_first(listing, value, listing.bound)


def distribution_level(listing: SearchTree, value: list[float]) -> BaselineResult:
    """Keys M + gamma + ln N, the mean of the race in place of the race; the same stop rule."""
    return best_first(listing, value, lambda at: listing.bound(at) + EULER + log(listing.count(at)))


def best_first(
    listing: SearchTree, value: list[float], key: Callable[[int], float]
) -> BaselineResult:
    """Pops by `key`; a leaf that is popped shows its value; prunes what is at most the best."""
    winner = max(range(len(value)), key=value.__getitem__)
    heap = [(-key(0), 0)]
    best, leaf, expansions = -inf, None, 0
    stopped: int | None = None
    due: int | None = None
    while heap and (stopped is None or due is None):
        if stopped is None and -heap[0][0] <= best:
            stopped = expansions
        at = heappop(heap)[1]
        if children := listing.children(at):
            expansions += 1
            for child in children:
                heappush(heap, (-key(child), child))
            continue
        if stopped is None and value[at] > best:
            best, leaf = value[at], at
        if at == winner:
            due = expansions
    return BaselineResult(leaf=leaf, expansions=expansions if stopped is None else stopped, due=due)


def beam(listing: SearchTree, value: list[float], width: int) -> BaselineResult:
    """Beam search: of each length the `width` prefixes of greatest M; all their leaves are seen."""
    level, best, leaf, expansions = [0], -inf, None, 0
    due: int | None = None
    winner = max(range(len(value)), key=value.__getitem__)
    while level:
        ahead: list[int] = []
        for at in level:
            expansions += 1
            for child in listing.children(at):
                if listing.children(child):
                    ahead.append(child)
                elif value[child] > best:
                    best, leaf = value[child], child
                if child == winner:
                    due = expansions
        level = sorted(ahead, key=lambda at: (-listing.bound(at), at))[:width]
    return BaselineResult(leaf=leaf, expansions=expansions, due=due)


def ancestral(listing: SearchTree, uniform: Callable[[int], float]) -> BaselineResult:
    """One draw down the tree from the exact conditional laws, by a uniform of each place."""
    at, expansions = 0, 0
    while children := listing.children(at):
        expansions += 1
        left = uniform(at) * listing.total(at)
        at = children[-1]
        for child in children:
            left -= listing.total(child)
            if left < 0:
                at = child
                break
    return BaselineResult(leaf=at, expansions=expansions, due=None)
