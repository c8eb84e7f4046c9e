"""The races and their keys: what a node is pushed with, and what its pop makes known.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md.  One policy is in force at a
time; the replay knows nothing else of races.

- Coupled: the one realised race, arrivals handed down from parent to child.  Finalized: a child is
  pushed with its own arrival.  Anchored: with the least that its parent's leaves it; its arrival is
  realised when it is popped, from the same uniform, so the race is the same.
- Literal: the race as it was first printed, an independent arrival at every pop and a fresh uniform
  a leaf.  The values of its leaves are not those of the race that its keys bound, so a run of it
  claims nothing; it is kept to be reproduced.  Weights are 1 (tilt 0).
- Fallback: leaves with a heuristic value each, nodes with the least cost that can follow.  Nothing
  is certified.

Cost: two logarithms a node, one exponential a leaf; in fallback four logarithms a leaf.
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
    """What a node enters the frontier with.

    Attributes:
        key: Q64.64.
        arrival: t, where it is realised at the push.
        fields: what the ``node`` record has beyond names and places.
        clamped: whether a number of these had to be clamped.
        word: the uniform that the key was made with, where there is no arrival.
    """

    key: int
    arrival: Arrival | None
    fields: Mapping[str, str]
    clamped: bool
    word: int | None = None


class Popped(NamedTuple):
    """What the pop of an item makes known.

    Attributes:
        arrival: t of a node, as its children need it; None where they do not.
        value: V of a leaf, Q64.64; 0 at a node.
        fields: what the ``expand`` or ``leaf`` record has of the race, but for the winner.
        clamped: whether a number of these had to be clamped.
    """

    arrival: Arrival | None
    value: int
    fields: Mapping[str, Json]
    clamped: bool


def with_key(node: Node, pushed: Pushed) -> Node:
    """The node as it enters the frontier."""
    node.key, node.arrival, node.word = pushed.key, pushed.arrival, pushed.word
    return node


class RacePolicy(Protocol):
    """One way to run the race.

    Attributes:
        draws_winner: whether an expansion decides which child inherits the arrival.
        one_by_one: whether an expansion pushes the winner alone, and what is left as one item.
        law: what `close` says of the law of the best plans.
        counts_leaves: whether `close` says how many leaves were pushed.
        uses_counts: whether its keys come of counts.
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
        """What `node`, whose parent was popped, enters the frontier with."""

    def again(self, node: Node) -> Pushed:
        """What `node`, which was pushed before, has for a key at the cost that it has now."""

    def pop(self, node: Node, word: Word) -> Popped:
        """What the pop of `node` makes known."""


# ---- Uniforms: of the PRF, or, where no seed is known, of the record itself.


def logged_words(record: Record) -> Word:
    """Those that `record` has in its fields."""
    return lambda purpose, identity, name: _logged(record, name)


def unlogged_words(key: Uniforms | None) -> Word:
    """Uniforms that no record has: without a key, asking for one is refused (D302)."""
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
    """The root of any race, with its first arrival."""
    x = word(FIRST_ARRIVAL, root.digest, "U")
    count, unit = (1, 0) if root.states is None else language.rate(root.states)
    arrival = Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=count, unit=unit)
    return pushed_at(arrival, x, language.bound(recipe, root.states, root.cost_low))


def pushed_at(arrival: Arrival, x: int | None, bound: Fraction) -> Pushed:
    """What an arrival is published with; `x` is its uniform, `bound` M of the node."""
    log, key, log_clamped, key_clamped = publish(arrival, bound)
    # The uniform first: where it is wrong, what follows from it is as well.
    fields = {} if x is None else {"U": str(x)}
    fields["neg_log_t"] = format_q64(log)
    fields["key_raw"] = format_q64(key)
    return Pushed(key, arrival, fields, log_clamped or key_clamped)


def push_anchored(language: Language, recipe: str, parent: Arrival, node: Node) -> Pushed:
    """A child with the key that its parent's arrival bounds it by."""
    count, unit = (1, 0) if node.states is None else language.rate(node.states)
    least = Arrival(parent, node.edge_weight, language.fraction_bits, None, count, unit)
    published = publish(least, language.bound(recipe, node.states, node.cost_low))
    fields = {"key_raw": format_q64(published.key)}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CoupledReplay:
    """The coupled race under one of its key policies.

    Attributes:
        anchored: whether a child's arrival waits for its pop.
        one_by_one: the rest race, where every child that is pushed has won its draw.
        met: what the states that were met have to do with keys.
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
        """The arrival of a child, its uniform, and M of the child."""
        language, states = self.language, node.states
        count, unit, ahead, denominator = self.met.get(states) or self._meet(states)
        arrival = Arrival(before, node.edge_weight, language.fraction_bits, x, count, unit)
        return arrival, x, ((-language.beta[0] * node.cost_low << 32) + ahead, denominator)

    def bound(self, node: Node) -> Fraction:
        """M of a node."""
        _, _, ahead, denominator = self.met.get(node.states) or self._meet(node.states)
        return (-self.language.beta[0] * node.cost_low << 32) + ahead, denominator

    def _meet(self, states: States | None) -> Rate:
        """The same numbers of every node at these states, found once."""
        language = self.language
        rate = (1, 0) if states is None else language.rate(states)
        # M = -beta C + ahead / denominator, and at the leaf nothing is ahead.
        ahead, denominator = language.bound(self.recipe, states, 0)
        if states is None:
            denominator <<= 32
        if len(self.met) > MAX_MET:
            self.met.clear()
        found = self.met[states] = (*rate, ahead, denominator)
        return found


def _known(node: Node, arrival: Arrival) -> Popped:
    """A pop that tells nothing new: at a leaf the value is the key."""
    if node.states is not None:
        return Popped(arrival=arrival, value=0, fields={}, clamped=False)
    fields: dict[str, Json] = {"V": format_q64(node.key), "U_P": str(leaf_uniform(arrival))}
    return Popped(arrival=arrival, value=node.key, fields=fields, clamped=False)
