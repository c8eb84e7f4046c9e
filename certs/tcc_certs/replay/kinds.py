"""What a record of each kind has to say, and what it changes in the run.

Normative text: docs/spec/ledger.md, sections 3, 5 and 11; docs/spec/race.md, section 18.  ``open``
and ``close`` are with :mod:`tcc_certs.replay.opening` and :mod:`tcc_certs.replay.closing`; the
table of kinds is at the end.

Nearly all records of a ledger are ``node`` records, so the bytes of the line that is expected are
made at once (:func:`passes`); only where the line has others is the expected record made, and held
against it field by field.

Cost: of a node the policy's push and a digest; of an expansion a winner, and Phi; of a leaf an
exponential; of a downgrade to fallback a key for every leaf and every item; of an ask the
controller's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.formats.ledger import Q64_MAX, Record, format_q32, format_q64
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.race.arrivals import Arrival, Fraction, publish
from tcc_certs.race.digest import REST_ARRIVAL, rest_digest, rest_place, uuid7
from tcc_certs.replay.children import Left
from tcc_certs.replay.controller import SpentAmounts, cap_fields, margin_fields, slack, spent_fields
from tcc_certs.replay.controller import slack as off_key
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, RUN_WISE_SURROGATE
from tcc_certs.replay.header import adapter_fields, nano
from tcc_certs.replay.kappa import node_diagnostic
from tcc_certs.replay.races import (
    CoupledReplay,
    FallbackReplay,
    Pushed,
    Word,
    pushed_at,
    unlogged_words,
    with_key,
)
from tcc_certs.replay.records import (
    compare,
    downgrade_record,
    edge_fields,
    no_node_expected,
    node_record,
    popped_record,
)
from tcc_certs.replay.refinement import Ask, ReplayRefinement
from tcc_certs.replay.run import (
    ACYCLICITY,
    BUDGET,
    CLAMP,
    COUNT,
    RANGE,
    ReplayedRun,
    Turn,
    at_cost,
    drawn,
    made_of,
    potential,
    remaining,
)
from tcc_certs.replay.tree import Node, below, child_digest, item_of, root_node, share

if TYPE_CHECKING:
    from tcc_certs.core.atoms import Atom

# Asking what calls cost: ``budget``, ``refine``, ``requeue``.

# ---- ``budget``: the amounts that an ask may take, or that none is left.


def slack_of(run: ReplayedRun, refinement: ReplayRefinement, top: Node) -> int | None:
    """How far the greatest key lies above what the k best leaves are worth at least, Q64.64.

    A leaf that was popped is worth its value, one of the frontier -beta C - ln E at the greatest
    that its calls may cost.  Only keys with the leaf's own arrival say that, and of fewer than k
    leaves it is not known.
    """
    policy, language = run.policy, run.language
    if not isinstance(policy, CoupledReplay) or policy.anchored:
        return None

    def worth(leaf: Node) -> int | None:
        if leaf.states is not None or leaf.left is not None or leaf.arrival is None:
            return None
        bound = language.bound(policy.recipe, None, refinement.costs(leaf)[1])
        return publish(leaf.arrival, bound).key

    known = [-value for value, _, _ in run.best.ranked]
    sure = run.frontier.kth_greatest(run.header.top, known, worth)
    return None if sure is None else min(top.key - sure, Q64_MAX)


def replay_budget(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``budget`` record against the ask that comes next.

    Raises:
        Rejected: L702 no ask comes next.
    """
    refinement, turn = run.refinement, run.turn
    if refinement is None or turn is not Turn.BUDGET:
        raise Rejected(Code.ASK, "kind", turn.value, "budget")
    spent, top = refinement.controller.spent, run.frontier.top
    edge = None if top is None or refinement.overspent else refinement.unasked(top)
    slack = None if top is None or edge is None else slack_of(run, refinement, top)
    choice = None if edge is None else refinement.choice(edge, slack)
    expected: dict[str, Json] = {
        "kind": "budget",
        **edge_fields(run.header.started_ms, edge),
        **cap_fields(run.header.caps),
    }
    if edge is None or choice is None:
        expected |= {"budget_event": "exhausted", **spent_fields(spent)}
        run.hold(expected, record, line, [BUDGET])
        refinement.asks = False
        refinement.refused = []
        run.falls_back = not isinstance(run.policy, FallbackReplay)
        return
    predicted, clamped = off_key(run.language.beta, choice.gain)
    margin, also = margin_fields(run.header.rule, run.language.beta, choice)
    drawn = refinement.drawn
    refused = drawn is not None and record.get("budget_event") == "refused"
    account: Mapping[str, Json] = {}
    if drawn is not None:
        account = drawn.wish(spent, choice.reserved, record, line, run.findings)
    expected |= {
        "budget_event": "refused" if refused else "reserve",
        "model_id": choice.model.name,
        **adapter_fields(run.header.adapters, choice.model),
        "dkey_pred": format_q32(predicted),
        **margin,
        **({} if refused or slack is None else {"slack": format_q64(slack)}),
        **account,
        **spent_fields(spent if refused else spent.plus(choice.reserved)),
    }
    run.hold(expected, record, line, [CLAMP] if clamped or also else None)
    if refused:
        refinement.refused.append(choice.number)
        return
    refinement.refused = []
    run.ask = Ask(node=edge, choice=choice)


