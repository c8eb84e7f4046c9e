"""Plans without a race, against plans that are listed one by one."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tcc_runtime.artifact import plans
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import (
    _cheapest_by_sets,
    cheapest_plan,
    cheapest_plans,
    contains,
    enumerate_plans,
    next_calls,
    plan_at,
    plans_by_depth,
    walk,
)
from tests.oracle.build import build as build_from_plans
from tests.oracle.cores import random_core
from tests.oracle.plans import plans as list_plans
from tests.runtime.graphs import (
    VEC_PLANS,
    build,
    chain_rows,
    free_core,
    opened,
    random_network,
    vec_core,
    vec_rows,
)
from tests.runtime.relaxing import random_relaxed


def cases():
    rng = random.Random(11)
    while True:
        data, core = random_core(rng)
        words = list_plans(core, 4)
        if words:
            yield load(build_from_plans(data, words)), core, words


@pytest.fixture(scope="module")
def drawn():
    source = cases()
    return [next(source) for _ in range(30)]


@pytest.fixture(scope="module")
def vec():
    return load(build(vec_core(), vec_rows()))


def texts(core, word):
    return tuple(core.calls[index].text for index in word)


def test_enumeration_is_every_plan_in_call_order(drawn):
    for artifact, core, words in drawn:
        due = sorted(texts(core, word) for word in words)
        assert list(enumerate_plans(artifact)) == due
        assert list(enumerate_plans(artifact, 2)) == due[:2]
        assert list(enumerate_plans(artifact, 0)) == []
        assert [plan_at(artifact, index) for index in range(len(due))] == due


def test_a_plan_that_begins_another_comes_before_it(vec):
    found = [" ".join(plan) for plan in enumerate_plans(vec)]
    assert found == sorted(VEC_PLANS, key=str.split)
    assert found[:3] == ["a", "a b(k=1)", "a b(k=1) c"]


def test_plan_at_past_the_end(vec):
    for index in (-1, 12):
        with pytest.raises(IndexError):
            plan_at(vec, index)


def test_counts_by_depth(drawn):
    for artifact, _, words in drawn:
        found = Counter(len(word) for word in words)
        assert plans_by_depth(artifact) == [found[n] for n in range(max(found) + 1)]


def test_the_cheapest_plan_is_the_first_of_the_cheapest(drawn):
    for artifact, core, words in drawn:
        cost = {word: sum(core.calls[index].cost_low for index in word) for word in words}
        least = min(cost.values())
        due = min((len(word), texts(core, word)) for word in words if cost[word] == least)[1]
        assert cheapest_plan(artifact) == due


def test_contains_and_walk(drawn):
    rng = random.Random(5)
    for artifact, core, words in drawn:
        plans = {texts(core, word) for word in words}
        names = [call.text for call in core.calls]
        for _ in range(40):
            calls = tuple(rng.choice(names) for _ in range(rng.randint(0, 4)))
            assert contains(artifact, calls) == (calls in plans)
            step = walk(artifact, calls)
            starts = {plan[: step.position + 1] for plan in plans}
            assert calls[: step.position] in {plan[: step.position] for plan in plans}
            assert step.position == len(calls) or calls[: step.position + 1] not in starts


def test_where_a_walk_ends_what_may_come_next_is_told(vec):
    step = walk(vec, ["a", "a"])
    assert (step.position, step.allowed) == (1, False)
    assert next_calls(vec, step) == ["b(k=1)", "b(k=2)", "c"]


@pytest.mark.parametrize("text", ["", "d", "b", "b(k=3)", "\ud800"])
def test_a_text_that_is_no_call_is_not_allowed(vec, text):
    assert walk(vec, [text]).position == 0


def test_deep_automata_need_no_deep_stack():
    deep = 3000
    rows = [(True, [])] + [(True, [(0, q), (1, q)]) for q in range(deep)]
    artifact = load(build(free_core([1, 2], deep), rows, tilt=0))
    assert len(cheapest_plan(artifact)) == 0
    assert len(plan_at(artifact, artifact.plans(artifact.root) - 1)) == deep
    assert [len(plan) for plan in enumerate_plans(artifact, 3)] == [0, 1, 2]
    assert plans_by_depth(artifact)[:3] == [1, 2, 4]


def test_counts_beyond_64_bits():
    rows = chain_rows(random.Random(1), 4, 80, 2)
    artifact = load(build(free_core([1, 2, 3, 4], 80), rows))
    assert plans_by_depth(artifact) == [0] * 80 + [4**80]
    index = 3**70
    assert plan_at(artifact, index) > plan_at(artifact, index - 1)


def test_plans_of_upper_artifacts_are_the_true_ones_each_once():
    rng = random.Random(8)
    for number in range(30):
        if number % 2:
            relaxed = random_relaxed(rng, 60)
            artifact = opened(relaxed.data, relaxed.rows, relaxed=relaxed.named)
            due = relaxed.plans
            names = [call.text for call in relaxed.core.calls]
        else:
            rows = random_network(rng, 2, 2, 2)
            artifact = opened(free_core([1, 2], 9), rows, nondeterministic=True)
            due, names = words_of(rows), "ab"
        found = list(enumerate_plans(artifact))
        key = [[call.encode() for call in plan] for plan in found]
        assert key == sorted(key)
        assert len(found) == len(set(found))
        assert set(found) == due
        assert list(enumerate_plans(artifact, 3)) == found[:3]
        assert list(enumerate_plans(artifact, 0)) == []
        for _ in range(30):
            calls = tuple(rng.choice(names) for _ in range(rng.randint(0, 4)))
            assert contains(artifact, calls) == (calls in due)
            step = walk(artifact, calls)
            going_on = next_calls(artifact, step)
            assert step.position == len(calls) or calls[step.position] not in going_on


def words_of(rows) -> set:
    found = []
    for accept, edges in rows:
        more = {("ab"[a], *word) for a, q in edges for word in found[q]}
        found.append(more | ({()} if accept else set()))
    return found[-1]


def test_where_counts_are_bounds_plans_have_no_places():
    artifact = opened(vec_core(), vec_rows(), round_counts=5)
    with pytest.raises(ValueError, match="bounds"):
        plan_at(artifact, 0)


def test_the_cheapest_plans_are_those_of_the_whole_list(drawn):
    for artifact, core, words in drawn:
        costs = [
            (sum(core.calls[call].cost_low for call in word), len(word), word) for word in words
        ]
        due = [(cost, texts(core, word)) for cost, _, word in sorted(costs)]
        assert list(cheapest_plans(artifact, len(words) + 1)) == due
        assert list(cheapest_plans(artifact, 3)) == due[:3]


def test_the_cheapest_plans_are_the_same_however_lengths_are_found(
    drawn, monkeypatch: pytest.MonkeyPatch
):
    for artifact, _, words in drawn:
        near = list(cheapest_plans(artifact, len(words) + 1)), cheapest_plan(artifact)
        monkeypatch.setattr(plans, "_NEAR", -1)
        assert (list(cheapest_plans(artifact, len(words) + 1)), cheapest_plan(artifact)) == near
        monkeypatch.undo()


def test_the_cheapest_plans_are_the_same_by_siblings_and_by_sets_of_states(drawn):
    for artifact, _, words in drawn:
        by_sets = list(_cheapest_by_sets(artifact, len(words) + 1))
        assert list(cheapest_plans(artifact, len(words) + 1)) == by_sets


def test_the_cheapest_plans_of_a_relaxed_artifact_meet_what_it_leaves_to_a_run():
    rng = random.Random(29)
    seen = 0
    for _ in range(20):
        relaxed = random_relaxed(rng, 60)
        artifact = opened(relaxed.data, relaxed.rows, relaxed=relaxed.named)
        cost = {call.text: call.cost_low for call in relaxed.core.calls}
        due = sorted(
            ((sum(cost[call] for call in plan), plan) for plan in relaxed.plans),
            key=lambda found: (found[0], len(found[1]), found[1]),
        )
        assert list(cheapest_plans(artifact, len(due) + 1)) == due
        seen += len(due) > 1
    assert seen > 2
