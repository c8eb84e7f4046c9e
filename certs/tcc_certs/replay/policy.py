"""Key policies and race policies: what a node is pushed with, and what its pop makes known.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md.  One policy is in force at a
time; the replay knows nothing else of races.  `Word` hands out a uniform: from the PRF, or,
where no seed is known, as the current record has it in the field that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from tcc_certs.formats.codec import Json
from tcc_certs.race.arrivals import Arrival
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
    fields: Mapping[str, Json]
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


class Policy(Protocol):
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
