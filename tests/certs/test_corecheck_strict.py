"""The automaton against a core with strict tools."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.corecheck.check import CoreReport, check_core
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tests.oracle.build import build
from tests.oracle.cores import call, depth, make_core
from tests.oracle.plans import meets_all, plans, words

KEY, RESULTS = {"name": "k", "values": ["1", "2"]}, {"name": "r", "values": ["no", "yes"]}
TOOLS: list[Any] = [
    {"name": "a"},
    {"name": "t", "fields": [KEY], "gives": [RESULTS], "strict": True},
    {"name": "z"},
]
CALLS = [call(0), *(call(1, [k, r]) for k in range(2) for r in range(2)), call(2)]
A, NO1, YES1, NO2, YES2, Z = range(6)
T1, T2 = {NO1, YES1}, {NO2, YES2}


def one(*calls: int) -> list[Any]:
    return ["call", set(calls)]


def strict_core(plan: Any, **members: Any) -> bytes:
    return make_core(tools=TOOLS, calls=CALLS, plan=plan, **members)


def verdict(core: bytes, found: list[tuple[int, ...]]) -> str:
    """VALID, or the code of the refusal, of the artifact of exactly these plans."""
    try:
        check_core(check(build(core, found, tilt=0)))
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def free_plans(core: Any) -> set[tuple[int, ...]]:
    """The plans before the cut, of at most three calls, of a core whose rules use no others."""
    rules = {name: words(core, body, {}, 3) for name, body in core.rules.items()}
    return {word for word in words(core, core.plan, rules, 3) if meets_all(core, word)}


# What strict leaves ----------------------------------------------------------------------------

LEFT: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "both answers go on": (["seq", [one(NO1, YES1), one(Z)]], [(NO1, Z), (YES1, Z)]),
    "one answer breaks off, another way is there": (
        ["alt", [["seq", [one(YES1), one(Z)]], one(A)]], [(A,)],
    ),
    "the other value of the chosen parameter stays": (
        ["alt", [one(YES1), one(NO2, YES2)]], [(NO2,), (YES2,)],
    ),
    "a cut goes back to where there is another way": (
        ["seq", [one(A), ["alt", [["seq", [one(*T1), one(A), one(YES2)]], one(Z)]]]], [(A, Z)],
    ),
    "a cut further on takes the answer before it with it": (
        ["alt", [["seq", [one(NO1), one(A)]], ["seq", [one(YES1), one(NO2)]], one(Z)]], [(Z,)],
    ),
    "answers go on in different ways": (
        ["alt", [["seq", [one(NO1), one(A)]], one(YES1)]], [(NO1, A), (YES1,)],
    ),
    "stopping is a way to go on": (
        ["seq", [one(*T1), ["repeat", ["seq", [one(YES2), one(Z)]], 0, 1]]], [(NO1,), (YES1,)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LEFT))
def test_strict_leaves_the_largest_part(name: str) -> None:
    plan, due = LEFT[name]
    core = strict_core(plan)
    assert plans(read_core(core), 4) == sorted(due)
    assert verdict(core, sorted(due)) == "VALID"
    free = sorted(free_plans(read_core(core)))
    if free != sorted(due):
        assert verdict(core, free) == "C901"
    for word in due:
        rest = [other for other in due if other != word]
        assert not rest or verdict(core, rest) in ("C901", "G101", "G102")


def test_what_was_cut_is_counted() -> None:
    plan, due = LEFT["a cut goes back to where there is another way"]
    report = check_core(check(build(strict_core(plan), due, tilt=0)))
    assert report == CoreReport(pairs=3, dead=0, cut=3)


def test_a_call_that_was_cut_without_need_is_missed_at_its_place() -> None:
    plan = ["seq", [one(A), ["alt", [["seq", [one(*T1), one(Z)]], one(Z)]]]]
    with pytest.raises(Rejected) as refusal:
        check_core(check(build(strict_core(plan), [(A, Z)], tilt=0)))
    assert (refusal.value.code, refusal.value.path) == ("G102", "state 1 after [a]")
    assert refusal.value.expected == "an edge: the core has a plan by a call that has none"


def test_without_strict_an_answer_may_break_off() -> None:
    loose = [TOOLS[0], {**TOOLS[1], "strict": None}, TOOLS[2]]
    loose[1] = {key: value for key, value in loose[1].items() if value is not None}
    plan = ["alt", [["seq", [one(YES1), one(Z)]], one(A)]]
    core = make_core(tools=loose, calls=CALLS, plan=plan)
    assert verdict(core, [(A,), (YES1, Z)]) == "VALID"
    assert verdict(core, [(A,)]) == "G102"


def test_a_core_that_lacks_an_answer_has_no_strict_call_of_it() -> None:
    calls = [CALLS[i] for i in (A, YES1, NO2, YES2, Z)]
    core = make_core(tools=TOOLS, calls=calls, plan=["call", {0, 1, 2, 3}])
    assert plans(read_core(core), 2) == [(0,), (2,), (3,)]
    assert verdict(core, [(0,), (2,), (3,)]) == "VALID"
    assert verdict(core, [(0,), (1,), (2,), (3,)]) == "C901"
    assert verdict(core, [(0,)]) == "G102"


@pytest.mark.parametrize(("answers", "expected"), [([YES1], "VALID"), ([NO1, YES1], "G102")])
def test_infinitely_many_plans_before_the_cut(answers: list[int], expected: str) -> None:
    # If an answer breaks off, what goes round for ever before it has no end left.
    plan = ["alt", [one(A), ["seq", [["repeat", one(Z), 0], one(*answers)]]]]
    assert verdict(strict_core(plan), [(A,)]) == expected


# C9 --------------------------------------------------------------------------------------------


def test_an_edge_without_its_sister_is_named() -> None:
    core = strict_core(["seq", [one(A), one(NO1, YES1, NO2)]])
    with pytest.raises(Rejected) as refusal:
        check(build(core, [(A, NO1), (A, YES1), (A, NO2)], tilt=0))
    found = refusal.value
    assert (found.code, found.path) == ("C901", "edge_call[2]")
    assert (found.expected, found.found) == ("an edge for each of 2 answers to t(k=2)", "1")


def test_strict_is_refused_with_features_that_make_the_automaton_wider() -> None:
    core = strict_core(one(*T1), statements=[depth(2)])
    for features, held in (
        ({"nondeterministic": True}, False),
        ({"relaxed": (0,)}, False),
        ({"round_counts": 4}, True),
        ({}, True),
    ):
        data = build(core, [(NO1,), (YES1,)], tilt=0, **features)
        if held:
            assert check_core(check(data)).cut == 0
            continue
        with pytest.raises(Rejected) as refusal:
            check(data)
        assert (refusal.value.code, refusal.value.path) == ("C902", "manifest.critical")
