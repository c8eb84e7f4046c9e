"""``leaf``: the greatest item of the frontier is a plan; it has its value.

Normative text: docs/spec/ledger.md, section 3.  Cost: an exponential.
"""

from __future__ import annotations

from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.guards import CLAMP
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import share
from tcc_certs.replay.turn import Turn


def replay_leaf(run: Run, record: Record, line: int) -> None:
    """Hold a ``leaf`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
    """
    node = run.pop(Turn.LEAF, record)
    popped = run.policy.pop(node, run.word(record))
    incumbent = run.best.incumbent_with(node, popped.value)
    expected = popped_record("leaf", run.header.started_ms, node, popped.fields)
    if incumbent is not None:
        expected["incumbent"] = format_q64(incumbent)
    guards = [CLAMP] if popped.clamped else None
    run.hold(expected, record, line, guards, popped.clamped)
    run.best.add(node, popped.value)
    run.outside += share(run.language, node)
