"""Logarithms to about 2^-100, by tables and a short series: integers alone, with a proven error.

Nearly every rounding of a ledger is decided by these; where one is not, the enclosures of
:mod:`tcc_certs.race.numbers` narrow until it is.  A *unit* below is 2^-104.

Error analysis.  Let v be the argument, scaled to m in [1, 2) by a power of two; bits of v beyond
its first 116 are cut off, which moves the logarithm by less than 2^-115.

- The first table has a factor R of 12 fractional bits for each m up to its eighth bit, the rounded
  reciprocal of the middle of those m.  The middle is at least 1, so m / middle is within 2^-9 of 1,
  and m (R - 1/middle) is at most 2 * 2^-13; m R is exact and within 2^-9 + 2^-12 of 1.
- The second has a factor of 20 fractional bits for each m R up to its seventeenth bit, made in the
  same way.  So the product of all three, exact too, is 1 + e with abs(e) < 2^-18 + 2^-20.
- d is e rounded down to units, which moves ln(1 + e) by less than 1.1 units.  Of the series
  d - d^2/2 + d^3/3 - d^4/4 + d^5/5 each power is made from those before and rounded down, and each
  quotient too: off by less than 5 units in all.  The rest is below abs(e)^6 / 6 * 1.01 < 0.1 units.
- Each table has -ln of its factor, rounded down from 32 bits more: off by less than 1.1 units each.
  The multiple of ln 2 is off by less than 2.

In all less than 1 + 1.1 + 5 + 0.1 + 2.2 + 2 < 12 units: LOG_ERROR is 16.

Source: reduction by two tables and a short series: Muller, Elementary Functions, chapter 4.
Cost: about 1 us; an entry of a table 5 us when it is first met, of at most 256 and 1024.
"""

from __future__ import annotations

from functools import lru_cache

from tcc_certs.race.numbers import log_enclosure, multiple_of_log_two

UNIT_BITS = 104
LOG_ERROR = 16

_MAX_BITS = 116  # of an argument, as far as it is looked at
_FIRST_BITS, _SECOND_BITS = 8, 17  # what a table looks at, after the point
_FIRST_PLACES, _SECOND_PLACES = 12, 20  # of the factors
_TO_FIRST = _MAX_BITS - 1 - _FIRST_BITS
_TO_SECOND = _MAX_BITS - 1 + _FIRST_PLACES - _SECOND_BITS
_TO_UNITS = _MAX_BITS - 1 + _FIRST_PLACES + _SECOND_PLACES - UNIT_BITS
_ONE = 1 << UNIT_BITS
_EXTRA = 32


class _Factors(dict[int, "tuple[int, int]"]):
    """For numbers with these leading bits: a factor, and -ln of it; made when it is first asked."""

    def __init__(self, bits: int, places: int) -> None:
        super().__init__()
        self._bits = bits
        self._places = places

    def __missing__(self, leading: int) -> tuple[int, int]:
        # The middle of these numbers is (2 leading + 1) / 2^(bits + 1).
        places = self._places
        factor = ((2 << places + self._bits + 1) // (2 * leading + 1) + 1) >> 1
        low, _ = log_enclosure(1 << places, factor, UNIT_BITS + _EXTRA)
        self[leading] = found = factor, low >> _EXTRA
        return found


_first = _Factors(_FIRST_BITS, _FIRST_PLACES)
_second = _Factors(_SECOND_BITS, _SECOND_PLACES)


@lru_cache(maxsize=1 << 12)
def times_log_two(times: int) -> int:
    """times * ln 2 in units, off by less than 2."""
    return multiple_of_log_two(times, UNIT_BITS)[0]


def log_units(value: int, power: int = 0) -> int:
    """ln(value * 2^power) in units, `value` above 0; off by less than LOG_ERROR."""
    bits = value.bit_length()
    m = value << _MAX_BITS - bits if bits <= _MAX_BITS else value >> bits - _MAX_BITS
    factor, first = _first[m >> _TO_FIRST]
    m *= factor
    factor, second = _second[m >> _TO_SECOND]
    d = (m * factor >> _TO_UNITS) - _ONE
    square = d * d >> UNIT_BITS
    cube = square * d >> UNIT_BITS
    series = d - (square >> 1) + cube // 3
    series += (cube * square >> UNIT_BITS) // 5 - (square * square >> UNIT_BITS + 2)
    return series + first + second + times_log_two(bits - 1 + power)
