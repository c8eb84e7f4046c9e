"""The rest race: children of a node are drawn in turn, and their remainder is one item.

Normative text: docs/spec/ledger.md, sections 3 and 5; docs/spec/race.md, section 18.  Runs of other
races have no ``rest`` and ``draw`` records, and do not import this module.  Cost: a draw takes the
search for a winner in the remainder (:mod:`tcc_certs.replay.races.children`).
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.race.arrivals import Arrival, Fraction
from tcc_certs.race.digest import REST_ARRIVAL, REST_WINNER, WINNER, rest_digest, rest_place
from tcc_certs.replay.language import Language
from tcc_certs.replay.races.children import Left
from tcc_certs.replay.races.coupled import CoupledReplay, Pushed, Word, pushed_at
from tcc_certs.replay.run import CLAMP, PHANTOM, Expansion, Holds, ReplayedRun
from tcc_certs.replay.tree import Node, Slot, item_of, slots
from tcc_certs.statements import Constraints


def drawn(
    language: Language, constraints: Constraints, node: Node, left: Left, word: Word
) -> Expansion:
    """Return the next draw from the remainder of `node`.

    Args:
        left: the remainder; at the first draw, all children.
    """
    context, step = left.context, left.step
    if step == 0:
        x = word(WINNER, context, "W")
    else:
        x = word(REST_WINNER, rest_place(context, step), "W")
    place = left.winner(x)
    slot = None if place is None else slot_at(language, constraints, node, left, place)
    won = None if slot is None or slot.tally is None else place
    fields: dict[str, Json] = {"W": str(x), "winner": PHANTOM if won is None else str(won)}
    more = left.number > (place is not None)
    lost = 0
    if won is None or not more:
        after = left.mass_without(place)
        lost = 0 if won is not None else left.mass - after
        if not more:
            lost += after  # phantom mass; no child is left next to it
            if left.barren and won is None:
                fields["dead_end"] = True
    pushed = () if won is None or slot is None else (slot,)
    return Expansion(pushed, won, fields, lost, left if more else None, place)


def slot_at(
    language: Language, constraints: Constraints, node: Node, left: Left, place: int
) -> Slot:
    """Return the child at a position."""
    mass, steps = left.children.masses[place], left.children.steps
    if place == len(steps):
        stays = node.tally if constraints.may_stop(node.tally) else None
        return Slot(place, None, None, mass, stays)
    call, to = steps[place]
    tally = constraints.step(node.tally, call)
    return Slot(place, call, to, mass, tally)


def remaining(language: Language, constraints: Constraints, node: Node, left: Left) -> Expansion:
    """Return the expansion that pushes all remaining children of `node` together (fallback)."""
    listed, gone = slots(left.children, constraints, node.tally), set(left.taken.places)
    children = [slot for slot in listed if slot.position not in gone]
    pushed = tuple([slot for slot in children if slot.tally is not None])
    fields: dict[str, Json] = {}
    if left.barren and not pushed:
        fields["dead_end"] = True
    lost = left.mass - sum([slot.mass for slot in pushed])
    return Expansion(pushed=pushed, won=None, fields=fields, lost=lost)


# ---- ``rest``: the remainder of a node's children after a draw enters the frontier.


def push_rest(run: ReplayedRun, word: Word, holds: Holds) -> bool:
    """Push the remainder, if the record holds.

    Raises:
        Rejected: L104: nothing was drawn, or no child remains.
    """
    node, left = run.parent, run.left
    if node is None or left is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "expand, draw, leaf or close", "rest")
    policy, recipe = run.policy, run.header.recipe
    known = policy.bound(node) if isinstance(policy, CoupledReplay) else None
    bound = known or run.language.bound(recipe, node.states, node.cost_low)
    pushed = push_left(node, left, bound, word)
    name = run.texts.name
    expected = {"kind": "rest", "node_id": name, "step": left.step, **pushed.fields}
    if not holds(expected, [CLAMP] if pushed.clamped else None, pushed.clamped):
        return False
    run.left = None
    digest = rest_digest(left.context, left.step)
    run.frontier.push(item_of(node, digest, pushed.key, pushed.arrival, left))
    return True


def push_left(node: Node, left: Left, bound: Fraction, word: Word) -> Pushed:
    """Return the numbers of the remainder `left` of `node`, whose M is `bound`.

    The arrival of `node` must be the arrival of its last draw.
    """
    x = word(REST_ARRIVAL, rest_place(left.context, left.step), "U")
    arrival = Arrival(node.arrival, 1, 0, x, left.mass, left.children.unit)
    return pushed_at(arrival, x, bound)


# ---- ``draw``: the greatest item is the remainder of a node; its next child is drawn.


def pop_rest(run: ReplayedRun, word: Word, holds: Holds) -> bool:
    """Draw a child from the remainder on top of the frontier, if the record holds."""
    item = run.top
    left = item.left
    if left is None:
        raise Rejected(Code.POP_ORDER, "kind", "leaf or expand", "draw")
    node = item_of(item, left.context, item.key, item.arrival, None)
    if run.policy.one_by_one:
        made = drawn(run.language, run.constraints, node, left, word)
    else:
        made = remaining(run.language, run.constraints, node, left)
    name = run.texts.named(left.context)
    if not holds({"kind": "draw", "node_id": name, "step": left.step, **made.fields}):
        return False
    run.begin(node, name, made, left.mass, left.children.unit)
    return True
