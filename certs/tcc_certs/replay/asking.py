"""The records of a run over an artifact with ranges: requeues, asks, answers, budgets.

Normative text: docs/spec/ledger.md, section 11.  What an ask was answered, and what it took, is
taken from the ledger, for it comes from outside; everything else is derived and compared.  An
answer is never brought inside its interval: one that does not narrow it counts for nothing, and
takes the claim down.  Cost: a few integers a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcc_certs.codec import Json
from tcc_certs.digest import uuid7
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.fixed import format_decimal, format_q32, format_q64
from tcc_certs.ledger import Record
from tcc_certs.ledger_schema import text
from tcc_certs.replay.budgets import Amounts, Caps, slack
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.guards import BUDGET, CLAMP, RANGE
from tcc_certs.replay.header import nano
from tcc_certs.replay.refinement import Ask, Refinement
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import Turn


def requeue(run: Run, record: Record, line: int) -> None:
    """A ``requeue`` record: answers since its push have brought the top's key down.

    Raises:
        Rejected: as :meth:`tcc_certs.replay.run.Run.pop`.
    """
    node = run.pop(Turn.REQUEUE, record)
    pushed = run.policy.again(node)
    left = node.left
    due: dict[str, Json] = {
        "kind": "requeue",
        "node_id": uuid7(run.header.started_ms, node.digest if left is None else left.context),
        "key_raw": format_q64(pushed.key),
    }
    if left is not None:
        due["step"] = left.step
    run.hold(due, [CLAMP] * pushed.clamped, pushed.clamped, record, line)
    run.frontier.push(replace(node, key=pushed.key))


def budget(run: Run, record: Record, line: int) -> None:
    """A ``budget`` record: the amounts that an ask may take, or that none is left.

    Raises:
        Rejected: L702 no ask comes next.
    """
    refinement, turn = run.refinement, run.turn
    if refinement is None or turn is not Turn.BUDGET:
        raise Rejected(Code.ASK, "kind", turn.value, "budget")
    spent, top = refinement.controller.spent, run.frontier.top
    edge = None if top is None or refinement.controller.overspent else refinement.due(top)
    choice = None if edge is None else refinement.choice(edge)
    due: dict[str, Json] = {
        "kind": "budget",
        **_edge_fields(run, edge),
        **cap_fields(run.header.caps),
    }
    if edge is None or choice is None:
        due |= {"budget_event": "exhausted", **spent_fields(spent)}
        run.hold(due, [BUDGET], False, record, line)
        refinement.asks = False
        run.falls_back = not isinstance(run.policy, Fallback)
        return
    predicted, clamped = slack(run.language.beta, choice.gain)
    due |= {
        "budget_event": "reserve",
        "model_id": choice.model.name,
        "dkey_pred": format_q32(predicted),
        **spent_fields(spent.plus(choice.reserved)),
    }
    run.hold(due, [CLAMP] * clamped, False, record, line)
    run.ask = Ask(node=edge, choice=choice)


def refine(run: Run, record: Record, line: int) -> None:
    """A ``refine`` record: what the ask was answered, and took.

    Raises:
        Rejected: L702 nothing was asked, or about another edge; L103 half an answer, or an amount
            of more than nine places.
    """
    ask, refinement = run.ask, run.refinement
    if ask is None or refinement is None:
        raise Rejected(Code.ASK, "kind", "no answer, as nothing was asked", "refine")
    node_id = uuid7(run.header.started_ms, ask.node.digest)
    found = text(record, "node_id")
    ensure(found == node_id, Code.ASK, "node_id", node_id, found)
    run.ask = None
    due, guards = _answered(run, refinement, ask, record)
    run.hold(due, guards, RANGE in guards, record, line)


def _answered(
    run: Run, refinement: Refinement, ask: Ask, record: Record
) -> tuple[dict[str, Json], list[str]]:
    """The record that is due for the answer and the amounts in `record`, and the guards."""
    width = refinement.width(ask.node)
    answer = _answer(record)
    gained = refinement.narrow(ask.node, ask.choice.number, answer)
    took = Amounts(
        price=int(text(record, "price")),
        latency=int(text(record, "latency")),
        epsilon=nano(text(record, "epsilon"), "epsilon"),
    )
    refinement.controller.settle(refinement.tool(ask.node), ask.choice, took, width, gained or 0)
    predicted, first_clamp = slack(run.language.beta, ask.choice.gain)
    realised, second_clamp = slack(run.language.beta, (gained or 0, 1))
    due: dict[str, Json] = {
        "kind": "refine",
        **_edge_fields(run, ask.node),
        "model_id": ask.choice.model.name,
        "dkey_pred": format_q32(predicted),
        "dkey_real": format_q32(realised),
        "price": str(took.price),
        "latency": str(took.latency),
        "epsilon": format_decimal(took.epsilon, 9),
        **spent_fields(refinement.controller.spent),
    }
    if answer is not None:
        due["cost_low"], due["cost_high"] = [format_decimal(end, 9) for end in answer]
    clamped = first_clamp or second_clamp
    return due, [RANGE] * (gained is None) + [CLAMP] * clamped


def _answer(record: Record) -> tuple[int, int] | None:
    parts = [name for name in ("cost_low", "cost_high") if name in record]
    if not parts:
        return None
    ensure(len(parts) == 2, Code.LEDGER_SCHEMA, "cost_low", "both ends of an answer", parts[0])
    low, high = (nano(text(record, name), name) for name in parts)
    return low, high


def _edge_fields(run: Run, edge: Node | None) -> Mapping[str, Json]:
    if edge is None:
        return {}
    return {
        "node_id": uuid7(run.header.started_ms, edge.digest),
        "ctx_digest": edge.digest.hex(),
        "call": edge.call,
    }


def spent_fields(spent: Amounts) -> Mapping[str, Json]:
    """The three sums of what asks have taken."""
    return {
        "price_spent": str(spent.price),
        "latency_ms": str(spent.latency),
        "epsilon_used": format_decimal(spent.epsilon, 9),
    }


def cap_fields(caps: Caps) -> Mapping[str, Json]:
    """The caps on asking that there are."""
    fields: dict[str, Json] = {}
    if caps.price is not None:
        fields["price_cap"] = caps.price
    if caps.latency is not None:
        fields["sla_ms"] = caps.latency
    if caps.epsilon is not None:
        fields["epsilon_cap"] = format_decimal(caps.epsilon, 9)
    return fields
