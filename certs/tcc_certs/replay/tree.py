"""The prefix tree of a run, node by node, and its frontier: who has which children.

Normative text: docs/spec/race.md; of shares docs/spec/ledger.md, section 9.  A :class:`Node` is a
node or leaf of the frontier; :func:`slots` lists a node's children with their masses and whether a
residual constraint forbids them, and :func:`below` makes the node of one.  Keys and arrivals are
for :mod:`tcc_certs.replay.races.coupled`.

A node's share of the root is omega * n.  That a node's mass is that of what it pushes and of
what is lost holds in integers wherever a node is popped, and implies coverage by induction from
the root.  The sum over the whole run, which shows that nothing that was pushed got lost or
counted twice on the way, is taken modulo 2^127 - 1: written out, omega has F bits for each call
of a path, and all of them together the square of the run.  A power of two is a rotation there,
so every product of the definition has its residue.

The frontier holds items by (key descending, digest ascending).

Cost: one digest a node, a push and a pop logarithmic in the frontier's size, one search in k values
a leaf; memory: the nodes that are alive, and their ancestors.
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
    """The residue of mass / 2^unit."""
    return (mass % PRIME << -unit % _EXPONENT) % PRIME


def share_of(weight: int, mass: int, unit: int) -> int:
    """The residue of omega * mass / 2^unit; of omega itself after a call of weight mass / 2^unit.

    Args:
        weight: omega, or what has its residue.
        mass: any integer.
    """
    return (weight * (mass % PRIME) << -unit % _EXPONENT) % PRIME


STOP = "stop"


@dataclass(slots=True, eq=False)
class Node:
    """A node of the prefix tree, or a leaf.

    There is one a push, so it is neither frozen nor keyword-only, either of which would make it
    several times as dear; nothing is changed but by
    :func:`tcc_certs.replay.races.coupled.with_key`, before a node enters the frontier.

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
        Slot(i, call, to, masses[i], constraints.step(tally, call))
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


def root_node(root: RunRoot, constraints: Constraints, exact: int | None) -> Node:
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
        parent.weight * _residue(weight, language.fraction_bits) % PRIME,
        slot.position,
        won,
        slot.tally or (),
        exact,
    )


def item_of(
    node: Node, digest: bytes, key: int, arrival: Arrival | None, left: Left | None
) -> Node:
    """What stands for the remainder of `node`, or, from that, the node again."""
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
    """n of a node, or of the remainder of it its mass, as (count, unit): n = count / 2^unit."""
    if node.left is not None:
        return node.left.mass, node.left.children.unit
    return (1, 0) if node.states is None else language.rate(node.states)


# ---- The frontier, the leaves found, and the incumbent.

Entry: TypeAlias = "tuple[int, bytes, Node]"  # -key, digest


class ReplayFrontier:
    """The nodes and leaves that were pushed and not popped."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    @property
    def top(self) -> Node | None:
        """The item that is popped next."""
        return self._heap[0][2] if self._heap else None

    def digests(self) -> Iterable[bytes]:
        """Those of all items."""
        return (entry[1] for entry in self._heap)

    def nodes(self) -> list[Node]:
        """All items, in no order to rely on."""
        return [entry[2] for entry in self._heap]

    def kth_greatest(
        self, k: int, known: list[int], worth: Callable[[Node], int | None]
    ) -> int | None:
        """The k-th greatest of `known` and of what items are worth; None: there are not so many.

        Args:
            known: fewer than k, or k.
            worth: of an item, no more than its key; None: it has none.  Below an item of the heap
                no key is greater, so what cannot count is not looked at.
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
        """One more item, under its key."""
        heapq.heappush(self._heap, (-node.key, node.digest, node))

    def pop(self) -> None:
        """The top leaves; there is one."""
        heapq.heappop(self._heap)

    def replace(self, nodes: Iterable[Node]) -> None:
        """These items, each under its key, in place of all others."""
        self._heap = [(-node.key, node.digest, node) for node in nodes]
        heapq.heapify(self._heap)

    def rekey(self, keyed: Callable[[Node], Node]) -> None:
        """Every item gets another key."""
        self.replace([keyed(node) for node in self.nodes()])

    def covered(self, language: Language) -> int:
        """omega * n of all items: a residue (:mod:`tcc_certs.replay.tree`), or a sum of some."""
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
        ranked: (-value, digest, leaf) of the best k, best first.
    """

    def __init__(self, top: int) -> None:
        self.ranked: list[tuple[int, bytes, Node]] = []
        self._found: list[Node] = []
        self._top = top

    @property
    def number(self) -> int:
        """How many leaves were found."""
        return len(self._found)

    @property
    def incumbent(self) -> int | None:
        """The k-th best value so far."""
        return -self.ranked[-1][0] if len(self.ranked) == self._top else None

    def add(self, leaf: Node, value: int) -> None:
        """One more leaf, of value `value`."""
        self._found.append(leaf)
        self._rank(leaf, value)

    def incumbent_with(self, leaf: Node, value: int) -> int | None:
        """The incumbent that there would be with one more leaf."""
        ranked, new = self.ranked, (-value, leaf.digest, leaf)
        last = self._top - 1
        if len(ranked) < last:
            return None
        place = bisect_left(ranked, new)
        worst = new if place == last else ranked[last if place > last else last - 1]
        return -worst[0]

    def revalue(self, value: Callable[[Node], int]) -> None:
        """Every leaf has another value now."""
        self.ranked = []
        for leaf in self._found:
            self._rank(leaf, value(leaf))

    def _rank(self, leaf: Node, value: int) -> None:
        insort(self.ranked, (-value, leaf.digest, leaf))
        del self.ranked[self._top :]
