"""Modes, claims, seeds: what is allowed together, what is claimed, what enters the race."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from tcc_certs.race.digest import race_key, root_context
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.modes import opening_digest, race_key_of, terms_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import tables_of
from tests.runtime.graphs import (
    build,
    free_core,
    opened,
    random_network,
    random_rows,
    vec_core,
    vec_rows,
)

SEED = bytes(range(32))


def vec(**options):
    return opened(vec_core(), vec_rows(), **options)


def network(number: int = 0, **options):
    rows = random_network(random.Random(number), 3, 3, 2)
    return opened(free_core([1, 10**9, 5 * 10**8], 9), rows, nondeterministic=True, **options)


def recorded(artifact, withhold: bool = False, **told):
    sink = MemorySink()
    recorder = Recorder(sink, started_ms=7, withhold=withhold)
    run = search(artifact, Settings(**{"seed": SEED, "race": "coupled", **told}), recorder)
    return run, bytes(sink.data)


def test_the_mode_left_open_is_the_best_that_the_counts_allow():
    assert terms_of(vec(), Settings(seed=SEED)).mode == "exact"
    assert terms_of(vec(), Settings(seed=SEED, inflate="2")).mode == "surrogate"
    assert terms_of(vec(round_counts=8), Settings(seed=SEED)).mode == "surrogate"
    assert terms_of(network(), Settings(seed=SEED)).mode == "surrogate"
    literal = terms_of(vec(tilt=0), Settings(seed=SEED, race="literal"))
    assert (literal.mode, literal.keys) == ("surrogate", "anchored")


def test_the_race_left_open_is_the_rest_race_where_it_is_known():
    assert terms_of(vec(), Settings(seed=SEED)).race == "rest"
    assert terms_of(network(), Settings(seed=SEED, truncate=1)).race == "rest"
    assert terms_of(vec(), Settings(seed=SEED, keys="anchored")).race == "coupled"
    assert terms_of(vec(), Settings(seed=SEED, mode="fallback")).race == "coupled"


def test_a_run_that_names_no_race_is_byte_for_byte_that_of_the_race_it_gets():
    left_open, named = recorded(vec(), race=None), recorded(vec(), race="rest")
    assert left_open == named
    assert b'"race":"rest"' in left_open[1]


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("mode", {"mode": "exact", "inflate": "1.5"}),
        ("mode", {"mode": "exact", "race": "literal"}),
        ("race", {"race": "literal"}),  # the artifact has a tilt
        ("mode", {"race": "literal", "mode": "fallback"}),
        ("keys", {"race": "literal", "keys": "finalized"}),
        ("keys", {"mode": "fallback", "keys": "anchored"}),
        ("inflate", {"mode": "fallback", "inflate": "2"}),
        ("truncate", {"mode": "fallback", "truncate": 1}),
        ("keys", {"race": "rest", "keys": "anchored"}),
        ("race", {"race": "rest", "mode": "fallback"}),
    ],
)
def test_what_does_not_go_together_is_refused(field, told):
    with pytest.raises(SettingsError) as refusal:
        search(vec(), Settings(**{"seed": SEED, "race": "coupled", **told}))
    assert refusal.value.field == field


def test_a_literal_run_takes_no_cut():
    with pytest.raises(SettingsError) as refusal:
        search(vec(tilt=0), Settings(seed=SEED, race="literal", truncate=2))
    assert refusal.value.field == "truncate"


@pytest.mark.parametrize("artifact", [vec(round_counts=4), network()])
def test_exact_is_refused_on_bounds(artifact):
    with pytest.raises(SettingsError) as refusal:
        search(artifact, Settings(seed=SEED, race="coupled", mode="exact"))
    assert refusal.value.field == "mode"


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"mode": "surrogate"},
        {"truncate": 1},
        {"keys": "anchored"},
        {"inflate": "1.5"},
        {"mode": "fallback"},
        {"count_bits": 3},
        {"race": "rest"},
        {"race": "rest", "count_bits": 3},
    ],
)
def test_nothing_is_claimed_over_an_artifact_that_nobody_verified(told):
    data = build(vec_core(), vec_rows())
    for verify in (True, False):
        run, ledger = recorded(load(data, verify=verify), **told)
        lines = [json.loads(line) for line in ledger.splitlines()]
        assert lines[-1]["claim_type"] == run.claim_type
        if not verify:
            claims = {line.get("claim_type", "NoCert") for line in lines}
            assert claims == {"NoCert"}
        found = validate(ledger, data)
        assert (found.verdict, found.findings) == (0, ())
        assert found.claim_upheld == (run.claim_type != "NoCert")


def test_inflation_below_what_the_edges_need_is_lifted():
    artifact = vec(round_counts=1)
    run, _ = recorded(artifact, inflate="1.0000001")
    assert run.claim_type == "RunWiseSurrogate"


def test_one_race_serves_both_key_policies_and_both_recipes():
    for number in range(6):
        artifact = network(number)
        runs = [
            recorded(artifact, keys=keys, recipe=recipe, top=3)[0]
            for keys in ("finalized", "anchored")
            for recipe in ("r1", "r2")
        ]
        assert len({run.plans for run in runs}) == 1


def test_fallback_goes_back_by_the_loose_recipe_only():
    """With r2, M is the best score below, and the search expands one plan; r1 is looser."""
    expansions = {"r1": [], "r2": []}
    for number in range(10):
        rows = random_rows(random.Random(number), 3, 3, 3)
        data = build(free_core([1, 10**9, 5 * 10**8], 9), rows)
        for recipe, counts in expansions.items():
            run, ledger = recorded(load(data), mode="fallback", recipe=recipe)
            counts.append(run.expansions)
            root = json.loads(ledger.splitlines()[1])["key_raw"]
            # No call has a negative cost, so by r1 the score of the empty prefix bounds all.
            assert recipe == "r2" or root == "0.00000000000000000000"
            assert validate(ledger, data).verdict == 0
    assert sum(expansions["r1"]) > sum(expansions["r2"])


def test_anchored_runs_draw_fewer_uniforms_and_expand_no_fewer_nodes():
    words = {"finalized": 0, "anchored": 0}
    expansions = dict(words)
    for number in range(10):
        rows = random_rows(random.Random(number), 3, 3, 3)
        artifact = opened(free_core([1, 10**9, 5 * 10**8], 9), rows)
        for keys in words:
            run, ledger = recorded(artifact, keys=keys)
            words[keys] += ledger.count(b'"U":')
            expansions[keys] += run.expansions
    assert words["anchored"] < words["finalized"]
    assert expansions["anchored"] >= expansions["finalized"]


def test_a_set_of_states_is_made_once_and_shown_in_order():
    artifact = network(3)
    _, ledger = recorded(artifact, top=10**6)
    states = [json.loads(line).get("state") for line in ledger.splitlines()]
    shown = [state for state in states if state is not None]
    assert all(state == sorted(set(state)) and state for state in shown)
    assert max(map(len, shown)) > 1
    made = tables_of(artifact, "r2", "1")._states
    assert len({tuple(state) for state in shown}) == len(made) < len(shown)


def test_a_deterministic_artifact_shows_one_state():
    _, ledger = recorded(vec(round_counts=3))
    nodes = [json.loads(line) for line in ledger.splitlines()]
    assert all(isinstance(node["state"], int) for node in nodes if "state" in node)
    names = {name for node in nodes for name in node if name in ("N", "Nub")}
    assert names == {"Nub"}


def test_the_race_follows_beacon_nonce_seed_salt_and_every_bound_setting():
    artifact = vec()
    plain = terms_of(artifact, Settings(seed=SEED, race="coupled"))
    assert race_key_of(artifact, plain) == race_key(
        SEED, root_context(artifact.manifest.root_document)
    )
    base = {"seed": SEED, "beacon": b"b", "client_nonce": b"n"}
    changes = [
        {},
        {"beacon": b"c"},
        {"client_nonce": b"m"},
        {"beacon": b"bn", "client_nonce": None},
        {"beacon": None},
        {"opening_salt": bytes(32)},
        {"seed": bytes(32)},
        {"top": 2},
        {"truncate": 1},
        {"recipe": "r1"},
        {"keys": "anchored"},
        {"mode": "surrogate"},
        {"inflate": "1.5"},
        {"tau": "2"},
        {"race": "rest"},
    ]
    keys = {
        race_key_of(artifact, terms_of(artifact, Settings(**{"race": "coupled", **base, **change})))
        for change in changes
    }
    assert len(keys) == len(changes)
    loose = [{"count_bits": 99}, {"max_expansions": 9}, {"alpha": "0.5"}, {"eta": "0.5"}]
    assert all(
        race_key_of(artifact, terms_of(artifact, Settings(**base, **change))) in keys
        for change in loose
    )


def test_the_opening_is_known_before_beacon_and_nonce():
    artifact, settings = vec(), Settings(seed=SEED, race="coupled", opening_salt=bytes(32))
    due = opening_digest(artifact, settings)
    later = replace(settings, beacon=b"b", client_nonce=b"n")
    assert opening_digest(artifact, later) == due
    _, ledger = recorded(artifact, opening_salt=bytes(32), beacon=b"b", client_nonce=b"n")
    found = validate(ledger, build(vec_core(), vec_rows()), opening=due)
    assert (found.verdict, found.findings) == (0, ())
    header = json.loads(ledger.splitlines()[0])
    assert (header["beacon"], header["client_nonce"]) == (b"b".hex(), b"n".hex())


@pytest.mark.parametrize("told", [{}, {"beacon": b"x"}, {"keys": "anchored", "inflate": "2"}])
def test_a_withheld_seed_is_enough_to_validate_with(told):
    run, ledger = recorded(vec(), withhold=True, opening_salt=bytes(32), **told)
    data = build(vec_core(), vec_rows())
    assert validate(ledger, data).verdict == 2
    found = validate(ledger, data, seed=SEED, opening_salt=bytes(32))
    assert (found.verdict, found.findings, found.claim_type) == (0, (), run.claim_type)
