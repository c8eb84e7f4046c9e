"""The one realised race: arrivals handed down from parent to child, keys finalized or anchored.

Normative text: docs/spec/race.md.  Finalized: a child is pushed with its own arrival.  Anchored:
with the least that its parent's leaves it; its arrival is realised when it is popped, from the same
uniform, so the race is the same.
Cost: two logarithms a node, one exponential a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.digest import FIRST_ARRIVAL, RESIDUAL
from tcc_certs.race.published import leaf_uniform, publish
from tcc_certs.replay.language import Language
from tcc_certs.replay.policy import Popped, Pushed, Word
from tcc_certs.replay.tree import Node


def push_first(language: Language, recipe: str, root: Node, word: Word) -> Pushed:
    """The root of any race, with its first arrival."""
    x = word(FIRST_ARRIVAL, root.digest, "U")
    count, unit = (1, 0) if root.states is None else language.rate(root.states)
    arrival = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
    return _pushed(language, recipe, root, arrival, x)


def push_anchored(language: Language, recipe: str, parent: Arrival, node: Node) -> Pushed:
    """A child with the key that its parent's arrival bounds it by."""
    least = _arrival(language, parent, node, None)
    published = publish(least, language.bound(recipe, node.states, node.cost_low))
    fields: dict[str, Json] = {"key_raw": format_q64(published.key)}
    return Pushed(key=published.key, arrival=None, fields=fields, clamped=published.key_clamped)


def again_anchored(language: Language, recipe: str, node: Node) -> Pushed:
    """A child whose arrival is not realised yet, at another cost.

    Raises:
        Rejected: L104 it has no parent: the root's arrival is known from the start.
    """
    before = None if node.parent is None else node.parent.arrival
    if before is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "a child of a popped node", "the root")
    return push_anchored(language, recipe, before, node)


def _pushed(language: Language, recipe: str, node: Node, arrival: Arrival, x: int | None) -> Pushed:
    bound = language.bound(recipe, node.states, node.cost_low)
    log, key, log_clamped, key_clamped = publish(arrival, bound)
    # The uniform first: where it is wrong, what follows from it is as well.
    fields: dict[str, Json] = {} if x is None else {"U": str(x)}
    fields["neg_log_t"] = format_q64(log)
    fields["key_raw"] = format_q64(key)
    return Pushed(key, arrival, fields, log_clamped or key_clamped)


def _arrival(language: Language, parent: Arrival | None, node: Node, x: int | None) -> Arrival:
    states, bits = node.states, language.fraction_bits
    if states is None:
        return Arrival(parent, node.edge_weight, bits, x, 1, 0)
    count, unit = language.rate(states)
    return Arrival(parent, node.edge_weight, bits, x, count, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupled:
    """The coupled race under one of its key policies.

    Attributes:
        anchored: whether a child's arrival waits for its pop.
        one_by_one: the rest race, where every child that is pushed has won its draw.
    """

    language: Language
    recipe: str
    anchored: bool
    one_by_one: bool = False
    draws_winner: bool = True
    law: str = "softmax"
    counts_leaves: bool = False
    uses_counts: bool = True

    def push(self, node: Node, word: Word) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        before = None if node.parent is None else node.parent.arrival
        if before is None:
            return push_first(self.language, self.recipe, node, word)
        if self.anchored:
            return push_anchored(self.language, self.recipe, before, node)
        x = None if node.won else word(RESIDUAL, node.digest, "U")
        return _pushed(
            self.language, self.recipe, node, _arrival(self.language, before, node, x), x
        )

    def again(self, node: Node) -> Pushed:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        if node.arrival is None:
            return again_anchored(self.language, self.recipe, node)
        published = publish(
            node.arrival, self.language.bound(self.recipe, node.states, node.cost_low)
        )
        fields: dict[str, Json] = {"key_raw": format_q64(published.key)}
        return Pushed(
            key=published.key, arrival=node.arrival, fields=fields, clamped=published.key_clamped
        )

    def pop(self, node: Node, word: Word) -> Popped:
        """See :class:`tcc_certs.replay.policy.Policy`."""
        if node.arrival is not None:
            return _known(node, node.arrival)
        before = None if node.parent is None else node.parent.arrival
        x = None if node.won else word(RESIDUAL, node.digest, "U")
        arrival = _arrival(self.language, before, node, x)
        published = publish(arrival, self.language.bound(self.recipe, node.states, node.cost_low))
        fields: dict[str, Json] = {} if x is None else {"U": str(x)}
        fields["neg_log_t"] = format_q64(published.neg_log_t)
        if node.states is not None:
            return Popped(
                arrival=arrival, value=0, fields=fields, clamped=published.neg_log_t_clamped
            )
        fields |= {"V": format_q64(published.key), "U_P": str(leaf_uniform(arrival))}
        return Popped(
            arrival=arrival, value=published.key, fields=fields, clamped=published.clamped
        )


def _known(node: Node, arrival: Arrival) -> Popped:
    """A pop that tells nothing new: at a leaf the value is the key."""
    if node.states is not None:
        return Popped(arrival=arrival, value=0, fields={}, clamped=False)
    fields: dict[str, Json] = {"V": format_q64(node.key), "U_P": str(leaf_uniform(arrival))}
    return Popped(arrival=arrival, value=node.key, fields=fields, clamped=False)
