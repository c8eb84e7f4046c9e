"""Weights and residuals of calls: W(a), F and r(a), each decided to the last bit.

Normative text: docs/spec/race.md, section 3.  beta is an exact decimal (numerator, places); costs
are nano-units; F is `fraction_bits`, B is `tilt`.  Cost: one exponential, one logarithm a call.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_certs.fixed import divide_nearest
from tcc_certs.numbers import Enclosure, decide, exp_enclosure, log_enclosure, log_two

Beta: TypeAlias = "tuple[int, int]"
NANO = 10**9
MAX_WEIGHT = 2**63 - 1


def _score(beta: Beta, cost: int, bits: int) -> Enclosure:
    """Encloses beta * cost (cost units, not nano) with `bits` fractional bits."""
    numerator, denominator = (beta[0] * cost) << bits, NANO * 10 ** beta[1]
    low, rest = divmod(numerator, denominator)
    return low, low + (1 if rest else 0)


def fraction_bits(beta: Beta, largest_cost_low: int, tilt: int) -> int:
    """F: least in B .. 64 with 2^(F-B) >= e^(beta * largest cost_low); 64 if none; 0 at tilt 0."""
    if tilt == 0:
        return 0
    if beta[0] * largest_cost_low <= 0:
        return tilt
    bits = 64
    while True:
        low, high = _score(beta, largest_cost_low, bits)
        two = log_two(bits)
        least, most = -(-low // two[1]), -(-high // two[0])
        if least == most or tilt + least >= 64:
            return min(64, tilt + least)
        bits *= 2


def call_weight(beta: Beta, cost_low: int, bits: int, tilt: int) -> int:
    """W(a) = 2^F e^(-beta cost_low), to nearest, ties to even, clamped to 1 .. 2^63 - 1."""
    if tilt == 0:
        return 1
    exponent = -beta[0] * cost_low
    if exponent == 0:
        return 1 << bits if bits < 63 else min(1 << bits, MAX_WEIGHT)
    # Beyond e^(+-100) the clamp decides, whatever F is.
    if abs(exponent) > 150 * NANO * 10 ** beta[1]:
        return 1 if exponent < 0 else MAX_WEIGHT

    def enclose(work: int) -> Enclosure:
        low, high = _score((-beta[0], beta[1]), cost_low, work)
        ends = exp_enclosure((low, high), work, bits + work)
        return divide_nearest(ends[0], 1 << work), divide_nearest(ends[1], 1 << work)

    return max(1, min(MAX_WEIGHT, decide(enclose, "call_weight")))


def call_residual(beta: Beta, cost_low: int, weight: int, bits: int) -> int:
    """r(a) = -beta cost_low - ln(W / 2^F), Q31.32, rounded up."""
    exact = weight == 1 << bits

    def enclose(work: int) -> Enclosure:
        low, high = _score((-beta[0], beta[1]), cost_low, work)
        log = (0, 0) if exact else log_enclosure(weight, 1 << bits, work)
        ends = low - log[1], high - log[0]
        return -(-ends[0] >> (work - 32)), -(-ends[1] >> (work - 32))

    if exact:
        scaled = (-beta[0] * cost_low) << 32
        return -(-scaled // (NANO * 10 ** beta[1]))
    return decide(enclose, "residual")
