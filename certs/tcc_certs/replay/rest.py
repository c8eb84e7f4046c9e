"""The records of the rest race: ``draw``, and ``rest`` for what a draw or an expansion has left.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, section 18.
Cost: two logarithms for what is left, one for a child that is drawn.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.codec import Json
from tcc_certs.digest import REST_ARRIVAL, rest_digest, rest_place
from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import format_q64
from tcc_certs.ledger import Record
from tcc_certs.published import publish
from tcc_certs.race import arrive
from tcc_certs.replay.draws import drawn, remaining
from tcc_certs.replay.guards import CLAMP
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import Left
from tcc_certs.replay.policy import Pushed, Word
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import Turn
from tcc_certs.replay.words import words


def replay_draw(run: Run, record: Record, line: int) -> None:
    """A ``draw`` record: the top of the frontier, what is left of an expanded node.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
    """
    item = run.pop(Turn.DRAW, record)
    left = item.left
    if left is None:
        raise Rejected(Code.POP_ORDER, "kind", "leaf or expand", "draw")
    node = replace(item, digest=left.context, left=None)
    if run.policy.one_by_one:
        word = words(run.key, record)
        made = drawn(run.language, run.constraints, node, left, word)
    else:
        made = remaining(run.language, run.constraints, node, left)
    fields: dict[str, Json] = {"step": left.step, **made.fields}
    due = popped_record("draw", run.header.started_ms, node, fields)
    run.hold(due, [], False, record, line)
    run.begin(node, made)


def replay_rest(run: Run, record: Record, line: int) -> None:
    """A ``rest`` record: what the draw before it left.

    Raises:
        Rejected: L104 there is nothing left, or nothing was drawn.
    """
    node, left = run.parent, run.take_left()
    if node is None or left is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "expand, draw, leaf or close", "rest")
    pushed = push_left(run.language, run.header.recipe, node, left, words(run.key, record))
    fields: dict[str, Json] = {"step": left.step, **pushed.fields}
    due = popped_record("rest", run.header.started_ms, node, fields)
    run.hold(due, [CLAMP] * pushed.clamped, pushed.clamped, record, line)
    digest = rest_digest(left.context, left.step)
    item = replace(node, digest=digest, key=pushed.key, came=pushed.arrival, left=left)
    run.frontier.push(item)


def push_left(language: Language, recipe: str, node: Node, left: Left, word: Word) -> Pushed:
    """What `left` of `node` enters the frontier with; the arrival of `node` is that of its draw."""
    x = word(REST_ARRIVAL, rest_place(left.context, left.step), "U")
    arrival = arrive(
        parent=node.arrival,
        weight=1,
        fraction_bits=0,
        x=x,
        count=left.mass,
        unit=0 if node.states is None else language.unit(node.states),
    )
    published = publish(arrival, language.bound(recipe, node.states, node.cost_low))
    fields: dict[str, Json] = {
        "U": str(x),
        "neg_log_t": format_q64(published.neg_log_t),
        "key_raw": format_q64(published.key),
    }
    return Pushed(key=published.key, arrival=arrival, fields=fields, clamped=published.clamped)
