"""Grammars that explode: bounded in states, memory and time; and those that only look so."""

from __future__ import annotations

import tracemalloc
from functools import reduce

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.compiler.compiling import ABC, A, B, compiled, core, refused, wide
from tests.oracle.cores import at_most, count_at_most, depth

AB = ["call", {0, 1}]


def late(size: int) -> list:
    """An a that stands `size` calls before the end: 2^size states."""
    return ["seq", [["repeat", AB, 0], A, ["repeat", AB, size, size]]]


@pytest.mark.parametrize(
    "parts",
    [
        {"plan": late(30)},
        {"plan": late(30), "statements": [depth(200)]},
        {"plan": ["repeat", ["alt", [A, ["seq", [A, A]], B]], 0, 10**6]},
        {"plan": ["diff", ["repeat", AB, 0], [late(25)]], "statements": [depth(60)]},
        {"plan": ["and", [late(20), late(21), late(22)]], "statements": [depth(80)]},
        {
            "plan": ["rule", "r"],
            "rules": {
                "r": ["alt", [["seq", [A, ["rule", "r"], A]], ["seq", [B, ["rule", "r"], B]], A]]
            },
            "statements": [depth(61)],
        },
        {
            "plan": ["repeat", ["call", set(range(26))], 0],
            "size": 26,
            "statements": [count_at_most({t}, 1) for t in range(26)],
        },
    ],
)
@pytest.mark.sampled(3)
def test_an_explosion_ends_at_the_guard_in_bounded_memory(parts) -> None:
    tracemalloc.start()
    try:
        assert refused(core(**parts), purpose="run", max_states=2000).code == "TCC403"
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "plan",
    [
        "(((a{9,99}){9,99}){9,99}){9,99}",
        "(((a{9,99} b){9,99} a){9,99} b){9,99}",
        "(((a{0,10000}){0,10000}){0,10000}){0,10000}",
        "((((a{9,99} & any*){9,99} - b){9,99}){9,99}){9,99}",
        "((a{9,99} b?){9,99}){9,99}",
    ],
)
def test_counts_in_counts_end_in_a_code(plan: str) -> None:
    """A limit of 200,000 states, to be quick; the default takes ten times as long."""
    text = f'grammar g version "1"\ntool a\ntool b\nplan = {plan}\n'
    found = compile_text(text, Options(max_states=200_000))
    assert [item.code for item in found.diagnostics] == ["TCC403"]


def test_the_longest_plan_alone_may_be_beyond_the_limit() -> None:
    # 99^4 calls: no automaton is made to see this.
    text = 'grammar g version "1"\ntool a\nplan = (((a{9,99}){9,99}){9,99}){9,99}\n'
    (found,) = compile_text(text, Options()).diagnostics
    assert found.message == "the plan expression takes more than 2000000 states"


def test_many_before_rules_multiply_and_are_stopped() -> None:
    plan = ["repeat", ["call", set(range(24))], 0]
    requires = [["before", {2 * i}, {2 * i + 1}] for i in range(12)]
    data = core(plan, size=24, statements=[*requires, depth(30)])
    assert refused(data, max_states=2000).code == "TCC403"


def test_depth_saves_what_explodes_only_without_it() -> None:
    checked = compiled(core(late(20), statements=[depth(25)]), held=False)
    assert checked.plans[-1] == sum(2 ** (n - 1) for n in range(21, 26))


def test_nested_repeats_are_one_repeat() -> None:
    plan = reduce(lambda body, _: ["repeat", body, 0, 10**9], range(200), A)
    assert compiled(core(plan, statements=[depth(30)]), held=False).plans[-1] == 31


def test_a_huge_repeat_under_a_limit_costs_what_the_limit_leaves() -> None:
    assert compiled(core(["repeat", A, 0, 10**15], statements=[depth(50)])).plans[-1] == 51
    priced = {"amounts": {"price": [1, 0, 0]}, "statements": [at_most("price", 50)]}
    dear = core(["repeat", A, 0, 10**15], **priced)
    assert compiled(dear).plans[-1] == 51


def test_calls_that_nothing_tells_apart_cost_one() -> None:
    checked = compiled(wide(300, statements=[depth(60)]))
    assert checked.automaton.states == 61
    assert checked.plans[-1] == sum(300**n for n in range(61))


def test_ambiguity_counts_each_plan_once() -> None:
    ways = ["alt", [A, ["seq", [A, A]], ["repeat", A, 0], ABC]]
    checked = compiled(core(["repeat", ways, 0], statements=[depth(12)]))
    assert checked.plans[-1] == sum(3**n for n in range(13))
