"""The Renyi curve of each mechanism at every order, and its pure epsilon, rounded up.

Normative text: docs/spec/privacy.md, section 2.  Neighbours are any two inputs (of one person, one
replaced by the other); of the subsampled Gaussian, lists of which one has a record more.  Numbers
are integers in units of 10^-40, never below the true ones, and equal to them where those are short
decimals; inside, 176 bits are carried, for what is divided by alpha - 1 >= 2^-7.  A curve may end
before the last order: beyond, nothing is known of it.

    randomised response   ln(p^a q^(1-a) + q^a p^(1-a) + (k-2) q) / (a-1), q = (1-p)/(k-1)
    Gaussian, discrete    a * sensitivity^2 / (2 sigma^2)
      or not
    subsampled Gaussian   of integers ln(sum of C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2))) / (a-1),
                          z = sigma/sensitivity; at most a / (2 z^2)
    Laplace               ln(a/(2a-1) e^((a-1)t) + (a-1)/(2a-1) e^(-a t)) / (a-1), t = s/scale
    points                the chord of (a-1) * epsilon(a) between the points beside a and (1, 0)
    pure epsilon          min(epsilon, a * epsilon^2 / 2)

Source: Mironov, Renyi differential privacy (2017), Table II; Canonne, Kamath and Steinke (2020).
(a-1) D_a = ln E_Q (P/Q)^a is convex in a by Hoelder's inequality, and 0 at 1, hence the chord; the
last row is Bun and Steinke (2016), Proposition 3.3.  Of the discrete Gaussian: Canonne and others,
Theorem 4; of the subsampled one: Mironov, Talwar and Zhang (2019), Theorem 4 and section 3.3, and
that a mixture is no more divergent than its parts (quasi-convexity).
Moments of the subsampled Gaussian at integer orders have a mantissa of 224 bits and any power of
two: at great orders, and of little noise, they are beyond every fixed point.
Cost: some 20 us an order, once for each atom; of the subsampled Gaussian 3 us a term of a sum, as
many terms as the order.
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

# ---- Orders at which curves are computed and added up: one fixed set, for every run and file.
#
# Normative text: docs/spec/privacy.md, section 3.  With alpha - 1 of four significant bits two
# neighbours are never further apart than 9/8, and an order that is off the best one by that raises
# what is minimised by some thousandths; from 2^-7 to 2^20 that covers epsilons from 10^-4 to 10^4
# and beyond.  The others are those at which curves are commonly published (tenths up to 10.9,
# integers up to 64, four powers of two), so that such points are used as they are.

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
WORK_BITS = 176  # bits; 2^-176 is below 10^-52
_FLOAT_BITS = 224
MOST_TERMS = 1 << 13
# Integers at which sums are made: of great ones those whose distance from 1 has three bits.
_WHOLE_ORDERS = [
    order
    for order, places in ORDERS
    if not places and (order <= 1025 or not (order - 1) % (1 << (order - 1).bit_length() - 3))
]


def known_moments(atom: atoms.SubsampledGaussian) -> list[tuple[int, int]]:
    """Orders and moments: up to where the best order may lie, of a rate below 1."""
    over, under = ratio(atom)
    square = min(under * under // (over * over), MOST_TERMS)
    odds: int = 10**atom.rate.places // atom.rate.numerator
    most = min(64 + 32 * isqrt(square) + 8 * square * odds.bit_length(), MOST_TERMS)
    return [(order, moment(atom, order)) for order in _WHOLE_ORDERS if order <= most]


def ratio(
    atom: atoms.Gaussian | atoms.DiscreteGaussian | atoms.SubsampledGaussian,
) -> tuple[int, int]:
    """sensitivity / sigma."""
    over: int = atom.sensitivity.numerator * 10**atom.sigma.places
    under: int = atom.sigma.numerator * 10**atom.sensitivity.places
    return over, under


@lru_cache(maxsize=1 << 12)
def moment(atom: atoms.SubsampledGaussian, order: int) -> int:
    """ln of the sum of C(a,k) (1-q)^(a-k) q^k e^(k(k-1)/(2 z^2)), each term made of the last."""
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
        if abs(power - term[1]) > 2 * _FLOAT_BITS:  # the lesser is below a unit of the greater
            mantissa, power = term if term[1] > power else (mantissa, power)
            mantissa += 1
        else:
            least = min(power, term[1])
            total = (mantissa << power - least) + (term[0] << term[1] - least)
            mantissa, power = _short(total, least)
    return log_enclosure(mantissa, 1, WORK_BITS, power)[1]


def _float(numerator: int, denominator: int) -> Float:
    """A fraction above 0."""
    shift = max(0, _FLOAT_BITS + denominator.bit_length() - numerator.bit_length())
    return _short(-(-(numerator << shift) // denominator), -shift)


def _short(mantissa: int, power: int) -> Float:
    more = mantissa.bit_length() - _FLOAT_BITS
    return (-(-mantissa >> more), power + more) if more > 0 else (mantissa, power)


def _times(one: Float, other: Float) -> Float:
    return _short(one[0] * other[0], one[1] + other[1])


def _power_of_e(over: int, under: int) -> Float:
    """e^(over/under) = 2^n e^r with 0 <= r, hardly more than ln 2."""
    exponent = -(-(over << _FLOAT_BITS) // under)
    times = exponent // log_two(_FLOAT_BITS)[1]
    rest = exponent - multiple_of_log_two(times, _FLOAT_BITS)[0]
    return exp_enclosure((rest, rest), _FLOAT_BITS, _FLOAT_BITS)[1], times - _FLOAT_BITS


def sampled_at(atom: atoms.SubsampledGaussian, order: int) -> int:
    """epsilon(a) at any integer order from 2 on, composed `times` times."""
    part = replace(atom, times=1)
    if order > MOST_TERMS or atom.rate.numerator == 10**atom.rate.places:
        over, under = ratio(atom)
        return up(order * over * over, 2 * under * under) * atom.times
    return per_order(moment(part, order), atoms.Exact(order, 0)) * atom.times


def up(numerator: int, denominator: int) -> int:
    """The least integer of units at or above a fraction; `denominator` > 0."""
    return -(-numerator * UNITS // denominator)


def above_one(alpha: atoms.Exact) -> tuple[int, int]:
    """alpha - 1 as a fraction."""
    unit: int = 10**alpha.places
    return alpha.numerator - unit, unit


def per_order(value: int, alpha: atoms.Exact) -> int:
    """`value / (alpha - 1)`, rounded up to units, at least 0."""
    above, unit = above_one(alpha)
    return max(0, -(-value * unit * UNITS // (above << WORK_BITS)))


Part: TypeAlias = "atoms.Atom | int"  # of `times` 1; an integer is a plain epsilon in nano-units

_VANISHED = 1024 << WORK_BITS  # e^-1024 is far below a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """An upper bound of a Renyi curve.

    Attributes:
        rdp: epsilon at the first orders of :data:`ORDERS`, as far as it is known.
        pure: epsilon of order infinity; None: there is none.
        part, times: what it is the curve of, once, and how often; None: that is not known.
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
    """The curve of anything that is purely epsilon-private, epsilon in nano-units."""
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
    """With u = max(p, q), l = min(p, q), x = (a-1) ln(u/l): x + ln(u + l e^-2x + (k-2) q e^-x).

    That is the logarithm of the sum above, which rises with x; so x is taken rounded up, all over.
    """
    one: int = 10**atom.probability.places * (atom.choices - 1)
    truth = atom.probability.numerator * (atom.choices - 1)
    other = 10**atom.probability.places - atom.probability.numerator
    if truth == other:  # the answer says nothing of the input
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
    """With t = sensitivity / scale: (a-1) t + ln(a/(2a-1) + (a-1)/(2a-1) e^(-(2a-1) t))."""
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
    """Of integers the sum, between them the chord; beyond the last one, and nowhere more than, what
    it would be of all records.

    The best order is never far above 2 z^2 ln(1/q): from there on the last term is the sum.
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
    """A point bounds the orders below it as well, so epsilons are first made to rise with alpha."""
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
    """Where (a-1) epsilon lies on the line between two points, over a - 1."""
    (a0, e0), (a1, e1) = before, behind
    a, first, last = _value(alpha), _value(a0), _value(a1)
    low, high = (first - _ONE) * _value(e0), (last - _ONE) * _value(e1)
    # All four are whole in units of 10^-DIGITS, the two products in units of that squared.
    over = low * (last - a) + high * (a - first)
    return up(over, (last - first) * (a - _ONE) * _ONE)


_PLACES = 18
_ONE = 10**_PLACES


def _value(number: atoms.Exact) -> int:
    """In units of 10^-18, which holds every number of an atom and every order."""
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
    """e^-exponent, rounded up; `exponent` >= 0."""
    if exponent >= _VANISHED:
        return 1
    return exp_enclosure((-exponent, -exponent), WORK_BITS, WORK_BITS)[1]
