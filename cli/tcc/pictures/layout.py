"""Layered layout of a picture: a layer for each box, an order in each layer, coordinates.

A box stands as many layers from the roots as its longest way from one.  Between two layers of boxes
is a layer of labels; an arrow passes its label, and a bend in each layer on its way, so nothing
that is drawn overlaps.

Why the layout is our own: a picture must be the same bytes on every machine, without another
program installed.  Graphviz is one, and its coordinates change with its version and fonts; a layout
in floating point may round differently elsewhere.  Integers only here.  Method: Sugiyama, Tagawa
and Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981).
Cost: linear in arrows and bends (at most MOST_BENDS) per pass, a fixed number of passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

Size: TypeAlias = "tuple[int, int]"

MOST_BENDS: Final = 20_000
BEND: Final = (0, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Items (the boxes by their places, then labels and bends) and the lines between neighbours.

    Attributes:
        layers: the items of each layer, in the order in which they were made.
        sizes: width and height of each item.
        before, after: the items of the layer before, and after, that a line joins to an item.
        ways: for each arrow the items that it goes through, from its source to its target; all but
            the last two are in layers that follow each other.
    """

    layers: list[list[int]]
    sizes: list[Size]
    before: list[list[int]]
    after: list[list[int]]
    ways: list[list[int]]


def layered(
    boxes: Sequence[Size], arrows: Sequence[tuple[int, int]], labels: Sequence[Size]
) -> Layered:
    """The layers of boxes, sources before targets, and of arrows with their labels."""
    depth = _depths(len(boxes), arrows)
    spans = [depth[target] - depth[source] for source, target in arrows]
    longest = _longest_bent(spans)
    sizes = list(boxes)
    layers: list[list[int]] = [[] for _ in range(2 * max(depth, default=0) + 1)]
    for box, at in enumerate(depth):
        layers[2 * at].append(box)
    ways = []
    for (source, target), label, span in zip(arrows, labels, spans, strict=True):
        way = [source]
        first = 2 * depth[source] + 1
        last = 2 * depth[target] if span <= longest else first + 1
        for layer in range(first, last):
            way.append(len(sizes))
            layers[layer].append(len(sizes))
            sizes.append(label if layer == first else BEND)
        ways.append([*way, target])
    return _joined(layers, sizes, ways)


def _joined(layers: list[list[int]], sizes: list[Size], ways: list[list[int]]) -> Layered:
    before: list[list[int]] = [[] for _ in sizes]
    after: list[list[int]] = [[] for _ in sizes]
    where = {item: at for at, layer in enumerate(layers) for item in layer}
    for way in ways:
        for one, other in pairwise(way):
            if where[other] == where[one] + 1:  # not so where an arrow has no bends
                after[one].append(other)
                before[other].append(one)
    return Layered(layers=layers, sizes=sizes, before=before, after=after, ways=ways)


def _depths(boxes: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    leaving: list[list[int]] = [[] for _ in range(boxes)]
    for source, target in arrows:
        leaving[source].append(target)
    depth = [0] * boxes
    for source in range(boxes):
        for target in leaving[source]:
            depth[target] = max(depth[target], depth[source] + 1)
    return depth


def _longest_bent(spans: Sequence[int]) -> int:
    """The longest span whose arrows have bends, so that there are not too many of these."""
    longest = bends = 0
    for span in sorted(spans):
        bends += 2 * span
        if bends > MOST_BENDS:
            break
        longest = span
    return longest


# Order in each layer: barycentres, a fixed number of sweeps, the best order kept; ties keep the
# order they had.  Cost: SWEEPS sorts and counts of crossings, each near linear in the lines.

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


# Coordinates: layers from left to right, items from top to bottom.  In each layer the items keep
# their order and distance, and come as near as possible, in least squares, to the items they are
# joined to: an isotonic regression (pool adjacent violators; Barlow et al., "Statistical Inference
# under Order Restrictions", 1972).  Bends weigh more, so that long lines are straight.

PASSES: Final = 6
GAP: Final = 14  # between two items of a layer
NARROW: Final = 5  # the same where one of them is a bend
ASIDE: Final = 34  # between two layers
_BEND_WEIGHT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where items stand.

    Attributes:
        left: of each item, its left edge.
        middle: of each item, half-way between top and bottom.
        width, height: of all of it; everything is at 0 or more.
    """

    left: list[int]
    middle: list[int]
    width: int
    height: int


def placed(found: Layered, order: Sequence[Sequence[int]]) -> Placed:
    """Places for the items, layer by layer in this order."""
    sizes = found.sizes
    middle = [0] * len(sizes)
    for layer in order:
        _settle(layer, [0] * len(layer), sizes, middle)
    for turn in range(PASSES):
        forward = turn % 2 == 0
        for layer in order if forward else reversed(order):
            beside = found.before if forward else found.after
            last = turn >= PASSES - 2
            wanted = [_wanted(item, beside, found, middle, last) for item in layer]
            _settle(layer, wanted, sizes, middle)
    top = min((middle[item] - sizes[item][1] // 2 for item in range(len(sizes))), default=0)
    middle = [at - top for at in middle]
    left, width = _columns(order, sizes)
    height = max((middle[item] + sizes[item][1] // 2 + 1 for item in range(len(sizes))), default=0)
    return Placed(left=left, middle=middle, width=width, height=height)


def _wanted(
    item: int, beside: list[list[int]], found: Layered, middle: list[int], both: bool
) -> int:
    """The mean height of what an item is joined to; where it is, where that is nothing."""
    near = [*found.before[item], *found.after[item]] if both else beside[item]
    if not near:
        return middle[item]
    return sum([middle[other] for other in near]) // len(near)


def _settle(
    layer: Sequence[int], wanted: Sequence[int], sizes: Sequence[Size], middle: list[int]
) -> None:
    """Put the items of a layer as near as can be to where they are wanted."""
    offsets, at = [], 0
    for place, item in enumerate(layer):
        if place:
            above = layer[place - 1]
            gap = NARROW if BEND in (sizes[above], sizes[item]) else GAP
            at += (sizes[above][1] + sizes[item][1] + 1) // 2 + gap
        offsets.append(at)
    # Blocks of items that touch: the weighted sum of where they want to be, the weight, how many.
    blocks: list[tuple[int, int, int]] = []
    for item, want, offset in zip(layer, wanted, offsets, strict=True):
        weight = _BEND_WEIGHT if sizes[item] == BEND else 1
        block = (weight * (want - offset), weight, 1)
        while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    place = 0
    for total, weight, count in blocks:
        for _ in range(count):
            middle[layer[place]] = total // weight + offsets[place]
            place += 1


def _columns(order: Sequence[Sequence[int]], sizes: Sequence[Size]) -> tuple[list[int], int]:
    """The left edges; items stand in the middle of their layer.  And the whole width."""
    left = [0] * len(sizes)
    at = 0
    for layer in order:
        width = max(sizes[item][0] for item in layer) if layer else 0
        for item in layer:
            left[item] = at + (width - sizes[item][0]) // 2
        at += width + ASIDE
    return left, max(0, at - ASIDE)
