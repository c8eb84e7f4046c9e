"""Relaxed and nondeterministic artifacts against their cores."""

from __future__ import annotations

import random
import time

import pytest

from tcc_certs.corecheck.check import check_core
from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import read_core
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import (
    at_most,
    count_at_least,
    count_at_most,
    depth,
    letters,
    make_core,
    random_core,
)
from tests.oracle.network import Network, build_network, build_relaxed, without
from tests.oracle.plans import plans

A, B, AB = (["call", set(calls)] for calls in ((0,), (1,), (0, 1)))


def verdict(data: bytes, **bounds: int) -> str:
    """VALID, or the code of the refusal."""
    checked = check(data)
    try:
        check_core(checked, **bounds)
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def some_relaxed(rng: random.Random, core: Core) -> tuple[int, ...]:
    """Some statements that may be relaxed, the depth aside."""
    free = [
        part.number
        for part in parts_of(core)
        if part.place != "gate" and not part.text.startswith("limit depth")
    ]
    return tuple([number for number in free if rng.random() < 0.6])


def agree(rng: random.Random, rounds: int) -> dict[str, int]:
    """Random cores: their graphs of partial derivatives and their relaxed automata are VALID."""
    done = {"nondeterministic": 0, "relaxed": 0, "both": 0}
    for _ in range(rounds):
        most = rng.choice((2, 3, 3, 4))
        data, core = random_core(rng, most)
        relaxed = some_relaxed(rng, core) if rng.random() < 0.5 else ()
        found = build_network(data, most, relaxed)
        if found is not None:
            assert verdict(found) == "VALID", (data, relaxed)
            done["both" if relaxed else "nondeterministic"] += 1
            if relaxed:
                assert verdict(build_relaxed(data, relaxed, most)) == "VALID", (data, relaxed)
                done["relaxed"] += 1
    return done


def test_random_cores_agree_with_graphs_written_out_from_trees() -> None:
    done = agree(random.Random(5), 300)
    print(done)
    assert min(done.values()) > 20


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_random_cores_agree_with_graphs_written_out_from_trees(seed: int) -> None:
    agree(random.Random(f"upper {seed}"), 1000)


def test_a_relaxed_automaton_with_the_limit_in_it_is_refused() -> None:
    core = make_core(
        **letters(2, price=[1, 0]),
        plan=["repeat", AB, 0],
        statements=[depth(3), at_most("price", 1)],
    )
    data = build(core, plans(read_core(core), 3), relaxed=(1,))
    assert verdict(data) == "G102"
    assert verdict(build(core, plans(read_core(core), 3))) == "VALID"
    # And the other way round: what is not in the automaton has to be named.
    everything = plans(without(read_core(core), (1,)), 3)
    assert verdict(build(core, everything)) == "G102"
    assert verdict(build(core, everything, relaxed=(1,))) == "VALID"


@pytest.mark.parametrize("form", ["before", "never before"])
def test_relaxed_tables_are_left_out(form: str) -> None:
    statements = [depth(2), [form, {0}, {1}]]
    core = make_core(**letters(2), plan=["repeat", AB, 0], statements=statements)
    assert verdict(build_relaxed(core, (1,), 2)) == "VALID"


def graph(core: bytes, most: int = 3) -> Node:
    root = Network(read_core(core), most).root()
    assert root is not None
    return root


def ambiguous() -> bytes:
    """``(a|b)* a (a|b)*``, at most three calls."""
    plan = ["seq", [["repeat", AB, 0], A, ["repeat", AB, 0]]]
    return make_core(**letters(2), plan=plan, statements=[depth(3)])


def test_a_deterministic_automaton_is_not_the_graph() -> None:
    core = ambiguous()
    found = build(core, plans(read_core(core), 3), nondeterministic=True)
    assert verdict(found) == "G103"
    assert verdict(build_graph(core, graph(core), nondeterministic=True)) == "VALID"


def test_a_graph_that_lacks_an_edge_or_has_one_more_is_refused() -> None:
    core = ambiguous()
    for change in (
        lambda node: node.twins.pop(),
        lambda node: node.twins.append((1, Node(accept=True))),
    ):
        root = graph(core)
        change(root)
        assert verdict(build_graph(core, root, nondeterministic=True)) == "G103"


def test_a_graph_that_counts_a_plan_twice_is_refused() -> None:
    # The same plans as the core's, and one derivation more: an upper bound, but not this core's.
    core = make_core(**letters(2), plan=["seq", [A, ["repeat", B, 0, 1]]], statements=[depth(2)])
    root = graph(core, 2)
    root.twins.append((0, Node(accept=True)))
    data = build_graph(core, root, nondeterministic=True)
    assert check(data).plans[-1] == 3 and verdict(data) == "G103"


