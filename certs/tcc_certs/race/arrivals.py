"""The race: masses, winners, arrivals, keys and values, computed from their definitions.

Normative text: docs/spec/race.md.  The code prefers simplicity to speed.  Masses are integers in
the units of the parent's race count, and an arrival is the sum in its definition.  A published
number is computed as an enclosure, which is narrowed until all of it rounds to one number.

At the first precision a logarithm is known to about 2^-100.  It is computed with integers alone,
from two tables and a short series, with a proven error bound.  This precision decides nearly every
rounding of a ledger.  For the others :mod:`tcc_certs.race.enclosures` computes narrower enclosures.
In this module a *unit* is 2^-104.

Error analysis.  Let v be the argument, scaled by a power of two to m in [1, 2).  Only the first 116
bits of v are used, which changes the logarithm by less than 2^-115.

- The first table is indexed by the first 8 fractional bits of m.  Its entry is a factor R with 12
  fractional bits: the rounded reciprocal of the middle of the m with these bits.  The middle is at
  least 1, so m / middle is within 2^-9 of 1, and m (R - 1/middle) is at most 2 * 2^-13.  The
  product m R is exact, and within 2^-9 + 2^-12 of 1.
- The second table is indexed by the first 17 fractional bits of m R, and its factors have 20
  fractional bits.  They are made in the same way.  So the product of m and both factors, which is
  exact too, is 1 + e with abs(e) < 2^-18 + 2^-20.
- d is e rounded down to units, which changes ln(1 + e) by less than 1.1 units.  In the series
  d - d^2/2 + d^3/3 - d^4/4 + d^5/5 each power is computed from lower powers and rounded down, and
  each quotient is rounded down.  This changes the sum by less than 5 units.  The rest of the series
  is below abs(e)^6 / 6 * 1.01 < 0.1 units.
- Each table contains -ln of its factor, rounded down from 32 more bits: an error below 1.1 units.
  The error of the multiple of ln 2 is below 2 units.

The sum is less than 1 + 1.1 + 5 + 0.1 + 2.2 + 2 < 12 units; LOG_ERROR is 16.

Source: reduction by two tables and a short series: Muller, Elementary Functions, chapter 4.

Cost: two logarithms for a child that lost, one for a child that won, and an exponential for a leaf.
A logarithm takes about 1 us.  A table entry takes 5 us when it is first used; the tables have at
most 256 and 1024 entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from tcc_certs.formats.codec import divide_nearest
from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_certs.race import enclosures

# Logarithms.

UNIT_BITS = 104
LOG_ERROR = 16

_MAX_BITS = 116  # how many leading bits of an argument are used
_FIRST_BITS, _SECOND_BITS = 8, 17  # how many fractional bits the index of a table has
_FIRST_PLACES, _SECOND_PLACES = 12, 20  # how many fractional bits its factors have
_TO_FIRST = _MAX_BITS - 1 - _FIRST_BITS
_TO_SECOND = _MAX_BITS - 1 + _FIRST_PLACES - _SECOND_BITS
_TO_UNITS = _MAX_BITS - 1 + _FIRST_PLACES + _SECOND_PLACES - UNIT_BITS
_ONE = 1 << UNIT_BITS
_EXTRA = 32


class _Factors(dict[int, "tuple[int, int]"]):
    """Maps leading bits of a number to a factor and -ln of the factor, computed on first use."""

    def __init__(self, bits: int, places: int) -> None:
        super().__init__()
        self._bits = bits
        self._places = places

    def __missing__(self, leading: int) -> tuple[int, int]:
        # The middle of the numbers with these bits is (2 leading + 1) / 2^(bits + 1).
        places = self._places
        factor = ((2 << places + self._bits + 1) // (2 * leading + 1) + 1) >> 1
        low, _ = enclosures.log_enclosure(1 << places, factor, UNIT_BITS + _EXTRA)
        self[leading] = found = factor, low >> _EXTRA
        return found


_first = _Factors(_FIRST_BITS, _FIRST_PLACES)
_second = _Factors(_SECOND_BITS, _SECOND_PLACES)


@lru_cache(maxsize=1 << 12)
def times_log_two(times: int) -> int:
    """times * ln 2 in units, with an error below 2 units."""
    return enclosures.multiple_of_log_two(times, UNIT_BITS)[0]


def log_units(value: int, power: int = 0) -> int:
    """ln(value * 2^power) in units, with an error below LOG_ERROR; `value` is above 0."""
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


# The race.

Fraction: TypeAlias = "tuple[int, int]"
# low, more, scale: low <= value * 2^scale <= low + more
Scaled: TypeAlias = "tuple[int, int, int]"

WORD = 64
BASE_BITS = UNIT_BITS  # the first precision, which is also that of stored arrivals
_LAST = 1 << WORD + 1
_WHOLE = times_log_two(WORD + 1)
_RESIDUAL_ERROR = LOG_ERROR + 2


def child_masses(
    unit: int,
    accept: bool,
    edges: Iterable[tuple[int, int, int]],
    fraction_bits: int,
) -> list[int]:
    """The masses of a node's children in canonical order, in units of 2^-unit.

    Args:
        unit: large enough to make all masses integers.
        accept: whether `stop` is a child; it is the last one.
        edges: (weight W, count, unit below) for each edge, in call order.  The race count n of the
            edge's target is count / 2^(unit below).
        fraction_bits: F.
    """
    masses = [weight * count << unit - fraction_bits - below for weight, count, below in edges]
    if accept:
        masses.append(1 << unit)
    return masses


def winner(x: int, total: int, masses: Sequence[int]) -> int | None:
    """The index of the child that wins; None if the phantom mass wins.

    It is the first child j with (2x+1) * total < 2^65 * (mass_0 + .. + mass_j).
    """
    line = (2 * x + 1) * total
    running = 0
    for index, mass in enumerate(masses):
        running += mass
        if line < running << WORD + 1:
            return index
    return None


class Arrival:
    """The arrival t of a node: weight * t(parent), plus E(x) / n unless the node won.

    Objects do not change, except that the enclosure is computed on first use.

    Attributes:
        parent: the parent's arrival; None at the root.
        weight: W of the call that leads to the node, or 2^F for `stop`.  The root ignores it.
        fraction_bits: F; the weight of the call is W / 2^F.
        x: the uniform of the first arrival or of the residual; None for a winner.
        count: m of the node; 1 at a leaf.  The race count n is m / 2^unit.
        unit: see `count`.
    """

    __slots__ = ("_base", "count", "fraction_bits", "parent", "unit", "weight", "x")

    def __init__(
        self,
        parent: Arrival | None,
        weight: int,
        fraction_bits: int,
        x: int | None,
        count: int,
        unit: int,
    ) -> None:
        self.parent = parent
        self.weight = weight
        self.fraction_bits = fraction_bits
        self.x = x
        self.count = count
        self.unit = unit
        self._base: Scaled | None = None

    @property
    def base(self) -> Scaled:
        """An enclosure of t with BASE_BITS bits of relative precision."""
        base = self._base
        if base is None:
            parent = self.parent
            if parent is None or parent._base is not None:
                base = self._base = self._after(None if parent is None else parent._base, BASE_BITS)
            else:
                base = self._settled()
        return base

    def _settled(self) -> Scaled:
        """Compute the enclosures of a node and of its ancestors that have none yet.

        It uses a loop instead of recursion because paths may be long.
        """
        path = [self]
        node = self.parent
        while node is not None and node._base is None:
            path.append(node)
            node = node.parent
        base = None if node is None else node._base
        for step in reversed(path):
            base = step._base = step._after(base, BASE_BITS)
        return base or (0, 0, 0)

    def enclose(self, bits: int) -> Scaled:
        """Enclose t with `bits` bits of relative precision.

        Each step of the path may lose a bit or two.
        """
        if bits == BASE_BITS:
            return self.base
        path = [self]
        node = self.parent
        while node is not None:
            path.append(node)
            node = node.parent
        value: Scaled | None = None
        for step in reversed(path):
            value = step._after(value, bits)
        return self.base if value is None else value

    def _after(self, before: Scaled | None, bits: int) -> Scaled:
        """Enclose t, given an enclosure of the parent's arrival; None at the root."""
        low, more, scale = 0, 0, 0
        if before is not None:
            low, more, scale = before
            low, more, scale = low * self.weight, more * self.weight, scale + self.fraction_bits
        if self.x is not None:
            late, later, late_scale = _residual(self.x, self.count, self.unit, bits)
            lift = late_scale - scale
            if lift >= 0:
                low, more, scale = low << lift, more << lift, late_scale
            else:
                late, later = late << -lift, later << -lift
            low, more = low + late, more + later
        drop = low.bit_length() - bits
        if drop > 0:
            # Each cut takes off less than 1.
            low, more, scale = low >> drop, (more >> drop) + 2, scale - drop
        return low, more, scale


