"""The cheapest plans, and draws, against the list of plans."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import islice

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis import draws as drawing
from tcc_runtime.analysis.draws import UNIFORM, draws
from tcc_runtime.analysis.graph import graph_of
from tests.analysis.drawn import artifacts, cost_of, exact, nondeterministic, relaxed

HEAD = 'grammar g version "1"\n'
DRAWS = 4000


def test_the_cheapest_are_first_then_the_shortest_then_in_call_order() -> None:
    for artifact, plans in islice(artifacts(4), 60):
        due = sorted((cost_of(artifact, plan), len(plan), plan) for plan in plans)
        assert [p.calls for p in tcc.cheapest(artifact, len(due) + 1)] == [p for _, _, p in due]
        assert [p.calls for p in tcc.cheapest(artifact, 3)] == [p for _, _, p in due[:3]]
        assert tcc.cheapest(artifact, 0) == []
        for found, (cost, _, _) in zip(tcc.cheapest(artifact, 5), due, strict=False):
            assert round(float(found.cost) * 10**9) == cost


def chi_square(seen: Counter, law: dict) -> float:
    """The deviation in standard deviations of its own law, plans with little mass in one class."""
    rare = [plan for plan, mass in law.items() if mass * DRAWS < 8]
    classes = [[plan] for plan in law if plan not in set(rare)] + ([rare] if rare else [])
    classes = [c for c in classes if sum(law[p] for p in c) * DRAWS >= 1]
    if len(classes) < 2:
        return 0.0
    total = 0.0
    for members in classes:
        due = sum(law[plan] for plan in members) * DRAWS
        total += (sum(seen[plan] for plan in members) - due) ** 2 / due
    freedom = len(classes) - 1
    return (total - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("kind", [exact, relaxed, nondeterministic])
@pytest.mark.parametrize("beta", [UNIFORM, (1, 0), (35, 1), (2, 9)])
def test_the_law_of_draws(kind, beta) -> None:
    rng = random.Random(str(beta))
    while True:
        artifact, plans = kind(rng)
        if 4 <= len(plans) <= 60:
            break
    scale = beta[0] / 10 ** beta[1] / 10**9
    least = min(cost_of(artifact, plan) for plan in plans)
    weight = {plan: math.exp(-scale * (cost_of(artifact, plan) - least)) for plan in sorted(plans)}
    whole = sum(weight.values())
    found = draws(graph_of(artifact), beta, b"fixed")
    seen = Counter(islice(found, DRAWS))
    assert set(seen) <= plans
    assert abs(chi_square(seen, {plan: w / whole for plan, w in weight.items()})) < 4.5


def test_the_softmax_is_that_of_beta_whatever_the_tilt() -> None:
    text = (
        HEAD + "tool a { cost 0 }\ntool b { cost 1 }\ntool c { cost -0.5 }\nplan = (a | b | c){1,2}"
    )
    for tilt in (0, 8):
        artifact = tcc.compile_text(text, beta="1.5", tilt=tilt)
        found = Counter(p.calls for p in tcc.sample(artifact, DRAWS, law="softmax", seed=b"s"))
        price = {"a": 0.0, "b": 1.0, "c": -0.5}
        plans = [(x,) for x in "abc"] + [(x, y) for x in "abc" for y in "abc"]
        weight = {plan: math.exp(-1.5 * sum(map(price.get, plan))) for plan in plans}
        whole = sum(weight.values())
        assert abs(chi_square(found, {p: w / whole for p, w in weight.items()})) < 4.5


def test_what_stays_open_is_decided_with_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = tcc.compile_text(
        HEAD + "tool a { cost 0.3 }\ntool b { cost 1 }\nplan = (a | b){0,3}", beta="2"
    )
    due = tcc.sample(artifact, 300, law="softmax", seed=b"x")
    monkeypatch.setattr(drawing, "_FIRST_BITS", 8)
    assert tcc.sample(artifact, 300, law="softmax", seed=b"x") == due
    monkeypatch.setattr(drawing, "_MOST_BITS", 8)
    with pytest.raises(Rejected) as refused:
        tcc.sample(artifact, 300, law="softmax", seed=b"x")
    assert refused.value.code is Code.PRECISION


def test_seeds_and_counts() -> None:
    artifact = tcc.compile_text(HEAD + "tool a\ntool b\nplan = (a | b){40}")
    assert tcc.sample(artifact, 3, seed=b"1") == tcc.sample(artifact, 5, seed=b"1")[:3]
    assert tcc.sample(artifact, 3, seed=b"1") != tcc.sample(artifact, 3, seed=b"2")
    assert tcc.sample(artifact, 3) != tcc.sample(artifact, 3)
    assert tcc.sample(artifact, 0) == []
    for wrong in (lambda: tcc.sample(artifact, -1), lambda: tcc.cheapest(artifact, -1)):
        with pytest.raises(ValueError, match="a number of plans"):
            wrong()
    with pytest.raises(ValueError, match="uniform or softmax"):
        tcc.sample(artifact, 1, law="other")  # type: ignore[arg-type]


def test_no_plan_no_draw() -> None:
    rng = random.Random(1)
    artifact, _ = next(found for found in iter(lambda: relaxed(rng), None) if not found[1])
    assert tcc.sample(artifact, 5) == tcc.cheapest(artifact, 5) == []


def test_numbers_beyond_all_floats() -> None:
    text = HEAD + "tool a(k: 1..9) { cost 40 }\ntool b { cost -30 }\nplan = (a | b){400}"
    artifact = tcc.compile_text(text, beta="3")
    for law in ("uniform", "softmax"):
        (found,) = tcc.sample(artifact, law=law, seed=b"1")  # type: ignore[arg-type]
        assert len(found.calls) == 400
    assert set(found.calls) == {"b"} and found.cost == "-12000"
