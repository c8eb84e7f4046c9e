"""The prefix tree of a run, node by node, read off the artifact: who has which children.

Normative text: docs/spec/race.md.  A :class:`Node` is a node or leaf that was pushed; :func:`slots`
lists a node's children with their masses, and :func:`push_root`, :func:`push` make the nodes, by
the definitions of :mod:`tcc_certs.race`.
Cost: two logarithms a node; memory: the nodes that are alive, and their ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.digest import child_context, leaf_digest
from tcc_certs.race import Arrival, Fraction, Published, arrive, child_masses, publish
from tcc_certs.replay.language import Language
from tcc_certs.weights import score

STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the prefix tree, or a leaf, that was pushed.

    Attributes:
        digest: D, or L at a leaf.
        parent: None at the root.
        call: canonical text of the last call; ``stop`` at a leaf, empty at the root.
        state: number of the state; None at a leaf.
        depth: calls so far.
        cost_low, cost_high: sums over them, nano-units.
        weight: product of W over them; omega of the node is weight / 2^(F * depth).
        position: index among the parent's children.
        x: the uniform of its arrival; None for a winner.
        arrival, published: t, and the numbers that the ledger has of it.
    """

    digest: bytes
    parent: Node | None
    call: str
    state: int | None
    depth: int
    cost_low: int
    cost_high: int
    weight: int
    position: int
    x: int | None
    arrival: Arrival
    published: Published

    def calls(self, most: int | None = None) -> list[str]:
        """The calls of the prefix, or of the plan at a leaf; the last `most` of them."""
        found: list[str] = []
        node: Node = self if self.state is not None or self.parent is None else self.parent
        while node.parent is not None and len(found) != most:
            found.append(node.call)
            node = node.parent
        return found[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A child that is due: its place in canonical order, and what the artifact says of it.

    Attributes:
        position: index among the children.
        call: index of the call; None for the ``stop`` leaf.
        state: the target; None for the leaf.
        mass: its mass, in the units of the parent's race count.
    """

    position: int
    call: int | None
    state: int | None
    mass: int


def slots(language: Language, state: int) -> list[Slot]:
    """The children of a node at `state`, in canonical order."""
    automaton = language.automaton
    edges = list(automaton.edges(state))
    accept = automaton.accept[state] == 1
    masses = child_masses(
        automaton.rank[state],
        accept,
        [
            (language.weight[call], automaton.rank[target], language.race_count[target])
            for call, target in edges
        ],
        language.fraction_bits,
    )
    found = [
        Slot(position=i, call=call, state=target, mass=masses[i])
        for i, (call, target) in enumerate(edges)
    ]
    if accept:
        found.append(Slot(position=len(edges), call=None, state=None, mass=masses[-1]))
    return found


def child_digest(language: Language, parent: bytes, slot: Slot) -> bytes:
    """D of a child, or L of the ``stop`` leaf."""
    if slot.call is None:
        return leaf_digest(parent)
    return child_context(parent, language.texts[slot.call].encode())


def _bound(language: Language, recipe: str, state: int | None, cost_low: int) -> Fraction:
    """M of a node: -beta * cost so far, plus the recipe's bound of what may follow."""
    numerator, denominator = score(language.beta, cost_low)
    if state is None:
        return numerator, denominator
    ahead = (
        language.residual_to_go[state]
        if recipe == "r2"
        else language.automaton.rank[state] * language.envelope
    )
    return (numerator << 32) + ahead * denominator, denominator << 32


def push_root(language: Language, recipe: str, x: int) -> Node:
    """The root, whose first arrival has the uniform `x`."""
    state = language.automaton.root
    arrival = arrive(
        parent=None,
        weight=1,
        fraction_bits=0,
        x=x,
        count=language.race_count[state],
        unit=language.unit(state),
    )
    return Node(
        digest=language.root_digest,
        parent=None,
        call="",
        state=state,
        depth=0,
        cost_low=0,
        cost_high=0,
        weight=1,
        position=0,
        x=x,
        arrival=arrival,
        published=publish(arrival, _bound(language, recipe, state, 0)),
    )


def push(language: Language, recipe: str, parent: Node, slot: Slot, x: int | None) -> Node:
    """The child in `slot`; `x` is the uniform of its residual, None for the winner."""
    leaf = slot.call is None
    weight = 1 << language.fraction_bits if slot.call is None else language.weight[slot.call]
    cost_low = parent.cost_low + (0 if slot.call is None else language.cost_low[slot.call])
    cost_high = parent.cost_high + (0 if slot.call is None else language.cost_high[slot.call])
    arrival = arrive(
        parent=parent.arrival,
        weight=weight,
        fraction_bits=language.fraction_bits,
        x=x,
        count=1 if slot.state is None else language.race_count[slot.state],
        unit=0 if slot.state is None else language.unit(slot.state),
    )
    return Node(
        digest=child_digest(language, parent.digest, slot),
        parent=parent,
        call=STOP if slot.call is None else language.texts[slot.call],
        state=slot.state,
        depth=parent.depth + (0 if leaf else 1),
        cost_low=cost_low,
        cost_high=cost_high,
        weight=parent.weight * (1 if leaf else weight),
        position=slot.position,
        x=x,
        arrival=arrival,
        published=publish(arrival, _bound(language, recipe, slot.state, cost_low)),
    )


def share(language: Language, node: Node) -> int:
    """omega * n of a node, in the units of the root's race count."""
    return scale(language, node) * (1 if node.state is None else language.race_count[node.state])


def scale(language: Language, node: Node) -> int:
    """omega of a node, times the ratio of the root's unit to its own: an integer.

    omega n = (weight / 2^(F depth)) * (m / 2^(F d)), and the root's unit is 2^-(F L); a path from
    the root to a state of rank d has at most L - d calls, so the exponent is not negative.
    """
    rank = language.automaton.rank
    ahead = 0 if node.state is None else rank[node.state]
    return node.weight << language.fraction_bits * (
        rank[language.automaton.root] - node.depth - ahead
    )
