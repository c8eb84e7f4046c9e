"""The required and optional fields of each kind of record, and their formats.

Normative text: docs/spec/ledger.md, sections 2 and 3.  A format is a predicate.
:mod:`tcc_certs.replay` decides whether a record must have an optional field, and with which value.
Cost: one pattern match for each field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record

# Formats of values.

Format: TypeAlias = "tuple[str, Callable[[Json], bool]]"

GUARDS = frozenset(
    {
        "AcyclicityFail", "BudgetFail", "CapExceeded", "CountFail", "NumClamp", "RangeFail",
        "Timeout",
    }
)  # fmt: skip
MAX_TIME = (1 << 48) - 1  # the greatest time of a UUIDv7


def _matching(name: str, pattern: str) -> Format:
    matches = re.compile(pattern).fullmatch
    return name, lambda value: isinstance(value, str) and matches(value) is not None


_digits = re.compile(r"0|[1-9][0-9]{0,19}").fullmatch


def _is_word(value: Json) -> bool:
    if not isinstance(value, str) or _digits(value) is None:
        return False
    return len(value) < 20 or int(value) < 1 << 64


def _is_size(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_states(value: Json) -> bool:
    if not isinstance(value, list):
        return _is_size(value)
    states = [state for state in value if type(state) is int and state >= 0]
    return 0 < len(states) == len(value) and states == sorted(set(states))


def _is_limits(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"epsilon_cap", "max_expansions", "max_ms", "price_cap", "sla_ms"}
        and all(
            AMOUNT[1](limit) if name == "epsilon_cap" else _is_size(limit)
            for name, limit in value.items()
        )
    )


def _is_controller(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and sorted(set(value) - {"margin"})
        == ["ask", "epsilon_weight", "latency_weight", "price_weight"]
        and isinstance(value["ask"], str)
        and all(DECIMAL[1](value[name]) for name in value if name != "ask")
    )


_WHOLES = ("latency_ms", "price")


def _is_account(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"id", "epsilon", *_WHOLES}
        and "id" in value
        and HEX[1](value["id"])
        and AMOUNT[1](value.get("epsilon", "0"))
        and all(_is_size(value.get(name, 0)) for name in _WHOLES)
    )


def _is_left(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"epsilon", *_WHOLES}
        and all(DECIMAL[1](left) for left in value.values())
    )


_ADAPTER = ["adapter_id", "delta_train", "dp_cert_id", "eps_train", "name", "tier"]


def _is_adapter(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and sorted(value) == _ADAPTER
        and all(isinstance(value[name], str) for name in _ADAPTER)
        and HEX[1](value["adapter_id"])
        and AMOUNT[1](value["eps_train"])
        and PROBABILITY[1](value["delta_train"])
    )


def _is_guards(value: Json) -> bool:
    if not isinstance(value, list) or not value:
        return False
    names = [name for name in value if isinstance(name, str) and name in GUARDS]
    return len(names) == len(value) and names == sorted(set(names))


def _is_calls(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(c, str) for c in value)


def _is_plan(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and sorted(set(value) - {"cost_high"}) == ["calls", "cost", "leaf_id", "value"]
        and isinstance(value["calls"], list)
        and all(isinstance(call, str) for call in value["calls"])
        and DECIMAL[1](value["cost"])
        and DECIMAL[1](value.get("cost_high", "0"))
        and HEX[1](value["leaf_id"])
        and Q64[1](value["value"])
    )


TEXT: Format = ("a text", lambda value: isinstance(value, str))
HEX = _matching("64 lower-case hex digits", "[0-9a-f]{64}")
UUID = _matching("a UUIDv7", "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
DECIMAL = _matching("an exact decimal", r"(?!-0$)-?(0|[1-9][0-9]{0,39})(\.[0-9]{0,39}[1-9])?")
AMOUNT = _matching("an exact decimal of at least 0", r"(0|[1-9][0-9]{0,39})(\.[0-9]{0,39}[1-9])?")
PROBABILITY = _matching("an exact decimal from 0 to 1", r"0|1|0\.[0-9]{0,39}[1-9]")
WHOLE = _matching("an integer of at least 0, as text", r"0|[1-9][0-9]{0,39}")
Q64 = _matching("a Q64.64 number", r"-?(0|[1-9][0-9]{0,18})\.[0-9]{20}")
Q32 = _matching("a Q32.32 number", r"-?(0|[1-9][0-9]{0,9})\.[0-9]{10}")
WORD: Format = ("an integer below 2^64, as text", _is_word)
SIZE: Format = ("an integer of at least 0", _is_size)
POSITIVE: Format = ("an integer of at least 1", lambda value: _is_size(value) and value != 0)
PUBLIC = _matching("1 to 65536 bytes in lower-case hex", "([0-9a-f]{2}){1,65536}")
STATES: Format = ("a state, or a list of states, strictly increasing, not empty", _is_states)
CALLS: Format = ("a list of calls, not empty", _is_calls)
TRUE: Format = ("true", lambda value: value is True)
TIME: Format = (
    "milliseconds below 2^48",
    lambda value: type(value) is int and 0 <= value <= MAX_TIME,
)
LIMITS: Format = ("an object of max_expansions, max_ms, price_cap, sla_ms, epsilon_cap", _is_limits)
CONTROLLER: Format = ("an object of ask, and the weights of three amounts", _is_controller)
ACCOUNT: Format = ("an object of id, and caps: epsilon, latency_ms, price", _is_account)
LEFT: Format = ("an object of epsilon, latency_ms, price, as decimals", _is_left)
ADAPTERS: Format = (
    "a list of adapters, not empty",
    lambda value: isinstance(value, list) and bool(value) and all(map(_is_adapter, value)),
)
GUARD_LIST: Format = ("a list of guard names, strictly increasing, not empty", _is_guards)
PLANS: Format = (
    "a list of plans: calls, cost, leaf_id, value",
    lambda value: isinstance(value, list) and all(_is_plan(plan) for plan in value),
)
EPSILON = _matching("a decimal of ten places", r"(0|[1-9][0-9]{0,119})\.[0-9]{10}")
ORDER = _matching(
    "an order above 1, pure, gdp or pld", r"pure|gdp|pld|[1-9][0-9]{0,9}(\.[0-9]{0,9}[1-9])?"
)
ATOM: Format = ("an atom", lambda value: isinstance(value, dict))
ATOMS: Format = (
    "a list of atoms, not empty",
    lambda value: isinstance(value, list) and bool(value),
)
EPS_DELTA: Format = (
    "an object of delta and eps",
    lambda value: (
        isinstance(value, dict)
        and sorted(value) == ["delta", "eps"]
        and AMOUNT[1](value["delta"])
        and EPSILON[1](value["eps"])
    ),
)


# Records.

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
    """Return the kind of `record`, after checking the format of all its fields.

    Raises:
        Rejected: D101 this version has no rules for the kind; L103 the kind is unknown, or a field
            is missing, unknown or malformed.
    """
    kind = record.get("kind")
    if isinstance(kind, str) and kind in LATER_KINDS:
        raise Rejected(Code.UNKNOWN_FEATURE, f"line {line}: kind", sorted(_FIELDS), kind)
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: kind", sorted(_FIELDS), kind)
    check_fields(record, line, _REQUIRED[kind], _FIELDS[kind])
    return kind


def check_fields(
    record: Record, line: int, required: Mapping[str, Format], fields: Mapping[str, Format]
) -> None:
    """Check that `record` has all required fields, and that each field is known and well formed.

    Raises:
        Rejected: L103: the record fails a check.
    """
    for name, value in record.items():
        form = fields.get(name)
        if form is None:
            place = f"line {line}: {clip(name, 80)}"
            raise Rejected(Code.LEDGER_SCHEMA, place, "no such field", value)
        if not form[1](value):
            raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", form[0], value)
    if not required.keys() <= record.keys():
        name = next(name for name in required if name not in record)
        raise Rejected(Code.LEDGER_SCHEMA, f"line {line}: {name}", "the field", "none")


def text(record: Record, name: str) -> str:
    """Return a text field.

    Raises:
        Rejected: L103: it is absent or not a text.
    """
    value = record.get(name)
    if not isinstance(value, str):
        raise Rejected(Code.LEDGER_SCHEMA, name, "a text", value)
    return value


def size(record: Record, name: str) -> int:
    """Return an integer field.

    Raises:
        Rejected: L103: it is absent or not an integer.
    """
    value = record.get(name)
    if type(value) is not int:
        raise Rejected(Code.LEDGER_SCHEMA, name, "an integer", value)
    return value
