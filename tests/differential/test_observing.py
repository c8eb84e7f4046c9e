"""Cores of version 1.1 through compiler, kernel, run and validator, against lists of plans.

What strict tools leave, and what a run keeps of the statements that were relaxed, is taken from
explicit sets of plans (:mod:`tests.oracle.observing`); equal bytes are equal plans, counts, bounds
and digests in one comparison.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.campaigns.blocks import blocks
from tests.differential.test_ledgers import runtime_ledger
from tests.differential.test_runtime_modes import plans_of, recorded
from tests.differential.tree_oracle import Oracle
from tests.oracle.build import build
from tests.oracle.network import build_relaxed
from tests.oracle.observing import random_observing, without_strict
from tests.oracle.plans import plans
from tests.runtime.graphs import opened
from tests.runtime.relaxing import LONGEST, random_relaxed

MOST = 3
GRAMMARS = 30


def compare(seed: int) -> str:
    """Compile the core of that seed and compare; says what it came to."""
    data, core = random_observing(random.Random(seed), MOST)
    options = Options(beta=("1", "0", "0.5")[seed % 3], tilt=(8, 0, 4)[seed % 3])
    result = compile_core(data, options)
    listed, left = plans(without_strict(core), MOST), plans(core, MOST)
    codes = [diagnostic.code for diagnostic in result.diagnostics]
    if not left:
        assert result.artifact is None
        assert codes == ["TCC414" if listed else "TCC402"]
        return codes[0]
    assert result.artifact == build(data, left, options.beta, options.tilt), seed
    check_core(check(result.artifact))
    return "whole" if len(left) == len(listed) else "cut"


@pytest.mark.parametrize("block", blocks(5, 8))
def test_random_cores_give_the_bytes_that_brute_force_gives(block: int) -> None:
    outcomes = Counter(compare(seed) for seed in range(40 * block, 40 * block + 40))
    assert outcomes["whole"] >= 10
    assert outcomes["cut"] + outcomes["TCC414"] >= 3


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(20))
def test_many_random_cores_give_the_bytes_that_brute_force_gives(block: int) -> None:
    outcomes = Counter(compare(seed) for seed in range(10_000 + 200 * block, 10_200 + 200 * block))
    print(outcomes)
    assert outcomes["cut"] >= 5


@pytest.mark.parametrize("name", ["sum", "require", "forbid"])
def test_what_is_relaxed_by_name_leaves_the_plans_that_the_others_allow(name: str) -> None:
    narrowed = 0
    for seed in range(60):
        data, core = random_observing(random.Random(seed), MOST, strict=0.0)
        left_out = Relaxed(
            limits=tuple(i for i, at in enumerate(core.limits) if at.kind == name),
            requires=tuple(range(len(core.requires))) if name == "require" else (),
            forbids=tuple(range(len(core.forbids))) if name == "forbid" else (),
        )
        result = compile_core(data, Options(relax=(name,)))
        if left_out == Relaxed():
            assert [d.code for d in result.diagnostics] == ["TCC412"]
        elif result.artifact is None:
            assert [d.code for d in result.diagnostics] == ["TCC402"]
        else:
            assert result.artifact == build_relaxed(data, left_out, MOST)
            check_core(check(result.artifact))
            narrowed += check(result.artifact).plans[-1] > len(plans(core, MOST))
    assert narrowed > 3


def loose(rng: random.Random, most: int):
    return random_observing(rng, most, strict=0.0)


@lru_cache(maxsize=64)
def relaxed(number: int):
    found = random_relaxed(random.Random(number), 80, draw=loose)
    return found, opened(found.data, found.rows, tilt=8, relaxed=found.named)


def test_every_new_statement_is_left_out_somewhere() -> None:
    kinds = set()
    for number in range(GRAMMARS):
        core, named = relaxed(number)[0].core, relaxed(number)[0].named
        kinds |= {core.limits[i].kind for i in named["limits"]}
        kinds |= {core.requires[i].order for i in named["requires"]}
        kinds |= {type(core.forbids[i]).__name__ for i in named["forbids"]}
    assert kinds == {"sum", "before", "after", "each", "ForbidWith", "ForbidBefore"}


@pytest.mark.parametrize("number", range(GRAMMARS))
def test_a_relaxed_run_finds_the_plans_of_its_core_and_no_other(number: int) -> None:
    found, artifact = relaxed(number)
    seed = bytes([number]) * 32
    due = Oracle(found.tree(), seed).numbers
    for keys in ("finalized", "anchored"):
        run, _ = recorded(artifact, seed=seed, top=10**6, keys=keys)
        assert (run.claim_type, run.stop) == ("RunWiseSurrogate", "exhausted")
        assert plans_of(run) == due.coupled
        assert {plan.calls for plan in run.plans} == found.plans
    run, _ = recorded(artifact, seed=seed, top=2, race="rest")
    assert plans_of(run) == Oracle(found.tree(), seed, races=("rest",)).numbers.rest[:2]
    run, _ = recorded(artifact, seed=seed, top=10**6, mode="fallback")
    assert plans_of(run) == due.fallback


@pytest.mark.parametrize("number", range(GRAMMARS))
def test_the_ledger_of_a_relaxed_run_is_valid(number: int) -> None:
    found, artifact = relaxed(number)
    named = Relaxed(**{kind: tuple(at) for kind, at in found.named.items()})
    held = build_relaxed(found.data, named, LONGEST)
    assert artifact.digest == check(held).file.digest
    for top in (1, 3, 10**6):
        data = runtime_ledger(artifact, seed=bytes([number]) * 32, top=top, mode="surrogate")
        assert validate(data, held).verdict == 0
