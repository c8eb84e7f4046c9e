"""What an expansion makes of a node: its children, the one that won, and what is lost of its share.

Normative text: docs/spec/race.md.  Cost: one mass a child.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tcc_certs.formats.codec import Json
from tcc_certs.race.arrivals import winner
from tcc_certs.race.digest import WINNER
from tcc_certs.replay.constraints import Constraints
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import Children, Left
from tcc_certs.replay.policy import Word
from tcc_certs.replay.tree import Node, Slot, slots

PHANTOM = "phantom"


class Expansion(NamedTuple):
    """The children of an expanded node.

    Attributes:
        pushed: those that nothing forbids, in canonical order.
        won: position of the winner; None where there is none, or a forbidden one.
        fields: ``W``, ``winner``, ``dead_end`` where the record has them.
        lost: the bracket (phantom mass) and the masses of the forbidden children, in the units of
            the children's masses.
        left: in the rest race what is left of the children, None where that is nothing.
    """

    pushed: tuple[Slot, ...]
    won: int | None
    fields: Mapping[str, Json]
    lost: int
    left: Left | None = None


def expand(
    language: Language,
    constraints: Constraints,
    node: Node,
    listed: Children,
    draws_winner: bool,
    word: Word,
) -> Expansion:
    """The expansion of `node`, an internal one, whose children are `listed`."""
    children, masses, total = slots(listed, constraints, node.tally), listed.masses, listed.total
    pushed = tuple([slot for slot in children if slot.tally is not None])
    fields: dict[str, Json] = {}
    won = None
    if draws_winner:
        x = word(WINNER, node.digest, "W")
        first = winner(x, total, masses)
        won = first if first is not None and children[first].tally is not None else None
        fields = {"W": str(x), "winner": PHANTOM if won is None else str(won)}
    if not pushed:
        fields["dead_end"] = True
    bracket = total - sum(masses)
    forbidden = sum([slot.mass for slot in children if slot.tally is None])
    return Expansion(pushed=pushed, won=won, fields=fields, lost=bracket + forbidden)
