"""Gains, and the margin of one: how far past errors of a model say that it may be off.

Normative text: docs/spec/race.md, section 19.  Fractions are pairs of integers: all of it is exact.
Cost: a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from math import gcd
from typing import TypeAlias

from tcc_certs.formats.decimals import divide_nearest
from tcc_certs.formats.fixed import Q32_MAX, Q32_MIN
from tcc_certs.race.weights import NANO, Beta

Decimal: TypeAlias = "tuple[int, int]"  # numerator, places
Fraction: TypeAlias = "tuple[int, int]"  # numerator, denominator above 0


def raised(
    gain: Fraction, width: int, residuals: Sequence[Fraction], margin: Decimal | None
) -> Fraction:
    """A predicted gain, raised by the split-conformal upper quantile of past residuals.

    Of n residuals it is the ceil((n + 1) Q)-th smallest.  Where there are not so many, no residual
    bounds the gain, and the width does.  What is raised stays within 0 .. width, as all gains do.

    Args:
        width: of the edge's interval, nano-units.
        residuals: least first.
        margin: Q; None: nothing is raised.
    """
    if margin is None:
        return gain
    numerator, places = margin
    rank = -(-(len(residuals) + 1) * numerator // 10**places)
    if rank > len(residuals):
        return width, 1
    high = minus(gain, (-residuals[rank - 1][0], residuals[rank - 1][1]))
    if high[0] <= 0:
        return 0, 1
    return high if high[0] <= width * high[1] else (width, 1)


def minus(one: Fraction, other: Fraction) -> Fraction:
    """The difference of two fractions."""
    return one[0] * other[1] - other[0] * one[1], one[1] * other[1]


def most_useful(beta: Beta, slack: int | None) -> Fraction | None:
    """slack / beta in nano-units: what raises a cost further takes nothing more off a key."""
    if slack is None or beta[0] == 0:
        return None
    return slack * NANO * 10 ** beta[1], beta[0] << 64


def slack(beta: Beta, gain: Fraction) -> tuple[int, bool]:
    """beta * gain (nano-units, a fraction) as Q32.32, and whether it had to be clamped."""
    numerator, denominator = gain
    unit = NANO * 10 ** beta[1] * denominator
    exact = divide_nearest(beta[0] * numerator << 32, unit)
    held = min(max(exact, Q32_MIN), Q32_MAX)
    return held, held != exact


def lowest(decimal: Decimal) -> Fraction:
    """An exact decimal in lowest terms, so that numbers stay as short as they can be."""
    scale: int = 10 ** decimal[1]
    shared = gcd(decimal[0], scale)
    return decimal[0] // shared, scale // shared


def at_places(weight: Decimal, places: int) -> int:
    """An exact decimal as an integer of that many decimal places."""
    scale: int = 10 ** (places - weight[1])
    return weight[0] * scale


def _compared(one: Fraction, other: Fraction) -> int:
    return minus(one, other)[0]


IN_ORDER = cmp_to_key(_compared)
