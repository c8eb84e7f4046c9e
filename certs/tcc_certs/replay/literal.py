"""The race as it was first printed: an independent arrival at every pop, a fresh uniform a leaf.

Normative text: docs/spec/race.md.  The values of its leaves are not those of the race that its keys
bound, so a run of it claims nothing; it is kept to be reproduced.  Weights are 1 (tilt 0).
Cost: two logarithms a node.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.digest import PER_LEAF, RESIDUAL
from tcc_certs.race.published import publish
from tcc_certs.replay.coupled import again_anchored, push_anchored, push_first
from tcc_certs.replay.language import Language
from tcc_certs.replay.policy import Popped, Pushed, Word
from tcc_certs.replay.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """The printed surrogate race."""

    language: Language
    recipe: str
    draws_winner: bool = False
    one_by_one: bool = False
    law: str = "none"
    counts_leaves: bool = False
    uses_counts: bool = True

    def push(self, node: Node, word: Word) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        before = None if node.parent is None else node.parent.arrival
        if before is None:
            return push_first(self.language, self.recipe, node, word)
        return push_anchored(self.language, self.recipe, before, node)

    def again(self, node: Node) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        return again_anchored(self.language, self.recipe, node)

    def pop(self, node: Node, word: Word) -> Popped:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        states = node.states
        if node.arrival is not None:  # the root
            return Popped(arrival=node.arrival, value=0, fields={}, clamped=False)
        x = word(PER_LEAF if states is None else RESIDUAL, node.digest, "U")
        count, unit = (1, 0) if states is None else self.language.rate(states)
        arrival = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
        published = publish(arrival, self.language.bound(self.recipe, states, node.cost_low))
        fields: dict[str, Json] = {"U": str(x), "neg_log_t": format_q64(published.neg_log_t)}
        if states is not None:
            return Popped(
                arrival=arrival, value=0, fields=fields, clamped=published.neg_log_t_clamped
            )
        fields |= {"V": format_q64(published.key), "U_P": str(x)}
        return Popped(
            arrival=arrival, value=published.key, fields=fields, clamped=published.clamped
        )
