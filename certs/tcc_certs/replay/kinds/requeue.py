"""``requeue``: answers since its push have brought the key of the greatest item down.

Normative text: docs/spec/ledger.md, section 11.  Cost: a key.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import Record
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.guards import CLAMP
from tcc_certs.replay.run import Run
from tcc_certs.replay.turn import Turn


def replay_requeue(run: Run, record: Record, line: int) -> None:
    """Hold a ``requeue`` record against the key that the greatest item has now.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
    """
    node = run.pop(Turn.REQUEUE, record)
    pushed = run.policy.again(node)
    left = node.left
    expected: dict[str, Json] = {
        "kind": "requeue",
        "node_id": uuid7(run.header.started_ms, node.digest if left is None else left.context),
        "key_raw": format_q64(pushed.key),
    }
    if left is not None:
        expected["step"] = left.step
    run.hold(expected, record, line, [CLAMP] if pushed.clamped else None, pushed.clamped)
    run.frontier.push(replace(node, key=pushed.key))
