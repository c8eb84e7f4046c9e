"""What a record of each kind has to say, and what it changes in the run.

Normative text: docs/spec/ledger.md, sections 3 and 5; docs/spec/race.md, section 18.  ``open`` and
``close`` are with :mod:`tcc_certs.replay.opening` and :mod:`tcc_certs.replay.closing`, kinds that
few runs have with :mod:`tcc_certs.replay.races.rest` and :mod:`tcc_certs.replay.asking.asked`,
which are loaded where they are read; the table of kinds is at the end.

Nearly all records of a ledger are ``node`` records, so the bytes of the line that is expected are
made at once (:func:`passes`); only where the line has others is the expected record made, and held
against it field by field.

Cost: of a node the policy's push and a digest; of an expansion a winner, and Phi; of a leaf an
exponential; of a downgrade to fallback a key for every leaf and every item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.ledger import Record, format_q64
from tcc_certs.formats.ledger_schema import size
from tcc_certs.replay import records
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, RUN_WISE_SURROGATE
from tcc_certs.replay.kappa import node_diagnostic
from tcc_certs.replay.races.coupled import Pushed, Word, unlogged_words, with_key
from tcc_certs.replay.run import (
    ACYCLICITY,
    BUDGET,
    CLAMP,
    COUNT,
    ReplayedRun,
    Turn,
    at_cost,
    made_of,
    potential,
)
from tcc_certs.replay.tree import Node, below, child_digest, root_node, share


def passes(run: ReplayedRun, body: bytes) -> bool:
    """Whether this is the body of the line of the child that is expected, which is pushed then.

    Where it has not, nothing has happened.
    """
    parent, word = run.parent, run.key
    if parent is None or word is None or not run.pushes:
        return False
    try:
        node, pushed = _child(run, parent, word)
    except Rejected:
        return False
    if pushed.clamped or run.texts.body(node, pushed.fields) != body:
        return False
    run.pushes.popleft()
    _enter(run, node, pushed)
    return True


def replay_node(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``node`` record against the child that is expected, and push that.

    Raises:
        Rejected: L602 it is another child, L603 a node that is in the frontier, L104 no node is
            expected.
    """
    place: Node | None = None
    word = run.word(record)
    if not run.nodes:
        node = root_node(run.root, run.constraints, run.kappa.root)
        pushed = run.policy.push(node, word)
    else:
        parent = run.parent
        if parent is None or not run.pushes:
            raise records.no_node_expected(run.frontier.digests(), record)
        node, pushed = _child(run, parent, word)
        run.pushes.popleft()
        place = node
    expected = records.node_record(run.language, run.header.started_ms, node, pushed.fields)
    guards = [CLAMP] if pushed.clamped else None
    run.hold(expected, record, line, guards, pushed.clamped, place)
    _enter(run, node, pushed)


def _child(run: ReplayedRun, parent: Node, word: Word) -> tuple[Node, Pushed]:
    """The child that is expected, and what it is pushed with."""
    slot = run.pushes[0]
    digest = child_digest(run.language, parent.digest, slot)
    exact = run.kappa.step(parent.exact, slot)
    node = below(run.language, parent, slot, digest, slot.position == run.won, exact)
    return node, run.policy.push(node, word)


def _enter(run: ReplayedRun, node: Node, pushed: Pushed) -> None:
    run.nodes += 1
    run.leaf_nodes += node.states is None
    kappa = run.kappa.note(node.states, node.exact)
    if run.tell is not None:
        told = kappa if run.policy.uses_counts else None
        run.tell(node_diagnostic(run.header.started_ms, node, pushed.key, told))
    run.frontier.push(with_key(node, pushed))


# ---- ``expand``: the greatest item of the frontier is an internal node; its children are next.


