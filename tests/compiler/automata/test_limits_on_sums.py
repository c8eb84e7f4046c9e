"""Limits on sums over random machines, held against the sum of each word."""

from __future__ import annotations

import random

import pytest

from tcc_compiler.automata.constraint.apply import at_most
from tcc_compiler.automata.constraint.limit_cyclic import NegativeCycle, cyclic_at_most, least_to_go
from tcc_compiler.automata.minimise import minimise
from tcc_compiler.automata.table import Machine, Table, as_machine, as_table, trim
from tcc_compiler.options import Options
from tcc_compiler.resources import Guard
from tests.compiler.automata.machines import random_machine, words

MOST = 7


def small(rng: random.Random, *, cycles: bool) -> Machine | Table | None:
    trimmed = trim(random_machine(rng, rng.randint(1, 6), 2, cycles=cycles))
    return None if trimmed is None else minimise(trimmed, Guard(Options()))


def listed(machine: Machine | Table | None) -> frozenset[tuple[int, ...]]:
    if machine is None:
        return frozenset()
    return words(as_machine(machine) if isinstance(machine, Table) else machine, MOST)


def bounded(
    machine: Machine | Table, weights: list[int], bound: int
) -> Machine | Table | NegativeCycle | None:
    if isinstance(machine, Table):
        return at_most(machine, weights, bound, Guard(Options()))
    to_go = least_to_go(machine, weights, Guard(Options()))
    if isinstance(to_go, NegativeCycle):
        return to_go
    return cyclic_at_most(machine, weights, bound, to_go, Guard(Options()))


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
        result = bounded(machine, weights, bound)
        if isinstance(result, NegativeCycle):
            assert cycles
            continue
        due = {w for w in listed(machine) if sum(weights[x] for x in w) <= bound}
        assert listed(result) == due
        kept += bool(due)
        if isinstance(result, Machine):
            assert trim(result) is not None
        if isinstance(result, Table):
            found = as_machine(result)
            residuals = [words(found, MOST, q) for q in range(found.states)]
            assert len(set(residuals)) == found.states
    assert kept > 30


@pytest.mark.parametrize("unit", [10**5, 10**18, 2**63])
def test_sums_beyond_any_bit_set_are_exact(unit: int) -> None:
    # Weights without a common unit: the sums that can be reached are no small bit set, and beyond
    # 64 bits they are no machine integers either.
    size = 9
    machine = Machine(
        start=size,
        accept=[True] * (size + 1),
        edges=[(), *(((0, q), (1, q)) for q in range(size))],
    )
    table = as_table(machine)
    assert table is not None
    weights = [unit + 9, unit // 10 + 3]
    for bound in (0, 2 * weights[0] + weights[1], 5 * weights[0] + 3 * weights[1] - 1):
        result = at_most(table, weights, bound, Guard(Options()))
        due = {w for w in words(machine, size) if sum(weights[x] for x in w) <= bound}
        assert result is not None
        assert words(as_machine(result), size) == due


def test_a_negative_cycle_is_found_and_is_one() -> None:
    rng = random.Random(31)
    cycles = 0
    for _ in range(200):
        machine = small(rng, cycles=True)
        if not isinstance(machine, Machine):
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
    assert cycles > 10
