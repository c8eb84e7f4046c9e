"""The formats of record members about models: budgets, the model of a call, and its amounts.

Normative text: docs/spec/session.md, section 12.  Cost: one pattern match for each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tcc_certs.formats import ledger_schema as form
from tcc_certs.formats.codec import Json

Forms: TypeAlias = Mapping[str, form.Format]
Fields: TypeAlias = tuple[Forms, Forms]  # required and optional members


def _object(what: str, needed: Forms, more: Forms) -> form.Format:
    """Return the format of an object with all members `needed`, and any members of `more`."""
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


_SUMS: Forms = {
    "price_spent": form.WHOLE, "latency_ms": form.WHOLE, "epsilon_used": form.AMOUNT,
    "left": form.LEFT,
}  # fmt: skip
_STATED: Forms = {
    "router_rdp_eps": form.EPSILON, "alpha_selected": form.ORDER, "eps_delta": form.EPS_DELTA,
}  # fmt: skip
_TOOK: Forms = {
    "price": form.WORD, "latency": form.WORD, "epsilon": form.AMOUNT,
}  # fmt: skip
_WISHED = _object("model_id, account_left", {"model_id": form.TEXT, "account_left": form.LEFT}, {})
_MARGIN: Forms = {"margin": form.DECIMAL}
_WEIGHTS = _object(
    "the weights of three amounts",
    dict.fromkeys(("epsilon_weight", "latency_weight", "price_weight"), form.DECIMAL),
    _MARGIN,
)
_EXECUTE = _object(
    "model_id, amounts, sums and what is left",
    {
        "model_id": form.TEXT, "price": form.WHOLE, "latency": form.WHOLE,
        "epsilon": form.AMOUNT, **_SUMS,
    },
    {
        "adapter_id": form.HEX, "dp_cert_id": form.TEXT,
        "eps_train": form.AMOUNT, "delta_train": form.PROBABILITY,
        **_STATED, "reservation": form.HEX, "account_left": form.LEFT,
        "refused": ("a list of wishes, not empty", _is_refused),
    },
)  # fmt: skip
_TOOK_OBJECT = _object(
    "amounts, sums and what is left",
    {**_TOOK, **_SUMS},
    {**_STATED, "atom": form.ATOM, "account_left": form.LEFT},
)
# Additional members of the records of a kind, in sessions with a budget.
FIELDS: Mapping[str, Fields] = {
    "budget": (
        {"controller": _WEIGHTS},
        {
            "price_cap": form.SIZE, "sla_ms": form.SIZE, "epsilon_cap": form.AMOUNT,
            "delta": form.AMOUNT, "accounting": form.TEXT, "atoms": form.ATOMS,
            "adapters": form.ADAPTERS, "account": form.ACCOUNT,
        },
    ),
    "asked": ({**_TOOK, **_SUMS}, {"atoms": form.ATOMS, **_STATED}),
    "call": ({}, {"execute": _EXECUTE}),
    "outcome": ({}, {"took": _TOOK_OBJECT}),
}  # fmt: skip
