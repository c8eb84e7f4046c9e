"""The predicted work: against the formula summed node by node, and against runs."""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, log
from statistics import mean, stdev

import pytest

from tcc_runtime.artifact.counts import race_counts, residual_bound
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.run import search
from tcc_runtime.settings.predict import is_short, merged, predict, why_not
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import (
    build,
    chain_rows,
    free_core,
    opened,
    random_rows,
    vec_core,
    vec_rows,
)

SEED = bytes(32)


def summed(artifact: Artifact, settings: Settings) -> float:
    """The sum over all nodes, one by one."""
    beta = float(Fraction(artifact.manifest.beta[0], 10 ** artifact.manifest.beta[1])) / 1e9
    count = race_counts(artifact, settings.inflate)
    residual = residual_bound(artifact, settings.recipe)
    below = []
    for q in range(artifact.manifest.states):
        below.append(float(artifact.accepts(q)))
        for call, target in artifact.edges(q):
            below[q] += exp(-beta * artifact.cost_low[call]) * below[target]
    total, todo = 0.0, [(artifact.root, 0)]
    while todo:
        q, cost = todo.pop()
        log_rate = log(count(q)) - log(2) * artifact.manifest.fraction_bits * artifact.rank(q)
        rate = exp(log_rate + residual(q) / 2**32 - beta * cost)
        total += rate / (rate + below[-1] - exp(-beta * cost) * below[q])
        todo += [(target, cost + artifact.cost_low[call]) for call, target in artifact.edges(q)]
    return total


@pytest.mark.parametrize("widths", [0, 10**9])
def test_a_run_that_arrays_show_to_be_short_is_not_predicted_to_be_long(monkeypatch, widths):
    monkeypatch.setattr("tcc_runtime.settings.predict._LEVEL", widths)
    shown = tight = 0
    for number in range(60):
        artifact, settings = drawn(number)
        found, least = predict(artifact, settings, effort=0), predict(artifact, settings)
        assert found is not None and least is not None
        for share in (0.3, 0.9, 0.999, 1.001, 1.5, 4.0):
            short = is_short(artifact, settings, share * least.lower)
            assert not short or share * least.lower >= least.lower * (1 - 1e-5)
            shown += short
        tight += is_short(artifact, settings, 1.001 * least.upper)
    assert (shown > 50 and tight > 5) if widths == 0 else shown == tight == 0


def drawn(number: int) -> tuple[Artifact, Settings]:
    rng = random.Random(number)
    calls = rng.randint(1, 4)
    costs = [rng.randrange(-(10**9), 3 * 10**9) for _ in range(calls)]
    rows = random_rows(rng, calls, rng.randint(1, 4), 2)
    artifact = opened(
        free_core(costs, 9),
        rows,
        rng.choice(("0", "0.5", "1", "6")),
        rng.choice((0, 0, 1, 4, 8)),
        round_counts=rng.choice((None, None, 3)),
    )
    told = {"inflate": rng.choice(("1", "1", "2.5")), "recipe": rng.choice(("r1", "r2"))}
    race = rng.choice(("coupled", "rest"))
    return artifact, Settings(seed=SEED, mode="surrogate", race=race, **told)


@pytest.mark.parametrize("effort", [0, 30, 10**6])
def test_the_enclosure_holds_the_sum_over_all_nodes(effort):
    wide = 0
    for number in range(60):
        artifact, settings = drawn(number)
        found, due = predict(artifact, settings, effort=effort), summed(artifact, settings)
        assert found is not None
        assert found.lower <= due * (1 + 1e-12) and due <= found.upper * (1 + 1e-12)
        wide += found.upper > 1.0001 * found.lower
        if effort == 10**6:
            assert found.upper < 1.01 * found.lower
    assert wide or effort == 10**6


