"""The races and their keys: the numbers that a push and a pop of a node publish.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md.  One policy is in force at a
time, and the replay uses races only through it.

- Coupled: a parent hands its arrival down to its children.  Finalized: a child is pushed with its
  own arrival.  Anchored: a child is pushed with the least arrival that its parent allows.  Its own
  arrival is realised at its pop, from the same uniform, so the race is the same.
- Literal: the race as first printed.  Every pop has an independent arrival, and every leaf a fresh
  uniform.  Its keys do not bound the values of its leaves, so a run of it claims nothing.  It is
  kept to reproduce the printed race.  Weights are 1 (tilt 0).
- Fallback: leaves have a heuristic value, and nodes the least cost that can follow.  Nothing is
  certified.

Cost: two logarithms for each node, one exponential for each leaf.  In fallback four logarithms for
each leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record, format_q64
from tcc_certs.race.arrivals import Arrival, Fraction, leaf_uniform, publish
from tcc_certs.race.digest import FIRST_ARRIVAL, RESIDUAL, Uniforms
from tcc_certs.replay.language import Language, States
from tcc_certs.replay.races.children import Rate
from tcc_certs.replay.tree import Node

Word: TypeAlias = "Callable[[int, bytes, str], int]"  # purpose, D or L, field of the record


class Pushed(NamedTuple):
    """The numbers of a node when it enters the frontier.

    Attributes:
        key: Q64.64.
        arrival: t, if the push realises it.
        fields: the numeric fields of the ``node`` record.
        clamped: whether any of these numbers had to be clamped.
        word: the uniform of the key, if there is no arrival.
    """

    key: int
    arrival: Arrival | None
    fields: Mapping[str, str]
    clamped: bool
    word: int | None = None


class Popped(NamedTuple):
    """The numbers that the pop of an item publishes.

    Attributes:
        arrival: t of a node for its children; None if they do not need it.
        value: V of a leaf, Q64.64; 0 at a node.
        fields: the numeric fields of the ``expand`` or ``leaf`` record, without the winner.
        clamped: whether any of these numbers had to be clamped.
    """

    arrival: Arrival | None
    value: int
    fields: Mapping[str, Json]
    clamped: bool


def with_key(node: Node, pushed: Pushed) -> Node:
    """Set the key, arrival and uniform of a node before it enters the frontier; return the node."""
    node.key, node.arrival, node.word = pushed.key, pushed.arrival, pushed.word
    return node


class RacePolicy(Protocol):
    """A race with its keys.

    Attributes:
        draws_winner: whether an expansion decides which child inherits the arrival.
        one_by_one: whether an expansion pushes only the winner, and the remainder as one item.
        law: the law of the best plans, as `close` states it.
        counts_leaves: whether `close` has the number of pushed leaves.
        uses_counts: whether its keys depend on counts.
    """

    @property
    def draws_winner(self) -> bool: ...
    @property
    def one_by_one(self) -> bool: ...
    @property
    def law(self) -> str: ...
    @property
    def counts_leaves(self) -> bool: ...
    @property
    def uses_counts(self) -> bool: ...

    def push(self, node: Node, word: Word) -> Pushed:
        """Return the numbers with which `node`, a child of a popped node, enters the frontier."""

    def again(self, node: Node) -> Pushed:
        """Return the present key of `node`, which was pushed before, at its present cost."""

    def pop(self, node: Node, word: Word) -> Popped:
        """Return the numbers that the pop of `node` publishes."""


# ---- Uniforms: from the PRF, or without a seed from the record itself.


def logged_words(record: Record) -> Word:
    """Return the function that reads uniforms from the fields of `record`."""
    return lambda purpose, identity, name: _logged(record, name)


def unlogged_words(key: Uniforms | None) -> Word:
    """Return the function for uniforms that no record has; without a key it refuses (D302)."""
    if key is None:
        return lambda purpose, identity, name: _withheld()
    return key


def _logged(record: Record, name: str) -> int:
    value = record.get(name)
    if not isinstance(value, str):
        raise Rejected(Code.LEDGER_SCHEMA, name, "the field", "none")
    return int(value)


def _withheld() -> int:
    raise Rejected(Code.WITHHELD, "seed", "a seed, for the fallback values of leaves", "none")


# ---- Coupled.

MAX_MET = 1 << 16


def push_first(language: Language, recipe: str, root: Node, word: Word) -> Pushed:
    """Return the numbers of the root of any race, with its first arrival."""
    x = word(FIRST_ARRIVAL, root.digest, "U")
    count, unit = (1, 0) if root.states is None else language.rate(root.states)
    arrival = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
    return pushed_at(arrival, x, language.bound(recipe, root.states, root.cost_low))


def pushed_at(arrival: Arrival, x: int | None, bound: Fraction) -> Pushed:
    """Return the published numbers of an arrival; `x` is its uniform, `bound` is M of the node."""
    log, key, log_clamped, key_clamped = publish(arrival, bound)
    # The uniform comes first: if it is wrong, later fields are wrong as well.
    fields = {} if x is None else {"U": str(x)}
    fields["neg_log_t"] = format_q64(log)
    fields["key_raw"] = format_q64(key)
    return Pushed(key, arrival, fields, log_clamped or key_clamped)


def push_anchored(language: Language, recipe: str, parent: Arrival, node: Node) -> Pushed:
    """Return the numbers of a child whose key is bounded by its parent's arrival."""
    count, unit = (1, 0) if node.states is None else language.rate(node.states)
    least = Arrival(parent, node.edge_weight, language.fraction_bits, None, count, unit)
    published = publish(least, language.bound(recipe, node.states, node.cost_low))
    fields = {"key_raw": format_q64(published.key)}
    return Pushed(key=published.key, arrival=None, fields=fields, clamped=published.key_clamped)


