"""Exact counts as enclosures, against the exact counts written out."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tcc_certs.formats.artifact import Automaton
from tcc_certs.replay.enclosed import enclosed, enclosed_counts
from tcc_certs.replay.language import edge_sum


def drawn(rng: random.Random, states: int, calls: int) -> Automaton:
    """A random automaton without dead states; state 0 accepts and has no edges."""
    starts, edge_call, edge_target, rank = [0, 0], [], [], [0]
    for q in range(1, states):
        chosen = sorted(rng.sample(range(calls), rng.randint(1, calls)))
        targets = [rng.randrange(max(0, q - 3), q) for _ in chosen]
        edge_call += chosen
        edge_target += targets
        starts.append(len(edge_call))
        rank.append(1 + max(rank[target] for target in targets))
    return Automaton(
        edge_start=starts,
        edge_call=edge_call,
        edge_target=edge_target,
        accept=[1, *(rng.randint(0, 1) for _ in range(1, states))],
        rank=rank,
    )


@pytest.mark.parametrize("bits", [0, 8, 64])
@pytest.mark.parametrize("seed", range(6))
def test_every_count_lies_in_its_enclosure_and_that_is_narrow(seed, bits):
    rng = random.Random(1000 * bits + seed)
    automaton = drawn(rng, 120, 4)
    weight = [rng.choice([1, 1 << bits, rng.randint(1, (1 << 63) - 1)]) for _ in range(4)]
    found = enclosed_counts(automaton, weight, bits)
    exact: list[int] = []
    for q in range(automaton.states):
        exact.append(edge_sum(automaton, weight, bits, exact, q))
        low, high, shift = found[q]
        assert low << shift <= exact[q] <= high << shift
        assert high.bit_length() <= 257
        assert Fraction(high - low, low) <= Fraction(automaton.rank[q] + 2, 1 << 253)
        if exact[q].bit_length() <= 256:
            assert low << shift == exact[q] == high << shift
    assert any(low < high for low, high, _ in found) is (max(exact).bit_length() > 256)


def test_a_count_of_few_bits_that_are_set_is_itself_however_long():
    assert enclosed(3 << 100_000) == (3 << 254, 3 << 254, 100_000 - 254)
    low, high, shift = enclosed((1 << 1000) + 1)
    assert (high - low, shift) == (1, 1001 - 256)
