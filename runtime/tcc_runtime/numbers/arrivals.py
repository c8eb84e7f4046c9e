"""Arrivals and their logarithms as plain integers, exact enough for almost every published number.

Text: docs/spec/race.md, sections 5 and 7.  These integers leave one published number in 2^19 open.
MPFR computes that number again, so no published number depends on their error.
Cost: a logarithm is two multiplications by at most 30 bits, two look-ups and a few operations of
the processor.  This is a third of the time of an MPFR logarithm at 96 bits.  The two tables have at
most 1,539 entries, each made at its first use.

A time is ``mantissa * 2^-exponent`` with a mantissa of at least 2^127.  A logarithm has 112
fractional bits.

Error analysis.  "Off by e" is an absolute error, "within e" a relative error.

- ``logarithm``: r and s are integers of 22 and 30 bits, and m r and m r s are exact.  So is ln m =
  ln(2^22 / r) + ln(2^29 / s) + ln(1 + x), where x = m r s - 1 in units of 2^178. r brings x within
  2^-10 (1 + 2^-11) of 0, s within 2^-20 (1 + 2^-8).  The first term of ln(1 + x) = x - x^2/2 +
  x^3/3 - .. is an integer.  The next three terms together are at most 2^-41 (1 + 2^-6).  They take
  seven operations in double precision, each correctly rounded.  Five of these add a relative error,
  so the three terms are off by 2^-91.6.  All later terms are below 2^-102.  The entries of the
  tables and the last places of the integers are off by 2^-105.  So a logarithm is off by less than
  2^-91.
- E = -ln(1 - U) is such a logarithm and a multiple of ln 2.  An E of 2^-6 or more is within 2^-85
  (1 + 2^-10).  A smaller E is 2 artanh z with z = U / (2 - U) = tanh(E / 2) < 2^-7.  Seven terms of
  z (1 + z^2/3 + z^4/5 + ..) are taken; the later terms are below 2^-101 of it.  Each of z, z^2,
  1/3, 1/5, .., each step of the sum and the product are cut to 128 bits.  These cuts are below
  2^-120, so a small E is within 2^-100.
- 1 / n is made of 128 bits of n and has 129 bits itself: within 2^-126.  A product with a weight is
  cut below 2^-126 of itself.  Sums of positive numbers are exact except for the cut to 128 bits.
  So a time made in fewer than 2^30 such steps is within 2^-85 (1 + 2^-9).
- The logarithm of a time is off by that, by 2^-91, and by 2^-112 times its exponent, which is below
  2^19.  A winner adds ln w to the logarithm of its parent, off by 2^-111.  Each call of a prefix,
  of at most 4096, adds its part of beta times the cost, off by 2^-112.

The total is below 2^-84: ``ERROR``.
"""

from __future__ import annotations

from typing import Final

import gmpy2

from tcc_runtime.numbers.reals import context_of

