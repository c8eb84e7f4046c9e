"""The records that are due: what a ledger has to say at each point of a run, field by field.

Normative text: docs/spec/ledger.md, section 3.  The replay makes the record that is due and
:func:`compare` holds the one that is there against it; a field more or less is a finding too.
Cost: the text of two or three numbers a record.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.codec import Json
from tcc_certs.digest import uuid7
from tcc_certs.errors import Code
from tcc_certs.fixed import Q32_MAX, Q32_MIN, divide_nearest, format_decimal, format_q32, format_q64
from tcc_certs.ledger import Record
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.header import Header
from tcc_certs.replay.language import Language
from tcc_certs.replay.tree import Node
from tcc_certs.weights import NANO

_REPR_CALLS, _REPR_BYTES = 3, 48
_PHANTOM = "phantom"

_CODES: Mapping[str, Code] = {
    "ctx_digest": Code.CONTEXT_DIGEST,
    "U": Code.UNIFORM,
    "W": Code.UNIFORM,
    "winner": Code.WINNER,
    "neg_log_t": Code.ARRIVAL,
    "key_raw": Code.KEY,
    "V": Code.VALUE,
    "U_P": Code.VALUE,
    "incumbent": Code.INCUMBENT,
    "phi_before": Code.POTENTIAL,
    "phi_after": Code.POTENTIAL,
    "delta_phi": Code.POTENTIAL,
    "guards": Code.GUARD,
    "claim_type": Code.CLAIM,
    "seed": Code.SEED,
    "opening_salt": Code.OPENING,
}


def compare(due: Record, found: Record, line: int, rest: Code, findings: Findings) -> None:
    """Note every field in which `found` differs from `due`.

    Args:
        rest: the code of fields that have none of their own.
    """
    if found == due:
        return
    for name, value in due.items():
        if name not in found:
            findings.add(Code.LEDGER_SCHEMA, line, name, value, "no field")
        elif found[name] != value:
            findings.add(_CODES.get(name, rest), line, name, value, found[name])
    for name in found:
        if name not in due:
            findings.add(Code.LEDGER_SCHEMA, line, name, "no field", found[name])


def context_text(node: Node) -> str:
    """``ctx_repr``: the last three calls or fewer, cut from the left to 48 bytes."""
    raw = " ".join(node.calls(_REPR_CALLS)).encode()[-_REPR_BYTES:]
    start = 0
    while start < len(raw) and raw[start] & 0xC0 == 0x80:  # inside a character
        start += 1
    return raw[start:].decode()


def node_record(language: Language, header: Header, node: Node, lowers: bool) -> dict[str, Json]:
    """The ``node`` record of `node`; `lowers` where it takes the claim down."""
    parent = node.parent
    record: dict[str, Json] = {
        "kind": "node",
        "node_id": uuid7(header.started_ms, node.digest),
        "ctx_digest": node.digest.hex(),
        "ctx_repr": context_text(node),
    }
    if parent is not None:
        record["parent_id"] = uuid7(header.started_ms, parent.digest)
        record["call"] = node.call
        record["tie_token"] = node.position
    if node.state is not None:
        record["state"] = node.state
    plans = 1 if node.state is None else language.plans[node.state]
    if plans < 1 << 64:
        record["N"] = str(plans)
    if node.x is not None:
        record["U"] = str(node.x)
    record["neg_log_t"] = format_q64(node.published.neg_log_t)
    record["key_raw"] = format_q64(node.published.key)
    if node.published.clamped:
        record["guards"] = ["NumClamp"]
    if lowers:
        record["claim_type"] = NO_CERT
    return record


def expand_record(
    header: Header,
    node: Node,
    *,
    x: int,
    winner: int | None,
    potential: Mapping[str, Json],
    lowers: bool,
) -> dict[str, Json]:
    """The ``expand`` record of `node`: the uniform `x`, the winner (None: a phantom), Phi."""
    record: dict[str, Json] = {
        "kind": "expand",
        "node_id": uuid7(header.started_ms, node.digest),
        "W": str(x),
        "winner": _PHANTOM if winner is None else str(winner),
        **potential,
    }
    if lowers:
        record["claim_type"] = NO_CERT
    return record


def potential_fields(header: Header, root_rank: int, node: Node) -> tuple[dict[str, Json], bool]:
    """Phi of a node and of its parent, where due, and whether `AcyclicityFail` fires.

    Phi = (L - depth) + alpha * cost_high, here over the common denominator 10^places * 10^9.
    """
    numerator, places = header.alpha
    parent = node.parent
    if numerator <= 0 or parent is None:
        return {}, False  # Phi falls by 1 at each step, and eta is at most 1
    unit = NANO * 10**places
    before = (root_rank - parent.depth) * unit + numerator * parent.cost_high
    after = (root_rank - node.depth) * unit + numerator * node.cost_high
    eta, eta_places = header.eta
    fires = (after - before) * 10**eta_places > -eta * unit
    exact = {"phi_before": before, "phi_after": after, "delta_phi": after - before}
    rounded = {name: divide_nearest(value << 32, unit) for name, value in exact.items()}
    held = {name: min(max(value, Q32_MIN), Q32_MAX) for name, value in rounded.items()}
    fields: dict[str, Json] = {name: format_q32(value) for name, value in held.items()}
    guards = ["AcyclicityFail"] * fires + ["NumClamp"] * (held != rounded)
    if guards:
        fields["guards"] = guards
    return fields, fires


def leaf_record(header: Header, node: Node, uniform: int, incumbent: int | None) -> dict[str, Json]:
    """The ``leaf`` record of a leaf; its value is its key."""
    record: dict[str, Json] = {
        "kind": "leaf",
        "node_id": uuid7(header.started_ms, node.digest),
        "V": format_q64(node.published.key),
        "U_P": str(uniform),
    }
    if incumbent is not None:
        record["incumbent"] = format_q64(incumbent)
    return record


def plan_record(node: Node) -> dict[str, Json]:
    """A plan of ``close``."""
    return {
        "calls": node.calls(),
        "cost": format_decimal(node.cost_low, 9),
        "leaf_id": node.digest.hex(),
        "value": format_q64(node.published.key),
    }
