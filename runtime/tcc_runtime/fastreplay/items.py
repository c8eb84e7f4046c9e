"""What was pushed by a record that went straight, until somebody looks at it.

Most of what is pushed is never popped, so no node is made of it before: a *bud* has what its node
is made of, which the nodes of one family share but for a few numbers.
Cost: a node, when it is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tcc_certs.race import Arrival, Gauge
from tcc_certs.replay.children import Child, Remainder
from tcc_certs.replay.left import Left, Taken
from tcc_certs.replay.tree import Came, Node

# What the frontier is ordered by, -key and digest; the node that was expanded; its child, or what
# is left of its children; the uniform, None for a winner; the gauge of the arrival.  One flat
# tuple, as there may be a million of them.
Bud: TypeAlias = "tuple[int, bytes, Node, Child | Remainder, int | None, int, int, int, int]"
Entry: TypeAlias = "tuple[int, bytes, Node] | Bud"  # the same, and the node itself


def opened(entry: Entry) -> Node:
    """The node of an entry of the frontier."""
    if len(entry) == 3:
        return entry[2]
    key, digest, parent, what, x, tau, error, neg, neg_error = entry
    if isinstance(what, Child):
        return _child(-key, digest, parent, what, (what, x, tau, error, neg, neg_error))
    return _rest(-key, digest, parent, what, x, (tau, error, neg, neg_error))


def _child(key: int, digest: bytes, parent: Node, child: Child, came: Came) -> Node:
    position, _, step, place = child
    states, before = place.states, parent.exact
    return Node(  # by position, which takes a third of the time
        digest,
        parent,
        step.text,
        states,
        parent.depth if states is None else parent.depth + 1,
        parent.cost_low + step.cost_low,
        parent.cost_high + step.cost_high,
        step.weight,
        parent.weight if states is None else parent.weight * step.weight,
        position,
        came[1] is None,
        (),
        before if before is None or states is None else states[0],
        key,
        came,
    )


def _rest(
    key: int, digest: bytes, node: Node, rest: Remainder, x: int | None, gauge: Gauge
) -> Node:
    arrival = Arrival(node.arrival, 1, 0, x, rest.mass, rest.unit, gauge)
    return replace(node, digest=digest, key=key, came=arrival, left=left_of(node, rest))


def left_of(node: Node, rest: Remainder) -> Left:
    """What is left of the children of `node`."""
    if rest.left is not None:
        return rest.left
    taken, drawn = Taken(len(rest.children.running)), rest.drawn
    if drawn is not None:
        taken.take(drawn, rest.children.mass(drawn))
    return Left(
        context=node.digest,
        step=1,
        children=rest.children,
        taken=taken,
        mass=rest.mass,
        phantom=drawn is not None,
        barren=drawn is None,
    )