FRACTION: Final = 112
ERROR: Final = 1 << FRACTION - 84
LEAST: Final = 1 << 127  # the least mantissa
DROP: Final = FRACTION - 64
HALF: Final = 1 << DROP - 1
PART: Final = (1 << DROP) - 1
_CONTEXTS = {bits: context_of(precision) for bits, precision in ((FRACTION, 128), (288, 384))}
_ONE = gmpy2.mpfr(1)
_LAST = (1 << 65) - 1  # 1 - U = (_LAST - 2x) / 2^65
_MIDDLE = 513
_LOW, _BOTH = (1 << 149) - (_MIDDLE << 130), 1 << 178
_UNIT = 2.0**-178
_HALVES, _THIRDS, _QUARTERS = 2.0**111, 2.0**112 / 3, 2.0**110
_FINE = 288  # fractional bits of a logarithm that is multiplied or subtracted later
_BITS = 128  # fractional bits of the series of a small E
_ODD = [(1 << _BITS) // (2 * k + 1) for k in range(6, -1, -1)]
_INVERSE = FRACTION + 128
_SMALL = 1 << FRACTION - 6


def _log(value: int, bits: int) -> int:
    """Return ln of a positive integer below 2^65 with `bits` fractional bits, off by two last
    places.
    """
    context = _CONTEXTS[bits]
    return int(context.mul_2exp(context.log(context.mul(_ONE, value)), bits))


LN2: Final = _log(2, FRACTION)
_LN2_FINE = _log(2, _FINE)


_firsts: list[tuple[int, int] | None] = [None] * 1024
_seconds: list[tuple[int, int] | None] = [None] * 1027


def _first(lead: int) -> tuple[int, int]:
    """Return r for the first ten bits of a mantissa, and ln(2^22 / r); store both in the table."""
    r = (1 << 32) // (2 * lead + 1)
    found = _firsts[lead] = r, 22 * LN2 - _log(r, FRACTION)
    return found


def _second(lead: int) -> tuple[int, int]:
    """Return s for the difference of m r and 1, in units of 2^-19 from -513, and ln(2^29 / s)."""
    s = ((1 << 50) // ((1 << 20) + 2 * (lead - _MIDDLE) + 1) + 1) // 2
    found = _seconds[lead] = s, 29 * LN2 - _log(s, FRACTION)
    return found


def log_of_ratio(numerator: int, bits: int) -> int:
    """Return ln(numerator / 2^bits) of a positive integer, off by two last places."""
    return _log(numerator, _FINE) - bits * _LN2_FINE >> _FINE - FRACTION


def logarithm(mantissa: int) -> int:
    """Return ln(mantissa / 2^127) of a mantissa of 128 bits."""
    lead = mantissa >> 118
    r, first = _firsts[lead] or _first(lead)
    near = mantissa * r
    lead = near - _LOW >> 130
    s, second = _seconds[lead] or _second(lead)
    rest = near * s - _BOTH
    x = rest * _UNIT
    return first + second + (rest >> 66) - int(x * x * (_HALVES - x * (_THIRDS - x * _QUARTERS)))


def rate(mass: int, scale: int) -> tuple[int, int]:
    """Return 1 / n of a rate n = ``mass * 2^-scale`` for :func:`later`: 129 bits, and a scale."""
    size = mass.bit_length()
    top = mass >> size - 128 if size > 128 else mass << 128 - size
    return (1 << 256) // top, size + _INVERSE - scale


def _small_wait(word: int) -> tuple[int, int]:
    """Return an E below 2^-6, and the number of its fractional bits."""
    odd = 2 * word + 1
    shift = 66 + _BITS - odd.bit_length()
    z = (odd << shift) // ((2 << 65) - odd)
    square = z * z >> 2 * shift - _BITS
    found = 0
    for part in _ODD:
        found = part + (square * found >> _BITS)
    return z * found >> _BITS - 1, shift


def log_of_wait(word: int) -> int:
    """Return ln E of a PRF word: the logarithm that :func:`later` gives for the time 0 and the rate
    1.
    """
    tail = _LAST - 2 * word
    size = tail.bit_length()
    wait, bits = (66 - size) * LN2 - logarithm(tail << 128 - size), FRACTION
    if wait < _SMALL:
        wait, bits = _small_wait(word)
    drop = wait.bit_length() - 128
    return logarithm(wait >> drop if drop > 0 else wait << -drop) + (127 + drop - bits) * LN2


def later(
    mantissa: int, exponent: int, word: int, inverse: int, scale: int
) -> tuple[int, int, int]:
    """Return the time that is E / n later.

    Args:
        mantissa, exponent: the time; a mantissa of 0 is the time 0.
        word: the PRF word of E.
        inverse, scale: the :func:`rate` of n.

    Returns:
        The later time: its mantissa of 128 bits, its exponent, and its logarithm.
    """
    tail = _LAST - 2 * word
    size = tail.bit_length()
    wait = (66 - size) * LN2 - logarithm(tail << 128 - size)
    if wait < _SMALL:
        wait, bits = _small_wait(word)
        scale += bits - FRACTION
    finer = exponent - scale
    if finer > 0:
        mantissa += wait * inverse << finer
    else:
        mantissa, exponent = (mantissa << -finer) + wait * inverse, scale
    drop = mantissa.bit_length() - 128
    mantissa = mantissa >> drop if drop > 0 else mantissa << -drop
    exponent -= drop
    return mantissa, exponent, logarithm(mantissa) + (127 - exponent) * LN2


def decided(shown: int, key: int, error: int) -> bool:
    """Return whether -ln t and a key round to one Q64.64 number each, for every error up to
    `error`.

    `shown` is -ln t and `key` is the key, each plus half of 2^-64.  Where speed matters,
    :class:`tcc_runtime.numbers.fixed.Fixed` has this comparison inline.
    """
    most = PART - error
    return error < shown & PART < most and error < key & PART < most
