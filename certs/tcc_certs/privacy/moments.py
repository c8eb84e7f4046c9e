"""Moments of the subsampled Gaussian at integer orders, rounded up.

Normative text: docs/spec/privacy.md, section 2.  Numbers have a mantissa of 224 bits and any power
of two: at great orders, and of little noise, they are beyond every fixed point.
Source: Mironov, Talwar and Zhang, Renyi differential privacy of the sampled Gaussian mechanism
(2019), section 3.3.
Cost: 3 us a term, as many terms as the order.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.core.atoms import DiscreteGaussian, Exact, Gaussian, SubsampledGaussian
from tcc_certs.race.numbers import exp_enclosure, log_enclosure, log_two, multiple_of_log_two

# ---- Orders at which curves are computed and added up: one fixed set, for every run and file.
#
# Normative text: docs/spec/privacy.md, section 3.  With alpha - 1 of four significant bits two
# neighbours are never further apart than 9/8, and an order that is off the best one by that raises
# what is minimised by some thousandths; from 2^-7 to 2^20 that covers epsilons from 10^-4 to 10^4
# and beyond.  The others are those at which curves are commonly published (tenths up to 10.9,
# integers up to 64, four powers of two), so that such points are used as they are.

_FINEST, _COARSEST = -7, 20


def _all_orders() -> tuple[Exact, ...]:
    found = {
        1 + Fraction(m, 8) * Fraction(2) ** e
        for e in range(_FINEST, _COARSEST)
        for m in range(8, 16)
    }
    found.add(Fraction(1 + 2**_COARSEST))
    found.update(1 + Fraction(tenths, 10) for tenths in range(1, 100))
    found.update(map(Fraction, (*range(2, 65), 128, 256, 512, 1024)))
    return tuple(_decimal(order) for order in sorted(found))


def _decimal(order: Fraction) -> Exact:
    places = 0
    while order.denominator > 1:
        order, places = order * 10, places + 1
    return Exact(order.numerator, places)


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


def known_moments(atom: SubsampledGaussian) -> list[tuple[int, int]]:
    """Orders and moments: up to where the best order may lie, of a rate below 1."""
    over, under = ratio(atom)
    square = min(under * under // (over * over), MOST_TERMS)
    odds: int = 10**atom.rate.places // atom.rate.numerator
    most = min(64 + 32 * isqrt(square) + 8 * square * odds.bit_length(), MOST_TERMS)
    return [(order, moment(atom, order)) for order in _WHOLE_ORDERS if order <= most]


def ratio(atom: Gaussian | DiscreteGaussian | SubsampledGaussian) -> tuple[int, int]:
    """sensitivity / sigma."""
    over: int = atom.sensitivity.numerator * 10**atom.sigma.places
    under: int = atom.sigma.numerator * 10**atom.sensitivity.places
    return over, under


@lru_cache(maxsize=1 << 12)
def moment(atom: SubsampledGaussian, order: int) -> int:
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


def sampled_at(atom: SubsampledGaussian, order: int) -> int:
    """epsilon(a) at any integer order from 2 on, composed `times` times."""
    part = replace(atom, times=1)
    if order > MOST_TERMS or atom.rate.numerator == 10**atom.rate.places:
        over, under = ratio(atom)
        return up(order * over * over, 2 * under * under) * atom.times
    return per_order(moment(part, order), Exact(order, 0)) * atom.times


def up(numerator: int, denominator: int) -> int:
    """The least integer of units at or above a fraction; `denominator` > 0."""
    return -(-numerator * UNITS // denominator)


def above_one(alpha: Exact) -> tuple[int, int]:
    """alpha - 1 as a fraction."""
    unit: int = 10**alpha.places
    return alpha.numerator - unit, unit


def per_order(value: int, alpha: Exact) -> int:
    """`value / (alpha - 1)`, rounded up to units, at least 0."""
    above, unit = above_one(alpha)
    return max(0, -(-value * unit * UNITS // (above << WORK_BITS)))
