"""The statements that a run enforces itself, against the definition on each whole word.

Random relaxed artifacts are in tests/differential/test_runtime_relaxed.py.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest

from tcc_certs.policy.core import Core
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import read_core
from tcc_certs.statements import AtMost, Constraints, statement_constraints
from tests.oracle.cores import (
    at_most,
    call as made,
    count_at_least,
    count_at_most,
    letters,
    make_core,
    random_later_core,
)
from tests.oracle.plans import Word, allows as definition_allows


def enforced(core: Core, calls: Sequence[int]) -> Constraints:
    """All statements of `core`, over an artifact with its calls of these numbers."""
    numbers = [part.number for part in parts_of(core)]
    return Constraints(items=statement_constraints(core, calls, numbers), calls=len(calls))


def allows(constraints: Constraints, word: Word) -> bool:
    """Whether a run lets the word through and then stops."""
    held = constraints.start
    for call in word:
        after = constraints.step(held, call)
        assert constraints.after(held)[call] == after  # what is kept is what it would be
        if after is None:
            return False
        held = after
    stops = constraints.may_stop(held)
    assert constraints.after(held).stopped() == (held if stops else None)
    return stops


def statements(*found: object) -> Core:
    """A core of the calls a, b, c with these statements."""
    return read_core(make_core(**letters(3, cost=[-(10**9), 2 * 10**9, 0]), plan=["empty"],
                               statements=found))  # fmt: skip


def test_what_is_kept_for_a_run_is_bounded() -> None:
    constraints = Constraints(items=[AtMost(most=10**6, calls=300)], calls=300)
    for total in range(1, 2000):
        assert constraints.after(((0, total),))[7] == ((0, total + 1),)
    # Of 300 calls each, so that no more than 2^16 are ever kept.
    assert len(constraints._after) <= (1 << 16) // 300


@pytest.mark.parametrize("block", range(4))
def test_a_run_allows_what_every_statement_allows(block: int) -> None:
    outcomes = {True: 0, False: 0}
    for seed in range(40 * block, 40 * block + 40):
        rng = random.Random(seed)
        _, core = random_later_core(rng, 9, statements=0.4)
        size = len(core.calls)
        numbers = sorted(rng.sample(range(size), rng.randint(1, min(size, 5))))
        constraints = enforced(core, numbers)
        for length in range(4):
            for word in product(range(len(numbers)), repeat=length):
                expected = definition_allows(core, tuple([numbers[call] for call in word]))
                assert allows(constraints, word) == expected, (seed, word)
                outcomes[expected] += 1
    assert min(outcomes.values()) > 300


def test_a_call_in_both_sets_is_the_boundary() -> None:
    each = enforced(statements(["each", {0, 1}, {1, 2}]), [0, 1, 2])
    assert allows(each, (0, 1, 0, 2))
    assert not allows(each, (1,))
    assert not allows(each, (0, 1, 2))
    before = enforced(statements(["never before", {0, 1}, {1, 2}]), [0, 1, 2])
    assert allows(before, (2, 1))
    assert not allows(before, (1, 1))
    assert not allows(before, (1, 2))


def test_a_sum_is_checked_after_each_call() -> None:
    """A negative cost that comes later does not make up for a sum that is too great."""
    cost = enforced(statements(at_most("cost", 10**9)), [0, 1, 2])
    assert allows(cost, (0, 1, 2, 2))
    assert not allows(cost, (1, 0))


def test_a_plan_may_end_once_every_end_holds() -> None:
    counted = enforced(statements(count_at_least({0}, 2), count_at_most({1}, 0)), [0, 1, 2])
    assert not allows(counted, (0,))
    assert allows(counted, (0, 2, 0))
    assert not allows(counted, (0, 0, 1))


def test_calls_that_the_artifact_lacks_have_no_number() -> None:
    core = read_core(
        make_core(
            tools=[{"name": "t", "fields": [{"name": "k", "values": ["1", "2"]}]}, {"name": "u"}],
            calls=[made(0, [0]), made(0, [1]), made(1)],
            plan=["empty"],
            statements=[["before", {0, 1}, {2}]],
        )
    )
    lacking = enforced(core, [1, 2])
    assert allows(lacking, (0, 1))
    assert not allows(lacking, (1, 0))