# ---- ``refine``: what an ask was answered, and what it took.
#
# Answer and amounts are taken from the ledger, for they come from outside; everything else is
# derived and compared.  An answer is never brought inside its interval: one that does not narrow it
# counts for nothing, and takes the claim down.


def replay_refine(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``refine`` record against the ask before it.

    Raises:
        Rejected: L702 nothing was asked, or about another edge; L103 half an answer, or an amount
            of more than nine places.
    """
    ask, refinement = run.ask, run.refinement
    if ask is None or refinement is None:
        raise Rejected(Code.ASK, "kind", "no answer, as nothing was asked", "refine")
    node_id = uuid7(run.header.started_ms, ask.node.digest)
    named = text(record, "node_id")
    ensure(named == node_id, Code.ASK, "node_id", node_id, named)
    run.ask = None
    spent = refinement.controller.spent
    expected, guards, took = _answered(run, refinement, ask, record)
    if refinement.drawn is not None:
        expected |= refinement.drawn.settled(spent, took, record, line, run.findings)
    run.hold(expected, record, line, guards, RANGE in guards)


def _answered(
    run: ReplayedRun, refinement: ReplayRefinement, ask: Ask, record: Record
) -> tuple[dict[str, Json], list[str], SpentAmounts]:
    """The record that the answer and amounts in `record` lead to, the guards, and the amounts."""
    width = refinement.width(ask.node)
    answer = _answer(record)
    gained = refinement.narrow(ask.node, ask.choice.number, answer)
    took = SpentAmounts(
        price=int(text(record, "price")),
        latency=int(text(record, "latency")),
        epsilon=nano(text(record, "epsilon"), "epsilon"),
        atom=_atom(run, ask, record),
    )
    refinement.controller.settle(refinement.tool(ask.node), ask.choice, took, width, gained or 0)
    predicted, first_clamp = slack(run.language.beta, ask.choice.gain)
    realised, second_clamp = slack(run.language.beta, (gained or 0, 1))
    margin, third_clamp = margin_fields(run.header.rule, run.language.beta, ask.choice)
    expected: dict[str, Json] = {
        "kind": "refine",
        **edge_fields(run.header.started_ms, ask.node),
        "model_id": ask.choice.model.name,
        **adapter_fields(run.header.adapters, ask.choice.model),
        "dkey_pred": format_q32(predicted),
        "dkey_real": format_q32(realised),
        **margin,
        "price": str(took.price),
        "latency": str(took.latency),
        "epsilon": format_decimal(took.epsilon, 9),
        **spent_fields(refinement.controller.spent),
    }
    if took.atom is not None:
        expected["atom"] = record["atom"]  # one that was read has the one form that it has
    if answer is not None:
        expected["cost_low"], expected["cost_high"] = [format_decimal(end, 9) for end in answer]
    clamped = first_clamp or second_clamp or third_clamp
    return expected, [RANGE] * (gained is None) + [CLAMP] * clamped, took


def _atom(run: ReplayedRun, ask: Ask, record: Record) -> Atom | None:
    """What it took beside its epsilon: another atom than the model's where it says so, never none.

    Raises:
        Rejected: L708 it says none of a model that carries one, or one where none is counted.
    """
    stated, declared = record.get("atom"), ask.choice.model.atom
    if stated is None:
        ensure(declared is None, Code.ATOM_TAKEN, "atom", "one, as its model carries one", "none")
        return None
    counted = run.header.taken is not None
    ensure(counted, Code.ATOM_TAKEN, "atom", "no field, as there is no delta", "one")
    from tcc_certs.core.atoms import canonical_atom

    return canonical_atom(stated, "atom", Code.LEDGER_SCHEMA)


def _answer(record: Record) -> tuple[int, int] | None:
    parts = [name for name in ("cost_low", "cost_high") if name in record]
    if not parts:
        return None
    ensure(len(parts) == 2, Code.LEDGER_SCHEMA, "cost_low", "both ends of an answer", parts[0])
    low, high = (nano(text(record, name), name) for name in parts)
    return low, high


# ---- ``requeue``: answers since its push have brought the key of the greatest item down.


def replay_requeue(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``requeue`` record against the key that the greatest item has now.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.ReplayedRun.pop`.
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


# The other kinds.


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
            raise no_node_expected(run.frontier.digests(), record)
        node, pushed = _child(run, parent, word)
        run.pushes.popleft()
        place = node
    expected = node_record(run.language, run.header.started_ms, node, pushed.fields)
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
    expected = popped_record("expand", run.header.started_ms, node, fields)
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
    expected = popped_record("leaf", run.header.started_ms, node, popped.fields)
    if incumbent is not None:
        expected["incumbent"] = format_q64(incumbent)
    guards = [CLAMP] if popped.clamped else None
    run.hold(expected, record, line, guards, popped.clamped)
    run.best.add(node, popped.value)
    run.outside += share(run.language, node)


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


# ---- ``draw``: the greatest item is what is left of a node; its next child is drawn.


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
        expected = downgrade_record("surrogate", run.claim, COUNT)
        compare(expected, record, line, Code.GUARD, run.findings)
        return
    ensure(run.falls_back, Code.GUARD, "kind", "no downgrade", "downgrade")
    expected = downgrade_record("fallback", NO_CERT, BUDGET)
    compare(expected, record, line, Code.GUARD, run.findings)
    run.claim, run.falls_back = NO_CERT, False
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


# ---- ``recovered``: a run that broke off was taken up here; what was dropped nobody can know.


def replay_recovered(run: ReplayedRun, record: Record, line: int) -> None:
    """Hold a ``recovered`` record against the number of records before it.

    Raises:
        Rejected: L104 it tells another number.
    """
    stated = size(record, "records")
    ensure(stated == line - 1, Code.LEDGER_ORDER, "records", line - 1, stated)


KINDS: Mapping[str, Callable[[ReplayedRun, Record, int], None]] = {
    "node": replay_node,
    "expand": replay_expand,
    "leaf": replay_leaf,
    "rest": replay_rest,
    "draw": replay_draw,
    "requeue": replay_requeue,
    "budget": replay_budget,
    "refine": replay_refine,
    "downgrade": replay_downgrade,
    "recovered": replay_recovered,
}