def _residual(x: int, count: int, unit: int, bits: int) -> Scaled:
    """Enclose E(x) / n, where n = count / 2^unit.

    The relative precision is `bits` bits, or a few less.  At BASE_BITS it is lower by the number of
    leading zeros of U.
    """
    odd = 2 * x + 1
    size = count.bit_length()
    if bits == BASE_BITS:
        # E > U = odd / 2^65, so E is above 2^39 units
        low = _WHOLE - log_units(_LAST - odd) - _RESIDUAL_ERROR
        more, places = 2 * _RESIDUAL_ERROR, BASE_BITS
    else:
        # With so many bits after the point E has at least `bits` bits.
        places = bits + WORD + 2 - odd.bit_length()
        low, high = enclosures.log_enclosure(_LAST, _LAST - odd, places)
        more = high - low
    # 2^size is at most twice the count, and rounding down loses less than 1
    return (low << size) // count, 2 * more + 1, places + size - unit


def neg_log(arrival: Arrival, bits: int) -> enclosures.Enclosure:
    """Enclose -ln t with `bits` fractional bits, except for the few bits that the path loses."""
    if bits == BASE_BITS:
        low, more, scale = arrival.base
        units = log_units(low, -scale)
        log_low, log_high = units - LOG_ERROR, units + LOG_ERROR
    else:
        low, more, scale = arrival.enclose(bits)
        log_low, log_high = enclosures.log_enclosure(low, 1, bits, -scale)
    # ln (low + more) <= ln low + more / low, and low is at least half of 2^(number of its bits)
    return -log_high - 1 - (more << bits + 1 >> low.bit_length()), -log_low


