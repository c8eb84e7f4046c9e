"""What two sides add up, beside the values and the sums themselves, one by one.

A `Sum` (docs/spec/proof.md, section 1) says of two types what every sum of values of both is, and
what the left may add that the right has not.  Here types have their values listed on a fine grid.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, TypeAlias

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.proof.sums import Sum, cut, fits, odd_fits, sum_between
from tcc_certs.values.declared import NumberType, OpenParameter, TextType
from tests.exact.test_alone import ensure_alone

STEP = 20  # numbers are multiples of 1/20: between two ends there are some that are none
ENDS = ("0", "0.5", "1", "1.5", "2", "3")
Values: TypeAlias = "frozenset[int]"  # in steps


def _type(whole: bool, ends: tuple[str, str] | None) -> NumberType:
    low, high = ends or (None, None)
    return NumberType(whole=whole, low=low, high=high)


RANGES = [
    *[_type(False, ends) for ends in combinations_with_replacement(ENDS, 2)],
    *[_type(True, ends) for ends in combinations_with_replacement(("0", "1", "2", "3"), 2)],
]
OPEN = [_type(False, None), _type(True, None), _type(True, ("-2", "1")), _type(False, ("4", "5"))]


def _values(kind: NumberType) -> Values:
    low = Fraction(kind.low or 0) * STEP
    high = Fraction(kind.high or 5) * STEP
    return frozenset(
        [at for at in range(5 * STEP + 1) if low <= at <= high and not (kind.whole and at % STEP)]
    )


VALUES = {kind: _values(kind) for kind in (*RANGES, *OPEN)}


def _between(mine: NumberType, theirs: object, *caps: str | None) -> Sum:
    one, other = (OpenParameter(name="x", type=kind) for kind in (mine, theirs))
    return sum_between(one, other, caps or (None, None))


def _units(at: int, units: int) -> Fraction:
    return Fraction(at * units, STEP)


def test_of_two_types_it_is_said_which_values_they_share_and_which_the_left_alone_has() -> None:
    for mine, theirs in product(RANGES, (*RANGES, *OPEN)):
        ours = VALUES[mine]
        found = _between(mine, theirs)
        both, odd = ours & VALUES[theirs], ours - VALUES[theirs]
        span = (min(both), max(both)) if both else None
        assert found.span == (span and tuple([_units(at, found.units) for at in span])), theirs
        assert found.left_least == _units(min(ours), found.units)
        assert found.grid == (found.units if mine.whole or theirs.whole else 0)
        assert (found.odd is None) == (not odd), theirs
        if found.odd is not None:
            # Sums and caps are whole units: what is above one fits where the next one does.
            least = _units(min(odd), found.units)
            assert found.odd == (-(-least // 1) - found.odd[1], least.denominator > 1), theirs


def test_values_of_another_kind_are_of_the_left_alone() -> None:
    for mine in RANGES:
        found = _between(mine, TextType(most=9))
        least = _units(min(VALUES[mine]), found.units)
        assert (found.span, found.left_least, found.odd) == (None, least, (least, False))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TextType(), "a range of numbers"),
        (NumberType(whole=False, low=None, high="9"), "a range of numbers"),
        (NumberType(whole=False, low="0", high=None), "a range of numbers"),
        (NumberType(whole=False, low="-1", high="9"), "0 or more"),
    ],
)
def test_what_is_added_up_is_a_range_from_0(kind: Any, expected: str) -> None:
    of = OpenParameter(name="amount", type=kind)
    with pytest.raises(Rejected) as refusal:
        sum_between(of, of, (None, None))
    assert (refusal.value.code.value, refusal.value.expected) == ("D101", expected)


@pytest.mark.parametrize("caps", [("0.25", None), (None, "1.005"), (None, None)])
def test_units_are_the_greatest_of_which_all_that_is_given_is_a_whole_number(
    caps: tuple[str | None, str | None],
) -> None:
    for mine in RANGES[::2]:
        for theirs in (*RANGES[::3], TextType(most=9)):
            found = _between(mine, theirs, *caps)
            numbers = [mine.low, mine.high, *caps]
            if isinstance(theirs, NumberType):  # the ends of what both have, whole or not
                numbers.append(max(mine.low, theirs.low, key=lambda end: Fraction(end or 0)))
                numbers.append(min(mine.high, theirs.high, key=lambda end: Fraction(end or 0)))
            places = max([len((one or "").partition(".")[2]) for one in numbers])
            assert found.units == 10**places
            given = [None if cap is None else Fraction(cap) * found.units for cap in caps]
            assert list(found.caps) == given


@pytest.mark.parametrize("cap", [None, "0", "0.3", "2.5", "4"])
def test_sums_of_what_both_have_are_all_of_the_grid_between_two_ends(cap: str | None) -> None:
    """Intervals.v: sums_and_cuts_are_consecutive."""
    most = None if cap is None else int(Fraction(cap) * STEP)
    for mine in RANGES[::3]:
        for theirs in (*RANGES[::6], *OPEN[:2]):
            found = _between(mine, theirs, cap, None)
            if found.span is None:
                continue
            both = VALUES[mine] & VALUES[theirs]
            sums, low, high = {0}, 0, 0
            for _ in range(3):
                sums = {one + at for one in sums for at in both}
                sums = {one for one in sums if most is None or one <= most}
                low += found.span[0]
                assert fits(low, found.caps[0]) == bool(sums)
                if not sums:
                    break
                high = cut(high + found.span[1], found.caps[0], found.grid)
                assert low == _units(min(sums), found.units)
                assert high == _units(max(sums), found.units)


@pytest.mark.parametrize("cap", [None, "0.5", "1", "2"])
def test_what_the_left_alone_has_may_come_where_one_of_it_fits(cap: str | None) -> None:
    most = None if cap is None else int(Fraction(cap) * STEP)
    for mine in RANGES[::2]:
        for theirs in (*RANGES[::4], *OPEN):
            odd = VALUES[mine] - VALUES[theirs]
            found = _between(mine, theirs, cap, None)
            for spent in ("0", "0.5", "1"):
                total = Fraction(spent) * STEP
                comes = any(most is None or total + at <= most for at in odd)
                amount = Fraction(spent) * found.units
                if amount.denominator > 1:
                    continue
                of = found.odd
                said = of is not None and odd_fits(int(amount) + of[0], found.caps[0], of[1])
                assert said == comes, (mine, theirs, spent)


def test_a_range_of_one_whole_number_is_within_whole_numbers() -> None:
    """All that a type of numbers of any kind may have is 2, which is whole."""
    text = 'grammar g version "1"\ntool pay(; x: {})\nplan = pay{{0,3}}\nlimit sum(pay.x) <= 4\n'
    mine, theirs = (tcc.compile_text(text.format(of)) for of in ("number 2..2", "integer 1..3"))
    found = tcc.prove(mine, implies=theirs)
    assert found.verdict == "proved"
    ensure_alone(found, (mine, theirs))
