"""The prefix tree of a run, node by node, read off the artifact: who has which children.

Normative text: docs/spec/race.md.  A :class:`Node` is a node or leaf of the frontier; :func:`slots`
lists a node's children with their masses and whether a residual constraint forbids them, and
:func:`below` makes the node of one.  Keys and arrivals are for :mod:`tcc_certs.replay.policy`.
Cost: one digest a node; memory: the nodes that are alive, and their ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.digest import child_context, leaf_digest
from tcc_certs.replay.constraints import Constraints, Tally
from tcc_certs.replay.language import Language, States
from tcc_certs.replay.left import Children, Left
from tcc_certs.replay.root import Root
from tcc_certs.replay.shares import share_of

STOP = "stop"


@dataclass(slots=True, eq=False)
class Node:
    """A node of the prefix tree, or a leaf.

    There is one a push, so it is neither frozen nor keyword-only, either of which would make it
    several times as dear; nothing is changed but by :func:`tcc_certs.replay.policy.with_key`,
    before a node enters the frontier.

    Attributes:
        digest: D, or L at a leaf.
        parent: None at the root.
        call: canonical text of the last call; ``stop`` at a leaf, empty at the root.
        states: where its calls lead; None at a leaf.
        depth: calls so far.
        cost_low, cost_high: sums over them, nano-units.
        edge_weight: W of the last call; 2^F at a leaf, 1 at the root.
        weight: omega, the product of w over the calls, modulo a prime (:mod:`.shares`).
        position: index among the parent's children.
        won: whether it was its parent's winner.
        tally: of the residual constraints.
        exact: its state in the automaton whose counts are exact, for kappa; None: none there.
        key: Q64.64, what the frontier is ordered by; 0 before it is pushed.
        arrival: t, once it is realised.
        left: in the rest race: the node stands for the children that were not drawn yet, and
            `digest`, `key` and `arrival` are those of that item.
        word: the uniform of its key, where there is no arrival.
    """

    digest: bytes
    parent: Node | None
    call: str
    states: States | None
    depth: int
    cost_low: int
    cost_high: int
    edge_weight: int
    weight: int
    position: int
    won: bool
    tally: Tally
    exact: int | None
    key: int = 0
    arrival: Arrival | None = None
    left: Left | None = None
    word: int | None = None

    def calls(self, most: int | None = None) -> list[str]:
        """The calls of the prefix, or of the plan at a leaf; the last `most` of them."""
        calls: list[str] = []
        node: Node = self if self.states is not None or self.parent is None else self.parent
        while node.parent is not None and len(calls) != most:
            calls.append(node.call)
            node = node.parent
        return calls[::-1]


class Slot(NamedTuple):
    """A child: its place in canonical order, and what the artifact says of it.

    Attributes:
        position: index among the children.
        call: index of the call; None for the ``stop`` leaf.
        states: where it leads; None for the leaf.
        mass: its mass, in the units of the parent's children.
        tally: of the residual constraints; None where one forbids the child.
    """

    position: int
    call: int | None
    states: States | None
    mass: int
    tally: Tally | None


def slots(children: Children, constraints: Constraints, tally: Tally) -> list[Slot]:
    """The children of a node in canonical order, forbidden ones too."""
    steps, masses = children.steps, children.masses
    listed = [
        Slot(i, call, to, masses[i], constraints.after(tally, call))
        for i, (call, to) in enumerate(steps)
    ]
    if len(masses) > len(steps):
        stays = tally if constraints.may_stop(tally) else None
        listed.append(Slot(len(steps), None, None, masses[-1], stays))
    return listed


def child_digest(language: Language, parent: bytes, slot: Slot) -> bytes:
    """D of a child, or L of the ``stop`` leaf."""
    if slot.call is None:
        return leaf_digest(parent)
    return child_context(parent, language.texts[slot.call].encode())


def root_node(root: Root, constraints: Constraints, exact: int | None) -> Node:
    """The root of a run: costs and depth begin here."""
    return Node(
        digest=root.digest,
        parent=None,
        call="",
        states=root.states,
        depth=0,
        cost_low=0,
        cost_high=0,
        edge_weight=1,
        weight=1,
        position=0,
        won=False,
        tally=constraints.start,
        exact=exact,
    )


def below(
    language: Language, parent: Node, slot: Slot, digest: bytes, won: bool, exact: int | None
) -> Node:
    """The child in `slot`, which nothing forbids."""
    call = slot.call
    if call is None:
        return Node(
            digest,
            parent,
            STOP,
            None,
            parent.depth,
            parent.cost_low,
            parent.cost_high,
            1 << language.fraction_bits,
            parent.weight,
            slot.position,
            won,
            slot.tally or (),
            exact,
        )
    weight = language.weight[call]
    return Node(
        digest,
        parent,
        language.texts[call],
        slot.states,
        parent.depth + 1,
        parent.cost_low + language.cost_low[call],
        parent.cost_high + language.cost_high[call],
        weight,
        share_of(parent.weight, weight, language.fraction_bits),
        slot.position,
        won,
        slot.tally or (),
        exact,
    )


def item_of(
    node: Node, digest: bytes, key: int, arrival: Arrival | None, left: Left | None
) -> Node:
    """What stands for what is left of `node`, or, from that, the node again."""
    return Node(
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
        arrival,
        left,
    )


def share(language: Language, node: Node) -> int:
    """omega * n of a node, of what is left its mass: a residue (:mod:`.shares`)."""
    count, unit = rate(language, node)
    return share_of(node.weight, count, unit)


def rate(language: Language, node: Node) -> tuple[int, int]:
    """n of a node, or of what is left of it its mass, as (count, unit): n = count / 2^unit."""
    if node.left is not None:
        return node.left.mass, node.left.children.unit
    return (1, 0) if node.states is None else language.rate(node.states)
