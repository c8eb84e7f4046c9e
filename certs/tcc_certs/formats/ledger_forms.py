"""The forms of a ledger's fields: what a value of each has to look like, one predicate a form.

Normative text: docs/spec/ledger.md, section 2.  Cost: one pattern match a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from tcc_certs.formats.codec import Json

Format: TypeAlias = "tuple[str, Callable[[Json], bool]]"

GUARDS = frozenset(
    {
        "AcyclicityFail", "BudgetFail", "CapExceeded", "CountFail", "NumClamp", "RangeFail",
        "Timeout",
    }
)  # fmt: skip
MAX_TIME = (1 << 48) - 1  # what a UUIDv7 holds


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
