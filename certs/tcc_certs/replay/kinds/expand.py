"""``expand``: the greatest item of the frontier is an internal node; its children are next.

Normative text: docs/spec/ledger.md, section 3.  Cost: a winner, and Phi.
"""

from __future__ import annotations

from dataclasses import replace

from tcc_certs.formats.ledger import Record
from tcc_certs.replay.draws import made_of
from tcc_certs.replay.guards import ACYCLICITY, CLAMP, potential
from tcc_certs.replay.records import popped_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.turn import Turn


def replay_expand(run: Run, record: Record, line: int) -> None:
    """Hold an ``expand`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
    """
    node = run.pop(Turn.EXPAND, record)
    word = run.word(record)
    popped = run.policy.pop(node, word)
    if popped.arrival is not node.arrival:
        node = replace(node, arrival=popped.arrival)
    children = run.listing.children(node.states or ())
    made = made_of(run.policy, run.language, run.constraints, node, children, word)
    phi = potential(run.header, run.root.rank, node)
    fields = {**popped.fields, **made.fields, **phi.fields}
    expected = popped_record("expand", run.header.started_ms, node, fields)
    guards = [ACYCLICITY] * phi.fails + [CLAMP] * (phi.clamped or popped.clamped)
    run.hold(expected, record, line, guards, phi.fails or popped.clamped)
    run.expansions += 1
    run.begin(node, made, children.total, children.unit)
