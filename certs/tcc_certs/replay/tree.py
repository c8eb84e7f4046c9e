"""The prefix tree of a run, node by node, and its frontier.

Normative text: docs/spec/race.md; for shares docs/spec/ledger.md, section 9.  A :class:`Node` is a
node or leaf.  A :class:`Slot` is a child with its mass; a residual constraint may forbid it.  The
modules of :mod:`tcc_certs.replay.races` compute keys and arrivals.

A node's share of the root is omega * n.  At each pop, an integer check shows that the node's mass
equals the masses that it pushes and loses.  By induction from the root this implies coverage.  The
sum over the whole run shows that no pushed share was lost or counted twice on the way.  It is
computed modulo 2^127 - 1, because omega itself has F bits for each call of a path, which adds up to
the square of the run.  A power of two is a rotation there, so every product of the definition has a
residue.

The frontier is ordered by (key descending, digest ascending).

Cost: one digest for each node.  A push and a pop are logarithmic in the frontier's size.  A leaf
takes a search in k values.  Memory: the live nodes and their ancestors.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.digest import child_context, leaf_digest
from tcc_certs.replay.language import Language, RunRoot, States
from tcc_certs.replay.races.children import Children, Left
from tcc_certs.statements import Constraints, Tally

_EXPONENT: Final = 127
PRIME: Final = (1 << _EXPONENT) - 1


@lru_cache(maxsize=1 << 12)
def _residue(mass: int, unit: int) -> int:
    """Return the residue of mass / 2^unit."""
    return (mass % PRIME << -unit % _EXPONENT) % PRIME


def share_of(weight: int, mass: int, unit: int) -> int:
    """Return the residue of omega * mass / 2^unit.

    For a call of weight mass / 2^unit, this is the residue of omega after the call.

    Args:
        weight: omega, or a number with the same residue.
        mass: any integer.
    """
    return (weight * (mass % PRIME) << -unit % _EXPONENT) % PRIME


STOP = "stop"


@dataclass(slots=True, eq=False)
class Node:
    """A node of the prefix tree, or a leaf.

    Each push makes a node, so the class is neither frozen nor keyword-only: both make construction
    several times slower.  Only :func:`tcc_certs.replay.races.coupled.with_key` changes a node,
    before it enters the frontier.

    Attributes:
        digest: D, or L at a leaf.
        parent: None at the root.
        call: canonical text of the last call; ``stop`` at a leaf, empty at the root.
        states: the states that its calls lead to; None at a leaf.
        depth: the number of calls so far.
        cost_low, cost_high: the sums of their costs, nano-units.
        edge_weight: W of the last call; 2^F at a leaf, 1 at the root.
        weight: the residue of omega, the product of w over the calls (:func:`share_of`).
        position: the index among the parent's children.
        won: whether it was its parent's winner.
        tally: the state of the residual constraints.
        exact: its state in the automaton with exact counts, for kappa; None: no such state.
        key: Q64.64, the order of the frontier; 0 before the node is pushed.
        arrival: t, once it is realised.
        left: in the rest race, the children that were not drawn yet.  The node then is the
            remainder item, and `digest`, `key` and `arrival` belong to this item.
        word: the uniform of its key, if it has no arrival.
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
        """Return the calls of the prefix, or of the plan at a leaf.

        Only the last `most` if given.
        """
        calls: list[str] = []
        node: Node = self if self.states is not None or self.parent is None else self.parent
        while node.parent is not None and len(calls) != most:
            calls.append(node.call)
            node = node.parent
        return calls[::-1]


class Slot(NamedTuple):
    """A child in canonical order, with its data from the artifact.

    Attributes:
        position: the index among the children.
        call: the index of the call; None for the ``stop`` leaf.
        states: the states that it leads to; None for the leaf.
        mass: its mass, in the units of the parent's children.
        tally: the state of the residual constraints; None if they forbid the child.
    """

    position: int
    call: int | None
    states: States | None
    mass: int
    tally: Tally | None


def slots(children: Children, constraints: Constraints, tally: Tally) -> list[Slot]:
    """Return the children of a node in canonical order, including forbidden children."""
    steps, masses = children.steps, children.masses
    listed = [
        Slot(i, call, to, masses[i], constraints.step(tally, call))
        for i, (call, to) in enumerate(steps)
    ]
    if len(masses) > len(steps):
        stays = tally if constraints.may_stop(tally) else None
        listed.append(Slot(len(steps), None, None, masses[-1], stays))
    return listed


def child_digest(language: Language, parent: bytes, slot: Slot) -> bytes:
    """Return D of a child, or L of the ``stop`` leaf."""
    if slot.call is None:
        return leaf_digest(parent)
    return child_context(parent, language.texts[slot.call].encode())


