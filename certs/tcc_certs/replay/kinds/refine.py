"""``refine``: what an ask was answered, and what it took.

Normative text: docs/spec/ledger.md, section 11.  Answer and amounts are taken from the ledger, for
they come from outside; everything else is derived and compared.  An answer is never brought inside
its interval: one that does not narrow it counts for nothing, and takes the claim down.
Cost: a few integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.fixed import format_q32
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.adapters import adapter_fields
from tcc_certs.replay.amounts import edge_fields, margin_fields, spent_fields
from tcc_certs.replay.budgets import Amounts
from tcc_certs.replay.guards import CLAMP, RANGE
from tcc_certs.replay.header import nano
from tcc_certs.replay.margin import slack
from tcc_certs.replay.refinement import Ask, Refinement
from tcc_certs.replay.run import Run

if TYPE_CHECKING:
    from tcc_certs.core.atoms import Atom


def replay_refine(run: Run, record: Record, line: int) -> None:
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
    run: Run, refinement: Refinement, ask: Ask, record: Record
) -> tuple[dict[str, Json], list[str], Amounts]:
    """The record that the answer and amounts in `record` lead to, the guards, and the amounts."""
    width = refinement.width(ask.node)
    answer = _answer(record)
    gained = refinement.narrow(ask.node, ask.choice.number, answer)
    took = Amounts(
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


def _atom(run: Run, ask: Ask, record: Record) -> Atom | None:
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
