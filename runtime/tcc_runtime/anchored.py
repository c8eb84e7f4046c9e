"""Keys anchored at the parent, and the surrogate race as it is printed.

Text: docs/spec/race.md, sections 8 and 14.  A child is pushed with the key that its parent's
arrival gives it; its own is realised when it is popped.  In the coupled race that is the same
arrival that a finalized run draws; in the literal one it is a fresh draw at every node and leaf, so
that the keys bound nothing that the leaves took part in, and nothing is claimed.
Cost: one logarithm less for each child that is never popped.
"""

from __future__ import annotations

from tcc_certs.race.digest import PER_LEAF, RESIDUAL
from tcc_runtime.constraints import Constraints
from tcc_runtime.node import Expansion, Node
from tcc_runtime.numbers import Real, Reals, units
from tcc_runtime.race import (
    Coupled,
    Draw,
    arrival_at,
    bare_child,
    bare_leaf,
    children_of,
    opened,
)
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import Call, State, Tables


class Anchored(Coupled):
    """The coupled race; a child is pushed with M(u) - ln(w t(parent))."""

    def expand(self, node: Node) -> Expansion:
        """Realises t of `node`, then pushes its children; errors as in the finalized race."""
        if node.parent is not None:
            self._realise(node)
        expansion = super().expand(node)
        expansion.late = node.parent is not None
        return expansion

    def settle(self, leaf: Node) -> int:
        """Realises t and V of a leaf, and gives its U_P; errors as in the finalized race."""
        self._realise(leaf)
        return super().settle(leaf)

    def rekey(self, node: Node) -> None:
        """The same bound of its arrival, which is not realised yet, another cost.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        self._rounding.anchor(node)

    def _realise(self, node: Node) -> None:
        """The same arrival that a finalized child is pushed with."""
        parent, reals = node.parent, self._reals
        if parent is None:
            return
        weight = 1 if node.call is None else node.call.weight
        if node.won:
            node.time = reals.mul(weight, parent.time)
        else:
            node.word = self._draw(RESIDUAL, node.digest)
            rate = 1 if node.state is None else node.state.rate
            node.time = reals.fms(weight, parent.time, reals.div(reals.log_tail(node.word), rate))
            node.log = reals.log(node.time)
            node.log_error = reals.log_error(node.log, units(node.depth))
        self._rounding.realise(node)

    def _child(self, parent: Node, call: Call, target: State, place: int, won: bool) -> Node:
        node = bare_child(parent, call, target, place, won)
        node.word = None
        node.log = parent.log + call.log
        node.log_error = parent.log_error + call.log_error
        self._rounding.anchor(node)
        return node

    def _leaf(self, parent: Node, place: int, won: bool) -> Node:
        node = bare_leaf(parent, place, won)
        node.word = None
        node.log, node.log_error = parent.log, parent.log_error
        self._rounding.anchor(node)
        return node


class Literal(Anchored):
    """The surrogate race as printed: no winner, a draw of its own at every node and leaf.

    Only for an artifact without tilt, so that every weight is 1.
    """

    def __init__(self, tables: Tables, draw: Draw, constraints: Constraints | None = None) -> None:
        super().__init__(tables, draw, constraints)
        self._rounding = Rounding(tables.artifact, tables.reals, literal_at)

    def expand(self, node: Node) -> Expansion:
        """Draws t of `node`, then pushes its children; errors as in the finalized race."""
        late = node.parent is not None
        if late:
            self._realise(node)
        state = opened(node, self._tables)
        children = children_of(node, state, self._constraints, None, self._child, self._leaf)
        return Expansion(node, None, None, children, late)

    def settle(self, leaf: Node) -> int:
        """Draws U_P of a leaf, which gives its value.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        self._realise(leaf)
        return self._draw(PER_LEAF, leaf.digest)

    def _realise(self, node: Node) -> None:
        reals, state = self._reals, node.state
        node.word = self._draw(PER_LEAF if state is None else RESIDUAL, node.digest)
        rate = 1 if state is None else state.rate
        node.time = reals.div(reals.exponential(node.word), rate)
        node.log = reals.log(node.time)
        node.log_error = reals.log_error(node.log, units(node.depth))
        self._rounding.realise(node)


def literal_at(node: Node, reals: Reals, bits: int) -> Real:
    """t of a node of the literal race at another precision; its parent's until it is drawn."""
    drawn = node if node.word is not None or node.parent is None else node.parent
    root = drawn.parent is None
    if root or drawn.word is None:
        return arrival_at(drawn, reals, bits)
    rate = 1 if drawn.state is None else reals.scaled(drawn.state.count, drawn.state.scale)
    return reals.div(reals.exponential(drawn.word), rate)
