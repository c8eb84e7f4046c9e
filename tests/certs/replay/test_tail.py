"""The tail of a truncated run against a list of all longer plans."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tcc_certs.replay import closing
from tcc_certs.replay.closing import tail_lse, tail_steps
from tcc_certs.replay.language import read_language
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import depth, letters, make_core
from tests.oracle_ledger.numbers import log_sum
from tests.oracle_ledger.upper import drawn_upper
from tests.oracle_ledger.writer import Plan, Reference

NANO = 10**9


def test_tails_are_the_least_numbers_not_below():
    rng = random.Random(91)
    tried = 0
    for _ in range(80):
        checked = drawn_upper(rng).checked
        language = read_language(checked)
        for calls in range(language.rank(language.root)):
            due = log_sum(Reference(checked, Plan(mode="surrogate", truncate=calls)).longer())
            assert tail_lse(language, calls) == due
            tried += 1
    assert tried > 100


def listed(costs: list[int], beta: str, longest: int = 1):
    """One plan a call, and the empty one."""
    core = make_core(
        **letters(len(costs), cost=costs),
        plan=["repeat", ["call", set(range(len(costs)))], 0, longest],
        statements=[depth(longest)],
    )
    words = [(), *[(at,) for at in range(len(costs))]]
    assert len(read_core(core).calls) == len(costs)
    return read_language(check(build(core, words, beta=beta)))


@pytest.mark.parametrize(
    ("cost", "beta", "due"),
    [(0, "1", 0), (NANO, "1", -(2**64)), (-3 * NANO, "0.5", 3 * 2**63), (5, "0", 0)],
)
def test_one_longer_plan_has_its_score(cost, beta, due):
    assert tail_lse(listed([cost], beta), 0) == due


def test_a_score_that_is_no_dyadic_number_is_rounded_up():
    assert tail_lse(listed([NANO // 10], "1"), 0) == -(2**64 // 10)
    assert tail_lse(listed([-NANO // 10], "1"), 0) == 2**64 // 10 + 1


def test_two_plans_of_score_0_have_ln_2():
    assert tail_lse(listed([0, 0], "1"), 0) == log_sum([Fraction(0), Fraction(0)])
    assert tail_lse(listed([1, 2], "0"), 0) == 12786308645202655660  # ln 2 * 2^64, rounded up


@pytest.mark.parametrize("far", [30 * NANO, 60 * NANO, 10**12, 10**15, 2 * 10**18])
def test_a_sum_that_one_plan_dominates_lies_above_its_score(far):
    # e^-far is far below 2^-64, at last below any precision: the sum still is more than 1.
    bits = 1 if far > 45 * NANO else None
    found = tail_lse(listed([0, far], "1"), 0)
    assert found == bits if bits else 1 <= found < 2**64


def test_great_exponents_need_no_great_numbers():
    # Four calls of cost -5 * 10^8 each, so that the sum has more than 10^9 bits.
    core = make_core(
        **letters(2, cost=[-5 * 10**17, -5 * 10**17 + NANO]),
        plan=["repeat", ["call", {0, 1}], 0, 4],
        statements=[depth(4)],
    )
    node = Node(accept=True)
    for _ in range(4):
        node = Node(accept=True, children={0: node, 1: node})
    language = read_language(check(build_graph(core, node, "1", 0)))
    found = tail_lse(language, 3)
    # T = 4 * (5 * 10^8 + ln(1 + 1/e)).
    assert found >> 64 == 2 * 10**9 + 1
    assert (found >> 54) & 1023 == int((4 * 0.3132616875182228 - 1) * 1024)


def test_steps_are_counted_for_each_number_of_calls_that_leaves_it_open():
    # Three letters, at most two calls: rows of rank 0, 1 and 2, all of which accept.
    core = make_core(
        **letters(3), plan=["repeat", ["call", {0, 1, 2}], 0, 2], statements=[depth(2)]
    )  # fmt: skip
    node = Node(accept=True)
    for _ in range(2):
        node = Node(accept=True, children=dict.fromkeys(range(3), node))
    rows = check(build_graph(core, node, "1", 0)).automaton
    fewest = closing._fewest(rows)
    assert fewest == [0, 0, 0]
    assert [tail_steps(rows, fewest, calls) for calls in range(4)] == [3, 6, 0, 0]
    assert [tail_steps(rows, fewest, calls, (1,)) for calls in range(3)] == [3, 0, 0]


@pytest.mark.parametrize("more", [0, 1])
def test_a_tail_of_too_many_steps_is_declined(more, monkeypatch):
    core = make_core(
        **letters(3), plan=["repeat", ["call", {0, 1, 2}], 0, 2], statements=[depth(2)]
    )  # fmt: skip
    node = Node(accept=True)
    for _ in range(2):
        node = Node(accept=True, children=dict.fromkeys(range(3), node))
    language = read_language(check(build_graph(core, node, "1", 0)))
    edges = len(language.automaton.edge_call)
    assert edges == 6
    monkeypatch.setattr(closing, "TAIL_STEPS_PER_EDGE", 0)
    monkeypatch.setattr(closing, "FREE_TAIL_STEPS", 6 - more)
    if not more:
        assert tail_lse(language, 1) > 0
        return
    with pytest.raises(Rejected) as caught:
        tail_lse(language, 1)
    found = caught.value
    assert (found.code.value, found.path, found.found) == ("D201", "tail_lse", "6")
    monkeypatch.setattr(closing, "TAIL_STEPS_PER_EDGE", 1)
    assert tail_lse(language, 1) > 0


def test_a_tail_is_held_above_the_least_number_and_declined_above_the_greatest():
    for value in (Q64_MIN, 0, Q64_MAX):
        assert closing._within(value) == value
    assert closing._within(Q64_MIN - 1) == Q64_MIN
    with pytest.raises(Rejected) as caught:
        closing._within(Q64_MAX + 1)
    assert (caught.value.code.value, caught.value.path) == ("D202", "tail_lse")


def test_only_states_that_have_a_longer_plan_count_among_the_first_ones():
    # Of two states after a prefix one has a plan of 2 calls, at no cost, the other one of 1 call.
    core = make_core(**letters(1), plan=["repeat", ["call", {0}], 2, 2], statements=[depth(2)])
    node = Node(accept=True)
    for _ in range(2):
        node = Node(accept=False, children={0: node})
    language = read_language(check(build_graph(core, node, "1", 0)))
    assert list(language.automaton.rank) == [0, 1, 2]
    assert tail_lse(language, 1, (1, 2)) == 0
    assert tail_lse(language, 0, (1, 2)) == log_sum([Fraction(0), Fraction(0)])
