"""Cores with listed answers through compiler, kernel, run and validator, against lists of plans.

The oracle lists what strict tools leave and what relaxed statements allow.  Equal bytes mean equal
plans, counts, bounds and digests in one comparison.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import check
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Limit, Statement
from tcc_certs.policy.places import parts_of
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.campaigns.blocks import blocks
from tests.differential.test_ledgers import runtime_ledger
from tests.differential.test_runtime_modes import plans_of, recorded
from tests.differential.tree_oracle import Oracle
from tests.oracle.build import build
from tests.oracle.cores import random_later_core
from tests.oracle.network import build_relaxed
from tests.oracle.plans import plans
from tests.runtime.graphs import opened
from tests.runtime.relaxing import LONGEST, random_relaxed

MOST = 3
GRAMMARS = 30


def compare(seed: int) -> str:
    """Compile the core of that seed and compare; says what it came to."""
    data, core = random_later_core(random.Random(seed), MOST)
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
@pytest.mark.sampled(1)
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


def without_strict(core: Core) -> Core:
    """The core with no strict tool."""
    return replace(core, tools=tuple([replace(tool, strict=False) for tool in core.tools]))


@pytest.mark.parametrize("name", ["sum", "count", "require", "forbid", "owe"])
def test_what_is_relaxed_by_name_leaves_the_plans_that_the_others_allow(name: str) -> None:
    narrowed = 0
    for seed in range(160 if name in ("sum", "forbid") else 30):
        data, core = random_later_core(random.Random(seed), MOST, strict=0.0)
        numbers = [at for at, one in enumerate(core.statements) if kind_of(one) == name]
        left_out = tuple([at for at in numbers if parts_of(core)[at].place != "gate"])
        if not left_out and name in ("sum", "forbid"):
            continue
        result = compile_core(data, Options(relax=(name,), tilt=8))
        if not left_out:
            assert [d.code for d in result.diagnostics] == ["TCC412"]
        elif result.artifact is None:
            assert [d.code for d in result.diagnostics] == ["TCC402"]
        else:
            assert result.artifact == build_relaxed(data, left_out, MOST)
            check_core(check(result.artifact))
            narrowed += check(result.artifact).plans[-1] > len(plans(core, MOST))
    assert narrowed


def kind_of(statement: Statement) -> str:
    """The kind by which a statement is relaxed."""
    if isinstance(statement, Limit):
        return "count" if statement.field is None else "sum"
    return type(statement).__name__.lower()


def loose(rng: random.Random, most: int):
    return random_later_core(rng, most, strict=0.0)


@lru_cache(maxsize=64)
def relaxed(number: int):
    found = random_relaxed(random.Random(number), 80, draw=loose)
    return found, opened(found.data, found.rows, tilt=8, relaxed=found.named)


@pytest.mark.campaign
def test_every_kind_of_statement_is_left_out_somewhere() -> None:
    kinds = set()
    for number in range(GRAMMARS):
        found = relaxed(number)[0]
        kinds |= {kind_of(found.core.statements[at]) for at in found.named}
    assert kinds >= {"sum", "count", "require", "forbid", "owe"}


@pytest.mark.parametrize("number", range(GRAMMARS))
@pytest.mark.sampled(4)
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
@pytest.mark.sampled(10)
def test_the_ledger_of_a_relaxed_run_is_valid(number: int) -> None:
    found, artifact = relaxed(number)
    held = build_relaxed(found.data, found.named, LONGEST)
    assert artifact.digest == check(held).file.digest
    for top in (1, 3, 10**6):
        data = runtime_ledger(artifact, seed=bytes([number]) * 32, top=top, mode="surrogate")
        assert validate(data, held).verdict == 0
