"""Sums of a parameter on two sides: in which units, from where to where, what one side alone has.

Normative text: docs/spec/proof.md, section 1.  Cost: linear in the digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import format_decimal
from tcc_certs.values.declared import NumberType, OpenParameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A parameter that is added up, in units of 10^-places.

    Attributes:
        caps: of the left and of the right.  span: the least and the greatest value of both types;
            None: they have none in common.  grid: of the sums; 0: there is none.
        left_least: the least value of the left type.
        odd: the least value that is of the left type alone, and whether all are above it.
    """

    caps: tuple[int | None, int | None]
    span: tuple[int, int] | None
    grid: int
    left_least: int
    odd: tuple[int, bool] | None
    units: int


def sum_between(mine: OpenParameter, theirs: OpenParameter, caps: Sequence[str | None]) -> Sum:
    """The sum of a parameter that two sides have, with their limits.

    Raises:
        Rejected: D101 it has no range of numbers from 0 on.
    """
    kind, other = mine.type, theirs.type
    if not isinstance(kind, NumberType) or kind.low is None or kind.high is None:
        raise Rejected(Code.UNKNOWN_FEATURE, mine.name, "a range of numbers", "another type")
    ensure(not kind.low.startswith("-"), Code.UNKNOWN_FEATURE, mine.name, "0 or more", kind.low)
    ours = Fraction(kind.low), Fraction(kind.high)
    if not isinstance(other, NumberType):
        return _sum_of(caps, ours, None, whole=kind.whole, odd=(ours[0], False))
    ends = [Fraction(end) for end in (other.low, other.high) if end is not None]
    low, high = ends or ours
    odd = []
    if ours[0] < low:
        odd.append((ours[0], False))
    if high < ours[1]:
        beyond = Fraction(high // 1 + 1) if kind.whole else high
        odd.append((max(ours[0], beyond), not kind.whole and ours[0] <= high))
    if other.whole and not kind.whole and (ours[0] < ours[1] or ours[0].denominator > 1):
        odd.append((ours[0], ours[0].denominator == 1))
    both = max(ours[0], low), min(ours[1], high)
    whole = kind.whole or other.whole
    return _sum_of(caps, ours, both, whole=whole, odd=min(odd, default=None))


def _sum_of(
    caps: Sequence[str | None],
    ours: tuple[Fraction, Fraction],
    both: tuple[Fraction, Fraction] | None,
    *,
    whole: bool,
    odd: tuple[Fraction, bool] | None,
) -> Sum:
    given = [*ours, *(both or ()), *[Fraction(cap) for cap in caps if cap is not None]]
    places = 0
    while any((one * 10**places).denominator != 1 for one in given):
        places += 1
    unit = 10**places
    least, most = both or (1, 0)
    if whole:
        least, most = -(-least // 1), most // 1
    mine, theirs = [None if cap is None else int(Fraction(cap) * unit) for cap in caps]
    return Sum(
        caps=(mine, theirs),
        span=(int(least * unit), int(most * unit)) if least <= most else None,
        grid=unit if whole else 0,
        left_least=int(ours[0] * unit),
        odd=None if odd is None else (int(odd[0] * unit), odd[1]),
        units=unit,
    )


def text_of_units(amount: int, units: int) -> str:
    """The decimal of an amount of at least 0 in units of 10^-places."""
    return format_decimal(amount, len(str(units)) - 1)


def fits(total: int, cap: int | None) -> bool:
    """Whether a limit allows a total."""
    return cap is None or total <= cap


def odd_fits(total: int, cap: int | None, above: bool) -> bool:
    """Whether some total fits; of values that are all above one it has to be below the cap."""
    return fits(total + above, cap)


def cut(most: int, cap: int | None, grid: int) -> int:
    """The greatest sum: at most the cap, on the grid.

    Intervals.v: sums_and_cuts_are_consecutive.
    """
    end = most if cap is None else min(most, cap)
    return end // grid * grid if grid else end
