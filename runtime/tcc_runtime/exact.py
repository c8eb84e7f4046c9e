"""The exact nodes of an unrecorded run, where it needs them: path by path, published at the end.

Text: docs/spec/race.md, sections 5, 7 and 18.  The same nodes that a recorded run makes, but for
what nobody asks of the nodes on the way: their keys and the logarithms of their arrivals.
Cost: a node one or two operations of working precision, with a logarithm where it did not win; a
published one another logarithm.
"""

from __future__ import annotations

from tcc_certs.digest import RESIDUAL, REST_ARRIVAL, rest_digest, rest_place
from tcc_runtime.node import Node
from tcc_runtime.numbers import units
from tcc_runtime.race import Draw, arrival_at
from tcc_runtime.rest import rest_at, units_of
from tcc_runtime.rest_item import Rest
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import State, Tables


class Exact:
    """Makes nodes from the node that they come after; the race is one without constraints.

    Args:
        tables: of the artifact, the recipe and the inflation.
        draw: the PRF.
        rest: whether children are drawn one at a time.
    """

    __slots__ = ("_draw", "_reals", "_rounding")

    def __init__(self, tables: Tables, draw: Draw, rest: bool) -> None:
        self._reals = tables.reals
        self._draw = draw
        self._rounding = (
            Rounding(tables.artifact, tables.reals, rest_at, units_of)
            if rest
            else Rounding(tables.artifact, tables.reals, arrival_at)
        )

    def child(self, source: Node, place: int, won: bool, digest: bytes) -> Node:
        """A child with its arrival; nothing is published.

        Args:
            source: its parent, or what was left of that.
            digest: D, or L of a leaf.
        """
        parent = source.of if isinstance(source, Rest) else source
        node, state, reals = Node(), parent.state, self._reals
        if state is None:
            raise ValueError("a leaf has no children")
        node.parent, node.after, node.held = parent, source, None
        node.digest, node.place, node.won = digest, place, won
        if place == len(state.edges):
            node.call, node.state, weight = None, None, 1
            node.depth, node.cost = parent.depth, parent.cost
        else:
            node.call, node.state = call, _ = state.edges[place]
            weight = call.weight
            node.depth, node.cost = parent.depth + 1, parent.cost + call.cost_low
        node.units = source.units + 1
        if won:
            node.word, node.time = None, reals.mul(weight, source.time)
        else:
            node.word = self._draw(RESIDUAL, digest)
            rate = 1 if node.state is None else node.state.rate
            residual = reals.div(reals.log_tail(node.word), rate)
            node.time = reals.fms(weight, source.time, residual)
        return node

    def left(self, source: Node, step: int, mass: int) -> Rest:
        """What the draw before `step` from `source` has left; nothing is published."""
        node = source.of if isinstance(source, Rest) else source
        reals, rest, state = self._reals, Rest(), _state(node)
        rest.of, rest.after, rest.step = node, source, step
        rest.mass, rest.scale = mass, state.scale
        rest.parent, rest.call, rest.state, rest.held = node.parent, node.call, state, None
        rest.depth, rest.cost, rest.place, rest.won = node.depth, node.cost, node.place, False
        rest.digest = rest_digest(node.digest, step)
        rest.word = self._draw(REST_ARRIVAL, rest_place(node.digest, step))
        rate = reals.scaled(mass, state.scale)
        rest.time = reals.fms(1, source.time, reals.div(reals.log_tail(rest.word), rate))
        rest.units = max(source.units, units(0)) + 1
        return rest

    def publish(self, node: Node) -> Node:
        """The same node with its key, and a leaf's value.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        node.log = log = self._reals.log(node.time)
        node.log_error = self._reals.log_error(log, node.units)
        self._rounding.push(node)
        node.value = node.key
        return node


def _state(node: Node) -> State:
    if node.state is None:
        raise ValueError("a leaf has no children")
    return node.state
