"""The exact epsilon of composed Gaussians, and the normal distribution that it needs.

Normative text: docs/spec/privacy.md, section 5.  Gaussians of shifts mu_i compose to one Gaussian
of shift mu, where mu^2 is the sum of mu_i^2 (Dong, Roth and Su 2022).  It has

    delta(e) = phi(a) (R(a) - R(a + mu)), a = e/mu - mu/2, R = (1 - Phi)/phi (Balle and Wang 2018).

Numbers are integers with 192 fractional bits.  Every step is rounded so that delta grows.  Cost:
some 10 ms for an epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.policy.atoms import Exact, Gaussian
from tcc_certs.privacy.curves import Part
from tcc_certs.race.enclosures import exp_enclosure

Enclosure: TypeAlias = "tuple[int, int]"

TENTHS = 10**10
BITS = 192
ONE = 1 << BITS
PER_DEVIATION = 16  # cells for each standard deviation
_GUARD = 32
_PI = 3141592653589793238462643383279502884197169399375105820974944592  # pi * 10^63, rounded down
_FAR = 16  # in standard deviations; 1 - Phi(16) < 10^-57, and a delta is at least 10^-40
_SERIES = 4  # R is computed by its series below 4 and by its continued fraction from 4 on
_TERMS = 200  # of the continued fraction


def gaussian_shift(parts: Mapping[Part, int]) -> int:
    """The shift mu of all Gaussians together, in units of 2^-192, rounded up.

    Args:
        parts: how often each mechanism is used; mechanisms other than Gaussians are ignored.
    """
    squares = 0
    for part, times in parts.items():
        if isinstance(part, Gaussian):
            over = part.sensitivity.numerator * 10**part.sigma.places
            under = part.sigma.numerator * 10**part.sensitivity.places
            squares += -(-(times * over * over << 2 * BITS) // (under * under))
    return isqrt(squares - 1) + 1 if squares else 0


@lru_cache(maxsize=1 << 8)
def gaussian_epsilon(mu: int, delta: Exact) -> int:
    """The least epsilon, in units of 10^-10, whose delta (rounded up) is at most `delta`."""
    most = (delta.numerator << BITS) // 10**delta.places
    below, above = -1, (mu * (mu + 2 * _FAR * ONE) * TENTHS >> 2 * BITS + 1) + 1
    while above - below > 1:
        middle = (above + below) // 2
        if _gaussian_delta(mu, middle) <= most:
            above = middle
        else:
            below = middle
    return above


def _gaussian_delta(mu: int, epsilon: int) -> int:
    """delta(e), rounded up.

    The argument a is rounded down.  This gives the delta of a smaller e, which is greater.
    """
    a = (epsilon << 2 * BITS) // (TENTHS * mu) - (mu + 1 >> 1)
    if a < -_SERIES * ONE:
        return ONE
    gap = _mills(a)[1] - _mills(a + mu)[0]
    return -(-_density(a)[1] * gap >> BITS)


@lru_cache(maxsize=1 << 10)
def _density(x: int) -> Enclosure:
    """phi(x) = e^(-x^2/2) / sqrt(2 pi)."""
    if abs(x) > 2 * _FAR * ONE:
        return 0, 1  # e^-512 is far below a unit
    low, high = exp_enclosure((-x * x, -x * x), 2 * BITS + 1, BITS)
    least, most = _root(2)
    return (low << BITS) // most, -(-(high << BITS) // least)


@lru_cache(maxsize=1 << 10)
def _mills(x: int) -> Enclosure:
    """R(x) = (1 - Phi(x)) / phi(x), for x >= -4."""
    return _fraction(x) if x >= _SERIES * ONE else _series(x)


def _fraction(x: int) -> Enclosure:
    """R(x) = 1/(x + 1/(x + 2/(x + 3/ ..))); the part that is cut off is between x and x + n/x."""
    low, high = x, x + (_TERMS << 2 * BITS) // x + 1
    for n in range(_TERMS - 1, 0, -1):
        low, high = x + (n << 2 * BITS) // high, x + -(-(n << 2 * BITS) // low)
    return ONE * ONE // high, -(-ONE * ONE // low)


def _series(x: int) -> Enclosure:
    """R(x) = sqrt(pi/2) e^(x^2/2) - S, where S is the sum of x^(2k+1) / (2k+1)!!.

    S has the sign of x.  For |x| <= 4 a product of ratios x^2/(2k+3) is below 133, so a term is too
    low by less than 133 (k+1) units.  A unit has 32 bits more than the result.  There are fewer
    than 200 terms, and once a term is 0 the rest is below 2^16.  So S is too low by less than 2^23
    units.
    """
    work = BITS + _GUARD
    wide = abs(x) << _GUARD
    square = wide * wide >> work
    total = term = wide
    k = 0
    while term:
        term = (term * square >> work) // (2 * k + 3)
        total, k = total + term, k + 1
    low, high = exp_enclosure((x * x, x * x), 2 * BITS + 1, work)
    least, most = (root << _GUARD for root in _root(2))  # sqrt(pi/2) = sqrt(2 pi) / 2
    low, high = low * least >> work + 1, -(-high * most >> work + 1)
    ends = (total, total + (1 << 23)) if x >= 0 else (-total - (1 << 23), -total)
    return low - ends[1] >> _GUARD, -(ends[0] - high >> _GUARD)


def _root(times: int) -> Enclosure:
    """Enclose sqrt(times pi)."""
    low = (times * _PI << 2 * BITS) // 10**63
    return isqrt(low), isqrt((times * (_PI + 1) << 2 * BITS) // 10**63 + 1) + 1


def _tail(x: int) -> Enclosure:
    """Enclose 1 - Phi(x) for x >= 0."""
    (low, high), (least, most) = _density(x), _mills(x)
    return low * least >> BITS, -(-high * most >> BITS)


@lru_cache(maxsize=1 << 6)
def normal_cells(spare: int) -> Sequence[tuple[int, int, int]]:
    """Cells of a normal variable from 0 upwards.

    For each cell: its probability, and between which distances from the lower end its mean is.  The
    mean is the difference of phi at both ends, divided by the probability.  The last entry is the
    tail beyond all cells, whose probability is at most `spare`.
    """
    width = ONE // PER_DEVIATION
    cells, x = [], 0
    while _tail(x)[1] > spare and x < _FAR * ONE:
        (low, high), (least, most) = _tail(x), _tail(x + width)
        here, there = _density(x), _density(x + width)
        nearest = ((here[0] - there[1]) << BITS) // (high - least) - x
        furthest = -(-((here[1] - there[0]) << BITS) // (low - most)) - x
        cells.append((high - least, max(nearest, 0), min(furthest, width)))
        x += width
    return [*cells, (_tail(x)[1], 0, 0)]
