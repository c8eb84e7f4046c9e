"""Baselines on graphs that can be followed by hand, statistics against published values."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, isclose, log

import pytest

from tcc_experiments import baselines, soundness, stress
from tcc_experiments.evidence import Trace
from tcc_experiments.graphs import any_of, compiled, compiled_file, suite
from tcc_experiments.intervals import (
    chi_square,
    chi_square_tail,
    half_width,
    lower_limit,
    upper_limit,
)
from tcc_experiments.listing import Listing
from tcc_experiments.model import seed_of
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings


@pytest.fixture(scope="module")
def listing() -> Listing:
    """Two plans of one call: a0 costs 1, a1 costs 3."""
    return Listing(compiled(any_of(["1", "3"], 1, 1)))


def values(listing: Listing, first: float, second: float) -> list[float]:
    found = [-inf] * len(listing.places)
    for at, value in zip(listing.leaves(), (first, second), strict=True):
        found[at] = value
    return found


def test_greedy_search_stops_when_no_bound_exceeds_the_incumbent(listing: Listing) -> None:
    # After a0 the bound left is -3: prunes a1, though it holds 5.
    found = baselines.greedy(listing, values(listing, -2, 5))
    assert (found.leaf, found.expansions, found.due) == (listing.leaves()[0], 2, 3)
    found = baselines.greedy(listing, values(listing, -3.5, 5))
    assert (found.leaf, found.expansions, found.due) == (listing.leaves()[1], 3, 3)


def test_distribution_level_keys_add_the_mean_of_the_race(listing: Listing) -> None:
    # The key of a1 is -3 + 0.577.
    pruned = baselines.distribution_level(listing, values(listing, -2.4, 5))
    kept = baselines.distribution_level(listing, values(listing, -2.5, 5))
    assert (pruned.leaf, kept.leaf) == tuple(listing.leaves())


def test_a_beam_keeps_its_width(listing: Listing) -> None:
    narrow = baselines.beam(listing, values(listing, -2, 5), 1)
    assert (narrow.leaf, narrow.expansions, narrow.due) == (listing.leaves()[0], 2, None)
    wide = baselines.beam(listing, values(listing, -2, 5), 2)
    assert (wide.leaf, wide.expansions, wide.due) == (listing.leaves()[1], 3, 3)


def test_ancestral_sampling_draws_from_the_softmax(listing: Listing) -> None:
    runs = 2000
    first = sum(
        baselines.ancestral(listing, listing.race(seed_of("draw", k)).uniform).leaf
        == listing.leaves()[0]
        for k in range(runs)
    )
    due = 1 / (1 + exp(-2))
    assert abs(first - runs * due) < 4 * (runs * due * (1 - due)) ** 0.5


def test_the_adversarial_graph_prunes_the_winner_by_its_mean_alone() -> None:
    listing = Listing(compiled_file("adversarial.tcg"))
    assert isclose(listing.bound(1) + log(listing.count(1)), 0)
    pruned = 0
    for number in range(40):
        seed = seed_of("adversarial test", number)
        race = listing.race(seed)
        best = race.best()[0]
        run = search(listing.artifact, Settings(seed=seed, race="coupled"))
        assert run.plans[0].leaf_id == listing.places[best].digest.hex()
        pruned += baselines.distribution_level(listing, race.value).leaf != best
    assert pruned > 10


def test_a_plan_that_was_left_out_is_a_violation() -> None:
    listing = Listing(suite("A", 3, 0))
    told = Settings(seed=seed_of("violation", 0), race="coupled")
    race = listing.race(told.seed)
    run = search(listing.artifact, told)
    assert soundness.against(listing, race.value, run, told) == (False, False, True)
    second = race.best(2)[1]
    worse = replace(
        run.plans[0], leaf_id=listing.places[second].digest.hex(), value=str(race.value[second])
    )
    run = replace(run, plans=(worse,))
    assert soundness.against(listing, race.value, run, told) == (True, False, False)


def test_the_frontier_of_a_trace_covers_what_was_not_popped() -> None:
    listing = Listing(suite("B", 4, 0))
    at = {place.digest: k for k, place in enumerate(listing.places)}
    trace = Trace()
    run = search(listing.artifact, Settings(seed=bytes(32), race="coupled"), trace)
    race = listing.race(bytes(32))
    left = {node.digest for node in trace.frontier()}
    popped = {node.digest for node in trace.leaves()}
    assert len(popped) == run.leaves and left
    for node in trace.frontier():
        assert node.key * 2.0**-64 >= race.greatest[at[node.digest]] - 1e-12
    plans = sum(listing.count(at[digest]) for digest in left | popped)
    assert plans == listing.count(0)


def test_expansions_are_as_predicted() -> None:
    listing = Listing(suite("A", 3, 1))
    runs = [
        search(
            listing.artifact,
            Settings(seed=seed_of("predicted", k), race="coupled", mode="surrogate", inflate="3"),
        ).expansions
        for k in range(400)
    ]
    width = half_width(len(runs), sum(runs), sum(r * r for r in runs))
    assert abs(sum(runs) / len(runs) - stress.predicted(listing, "3")) < 2 * width


@pytest.mark.parametrize(
    ("statistic", "freedom", "due"),
    [(3.841459, 1, 0.05), (18.307038, 10, 0.05), (13.815511, 2, 1e-3), (6.0, 2, exp(-3.0))],
)
def test_chi_square_tails_are_those_of_the_tables(
    statistic: float, freedom: int, due: float
) -> None:
    assert isclose(chi_square_tail(statistic, freedom), due, rel_tol=1e-6)


def test_thin_cells_are_put_together() -> None:
    assert chi_square([10, 12, 1, 2], [11.0, 11.0, 1.5, 1.5]) == pytest.approx((1 / 11 + 1 / 14, 1))


def test_binomial_limits_are_those_of_clopper_and_pearson() -> None:
    assert isclose(upper_limit(0, 100_000), 2.9957e-5, rel_tol=1e-4)
    assert isclose(upper_limit(1, 10), 0.394163, rel_tol=1e-5)
    assert isclose(lower_limit(9, 10), 1 - 0.394163, rel_tol=1e-5)
    assert (lower_limit(0, 5), upper_limit(5, 5)) == (0.0, 1.0)
