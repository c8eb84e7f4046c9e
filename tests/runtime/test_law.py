"""The law of many runs: the winner is a softmax draw, the first two are draws without replacement.

Seeds are fixed, so each statistic is one number; it is held against the 0.999 quantile.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import exp

import pytest

from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import enumerate_plans
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, free_core, opened, vec_core, vec_rows

RUNS = 2500


def quantile(freedom: int) -> float:
    """The chi-square quantile at 0.999, by Wilson and Hilferty."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + 3.0902 * spread**0.5) ** 3


def statistic(found: Counter, law: dict) -> float:
    total = sum(found.values())
    assert set(found) <= set(law)
    return sum((found[key] - total * p) ** 2 / (total * p) for key, p in law.items())


def softmax(cost: dict, beta: float) -> dict:
    mass = {plan: exp(-beta * c) for plan, c in cost.items()}
    return {plan: m / sum(mass.values()) for plan, m in mass.items()}


def seeds(runs: int = RUNS):
    return (n.to_bytes(32, "little") for n in range(runs))


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize(("tilt", "beta"), [(0, "1"), (8, "1"), (4, "2.5")])
@pytest.mark.sampled(3)
def test_the_winner_is_a_softmax_draw(tilt, beta, race):
    artifact = load(build(vec_core(), vec_rows(), beta, tilt))
    price = {"a": 0.3, "b(k=1)": 0.1, "b(k=2)": 0.2, "c": 1.25}
    cost = {plan: sum(price[call] for call in plan) for plan in enumerate_plans(artifact)}
    law = softmax(cost, float(beta))
    found = Counter(
        search(artifact, Settings(seed=seed, race=race)).plans[0].calls for seed in seeds()
    )
    assert statistic(found, law) < quantile(len(law) - 1)


@pytest.mark.parametrize(
    "told", [{}, {"race": "rest"}, {"race": "rest", "inflate": "1.7"}], ids=str
)
@pytest.mark.parametrize("tilt", [0, 8])
@pytest.mark.sampled(3)
def test_the_first_two_are_draws_without_replacement(tilt, told):
    # Plans a, b, ab, b b, of costs 0.4, 1, 1.4, 2.
    rows = [(True, []), (True, [(1, 0)]), (False, [(0, 1), (1, 1)])]
    artifact = load(build(free_core([4 * 10**8, 10**9], 2), rows, tilt=tilt))
    price = {"a": 0.4, "b": 1.0}
    cost = {plan: sum(price[call] for call in plan) for plan in enumerate_plans(artifact)}
    one = softmax(cost, 1.0)
    law = {(x, y): one[x] * one[y] / (1 - one[x]) for x, y in permutations(one, 2)}
    runs = (
        search(artifact, Settings(**{"seed": seed, "top": 2, "race": "coupled", **told})).plans
        for seed in seeds()
    )
    found = Counter((first.calls, second.calls) for first, second in runs)
    assert statistic(found, law) < quantile(len(law) - 1)


PRICE = {"a": 0.3, "b(k=1)": 0.1, "b(k=2)": 0.2, "c": 1.25}


@pytest.mark.parametrize(
    ("tilt", "told"),
    [
        (8, {"inflate": "1.7"}),
        (8, {"inflate": "1.7", "keys": "anchored"}),
        (0, {"inflate": "3", "keys": "anchored"}),
        (0, {"mode": "surrogate"}),
        (4, {"inflate": "1.7", "truncate": 2}),
        (8, {"inflate": "1.7", "beacon": b"b"}),
        (8, {"inflate": "1.7", "race": "rest"}),
        (0, {"inflate": "3", "race": "rest"}),
        (4, {"inflate": "1.7", "truncate": 2, "race": "rest"}),
    ],
)
@pytest.mark.sampled(4)
def test_the_winner_of_a_surrogate_run_is_a_softmax_draw(tilt, told):
    artifact = load(build(vec_core(), vec_rows(), tilt=tilt))
    most = told.get("truncate", 9)
    plans = [plan for plan in enumerate_plans(artifact) if len(plan) <= most]
    law = softmax({plan: sum(PRICE[call] for call in plan) for plan in plans}, 1.0)
    runs = (
        search(artifact, Settings(**{"seed": seed, "race": "coupled", **told}))
        for seed in seeds(RUNS // 3)
    )
    found = Counter(run.plans[0].calls for run in runs)
    assert statistic(found, law) < quantile(len(law) - 1)


@pytest.mark.parametrize("told", [{}, {"keys": "anchored"}, {"race": "rest"}], ids=str)
@pytest.mark.parametrize("kind", ["relaxed", "network", "rounded"])
@pytest.mark.sampled(4)
def test_the_winner_over_bounds_is_a_softmax_draw(kind, told):
    names = "abc"
    costs = {"a": 0.4, "b": 1.0, "c": 0.1}
    core = free_core([4 * 10**8, 10**9, 10**8], 2)
    if kind == "relaxed":
        # any{0,3} with depth <= 2 left to the run.
        rows = [(True, [])]
        for _ in range(3):
            rows.append((True, [(a, len(rows) - 1) for a in range(3)]))
        artifact = opened(core, rows, relaxed=[0])
    elif kind == "network":
        # Every plan but those of one call has several derivations.
        rows = [(True, []), (True, [(0, 0)]), (True, [(a, 0) for a in range(3)])]
        rows.append((True, [(a, q) for a in range(3) for q in range(3)]))
        artifact = opened(core, rows, nondeterministic=True)
    else:
        rows = [(True, []), (True, [(a, 0) for a in range(3)])]
        rows.append((True, [(a, 1) for a in range(3)]))
        artifact = opened(core, rows, round_counts=2)
    plans = [(), *((x,) for x in names), *((x, y) for x in names for y in names)]
    law = softmax({plan: sum(costs[call] for call in plan) for plan in plans}, 1.0)
    runs = (
        search(artifact, Settings(**{"seed": seed, "race": "coupled", **told}))
        for seed in seeds(RUNS // 3)
    )
    found = Counter(run.plans[0].calls for run in runs)
    assert statistic(found, law) < quantile(len(law) - 1)