# The published numbers of an arrival, each rounded once: -ln t, keys, values and U_P.
#
# Normative text: docs/spec/race.md, section 7.  An enclosure of 104 bits decides nearly all of
# them.  For the others the enclosure is narrowed until it decides.

_DROP = BASE_BITS - WORD
_HALF, _CUT = 1 << _DROP - 1, (1 << _DROP) - 1


class Published(NamedTuple):
    """The published numbers of a node in Q64.64, and whether they were clamped."""

    neg_log_t: int
    key: int
    neg_log_t_clamped: bool
    key_clamped: bool

    @property
    def clamped(self) -> bool:
        """Return whether -ln t or the key was clamped."""
        return self.neg_log_t_clamped or self.key_clamped


def clamp(value: int) -> int:
    """The number in the range of Q64.64 that is nearest to `value`."""
    return min(max(value, Q64_MIN), Q64_MAX)


def publish(arrival: Arrival, bound: Fraction) -> Published:
    """-ln t, and the key `bound` - ln t, each rounded once; the key of a leaf is its value.

    Args:
        arrival: t of the node.
        bound: M of the node as an exact fraction: numerator and positive denominator.

    Raises:
        Rejected: D202 4096 bits do not decide a rounding.
    """
    base = neg_log(arrival, BASE_BITS)
    low, wide = base[0] + _HALF, base[1] - base[0]
    above = low + (bound[0] << BASE_BITS) // bound[1]
    # Both ranges must round to one number: low - 1 to low + wide, and above - 1 to above + wide +
    # 1.  The ends are wider by 1 so that ties stay undecided; `above` may be too low by less than
    # 1.
    if (low - 1 & _CUT) + wide < _CUT and (above - 1 & _CUT) + wide + 1 < _CUT:
        plain, key = low >> _DROP, above >> _DROP
        if Q64_MIN <= plain <= Q64_MAX and Q64_MIN <= key <= Q64_MAX:
            return Published(plain, key, False, False)
    return _decided(arrival, bound, base)


def _decided(arrival: Arrival, bound: Fraction, base: enclosures.Enclosure) -> Published:
    """Round as :func:`publish` does, with as much precision as is needed.

    Args:
        base: the enclosure at BASE_BITS.
    """

    def rounded(bits: int, numerator: int, denominator: int) -> enclosures.Enclosure:
        low, high = base if bits == BASE_BITS else neg_log(arrival, bits)
        more_low, more_high = enclosures.enclose_fraction(numerator, denominator, bits)
        unit = 1 << bits - WORD
        return divide_nearest(low + more_low, unit), divide_nearest(high + more_high, unit)

    plain = enclosures.decide(lambda bits: rounded(bits, 0, 1), "neg_log_t", BASE_BITS)
    key = enclosures.decide(lambda bits: rounded(bits, *bound), "key_raw", BASE_BITS)
    held, held_key = clamp(plain), clamp(key)
    return Published(held, held_key, held != plain, held_key != key)


def leaf_uniform(arrival: Arrival) -> int:
    """U_P = floor(2^64 * (1 - exp(-t))) of a leaf.

    Raises:
        Rejected: D202 4096 bits do not decide it.
    """

    def enclose(bits: int) -> enclosures.Enclosure:
        low, more, scale = arrival.enclose(bits)
        high = low + more
        if (low >> scale if scale >= 0 else low << -scale) >= 46:
            return (1 << WORD) - 1, (1 << WORD) - 1  # 0 < e^-46 < 2^-64
        if scale > WORD and high >> scale - WORD - 1 == 0:
            return 0, 0  # 1 - e^-t < t < 2^-65
        least, most = enclosures.exp_enclosure((-high, -low), scale, bits)
        return ((1 << bits) - most) >> bits - WORD, ((1 << bits) - least) >> bits - WORD

    return enclosures.decide(enclose, "U_P", BASE_BITS)
