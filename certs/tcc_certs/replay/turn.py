"""What comes next in a run: it follows from the item on top of the frontier.

Normative text: docs/spec/race.md, sections 9, 10 and 19.  Cost: where costs are ranges, one step
for each call of the item's prefix.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from tcc_certs.errors import Code
from tcc_certs.replay.best import Best
from tcc_certs.replay.guards import capped
from tcc_certs.replay.header import Header
from tcc_certs.replay.policy import Policy
from tcc_certs.replay.refinement import Refinement
from tcc_certs.replay.tree import Node


class Turn(StrEnum):
    """Each by the kind of the record that it writes, but for CAP: the run ends by its cap."""

    CLOSE = "close"
    REQUEUE = "requeue"
    CAP = "close, by CapExceeded"
    BUDGET = "budget"
    LEAF = "leaf"
    EXPAND = "expand"
    DRAW = "draw"


_CODES = {
    Turn.REQUEUE: Code.REQUEUE,
    Turn.CAP: Code.GUARD,
    Turn.BUDGET: Code.ASK,
}


def refuser(expected: Turn, found: Turn) -> Code:
    """The rule that refuses `found` where `expected` comes next."""
    return _CODES.get(expected) or _CODES.get(found) or Code.POP_ORDER


def next_turn(
    top: Node | None,
    best: Best,
    header: Header,
    policy: Policy,
    refinement: Refinement | None,
    expansions: int,
) -> Turn:
    """What is done next, unless the run is ended from outside or by its clock."""
    if refinement is not None and refinement.asks and refinement.overspent:
        return Turn.BUDGET
    if top is None or (best.incumbent is not None and top.key <= best.incumbent):
        return Turn.CLOSE
    if refinement is not None and _fell(top, policy, refinement):
        return Turn.REQUEUE
    if top.left is not None:
        return Turn.DRAW
    if top.states is not None and capped(header, expansions):
        return Turn.CAP
    if refinement is not None and refinement.unasked(top) is not None:
        return Turn.BUDGET
    return Turn.LEAF if top.states is None else Turn.EXPAND


def at_cost(node: Node, refinement: Refinement | None) -> Node:
    """The node with the least that its calls may cost, as far as is known."""
    if refinement is None:
        return node
    low, _ = refinement.costs(node)
    return node if low == node.cost_low else replace(node, cost_low=low)


def _fell(top: Node, policy: Policy, refinement: Refinement) -> bool:
    """Whether answers since the push have brought the key of `top` down."""
    node = at_cost(top, refinement)
    return node is not top and policy.again(node).key < top.key
