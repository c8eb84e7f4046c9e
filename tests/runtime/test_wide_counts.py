"""Counts wider than a run may use are rounded up at its root: claim and law stay as they were."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from json import loads
from math import exp

import pytest

from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.counts import race_counts, rounded_to
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.guards import CountKind
from tcc_runtime.resume import resume
from tcc_runtime.run import Engine, search
from tcc_runtime.settings.modes import opening_digest
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import State
from tests.differential.test_ledgers import drawn, runtime_ledger
from tests.oracle_ledger.brute import leaf_values
from tests.oracle_ledger.upper import drawn_upper
from tests.runtime.graphs import build, free_core

LONG = """grammar long version "1"

tool read(of: a | b | c) { cost 0.1 }
tool edit(of: a | b) { cost 0.3 }
tool test { cost 0.25 }

limit depth <= 40
"""


@cache
def long(tilt: int = 8) -> Artifact:
    """Plans of up to 40 calls: counts of hundreds of bits."""
    found = compile_text(LONG, Options(tilt=tilt)).artifact
    assert found is not None
    return load(found)


def told(artifact: Artifact, **options: object) -> Settings:
    return Settings(**{"seed": bytes(32), **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_at_40_bits_the_plan_is_that_of_exact_counts(race: str) -> None:
    artifact = long()
    assert artifact.race_count(artifact.root).bit_length() > 40 * 3
    for number in range(60):
        seed = number.to_bytes(32, "big")
        exact = search(artifact, Settings(seed=seed, race=race))
        run = search(artifact, Settings(seed=seed, race=race, count_bits=40))
        assert [plan.calls for plan in run.plans] == [plan.calls for plan in exact.plans]
        assert (run.mode, run.claim_type, run.law) == ("surrogate", "RunWiseSurrogate", "softmax")
        assert (run.guards, run.stop.certifies) == (("CountFail",), True)
        assert abs(run.expansions - exact.expansions) <= 1


@pytest.mark.parametrize("bits", [1, 2, 5, 12, 40, 63])
def test_the_phantom_mass_is_below_its_bound(bits: int) -> None:
    artifact = long()
    count = race_counts(artifact, "1", bits)
    for q in range(artifact.manifest.states):
        exact, used = artifact.race_count(q), count(q)
        assert exact <= used
        bound = (1 + Fraction(1, 2 ** (bits - 1))) ** (artifact.rank(q) + 1)
        assert Fraction(used, exact) <= bound
        odd = used >> ((used & -used).bit_length() - 1)
        assert odd.bit_length() <= bits


def test_no_count_is_wider_than_that_of_the_root() -> None:
    rng = random.Random(3)
    for _ in range(30):
        made = drawn_upper(rng)
        artifact = load(made.data)
        for q in range(artifact.manifest.states):
            for _, target in artifact.edges(q):
                assert artifact.race_count(q) >= artifact.race_count(target)


def test_of_rounded_counts_the_mantissas_are_held_to_count_bits() -> None:
    found = compile_text(LONG, Options(round_counts=20)).artifact
    assert found is not None
    artifact = load(found)
    members = (artifact.root,)
    assert artifact.race_count(artifact.root).bit_length() > 100
    assert rounded_to(artifact, "1", 20, members) is None
    assert rounded_to(artifact, "1", 19, members) == 19
    kept = search(artifact, told(artifact, count_bits=20))
    assert (kept.guards, kept.claim_type) == ((), "RunWiseSurrogate")
    fewer = search(artifact, told(artifact, count_bits=19))
    assert (fewer.guards, fewer.claim_type) == (("CountFail",), "RunWiseSurrogate")


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_the_plans_are_those_of_a_listing_of_all_arrivals(race: str) -> None:
    rng = random.Random(race)
    for _ in range(25):
        checked, artifact = drawn(rng)
        bits = rng.choice([1, 2, 3, 7])
        wide = artifact.race_count(artifact.root).bit_length()
        seed = rng.randbytes(32)
        run = search(artifact, Settings(seed=seed, race=race, top=4, count_bits=bits))
        to = bits if wide > bits else None
        due = leaf_values(checked, seed, race=race, round_to=to)[:4]
        assert [plan.calls for plan in run.plans] == [calls for _, calls in due]


def test_the_validator_derives_the_same_run() -> None:
    rng = random.Random(11)
    seen: Counter[str] = Counter()
    for number in range(40):
        if number % 3:
            checked, artifact = drawn(rng)
        else:
            made = drawn_upper(rng)
            checked, artifact = made.checked, load(made.data)
        options = {
            "seed": rng.randbytes(32),
            "top": rng.choice([1, 3]),
            "count_bits": rng.choice([1, 4, 9]),
        }
        options["race"] = rng.choice(["coupled", "rest"])
        ledger = runtime_ledger(artifact, **options)
        found = validate(ledger, checked)
        assert (found.verdict, found.claim_upheld) == (0, True)
        seen[found.claim_type] += b'"CountFail"' in ledger
    assert seen["RunWiseSurrogate"] > 15


def test_a_run_that_the_limit_does_not_touch_keeps_its_ledger() -> None:
    artifact = long()
    wide = artifact.race_count(artifact.root).bit_length()
    named = {"~", "run_id", "count_bits"}
    free, held = (
        [
            {name: value for name, value in loads(line).items() if name not in named}
            for line in runtime_ledger(artifact, seed=bytes(32), count_bits=bits).splitlines()
        ]
        for bits in (0, wide)
    )
    assert free == held


def test_the_opening_binds_the_width_where_the_race_depends_on_it() -> None:
    artifact = long()
    wide = artifact.race_count(artifact.root).bit_length()
    plain = told(artifact)
    digests = {
        bits: opening_digest(artifact, replace(plain, count_bits=bits)) for bits in (0, 8, 40, wide)
    }
    assert digests[0] == digests[wide]
    assert len(set(digests.values())) == 3
    found = compile_text(LONG, Options(tilt=8)).artifact
    assert found is not None
    settings = {"seed": bytes(32), "count_bits": 8, "beacon": b"b"}
    ledger = runtime_ledger(artifact, **settings)
    opened = opening_digest(artifact, Settings(race="coupled", **settings))
    assert validate(ledger, check(found), opening=opened).verdict == 0


def test_a_cut_ledger_of_such_a_run_is_resumed(tmp_path) -> None:
    artifact = long()
    settings = {"seed": bytes(32), "count_bits": 9, "race": "rest", "top": 2}
    whole = runtime_ledger(artifact, **settings)
    lines = whole.splitlines(keepends=True)
    for kept in (1, 2, 3, len(lines) - 1):
        path = tmp_path / f"l{kept}"
        path.write_bytes(b"".join(lines[:kept]) + b'{"cut')
        run = resume(artifact, path, bytes(32))
        assert run.claim_type == "RunWiseSurrogate"


def test_runs_after_a_prefix_are_rounded_where_their_root_is_too_wide() -> None:
    artifact = long()
    calls = ("test",) * 36
    q = artifact.root
    for text in calls:
        q = dict(artifact.edges(q))[artifact.call_index(text)]
    wide = artifact.race_count(q).bit_length()
    run = search(artifact, Settings(seed=bytes(32), after=calls, count_bits=wide))
    assert (run.claim_type, run.guards) == ("RunWiseExact", ())
    run = search(artifact, Settings(seed=bytes(32), after=calls, count_bits=wide - 1))
    assert (run.claim_type, run.guards) == ("RunWiseSurrogate", ("CountFail",))


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_the_law_is_the_softmax_however_few_the_bits(race: str) -> None:
    costs = [10**9, 5 * 10**8, 0]
    artifact = load(
        build(free_core(costs, 2), [(True, []), (True, [(0, 0), (1, 0), (2, 0)])], tilt=8)
    )
    weights = {(): 1.0, ("a",): exp(-1), ("b",): exp(-0.5), ("c",): 1.0}
    total, runs = sum(weights.values()), 2000
    found: Counter[tuple[str, ...]] = Counter()
    for number in range(runs):
        run = search(artifact, Settings(seed=number.to_bytes(32, "big"), race=race, count_bits=1))
        found[run.plans[0].calls] += 1
    assert race_counts(artifact, "1", 1)(artifact.root) > artifact.race_count(artifact.root)
    drift = sum(
        (found[key] - runs * w / total) ** 2 / (runs * w / total) for key, w in weights.items()
    )
    assert drift < 16.3  # three degrees of freedom: once in a thousand


def test_a_switch_after_an_arrival_keeps_the_claim_and_not_the_law() -> None:
    # A root of rates 2 and 1; from its arrival on, 20 phantoms stand below its first child.
    rows = [(True, []), (False, [(0, 0), (1, 0)]), (False, [(0, 1), (1, 0)])]
    data = build(free_core([0, 0], 2), rows, tilt=0)

    def switch(state: State) -> CountKind:
        if state.members == (2,):
            child = state.edges[0][1]
            child.open()
            child.count, child.slack = child.count + 20, 20
            return CountKind.UPPER
        return CountKind.EXACT

    runs, won = 4000, 0
    for number in range(runs):
        settings = Settings(seed=number.to_bytes(32, "big"), race="coupled")
        artifact = load(data, verify=False)
        run = search(artifact, settings, engine=Engine(counts=switch, numbers="mpfr"))
        won += run.plans[0].calls == ("b",)
        assert (run.mode, run.law) == ("surrogate", "run_wise_only")
        if number < 200:  # none of all the plans of this race is better
            every = replace(settings, top=9)
            best = search(load(data, verify=False), every, engine=Engine(counts=switch))
            assert best.plans[0] == run.plans[0] and len(best.plans) == 3
    # 1/3, and where the first child was the first (2/3) and a phantom of it (20/22), 1/3 again.
    assert abs(won / runs - 53 / 99) < 0.03
