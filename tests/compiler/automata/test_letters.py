"""Calls share a letter exactly when no statement tells them apart."""

from __future__ import annotations

from tcc_certs.policy.core import Core
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import read_core
from tcc_compiler.automata.letters import Letters, partition
from tests.compiler.compiling import core
from tests.oracle.cores import at_most, count_at_most, letters, make_core

ALL = ["call", {0, 1, 2, 3}]


def letters_of(found: Core) -> Letters:
    return partition(found, parts_of(found))


def groups(plan, **parts) -> list[tuple[int, ...]]:
    return list(letters_of(read_core(core(plan, size=4, **parts))).calls)


def test_one_pattern_of_all_calls_is_one_letter() -> None:
    assert groups(ALL) == [(0, 1, 2, 3)]


def test_patterns_split_calls_by_where_they_stand() -> None:
    assert groups(["alt", [["call", {0, 2}], ["call", {2, 3}]]]) == [(0,), (1,), (2,), (3,)]
    assert groups(["alt", [["call", {0, 1}], ["call", {2, 3}]]]) == [(0, 1), (2, 3)]


def test_an_amount_splits_only_under_a_limit_on_it() -> None:
    amounts = {"price": [1, 2, 1, 2], "cost": [5, 5, 7, 7]}
    assert groups(ALL, amounts=amounts) == [(0, 1, 2, 3)]
    assert groups(ALL, amounts=amounts, statements=[at_most("price", 3)]) == [(0, 2), (1, 3)]
    both = [at_most("cost", 3), at_most("price", 3)]
    assert groups(ALL, amounts=amounts, statements=both) == [(0,), (1,), (2,), (3,)]


def test_a_count_splits_off_what_it_counts() -> None:
    assert groups(ALL, statements=[count_at_most({1}, 2)]) == [(0, 2, 3), (1,)]


def test_a_table_splits_by_its_classes() -> None:
    assert groups(ALL, statements=[["before", {0}, {1, 2}]]) == [(0,), (1, 2), (3,)]


def test_signatures_split_under_start_and_goal_alone() -> None:
    parts = letters(3)
    for tool, (takes, gives) in zip(
        parts["tools"], [("x", "y"), ("y", "x"), ("x", "y")], strict=True
    ):
        tool["in"], tool["out"] = takes, gives
    plan = ["call", {0, 1, 2}]
    free = read_core(make_core(**parts, plan=plan))
    bound = read_core(make_core(**parts, plan=plan, start="x", goals=["y"]))
    assert letters_of(free).calls == ((0, 1, 2),)
    assert letters_of(bound).calls == ((0, 2), (1,))


def test_letters_cover_every_call_once() -> None:
    data = core(["alt", [["call", {0}], ["call", {1, 3}]]], size=4)
    found = letters_of(read_core(data))
    assert sorted(call for group in found.calls for call in group) == [0, 1, 2, 3]
    assert all(found.letter[call] == i for i, group in enumerate(found.calls) for call in group)
