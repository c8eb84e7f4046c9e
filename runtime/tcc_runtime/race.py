"""The coupled race: arrivals and published keys of the nodes that a run touches.

Text: docs/spec/race.md, sections 5 to 8; the definition that the validator reads is its own
(tcc_certs.race.arrivals).  Cost for each child: one digest and two logarithms, one PRF call; for the
winner no logarithm and no PRF call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol, TypeAlias

from blake3 import blake3

from tcc_certs.errors import Code, ensure
from tcc_certs.race.digest import FIRST_ARRIVAL, RESIDUAL, WINNER, leaf_digest
from tcc_runtime.constraints import Constraints, Held
from tcc_runtime.node import Expansion, Node
from tcc_runtime.numbers import Real, Reals, units
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import Call, State, Tables

Draw: TypeAlias = Callable[[int, bytes], int]


class Race(Protocol):
    """What the search asks: the numbers of the nodes, each drawn when it is due."""

    def root(self) -> Node:
        """The root, as it is pushed."""

    def expand(self, node: Node) -> Expansion:
        """The children of an internal node that is popped, as they are pushed."""

    def settle(self, leaf: Node) -> int:
        """U_P of a leaf that is popped; from then on its value is known."""

    def rekey(self, node: Node) -> None:
        """Gives an item of the frontier the key that it has at its cost."""


def drawing(key: bytes) -> Draw:
    """The PRF of one run: x(purpose, id), keyed by K; one hasher, so not for two threads."""
    hasher = blake3(key=key)

    def draw(purpose: int, identity: bytes) -> int:
        hasher.reset()
        hasher.update(b"%c%b" % (purpose, identity))
        return int.from_bytes(hasher.digest(8), "little")

    return draw


class Coupled:
    """One realised race over one artifact; a child is pushed with its own arrival.

    Args:
        tables: of the artifact and the recipe.
        draw: the PRF; a test may hand in uniforms of its own.
        constraints: what forbids children besides the automaton; None is nothing.
    """

    def __init__(self, tables: Tables, draw: Draw, constraints: Constraints | None = None) -> None:
        self._tables = tables
        self._reals = tables.reals
        self._draw = draw
        self._constraints = constraints
        self._rounding = Rounding(tables.artifact, tables.reals, arrival_at)

    def root(self) -> Node:
        """The root, with the first arrival: t = E / n.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
            Rejected: C401, an unverified artifact has no count at its root.
        """
        node = bare_root(self._tables, self._constraints)
        state = self._tables.state((self._tables.artifact.root,))
        ensure(state.count > 0, Code.RACE_COUNT, f"race_count[{state.shown}]", "1 or more", 0)
        node.word = self._draw(FIRST_ARRIVAL, node.digest)
        node.time = self._reals.div(self._reals.exponential(node.word), state.rate)
        self._publish_drawn(node)
        return node

    def expand(self, node: Node) -> Expansion:
        """All children that are not forbidden, in canonical order, with their arrivals and keys.

        Raises:
            Undecided: a rounding stays open at 4096 bits; nothing was changed.
            Rejected: an unverified artifact leads out of its ranges.
        """
        state = opened(node, self._tables)
        word = self._draw(WINNER, node.digest)
        # The first child with (2x + 1) m < 2^65 (running sum).
        winner = bisect_right(state.cumulative, ((2 * word + 1) * state.count) >> 65)
        children = children_of(node, state, self._constraints, winner, self._child, self._leaf)
        won = winner if any(child.won for child in children) else None
        return Expansion(node, word, won, children)

    def settle(self, leaf: Node) -> int:
        """U_P of a leaf.

        Raises:
            Undecided: 4096 bits do not decide it.
        """
        return self._rounding.arrival_word(leaf)

    def rekey(self, node: Node) -> None:
        """The same arrival, another cost.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        self._rounding.push(node)
        node.value = node.key

    def _child(self, parent: Node, call: Call, target: State, place: int, won: bool) -> Node:
        node = bare_child(parent, call, target, place, won)
        reals = self._reals
        if won:
            node.word = None
            node.time = reals.mul(call.weight, parent.time)
            node.log = parent.log + call.log
            node.log_error = parent.log_error + call.log_error
            self._rounding.push(node)
        else:
            node.word = word = self._draw(RESIDUAL, node.digest)
            residual = reals.div(reals.log_tail(word), target.rate)
            node.time = reals.fms(call.weight, parent.time, residual)
            self._publish_drawn(node)
        return node

    def _leaf(self, parent: Node, place: int, won: bool) -> Node:
        node = bare_leaf(parent, place, won)
        if won:
            node.word = None
            node.time = parent.time
            node.log, node.log_error = parent.log, parent.log_error
            self._rounding.push(node)
        else:
            node.word = word = self._draw(RESIDUAL, node.digest)
            node.time = self._reals.fms(1, parent.time, self._reals.log_tail(word))
            self._publish_drawn(node)
        node.value = node.key
        return node

    def _publish_drawn(self, node: Node) -> None:
        node.log = log = self._reals.log(node.time)
        node.log_error = self._reals.log_error(log, units(node.depth))
        self._rounding.push(node)


