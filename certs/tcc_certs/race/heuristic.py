"""Fallback: values and keys that rest on no race counts.

Normative text: docs/spec/race.md.  With x = x(4, L), U = (x + 1/2) / 2^64, E = -ln(1 - U) and
G = -ln(-ln U), a leaf has the value G/tau - beta*C - ln E, and a node the key -beta*(C + h), each
rounded once to Q64.64.  Nothing is certified by them.
Cost: four logarithms a leaf, none a node.
"""

from __future__ import annotations

from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.race.arrivals import BASE_BITS, WORD, Arrival, Fraction, neg_log
from tcc_certs.race.numbers import Enclosure, decide
from tcc_certs.race.weights import enclose_fraction


def exponential(x: int) -> Arrival:
    """E(x) = -ln(1 - (x + 1/2) / 2^64), as an arrival of rate 1."""
    return Arrival(parent=None, weight=1, fraction_bits=0, x=x, count=1, unit=0)


def heuristic_value(x: int, score: Fraction, tau: tuple[int, int]) -> int:
    """G/tau + score - ln E as Q64.64, not clamped.

    Args:
        x: the leaf's uniform.
        score: -beta*C, numerator and positive denominator.
        tau: above 0, exact decimal (numerator, places).

    Raises:
        Rejected: D202 where 4096 bits do not decide it.
    """
    # -ln U(x) = E(2^64 - 1 - x), as 1 - U(x) = U(2^64 - 1 - x).
    gumbel, late = exponential((1 << WORD) - 1 - x), exponential(x)
    numerator, places = tau

    def enclose(bits: int) -> Enclosure:
        low, high = neg_log(gumbel, bits)
        low, high = low * 10**places // numerator, -(-high * 10**places // numerator)
        late_low, late_high = neg_log(late, bits)
        score_low, score_high = enclose_fraction(*score, bits)
        unit = 1 << bits - WORD
        return (
            divide_nearest(low + late_low + score_low, unit),
            divide_nearest(high + late_high + score_high, unit),
        )

    return decide(enclose, "V", BASE_BITS)


def heuristic_key(score: Fraction) -> int:
    """`score` = -beta*(C + h) as Q64.64, not clamped."""
    numerator, denominator = score
    return divide_nearest(numerator << WORD, denominator)
