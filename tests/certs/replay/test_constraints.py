"""Residual constraints, call by call, against the set semantics of whole words."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest

from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tcc_certs.statements import Constraints, residual_constraints, statement_constraints
from tests.oracle import cores
from tests.oracle.cores import (
    at_most,
    count_at_least,
    count_at_most,
    depth,
    letters,
    make_core,
    sum_at_most,
)
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.brute import Masses
from tests.oracle_ledger.upper import Shape, drawn_upper, upper


def agrees(checked, truncate: int, most: int = 4) -> int:
    """Every word over the calls: what is forbidden, where, and whether it may stop."""
    constraints = residual_constraints(checked, truncate)
    masses = Masses(checked)
    cut = truncate if truncate < masses.rank[-1] else None
    tried = 0
    for length in range(most + 1):
        for word in itertools.product(range(len(checked.calls)), repeat=length):
            tally = constraints.start
            for at, call in enumerate(word):
                step = constraints.step(tally, call)
                assert (step is not None) == masses.allows(word[: at + 1], False, cut), word
                if step is None:
                    break
                tally = step
            else:
                assert constraints.may_stop(tally) == masses.allows(word, True, cut), word
            tried += 1
    return tried


@pytest.mark.parametrize(
    "statements",
    [
        [at_most("price", 2)],
        [at_most("latency", 7)],
        [at_most("epsilon", 0)],
        [at_most("cost", 5 * 10**8)],
        [count_at_most({0}, 1)],
        [count_at_least({1}, 2)],
        [count_at_most({0}, 1), count_at_most({0}, 2)],  # the strictest decides, of whichever
        [count_at_least({1}, 1), count_at_least({1}, 2)],
        [["before", {0}, {1}]],
        [["before", {0, 1}, {1, 2}]],
        [["after", {0}, {1}]],
        [["after", {0, 1}, {1, 2}]],
        [["each", {0}, {1}]],
        [["each", {0, 1}, {1, 2}]],
        [["never", {0}]],
        [["never next", {0}, {1}]],
        [["never next", {0, 1}, {0, 2}]],
        [["never before", {0}, {1}]],
        [["never before", {0, 1}, {1, 2}]],
        [["never with", {0}, {1}]],
        [["never with", {0, 1}, {1, 2}]],
    ],
    ids=str,
)
@pytest.mark.sampled(10)
def test_each_statement_forbids_what_it_means(statements):
    amounts = {
        "cost": [0, 250_000_000, 0], "price": [0, 1, 2], "latency": [5, 0, 1], "epsilon": [0, 0, 1],
    }  # fmt: skip
    core = make_core(
        **letters(3, **amounts),
        plan=["repeat", ["call", {0, 1, 2}], 0, 4],
        statements=[depth(4), *statements],
    )
    checked = relaxing(core, 4, range(1, len(read_core(core).statements)))
    assert agrees(checked, 4) == sum(3**n for n in range(5))
    agrees(checked, 2)


def relaxing(core: bytes, most: int, numbers: Iterable[int]):
    """The artifact of a core without these statements, of words of at most `most` calls."""
    relaxed = tuple(numbers)
    words = plans(without(read_core(core), relaxed), most)
    return check(upper(core, words, Shape(relaxed=relaxed)))


def test_a_depth_that_is_left_to_the_run_counts_every_call():
    core = make_core(
        **letters(2), plan=["repeat", ["call", {0, 1}], 0, 3], statements=[depth(2)]
    )  # fmt: skip
    checked = relaxing(core, 3, (0,))
    assert agrees(checked, 3) == sum(2**n for n in range(5))
    assert residual_constraints(checked, None).step(((0, 2),), 0) is None


def test_a_sum_that_is_left_to_the_run_adds_the_values_of_its_field():
    core = make_core(
        tools=[{"name": "a"}, {"name": "b", "fields": [{"name": "n", "values": ["0.5", "2"]}]}],
        calls=[cores.call(0), cores.call(1, (0,)), cores.call(1, (1,))],
        plan=["repeat", ["call", {0, 1, 2}], 0, 4],
        statements=[depth(4), sum_at_most("b", "n", "2.5")],
    )
    checked = relaxing(core, 4, (1,))
    assert agrees(checked, 4) == sum(3**n for n in range(5))
    start = residual_constraints(checked, None).start
    halves = 4
    assert residual_constraints(checked, None).step(start, 2) == ((0, halves),)


def test_a_tally_has_each_constraint_once():
    # Call 1 is in both sets of the statement.
    core = make_core(
        **letters(2),
        plan=["repeat", ["call", {0, 1}], 0, 3],
        statements=[depth(3), ["after", {1}, {0, 1}]],
    )
    constraints = residual_constraints(relaxing(core, 3, (1,)), None)
    assert constraints.step((), 1) == ((0, 1),)
    assert constraints.step(((0, 1),), 1) == ((0, 1),)


@pytest.mark.parametrize("seed", range(20))
def test_a_call_asks_the_constraints_that_it_touches(seed):
    """Random sets of calls of an artifact that lacks some calls of the core."""
    rng = random.Random(seed)
    size = rng.choice([2, 3, 7, 8, 9, 25])
    kept = sorted(rng.sample(range(size), rng.randint(1, size)))
    sets = [set(rng.sample(range(size), rng.randint(1, size))) for _ in range(6)]
    core = read_core(
        make_core(
            **letters(size),
            plan=["repeat", ["call", set(range(size))], 0, 3],
            statements=[depth(3), *[count_at_most(chosen, 1) for chosen in sets]],
        )
    )
    constraints = Constraints(items=statement_constraints(core, kept, range(1, 7)))
    for at, index in enumerate(kept):
        due = tuple([(n, 1) for n, chosen in enumerate(sets) if index in chosen])
        assert constraints.step((), at) == due


def test_random_statements_forbid_what_they_mean():
    rng = random.Random(81)
    for _ in range(60):
        checked = drawn_upper(rng).checked
        agrees(checked, rng.randint(0, 4))