def bare_root(tables: Tables, constraints: Constraints | None) -> Node:
    """The root before anything is drawn."""
    node = Node()
    node.parent = node.call = node.after = None
    node.units = units(0)
    node.state = tables.state((tables.artifact.root,))
    node.held = None if constraints is None else constraints.start
    node.digest = tables.artifact.root_digest
    node.depth = node.cost = node.place = 0
    node.won = False
    return node


def bare_child(parent: Node, call: Call, target: State, place: int, won: bool) -> Node:
    """The child by `call`, before anything is drawn."""
    node = Node()
    node.parent = parent
    node.call = call
    node.state = target
    node.held = None
    node.digest = blake3(b"\x01" + parent.digest + call.raw).digest()
    node.depth = parent.depth + 1
    node.cost = parent.cost + call.cost_low
    node.place = place
    node.won = won
    return node


def bare_leaf(parent: Node, place: int, won: bool) -> Node:
    """The leaf of `stop`, before anything is drawn."""
    node = Node()
    node.parent = parent
    node.call = node.state = node.held = None
    node.digest = leaf_digest(parent.digest)
    node.depth = parent.depth
    node.cost = parent.cost
    node.place = place
    node.won = won
    return node


def opened(node: Node, tables: Tables) -> State:
    """The state of an internal node, its children made."""
    if node.state is None:
        raise ValueError("a leaf has no children")
    node.state.open(tables)
    return node.state


def children_of(
    node: Node,
    state: State,
    constraints: Constraints | None,
    winner: int | None,
    child: Callable[[Node, Call, State, int, bool], Node],
    leaf: Callable[[Node, int, bool], Node],
) -> list[Node]:
    """The children that are not forbidden; every child keeps its place, pushed or not."""
    stop = len(state.edges)
    if constraints is None or node.held is None:
        found = [
            child(node, call, target, place, place == winner)
            for place, (call, target) in enumerate(state.edges)
        ]
        return [*found, leaf(node, stop, stop == winner)] if state.accepts else found
    found = []
    for place, (call, target) in enumerate(state.edges):
        held: Held | None = constraints.step(node.held, call.index)
        if held is not None:
            found.append(child(node, call, target, place, place == winner))
            found[-1].held = held
    if state.accepts and constraints.may_stop(node.held):
        found.append(leaf(node, stop, stop == winner))
    return found


def arrival_at(node: Node, reals: Reals, bits: int) -> Real:
    """t of the coupled race at another precision, down the path from the root.

    For a node whose own arrival is not drawn yet it is w t(parent).
    """
    path = [node]
    while (parent := path[-1].parent) is not None:
        path.append(parent)
    time: Real = 0
    for step in reversed(path):
        call, state = step.call, step.state
        weight = 1 if call is None else reals.scaled(call.numerator, bits)
        rate = 1 if state is None else reals.scaled(state.count, state.scale)
        if step.word is None:
            time = reals.mul(weight, time)
        else:
            time = reals.fms(weight, time, reals.div(reals.log_tail(step.word), rate))
    return time
