"""The arithmetic of a reference run: 400 bits of MPFR, rounded once to Q64.64."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import gmpy2

from tests.oracle_ledger.brute import number, rounded

Real = gmpy2.mpfr


def precise() -> Any:
    """A context of 400 bits, for one `with`."""
    return gmpy2.context(gmpy2.get_context(), precision=400)


def exponential(x: int, rate: Fraction = Fraction(1)) -> Real:
    """E(x) / rate."""
    with precise():
        return -gmpy2.log1p(-gmpy2.mpfr(2 * x + 1) / gmpy2.mpfr(2) ** 65) / number(rate)


def times(weight: Fraction, t: Real) -> Real:
    """weight * t."""
    with precise():
        return number(weight) * t


def plus(left: Real, right: Real) -> Real:
    """left + right."""
    with precise():
        return left + right


def minus_log(t: Real, bound: Fraction = Fraction(0)) -> int:
    """bound - ln t, as Q64.64."""
    with precise():
        return rounded(number(bound) - gmpy2.log(t))


def arrival_word(t: Real) -> int:
    """floor(2^64 * (1 - e^(-t)))."""
    with precise():
        return int(gmpy2.floor(-gmpy2.expm1(-t) * gmpy2.mpfr(2) ** 64))


def heuristic(x: int, score: Fraction, tau: Fraction) -> int:
    """G/tau + score - ln E, as Q64.64."""
    with precise():
        gumbel = -gmpy2.log(-gmpy2.log(gmpy2.mpfr(2 * x + 1) / gmpy2.mpfr(2) ** 65))
        return rounded(gumbel / number(tau) + number(score) - gmpy2.log(exponential(x)))


def nearest(value: Fraction) -> int:
    """A rational, as Q64.64."""
    return round(value * 2**64)


def log_sum(scores: list[Fraction]) -> int:
    """The least Q64.64 number that is not below ln of the sum of e^score."""
    if len(scores) == 1:
        return -(-scores[0].numerator * 2**64 // scores[0].denominator)
    with precise():
        total = sum((gmpy2.exp(number(score)) for score in scores), gmpy2.mpfr(0))
        return int(gmpy2.ceil(gmpy2.log(total) * gmpy2.mpfr(2) ** 64))
