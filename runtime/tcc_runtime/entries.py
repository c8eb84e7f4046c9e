"""The items of a recorded run's frontier: a key, an arrival, and where the item comes from.

Text: docs/spec/race.md, sections 5, 8 and 18.  An item is a tuple, as millions of them are made and
compared; its numbers are those of :mod:`tcc_runtime.arrivals`.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_runtime.pages import Page, Step
from tcc_runtime.rest_item import Pool

# Of an item of the frontier: minus its key; its id; mantissa and exponent of t; ln t; -beta times
# the cost of its prefix; the page of its state, None at a leaf; what is left, None but in an item
# `rest`; the item it was drawn from, None at the root; its place; the last call of its prefix, None
# but of an inner node; the word of its arrival, -1 where it won.
Item: TypeAlias = (
    "tuple[int, bytes, int, int, int, int, Page | None, Left | int | None, Item | None, int, "
    "Step | None, int]"
)
# What is left of a node: the node; how many draws were before; the mass, the number of the children
# that are left; the children before the latest draw, None for all of them; the place of the latest;
# whether no child was pushed.  After the first draw all of it follows from the place.
Left: TypeAlias = "tuple[Item, int, int, int, Pool | None, int, bool]"


def left_of(item: Item, page: Page, left: Left | int) -> Left:
    """What is left, written out; where it is a place alone, `item` was drawn from the node."""
    if not isinstance(left, int):
        return left
    node = item[8]
    if node is None:
        raise ValueError("what is left was drawn from a node")
    return node, 1, *page.left(left), None, left, left == page.size


def above(item: Item) -> Item | None:
    """The node above a node or a leaf."""
    source = item[8]
    return None if source is None else of(source)


def of(item: Item) -> Item:
    """The node that an item is, or that it is left of."""
    left = item[7]
    if left is None:
        return item
    return left[0] if not isinstance(left, int) else item[8] or item
