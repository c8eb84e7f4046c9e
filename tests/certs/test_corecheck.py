"""The automaton against its core: exact on random cores, quick on the hard ones, never a hang."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from tcc_certs.corecheck.check import CoreReport, check_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import large
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import (
    at_most,
    call,
    count_at_least,
    count_at_most,
    depth,
    letters,
    make_core,
    random_core,
)
from tests.oracle.plans import plans

A, B, C, D = (["call", {i}] for i in range(4))
ANY = ["repeat", ["call", {0, 1, 2, 3}], 0]


def verdict(core: bytes, words: list[tuple[int, ...]]) -> str:
    """VALID, or the code of the refusal, of the artifact of exactly these plans."""
    checked = check(build(core, words))
    try:
        check_core(checked)
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def compared(core: bytes, root: Node, seconds: float = 20) -> CoreReport:
    """The report on the graph's artifact, made within a time."""
    checked = check(build_graph(core, root, tilt=0))
    before = time.process_time()
    report = check_core(checked)
    assert time.process_time() - before < seconds
    return report


def chain(size: int, calls: list[int], accept: bool = True) -> Node:
    """`size` calls one after the other, each any of `calls`."""
    node = Node(accept=True)
    for _ in range(size):
        node = Node(accept=accept, children=dict.fromkeys(calls, node))
    return node


def agree_and_differ(rng: random.Random, rounds: int) -> tuple[int, dict[str, int]]:
    """Random cores: their own plans are VALID, one plan more or less is refused."""
    valid, refused = 0, {"G101": 0, "G102": 0}
    for _ in range(rounds):
        data, core = random_core(rng)
        words = plans(core, 5)
        if words:
            assert verdict(data, words) == "VALID", data
            valid += 1
        for _ in range(2):
            forged = set(words)
            if rng.random() < 0.5 and len(words) > 1:
                forged.remove(rng.choice(words))
            else:
                size = len(core.calls)
                forged.add(tuple(rng.randrange(size) for _ in range(rng.randint(0, 5))))
            if forged != set(words):
                refused[verdict(data, sorted(forged))] += 1
    return valid, refused


def test_random_cores_agree_with_the_oracle_and_with_nothing_else() -> None:
    valid, refused = agree_and_differ(random.Random(7), 180)
    print(f"{valid} artifacts valid, {refused} forged ones refused")
    assert valid > 50 and min(refused.values()) > 50


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_random_cores_agree_with_the_oracle(seed: int) -> None:
    agree_and_differ(random.Random(seed), 1000)


def test_names_the_state_and_the_calls_before_it() -> None:
    core = make_core(**letters(2), plan=["seq", [A, B, ["repeat", A, 0, 1]]])
    checked = check(build(core, [(0, 1)]))
    with pytest.raises(Rejected) as refusal:
        check_core(checked)
    assert (refusal.value.code, refusal.value.path) == ("G102", "state 0 after [a b]")
    checked = check(build(core, [(0, 1), (0, 1, 0), (0,)]))
    with pytest.raises(Rejected) as refusal:
        check_core(checked)
    assert (refusal.value.code, refusal.value.path) == ("G101", "state 2 after [a]")


def test_refuses_a_core_without_plans() -> None:
    core = make_core(**letters(2), plan=["and", [A, B]])
    assert verdict(core, [(0,)]) in ("G101", "G102")


def test_sees_a_call_that_only_some_of_its_like_may_make() -> None:
    core = make_core(**letters(3), plan=["call", {0, 1, 2}])
    assert verdict(core, [(0,), (1,), (2,)]) == "VALID"
    assert verdict(core, [(0,), (2,)]) == "G102"


def test_any_of_depth_60_takes_one_pair_a_state() -> None:
    report = compared(
        make_core(**letters(4), plan=ANY, statements=[depth(60)]), chain(60, [0, 1, 2, 3]), 2
    )
    assert report == CoreReport(pairs=61, dead=0)


def test_three_hundred_calls_a_state_are_as_cheap_as_one() -> None:
    tools = [{"name": "t", "fields": [{"name": "k", "values": [str(i) for i in range(300)]}]}]
    calls = sorted((call(0, [i], cost=i) for i in range(300)), key=lambda c: f"t(k={c[1][0]})")
    plan = ["repeat", ["call", set(range(300))], 0]
    core = make_core(tools=tools, calls=calls, plan=plan, statements=[depth(60)])
    assert compared(core, chain(60, list(range(300))), 3).pairs == 61


@pytest.mark.parametrize("prices", [[1, 2, 3, 4], [0, 2, 3, 4]])
def test_a_price_limit_beside_a_depth_limit(prices: list[int]) -> None:
    most, price = 30, 60
    nodes: dict[tuple[int, int], Node] = {}
    for left in range(most + 1):
        for money in range(price + 1):
            children = {
                c: nodes[left - 1, money - p] for c, p in enumerate(prices) if left and p <= money
            }
            nodes[left, money] = Node(accept=True, children=children)
    limits = [depth(most), at_most("price", price)]
    core = make_core(**letters(4, price=prices), plan=ANY, statements=limits)
    compared(core, nodes[most, price], 5)


