"""A run that nobody records gives the same result, bit for bit, as one that is followed."""

from __future__ import annotations

import random

import pytest

from tcc_runtime import gauges, swift
from tcc_runtime.modes import terms_of
from tcc_runtime.numbers import Reals
from tcc_runtime.opening import race_key_of
from tcc_runtime.search import search
from tcc_runtime.settings import Settings
from tcc_runtime.swift import Swift, exponential, fits
from tcc_runtime.tables import tables_of
from tests.differential.test_runtime_modes import case
from tests.runtime.graphs import free_core, opened, plan_rows

KINDS = ["exact", "network", "rounded", "rounded network"]
TOLD = {
    "coupled": {},
    "rest": {"race": "rest"},
    "inflated": {"inflate": "1.5", "mode": "surrogate"},
    "inflated rest": {"inflate": "3", "mode": "surrogate", "race": "rest"},
    "r1": {"recipe": "r1"},
}


def both(artifact, **told):
    """The run that nobody follows, and the one that somebody does."""
    settings = Settings(**{"race": "coupled", **told})
    assert fits(artifact, terms_of(artifact, settings))
    return search(artifact, settings), search(artifact, settings, on_expand=lambda _: None)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", KINDS)
def test_unrecorded_runs_are_recorded_ones(kind, told):
    for number in range(8):
        rng = random.Random(f"{kind}/{told}/{number}")
        artifact, _ = case(number, kind, rng.choice((0, 1, 8)))
        for top in (1, 3, 10**4):
            seed = rng.randbytes(32)
            alone, followed = both(artifact, seed=seed, top=top, **TOLD[told])
            assert alone == followed


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_caps_end_unrecorded_runs_where_they_end_recorded_ones(race):
    for number in range(8):
        artifact, _ = case(number, "exact", 8)
        for cap in (1, 2, 3):
            told = {"race": race, "top": 4, "max_expansions": cap}
            alone, followed = both(artifact, seed=bytes([number]) * 32, **told)
            assert alone == followed


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("margin", [2.0**-12, 1.0])
def test_wide_enclosures_cost_time_alone(monkeypatch, race, margin):
    monkeypatch.setattr(gauges, "MARGIN", margin)
    monkeypatch.setattr(swift, "MARGIN", margin)
    for number in range(8):
        artifact, _ = case(number, "exact", 1)
        artifact.kept.pop("gauges", None)
        alone, followed = both(artifact, seed=bytes([number]) * 32, top=5, race=race)
        artifact.kept.pop("gauges", None)
        assert alone == followed


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_every_enclosure_holds_the_exact_key(race):
    seen = 0
    for number in range(40):
        artifact, _ = case(number, "exact", 8)
        terms = terms_of(artifact, Settings(seed=bytes([number]) * 32, race=race))
        tables = tables_of(artifact, "r2", "1")
        run = Swift(tables, race_key_of(artifact, terms), terms, None, lambda: False)
        run.run()
        for item in run._heap:
            key = run._published(item).key
            assert -item[2] <= key <= -item[0] or item[2] == -swift.inf
            seen += 1
    assert seen > 20


def test_exponentials_are_right_to_44_bits_at_both_ends():
    reals = Reals(160)
    words = [0, 1, 2, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**32, 2**64 - 2**32]
    for word in [*words, *(random.Random(1).getrandbits(64) for _ in range(500))]:
        exact = reals.exponential(word)
        assert abs(exponential(word) - exact) <= exact * 2**-44


def test_lifted_arrivals_stay_in_their_enclosures(monkeypatch):
    monkeypatch.setattr(swift, "_TINY", 2.0**300)
    core = free_core([10**9, 0], 9)
    artifact = opened(core, plan_rows([[0, 1, 0, 1, 0, 1, 0, 1]]), "1", 8)
    for race in ("coupled", "rest"):
        for number in range(20):
            alone, followed = both(artifact, seed=bytes([number]) * 32, top=2, race=race)
            assert alone == followed


def test_numbers_out_of_range_are_left_to_the_exact_run(monkeypatch):
    monkeypatch.setattr(swift, "_TINY", 2.0**900)
    monkeypatch.setattr(swift, "_LEAST", 2.0**900)
    artifact, _ = case(3, "exact", 8)
    alone, followed = both(artifact, seed=bytes(32), top=3)
    assert alone == followed
