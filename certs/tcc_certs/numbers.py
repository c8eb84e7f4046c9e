"""Logarithm and exponential as integer enclosures, narrowed until a rounding is decided.

The validator's own arithmetic: nothing but integers, every step rounded outward.  An enclosure at
`bits` is a pair (lo, hi) with ``lo <= true value * 2^bits <= hi``.
Source: argument reduction and the atanh series, Brent and Zimmermann, Modern Computer Arithmetic,
section 4.4; the exponential by reduction with ln 2 and the Taylor series, section 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.limits import MAX_PRECISION_BITS

Enclosure: TypeAlias = "tuple[int, int]"


def _atanh_inverse(n: int, bits: int) -> Enclosure:
    """Encloses atanh(1/n), n >= 2."""
    term = (1 << bits) // n
    total, k, steps, square = term, 1, 1, n * n
    while term:
        term //= square
        k += 2
        total += term // k
        steps += 1
    # Each truncated division loses below 2 units; the tail after `term` is 0 is below one unit.
    return total, total + 2 * steps + 2


@lru_cache(maxsize=64)
def log_two(bits: int) -> Enclosure:
    """Encloses ln 2, by ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749)."""
    a, b, c = (_atanh_inverse(n, bits + 8) for n in (26, 4801, 8749))
    low = 18 * a[0] - 2 * b[1] + 8 * c[0]
    high = 18 * a[1] - 2 * b[0] + 8 * c[1]
    return low >> 8, -(-high >> 8)


def log_enclosure(numerator: int, denominator: int, bits: int) -> Enclosure:
    """Encloses ln(numerator / denominator) of two positive integers."""
    shift = numerator.bit_length() - denominator.bit_length()
    up, down = (
        (numerator, denominator << shift) if shift >= 0 else (numerator << -shift, denominator)
    )
    # Now up / down lies in (1/2, 2), and ln = shift * ln 2 + 2 atanh((up - down) / (up + down)).
    low, high = _log_near_one(up, down, bits)
    two = log_two(bits + shift.bit_length())
    extra = shift.bit_length()
    ends = sorted((shift * two[0], shift * two[1]))
    return low + (ends[0] >> extra), high - (-ends[1] >> extra)


def _log_near_one(up: int, down: int, bits: int) -> Enclosure:
    """Encloses ln(up / down), the ratio in (1/2, 2), by square roots and the atanh series."""
    if up == down:
        return 0, 0
    roots = isqrt(bits) // 2
    work = bits + 2 * roots + 24
    # Enclose the ratio, then its 2^-roots power, with `work` fractional bits.
    low = (up << work) // down
    high = low + 1
    for _ in range(roots):
        low, high = isqrt(low << work), isqrt(high << work) + 1
    low_log = _atanh_log(low, work)[0]
    high_log = _atanh_log(high, work)[1]
    scale = work - bits - roots
    return low_log >> scale, -(-high_log >> scale)


def _atanh_log(x: int, work: int) -> Enclosure:
    """Encloses ln(x / 2^work) for x near 2^work, with `work` fractional bits."""
    one = 1 << work
    z, rest = divmod((x - one) << work, x + one)
    sign = -1 if z < 0 else 1
    z = abs(z) + (1 if rest and z < 0 else 0)
    square = (z * z) >> work
    total, term, k, steps = z, z, 1, 1
    while term:
        term = (term * square) >> work
        k += 2
        total += term // k
        steps += 1
    # z is off by at most one unit, and each step loses at most 3 units (terms shrink by 4 at least).
    slack = 4 * steps + 4
    ends = sorted((sign * 2 * (total - slack), sign * 2 * (total + slack)))
    return ends[0], ends[1]


def exp_enclosure(exponent: Enclosure, exponent_bits: int, bits: int) -> Enclosure:
    """Encloses e^y * 2^bits for every y with ``exponent[0] <= y * 2^exponent_bits <= exponent[1]``."""
    return (
        _exp_end(exponent[0], exponent_bits, bits)[0],
        _exp_end(exponent[1], exponent_bits, bits)[1],
    )


def _exp_end(y: int, y_bits: int, bits: int) -> Enclosure:
    # y / 2^y_bits = n ln 2 + r with 0 <= r < 1 about; then e^r = (e^(r / 2^halves))^(2^halves).
    whole = (y << 32) // (log_two(32)[0] << y_bits)
    if bits + whole < -8:
        return 0, 1
    halves = isqrt(max(bits + whole, 64)) // 2 + 1
    work = max(bits + whole, 0) + 3 * halves + 48
    size = abs(whole).bit_length() + 2
    two = log_two(work + size)
    ends = sorted((whole * two[0], whole * two[1]))
    exact = (y << work) >> y_bits if work < y_bits else y << (work - y_bits)
    if work < y_bits:
        exact = y >> (y_bits - work)
    low = exact - (-(-ends[1] >> size)) - 1
    high = exact + 1 - (ends[0] >> size) + 1
    low_e, high_e = _exp_series(low, work, halves)[0], _exp_series(high, work, halves)[1]
    drop = work - bits - whole
    if drop >= 0:
        return low_e >> drop, -(-high_e >> drop)
    return low_e << -drop, high_e << -drop


def _exp_series(r: int, work: int, halves: int) -> Enclosure:
    """Encloses e^(r / 2^work) * 2^work for small r, of either sign."""
    one = 1 << work
    low_r, high_r = r >> halves, (r >> halves) + 1
    low, high = _taylor(low_r, work)[0], _taylor(high_r, work)[1]
    for _ in range(halves):
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    return max(low, 0), max(high, one >> 60)


def _taylor(r: int, work: int) -> Enclosure:
    one = 1 << work
    total, term, k = one, one, 0
    while term not in (0, -1):
        k += 1
        term = ((term * r) >> work) // k
        total += term
    # Every step rounds down by at most 2 units, and the tail is below one unit.
    slack = 2 * k + 4
    return total - slack, total + slack


def decide(enclose: Callable[[int], Enclosure], path: str, start: int = 96) -> int:
    """The one integer that an enclosure narrows to, `enclose(bits)` taken at growing precision.

    Args:
        enclose: gives the ends of the rounded result at a working precision.
        path: how an error names the place.
        start: the first precision, in bits.

    Raises:
        Rejected: D202 where 4096 bits do not decide it.
    """
    bits = start
    while bits <= MAX_PRECISION_BITS:
        low, high = enclose(bits)
        if low == high:
            return low
        bits *= 2
    raise Rejected(Code.PRECISION, path, f"decided within {MAX_PRECISION_BITS} bits", "undecided")
