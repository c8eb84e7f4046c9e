"""Race counts as a run uses them: the artifact's own, or inflated ones.

Normative text: docs/spec/race.md.  All are integers m(q) in units of 2^(F*d(q)), made bottom-up;
targets precede sources.  Cost: one pass over the edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.formats.automaton import Automaton


def edge_sum(
    automaton: Automaton, weight: Sequence[int], fraction_bits: int, count: Sequence[int], q: int
) -> int:
    """What the children of state `q` add up to, in its own units (the right side of C4).

    Args:
        weight: W of each call of the automaton.
        count: m of each target of `q`.
    """
    rank = automaton.rank
    total = automaton.accept[q] << fraction_bits * rank[q]
    for call, target in automaton.edges(q):
        total += weight[call] * count[target] << fraction_bits * (rank[q] - 1 - rank[target])
    return total


def inflated_counts(
    automaton: Automaton,
    weight: Sequence[int],
    fraction_bits: int,
    race_count: Sequence[int],
    factor: tuple[int, int],
) -> Sequence[int]:
    """m'(q) = max(ceil(factor * m(q)), the sum of the edges with m' of the targets).

    Args:
        race_count: m of each state.
        factor: at least 1, an exact decimal (numerator, places).
    """
    if factor == (1, 0):
        return race_count
    numerator, unit = factor[0], 10 ** factor[1]
    counts: list[int] = []
    for q in range(automaton.states):
        least = edge_sum(automaton, weight, fraction_bits, counts, q)
        counts.append(max(-(-numerator * race_count[q] // unit), least))
    return counts
