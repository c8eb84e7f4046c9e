"""The expected content of each kind of record, and its effect on the run.

Normative text: docs/spec/ledger.md, sections 3 and 5; docs/spec/race.md, section 18.  ``open`` and
``close`` are in :mod:`~tcc_certs.replay.header_check` and :mod:`~tcc_certs.replay.closing`.  Rare
kinds are in :mod:`tcc_certs.replay.races.rest` and :mod:`tcc_certs.replay.asking.asked`, which are
imported lazily.  The table of kinds is at the end.

The seed determines the content of nearly all records.  Each of their kinds has one function.  It
makes the expected record, calls `holds` to compare, and changes the run only if the result is True.
It is called at most twice: first to compare the bytes of the line (:func:`passes`), and if they
differ, to compare field by field.

Cost: a node takes the policy's push and a digest.  An expansion takes a winner and Phi.  A leaf
takes an exponential.  A downgrade to fallback takes a key for every leaf and every item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.ledger import Record, format_q64
from tcc_certs.formats.ledger_schema import size
from tcc_certs.replay import records, run as runs
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, RUN_WISE_SURROGATE
from tcc_certs.replay.kappa import node_diagnostic
from tcc_certs.replay.races.coupled import Word, unlogged_words, with_key
from tcc_certs.replay.run import BUDGET, CLAMP, Holds, ReplayedRun, Step, Turn, at_cost, made_of
from tcc_certs.replay.tree import Node, below, child_digest, root_node, share


def passes(run: ReplayedRun, body: bytes) -> bool:
    """Return whether `body` is the expected next line by the seed alone, and process it if so.

    If it is not, the run is unchanged.
    """
    word = run.key
    if word is None:
        return False

    def same(expected: Record | bytes, guards: object = None, *_: object) -> bool:
        told = expected if isinstance(expected, bytes) else records.body_of(expected)
        return not guards and told == body

    try:
        kind = run.awaits or run.turn
        return kind in records.DERIVED and step_of(kind)(run, word, same)
    except Rejected:
        return False


def replay_derived(kind: str, run: ReplayedRun, record: Record, line: int) -> None:
    """Compare a record that follows from the seed with the expected record, field by field.

    Raises:
        Rejected: L602 the record is about another child.  L603 the node is in the frontier.  L104
            no node or rest is expected.  L608 a share is lost.  Also the codes of
            :meth:`tcc_certs.replay.run.ReplayedRun.check_pop`.
    """
    if kind == "node" and run.nodes and not run.pushes:
        raise records.no_node_expected(run.frontier.digests(), record)
    if kind in records.POPS:
        run.check_pop(Turn(kind), record)
    step_of(kind)(run, run.word(record), partial(run.hold, record, line))


@cache
def step_of(kind: str) -> Step:
    """Return the function that processes records of a kind that follows from the seed."""
    if kind in ("rest", "draw"):
        race = runs.rest_race()
        steps: Mapping[str, Step] = {"rest": race.push_rest, "draw": race.pop_rest}
        return steps[kind]
    return {"node": push_node, "expand": pop_node, "leaf": pop_leaf}[kind]


# ---- ``node``: the root, then the allowed children of the popped item, in order.


def push_node(run: ReplayedRun, word: Word, holds: Holds) -> bool:
    """Push the expected node, if the record holds."""
    parent = run.parent
    if parent is None:
        node = root_node(run.root, run.constraints, run.kappa.root)
    else:
        slot = run.pushes[0]
        digest = child_digest(run.language, parent.digest, slot)
        exact = run.kappa.step(parent.exact, slot)
        node = below(run.language, parent, slot, digest, slot.position == run.won, exact)
    pushed = run.policy.push(node, word)
    guards, place = [CLAMP] if pushed.clamped else None, None if parent is None else node
    if not holds(run.texts.node(node, pushed.fields), guards, pushed.clamped, place):
        return False
    if parent is not None:
        run.pushes.popleft()
    run.nodes += 1
    run.leaf_nodes += node.states is None
    kappa = run.kappa.note(node.states, node.exact)
    if run.tell is not None:
        told = kappa if run.policy.uses_counts else None
        run.tell(node_diagnostic(run.header.started_ms, node, pushed.key, told))
    run.frontier.push(with_key(node, pushed))
    return True


# ---- ``expand``: the greatest item of the frontier is an internal node; its children are next.


def pop_node(run: ReplayedRun, word: Word, holds: Holds) -> bool:
    """Expand the top of the frontier, if the record holds."""
    node = run.top
    popped = run.policy.pop(node, word)
    if popped.arrival is not node.arrival:
        node = replace(node, arrival=popped.arrival)
    children = run.listing.children(node.states or ())
    made = made_of(run.policy, run.language, run.constraints, node, children, word)
    phi = runs.potential(run.header, run.root.rank, node)
    name = run.texts.named(node.digest)
    expected = {"kind": "expand", "node_id": name, **popped.fields, **made.fields, **phi.fields}
    guards = None
    if phi.fails or phi.clamped or popped.clamped:
        guards = [runs.ACYCLICITY] * phi.fails + [CLAMP] * (phi.clamped or popped.clamped)
    if not holds(expected, guards, phi.fails or popped.clamped):
        return False
    run.begin(node, name, made, children.total, children.unit)
    run.expansions += 1
    return True


# ---- ``leaf``: the greatest item of the frontier is a plan, which gets its value.


def pop_leaf(run: ReplayedRun, word: Word, holds: Holds) -> bool:
    """Pop the top of the frontier, a leaf, if the record holds."""
    node = run.top
    popped = run.policy.pop(node, word)
    incumbent = run.best.incumbent_with(node, popped.value)
    expected = {"kind": "leaf", "node_id": run.texts.named(node.digest), **popped.fields}
    if incumbent is not None:
        expected["incumbent"] = format_q64(incumbent)
    if not holds(expected, [CLAMP] if popped.clamped else None, popped.clamped):
        return False
    run.frontier.pop()
    run.best.add(node, popped.value)
    run.outside += share(run.language, node)
    return True


# ---- ``downgrade``: to surrogate before the root, or to fallback for every leaf and item.


def replay_downgrade(run: ReplayedRun, record: Record, line: int) -> None:
    """Apply the downgrade after a `CountFail` or a `BudgetFail`.

    Rounded counts are bounds from the root on, so only the name of the claim changes.  In fallback,
    an item of the rest race has the bound of its node.

    Raises:
        Rejected: L604 no guard requires a downgrade; D302 values of leaves need the withheld seed.
    """
    if run.narrows:
        run.claim, run.narrows = lowered(run.claim), False
        expected = records.downgrade_record("surrogate", run.claim, runs.COUNT)
        records.compare(expected, record, line, Code.GUARD, run.findings)
        return
    ensure(run.falls_back, Code.GUARD, "kind", "no downgrade", "downgrade")
    expected = records.downgrade_record("fallback", NO_CERT, BUDGET)
    records.compare(expected, record, line, Code.GUARD, run.findings)
    run.claim, run.falls_back = NO_CERT, False
    from tcc_certs.replay.races.heuristic import FallbackReplay

    run.policy = fallback = FallbackReplay(
        language=run.language, tau=run.header.tau, recipe=run.header.recipe
    )
    word = unlogged_words(run.key)

    def pushed(item: Node) -> Node:
        item = at_cost(item, run.refinement)
        return with_key(replace(item, arrival=None), fallback.push(item, word))

    run.best.revalue(lambda leaf: pushed(leaf).key)
    run.frontier.rekey(pushed)


def lowered(claim: str) -> str:
    """Return the claim of a run whose counts became bounds before any word was drawn."""
    return RUN_WISE_SURROGATE if claim == RUN_WISE_EXACT else claim


# ---- ``recovered``: an interrupted run was resumed here; the dropped bytes are unknown.


def replay_recovered(run: ReplayedRun, record: Record, line: int) -> None:
    """Check the number of records in a ``recovered`` record.

    Raises:
        Rejected: L104: it has another number.
    """
    stated = size(record, "records")
    ensure(stated == line - 1, Code.LEDGER_ORDER, "records", line - 1, stated)


def _asked(run: ReplayedRun, record: Record, line: int) -> None:
    """Call the function of :data:`tcc_certs.replay.asking.asked.ASKED` for this kind."""
    from tcc_certs.replay.asking.asked import ASKED

    ASKED[str(record["kind"])](run, record, line)


KINDS: Mapping[str, Callable[[ReplayedRun, Record, int], None]] = {
    **{kind: partial(replay_derived, kind) for kind in records.DERIVED},
    "requeue": _asked,
    "budget": _asked,
    "refine": _asked,
    "downgrade": replay_downgrade,
    "recovered": replay_recovered,
}
