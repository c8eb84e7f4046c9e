"""Relaxed artifacts and cuts: what the run enforces itself, against plans listed one by one."""

from __future__ import annotations

import random
from decimal import ROUND_CEILING, Decimal, localcontext
from functools import lru_cache

import pytest

from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import enumerate_plans
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.differential.test_runtime_modes import case, plans_of, q64, recorded
from tests.differential.tree_oracle import Oracle
from tests.runtime.graphs import build, free_core, opened, random_rows
from tests.runtime.relaxing import random_relaxed

GRAMMARS = 40


@lru_cache(maxsize=128)
def relaxed(number: int, tilt: int = 8):
    found = random_relaxed(random.Random(number))
    return found, opened(found.data, found.rows, tilt=tilt, relaxed=found.named)


def test_the_grammars_leave_out_every_kind_of_statement():
    kinds, empty = set(), 0
    for number in range(GRAMMARS):
        found, _ = relaxed(number)
        statements = [found.core.statements[number] for number in found.named]
        kinds |= {getattr(one, "what", type(one).__name__) for one in statements}
        empty += not found.plans
    assert kinds == {"price", "latency", "cost", "epsilon", "Limit", "Require", "Forbid", "Owe"}
    assert 0 < empty < GRAMMARS / 2


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("number", range(GRAMMARS))
@pytest.mark.sampled(20)
def test_a_relaxed_run_finds_the_plans_of_its_core_and_no_other(number, keys):
    found, artifact = relaxed(number)
    seed = bytes([number]) * 32
    due = Oracle(found.tree(), seed).numbers
    run, records = recorded(artifact, seed=seed, top=10**6, keys=keys)
    assert (run.mode, run.claim_type, run.stop) == ("surrogate", "RunWiseSurrogate", "exhausted")
    assert plans_of(run) == due.coupled
    assert {plan.calls for plan in run.plans} == found.plans
    assert dead_ends(records) == [record["node_id"] for record in records if "dead_end" in record]
    if keys == "finalized":
        due_rest = Oracle(found.tree(), seed, races=("rest",)).numbers.rest
        run, records = recorded(artifact, seed=seed, top=10**6, race="rest")
        assert plans_of(run) == due_rest
        assert {plan.calls for plan in run.plans} == found.plans
        assert barren(records) == [r["node_id"] for r in records if "dead_end" in r]
    run, _ = recorded(artifact, seed=seed, top=10**6, mode="fallback")
    assert plans_of(run) == due.fallback
    untilted = Oracle(found.tree(tilt=0), seed, races=("literal",)).numbers
    run, _ = recorded(relaxed(number, 0)[1], seed=seed, top=10**6, race="literal")
    assert plans_of(run) == untilted.literal


def dead_ends(records) -> list[str]:
    """The nodes expanded whose `expand` no child's `node` follows."""
    parents = {record.get("parent_id") for record in records}
    return [r["node_id"] for r in records if r["kind"] == "expand" and r["node_id"] not in parents]


def barren(records) -> list[str]:
    """The nodes none of whose children was pushed, in the order of their last draws."""
    parents = {record.get("parent_id") for record in records}
    last = {r["node_id"]: at for at, r in enumerate(records) if r["kind"] in ("expand", "draw")}
    return [name for name in sorted(last, key=last.__getitem__) if name not in parents]


@pytest.mark.parametrize("number", range(GRAMMARS))
@pytest.mark.sampled(14)
def test_a_certified_relaxed_run_has_the_best_plans(number):
    found, artifact = relaxed(number)
    for salt in range(4):
        seed = bytes([number, salt]) * 16
        due = Oracle(found.tree(inflate="1.3"), seed, races=("coupled",)).numbers.coupled
        rest = Oracle(found.tree(inflate="1.3"), seed, races=("rest",)).numbers.rest
        run, _ = recorded(artifact, seed=seed, top=2, race="rest", inflate="1.3")
        assert run.claim_type == "RunWiseSurrogate"
        assert plans_of(run) == rest[:2]
        told = {"inflate": "1.3", "keys": ("finalized", "anchored")[salt % 2]}
        for top in (1, 3):
            run, _ = recorded(artifact, seed=seed, top=top, **told)
            assert run.claim_type == "RunWiseSurrogate"
            assert plans_of(run) == due[:top]


def test_a_relaxed_run_draws_from_plans_that_the_exact_artifact_has():
    runs = 0
    for number in range(GRAMMARS):
        found, artifact = relaxed(number)
        for salt in range(5 if found.plans else 0):
            run = search(artifact, Settings(seed=bytes([salt]) * 32, race="coupled"))
            assert run.plans[0].calls in found.plans
            runs += 1
    assert runs > 100