def replay_expand(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold an ``expand`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.ReplayedRun.pop`.
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
    expected = records.popped_record("expand", run.header.started_ms, node, fields)
    guards = [ACYCLICITY] * phi.fails + [CLAMP] * (phi.clamped or popped.clamped)
    run.hold(expected, record, line, guards, phi.fails or popped.clamped)
    run.expansions += 1
    run.begin(node, made, children.total, children.unit)


# ---- ``leaf``: the greatest item of the frontier is a plan; it has its value.


def replay_leaf(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``leaf`` record against the pop that is expected.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.ReplayedRun.pop`.
    """
    node = run.pop(Turn.LEAF, record)
    popped = run.policy.pop(node, run.word(record))
    incumbent = run.best.incumbent_with(node, popped.value)
    expected = records.popped_record("leaf", run.header.started_ms, node, popped.fields)
    if incumbent is not None:
        expected["incumbent"] = format_q64(incumbent)
    guards = [CLAMP] if popped.clamped else None
    run.hold(expected, record, line, guards, popped.clamped)
    run.best.add(node, popped.value)
    run.outside += share(run.language, node)


# ---- ``downgrade``: surrogate from the root on, or fallback for every leaf and every item.


def replay_downgrade(run: ReplayedRun, record: Record, line: int) -> None:
    """What a `CountFail` or a `BudgetFail` makes of a run.

    Rounded counts are bounds from the root on, and of the claim nothing is lost but its name.  In
    fallback an item of the rest race has its node's bound.

    Raises:
        Rejected: L604 no guard asks for it; D302 leaves have values that want the seed.
    """
    if run.narrows:
        run.claim, run.narrows = lowered(run.claim), False
        expected = records.downgrade_record("surrogate", run.claim, COUNT)
        records.compare(expected, record, line, Code.GUARD, run.findings)
        return
    ensure(run.falls_back, Code.GUARD, "kind", "no downgrade", "downgrade")
    expected = records.downgrade_record("fallback", NO_CERT, BUDGET)
    records.compare(expected, record, line, Code.GUARD, run.findings)
    run.claim, run.falls_back = NO_CERT, False
    from tcc_certs.replay.races.heuristic import FallbackReplay

    run.policy = fallback = FallbackReplay(language=run.language, tau=run.header.tau)
    word = unlogged_words(run.key)

    def pushed(item: Node) -> Node:
        item = at_cost(item, run.refinement)
        return with_key(replace(item, arrival=None), fallback.push(item, word))

    run.best.revalue(lambda leaf: pushed(leaf).key)
    run.frontier.rekey(pushed)


def lowered(claim: str) -> str:
    """The claim of a run whose counts have become bounds before its first word is drawn."""
    return RUN_WISE_SURROGATE if claim == RUN_WISE_EXACT else claim


# ---- ``recovered``: a run that broke off was resumed here; what was dropped nobody can know.


def replay_recovered(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``recovered`` record against the number of records before it.

    Raises:
        Rejected: L104 it tells another number.
    """
    stated = size(record, "records")
    ensure(stated == line - 1, Code.LEDGER_ORDER, "records", line - 1, stated)


def _rest(run: ReplayedRun, record: Record, line: int) -> None:
    """As :data:`tcc_certs.replay.races.rest.REST`."""
    from tcc_certs.replay.races.rest import REST

    REST[str(record["kind"])](run, record, line)


def _asked(run: ReplayedRun, record: Record, line: int) -> None:
    """As :data:`tcc_certs.replay.asking.asked.ASKED`."""
    from tcc_certs.replay.asking.asked import ASKED

    ASKED[str(record["kind"])](run, record, line)


KINDS: Mapping[str, Callable[[ReplayedRun, Record, int], None]] = {
    "node": replay_node,
    "expand": replay_expand,
    "leaf": replay_leaf,
    "rest": _rest,
    "draw": _rest,
    "requeue": _asked,
    "budget": _asked,
    "refine": _asked,
    "downgrade": replay_downgrade,
    "recovered": replay_recovered,
}