def root_node(root: RunRoot, constraints: Constraints, exact: int | None) -> Node:
    """Return the root node of a run; costs and depth start at 0."""
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
    """Return the node of the child in `slot`, which is not forbidden."""
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
        parent.weight * _residue(weight, language.fraction_bits) % PRIME,
        slot.position,
        won,
        slot.tally or (),
        exact,
    )


def item_of(
    node: Node, digest: bytes, key: int, arrival: Arrival | None, left: Left | None
) -> Node:
    """Return the item of the remainder of `node`, or from such an item the node itself."""
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
    """Return the residue of omega * n of a node, or of omega * mass of a remainder."""
    count, unit = rate(language, node)
    return share_of(node.weight, count, unit)


def rate(language: Language, node: Node) -> tuple[int, int]:
    """Return n of a node, or the mass of a remainder, as (count, unit): n = count / 2^unit."""
    if node.left is not None:
        return node.left.mass, node.left.children.unit
    return (1, 0) if node.states is None else language.rate(node.states)


# ---- The frontier, the leaves found, and the incumbent.

Entry: TypeAlias = "tuple[int, bytes, Node]"  # -key, digest, node


class ReplayFrontier:
    """The items that were pushed and not popped."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    @property
    def top(self) -> Node | None:
        """The item that is popped next; None if the frontier is empty."""
        return self._heap[0][2] if self._heap else None

    def digests(self) -> Iterable[bytes]:
        """Return the digests of all items."""
        return (entry[1] for entry in self._heap)

    def nodes(self) -> list[Node]:
        """Return all items in unspecified order."""
        return [entry[2] for entry in self._heap]

    def kth_greatest(
        self, k: int, known: list[int], worth: Callable[[Node], int | None]
    ) -> int | None:
        """Return the k-th greatest number among `known` and the worths of items; None: too few.

        Args:
            known: at most k numbers.
            worth: returns a number not above the item's key, or None.  No key below an item of the
                heap is greater, so items that cannot count are skipped.
        """
        heapq.heapify(known)
        places = [0]
        while places:
            at = places.pop()
            if at >= len(self._heap):
                continue
            key, _, node = self._heap[at]
            full = len(known) >= k
            if full and -key <= known[0]:
                continue
            found = worth(node)
            if found is not None:
                (heapq.heappushpop if full else heapq.heappush)(known, found)
            places += (2 * at + 1, 2 * at + 2)
        return known[0] if len(known) >= k else None

    def push(self, node: Node) -> None:
        """Add an item under its key."""
        heapq.heappush(self._heap, (-node.key, node.digest, node))

    def pop(self) -> None:
        """Remove the top item, which must exist."""
        heapq.heappop(self._heap)

    def replace(self, nodes: Iterable[Node]) -> None:
        """Replace all items by `nodes`, each under its key."""
        self._heap = [(-node.key, node.digest, node) for node in nodes]
        heapq.heapify(self._heap)

    def rekey(self, keyed: Callable[[Node], Node]) -> None:
        """Replace every item by `keyed(item)`."""
        self.replace([keyed(node) for node in self.nodes()])

    def covered(self, language: Language) -> int:
        """Return the sum of the shares of all items, as a sum of residues."""
        total = 0
        weights: dict[States, int] = {}  # omega of all nodes at the same states
        for _, _, node in self._heap:
            if node.states is None or node.left is not None:
                total += share(language, node)
            else:
                weights[node.states] = weights.get(node.states, 0) + node.weight
        return total + sum([share_of(weights[at], *language.rate(at)) for at in weights])


class Best:
    """The leaves that were popped.

    Attributes:
        ranked: (-value, digest, leaf) of the best k leaves, the best first.
    """

    def __init__(self, top: int) -> None:
        self.ranked: list[tuple[int, bytes, Node]] = []
        self._found: list[Node] = []
        self._top = top

    @property
    def number(self) -> int:
        """The number of leaves found."""
        return len(self._found)

    @property
    def incumbent(self) -> int | None:
        """The k-th best value so far; None before the k-th leaf."""
        return -self.ranked[-1][0] if len(self.ranked) == self._top else None

    def add(self, leaf: Node, value: int) -> None:
        """Add a leaf with its value."""
        self._found.append(leaf)
        self._rank(leaf, value)

    def incumbent_with(self, leaf: Node, value: int) -> int | None:
        """Return the incumbent after one more leaf, without adding it."""
        ranked, new = self.ranked, (-value, leaf.digest, leaf)
        last = self._top - 1
        if len(ranked) < last:
            return None
        place = bisect_left(ranked, new)
        worst = new if place == last else ranked[last if place > last else last - 1]
        return -worst[0]

    def revalue(self, value: Callable[[Node], int]) -> None:
        """Give every leaf a new value."""
        self.ranked = []
        for leaf in self._found:
            self._rank(leaf, value(leaf))

    def _rank(self, leaf: Node, value: int) -> None:
        insort(self.ranked, (-value, leaf.digest, leaf))
        del self.ranked[self._top :]
