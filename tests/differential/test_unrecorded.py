"""A run that nobody records gives the same result, bit for bit, as one that is recorded."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import replace

import pytest
from tcc_runtime.exact import Exact
from tcc_runtime.race import Coupled, drawing
from tcc_runtime.swift import exponential, fits
from tcc_runtime.swift_coupled import SwiftCoupled
from tcc_runtime.swift_rest import SwiftRest

from tcc_certs.fixed import format_q64
from tcc_runtime import near, swift, swift_coupled, swift_rest
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import Undecided
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import HashOnly
from tcc_runtime.numbers.reals import Reals
from tcc_runtime.search import search
from tcc_runtime.states import tables_of
from tcc_runtime.terms.modes import terms_of
from tcc_runtime.terms.opening import race_key_of
from tcc_runtime.terms.settings import Settings
from tests.differential.test_runtime_modes import case
from tests.runtime.graphs import build, chain_rows, free_core, opened, plan_rows

KINDS = ["exact", "network", "rounded", "rounded network"]
TOLD = {
    "coupled": {},
    "rest": {"race": "rest"},
    "inflated": {"inflate": "1.5", "mode": "surrogate"},
    "inflated rest": {"inflate": "3", "mode": "surrogate", "race": "rest"},
    "r1": {"recipe": "r1"},
}


def both(artifact, **told):
    """The run that nobody records, and the one that somebody does, but for its head."""
    settings = Settings(**{"race": "coupled", **told})
    assert fits(artifact, terms_of(artifact, settings))
    recorded = search(artifact, settings, Recorder(HashOnly(), started_ms=0))
    return search(artifact, settings), replace(recorded, ledger_head=None)


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", KINDS)
def test_unrecorded_runs_are_recorded_ones(kind, told):
    for number in range(8):
        rng = random.Random(f"{kind}/{told}/{number}")
        artifact, _ = case(number, kind, rng.choice((0, 1, 8)))
        for top in (1, 3, 10**4):
            seed = rng.randbytes(32)
            alone, recorded = both(artifact, seed=seed, top=top, **TOLD[told])
            assert alone == recorded


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_caps_end_unrecorded_runs_where_they_end_recorded_ones(race):
    for number in range(8):
        artifact, _ = case(number, "exact", 8)
        for cap in (1, 2, 3):
            told = {"race": race, "top": 4, "max_expansions": cap}
            alone, recorded = both(artifact, seed=bytes([number]) * 32, **told)
            assert alone == recorded


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("margin", [2.0**-12, 1.0])
def test_wide_enclosures_cost_time_alone(monkeypatch, race, margin):
    monkeypatch.setattr(swift, "MARGIN", margin)
    for number in range(8):
        artifact, _ = case(number, "exact", 1)
        artifact.kept.pop("gauges", None)
        alone, recorded = both(artifact, seed=bytes([number]) * 32, top=5, race=race)
        artifact.kept.pop("gauges", None)
        assert alone == recorded


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_every_enclosure_holds_the_exact_key(race):
    seen = 0
    for number in range(40):
        artifact, _ = case(number, "exact", 8)
        terms = terms_of(artifact, Settings(seed=bytes([number]) * 32, race=race))
        tables = tables_of(artifact, "r2", "1")
        kind = SwiftRest if race == "rest" else SwiftCoupled
        run = kind(tables, race_key_of(artifact, terms), terms, None, lambda: False)
        run.run()
        width = 2 * run._error()
        for entry in run._heap:
            if len(entry) == 3:
                assert -entry[0] == run.near.key(entry[2])
            else:
                assert -entry[0] - width <= run.near.key(entry) <= -entry[0]
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("told", TOLD)
def test_keys_by_integers_are_those_of_working_precision(told, monkeypatch):
    seen = 0
    for number in range(24):
        artifact, _ = case(number, KINDS[number % 4], (0, 4, 8)[number % 3])
        terms = terms_of(
            artifact, Settings(**{"seed": bytes([number]) * 32, "race": "coupled", **TOLD[told]})
        )
        tables = tables_of(artifact, terms.settings.recipe, terms.settings.inflate)
        kind = SwiftRest if terms.race == "rest" else SwiftCoupled
        run = kind(tables, race_key_of(artifact, terms), terms, None, lambda: False)
        run.run()
        items = [entry[2] if len(entry) == 3 else entry for entry in run._heap]
        items += [leaf for _, _, leaf in run.best]
        quick = [run.near.key(item) for item in items]
        with monkeypatch.context() as patch:
            patch.setattr(near, "rounded", lambda log, bound: near.OPEN)
            assert [run.near.key(item) for item in items] == quick
        seen += len(items)
    assert seen > 60


def test_exponentials_are_right_to_44_bits_at_both_ends():
    reals = Reals(160)
    words = [0, 1, 2, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**32, 2**64 - 2**32]
    for word in [*words, *(random.Random(1).getrandbits(64) for _ in range(500))]:
        exact = reals.exponential(word)
        assert abs(exponential(word) - exact) <= exact * 2**-44


def test_lifted_arrivals_stay_in_their_enclosures(monkeypatch):
    for module in (swift, swift_coupled, swift_rest):
        monkeypatch.setattr(module, "TINY", 2.0**300)
    core = free_core([10**9, 0], 9)
    artifact = opened(core, plan_rows([[0, 1, 0, 1, 0, 1, 0, 1]]), "1", 8)
    for race in ("coupled", "rest"):
        for number in range(20):
            alone, recorded = both(artifact, seed=bytes([number]) * 32, top=2, race=race)
            assert alone == recorded


def test_numbers_out_of_range_are_left_to_the_exact_run(monkeypatch):
    for module in (swift, swift_coupled, swift_rest):
        monkeypatch.setattr(module, "TINY", 2.0**900)
    monkeypatch.setattr(swift, "LEAST", 2.0**900)
    artifact, _ = case(3, "exact", 8)
    alone, recorded = both(artifact, seed=bytes(32), top=3)
    assert alone == recorded


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("tilt", [4, 12])
def test_long_runs_over_one_automaton_are_recorded_ones(race, tilt):
    rng = random.Random(tilt)
    core = free_core([rng.randrange(10**9) for _ in range(6)], 24)
    artifact = load(build(core, chain_rows(rng, 6, 24, 3), tilt=tilt))
    for top in (1, 8, 40):
        alone, recorded = both(artifact, seed=bytes([top]) * 32, top=top, race=race)
        assert alone == recorded


@pytest.mark.parametrize("length", [12, 14, 16, 19])
@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_next_to_nothing_left_is_left_to_the_exact_run(race, length):
    # One call that costs nothing, or up to twenty that weigh 2^-64 each.
    rows = [(True, [])]
    for _ in range(length):
        rows.append((False, [(1, len(rows) - 1)]))
    rows.append((False, [(0, 0), (1, length)]))
    artifact = opened(free_core([0, 60 * 10**9], 20), rows, "1", 8)
    for top in (1, 2):
        alone, recorded = both(artifact, seed=bytes(32), top=top, race=race)
        assert alone == recorded


def progress_of(artifact, recorder=None, **told):
    """What somebody who follows a run is told of."""
    seen = []
    settings = Settings(seed=bytes(range(32)), **told)
    run = search(artifact, settings, recorder, on_expand=seen.append)
    # Looked at when all is over: what was true then stays so.
    return replace(run, ledger_head=None), [(p.expansions, p.incumbent, p.bound) for p in seen]


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_who_follows_an_unrecorded_run_is_told_what_a_recorded_one_tells(race):
    for number in range(8):
        artifact, _ = case(number, "exact", 8)
        for told in ({"top": 1}, {"top": 5}, {"top": 10**4}, {"top": 3, "max_expansions": 2}):
            recorder = Recorder(HashOnly(), started_ms=0)
            alone = progress_of(artifact, race=race, **told)
            assert alone == progress_of(artifact, recorder, race=race, **told)


def test_who_follows_may_end_an_unrecorded_run():
    artifact, _ = case(3, "exact", 8)
    settings = Settings(seed=bytes(32), top=10**4, race="rest")
    told = search(artifact, settings, on_expand=lambda p: p.expansions == 2)
    assert (told.stop, told.claim_type, told.expansions) == ("interrupted", "NoCert", 2)


def test_what_was_told_is_not_told_again_where_enclosures_fail(monkeypatch):
    artifact, _ = case(3, "exact", 8)
    whole = progress_of(artifact, race="rest", top=3)

    def undecided(self, item):
        raise Undecided("as a test wants it")

    monkeypatch.setattr(near, "rounded", lambda log, bound: near.OPEN)
    monkeypatch.setattr(Exact, "key", undecided)
    seen = []
    settings = Settings(seed=bytes(range(32)), race="rest", top=3)
    run = search(artifact, settings, on_expand=lambda p: seen.append(p.expansions))
    assert (run, seen) == (whole[0], [expansions for expansions, _, _ in whole[1]])


def test_ctrl_c_before_it_is_held_back_ends_a_run_at_its_root(monkeypatch):
    artifact, _ = case(3, "exact", 8)
    settings = Settings(seed=bytes(32), race="rest")
    terms = terms_of(artifact, settings)
    root = Coupled(tables_of(artifact, "r2", "1"), drawing(race_key_of(artifact, terms))).root()
    walk = SwiftRest._walk

    def pressed(self, item):
        walk(self, item)
        raise KeyboardInterrupt

    monkeypatch.setattr(SwiftRest, "_walk", pressed)
    run = search(artifact, settings)
    assert (run.stop, run.claim_type, run.expansions, run.plans) == ("interrupted", "NoCert", 0, ())
    assert run.frontier_key == format_q64(root.key)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt):
            search(artifact, settings)
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_long_unrecorded_run_ends_it(monkeypatch):
    rng = random.Random(5)
    core = free_core([rng.randrange(10**9) for _ in range(6)], 24)
    artifact = load(build(core, chain_rows(rng, 6, 24, 3), tilt=8))
    walk = SwiftRest._walk

    def pressed(self, item):
        if self.expansions >= 2 * swift.UNHELD:
            os.kill(os.getpid(), signal.SIGINT)
        return walk(self, item)

    monkeypatch.setattr(SwiftRest, "_walk", pressed)
    run = search(artifact, Settings(seed=bytes(32), top=100, race="rest"))
    assert (run.stop, run.claim_type) == ("interrupted", "NoCert")
    assert 2 * swift.UNHELD <= run.expansions < 3 * swift.UNHELD
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