def test_more_effort_gives_a_narrower_enclosure():
    rng = random.Random(5)
    costs = [rng.randrange(3 * 10**9) for _ in range(5)]
    artifact = load(build(free_core(costs, 9), chain_rows(rng, 5, 9, 3), tilt=0))
    found = [
        predict(artifact, Settings(seed=SEED, race="coupled"), effort=e) for e in (0, 1000, 10_000)
    ]
    ratios = [one.upper / one.lower for one in found]
    assert ratios[0] > 2 > ratios[1] > ratios[2] and ratios[2] < 1.1
    assert found[0].lower <= found[1].lower <= found[2].lower <= found[2].upper <= found[1].upper


@pytest.mark.parametrize(("tilt", "inflate"), [(0, "1"), (4, "1"), (8, "1"), (4, "3")])
@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_runs_take_as_many_expansions_as_predicted(race, tilt, inflate):
    rng = random.Random(tilt)
    costs = [rng.randrange(2 * 10**9) for _ in range(4)]
    artifact = load(build(free_core(costs, 6), chain_rows(rng, 4, 6, 2), tilt=tilt))
    found = predict(artifact, Settings(seed=SEED, race=race, inflate=inflate))
    seeds = (n.to_bytes(32, "big") for n in range(500))
    runs = [search(artifact, Settings(seed=s, race=race, inflate=inflate)) for s in seeds]
    counts = [run.expansions for run in runs]
    error = 4 * stdev(counts) / len(counts) ** 0.5 + 0.02  # a rare one may not be among them
    assert found.lower - error <= mean(counts) <= found.upper + error
    assert error < 0.25 * found.lower


def test_the_least_possible_work_is_predicted_where_nothing_is_open():
    # Three calls of one cost, one after the other: every run expands one node at each depth.
    rows = [(True, [])]
    for _ in range(3):
        rows.append((False, [(0, len(rows) - 1)]))
    found = predict(load(build(free_core([10**9], 3), rows)), Settings(seed=SEED, race="coupled"))
    assert (round(found.lower, 6), round(found.upper, 6)) == (4, 4)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"top": 2}, "one plan"),
        ({"keys": "anchored"}, "finalized"),
        ({"mode": "fallback"}, "no race"),
        ({"truncate": 1}, "weight"),
    ],
)
def test_what_is_not_known_is_not_predicted(told, why):
    artifact, settings = (
        load(build(vec_core(), vec_rows())),
        Settings(**{"seed": SEED, "race": "coupled", **told}),
    )
    assert predict(artifact, settings) is None
    assert why in why_not(artifact, settings)


def test_nothing_is_predicted_on_bounds_that_other_plans_count_in():
    settings = Settings(seed=SEED, race="coupled")
    relaxed = opened(vec_core(), vec_rows(), relaxed=[1])
    network = opened(free_core([1, 2], 9), random_rows(random.Random(1), 2, 2, 2),
                     nondeterministic=True)  # fmt: skip
    literal = opened(vec_core(), vec_rows(), tilt=0)
    for artifact in (relaxed, network):
        assert "weight" in why_not(artifact, settings)
    assert "race" in why_not(literal, Settings(seed=SEED, race="literal"))


def test_scores_beyond_floats_are_not_predicted():
    rows = [(True, []), (True, [(0, 0), (1, 0)])]
    steep = load(build(free_core([0, 10**9], 9), rows, beta="900"))
    assert why_not(steep, Settings(seed=SEED, race="coupled")) is None
    assert predict(steep, Settings(seed=SEED, race="coupled")) is None


def test_merged_buckets_keep_the_weight_and_hold_every_cost():
    rng = random.Random(3)
    some = [(rng.random(), c, c) for c in (rng.uniform(-5, 9) for _ in range(200))]
    for most in (1, 2, 7, 64):
        found = merged(some, most)
        assert len(found) <= most + 1
        assert abs(sum(b[0] for b in found) - sum(b[0] for b in some)) < 1e-9
        assert all(any(b[1] <= c <= b[2] for b in found) for _, c, _ in some)
    assert merged(some[:1], 5) == some[:1]
