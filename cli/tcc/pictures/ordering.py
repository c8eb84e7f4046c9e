"""The order of the items of each layer: by barycentres, a fixed number of sweeps, the best kept.

Integers alone, ties by the order that there was: the same picture every time.
Cost: SWEEPS sorts and counts of crossings, each near linear in the lines.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tcc.pictures.layers import Layered

SWEEPS: Final = 8
_SCALE: Final = 1 << 16


def ordered(found: Layered) -> list[list[int]]:
    """The layers with their items in an order that has few crossings."""
    layers = [list(layer) for layer in found.layers]
    best, fewest = layers, crossings(found, layers)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        layers = [list(layer) for layer in layers]
        forward = sweep % 2 == 0
        steps = range(1, len(layers)) if forward else range(len(layers) - 2, -1, -1)
        for at in steps:
            beside = layers[at - 1] if forward else layers[at + 1]
            _sort(layers[at], beside, found.before if forward else found.after)
        crossed = crossings(found, layers)
        if crossed < fewest:
            best, fewest = layers, crossed
    return best


def _sort(layer: list[int], beside: list[int], joined: list[list[int]]) -> None:
    """By the mean place of what an item is joined to; by its own place where there is nothing."""
    place = {item: at for at, item in enumerate(beside)}
    means = {}
    for at, item in enumerate(layer):
        near = joined[item]
        total = sum([place[other] for other in near])
        means[item] = total * _SCALE // len(near) if near else at * _SCALE
    layer.sort(key=means.__getitem__)


def crossings(found: Layered, layers: list[list[int]]) -> int:
    """How many pairs of lines cross between neighbouring layers."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {item: at for at, item in enumerate(lower)}
        ends = [
            end for item in upper for end in sorted(place[other] for other in found.after[item])
        ]
        total += _inversions(ends, len(lower))
    return total


def _inversions(ends: list[int], width: int) -> int:
    """Pairs in falling order, by a binary indexed tree (Fenwick 1994)."""
    tree = [0] * (width + 1)
    total = 0
    for seen, end in enumerate(ends):
        at, not_above = end + 1, 0
        while at:
            not_above += tree[at]
            at &= at - 1
        total += seen - not_above
        at = end + 1
        while at <= width:
            tree[at] += 1
            at += at & -at
    return total
