"""Runs after a prefix, in every mode: the runtime's ledger is the reference's, and it is valid.

What a run after a prefix is, the oracles say in their own way: the tree of the rows below the state
reached, with D folded along the calls (tests/differential/tree_oracle.py), and the walk of the
reference writer, which holds every word with the calls before it against the statements.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_experiments.evidence import q64_of
from tcc_runtime.artifact.load import load
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.differential.test_ledgers import (
    agree,
    drawn,
    reference as reference_of,
    runtime_ledger,
    settings,
)
from tests.differential.tree_oracle import Oracle, Tree
from tests.oracle_ledger.upper import drawn_upper
from tests.runtime.engines import RECORDED, UNRECORDED
from tests.runtime.graphs import free_core, named_rows, opened, random_network, random_rows
from tests.runtime.prefixes import drawn_prefix


def artifacts(rng: random.Random, upper: bool):
    if not upper:
        return drawn(rng)
    data = drawn_upper(rng).data
    return check(data), load(data)


@pytest.mark.parametrize("upper", [False, True])
def test_runtime_reference_and_validator_agree(upper: bool) -> None:
    rng = random.Random(4711 + upper)
    seen: Counter = Counter()
    behind = sets = 0
    for _ in range(60):
        checked, loaded = artifacts(rng, upper)
        for _ in range(4):
            told = settings(rng, checked)
            told["after"] = drawn_prefix(rng, loaded)
            agree(checked, loaded, told, seen)
            behind += bool(told["after"])
            sets += b'"state":[' in runtime_ledger(loaded, **told)
    assert behind > 150
    assert min(seen[kind] for kind in ("NoCert", "TruncationOnly", "RunWiseSurrogate")) > 1
    assert min(seen[what] for what in (b'"dead_end"', b'"tail_lse"', b'"kind":"draw"')) > 3
    assert (sets > 5) == upper


def test_every_rung_gives_one_result() -> None:
    rng = random.Random(99)
    for _ in range(12):
        checked, loaded = artifacts(rng, rng.random() < 0.5)
        told = settings(rng, checked)
        told.pop("count_bits", None)
        told["after"] = drawn_prefix(rng, loaded)
        written = {runtime_ledger(loaded, engine=engine, **told) for engine in RECORDED.values()}
        assert written == {reference_of(checked, told)}
        runs = [
            search(loaded, Settings(**{"race": "coupled", **told}), engine=engine)
            for engine in UNRECORDED.values()
        ]
        assert all(run == runs[0] for run in runs[1:])
        assert runs[0].after == told["after"]


def test_runs_after_calls_are_upheld() -> None:
    rng = random.Random(7)
    for _ in range(40):
        checked, loaded = artifacts(rng, rng.random() < 0.5)
        told = {**settings(rng, checked), "after": drawn_prefix(rng, loaded)}
        written = runtime_ledger(loaded, **told)
        assert validate(written, checked).verdict == 0


@pytest.mark.parametrize("race", ["coupled", "rest", "literal", "fallback"])
def test_the_plans_are_those_of_the_tree_below(race: str) -> None:
    rng = random.Random(race)
    for at in range(40):
        network = at % 2 == 1
        costs = [rng.randrange(-(10**9), 3 * 10**9) for _ in range(3)]
        rows = (random_network if network else random_rows)(rng, 3, 2, 2)
        core = free_core(costs, 9)
        artifact = opened(core, rows, tilt=0, nondeterministic=network)
        after = drawn_prefix(rng, artifact)
        tree = Tree(
            rows=named_rows(core, rows),
            cost=dict(zip("abc", costs, strict=True)),
            limits=["limit depth <= 9"],
            tilt=0,
            after=after,
        )
        told = Settings(
            seed=rng.randbytes(32),
            top=1000,
            after=list(after),
            mode="fallback" if race == "fallback" else "surrogate",
            race=None if race == "fallback" else race,
        )
        run = search(artifact, told)
        leaves = getattr(Oracle(tree, told.seed, races=(race, "coupled")).numbers, race)
        found = [(q64_of(p.value), p.calls) for p in run.plans]
        assert found == [(value, calls) for value, _, calls in leaves]


def test_kappa_begins_where_the_run_does() -> None:
    rng, seen = random.Random(5), 0
    for _ in range(30):
        checked, loaded = drawn(rng)
        after = drawn_prefix(rng, loaded)
        written = runtime_ledger(
            loaded, seed=rng.randbytes(32), mode="surrogate", inflate="1.7", after=after, top=3
        )
        own, handed = validate(written, checked), validate(written, checked, counts=checked)
        # Of the artifact's own counts and of its own counts handed in.
        assert own.verdict == 0 and own.kappa == handed.kappa
        assert own.kappa["nodes"] == own.checked["nodes"]
        seen += own.kappa["tightened"] > 0
    assert seen > 10
