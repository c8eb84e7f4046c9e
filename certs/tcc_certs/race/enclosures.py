"""Integer enclosures of logarithm and exponential, and the weights of calls tilted by cost.

This is the validator's own arithmetic.  It uses only integers, and every step rounds outward.  A
caller narrows an enclosure until it decides a rounding (:func:`decide`).  An enclosure at `bits` is
a pair (low, high) with ``low <= true value * 2^bits <= high``.  In comments "a unit" is the last
place of the working precision.

Every series has positive terms only, and every division rounds down.  So a computed sum is a lower
end.  The upper end adds a bound on everything that was cut off; comments derive this bound.

Source: argument reduction by a table, the atanh series, and the exponential by halving and
squaring: Brent and Zimmermann, Modern Computer Arithmetic, chapter 4.

Weights W(a), F and r(a) are each computed to the last bit (docs/spec/race.md, section 3). beta is
an exact decimal (numerator, places), and costs are in nano-units.  F is `fraction_bits`, and B is
`tilt`.

Cost: about 5 us for a logarithm at 200 bits and 15 us for an exponential; each call of an artifact
takes both.  The tables are filled as they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import divide_nearest
from tcc_certs.limits import MAX_PRECISION_BITS

Enclosure: TypeAlias = "tuple[int, int]"

_POINT_BITS = 8  # the table of logarithms has 2^8 points in [1, 2)
_GRAIN = 32  # working precisions are multiples of this number, so there are few tables
_GUARD = 16  # a sum loses less than 2^16 units; see _atanh
_MAX_EXPONENT_BITS = 40  # exp_enclosure takes |y| < 2^40
_MOST_PLACES = 4 * MAX_PRECISION_BITS  # of the result of exp_enclosure


def _atanh(p: int, q: int, work: int) -> Enclosure:
    """Enclose atanh(p / q) for 0 <= p / q <= 1/3.

    Let z be p/q in units, rounded down, so z is too low by less than 1.  Then z*z is too low by
    less than 1 + 2/3 + a trifle.  Each power z^(2j+1) is computed from the one before.  Its error
    e' is below 1/3 * 1.7 + e/9 + 1, so e < 1.8 for all powers.  A term j >= 1 is this power divided
    by 2j + 1 >= 3 and rounded down again, so its error is below 1.8/3 + 1 < 2.  The error of term 0
    is below 1.  Once a power is 0 in units, its true value is below 1.8, and the tail is below 1.8
    * (1 + 1/9 + ..) / 3 < 2.
    """
    z = (p << work) // q
    square = (z * z) >> work
    total = power = z
    odd = 1
    while power:
        power = (power * square) >> work
        odd += 2
        total += power // odd
    # There are (odd + 1) / 2 terms, each too low by less than 2, and a tail below 2.
    return total, total + odd + 3


@lru_cache(maxsize=256)
def log_two(bits: int) -> Enclosure:
    """Enclose ln 2 = 2 atanh(1/3)."""
    low, high = _atanh(1, 3, bits + _GUARD)
    return (2 * low) >> _GUARD, -(-2 * high >> _GUARD)


@lru_cache(maxsize=1 << 12)
def _log_point(point: int, work: int) -> Enclosure:
    """Enclose ln(point / 2^8) for a point of the table, 2^8 <= point < 2^9."""
    one = 1 << _POINT_BITS
    low, high = _atanh(point - one, point + one, work)
    return 2 * low, 2 * high


def log_enclosure(numerator: int, denominator: int, bits: int, power: int = 0) -> Enclosure:
    """Enclose ln(numerator / denominator * 2^power); both integers are positive.

    Let numerator / denominator = 2^shift * y with 1 <= y < 2, and let c be the greatest table point
    that is at most y.  The logarithm is (shift + power) * ln 2 + ln c + 2 atanh((y - c) / (y + c)).
    The last argument is below 2^-9 and is computed from the exact integers.  So the relative
    precision is also kept for y just above 1.
    """
    shift = numerator.bit_length() - denominator.bit_length()
    up, down = (
        (numerator, denominator << shift) if shift >= 0 else (numerator << -shift, denominator)
    )
    if up < down:
        up, shift = up << 1, shift - 1
    work = -(-(bits + _GUARD) // _GRAIN) * _GRAIN
    up <<= _POINT_BITS
    point = up // down
    base = point * down
    low, high = _atanh(up - base, up + base, work)
    point_low, point_high = _log_point(point, work)
    two_low, two_high = multiple_of_log_two(shift + power, work)
    drop = work - bits
    return 2 * low + point_low + two_low >> drop, -(-2 * high - point_high - two_high >> drop)


@lru_cache(maxsize=1 << 12)
def multiple_of_log_two(times: int, work: int) -> Enclosure:
    """Enclose times * ln 2 to within a unit or two; `times` may be negative."""
    extra = _GRAIN * (1 + times.bit_length() // _GRAIN)
    low, high = log_two(work + extra)
    if times < 0:
        low, high = high, low
    return (times * low) >> extra, -(-times * high >> extra)


def exp_enclosure(exponent: Enclosure, exponent_bits: int, bits: int) -> Enclosure:
    """Enclose e^y * 2^bits for all y with ``exponent[0] <= y * 2^exponent_bits <= exponent[1]``.

    Raises:
        Rejected: D201 |y| is 2^40 or more, or the result has more than 2^14 bits; this is found
            before the computation begins.
    """
    low, high = exponent
    wide = max(abs(low), abs(high)) >> exponent_bits + _MAX_EXPONENT_BITS
    # e^y < 2^(3y/2 + 1) for y >= 0.
    places = bits + (3 * max(high, 0) >> exponent_bits + 1) + 1
    if wide or places > _MOST_PLACES:
        raise Rejected(Code.LIMIT, "a power of e", f"at most {_MOST_PLACES} bits", "more")
    first = _exp_point(low, exponent_bits, bits)
    last = first if low == high else _exp_point(high, exponent_bits, bits)
    return first[0], last[1]


def _exp_point(y: int, y_bits: int, bits: int) -> Enclosure:
    """Enclose e^(y / 2^y_bits) * 2^bits.

    With y = whole * ln 2 + r it is e^r * 2^(whole + bits).
    """
    whole = _quotient_by_log_two(y, y_bits)
    places = bits + whole  # the result is e^r * 2^places
    if places < -2:
        return 0, 1  # r < 1, so e^r * 2^places < e / 8
    halvings = isqrt(max(places, 16)) // 2 + 2
    work = -(-(max(places, 0) + 2 * halvings + _GUARD) // _GRAIN) * _GRAIN
    two_low, two_high = multiple_of_log_two(whole, work)
    low = _shift(y, work - y_bits) - two_high
    high = -_shift(-y, work - y_bits) - two_low
    low, high = _exp_small(max(low, 0), max(high, 0), work, halvings)
    return _shift(low, places - work), -_shift(-high, places - work)


def _quotient_by_log_two(y: int, y_bits: int) -> int:
    """An integer w with 0 <= y / 2^y_bits - w ln 2 < 1, for |y / 2^y_bits| < 2^40.

    ln 2 is taken to 64 bits, rounded down for y < 0 and up for y >= 0.  So the quotient never
    exceeds the true one, and is too low by less than 1 + 2^-20: r < 2^-20 + 0.7.
    """
    low, high = log_two(64)
    return (y << 64) // ((low if y < 0 else high) << y_bits)


def _shift(value: int, left: int) -> int:
    """value * 2^left, rounded down."""
    return value << left if left >= 0 else value >> -left


def _exp_small(low: int, high: int, work: int, halvings: int) -> Enclosure:
    """Enclose e^r * 2^work for all r between `low` and `high` (in units), where 0 <= r < 1."""
    bottom = _taylor(low >> halvings, work)[0]
    top = _taylor(-(-high >> halvings), work)[1]
    for _ in range(halvings):
        bottom, top = (bottom * bottom) >> work, ((top * top) >> work) + 1
    return bottom, top


def _taylor(r: int, work: int) -> Enclosure:
    """Enclose e^(r / 2^work) * 2^work for 0 <= r <= 2^(work - 2).

    The error of a term is e' < e * r / k + 1 (rounding down twice equals rounding down once), so it
    is below 1.5.  Once a term is 0 its true value is below 1.5, and the tail is below 1.5 * 4/3 =
    2.
    """
    total = term = 1 << work
    k = 0
    while term:
        k += 1
        term = ((term * r) >> work) // k
        total += term
    return total, total + 2 * k + 2


def decide(enclose: Callable[[int], Enclosure], path: str, start: int = 96) -> int:
    """The integer that an enclosure decides; the precision grows until both ends are equal.

    Args:
        enclose: called with a precision in bits; returns both ends of the rounded result.
        path: the place that an error message names.
        start: the first precision, in bits.

    Raises:
        Rejected: D202 4096 bits do not decide it.
    """
    bits = start
    while True:
        low, high = enclose(bits)
        if low == high:
            return low
        if bits == MAX_PRECISION_BITS:
            raise Rejected(Code.PRECISION, path, f"decided within {bits} bits", "undecided")
        bits = min(2 * bits, MAX_PRECISION_BITS)


# Weights.

Beta: TypeAlias = "tuple[int, int]"
NANO = 10**9
MAX_WEIGHT = 2**63 - 1
MAX_FRACTION_BITS = 64


def score(beta: Beta, cost: int) -> tuple[int, int]:
    """-beta * cost as an exact fraction (numerator, positive denominator); cost in nano-units."""
    return -beta[0] * cost, NANO * 10 ** beta[1]


def enclose_fraction(numerator: int, denominator: int, bits: int) -> Enclosure:
    """Enclose numerator / denominator, denominator > 0; if it is exact, both ends are equal."""
    low, rest = divmod(numerator << bits, denominator)
    return low, low + (1 if rest else 0)


def fraction_bits(beta: Beta, largest_cost_low: int, tilt: int) -> int:
    """F: the least integer in B .. 64 with 2^(F-B) >= e^(beta * largest cost_low).

    It is 64 if no integer is large enough, and 0 if the tilt B is 0.
    """
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
    """W(a) = 2^F e^(-beta cost_low), rounded to nearest with ties to even.

    It is clamped to 1 .. 2^63 - 1; at tilt 0 it is 1.
    """
    if tilt == 0:
        return 1
    numerator, denominator = score(beta, cost_low)
    if numerator == 0:
        return min(1 << bits, MAX_WEIGHT)
    # e^45 > 2^64, so beyond this the weight is clamped for every F in 0 .. 64
    if abs(numerator) > 46 * denominator:
        return 1 if numerator < 0 else MAX_WEIGHT

    def enclose(work: int) -> Enclosure:
        exponent = enclose_fraction(numerator, denominator, work)
        low, high = exp_enclosure(exponent, work, bits + work)
        return divide_nearest(low, 1 << work), divide_nearest(high, 1 << work)

    return max(1, min(MAX_WEIGHT, decide(enclose, "call_weight")))


def call_residual(beta: Beta, cost_low: int, weight: int, bits: int) -> int:
    """r(a) = -beta cost_low - ln(W / 2^F) in Q31.32, rounded up."""
    numerator, denominator = score(beta, cost_low)
    if weight == 1 << bits:
        return -((-numerator << 32) // denominator)

    # The logarithm of a rational other than 1 is irrational, so some precision decides the ceiling.
    def enclose(work: int) -> Enclosure:
        low, high = enclose_fraction(numerator, denominator, work)
        log_low, log_high = log_enclosure(weight, 1 << bits, work)
        return -(log_high - low >> work - 32), -(log_low - high >> work - 32)

    return decide(enclose, "residual")