def again_anchored(language: Language, recipe: str, node: Node) -> Pushed:
    """Return the numbers of a child without a realised arrival, at another cost.

    Raises:
        Rejected: L104: it has no parent; the root's arrival is known from the start.
    """
    before = None if node.parent is None else node.parent.arrival
    if before is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "a child of a popped node", "the root")
    return push_anchored(language, recipe, before, node)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoupledReplay:
    """The coupled race with finalized or anchored keys, or the rest race.

    Attributes:
        anchored: whether a child's arrival is realised only at its pop.
        one_by_one: whether it is the rest race, in which every pushed child has won its draw.
        met: cache: by states, the numbers that keys need.
    """

    language: Language
    recipe: str
    anchored: bool
    one_by_one: bool = False
    draws_winner: bool = True
    law: str = "softmax"
    counts_leaves: bool = False
    uses_counts: bool = True
    met: dict[States | None, Rate] = field(default_factory=dict, compare=False, repr=False)

    def push(self, node: Node, word: Word) -> Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        before = None if node.parent is None else node.parent.arrival
        if before is None:
            return push_first(self.language, self.recipe, node, word)
        if self.anchored:
            return push_anchored(self.language, self.recipe, before, node)
        x = None if node.won else word(RESIDUAL, node.digest, "U")
        return pushed_at(*self._arrived(before, node, x))

    def again(self, node: Node) -> Pushed:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        if node.arrival is None:
            return again_anchored(self.language, self.recipe, node)
        published = publish(
            node.arrival, self.language.bound(self.recipe, node.states, node.cost_low)
        )
        fields = {"key_raw": format_q64(published.key)}
        return Pushed(
            key=published.key, arrival=node.arrival, fields=fields, clamped=published.key_clamped
        )

    def pop(self, node: Node, word: Word) -> Popped:
        """See :class:`tcc_certs.replay.races.coupled.RacePolicy`."""
        if node.arrival is not None:
            return _known(node, node.arrival)
        before = None if node.parent is None else node.parent.arrival
        x = None if node.won else word(RESIDUAL, node.digest, "U")
        arrival, x, bound = self._arrived(before, node, x)
        published = publish(arrival, bound)
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

    def _arrived(
        self, before: Arrival | None, node: Node, x: int | None
    ) -> tuple[Arrival, int | None, Fraction]:
        """Return the arrival of a child, its uniform, and M of the child."""
        language, states = self.language, node.states
        count, unit, ahead, denominator = self.met.get(states) or self._meet(states)
        arrival = Arrival(before, node.edge_weight, language.fraction_bits, x, count, unit)
        return arrival, x, ((-language.beta[0] * node.cost_low << 32) + ahead, denominator)

    def bound(self, node: Node) -> Fraction:
        """Return M of a node."""
        _, _, ahead, denominator = self.met.get(node.states) or self._meet(node.states)
        return (-self.language.beta[0] * node.cost_low << 32) + ahead, denominator

    def _meet(self, states: States | None) -> Rate:
        """Compute the numbers that all nodes at these states share, and cache them."""
        language = self.language
        rate = (1, 0) if states is None else language.rate(states)
        # M = -beta C + ahead / denominator; at a leaf, `ahead` is 0.
        ahead, denominator = language.bound(self.recipe, states, 0)
        if states is None:
            denominator <<= 32
        if len(self.met) > MAX_MET:
            self.met.clear()
        found = self.met[states] = (*rate, ahead, denominator)
        return found


def _known(node: Node, arrival: Arrival) -> Popped:
    """Return the result of a pop without new numbers; the value of a leaf is its key."""
    if node.states is not None:
        return Popped(arrival=arrival, value=0, fields={}, clamped=False)
    fields: dict[str, Json] = {"V": format_q64(node.key), "U_P": str(leaf_uniform(arrival))}
    return Popped(arrival=arrival, value=node.key, fields=fields, clamped=False)
