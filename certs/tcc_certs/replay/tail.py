"""The tail of a truncated run: T_K = ln of the sum over longer plans of e^(-beta*cost), rounded up.

Normative text: docs/spec/ledger.md, section 8.  The sum goes level by level: after K + 1 calls each
state that was reached has the sum over the prefixes that lead to it, times the sum over all plans
from there on.  Sums are enclosures with a shared binary exponent, rounded outward, narrowed until
the one rounding of the logarithm is decided.
Cost: one pass over the edges for the plans below, and one a level over the edges that it reaches.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_certs.limits import MAX_PRECISION_BITS
from tcc_certs.numbers import (
    Enclosure,
    exp_enclosure,
    log_enclosure,
    log_two,
    multiple_of_log_two,
)
from tcc_certs.published import clamp
from tcc_certs.race import WORD
from tcc_certs.replay.language import Language
from tcc_certs.weights import enclose_fraction, score

Scaled: TypeAlias = "tuple[int, int, int]"  # low, high, exponent: low <= value / 2^exponent <= high
Single: TypeAlias = "tuple[int, int]"  # how many prefixes (at most 2 are told apart); cost of one

_ZERO: Scaled = (0, 0, 0)
_SPARE = 32  # bits beyond those of the result: every step of a plan loses less than a unit or two


def tail_lse(language: Language, calls: int) -> int:
    """The least Q64.64 number that is not below T_K, K = `calls`, less than the root's rank."""
    cost = _only_cost(language, calls)
    if cost is not None:
        numerator, denominator = score(language.beta, cost)
        return clamp(-(-(numerator << WORD) // denominator))

    bits, ends = WORD, (0, 1)
    while ends[0] != ends[1] and bits < MAX_PRECISION_BITS:
        bits *= 2
        low, high = _log(_total(language, calls, bits + _SPARE), bits)
        ends = -(-low >> bits - WORD), -(-high >> bits - WORD)
    # Undecided still, one plan dominates the sum, which lies above the number it is so near to.
    return clamp(ends[1])


def _only_cost(language: Language, calls: int) -> int | None:
    """The cost of the one plan of more than K calls; None where there are more."""
    level: dict[int, Single] = {language.automaton.root: (1, 0)}
    for _ in range(calls + 1):
        after: dict[int, Single] = {}
        for state, (number, cost) in level.items():
            for call, target in language.automaton.edges(state):
                more = after.get(target, (0, 0))[0]
                after[target] = min(2, number + more), cost + language.cost_low[call]
        level = after
    longer = sum([number * language.plans[q] for q, (number, _) in level.items()])
    if longer != 1:
        return None
    ((state, (_, cost)),) = level.items()
    return cost + language.cost_to_go[state]


def _total(language: Language, calls: int, bits: int) -> Scaled:
    """The sum over plans of more than K calls."""
    automaton = language.automaton
    weight = [_power(language, cost, bits) for cost in language.cost_low]
    level: dict[int, Scaled] = {automaton.root: (1, 1, 0)}
    for _ in range(calls + 1):
        after: dict[int, Scaled] = {}
        for state, value in level.items():
            for call, target in automaton.edges(state):
                step = _product(value, weight[call], bits)
                after[target] = _sum(after.get(target, _ZERO), step, bits)
        level = after
    below: list[Scaled] = []
    for q in range(1 + max(level)):
        value = (1, 1, 0) if automaton.accept[q] else _ZERO
        for call, target in automaton.edges(q):
            value = _sum(value, _product(weight[call], below[target], bits), bits)
        below.append(value)
    total = _ZERO
    for q in sorted(level):
        total = _sum(total, _product(level[q], below[q], bits), bits)
    return total


def _power(language: Language, cost: int, bits: int) -> Scaled:
    """Encloses e^(-beta * cost) to `bits` bits of relative precision or a few less."""
    numerator, denominator = score(language.beta, cost)
    # The exponent of the result: no more than a trifle off (-beta * cost) / ln 2.
    size = (numerator << WORD) // (denominator * log_two(WORD)[0])
    exact = enclose_fraction(numerator, denominator, bits + WORD)
    low, high = exp_enclosure(exact, bits + WORD, bits - size)
    return low, high, size - bits


def _product(left: Scaled, right: Scaled, bits: int) -> Scaled:
    return _short(left[0] * right[0], left[1] * right[1], left[2] + right[2], bits)


def _sum(left: Scaled, right: Scaled, bits: int) -> Scaled:
    if left[1] == 0 or right[1] == 0:
        return right if left[1] == 0 else left
    if left[2] < right[2]:
        left, right = right, left
    lift = left[2] - right[2]
    if left[1].bit_length() + lift > right[1].bit_length() + 2 * bits:
        # With as many bits as it may have, a unit of the left one is more than the right one.
        pad = max(0, bits - left[1].bit_length())
        return left[0] << pad, (left[1] << pad) + 1, left[2] - pad
    low, high = (left[0] << lift) + right[0], (left[1] << lift) + right[1]
    return _short(low, high, right[2], bits)


def _short(low: int, high: int, exponent: int, bits: int) -> Scaled:
    drop = high.bit_length() - bits
    if drop <= 0:
        return low, high, exponent
    return low >> drop, -(-high >> drop), exponent + drop


def _log(value: Scaled, bits: int) -> Enclosure:
    """Encloses the logarithm of an enclosure, with `bits` fractional bits."""
    low, high, exponent = value
    more_low, more_high = multiple_of_log_two(exponent, bits)
    return (
        log_enclosure(low, 1, bits)[0] + more_low,
        log_enclosure(high, 1, bits)[1] + more_high,
    )
