"""Weights and residuals of calls: W(a), F and r(a), each decided to the last bit.

Normative text: docs/spec/race.md, section 3.  beta is an exact decimal (numerator, places); costs
are nano-units; F is `fraction_bits`, B is `tilt`.  Cost: one exponential, one logarithm a call.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_certs.formats.codec import divide_nearest
from tcc_certs.race.numbers import Enclosure, decide, exp_enclosure, log_enclosure, log_two

Beta: TypeAlias = "tuple[int, int]"
NANO = 10**9
MAX_WEIGHT = 2**63 - 1
MAX_FRACTION_BITS = 64


def score(beta: Beta, cost: int) -> tuple[int, int]:
    """-beta * cost as an exact fraction (numerator, positive denominator), cost in nano-units."""
    return -beta[0] * cost, NANO * 10 ** beta[1]


def enclose_fraction(numerator: int, denominator: int, bits: int) -> Enclosure:
    """Encloses numerator / denominator, denominator > 0; both ends are equal where it is exact."""
    low, rest = divmod(numerator << bits, denominator)
    return low, low + (1 if rest else 0)


def fraction_bits(beta: Beta, largest_cost_low: int, tilt: int) -> int:
    """F: least in B .. 64 with 2^(F-B) >= e^(beta * largest cost_low); 64 if none; 0 at tilt 0."""
    if tilt == 0:
        return 0
    numerator, denominator = score(beta, -largest_cost_low)
    if numerator <= 0:
        return tilt

    # The least F - B is the ceiling of (beta * cost) / ln 2, which is irrational.
    def enclose(bits: int) -> Enclosure:
        low, high = enclose_fraction(numerator, denominator, bits)
        two_low, two_high = log_two(bits)
        least, most = -(-low // two_high), -(-high // two_low)
        return min(MAX_FRACTION_BITS, tilt + least), min(MAX_FRACTION_BITS, tilt + most)

    return decide(enclose, "fraction_bits")


def call_weight(beta: Beta, cost_low: int, bits: int, tilt: int) -> int:
    """W(a) = 2^F e^(-beta cost_low), to nearest, ties to even, clamped to 1 .. 2^63 - 1."""
    if tilt == 0:
        return 1
    numerator, denominator = score(beta, cost_low)
    if numerator == 0:
        return min(1 << bits, MAX_WEIGHT)
    # e^45 > 2^64: beyond that the clamp decides, whatever F is (0 .. 64).
    if abs(numerator) > 46 * denominator:
        return 1 if numerator < 0 else MAX_WEIGHT

    def enclose(work: int) -> Enclosure:
        exponent = enclose_fraction(numerator, denominator, work)
        low, high = exp_enclosure(exponent, work, bits + work)
        return divide_nearest(low, 1 << work), divide_nearest(high, 1 << work)

    return max(1, min(MAX_WEIGHT, decide(enclose, "call_weight")))


def call_residual(beta: Beta, cost_low: int, weight: int, bits: int) -> int:
    """r(a) = -beta cost_low - ln(W / 2^F), Q31.32, rounded up."""
    numerator, denominator = score(beta, cost_low)
    if weight == 1 << bits:
        return -((-numerator << 32) // denominator)

    # The logarithm of a rational other than 1 is irrational, so that the ceiling gets decided.
    def enclose(work: int) -> Enclosure:
        low, high = enclose_fraction(numerator, denominator, work)
        log_low, log_high = log_enclosure(weight, 1 << bits, work)
        return -(log_high - low >> work - 32), -(log_low - high >> work - 32)

    return decide(enclose, "residual")
