"""The published vectors of the race: contexts, weights, counts, uniforms, every leaf value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcc_certs.formats.artifact import read_artifact, unpack_limbs
from tcc_certs.formats.codec import root_document
from tcc_certs.formats.ledger import format_q64
from tcc_certs.race.digest import child_context, leaf_digest, race_key, root_context, uniform
from tcc_certs.replay import validate
from tcc_runtime.artifact.counts import race_counts
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import plans_by_depth
from tcc_runtime.item import ORDER
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.races.coupled import Anchored, Coupled, Rest
from tcc_runtime.races.interface import RunHashers
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.oracle.build import build as build_from_plans
from tests.runtime.engines import Precision, all_leaves, prefix, race_over
from tests.runtime.graphs import VEC_PLANS, build, vec_core, vec_rows

VECTORS = json.loads((Path(__file__).parent / "vectors" / "race.json").read_text())
COUPLED = [case for case in VECTORS["cases"] if case["race"] == "coupled"]
REST = [case for case in VECTORS["cases"] if case["race"] == "rest"]
TEXTS = ["a", "b(k=1)", "b(k=2)", "c"]


def name(case) -> str:
    return f"{case['race']}-tilt{case['tilt']}-inflate{case['inflate']}-seed{case['seed'][:2]}"


@pytest.mark.parametrize("cases", [COUPLED, REST], ids=["coupled", "rest"])
def test_the_vectors_hold_cases_of_both_tilts_and_both_counts(cases):
    found = {(case["tilt"], case["inflate"]) for case in cases}
    assert found == {(0, "1"), (0, "1.7"), (8, "1"), (8, "1.7")}


def test_the_shared_graph_is_the_automaton_of_the_listed_plans():
    words = [tuple(TEXTS.index(call) for call in plan.split()) for plan in VEC_PLANS]
    for tilt in (0, 8):
        assert build(vec_core(), vec_rows(), tilt=tilt) == build_from_plans(
            vec_core(), words, tilt=tilt
        )


def test_contexts():
    root = root_context(root_document("vec", "1.0", VECTORS["limits"]))
    a = child_context(root, b"a")
    found = [root.hex(), a.hex(), leaf_digest(a).hex()]
    assert found == [VECTORS["root_ctx"], VECTORS["ctx_a"], VECTORS["leaf_a"]]


def test_plans_by_depth():
    found = plans_by_depth(load(build(vec_core(), vec_rows())))
    assert [str(count) for count in found] == VECTORS["plans_by_depth"]


@pytest.mark.parametrize("case", [*COUPLED, *REST], ids=name)
def test_weights_counts_key_and_words(case):
    artifact = opened(case)
    assert artifact.manifest.fraction_bits == case["F"]
    weights = {text: str(artifact.weight[artifact.call_index(text)]) for text in TEXTS}
    assert weights == case["W"]
    assert str(race_counts(artifact, case["inflate"])(artifact.root)) == case["m_root"]
    root = bytes.fromhex(VECTORS["root_ctx"])
    key = race_key(bytes.fromhex(case["seed"]), root)
    assert key.hex() == case["K"]
    assert str(uniform(key, 1, root)) == case["x_first"]
    assert str(uniform(key, 2, root)) == case["x_winner_root"]
    word = RunHashers(key).word
    assert str(word(b"\x01" + root)) == case["x_first"]
    assert str(word(b"\x02" + root)) == case["x_winner_root"]


def leaves_of(case, kind, numbers, bits=160):
    """Every leaf of the race, as the vectors have it."""
    uniforms, inflate = RunHashers(bytes.fromhex(case["K"])), case["inflate"]
    precision = Precision(first=bits)
    race = race_over(opened(case), uniforms, kind, numbers, precision, inflate=inflate)
    return [
        {"calls": list(prefix(leaf)), "value": format_q64(-leaf[ORDER])}
        for leaf in all_leaves(race)
    ]


@pytest.mark.parametrize("kind", [Coupled, Anchored])
@pytest.mark.parametrize("bits", [98, 101, 103, 110, 160, 512])
@pytest.mark.parametrize("case", COUPLED, ids=name)
def test_every_leaf_value_at_any_working_precision(case, bits, kind):
    assert leaves_of(case, kind, "mpfr", bits) == case["leaves"]


@pytest.mark.parametrize("bits", [98, 101, 103, 110, 160, 512])
@pytest.mark.parametrize("case", REST, ids=name)
def test_every_leaf_value_of_the_rest_race_at_any_working_precision(case, bits):
    assert leaves_of(case, Rest, "mpfr", bits) == case["leaves"]


@pytest.mark.parametrize("kind", [Coupled, Anchored])
@pytest.mark.parametrize("case", COUPLED, ids=name)
def test_every_leaf_value_in_integers_of_fixed_size(case, kind):
    assert leaves_of(case, kind, "fixed") == case["leaves"]


@pytest.mark.parametrize("case", REST, ids=name)
def test_every_leaf_value_of_the_rest_race_in_integers_of_fixed_size(case):
    assert leaves_of(case, Rest, "fixed") == case["leaves"]


@pytest.mark.parametrize("top", [1, 3, 12])
@pytest.mark.parametrize("case", REST, ids=name)
def test_the_search_of_the_rest_race_finds_the_best_leaves_in_order(case, top):
    told = {"race": "rest", "inflate": case["inflate"], "top": top}
    artifact, sink = opened(case), MemorySink()
    recorder = Recorder(sink, started_ms=7)
    run = search(
        artifact,
        Settings(**{"seed": bytes.fromhex(case["seed"]), "race": "coupled", **told}),
        recorder,
    )
    found = [{"calls": list(plan.calls), "value": plan.value} for plan in run.plans]
    assert found == case["leaves"][:top]
    due = "RunWiseExact" if case["inflate"] == "1" else "RunWiseSurrogate"
    assert run.claim_type == due
    checked = validate(bytes(sink.data), build(vec_core(), vec_rows(), tilt=case["tilt"]))
    assert (checked.verdict, checked.findings, checked.claim_upheld) == (0, (), True)


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("case", COUPLED, ids=name)
def test_the_search_finds_all_leaves_in_order(case, keys):
    seed = bytes.fromhex(case["seed"])
    settings = Settings(seed=seed, race="coupled", top=12, inflate=case["inflate"], keys=keys)
    run = search(opened(case), settings)
    found = [{"calls": list(plan.calls), "value": plan.value} for plan in run.plans]
    assert found == case["leaves"]
    due = "RunWiseExact" if case["inflate"] == "1" else "RunWiseSurrogate"
    assert run.claim_type == due


@pytest.mark.parametrize("case", COUPLED, ids=name)
def test_the_inflated_counts_are_those_of_a_builder_of_its_own(case):
    due = read_artifact(build(vec_core(), vec_rows(), tilt=case["tilt"], inflate=case["inflate"]))
    column = due.columns["race_count" if "race_count" in due.columns else "plans"]
    artifact = opened(case)
    counts = race_counts(artifact, case["inflate"])
    states = range(artifact.manifest.states)
    assert [counts(q) for q in states] == unpack_limbs(column)


def opened(case):
    return load(build(vec_core(), vec_rows(), tilt=case["tilt"]))
