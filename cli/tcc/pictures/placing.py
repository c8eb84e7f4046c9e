"""Where everything of a picture stands: layers from left to right, items from top to bottom.

In each layer the items keep their order and their distance, and come as near as they can, in
squares, to the items that they are joined to: an isotonic regression (pool adjacent violators;
Barlow et al., "Statistical Inference under Order Restrictions", 1972).  Bends count more, so long
lines are straight.  Integers alone.  Cost: PASSES times linear in the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tcc.pictures.layers import BEND, Layered, Size

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
