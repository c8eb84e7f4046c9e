"""Limits on sums over random machines, held against the sum of each word."""

from __future__ import annotations

import random

import pytest

from tcc_compiler.constraint.least import NegativeCycle, least_to_go
from tcc_compiler.constraint.limit import at_least, at_most
from tcc_compiler.guard import Guard
from tcc_compiler.machine import Machine
from tcc_compiler.minimise import minimise
from tcc_compiler.options import Options
from tcc_compiler.trim import trim
from tests.compiler.backend.machines import random_machine, words

MOST = 7


def small(rng: random.Random, *, cycles: bool) -> Machine | None:
    trimmed = trim(random_machine(rng, rng.randint(1, 6), 2, cycles=cycles))
    return None if trimmed is None else minimise(trimmed, Guard(Options()))


def found(machine: Machine | None) -> frozenset[tuple[int, ...]]:
    return frozenset() if machine is None else words(machine, MOST)


@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("low", [0, 1, -3])
def test_at_most_keeps_the_words_within_the_bound(cycles: bool, low: int) -> None:
    rng = random.Random(11 + low)
    kept = 0
    for _ in range(150):
        machine = small(rng, cycles=cycles)
        if machine is None:
            continue
        weights = [rng.randint(low, 5) for _ in range(2)]
        bound = rng.randint(-4, 14)
        to_go = least_to_go(machine, weights, Guard(Options()))
        if isinstance(to_go, NegativeCycle):
            assert cycles
            continue
        result = at_most(machine, weights, bound, to_go, Guard(Options()))
        due = {w for w in words(machine, MOST) if sum(weights[x] for x in w) <= bound}
        assert found(result) == due
        kept += bool(due)
        if result is not None:
            assert trim(result) is not None
            if machine.sorted and result.sorted:
                residuals = [words(result, MOST, q) for q in range(result.states)]
                assert len(set(residuals)) == result.states
    assert kept > 30


@pytest.mark.parametrize("cycles", [False, True])
def test_at_least_keeps_the_words_that_reach_the_bound(cycles: bool) -> None:
    rng = random.Random(23)
    for _ in range(150):
        machine = small(rng, cycles=cycles)
        if machine is None:
            continue
        weights = [rng.randint(0, 2) for _ in range(2)]
        bound = rng.randint(0, 6)
        result = at_least(machine, weights, bound, Guard(Options()))
        due = {w for w in words(machine, MOST) if sum(weights[x] for x in w) >= bound}
        assert found(result) == due


def test_sums_beyond_any_table_are_clamped_alone() -> None:
    # Weights without a common unit: the sums that can be reached are no small bit set.
    machine = Machine(
        start=3,
        accept=[True, True, True, True],
        edges=[(), ((0, 0), (1, 0)), ((0, 1), (1, 1)), ((0, 2), (1, 2))],
        sorted=True,
    )
    weights = [10**18 + 9, 10**17 + 3]
    bound = 2 * weights[0] + weights[1]
    to_go = least_to_go(machine, weights, Guard(Options()))
    assert not isinstance(to_go, NegativeCycle)
    result = at_most(machine, weights, bound, to_go, Guard(Options()))
    due = {w for w in words(machine, 3) if sum(weights[x] for x in w) <= bound}
    assert found(result) == due


def test_a_negative_cycle_is_found_and_is_one() -> None:
    rng = random.Random(31)
    cycles = 0
    for _ in range(200):
        machine = small(rng, cycles=True)
        if machine is None:
            continue
        weights = [rng.randint(-2, 2) for _ in range(2)]
        to_go = least_to_go(machine, weights, Guard(Options()))
        if not isinstance(to_go, NegativeCycle):
            # No cycle is negative: each label is what its own edges say.
            for q in range(machine.states):
                ways = [weights[x] + to_go[p] for x, p in machine.edges[q]]
                assert to_go[q] == min([*ways, 0] if machine.accept[q] else ways)
            continue
        cycles += 1
        assert sum(weights[x] for x in to_go.letters) < 0
        following = (*to_go.states[1:], to_go.states[0])
        for q, letter, p in zip(to_go.states, to_go.letters, following, strict=True):
            assert (letter, p) in machine.edges[q]
    assert cycles > 20
