"""The forms of a ledger's fields at their edges: what just has one, and what just has it not."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats import ledger_schema as forms
from tcc_certs.formats.ledger_schema import check_record
from tests.forgery import test_range_forgeries as ranges

HEX = "0" * 64
ASKING = {"ask": "node", "epsilon_weight": "0", "latency_weight": "1", "price_weight": "0.5"}
PLAN = {"calls": ["a"], "cost": "1.5", "leaf_id": HEX, "value": "0." + "0" * 20}


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != name}


HOLDS = [
    ("WORD", "0"), ("WORD", "9" * 19), ("WORD", str(2**64 - 1)),
    ("HEX", HEX), ("AMOUNT", "0.5"), ("DECIMAL", "-0.5"), ("WHOLE", "0"),
    ("SIZE", 0), ("POSITIVE", 1), ("TIME", 0), ("TIME", 2**48 - 1), ("TRUE", True),
    ("STATES", 0), ("STATES", [0]), ("STATES", [0, 3]),
    ("GUARD_LIST", ["NumClamp"]), ("GUARD_LIST", ["CountFail", "NumClamp"]),
    ("LIMITS", {}), ("LIMITS", {"max_ms": 0, "epsilon_cap": "0.5"}),
    ("LIMITS", {"epsilon_cap": "1", "max_expansions": 1, "max_ms": 1, "price_cap": 1, "sla_ms": 1}),
    ("CONTROLLER", ASKING), ("PLANS", []), ("PLANS", [PLAN]), ("PLANS", [{**PLAN, "calls": []}]),
    ("PLANS", [{**PLAN, "cost_high": "2"}]),
]  # fmt: skip
FAILS = [
    ("WORD", 0), ("WORD", "00"), ("WORD", "-1"), ("WORD", str(2**64)), ("WORD", "9" * 20),
    ("WORD", "1" + "0" * 20),
    ("HEX", 0), ("HEX", HEX[1:]), ("HEX", "A" * 64), ("AMOUNT", "-1"), ("AMOUNT", 1),
    ("DECIMAL", "-0"), ("DECIMAL", "1.50"), ("DECIMAL", 1), ("WHOLE", "1.5"),
    ("SIZE", -1), ("SIZE", True), ("SIZE", "1"), ("POSITIVE", 0), ("POSITIVE", -1),
    ("TIME", -1), ("TIME", 2**48), ("TIME", True), ("TRUE", False), ("TRUE", 1), ("TEXT", 1),
    ("STATES", -1), ("STATES", True), ("STATES", []), ("STATES", [1, 0]), ("STATES", [1, 1]),
    ("STATES", [-1, 0]), ("STATES", [0, True]), ("STATES", [0, "1"]), ("STATES", "0"),
    ("GUARD_LIST", []), ("GUARD_LIST", "NumClamp"), ("GUARD_LIST", ["Zzz"]), ("GUARD_LIST", [1]),
    ("GUARD_LIST", {"NumClamp": 1}), ("GUARD_LIST", [["NumClamp"]]), ("GUARD_LIST", 7),
    ("GUARD_LIST", ["NumClamp", "NumClamp"]), ("GUARD_LIST", ["NumClamp", "CountFail"]),
    ("GUARD_LIST", ["NumClamp", 1]), ("GUARD_LIST", 0), ("GUARD_LIST", ""),
    ("LIMITS", []), ("LIMITS", {"zzz": 1}), ("LIMITS", {"max_ms": "1"}),
    ("LIMITS", {"epsilon_cap": 1}), ("LIMITS", {"epsilon_cap": "-1"}), ("LIMITS", 7),
    *[("CONTROLLER", without(ASKING, name)) for name in ASKING],
    ("CONTROLLER", {**ASKING, "zzz": "1"}), ("CONTROLLER", {**ASKING, "ask": 1}),
    ("CONTROLLER", {**ASKING, "price_weight": 1}), ("CONTROLLER", sorted(ASKING)),
    ("CONTROLLER", {**ASKING, "epsilon_weight": "x"}), ("CONTROLLER", 7),
    ("PLANS", {}), ("PLANS", 7), ("PLANS", [7]), ("PLANS", [sorted(PLAN)]),
    *[("PLANS", [without(PLAN, name)]) for name in PLAN],
    ("PLANS", [{**PLAN, "zzz": 1}]), ("PLANS", [{**PLAN, "calls": "a"}]),
    ("PLANS", [{**PLAN, "calls": [1]}]), ("PLANS", [{**PLAN, "calls": {"a": 1}}]),
    ("PLANS", [{**PLAN, "cost": "1.50"}]), ("PLANS", [{**PLAN, "cost_high": "x"}]),
    ("PLANS", [{**PLAN, "leaf_id": "0"}]), ("PLANS", [{**PLAN, "value": "0"}]),
    ("PLANS", [PLAN, 7]),
]  # fmt: skip


@pytest.mark.parametrize(("form", "value"), HOLDS, ids=str)
def test_the_form_holds(form, value):
    assert getattr(forms, form)[1](value) is True


@pytest.mark.parametrize(("form", "value"), FAILS, ids=str)
def test_the_form_does_not_hold(form, value):
    assert getattr(forms, form)[1](value) is False


@pytest.mark.parametrize("kind", ["node", "expand", "leaf", "rest", "requeue", "refine"])
def test_a_record_that_may_lower_the_claim_says_so_in_two_fields(kind):
    _, _, records = ranges.forged_run("rest")
    record = next(record for record in records if record["kind"] == kind)
    lowered = {**record, "guards": ["NumClamp"], "claim_type": "NoCert"}
    assert check_record(lowered, 2) == kind
    for field, value in (("guards", []), ("claim_type", 1)):
        with pytest.raises(Rejected) as refusal:
            check_record({**lowered, field: value}, 2)
        assert (refusal.value.code, refusal.value.path) == ("L103", f"line 2: {field}")
