"""What an expansion or a draw makes of a node: its children, the winner, what is lost of its share.

Normative text: docs/spec/race.md, section 5; of the rest race, which draws one child at a time in
order of arrival, section 18.  Cost: one mass a child; of a draw that of finding the winner
(:mod:`tcc_certs.replay.children`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tcc_certs.formats.codec import Json
from tcc_certs.race.arrivals import winner
from tcc_certs.race.digest import REST_WINNER, WINNER, rest_place
from tcc_certs.replay.children import Children, Left, whole
from tcc_certs.replay.language import Language
from tcc_certs.replay.races import Policy, Word
from tcc_certs.replay.tree import Node, Slot, slots
from tcc_certs.statements import Constraints

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


# ---- The rest race.


def made_of(
    policy: Policy,
    language: Language,
    constraints: Constraints,
    node: Node,
    children: Children,
    word: Word,
) -> Expansion:
    """What an expansion makes of `node`, whose children these are."""
    if policy.one_by_one:
        return drawn(language, constraints, node, whole(node.digest, children), word)
    return expand(language, constraints, node, children, policy.draws_winner, word)


def drawn(
    language: Language, constraints: Constraints, node: Node, left: Left, word: Word
) -> Expansion:
    """The next draw from what is left of `node`, the first one where `left` is all of it."""
    first = left.step == 0
    purpose = WINNER if first else REST_WINNER
    x = word(purpose, left.context if first else rest_place(left.context, left.step), "W")
    place = left.winner(x)
    slot = None if place is None else slot_at(language, constraints, node, left, place)
    won = None if slot is None or slot.tally is None else place
    after = left.without(place, won is None)
    fields: dict[str, Json] = {"W": str(x), "winner": PHANTOM if won is None else str(won)}
    lost = 0 if won is not None else left.mass - after.mass
    if not after.number:
        lost += after.mass  # phantom mass; no child is left beside it
        if after.barren:
            fields["dead_end"] = True
    return Expansion(
        pushed=() if won is None or slot is None else (slot,),
        won=won,
        fields=fields,
        lost=lost,
        left=after if after.number else None,
    )


def slot_at(
    language: Language, constraints: Constraints, node: Node, left: Left, place: int
) -> Slot:
    """The child at that place."""
    mass, steps = left.children.mass(place), left.children.steps
    if place == len(steps):
        stays = node.tally if constraints.may_stop(node.tally) else None
        return Slot(place, None, None, mass, stays)
    call, to = steps[place]
    tally = constraints.step(node.tally, call)
    return Slot(place, call, to, mass, tally)


def remaining(language: Language, constraints: Constraints, node: Node, left: Left) -> Expansion:
    """All that is left of `node`, at once, as fallback has it."""
    listed = slots(left.children, constraints, node.tally)
    children = [slot for slot in listed if slot.position not in left.taken.places]
    pushed = tuple([slot for slot in children if slot.tally is not None])
    fields: dict[str, Json] = {}
    if left.barren and not pushed:
        fields["dead_end"] = True
    lost = left.mass - sum([slot.mass for slot in pushed])
    return Expansion(pushed=pushed, won=None, fields=fields, lost=lost)
