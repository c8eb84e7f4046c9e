"""The forms of what a session's records say of models: budgets, who makes a call, what it took.

Normative text: docs/spec/session.md, section 8.  Cost: one pattern match a value.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger_schema import (
    ACCOUNT,
    ADAPTERS,
    AMOUNT,
    ATOM,
    ATOMS,
    DECIMAL,
    EPS_DELTA,
    EPSILON,
    HEX,
    LEFT,
    ORDER,
    PROBABILITY,
    SIZE,
    TEXT,
    WHOLE,
    WORD,
    Format,
)

Fields = tuple[
    Mapping[str, Format], Mapping[str, Format]
]  # those that are needed, and perhaps more


def _object(what: str, needed: Mapping[str, Format], more: Mapping[str, Format]) -> Format:
    """An object of the members `needed`, and perhaps some of `more`, each in its form."""
    known = {**needed, **more}

    def holds(value: Json) -> bool:
        return (
            isinstance(value, dict)
            and set(needed) <= set(value) <= set(known)
            and all(known[name][1](item) for name, item in value.items())
        )

    return f"an object of {what}", holds


def _is_refused(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_WISHED[1], value))


_SUMS: Mapping[str, Format] = {
    "price_spent": WHOLE, "latency_ms": WHOLE, "epsilon_used": AMOUNT, "left": LEFT,
}  # fmt: skip
_STATED: Mapping[str, Format] = {
    "router_rdp_eps": EPSILON, "alpha_selected": ORDER, "eps_delta": EPS_DELTA,
}  # fmt: skip
_TOOK: Mapping[str, Format] = {"price": WORD, "latency": WORD, "epsilon": AMOUNT}
_WISHED = _object("model_id, account_left", {"model_id": TEXT, "account_left": LEFT}, {})
_MARGIN: Mapping[str, Format] = {"margin": DECIMAL}
_WEIGHTS = _object(
    "the weights of three amounts",
    dict.fromkeys(("epsilon_weight", "latency_weight", "price_weight"), DECIMAL),
    _MARGIN,
)
_EXECUTE = _object(
    "model_id, amounts, sums and what is left",
    {"model_id": TEXT, "price": WHOLE, "latency": WHOLE, "epsilon": AMOUNT, **_SUMS},
    {
        "adapter_id": HEX, "dp_cert_id": TEXT, "eps_train": AMOUNT, "delta_train": PROBABILITY,
        **_STATED, "reservation": HEX, "account_left": LEFT,
        "refused": ("a list of wishes, not empty", _is_refused),
    },
)  # fmt: skip
_TOOK_OBJECT = _object(
    "amounts, sums and what is left",
    {**_TOOK, **_SUMS},
    {**_STATED, "atom": ATOM, "account_left": LEFT},
)
# What the records of a kind have beside what sessions without models have.
FIELDS: Mapping[str, Fields] = {
    "budget": (
        {"controller": _WEIGHTS},
        {
            "price_cap": SIZE, "sla_ms": SIZE, "epsilon_cap": AMOUNT, "delta": AMOUNT,
            "accounting": TEXT, "atoms": ATOMS, "adapters": ADAPTERS, "account": ACCOUNT,
        },
    ),
    "asked": ({**_TOOK, **_SUMS}, {"atoms": ATOMS, **_STATED}),
    "call": ({}, {"execute": _EXECUTE}),
    "outcome": ({}, {"took": _TOOK_OBJECT}),
}  # fmt: skip
