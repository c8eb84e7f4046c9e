"""The Renyi curve of each mechanism at every order, and its pure epsilon, rounded up.

Normative text: docs/spec/privacy.md, section 2.  Neighbours are two inputs in which one record is
replaced.  For the subsampled Gaussian one input has a record that the other lacks.  Numbers are
integers in units of 10^-40.  They are at least the true numbers, and equal to them if these are
short decimals.  Intermediate results have 176 fractional bits, because they may be divided by
alpha - 1 >= 2^-7.  A curve may end before the last order; its values at later orders are unknown.

    randomised response   ln(p^a q^(1-a) + q^a p^(1-a) + (k-2) q) / (a-1), q = (1-p)/(k-1)
    Gaussian, discrete    a * sensitivity^2 / (2 sigma^2)
      or not
    subsampled Gaussian   at integers ln(sum of C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2))) / (a-1),
                          z = sigma/sensitivity; at most a / (2 z^2)
    Laplace               ln(a/(2a-1) e^((a-1)t) + (a-1)/(2a-1) e^(-a t)) / (a-1), t = s/scale
    points                the chord of (a-1) * epsilon(a) between the nearest points, or from (1, 0)
    pure epsilon          min(epsilon, a * epsilon^2 / 2)

Source: Mironov, Renyi differential privacy (2017), Table II; Canonne, Kamath and Steinke (2020).
By Hoelder's inequality (a-1) D_a = ln E_Q (P/Q)^a is convex in a, and it is 0 at 1, so a chord is a
bound.  The last row is Bun and Steinke (2016), Proposition 3.3.  The discrete Gaussian is in
Canonne and others, Theorem 4.  The subsampled one is in Mironov, Talwar and Zhang (2019), Theorem 4
and section 3.3; it also uses that a mixture does not diverge more than its parts (quasi-convexity).

Moments of the subsampled Gaussian at integer orders have a mantissa of 224 bits and any power of
two.  At great orders and with little noise no fixed point would suffice.

Cost: some 20 us for each order, once for each atom.  For the subsampled Gaussian 3 us for each term
of a sum, and a sum has as many terms as the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.policy import atoms
from tcc_certs.race.enclosures import exp_enclosure, log_enclosure, log_two, multiple_of_log_two

# The orders at which curves are computed and added up: one fixed set for all runs and files.
#
# Normative text: docs/spec/privacy.md, section 3.  alpha - 1 has four significant bits, so at two
# neighbours its ratio is at most 9/8.  An order that is off the best one by this ratio raises the
# minimum by some thousandths.  The range from 2^-7 to 2^20 covers epsilons from 10^-4 to 10^4 and
# beyond.  Curves are often published at the other orders: tenths up to 10.9, integers up to 64, and
# four powers of two.  Points at these orders are used unchanged.

_FINEST, _COARSEST = -7, 20


def _all_orders() -> tuple[atoms.Exact, ...]:
    found = {
        1 + Fraction(m, 8) * Fraction(2) ** e
        for e in range(_FINEST, _COARSEST)
        for m in range(8, 16)
    }
    found.add(Fraction(1 + 2**_COARSEST))
    found.update(1 + Fraction(tenths, 10) for tenths in range(1, 100))
    found.update(map(Fraction, (*range(2, 65), 128, 256, 512, 1024)))
    return tuple(_decimal(order) for order in sorted(found))


def _decimal(order: Fraction) -> atoms.Exact:
    places = 0
    while order.denominator > 1:
        order, places = order * 10, places + 1
    return atoms.Exact(order.numerator, places)


ORDERS = _all_orders()


Float: TypeAlias = "tuple[int, int]"  # mantissa and power of two, rounded up

UNITS = 10**40
WORK_BITS = 176  # fractional bits of intermediate results; 2^-176 is below 10^-52
_FLOAT_BITS = 224
MOST_TERMS = 1 << 13
# The integer orders at which sums are computed; above 1025, order - 1 has three significant bits.
_WHOLE_ORDERS = [
    order
    for order, places in ORDERS
    if not places and (order <= 1025 or not (order - 1) % (1 << (order - 1).bit_length() - 3))
]


def known_moments(atom: atoms.SubsampledGaussian) -> list[tuple[int, int]]:
    """Pairs of an order and the value of :func:`moment`, for a rate below 1.

    The orders go up to where the order with the least epsilon may be.
    """
    over, under = ratio(atom)
    square = min(under * under // (over * over), MOST_TERMS)
    odds: int = 10**atom.rate.places // atom.rate.numerator
    most = min(64 + 32 * isqrt(square) + 8 * square * odds.bit_length(), MOST_TERMS)
    return [(order, moment(atom, order)) for order in _WHOLE_ORDERS if order <= most]


def ratio(
    atom: atoms.Gaussian | atoms.DiscreteGaussian | atoms.SubsampledGaussian,
) -> tuple[int, int]:
    """sensitivity / sigma as a fraction."""
    over: int = atom.sensitivity.numerator * 10**atom.sigma.places
    under: int = atom.sigma.numerator * 10**atom.sensitivity.places
    return over, under


@lru_cache(maxsize=1 << 12)
def moment(atom: atoms.SubsampledGaussian, order: int) -> int:
    """ln of the sum of C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2)) for k = 0 .. a, rounded up.

    Each term is computed from the one before.  The result has 176 fractional bits.
    """
    rate, unit = atom.rate.numerator, 10**atom.rate.places
    over, under = ratio(atom)
    lift, step = _power_of_e(over * over, under * under), _float(unit - rate, unit)
    growth, term = (1, 0), (1, 0)
    for bit in f"{order:b}":
        term = _times(term, term)
        term = _times(term, step) if bit == "1" else term
    mantissa, power = term
    for k in range(order):
        made = -(-term[0] * growth[0] * (order - k) * rate // ((k + 1) * (unit - rate)))
        term, growth = _short(made, term[1] + growth[1]), _times(growth, lift)
        # the smaller one is below the last place of the greater one
        if abs(power - term[1]) > 2 * _FLOAT_BITS:
            mantissa, power = term if term[1] > power else (mantissa, power)
            mantissa += 1
        else:
            least = min(power, term[1])
            total = (mantissa << power - least) + (term[0] << term[1] - least)
            mantissa, power = _short(total, least)
    return log_enclosure(mantissa, 1, WORK_BITS, power)[1]


def _float(numerator: int, denominator: int) -> Float:
    """A positive fraction as a :data:`Float`."""
    shift = max(0, _FLOAT_BITS + denominator.bit_length() - numerator.bit_length())
    return _short(-(-(numerator << shift) // denominator), -shift)


def _short(mantissa: int, power: int) -> Float:
    more = mantissa.bit_length() - _FLOAT_BITS
    return (-(-mantissa >> more), power + more) if more > 0 else (mantissa, power)


def _times(one: Float, other: Float) -> Float:
    return _short(one[0] * other[0], one[1] + other[1])


def _power_of_e(over: int, under: int) -> Float:
    """e^(over/under) = 2^n e^r, where r >= 0 is at most a little above ln 2."""
    exponent = -(-(over << _FLOAT_BITS) // under)
    times = exponent // log_two(_FLOAT_BITS)[1]
    rest = exponent - multiple_of_log_two(times, _FLOAT_BITS)[0]
    return exp_enclosure((rest, rest), _FLOAT_BITS, _FLOAT_BITS)[1], times - _FLOAT_BITS


def sampled_at(atom: atoms.SubsampledGaussian, order: int) -> int:
    """epsilon(a) at an integer order of at least 2, composed `atom.times` times."""
    part = replace(atom, times=1)
    if order > MOST_TERMS or atom.rate.numerator == 10**atom.rate.places:
        over, under = ratio(atom)
        return up(order * over * over, 2 * under * under) * atom.times
    return per_order(moment(part, order), atoms.Exact(order, 0)) * atom.times


def up(numerator: int, denominator: int) -> int:
    """A fraction in units, rounded up; `denominator` > 0."""
    return -(-numerator * UNITS // denominator)


def above_one(alpha: atoms.Exact) -> tuple[int, int]:
    """alpha - 1 as a fraction."""
    unit: int = 10**alpha.places
    return alpha.numerator - unit, unit


def per_order(value: int, alpha: atoms.Exact) -> int:
    """`value / (alpha - 1)` in units, rounded up, at least 0; `value` has 176 fractional bits."""
    above, unit = above_one(alpha)
    return max(0, -(-value * unit * UNITS // (above << WORK_BITS)))


Part: TypeAlias = "atoms.Atom | int"  # an atom with `times` 1, or a plain epsilon in nano-units

_VANISHED = 1024 << WORK_BITS  # e^-1024 is far below a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """An upper bound of a Renyi curve.

    Attributes:
        rdp: epsilon at the first orders of :data:`ORDERS`, as far as it is known.
        pure: the epsilon of order infinity; None if the mechanism has no pure epsilon.
        part: the mechanism or plain epsilon that has this curve; None if it is not known.
        times: how often the part is composed with itself.
    """

    rdp: Sequence[int]
    pure: int | None
    part: Part | None = None
    times: int = 1


def curve_of(atom: atoms.Atom) -> Curve:
    """The curve of an atom, composed with itself `times` times."""
    part, times = replace(atom, times=1), atom.times
    once = _curve(part)
    pure = None if once.pure is None else once.pure * times
    rdp = [epsilon * times for epsilon in once.rdp]
    return Curve(rdp=rdp, pure=pure, part=part, times=times)


@lru_cache(maxsize=1 << 10)
def pure_curve(nano: int) -> Curve:
    """The curve of any mechanism with a pure epsilon, given in nano-units."""
    pure = up(nano, 10**9)
    rdp = [
        min(pure, up(alpha.numerator * nano * nano, 2 * 10 ** (18 + alpha.places)))
        for alpha in ORDERS
    ]
    return Curve(rdp=rdp, pure=pure, part=nano)


def from_bits(value: int) -> int:
    """A number of 176 fractional bits in units, rounded up."""
    return -(-value * UNITS >> WORK_BITS)


@lru_cache(maxsize=1 << 10)
def _curve(atom: atoms.Atom) -> Curve:
    if isinstance(atom, atoms.RandomizedResponse):
        return _response(atom)
    if isinstance(atom, atoms.Laplace):
        return _laplace(atom)
    if isinstance(atom, atoms.Points):
        return _chords(atom)
    return _subsampled(atom) if isinstance(atom, atoms.SubsampledGaussian) else _gaussian(atom)


def _response(atom: atoms.RandomizedResponse) -> Curve:
    """The curve of randomised response.

    Let u = max(p, q), l = min(p, q) and x = (a-1) ln(u/l).  The logarithm in the table above is x +
    ln(u + l e^-2x + (k-2) q e^-x).  It grows with x, so x is rounded up everywhere.
    """
    one: int = 10**atom.probability.places * (atom.choices - 1)
    truth = atom.probability.numerator * (atom.choices - 1)
    other = 10**atom.probability.places - atom.probability.numerator
    if truth == other:  # the answer does not depend on the input
        return Curve(rdp=(0,) * len(ORDERS), pure=0)
    great, least = max(truth, other), min(truth, other)
    pure = log_enclosure(great, least, WORK_BITS)[1]
    u, low = _bits(great, one), _bits(least, one)
    rest = _bits((atom.choices - 2) * other, one)
    rdp = []
    for alpha in ORDERS:
        above, unit = above_one(alpha)
        x = -(-pure * above // unit)
        power = _falling(x)
        inner = u + _product(low, _product(power, power)) + _product(rest, power)
        rdp.append(min(per_order(x + _log(inner), alpha), from_bits(pure)))
    return Curve(rdp=rdp, pure=from_bits(pure))


def _laplace(atom: atoms.Laplace) -> Curve:
    """The curve (a-1) t + ln(a/(2a-1) + (a-1)/(2a-1) e^(-(2a-1) t)), t = sensitivity / scale."""
    over: int = atom.sensitivity.numerator * 10**atom.scale.places
    under: int = atom.scale.numerator * 10**atom.sensitivity.places
    rdp, pure = [], up(over, under)
    for alpha in ORDERS:
        above, unit = above_one(alpha)
        double = above + alpha.numerator  # 2a - 1, in units of the order's last place
        fall = (double * over << WORK_BITS) // (unit * under)
        inner = _bits(alpha.numerator, double)
        inner += _product(_bits(above, double), _falling(fall))
        lift = _bits(above * over, unit * under)
        rdp.append(min(per_order(lift + _log(inner), alpha), pure))
    return Curve(rdp=rdp, pure=pure)


def _gaussian(atom: atoms.Gaussian | atoms.DiscreteGaussian | atoms.SubsampledGaussian) -> Curve:
    over, under = ratio(atom)
    rdp = [
        up(alpha.numerator * over * over, 2 * 10**alpha.places * under * under) for alpha in ORDERS
    ]
    return Curve(rdp=rdp, pure=None)


def _subsampled(atom: atoms.SubsampledGaussian) -> Curve:
    """The curve of the subsampled Gaussian.

    At integers it is the sum, and between them the chord.  It is never more than the curve without
    subsampling, and it equals that curve beyond the last integer.  The best order is never far
    above 2 z^2 ln(1/q); from there on the last term is nearly the whole sum.
    """
    whole = _gaussian(atom)
    rate, unit = atom.rate.numerator, 10**atom.rate.places
    if rate == unit:
        return whole
    known = [(1, 0), *known_moments(atom)]
    rdp, at = list(whole.rdp), 1
    for i, alpha in enumerate(ORDERS):
        above, one = above_one(alpha)
        while at < len(known) and (known[at][0] - 1) * one < above:
            at += 1
        if at == len(known):
            break
        (first, low), (last, high) = known[at - 1], known[at]
        line = low * (last * one - one - above) + high * (above - first * one + one)
        rdp[i] = min(rdp[i], per_order(-(-line // (one * (last - first))), alpha))
    return Curve(rdp=rdp, pure=None)


def _chords(atom: atoms.Points) -> Curve:
    """The curve of published points.

    A point bounds all lower orders too, so epsilons are first made to increase with alpha.
    """
    known: list[tuple[atoms.Exact, atoms.Exact]] = []
    for alpha, epsilon in reversed(atom.points):
        least = min(epsilon, known[-1][1], key=_value) if known else epsilon
        known.append((alpha, least))
    known.append((atoms.Exact(1, 0), atoms.Exact(0, 0)))
    known.reverse()
    rdp, at = [], 1
    for alpha in ORDERS:
        while at < len(known) and _value(known[at][0]) < _value(alpha):
            at += 1
        if at == len(known):
            break
        rdp.append(_chord(alpha, known[at - 1], known[at]))
    return Curve(rdp=rdp, pure=None)


def _chord(
    alpha: atoms.Exact,
    before: tuple[atoms.Exact, atoms.Exact],
    behind: tuple[atoms.Exact, atoms.Exact],
) -> int:
    """epsilon where (a-1) epsilon is on the line between two points."""
    (a0, e0), (a1, e1) = before, behind
    a, first, last = _value(alpha), _value(a0), _value(a1)
    low, high = (first - _ONE) * _value(e0), (last - _ONE) * _value(e1)
    # All four are integers in units of 10^-18, and the two products in units of 10^-36.
    over = low * (last - a) + high * (a - first)
    return up(over, (last - first) * (a - _ONE) * _ONE)


_PLACES = 18
_ONE = 10**_PLACES


def _value(number: atoms.Exact) -> int:
    """An exact number in units of 10^-18; every number of an atom and every order is an integer."""
    scaled: int = number.numerator * 10 ** (_PLACES - number.places)
    return scaled


def _bits(numerator: int, denominator: int) -> int:
    """A fraction with 176 fractional bits, rounded up."""
    return -(-(numerator << WORK_BITS) // denominator)


def _product(one: int, other: int) -> int:
    return -(-one * other >> WORK_BITS)


def _log(inner: int) -> int:
    return log_enclosure(inner, 1 << WORK_BITS, WORK_BITS)[1]


def _falling(exponent: int) -> int:
    """e^-exponent, rounded up, for `exponent` >= 0."""
    if exponent >= _VANISHED:
        return 1
    return exp_enclosure((-exponent, -exponent), WORK_BITS, WORK_BITS)[1]
