"""Fallback: leaves with a heuristic value each, nodes with the least cost that can follow.

Normative text: docs/spec/race.md.  Nothing is certified: claim NoCert.
Cost: four logarithms a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.race.digest import PER_LEAF
from tcc_certs.race.heuristic import heuristic_key, heuristic_value
from tcc_certs.race.published import clamp
from tcc_certs.race.weights import score
from tcc_certs.replay.language import Language
from tcc_certs.replay.policy import Popped, Pushed, Word
from tcc_certs.replay.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """The heuristic search.

    Attributes:
        tau: above 0, exact decimal (numerator, places).
    """

    language: Language
    tau: tuple[int, int]
    draws_winner: bool = False
    one_by_one: bool = False
    law: str = "none"
    counts_leaves: bool = True
    uses_counts: bool = False

    def push(self, node: Node, word: Word) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        if node.states is not None:
            return self._keyed(node, None)
        x = word(PER_LEAF, node.digest, "U")
        pushed = self._keyed(node, x)
        return pushed._replace(fields={"U": str(x), **pushed.fields})

    def again(self, node: Node) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        return self._keyed(node, node.word)

    def _keyed(self, node: Node, x: int | None) -> Pushed:
        """A node has its bound for a key; a leaf, whose uniform is `x`, its value."""
        if x is None:
            ahead = 0 if node.states is None else self.language.least_cost(node.states)
            exact = heuristic_key(score(self.language.beta, node.cost_low + ahead))
        else:
            exact = heuristic_value(x, score(self.language.beta, node.cost_low), self.tau)
        key = clamp(exact)
        return Pushed(
            key=key,
            arrival=None,
            fields={"key_raw": format_q64(key)},
            clamped=key != exact,
            word=x,
        )

    def pop(self, node: Node, word: Word) -> Popped:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        if node.states is not None:
            return Popped(arrival=None, value=0, fields={}, clamped=False)
        # The uniform stands in the leaf's `node`; where it was pushed before a downgrade, here.
        fields: dict[str, Json] = {
            "V": format_q64(node.key),
            "U_P": str(word(PER_LEAF, node.digest, "U_P")),
        }
        return Popped(arrival=None, value=node.key, fields=fields, clamped=False)
