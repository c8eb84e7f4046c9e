"""``draw``: the greatest item of the frontier is what is left of a node; its next child is drawn.

Normative text: docs/spec/ledger.md, section 3; docs/spec/race.md, section 18.  Cost: a winner.
"""

from __future__ import annotations

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.draws import drawn, remaining
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import item_of
from tcc_certs.replay.turn import Turn


def replay_draw(run: Run, record: Record, line: int) -> None:
    """Hold a ``draw`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
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
    run.begin(node, made)
