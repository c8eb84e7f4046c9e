"""Race counts as a run uses them: the artifact's own, inflated ones, or rounded ones.

Normative text: docs/spec/race.md.  All are integers m(q) in units of 2^(F*d(q)), made bottom-up;
targets precede sources.  Cost: one pass over the edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.automaton import Automaton
from tcc_certs.limits import MAX_WRITTEN_BYTES
from tcc_certs.rules.counts import RoundedCounts, count_pairs, round_up


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

    Raises:
        Rejected: D201 they would take more than MAX_WRITTEN_BYTES.
    """
    if factor == (1, 0):
        return race_count
    _ensure_written(automaton, race_count, factor)
    numerator, unit = factor[0], 10 ** factor[1]
    counts: list[int] = []
    for q in range(automaton.states):
        least = edge_sum(automaton, weight, fraction_bits, counts, q)
        counts.append(max(-(-numerator * race_count[q] // unit), least))
    return counts


def _ensure_written(
    automaton: Automaton, race_count: Sequence[int], factor: tuple[int, int]
) -> None:
    """Declines counts that are much more than the artifact when they are written out.

    m' is at most ceil(factor + 1) * m, so it has at most as many bits as the two together.  Of each
    state there are m', the bracket and the masses of its children.  What the counts of the artifact
    take that are written out there is not counted.

    Raises:
        Rejected: D201 past MAX_WRITTEN_BYTES.
    """
    more = (-(-factor[0] // 10 ** factor[1]) + 1).bit_length()
    starts, bits = automaton.edge_start, 0
    for q in range(automaton.states):
        own = 0
        if isinstance(race_count, RoundedCounts):
            own = race_count.mantissa[q].bit_length() + race_count.exponent[q]
        bits += (2 + starts[q + 1] - starts[q] + automaton.accept[q]) * (own + more)
    limit = f"counts of at most {MAX_WRITTEN_BYTES} bytes when inflated"
    ensure(bits >> 3 <= MAX_WRITTEN_BYTES, Code.LIMIT, "inflate", limit, f"{bits >> 3} bytes")


def rounded_counts(
    automaton: Automaton,
    weight: Sequence[int],
    fraction_bits: int,
    least: Sequence[int],
    bits: int,
) -> RoundedCounts:
    """m^(q), the least number of so many bits at or above m(q) and the masses with m^ together.

    Superadditive in every state, so a bound of what it is taken over (Certificates.v:
    superadditive_counts_are_bounds); the sums are never written out.

    Args:
        least: m of each state, as the run would use it.
        bits: 1 .. 63.
    """
    rank = automaton.rank
    mantissa: list[int] = []
    exponent: list[int] = []
    for q, own in enumerate(count_pairs(least)):
        stop = fraction_bits * rank[q]
        terms = [(automaton.accept[q], stop)]
        for call, target in automaton.edges(q):
            lift = stop - fraction_bits * (1 + rank[target]) + exponent[target]
            terms.append((weight[call] * mantissa[target], lift))
        # Of canonical pairs the one with the greater exponent is the greater number.
        (number, up), (value, shift) = round_up(terms, bits), round_up([own], bits)
        up, number = max((up, number), (shift, value))
        mantissa.append(number)
        exponent.append(up)
    return RoundedCounts(mantissa, exponent)
