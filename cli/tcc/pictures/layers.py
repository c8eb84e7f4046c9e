"""Which layer everything of a picture stands in.

A box is as many steps from the roots as its longest way from one.  Between two layers of boxes is a
layer of labels; an arrow goes from its source to its label, and by way of bends, one in each layer
that it passes, to its target.  So nothing that is drawn can lie on anything else.
After Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System
Structures" (1981).  Cost: linear in the arrows and the bends, which are at most MOST_BENDS.
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
