"""The fields of every record kind: which may stand there, which must, and in what form.

Normative text: docs/spec/ledger.md, sections 2 and 3.  Whether an optional field has to be
there in a certain record, and with what value, is for :mod:`tcc_certs.replay`.
Cost: one pattern match a field.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_forms import (
    ACCOUNT,
    ADAPTERS,
    AMOUNT,
    ATOM,
    ATOMS,
    CALLS,
    CONTROLLER,
    DECIMAL,
    EPS_DELTA,
    EPSILON,
    GUARD_LIST,
    HEX,
    LEFT,
    LIMITS,
    ORDER,
    PLANS,
    POSITIVE,
    PROBABILITY,
    PUBLIC,
    Q32,
    Q64,
    SIZE,
    STATES,
    TEXT,
    TIME,
    TRUE,
    UUID,
    WHOLE,
    WORD,
    Format,
)

SCHEMA = "tcc.ledger/1.0"
PRF_DOMAIN = "tcc.race.v1"
LATER_KINDS = frozenset({"call", "guard"})

_SPENT: Mapping[str, Format] = {
    "price_spent": WHOLE, "latency_ms": WHOLE, "epsilon_used": AMOUNT,
}  # fmt: skip
_PRIVATE: Mapping[str, Format] = {
    "router_rdp_eps": EPSILON, "alpha_selected": ORDER, "eps_delta": EPS_DELTA,
}  # fmt: skip
_CAPS: Mapping[str, Format] = {"price_cap": SIZE, "sla_ms": SIZE, "epsilon_cap": AMOUNT}
_ADAPTED: Mapping[str, Format] = {
    "adapter_id": HEX, "dp_cert_id": TEXT, "eps_train": AMOUNT, "delta_train": PROBABILITY,
}  # fmt: skip
_REQUIRED: Mapping[str, Mapping[str, Format]] = {
    "open": {
        "kind": TEXT, "schema": TEXT, "run_id": UUID, "started_ms": TIME, "artifact": HEX,
        "grammar": TEXT, "grammar_version": TEXT, "root_state": HEX, "seed_commitment": HEX,
        "prf_domain": TEXT, "mode": TEXT, "claim_type": TEXT, "race": TEXT, "keys": TEXT,
        "recipe": TEXT, "tilt": SIZE, "beta": DECIMAL, "inflate": DECIMAL, "tau": DECIMAL,
        "alpha": DECIMAL, "eta": DECIMAL, "top": POSITIVE, "truncate": SIZE, "count_bits": SIZE,
        "run_limits": LIMITS, "privacy_scope": TEXT,
    },
    "node": {
        "kind": TEXT, "node_id": UUID, "ctx_digest": HEX, "ctx_repr": TEXT, "key_raw": Q64,
    },
    "expand": {"kind": TEXT, "node_id": UUID},
    "leaf": {"kind": TEXT, "node_id": UUID, "V": Q64, "U_P": WORD},
    "rest": {
        "kind": TEXT, "node_id": UUID, "step": POSITIVE, "U": WORD, "key_raw": Q64,
        "neg_log_t": Q64,
    },
    "draw": {"kind": TEXT, "node_id": UUID, "step": POSITIVE},
    "requeue": {"kind": TEXT, "node_id": UUID, "key_raw": Q64},
    "budget": {"kind": TEXT, "budget_event": TEXT, **_SPENT},
    "refine": {
        "kind": TEXT, "node_id": UUID, "ctx_digest": HEX, "call": TEXT, "model_id": TEXT,
        "dkey_pred": Q32, "dkey_real": Q32, "price": WHOLE, "latency": WHOLE, "epsilon": AMOUNT,
        **_SPENT,
    },
    "downgrade": {"kind": TEXT, "mode": TEXT, "claim_type": TEXT, "guards": GUARD_LIST},
    "recovered": {"kind": TEXT, "dropped_bytes": SIZE, "records": SIZE},
    "close": {
        "kind": TEXT, "stop": TEXT, "claim_type": TEXT, "plans": PLANS, "expansions": SIZE,
        "leaves": SIZE, "law": TEXT,
    },
}  # fmt: skip
_OPTIONAL: Mapping[str, Mapping[str, Format]] = {
    "open": {
        "account": ACCOUNT, "accounting": TEXT, "adapters": ADAPTERS, "after": CALLS,
        "atoms": ATOMS, "beacon": PUBLIC, "client_nonce": PUBLIC, "controller": CONTROLLER,
        "delta": AMOUNT, "guards": GUARD_LIST,
    },
    "node": {
        "parent_id": UUID, "call": TEXT, "state": STATES, "N": WORD, "Nub": WORD, "U": WORD,
        "neg_log_t": Q64, "tie_token": SIZE, "claim_type": TEXT, "guards": GUARD_LIST,
    },
    "expand": {
        "W": WORD, "winner": TEXT, "U": WORD, "neg_log_t": Q64, "dead_end": TRUE,
        "phi_before": Q32, "phi_after": Q32, "delta_phi": Q32, "claim_type": TEXT,
        "guards": GUARD_LIST,
    },
    "leaf": {
        "U": WORD, "neg_log_t": Q64, "incumbent": Q64, "claim_type": TEXT, "guards": GUARD_LIST,
    },
    "rest": {"claim_type": TEXT, "guards": GUARD_LIST},
    "draw": {"W": WORD, "winner": TEXT, "dead_end": TRUE},
    "requeue": {"step": POSITIVE, "claim_type": TEXT, "guards": GUARD_LIST},
    "budget": {
        "node_id": UUID, "ctx_digest": HEX, "call": TEXT, "model_id": TEXT, "dkey_pred": Q32,
        "dkey_margin": Q32, "slack": Q64, "reservation": HEX, "account_left": LEFT,
        "guards": GUARD_LIST, **_CAPS, **_ADAPTED, **_PRIVATE,
    },
    "refine": {
        "cost_low": DECIMAL, "cost_high": DECIMAL, "atom": ATOM, "claim_type": TEXT,
        "dkey_margin": Q32, "account_left": LEFT, "guards": GUARD_LIST, **_ADAPTED, **_PRIVATE,
    },
    "downgrade": {},
    "recovered": {},
    "close": {
        "frontier_key": Q64, "gap": Q64, "materialised": SIZE, "tail_lse": Q64, "seed": HEX,
        "opening_salt": HEX, "guards": GUARD_LIST, **_SPENT, **_CAPS, **_PRIVATE,
    },
}  # fmt: skip
_FIELDS: Mapping[str, Mapping[str, Format]] = {
    kind: {**_REQUIRED[kind], **_OPTIONAL[kind]} for kind in _REQUIRED
}


def check_record(record: Record, line: int) -> str:
    """The kind of `record`, all of whose fields have their form.

    Raises:
        Rejected: D101 a kind that this version has no rules for; L103 an unknown kind, a field that
            is missing, unknown or malformed.
    """
    kind = record.get("kind")
    if isinstance(kind, str) and kind in LATER_KINDS:
        raise Rejected(Code.UNKNOWN_FEATURE, f"line {line}: kind", sorted(_FIELDS), kind)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: kind", sorted(_FIELDS), kind)
    fields = _FIELDS[kind]
    for name, value in record.items():
        if name not in fields:
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", "no such field", value)
        form, holds = fields[name]
        if not holds(value):
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", form, value)
    for name in _REQUIRED[kind]:
        if name not in record:
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", "the field", "none")
    return kind


def text(record: Record, name: str) -> str:
    """A field whose format is a text.

    Raises:
        Rejected: L103 it is absent or not a text.
    """
    value = record.get(name)
    if not isinstance(value, str):
        raise Rejected(Code.LEDGER_SCHEMA, name, "a text", value)
    return value


def size(record: Record, name: str) -> int:
    """A field whose format is an integer.

    Raises:
        Rejected: L103 it is absent or not an integer.
    """
    value = record.get(name)
    if type(value) is not int:
        raise Rejected(Code.LEDGER_SCHEMA, name, "an integer", value)
    return value
