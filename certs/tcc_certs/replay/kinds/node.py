"""``node``: the root, or the next child of the item that was popped last.

Normative text: docs/spec/ledger.md, section 3.  Cost: the policy's push, and one digest.
"""

from __future__ import annotations

from tcc_certs.formats.ledger import Record
from tcc_certs.replay.diagnostics import node_diagnostic
from tcc_certs.replay.guards import CLAMP
from tcc_certs.replay.policy import with_key
from tcc_certs.replay.records import no_node_expected, node_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node, below, child_digest, root_node


def replay_node(run: Run, record: Record, line: int) -> None:
    """Hold a ``node`` record against the child that is expected, and push that.

    Raises:
        Rejected: L602 it is another child, L603 a node that is in the frontier, L104 no node is
            expected.
    """
    if not run.nodes:
        root = root_node(run.root, run.constraints, run.kappa.root)
        _push(run, root, record, line, None)
        return
    parent = run.parent
    if parent is None or not run.pushes:
        raise no_node_expected(run.frontier.digests(), record)
    slot = run.pushes.popleft()
    digest = child_digest(run.language, parent.digest, slot)
    exact = run.kappa.step(parent.exact, slot)
    child = below(run.language, parent, slot, digest, slot.position == run.won, exact)
    _push(run, child, record, line, child)


def _push(run: Run, node: Node, record: Record, line: int, place: Node | None) -> None:
    pushed = run.policy.push(node, run.word(record))
    expected = node_record(run.language, run.header.started_ms, node, pushed.fields)
    guards = [CLAMP] if pushed.clamped else None
    run.hold(expected, record, line, guards, pushed.clamped, place)
    run.nodes += 1
    run.leaf_nodes += node.states is None
    kappa = run.kappa.note(node.states, node.exact)
    if run.tell is not None:
        told = kappa if run.policy.uses_counts else None
        run.tell(node_diagnostic(run.header.started_ms, node, pushed.key, told))
    run.frontier.push(with_key(node, pushed))