def nested(most: int) -> Node:
    """``a^n b^n`` of at most `most` calls."""
    closing = [Node(accept=True)]
    for _ in range(most):
        closing.append(Node(children={1: closing[-1]}))
    node: Node | None = None
    for open_calls in range(most // 2, -1, -1):
        children = {} if node is None else {0: node}
        if open_calls:
            children[1] = closing[open_calls - 1]
        node = Node(accept=open_calls == 0, children=children)
    assert node is not None
    return node


def test_centre_recursion_under_a_depth_limit() -> None:
    rules = {"s": ["alt", [["empty"], ["seq", [A, ["rule", "s"], B]]]]}
    core = make_core(**letters(2), plan=["rule", "s"], rules=rules, statements=[depth(60)])
    assert compared(core, nested(60), 2).pairs == 61


def test_large_repeats_are_counted_and_not_written_out() -> None:
    core = make_core(**letters(2), plan=["repeat", A, 0, 10**15], statements=[depth(400)])
    assert compared(core, chain(400, [0]), 3).pairs == 401
    core = make_core(**letters(2), plan=["repeat", A, 2000, 2000])
    assert compared(core, chain(2000, [0], accept=False), 5).pairs == 2001
    core = make_core(
        **letters(2),
        plan=["repeat", ["repeat", A, 10**15, 10**15], 0, 10**15],
        statements=[depth(5)],
    )
    assert verdict(core, [()]) == "VALID"


@pytest.mark.parametrize("deep", [False, True])
def test_chains_of_ten_thousand_rules(deep: bool) -> None:
    size = 10_000
    step = (lambda rest: ["seq", [A, rest]]) if deep else (lambda rest: rest)
    rules: dict[str, Any] = {f"r{i:05}": step(["rule", f"r{i + 1:05}"]) for i in range(size)}
    rules[f"r{size:05}"] = A
    core = make_core(**letters(1), plan=["rule", "r00000"], rules=rules)
    assert compared(core, chain(size * deep + 1, [0], accept=False)).pairs == size * deep + 2


def test_a_difference_that_forbids_a_factor() -> None:
    factor = ["seq", [ANY, A, B, ANY]]
    core = make_core(**letters(4), plan=["diff", ANY, [factor]], statements=[depth(40)])
    nodes: dict[tuple[int, bool], Node] = {}
    for left in range(41):
        for after_a in (False, True):
            children = {
                c: nodes[left - 1, c == 0] for c in range(4) if left and not (after_a and c == 1)
            }
            nodes[left, after_a] = Node(accept=True, children=children)
    compared(core, nodes[40, False], 5)


def test_a_side_that_never_finishes_is_searched_to_its_end() -> None:
    some = ["repeat", ["call", {0, 1}], 0]
    never = ["and", [["seq", [some, C]], ["seq", [some, D]]]]
    limits = [depth(60), at_most("price", 200)]
    core = make_core(
        **letters(4, price=[1, 2, 3, 4]), plan=["alt", [["seq", [A, D]], never]], statements=limits
    )
    assert check_core(check(build(core, [(0, 3)]))).dead > 50


def test_a_sum_with_negative_costs_is_bounded_after_each_call() -> None:
    core = make_core(
        **letters(2, cost=[5, -3]),
        plan=["repeat", ["call", {0, 1}], 0],
        statements=[at_most("cost", 4), depth(4)],
    )
    words = plans(read_core(core), 4)
    assert (1, 0, 1, 1) in words and (0, 1) not in words
    assert verdict(core, words) == "VALID"
    assert verdict(core, [word for word in words if word != (1, 0, 1, 1)]) in ("G101", "G102")
    assert verdict(core, [*words, (0, 1)]) in ("G101", "G102")


def test_the_largest_amounts_do_not_wrap() -> None:
    most = 2**64 - 1
    parts = letters(2)
    for entry in parts["calls"]:
        entry[4] = large(most)
    limit = at_most("price", 2**63 - 1)
    core = make_core(**parts, plan=["repeat", ["call", {0, 1}], 0, 1], statements=[limit])
    assert verdict(core, [()]) == "VALID"
    assert verdict(core, [(), (0,), (1,)]) in ("G101", "G102")


def test_declines_a_core_whose_residuals_explode() -> None:
    # The n-th call from the end: every residual remembers n calls.
    tail = ["repeat", ["call", {0, 1}], 40, 40]
    core = make_core(
        **letters(2),
        plan=["seq", [["repeat", ["call", {0, 1}], 0], A, tail]],
        statements=[depth(90)],
    )
    checked = check(build_graph(core, chain(50, [0, 1], accept=False)))
    with pytest.raises(Rejected) as refusal:
        check_core(checked, pairs=20_000, steps=500_000)
    assert refusal.value.code == "D201"


def test_declines_an_endless_dead_side() -> None:
    # b may follow for ever and never finish: a^n b^n has no residual twice.
    rules = {"s": ["alt", [["empty"], ["seq", [A, ["rule", "s"], B]]]]}
    never = ["and", [["rule", "s"], ["seq", [["repeat", A, 0], C]]]]
    core = make_core(**letters(3), plan=["alt", [B, never]], rules=rules)
    checked = check(build(core, [(1,)]))
    with pytest.raises(Rejected) as refusal:
        check_core(checked, pairs=10_000)
    assert refusal.value.code == "D201"


def test_declines_patterns_that_are_too_large_together() -> None:
    core = make_core(**letters(4), plan=ANY, statements=[depth(2)])
    checked = check(build_graph(core, chain(2, [0, 1, 2, 3])))
    with pytest.raises(Rejected) as refusal:
        check_core(checked, steps=3)
    assert refusal.value.code == "D201"


def test_counts_from_below_and_from_above() -> None:
    limits = [depth(3), count_at_most({0}, 2), count_at_least({1}, 1)]
    core = make_core(**letters(2), plan=["repeat", ["call", {0, 1}], 0], statements=limits)
    assert verdict(core, plans(read_core(core), 3)) == "VALID"
