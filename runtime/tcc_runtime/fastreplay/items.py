"""The items of the frontier while a ledger is read quickly, and as the definition has them.

Most of what is pushed is never popped, so no node is made of it before: an *entry* has what its
item is made of, which the items of one state share but for a few numbers.
Cost: an item, when it is asked for; an arrival, when the definition takes over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.race.arrivals import Arrival
from tcc_certs.replay.left import Left, Taken
from tcc_certs.replay.shares import PRIME
from tcc_certs.replay.tree import Node
from tcc_runtime.fastreplay.estimates import Estimate, estimated
from tcc_runtime.fastreplay.rows import Child, Remainder

NO_ESTIMATE: Estimate = (0, 0, 0, 0)
_new = object.__new__


@dataclass(slots=True, eq=False)
class Item(Node):
    """A node of the definition with an estimate of its arrival, which itself is made at need.

    Attributes:
        estimate: of the arrival.
        born: the child, or what was left, that the arrival is that of; None: it is known.
        x: its uniform; None for a winner.
        source: the item that its arrival follows from.
    """

    estimate: Estimate = NO_ESTIMATE
    born: Child | Remainder | None = None
    x: int | None = None
    source: Item | None = None


# What the frontier is ordered by, -key and digest; the item that was popped; its child, or what is
# left of its children; the uniform, None for a winner; the estimate of the arrival.  One flat
# tuple, as there may be a million of them.
Flat: TypeAlias = "tuple[int, bytes, Item, Child | Remainder, int | None, int, int, int, int]"
Entry: TypeAlias = "tuple[int, bytes, Item] | Flat"  # the same, and the item itself


def entered(node: Node) -> Item:
    """An item of the definition, with the estimate of its arrival."""
    if isinstance(node, Item):
        return node
    found = _item(node, node.digest, node.key, node.left)
    if node.arrival is not None:
        found.arrival, found.estimate = node.arrival, estimated(node.arrival)
    return found


def opened(entry: Entry) -> Item:
    """The item of an entry of the frontier."""
    if len(entry) == 3:
        return entry[2]
    order, digest, parent, what, x = entry[:5]
    if isinstance(what, Remainder):
        item = _item(parent, digest, -order, left_of(parent, what))
        item.estimate, item.born, item.x, item.source = entry[5:], what, x, parent
        return item
    position, _, _, (text, _, weight, _, share, _, _, cost_low, cost_high, _), place = what
    item = _new(Item)  # there is one an expansion, and a call by arguments takes half as long again
    item.digest = digest
    item.parent = item.source = parent
    item.call = text
    item.states = states = place[0]
    item.depth, item.exact = parent.depth, parent.exact
    if states is not None:
        item.depth += 1
        if item.exact is not None:
            item.exact = states[0]
    item.cost_low = parent.cost_low + cost_low
    item.cost_high = parent.cost_high + cost_high
    item.edge_weight = weight
    item.weight = parent.weight * share % PRIME
    item.position = position
    item.won = x is None
    item.tally = ()
    item.key = -order
    item.arrival = item.left = item.word = None
    item.estimate, item.born, item.x = entry[5:], what, x
    return item


def drawn_from(item: Item, left: Left) -> Item:
    """The node whose children `item` stands for; its arrival is that of the draw."""
    node = _item(item, left.context, item.key, None)
    node.arrival, node.estimate = item.arrival, item.estimate
    node.born, node.x, node.source = item.born, item.x, item.source
    return node


def settled(item: Item) -> Item:
    """The item as the definition has it, with its arrival; those that it follows from, too."""
    path: list[Item] = []
    at: Item | None = item
    while at is not None and at.arrival is None:
        path.append(at)
        at = at.source
    for step in reversed(path):
        source, born = step.source, step.born
        before = None if source is None else source.arrival
        if born is not None:
            step.arrival = arrival_of(before, born, step.x)
        step.source = None  # what was popped goes when nobody stands on it
    return item


def arrival_of(before: Arrival | None, born: Child | Remainder, x: int | None) -> Arrival:
    """The arrival of what was pushed; `before` is that of what was popped."""
    if isinstance(born, Remainder):
        return Arrival(before, 1, 0, x, born.mass, born.children.unit)
    call, place = born.step, born.place
    return Arrival(before, call.weight, call.fraction_bits, x, place.race_count, place.unit)


def _item(node: Node, digest: bytes, key: int, left: Left | None) -> Item:
    return Item(
        digest,
        node.parent,
        node.call,
        node.states,
        node.depth,
        node.cost_low,
        node.cost_high,
        node.edge_weight,
        node.weight,
        node.position,
        node.won,
        node.tally,
        node.exact,
        key,
        None,
        left,
    )


def left_of(node: Node, rest: Remainder) -> Left:
    """What is left of the children of `node`."""
    if rest.left is not None:
        return rest.left
    taken, drawn = Taken(len(rest.children.running)), rest.drawn
    if drawn is not None:
        taken.take(drawn, rest.children.mass(drawn))
    return Left(node.digest, 1, rest.children, taken, rest.mass, drawn is None)
