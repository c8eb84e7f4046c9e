"""The runtime against a race computed leaf by leaf in decimal arithmetic, and against itself."""

from __future__ import annotations

import json
import random
from functools import lru_cache

import pytest

from tcc_experiments.evidence import q64_of
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import enumerate_plans
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.differential.runtime_oracle import Grammar, Oracle
from tests.runtime.graphs import build, free_core, random_rows

SEEDS_EACH = 12


@lru_cache(maxsize=64)
def case(number: int, tilt: int):
    """A random small automaton, and the grammar that the oracle reads."""
    rng = random.Random(number)
    calls = rng.randint(1, 3)
    costs = [rng.choice((0, 1, 10**9, rng.randrange(-(10**9), 3 * 10**9))) for _ in range(calls)]
    beta = rng.choice(("1", "0", "2.5", "0.125"))
    rows = random_rows(rng, calls, rng.randint(1, 3), 2)
    artifact = load(build(free_core(costs, 9), rows, beta, tilt))
    names = "abc"[:calls]
    grammar = Grammar(
        name="g",
        version="1",
        limits=["limit depth <= 9"],
        cost=dict(zip(names, costs, strict=True)),
        plans=list(enumerate_plans(artifact)),
        beta=beta,
        tilt=tilt,
    )
    return artifact, grammar


def seed_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


def q64(text: str) -> int:
    return q64_of(text)


@pytest.mark.parametrize("tilt", [0, 4, 8])
@pytest.mark.parametrize("number", range(10))
def test_every_published_number_is_the_oracles(number, tilt):
    artifact, grammar = case(number, tilt)
    for salt in range(SEEDS_EACH):
        seed = seed_of(1000 * number + salt)
        due = Oracle(grammar, seed).result
        ledger = MemorySink()
        run = search(
            artifact, Settings(seed=seed, race="coupled", top=10**6), Recorder(ledger, started_ms=7)
        )
        found = [(q64(p.value), bytes.fromhex(p.leaf_id), p.calls) for p in run.plans]
        assert found == due.leaves
        assert (run.claim_type, run.stop) == ("RunWiseExact", "exhausted")
        nodes = [json.loads(line) for line in bytes(ledger.data).splitlines()]
        nodes = [record for record in nodes if record["kind"] == "node"]
        assert len(nodes) == len(due.keys)
        for node in nodes:
            digest = bytes.fromhex(node["ctx_digest"])
            assert q64(node["key_raw"]) == due.keys[digest]
            assert q64(node["neg_log_t"]) == due.neg_log_t[digest]
            if "U" in node:
                purpose = b"\x03" if "parent_id" in node else b"\x01"
                assert int(node["U"]) == due.words[purpose + digest]


@pytest.mark.parametrize("recipe", ["r1", "r2"])
@pytest.mark.parametrize("top", [1, 5])
@pytest.mark.parametrize("number", range(10))
@pytest.mark.sampled(14)
def test_a_certified_stop_has_the_best_plans_and_no_other_beats_them(number, top, recipe):
    for tilt in (0, 8):
        artifact, grammar = case(number, tilt)
        for salt in range(SEEDS_EACH):
            seed = seed_of(5000 * number + salt)
            due = Oracle(grammar, seed).result.leaves
            run = search(artifact, Settings(seed=seed, race="coupled", top=top, recipe=recipe))
            found = [(q64(p.value), bytes.fromhex(p.leaf_id), p.calls) for p in run.plans]
            assert run.claim_type == "RunWiseExact"
            assert found == due[:top]


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_r2_expands_no_more_than_r1(race):
    for number in range(10):
        artifact, _ = case(number, 0)
        for salt in range(SEEDS_EACH):
            seed = seed_of(salt)
            tight = search(artifact, Settings(seed=seed, race=race))
            loose = search(artifact, Settings(seed=seed, race=race, recipe="r1"))
            assert tight.expansions <= loose.expansions
            assert tight.plans == loose.plans
