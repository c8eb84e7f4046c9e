"""Enclosures of exact counts, and kappa of an exact count and a count that a run used.

Normative text: docs/spec/ledger.md, section 10.  An exact count has F bits for each call that may
still follow, so expanding all counts takes the square of a small artifact's size.  An enclosure is
(low, high, shift): the count is at least low * 2^shift and at most high * 2^shift, and high has at
most 257 bits.  Every step rounds outward by less than 2^-255 of the count.  So at the top of an
automaton of depth d the ends differ by less than about d * 2^-254.  They are equal if no set bit
was cut off.  A used count that lies in the enclosure is taken as equal to the exact count.

Cost: one pass over the edges, a few hundred bits for each state; one logarithm for each pair of
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from tcc_certs.formats.artifact import Automaton
from tcc_certs.race.enclosures import log_enclosure
from tcc_certs.replay.kappa import KAPPA_BITS

Enclosed: TypeAlias = "tuple[int, int, int]"

_BITS = 256
_GUARD = 64  # terms are cut this far below the sum's last place; fewer than 2^64 terms are added


def enclosed(count: int) -> Enclosed:
    """Return the enclosure of a given count, at least 0."""
    return _cut(count, count, 0)


def enclosed_counts(
    automaton: Automaton, weight: Sequence[int], fraction_bits: int
) -> list[Enclosed]:
    """Return the exact race counts of this automaton with these weights, as enclosures.

    Args:
        weight: W of each call of the automaton.
        fraction_bits: F.  The count of q is in units of 2^(F*d(q)).  Targets precede sources.
    """
    rank, counts = automaton.rank, list[Enclosed]()
    for q in range(automaton.states):
        terms = [(1, 1, fraction_bits * rank[q])] if automaton.accept[q] else []
        for call, target in automaton.edges(q):
            low, high, shift = counts[target]
            by = weight[call]
            ahead = fraction_bits * (rank[q] - 1 - rank[target])
            terms.append((by * low, by * high, shift + ahead))
        counts.append(_total(terms))
    return counts


def _total(terms: Sequence[Enclosed]) -> Enclosed:
    """Return the enclosure of a sum."""
    if len(terms) == 1:
        return _cut(*terms[0])
    top = max([high.bit_length() + shift for _, high, shift in terms], default=0)
    level = max(0, top - _BITS - _GUARD)
    low_sum = high_sum = 0
    for low, high, shift in terms:
        if shift >= level:
            low_sum += low << shift - level
            high_sum += high << shift - level
        else:
            low_sum += low >> level - shift
            high_sum += -(-high >> level - shift)
    return _cut(low_sum, high_sum, level)


def _cut(low: int, high: int, shift: int) -> Enclosed:
    """Return the enclosure with at most 256 bits, or 257 if rounding up carries."""
    drop = high.bit_length() - _BITS
    if drop <= 0:
        return low, high, shift
    return low >> drop, -(-high >> drop), shift + drop


def kappa_of(exact: Enclosed, used: int, ahead: int) -> int:
    """Return ln(exact * 2^ahead / used) in units of 2^-96, rounded down; 0 if they may be equal."""
    low, high, shift = exact
    used_low, used_high, used_shift = enclosed(used)
    lift = shift + ahead - used_shift
    return _ratio(low, high, used_low, used_high, lift)


@lru_cache(maxsize=1 << 12)
def _ratio(low: int, high: int, used_low: int, used_high: int, lift: int) -> int:
    """Return kappa of an exact count of low * 2^lift .. high * 2^lift and a used count."""
    up, down = max(lift, 0), max(-lift, 0)
    if low << up <= used_high << down and used_low << down <= high << up:
        return 0
    return log_enclosure(low << up, used_high << down, KAPPA_BITS)[0]
