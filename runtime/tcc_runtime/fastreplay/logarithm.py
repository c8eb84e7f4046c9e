"""Logarithms as integers of fixed size, with a proven bound of their error.

The caller adds the bound on both sides; where that leaves a rounding open, the line goes to the
definition, whose enclosures (:mod:`tcc_certs.race.numbers`) narrow until they decide it.  A *unit*
below is 2^-96.

Error analysis.  Let v be the argument, scaled exactly to m in [1, 2) by a power of two.

- The first table has a factor R of 12 fractional bits for each m up to its eighth bit, the rounded
  reciprocal of the middle of those m.  The middle is at least 1, so m / middle is within 2^-9 of 1,
  and m (R - 1/middle) is at most 2 * 2^-13; m R is exact and within 2^-9 + 2^-12 of 1.
- The second has a factor of 20 fractional bits for each m R up to its seventeenth bit, made in the
  same way.  So the product of all three, exact too, is 1 + e with abs(e) < 2^-18 + 2^-20.
- d is e rounded down to units.  In ln(1 + e) = e - s the s is e^2 (1/2 - e (1/3 - e/4)) and a rest
  below abs(e)^5 / 5 * 1.01 < 2^-91 = 32 units.  s is below 2^-36 * 0.79, and is computed in double
  precision: e in e^2 has two relative errors of at most 2^-53, the two products and the bracket's
  subtraction have one each; all else in the bracket is below a hundredth of that.  So it is off by
  less than 2^-36 * 0.79 * 5.1 * 2^-53 < 517 units, and cut to a whole one by 1.  Rounding e to d
  moves ln(1 + e) by less than 1.1 units.
- Each table has -ln of its factor, and the multiples of ln 2, rounded down from 32 bits more: off
  by less than 1.1 units each.

In all less than 32 + 517 + 1 + 1.1 + 3.3 < 555 units: LOG_ERROR is 1024.

Source: reduction by two tables and a short series: Muller, Elementary Functions, chapter 4.
Cost: about 1 us; an entry of a table 3 us when it is first met, of at most 256 and 580.
"""

from __future__ import annotations

from typing import TypeAlias

from tcc_certs.race.numbers import log_enclosure, log_two

UNIT_BITS = 96
ONE = 1 << UNIT_BITS
LOG_ERROR = 1024
MAX_BITS = 110  # of an argument

_FIRST_BITS, _SECOND_BITS = 8, 17  # what a table looks at, after the point
_FIRST_PLACES, _SECOND_PLACES = 12, 20  # of the factors
_NEAR = 1 << _SECOND_BITS - 8  # m R is within 2^-8 of 1
_LEAST = (1 << _SECOND_BITS) - _NEAR
_TO_FIRST = MAX_BITS - 1 - _FIRST_BITS
_TO_SECOND = MAX_BITS - 1 + _FIRST_PLACES - _SECOND_BITS
_TO_UNITS = MAX_BITS - 1 + _FIRST_PLACES + _SECOND_PLACES - UNIT_BITS
_UNIT = 2.0**-UNIT_BITS
_HALVES, _THIRDS, _QUARTERS = 2.0**95, 2.0**96 / 3, 2.0**94  # in units
_EXTRA = 32

Entry: TypeAlias = "tuple[int, int]"  # the factor, and -ln of it in units


def _factor(leading: int, bits: int, places: int) -> Entry:
    """The factor for numbers near 1 with these leading bits, so many after the point."""
    # Their middle is (2 leading + 1) / 2^(bits + 1).
    twice = 2 * leading + 1
    factor = ((2 << places + bits + 1) // twice + 1) >> 1
    low, _ = log_enclosure(1 << places, factor, UNIT_BITS + _EXTRA)
    return factor, low >> _EXTRA


# Each table fills as it is used.
_first: list[Entry | None] = [None] * (2 << _FIRST_BITS)
_second: list[Entry | None] = [None] * (2 * _NEAR)


def _first_factor(leading: int) -> Entry:
    found = _first[leading] = _factor(leading, _FIRST_BITS, _FIRST_PLACES)
    return found


def _second_factor(place: int) -> Entry:
    found = _second[place] = _factor(place + _LEAST, _SECOND_BITS, _SECOND_PLACES)
    return found


_two, _ = log_two(UNIT_BITS + 2 * _EXTRA)


def times_log_two(times: int) -> int:
    """times * ln 2 in units, off by less than 1.1; `times` of either sign, below 2^60."""
    return times * _two >> 2 * _EXTRA


_powers = [times_log_two(bits - 1) for bits in range(MAX_BITS + 1)]


def log_of(value: int) -> int:
    """ln(value) in units, off by less than LOG_ERROR; 0 < `value` < 2^MAX_BITS."""
    bits = value.bit_length()
    value <<= MAX_BITS - bits
    leading = value >> _TO_FIRST
    factor, first = _first[leading] or _first_factor(leading)
    value *= factor
    place = (value >> _TO_SECOND) - _LEAST
    factor, second = _second[place] or _second_factor(place)
    d = (value * factor >> _TO_UNITS) - ONE
    e = d * _UNIT
    s = int(e * e * (_HALVES - e * (_THIRDS - e * _QUARTERS)))
    return _powers[bits] + first + second + d - s


def log_of_any(value: int) -> int:
    """The same for a positive integer of any size, off by less than LOG_ERROR + 3."""
    drop = max(value.bit_length() - MAX_BITS, 0)
    return log_of(value >> drop) + times_log_two(drop)
