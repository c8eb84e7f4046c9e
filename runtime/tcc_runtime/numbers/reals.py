"""Working precision: reals as MPFR numbers with a proven error, and the roundings that they decide.

Text: docs/spec/race.md, section 7.
Cost: one MPFR logarithm for an arrival, another for its logarithm.  A rounding is a few integer
operations.

Error analysis.  Let u = 2^-p at precision p.  Every MPFR operation here is correctly rounded to
nearest, so it multiplies its exact result by 1 + d with abs(d) <= u.  Write "c units" for a
relative error of at most (1 + u)^c - 1.

- E = -ln(1 - U) is computed from the exact 65-bit number 1 - U = (2 (2^64 - 1 - x) + 1) / 2^65: 1
  unit.  A race count n = m / 2^(F d) is an integer, rounded once and scaled exactly: 1 unit.  So E
  / n: 3 units.
- A weight w = W / 2^F has at most 63 bits: exact. t(u) = w t(v) or w t(v) + E / n adds positive
  numbers (fused, one rounding), so it has max(c(v), 3) + 1 units.  With 3 at the root a node at
  depth k has at most k + 3 units: ``units(k)``.
- y = ln t: c units on t move y by at most (c + 1) u for c < 2^(p/2); its own rounding moves it by
  at most abs(y) u.  With S = p - 32 fractional bits, let L be the floor or the truncation of y 2^S.
  L is off by at most (c + 1 + abs(y)) 2^-32 + 1 units of the last place: ``log_error``, rounded up.
- A winner has ln t(u) = ln w + ln t(v).  Both the two integers and their errors are added.
- z = e^-t: c units on t move t by c t u, hence z by at most z c t u <= c u (as t e^-t < 1).  Its
  rounding moves z by at most u.  With S bits: at most (c + 2) 2^-32 + 1 units of the last place.

M(v) is rational and is used as its floor at S bits, 1 unit.  A number is published if all reals in
the resulting open interval round to it.  Otherwise it is computed again at a higher precision.

Range.  The analysis holds as long as no exponent leaves the range of MPFR, about 2^30 in size.  A
result beyond the range never becomes 0 or infinite here, because the operation raises an error of
``UNDECIDED``.  The run then ends as if a rounding had stayed open.  :mod:`tcc_runtime.numbers.tail`
stores exponents of any size separately.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import gmpy2

from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_runtime.errors import Undecided

Real: TypeAlias = "gmpy2.mpfr"
FIRST_BITS = 160
LAST_BITS = 4096
_GUARD = 32
_CERTAIN = 46  # e^-46 < 2^-66
# The errors of an unknown number: a rounding stays open, or a result has left the range.
UNDECIDED: Final = (
    Undecided,
    gmpy2.OverflowResultError,
    gmpy2.UnderflowResultError,
    gmpy2.InvalidOperationError,
    gmpy2.DivisionByZeroError,
)


def context_of(bits: int) -> gmpy2.context:
    """Return arithmetic to nearest at `bits` bits; results beyond the range raise errors of
    `UNDECIDED`.
    """
    return gmpy2.context(
        precision=bits,
        round=gmpy2.RoundToNearest,
        emin=gmpy2.get_emin_min(),
        emax=gmpy2.get_emax_max(),
        trap_overflow=True,
        trap_underflow=True,
        trap_invalid=True,
        trap_divzero=True,
    )


class Reals:
    """Arithmetic at one precision.

    Attributes:
        bits: p, the working precision.
        shift: S, the fractional bits of logarithms as integers.
    """

    __slots__ = (
        "_exp",
        "_exp_less_one",
        "_half",
        "_halved",
        "_log",
        "_log_one_more",
        "_minus",
        "_one",
        "_scale",
        "_unit",
        "add",
        "bits",
        "div",
        "fms",
        "mul",
        "shift",
    )

    def __init__(self, bits: int) -> None:
        context = context_of(bits)
        self.bits = bits
        self.shift = bits - _GUARD
        # Use only this context's methods: an operator would use the caller's active context.
        self.add, self.mul, self.div, self.fms = context.add, context.mul, context.div, context.fms
        self._log, self._exp, self._minus = context.log, context.exp, context.minus
        self._exp_less_one, self._log_one_more = context.expm1, context.log1p
        self._halved = context.div_2exp
        self._one = gmpy2.mpfr(1)
        self._unit = context.div_2exp(self._one, 65)
        self._scale = context.mul_2exp(self._one, self.shift)
        self._half = 1 << (self.shift - 65)

    def scaled(self, mantissa: int, exponent: int) -> Real:
        """Return ``mantissa * 2^-exponent``: one rounding, none below 2^p."""
        return self._halved(self.mul(self._one, mantissa), exponent)

    def log_tail(self, word: int) -> Real:
        """Return ln(1 - U) = -E of a PRF word, a negative number; 1 unit."""
        return self._log(self.mul(self._unit, 2 * (0xFFFFFFFFFFFFFFFF - word) + 1))

    def exponential(self, word: int) -> Real:
        """Return E of a PRF word; 1 unit."""
        return self._minus(self.log_tail(word))

    def exponential_of(self, word: int) -> Real:
        """Return -ln U of a PRF word; 1 unit."""
        return self._minus(self._log(self.mul(self._unit, 2 * word + 1)))

    def log(self, value: Real) -> int:
        """Return ln of a positive real with S fractional bits; see :func:`log_error` for its
        error.
        """
        return int(self.mul(self._log(value), self._scale))

    def log_error(self, log: int, units: int) -> int:
        """Return an error bound of :meth:`log` for a number that is `units` units off."""
        return 2 + ((units + 4 + (abs(log) >> self.shift)) >> _GUARD)

    def ceilings(self, value: int, error: int) -> tuple[int, int]:
        """Return both ends of ``value +- error``, in units of 2^-S, rounded up to Q64.64."""
        drop = self.shift - 64
        return -(-(value - error) >> drop), -(-(value + error) >> drop)

    def nearest(self, value: int, below: int, above: int) -> int:
        """Return the Q64.64 number nearest to every real from ``value - below`` to
        ``value + above``.

        Args:
            value, below, above: in units of 2^-S; the ends do not belong to the interval.

        Raises:
            Undecided: the reals do not all round to the same number.
        """
        drop = self.shift - 64
        middle = value + self._half
        low = (middle - below) >> drop
        # Equal floors exclude a tie, so the code has no case for ties to even.
        if low != (middle + above) >> drop:
            raise Undecided(f"{self.bits} bits do not decide a rounding")
        return low

    def late(self, time: Real, units: int) -> tuple[Real, int]:
        """Return -ln(1 - e^-t) = -ln U for a `time` t that is `units` units off, and the error of
        the result.

        Below t = 1/2 the step to 1 - e^-t keeps the relative error, and its logarithm is above 0.9.
        From 1/2 on, e^-t is below 0.61, and each unit of t moves it by t units.  The step from
        there to the logarithm less than doubles this error.
        """
        if 2 * time < 1:
            short = self._minus(self._exp_less_one(self._minus(time)))
            return self._minus(self._log(short)), 2 * (units + 2) + 2
        early = self._exp(self._minus(time))
        found = self._minus(self._log_one_more(self._minus(early)))
        return found, 2 * (units * (int(time) + 1) + 2) + 2

    def arrival_word(self, time: Real, units: int) -> int:
        """Return U_P = floor(2^64 (1 - e^-t)) for a `time` t that is `units` units off.

        Raises:
            Undecided: the enclosure holds several values.
        """
        if time > _CERTAIN:  # e^-t < 2^-64; for such t the power of e could leave the range
            return (1 << 64) - 1
        drop = self.shift - 64
        middle = int(self.mul(self._exp(self._minus(time)), self._scale))
        error = 2 + ((units + 4) >> _GUARD)
        low, high = max(middle - error, 0), min(middle + error, 1 << self.shift)
        # e^-t lies strictly inside; floor(2^64 - z) = 2^64 - ceil(z).
        least, most = (low >> drop) + 1, -(-high >> drop)
        if least != most:
            raise Undecided(f"{self.bits} bits do not decide an arrival")
        return (1 << 64) - least


def units(depth: int) -> int:
    """Return the relative error of t at `depth` calls, in units of 2^-p."""
    return depth + 3


def clamped(value: int) -> int:
    """Return `value` limited to signed 128 bits."""
    return max(Q64_MIN, min(Q64_MAX, value))
