"""The fallback: no counts, a value from each leaf's own uniform, bounds without noise.

Text: docs/spec/race.md, section 15.  V = G / tau - beta C - ln E with G = -ln(-ln U) and
E = -ln(1 - U), U that of the leaf; a node's key is -beta (C + h).  The keys bound the scores and
not the values, so nothing is claimed.  Cost for a leaf: four logarithms.
"""

from __future__ import annotations

from tcc_certs.errors import Code
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.race.digest import PER_LEAF
from tcc_runtime.constraints import Constraints
from tcc_runtime.node import Expansion, Node
from tcc_runtime.numbers import Reals, clamped
from tcc_runtime.race import (
    Draw,
    arrival_at,
    bare_child,
    bare_leaf,
    bare_root,
    children_of,
    opened,
)
from tcc_runtime.rounding import Rounding
from tcc_runtime.tables import Call, State, Tables


class Fallback:
    """Heuristic values of leaves over one artifact.

    Args:
        tables: of the artifact.
        draw: the PRF.
        tau: an exact decimal above 0.
        constraints: what forbids children besides the automaton; None is nothing.
    """

    def __init__(
        self, tables: Tables, draw: Draw, tau: str, constraints: Constraints | None
    ) -> None:
        self._tables = tables
        self._draw = draw
        self._constraints = constraints
        numerator, places = parse_decimal(tau, "tau", Code.LEDGER_SCHEMA)
        self._tau = numerator
        self._tau_unit = 10**places
        self._rounding = Rounding(tables.artifact, tables.reals, arrival_at)

    def root(self) -> Node:
        """The root, by its bound."""
        node = bare_root(self._tables, self._constraints)
        self.rekey(node)
        return node

    def expand(self, node: Node) -> Expansion:
        """All children that are not forbidden, the leaf with its value.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
            Rejected: an unverified artifact leads out of its ranges.
        """
        state = opened(node, self._tables)
        children = children_of(node, state, self._constraints, None, self._child, self._leaf)
        return Expansion(node, None, None, children)

    def settle(self, leaf: Node) -> int:
        """U_P, the leaf's own uniform."""
        return self._draw(PER_LEAF, leaf.digest)

    def rekey(self, node: Node) -> None:
        """Gives a node its bound, a leaf its value, whatever it had before.

        Raises:
            Undecided: a rounding stays open at 4096 bits.
        """
        node.word = node.neg_log_t = None
        if node.state is not None:
            exact = self._rounding.bounded(node, node.state.cost_to_go)
        else:
            node.word = word = self._draw(PER_LEAF, node.digest)
            exact = self._rounding.scored(node, lambda reals: self._noise(word, reals))
            node.value = clamped(exact)
        node.key = clamped(exact)
        node.clamp = node.key != exact

    def _child(self, parent: Node, call: Call, target: State, place: int, won: bool) -> Node:
        node = bare_child(parent, call, target, place, won)
        self.rekey(node)
        return node

    def _leaf(self, parent: Node, place: int, won: bool) -> Node:
        node = bare_leaf(parent, place, won)
        self.rekey(node)
        return node

    def _noise(self, word: int, reals: Reals) -> tuple[int, int]:
        """G / tau - ln E with S fractional bits, and a bound of its error."""
        gumbel = -reals.log(reals.exponential_of(word))
        arrival = reals.log(reals.exponential(word))
        error = reals.log_error(gumbel, 1)
        value = gumbel * self._tau_unit // self._tau - arrival
        return value, error * self._tau_unit // self._tau + 2 + reals.log_error(arrival, 1)
