"""Positive reals of any size: an MPFR mantissa, and a binary exponent apart from it.

Text: docs/spec/race.md, section 7.  e^(-beta cost) may have an exponent of a hundred bits where
MPFR's have thirty; so the exponents here are integers, which have no range to leave.
Cost: a sum or a product is one or two MPFR operations and one of integers.

Error analysis, in the units of :mod:`tcc_runtime.numbers`.  A product rounds once, shifts are exact
and a sum rounds once.  Where the exponents of two summands are further apart than the precision and
64 bits more, the lesser one is left out; with mantissas between 2^-32 and 2^32, as the caller keeps
them by :meth:`Scaled.settled`, it is less than a unit of the greater.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import gmpy2

from tcc_runtime.numbers.reals import Real, Reals, context_of

Number: TypeAlias = "tuple[Real, int]"  # mantissa * 2^exponent; that of 0 has any exponent
POWER_UNITS: Final = 3
_SPARE = 64


class Scaled:
    """Arithmetic at one precision; `bits` is that of the mantissas."""

    __slots__ = (
        "_add",
        "_bits",
        "_doubled",
        "_exp",
        "_far",
        "_halved",
        "_mul",
        "_reals",
        "one",
        "zero",
    )

    def __init__(self, bits: int) -> None:
        context = context_of(bits)
        self._reals = Reals(bits)
        self._bits = bits
        self._far = bits + _SPARE
        self._add, self._mul = context.add, context.mul
        self._exp, self._halved, self._doubled = context.exp, context.div_2exp, context.mul_2exp
        self.one: Number = (self._reals.scaled(1, 0), 0)
        self.zero: Number = (self._reals.scaled(0, 0), 0)

    def power(self, numerator: int, denominator: int) -> Number:
        """e^(numerator / denominator), within `POWER_UNITS`; the mantissa lies in 1 .. 2.

        With y = k ln 2 + r, e^y = e^r 2^k.  y and ln 2 are taken to so many places that r, as an
        integer, is off by less than 2^-(p+60), so that it costs less than a unit; another is its
        rounding to p bits, as r < 1, and one that of the power.
        """
        size = max(0, numerator.bit_length() - denominator.bit_length() + 1)
        places = self._bits + _SPARE + size
        two = _log_two(places)
        whole, rest = divmod((numerator << places) // denominator, two)
        return self._exp(self._reals.scaled(rest, places)), whole

    def product(self, left: Number, right: Number) -> Number:
        """1 unit more than both together."""
        return self._mul(left[0], right[0]), left[1] + right[1]

    def sum(self, left: Number, right: Number) -> Number:
        """1 unit more than the worse of both."""
        apart = left[1] - right[1]
        if apart < 0:
            left, right, apart = right, left, -apart
        if not left[0]:
            return right
        if apart > self._far or not right[0]:
            return left
        return self._add(left[0], self._halved(right[0], apart)), left[1]

    def settled(self, number: Number) -> Number:
        """The same number, its mantissa between 1/2 and 1; exact."""
        mantissa, exponent = number
        if not mantissa:
            return number
        lift = gmpy2.get_exp(mantissa)
        if lift < 0:
            return self._doubled(mantissa, -lift), exponent + lift
        return self._halved(mantissa, lift), exponent + lift

    def log_ceilings(self, number: Number, units: int) -> tuple[int, int]:
        """Q64.64, rounded up: both ends of an enclosure of ln of a number that is `units` off.

        Raises:
            Undecided: the number is 0, which has no logarithm; one of `UNDECIDED`.
        """
        mantissa, exponent = self.settled(number)
        shift, extra = self._reals.shift, exponent.bit_length() + 2
        log = self._reals.log(mantissa)
        error = self._reals.log_error(log, units) + 2
        return self._reals.ceilings(log + (exponent * _log_two(shift + extra) >> extra), error)


def _log_two(places: int) -> int:
    """ln 2 with so many fractional bits, off by less than two of the last."""
    context = context_of(places + 2)
    return int(context.mul_2exp(context.log(gmpy2.mpfr(2)), places))
