"""The rest race: the children of a node are drawn one by one; the remainder of them is an item.

Normative text: docs/spec/ledger.md, sections 3 and 5; docs/spec/race.md, section 18.  A run of
another race has none of its records, ``rest`` and ``draw``, and none of this to load.
Cost: of a draw a winner among what is left, by :mod:`tcc_certs.replay.races.children`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.race.arrivals import Arrival, Fraction
from tcc_certs.race.digest import REST_ARRIVAL, REST_WINNER, WINNER, rest_digest, rest_place
from tcc_certs.replay.language import Language
from tcc_certs.replay.races.children import Left
from tcc_certs.replay.races.coupled import CoupledReplay, Pushed, Word, pushed_at
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import CLAMP, PHANTOM, Expansion, ReplayedRun, Turn
from tcc_certs.replay.tree import Node, Slot, item_of, slots
from tcc_certs.statements import Constraints


def drawn(
    language: Language, constraints: Constraints, node: Node, left: Left, word: Word
) -> Expansion:
    """The next draw from the remainder of `node`, the first one where `left` is all of it."""
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


# ---- ``rest``: what the draw before it has left of a node's children enters the frontier.


def replay_rest(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``rest`` record against what is left.

    Raises:
        Rejected: L104 there is nothing left, or nothing was drawn.
    """
    node, left = run.parent, run.left
    if node is None or left is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "expand, draw, leaf or close", "rest")
    run.left = None
    policy, recipe = run.policy, run.header.recipe
    known = policy.bound(node) if isinstance(policy, CoupledReplay) else None
    bound = known or run.language.bound(recipe, node.states, node.cost_low)
    pushed = push_left(node, left, bound, run.word(record))
    fields: dict[str, Json] = {"step": left.step, **pushed.fields}
    expected = popped_record("rest", run.header.started_ms, node, fields)
    run.hold(expected, record, line, [CLAMP] if pushed.clamped else None, pushed.clamped)
    digest = rest_digest(left.context, left.step)
    run.frontier.push(item_of(node, digest, pushed.key, pushed.arrival, left))


def push_left(node: Node, left: Left, bound: Fraction, word: Word) -> Pushed:
    """What `left` of `node`, whose M is `bound`, enters the frontier with.

    The arrival of `node` is that of its draw.
    """
    x = word(REST_ARRIVAL, rest_place(left.context, left.step), "U")
    arrival = Arrival(node.arrival, 1, 0, x, left.mass, left.children.unit)
    return pushed_at(arrival, x, bound)


# ---- ``draw``: the greatest item is the remainder of a node; its next child is drawn.


def replay_draw(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``draw`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.ReplayedRun.pop`.
    """
    item = run.pop(Turn.DRAW, record)
    left = item.left
    if left is None:
        raise Rejected(Code.POP_ORDER, "kind", "leaf or expand", "draw")
    node = item_of(item, left.context, item.key, item.arrival, None)
    if run.policy.one_by_one:
        made = drawn(run.language, run.constraints, node, left, run.word(record))
    else:
        made = remaining(run.language, run.constraints, node, left)
    fields: dict[str, Json] = {"step": left.step, **made.fields}
    run.hold(popped_record("draw", run.header.started_ms, node, fields), record, line)
    run.begin(node, made, left.mass, left.children.unit)


REST: Mapping[str, Callable[[ReplayedRun, Record, int], None]] = {
    "rest": replay_rest,
    "draw": replay_draw,
}
