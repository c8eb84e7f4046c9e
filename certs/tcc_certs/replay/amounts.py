"""Fields that several kinds of records have: the edge asked about, what was spent, the caps.

Normative text: docs/spec/ledger.md, section 11.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.fixed import format_q32
from tcc_certs.race.digest import uuid7
from tcc_certs.race.weights import Beta
from tcc_certs.replay.budgets import Amounts, Caps, Choice, Rule
from tcc_certs.replay.margin import slack
from tcc_certs.replay.tree import Node


def edge_fields(started_ms: int, edge: Node | None) -> Mapping[str, Json]:
    """The edge that an ask is about, by the node that it leads to."""
    if edge is None:
        return {}
    return {
        "node_id": uuid7(started_ms, edge.digest),
        "ctx_digest": edge.digest.hex(),
        "call": edge.call,
    }


def spent_fields(spent: Amounts) -> Mapping[str, Json]:
    """The three sums of what asks have taken, and what is stated of their atoms."""
    return {
        "price_spent": str(spent.price),
        "latency_ms": str(spent.latency),
        "epsilon_used": format_decimal(spent.used, 9),
        **({} if spent.taken is None else spent.taken.fields()),
    }


def margin_fields(rule: Rule | None, beta: Beta, choice: Choice) -> tuple[Mapping[str, Json], bool]:
    """What the prediction was raised by, where the run has a margin; whether it was clamped."""
    if rule is None or rule.margin is None:
        return {}, False
    margin, clamped = slack(beta, choice.margin)
    return {"dkey_margin": format_q32(margin)}, clamped


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