@pytest.mark.parametrize("number", range(GRAMMARS))
@pytest.mark.sampled(14)
def test_a_cut_run_has_the_best_short_plans(number):
    kind = ("exact", "network", "rounded")[number % 3]
    artifact, tree = case(number, kind, (0, 8)[number % 2])
    longest = artifact.rank(artifact.root)
    seed = bytes([number]) * 32
    for most in range(longest + 2):
        tree.allowed = lambda plan, most=most: len(plan) <= most
        due = Oracle(tree, seed, races=("coupled",)).numbers.coupled
        for keys in ("finalized", "anchored"):
            run, records = recorded(artifact, seed=seed, top=2, truncate=most, keys=keys)
            assert plans_of(run) == due[:2]
            assert run.stop.certifies
            assert run.claim_type == records[0]["claim_type"]
            cut = most < longest
            assert (run.claim_type == "TruncationOnly") == cut
            assert records[0]["truncate"] == min(most, longest)
            assert (run.tail_lse is not None) == cut
            if cut:
                assert q64(run.tail_lse) == tail(tree, most)
        rest = Oracle(tree, seed, races=("rest",)).numbers.rest
        run, _ = recorded(artifact, seed=seed, top=2, truncate=most, race="rest")
        assert plans_of(run) == rest[:2]
        assert run.stop.certifies


def tail(tree, most: int) -> int:
    """T_K by all words of the rows, one by one."""
    with localcontext() as context:
        context.prec = 80
        beta, total, words = Decimal(tree.beta), Decimal(0), 0
        todo = [(len(tree.rows) - 1, 0, 0)]
        while todo:
            q, size, cost = todo.pop()
            accept, edges = tree.rows[q]
            if accept and size > most:
                total += (-beta * cost / 10**9).exp()
                words += 1
                last = cost
            todo += [(p, size + 1, cost + tree.cost[a]) for a, p in edges]
        exact = -beta * last / 10**9 if words == 1 else total.ln()
        return int((exact * 2**64).to_integral_value(ROUND_CEILING))


def test_a_tail_that_one_plan_is_all_of_is_its_score():
    # any{1,2} of a call of cost 0.5: one plan of two calls, score -1; the other weighs more.
    rows = [(True, []), (True, [(0, 0)]), (False, [(0, 1)])]
    artifact = opened(free_core([5 * 10**8], 2), rows)
    run, _ = recorded(artifact, seed=bytes(32), truncate=1)
    assert run.tail_lse == "-1.00000000000000000000"


def test_a_tail_that_one_plan_is_nearly_all_of_is_rounded_up():
    # Scores 0 and -10000: ln(1 + e^-10000) is above 0, and no precision in use shows it.
    rows = [(True, []), (False, [(0, 0), (1, 0)])]
    artifact = opened(free_core([0, 10_000 * 10**9], 2), rows)
    run, _ = recorded(artifact, seed=bytes(32), truncate=0)
    assert q64(run.tail_lse) == 1


def test_a_tail_of_many_paths_takes_no_listing():
    # 3^40 plans of 41 calls, all of score 0.
    rows = [(True, [])] + [(True, [(a, q) for a in range(3)]) for q in range(41)]
    artifact = opened(free_core([0] * 3, 41), rows)
    run, _ = recorded(artifact, seed=bytes(32), truncate=40)
    with localcontext() as context:
        context.prec = 60
        due = Decimal(3**41).ln() * 2**64
    assert q64(run.tail_lse) == int(due.to_integral_value(ROUND_CEILING))
    assert len(run.plans[0].calls) <= 40


def test_a_cut_that_no_plan_meets_finds_none():
    artifact = opened(free_core([1, 2], 3), [(True, []), (False, [(0, 0), (1, 0)])])
    run, records = recorded(artifact, seed=bytes(32), truncate=0)
    assert (run.claim_type, run.stop, run.plans) == ("TruncationOnly", "exhausted", ())
    assert [record["kind"] for record in records] == ["open", "node", "expand", "close"]
    assert records[2]["dead_end"] is True
    assert records[2]["winner"] == "phantom"


def test_random_rows_have_plans_of_several_lengths():
    artifact = load(build(free_core([1, 2], 9), random_rows(random.Random(3), 2, 3, 2)))
    assert len({len(plan) for plan in enumerate_plans(artifact)}) > 2
