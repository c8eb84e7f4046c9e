"""``budget``: the amounts that an ask may take, or that none is left.

Normative text: docs/spec/ledger.md, section 11.  Cost: the controller's choice.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import Q64_MAX, format_q32, format_q64
from tcc_certs.formats.ledger import Record
from tcc_certs.race.published import publish
from tcc_certs.replay.adapters import adapter_fields
from tcc_certs.replay.amounts import cap_fields, edge_fields, margin_fields, spent_fields
from tcc_certs.replay.coupled import Coupled
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.guards import BUDGET, CLAMP
from tcc_certs.replay.margin import slack as off_key
from tcc_certs.replay.refinement import Ask, Refinement
from tcc_certs.replay.run import Run
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import Turn


def slack_of(run: Run, refinement: Refinement, top: Node) -> int | None:
    """How far the greatest key lies above what the k best leaves are worth at least, Q64.64.

    A leaf that was popped is worth its value, one of the frontier -beta C - ln E at the greatest
    that its calls may cost.  Only keys with the leaf's own arrival say that, and of fewer than k
    leaves it is not known.
    """
    policy, language = run.policy, run.language
    if not isinstance(policy, Coupled) or policy.anchored:
        return None

    def worth(leaf: Node) -> int | None:
        if leaf.states is not None or leaf.left is not None or leaf.arrival is None:
            return None
        bound = language.bound(policy.recipe, None, refinement.costs(leaf)[1])
        return publish(leaf.arrival, bound).key

    known = [-value for value, _, _ in run.best.ranked]
    sure = run.frontier.kth_greatest(run.header.top, known, worth)
    return None if sure is None else min(top.key - sure, Q64_MAX)


def replay_budget(run: Run, record: Record, line: int) -> None:
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
        run.falls_back = not isinstance(run.policy, Fallback)
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
