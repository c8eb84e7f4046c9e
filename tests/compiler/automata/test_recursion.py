"""Recursion that needs a bound: which limits bound it, and what is said where none does."""

from __future__ import annotations

import pytest

from tests.compiler.compiling import (
    ABC,
    NESTED,
    A,
    B,
    C,
    R,
    compiled,
    core,
    recursive,
    refused,
    words,
)
from tests.oracle.cores import at_most, count_at_most, depth

ANY = ["repeat", ABC, 0]
PRICED = {"price": [1, 0, 0]}


def nested(most: int) -> set[str]:
    return {"a" * n + "c" + "b" * n for n in range(most + 1)}


def test_depth_bounds_recursion() -> None:
    assert words(compiled(recursive(NESTED, statements=[depth(60)]))) == nested(29)


def test_a_price_on_one_side_bounds_recursion() -> None:
    assert words(compiled(recursive(NESTED, statements=[at_most("price", 7)], amounts=PRICED))) == (
        nested(7)
    )


@pytest.mark.parametrize("tool", [0, 1])
def test_a_count_of_either_side_bound_recursion(tool: int) -> None:
    assert words(compiled(recursive(NESTED, statements=[count_at_most({tool}, 3)]))) == nested(3)


@pytest.mark.parametrize("side", [{0}, {1}])
def test_a_forbidden_pair_bounds_recursion_without_any_limit(side: set[int]) -> None:
    data = recursive(NESTED, statements=[["never next", side, side]])
    assert words(compiled(data, held=False)) == nested(1)


def test_a_repeat_that_reads_nothing_is_no_cycle_of_plans() -> None:
    # The body of the repeat may be empty, and its only call is forbidden.
    idle = ["repeat", ["alt", [["empty"], ["call", {3}]]], 0]
    body = ["alt", [["seq", [A, idle, R, B]], C]]
    data = recursive(body, size=4, statements=[["never", {3}], ["never next", {1}, {1}]])
    assert words(compiled(data, held=False)) == nested(1)


def test_a_finite_operand_bounds_recursion() -> None:
    plan = ["and", [R, ["repeat", ABC, 0, 9]]]
    assert words(compiled(core(plan, rules={"r": NESTED}))) == nested(4)


def test_sums_of_several_limits_bound_what_no_single_one_does() -> None:
    body = ["alt", [["seq", [["call", {0, 1}], R, ["call", {3}]]], C]]
    statements = [count_at_most({0}, 1), count_at_most({1}, 2)]
    checked = compiled(recursive(body, size=4, statements=statements))
    assert max(map(len, words(checked))) == 7
    assert checked.plans[-1] == sum(1 for _ in words(checked)) == 9


def test_unbounded_recursion_shows_the_calls_on_both_sides() -> None:
    diagnostic = refused(recursive(NESTED))
    assert diagnostic.code == "TCC401"
    assert "`a` ... `b` can be repeated for ever, one inside the other" in diagnostic.message
    assert diagnostic.hint == (
        "add `limit depth <= N` or `limit count(a) <= N` or `limit count(b) <= N`"
    )


def test_a_limit_that_counts_neither_side_bounds_nothing() -> None:
    assert refused(recursive(NESTED, statements=[count_at_most({2}, 1)])).code == "TCC401"


def test_mutual_recursion_shows_both_rules_calls() -> None:
    rules = {
        "p": ["alt", [["seq", [A, ["rule", "q"], B]], C]],
        "q": ["alt", [["seq", [B, ["rule", "p"], A]], C]],
    }
    diagnostic = refused(core(["rule", "p"], rules=rules))
    assert diagnostic.code == "TCC401"
    assert "`a b` ... `b a`" in diagnostic.message
    bounded = words(compiled(core(["rule", "p"], rules=rules, statements=[depth(5)])))
    assert bounded == {"c", "acb", "abcab"}


def test_recursion_through_both_operands_is_bounded_by_depth() -> None:
    body = ["alt", [["seq", [A, ["and", [R, ["repeat", ABC, 1]]], B]], C]]
    assert words(compiled(recursive(body, statements=[depth(9)]))) == nested(4)


def test_recursion_under_a_difference_is_bounded_by_depth_and_by_price() -> None:
    body = ["alt", [["seq", [A, ["diff", R, [C]], B]], C, ["seq", [A, A]]]]
    deep = words(compiled(recursive(body, statements=[depth(8)])))
    assert deep == {"c", "aa", "aaab", "aaaabb", "aaaaabbb"}
    priced = words(compiled(recursive(body, statements=[at_most("price", 5)], amounts=PRICED)))
    assert priced == deep


def test_undecided_recursion_asks_for_depth() -> None:
    body = ["alt", [["seq", [A, ["and", [R, ANY]], B]], C]]
    diagnostic = refused(recursive(body))
    assert (diagnostic.code, diagnostic.hint) == ("TCC406", "add `limit depth <= N`")


def test_two_recursions_side_by_side() -> None:
    body = ["alt", [["seq", [A, R, R]], B]]
    plans = words(compiled(recursive(body, statements=[depth(7)])))
    # Trees with n inner nodes: the Catalan numbers 1, 1, 2, 5.
    assert sorted(map(len, plans)) == [1, 3, 5, 5, 7, 7, 7, 7, 7]


def test_a_rule_that_never_ends_gives_no_plan() -> None:
    assert refused(recursive(["seq", [A, R]])).code == "TCC402"


def test_right_recursion_is_a_plain_cycle() -> None:
    diagnostic = refused(recursive(["alt", [["seq", [A, B, R]], C]]))
    assert diagnostic.code == "TCC401"
    assert "`a b` can be repeated for ever" in diagnostic.message


def test_a_chain_of_ten_thousand_rules() -> None:
    last = 10_000
    rules = {f"r{i:05}": ["seq", [A, ["rule", f"r{i + 1:05}"]]] for i in range(last)}
    rules[f"r{last:05}"] = B
    data = core(["rule", "r00000"], rules=rules, statements=[at_most("price", 3)])
    assert refused(data, max_states=500).code == "TCC403"
    flat = {f"r{i:05}": ["rule", f"r{i + 1:05}"] for i in range(last)}
    flat[f"r{last:05}"] = B
    assert words(compiled(core(["rule", "r00000"], rules=flat))) == {"b"}


def test_a_chain_of_operands() -> None:
    last = 1000
    rules = {f"r{i:05}": ["and", [["rule", f"r{i + 1:05}"], ANY]] for i in range(last)}
    rules[f"r{last:05}"] = B
    assert words(compiled(core(["rule", "r00000"], rules=rules))) == {"b"}