def test_twin_members_of_an_intersection_choose_twice() -> None:
    # a (a|b) | a (b|c): both choose, and b alone is what two unlike choices have in common.
    twice = ["alt", [["seq", [A, AB]], ["seq", [A, ["call", {1, 2}]]]]]
    one = make_core(**letters(3), plan=twice, statements=[depth(3)])
    both = make_core(**letters(3), plan=["and", [twice, twice]], statements=[depth(3)])
    found = [check(build_graph(core, graph(core), nondeterministic=True)) for core in (one, both)]
    assert [checked.plans[-1] for checked in found] == [4, 5]
    assert [check_core(checked).pairs > 0 for checked in found] == [True, True]


@pytest.mark.parametrize(
    "options",
    [
        {"plan": A, "statements": [count_at_least({0}, 2)]},
        {"plan": ["call", set()]},
        {"plan": ["and", [["seq", [A, A]], ["seq", [A, B]]]], "statements": [depth(2)]},
    ],
    ids=["none by a limit", "none at all", "none after a call"],
)
def test_a_core_without_a_plan_has_no_graph(options) -> None:
    core = make_core(**letters(2), **options)
    data = build_graph(core, Node(children={0: Node(accept=True)}), nondeterministic=True)
    with pytest.raises(Rejected) as refusal:
        check_core(check(data))
    assert (refusal.value.code, refusal.value.expected) == ("G103", "a core with a plan")


def test_a_core_without_end_has_no_graph() -> None:
    core = make_core(**letters(1), plan=["repeat", A, 0])
    data = build_graph(core, Node(accept=True), nondeterministic=True)
    assert verdict(data) == "G103"
    relaxed = make_core(**letters(1), plan=["repeat", A, 0], statements=[depth(1)])
    leaf = Node(accept=True, children={0: Node(accept=True)})
    found = build_graph(relaxed, leaf, nondeterministic=True, relaxed=(0,))
    assert verdict(found) == "G103"


@pytest.mark.parametrize("bounds", [{"pairs": 3}, {"steps": 20}])
def test_past_a_bound_the_graph_is_declined(bounds: dict[str, int]) -> None:
    data = build_graph(ambiguous(), graph(ambiguous()), nondeterministic=True)
    assert verdict(data, **bounds) == "D201"


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_bound_on_what_is_met_is_the_greatest_number_that_may_be_met(deterministic) -> None:
    # A price that can be overdrawn leaves residuals without a plan behind.
    core = make_core(
        **letters(2, price=[2, 1]),
        plan=["seq", [["repeat", AB, 0], ["diff", AB, [B]], ["repeat", B, 0, 2]]],
        statements=[depth(4), at_most("price", 5)],
    )
    words = plans(read_core(core), 4)
    data = build(core, words) if deterministic else build_network(core, 4)
    assert data is not None
    report = check_core(check(data))
    met = report.pairs + report.dead
    assert verdict(data, pairs=met) == "VALID"
    assert verdict(data, pairs=met - 1) == "D201"


def everything() -> bytes:
    """A core with an expression and a statement of every kind, and a rule that reaches itself."""
    rule = ["alt", [["seq", [A, ["rule", "r"], B]], ["repeat", AB, 1, 2]]]
    return make_core(
        **letters(3, price=[2, 1, 0]),
        plan=["seq", [["and", [["rule", "r"], ["repeat", AB, 0]]],
                      ["diff", ["repeat", ["call", {1, 2}], 0], [["seq", [B, B]], ["empty"]]]]],
        rules={"r": rule},
        statements=[depth(4), at_most("price", 5), count_at_most({1}, 2), ["after", {1, 2}, {0}],
                    ["never next", {0}, {1}], ["never with", {0}, {2}]],
    )  # fmt: skip


@pytest.mark.parametrize(("deterministic", "work"), [(True, 830), (False, 1101)])
def test_work_is_counted_to_the_unit(deterministic: bool, work: int) -> None:
    # The numbers follow from what counts as a step; a step that is not counted changes them.
    core = everything()
    data = build(core, plans(read_core(core), 4)) if deterministic else build_network(core, 4)
    assert data is not None
    assert verdict(data, steps=work) == "VALID"
    assert verdict(data, steps=work - 1) == "D201"


def test_a_budget_may_be_spent_to_the_last_unit() -> None:
    budget = WorkBudget(3)
    budget.spend(2)
    budget.spend(1)
    with pytest.raises(Rejected, match="D201"):
        budget.spend(1)


def test_recursion_without_end_is_declined_in_time() -> None:
    core = make_core(
        **letters(2), plan=["rule", "r"], rules={"r": ["alt", [["seq", [A, ["rule", "r"], B]], B]]}
    )
    data = build_graph(core, Node(children={1: Node(accept=True)}), nondeterministic=True)
    before = time.process_time()
    assert verdict(data, steps=200_000) == "D201"
    assert time.process_time() - before < 20


def test_a_wide_intersection_is_declined_in_time() -> None:
    tail = [["repeat", AB, 0] for _ in range(6)]
    many = ["seq", [part for pair in zip(tail, [A] * 6, strict=True) for part in pair]]
    core = make_core(**letters(2), plan=["and", [many] * 9], statements=[depth(20)])
    data = build_graph(core, Node(accept=True), nondeterministic=True)
    before = time.process_time()
    assert verdict(data, steps=500_000) == "D201"
    assert time.process_time() - before < 20
