"""``rest``: what the draw before it has left of a node's children enters the frontier.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, section 18.
Cost: two logarithms.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import Record
from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.digest import REST_ARRIVAL, rest_digest, rest_place
from tcc_certs.race.published import publish
from tcc_certs.replay.guards import CLAMP
from tcc_certs.replay.language import Language
from tcc_certs.replay.left import Left
from tcc_certs.replay.policy import Pushed, Word
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node, item_of


def replay_rest(run: Run, record: Record, line: int) -> None:
    """Hold a ``rest`` record against what is left.

    Raises:
        Rejected: L104 there is nothing left, or nothing was drawn.
    """
    node, left = run.parent, run.left
    if node is None or left is None:
        raise Rejected(Code.LEDGER_ORDER, "kind", "expand, draw, leaf or close", "rest")
    run.left = None
    pushed = push_left(run.language, run.header.recipe, node, left, run.word(record))
    fields: dict[str, Json] = {"step": left.step, **pushed.fields}
    expected = popped_record("rest", run.header.started_ms, node, fields)
    run.hold(expected, record, line, [CLAMP] if pushed.clamped else None, pushed.clamped)
    digest = rest_digest(left.context, left.step)
    run.frontier.push(item_of(node, digest, pushed.key, pushed.arrival, left))


def push_left(language: Language, recipe: str, node: Node, left: Left, word: Word) -> Pushed:
    """What `left` of `node` enters the frontier with; the arrival of `node` is that of its draw."""
    x = word(REST_ARRIVAL, rest_place(left.context, left.step), "U")
    unit = 0 if node.states is None else language.unit(node.states)
    arrival = Arrival(node.arrival, 1, 0, x, left.mass, unit)
    published = publish(arrival, language.bound(recipe, node.states, node.cost_low))
    fields: dict[str, Json] = {
        "U": str(x),
        "neg_log_t": format_q64(published.neg_log_t),
        "key_raw": format_q64(published.key),
    }
    return Pushed(published.key, arrival, fields, published.clamped)
