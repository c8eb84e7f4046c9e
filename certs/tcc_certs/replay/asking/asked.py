"""Records of questions about costs: ``budget``, ``refine``, ``requeue``.

Normative text: docs/spec/ledger.md, sections 5 and 11; docs/spec/race.md, section 19.  A run whose
costs are points has none of these records, and does not import this module.  Cost: the controller's
choice for each question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.formats.ledger import Q64_MAX, Record, format_q32, format_q64
from tcc_certs.formats.ledger_schema import text
from tcc_certs.race.arrivals import publish
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.amounts import SpentAmounts, cap_fields, spent_fields
from tcc_certs.replay.asking.controller import margin_fields, slack
from tcc_certs.replay.asking.refinement import Ask, ReplayRefinement
from tcc_certs.replay.header import adapter_fields, nano
from tcc_certs.replay.races.coupled import CoupledReplay
from tcc_certs.replay.races.heuristic import FallbackReplay
from tcc_certs.replay.records import edge_fields
from tcc_certs.replay.run import BUDGET, CLAMP, RANGE, ReplayedRun, Turn
from tcc_certs.replay.tree import Node

if TYPE_CHECKING:
    from tcc_certs.policy.atoms import Atom

# ---- ``budget``: the amounts that a question may take, or no question is possible.


def slack_of(run: ReplayedRun, refinement: ReplayRefinement, top: Node) -> int | None:
    """Return the greatest key minus the sure worth of the k best leaves, Q64.64; None: not known.

    The worth of a popped leaf is its value.  The worth of a leaf of the frontier is -beta C - ln E,
    with the greatest possible cost C of its calls.  It is not known with fewer than k leaves, or if
    keys do not use the leaf's own arrival.
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
    """Compare a ``budget`` record with the next question.

    Raises:
        Rejected: L702: no question is next.
    """
    refinement, turn = run.refinement, run.turn
    if refinement is None or turn is not Turn.BUDGET:
        raise Rejected(Code.ASK, "kind", turn.value, "budget")
    spent, top = refinement.controller.spent, run.frontier.top
    edge = None if top is None or refinement.overspent else refinement.unasked(top)
    above = None if top is None or edge is None else slack_of(run, refinement, top)
    choice = None if edge is None else refinement.choice(edge, above)
    expected: dict[str, Json] = {
        "kind": "budget",
        **edge_fields(run.header.started_ms, edge),
        **cap_fields(run.header.caps),
    }
    if edge is None or choice is None:
        expected |= {"budget_event": "exhausted", **spent_fields(spent)}
        run.hold(record, line, expected, [BUDGET])
        refinement.asks = False
        refinement.refused = []
        run.falls_back = not isinstance(run.policy, FallbackReplay)
        return
    predicted, clamped = slack(run.language.beta, choice.gain)
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
        **({} if refused or above is None else {"slack": format_q64(above)}),
        **account,
        **spent_fields(spent if refused else spent.plus(choice.reserved)),
    }
    run.hold(record, line, expected, [CLAMP] if clamped or also else None)
    if refused:
        refinement.refused.append(choice.number)
        return
    refinement.refused = []
    run.ask = Ask(node=edge, choice=choice)


# ---- ``refine``: the answer to a question, and its amounts.
#
# Answer and amounts are taken from the ledger, because they come from outside.  Everything else is
# derived and compared.  An answer is never moved into its interval: an answer that does not narrow
# the interval is ignored, and lowers the claim.


def replay_refine(run: ReplayedRun, record: Record, line: int) -> None:
    """Compare a ``refine`` record with the question before it.

    Raises:
        Rejected: L702 there was no question, or it was about another edge; L103 the answer has only
            one end, or an amount has more than nine places.
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
    run.hold(record, line, expected, guards, RANGE in guards)


def _answered(
    run: ReplayedRun, refinement: ReplayRefinement, ask: Ask, record: Record
) -> tuple[dict[str, Json], list[str], SpentAmounts]:
    """Return the expected record after the answer in `record`, the guards, and the amounts."""
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
        expected["atom"] = record["atom"]  # canonical, because `_atom` has read it
    if answer is not None:
        expected["cost_low"], expected["cost_high"] = [format_decimal(end, 9) for end in answer]
    clamped = first_clamp or second_clamp or third_clamp
    return expected, [RANGE] * (gained is None) + [CLAMP] * clamped, took


def _atom(run: ReplayedRun, ask: Ask, record: Record) -> Atom | None:
    """Return the atom that a question took; the record may name another atom than the model's.

    Raises:
        Rejected: L708: a model with an atom reports none, or the run counts no atoms.
    """
    stated, declared = record.get("atom"), ask.choice.model.atom
    if stated is None:
        ensure(declared is None, Code.ATOM_TAKEN, "atom", "one, as its model carries one", "none")
        return None
    counted = run.header.taken is not None
    ensure(counted, Code.ATOM_TAKEN, "atom", "no field, as there is no delta", "one")
    from tcc_certs.policy.atoms import canonical_atom

    return canonical_atom(stated, "atom", Code.LEDGER_SCHEMA)


def _answer(record: Record) -> tuple[int, int] | None:
    parts = [name for name in ("cost_low", "cost_high") if name in record]
    if not parts:
        return None
    ensure(len(parts) == 2, Code.LEDGER_SCHEMA, "cost_low", "both ends of an answer", parts[0])
    low, high = (nano(text(record, name), name) for name in parts)
    return low, high


# ---- ``requeue``: answers since its push have lowered the key of the greatest item.


def replay_requeue(run: ReplayedRun, record: Record, line: int) -> None:
    """Compare a ``requeue`` record with the present key of the greatest item.

    Raises:
        Rejected: with the codes of :meth:`tcc_certs.replay.run.ReplayedRun.check_pop`.
    """
    run.check_pop(Turn.REQUEUE, record)
    node = run.top
    pushed = run.policy.again(node)
    left = node.left
    expected: dict[str, Json] = {
        "kind": "requeue",
        "node_id": uuid7(run.header.started_ms, node.digest if left is None else left.context),
        "key_raw": format_q64(pushed.key),
    }
    if left is not None:
        expected["step"] = left.step
    run.hold(record, line, expected, [CLAMP] if pushed.clamped else None, pushed.clamped)
    run.frontier.pop()
    run.frontier.push(replace(node, key=pushed.key))


ASKED: Mapping[str, Callable[[ReplayedRun, Record, int], None]] = {
    "requeue": replay_requeue,
    "budget": replay_budget,
    "refine": replay_refine,
}
