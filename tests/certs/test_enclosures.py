"""Enclosures hold the true value, and are narrow: against MPFR, which shares no code."""

from __future__ import annotations

import random

import gmpy2
import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.race import enclosures
from tcc_certs.race.enclosures import decide, exp_enclosure, log_enclosure, log_two

_PRECISION = 2600


@pytest.fixture(autouse=True)
def _precise():
    with gmpy2.context(gmpy2.get_context(), precision=_PRECISION, emax=2**40, emin=-(2**40)):
        yield


def check_log(numerator: int, denominator: int, bits: int) -> None:
    low, high = log_enclosure(numerator, denominator, bits)
    if denominator <= 2 * numerator <= 4 * denominator:  # log1p is good next to a ratio of 1
        true = gmpy2.log1p(gmpy2.mpfr(gmpy2.mpq(numerator - denominator, denominator)))
    else:
        true = gmpy2.log(gmpy2.mpfr(gmpy2.mpq(numerator, denominator)))
    true *= gmpy2.mpfr(2) ** bits
    assert low <= true <= high, (numerator, denominator, bits)
    assert high - low <= 2, (numerator, denominator, bits)


def check_exp(y: int, width: int, y_bits: int, bits: int) -> None:
    low, high = exp_enclosure((y, y + width), y_bits, bits)
    scale = gmpy2.mpfr(2) ** bits
    true_low = gmpy2.exp(gmpy2.mpfr(y) / gmpy2.mpfr(2) ** y_bits) * scale
    true_high = gmpy2.exp(gmpy2.mpfr(y + width) / gmpy2.mpfr(2) ** y_bits) * scale
    assert 0 <= low <= true_low <= true_high <= high, (y, width, y_bits, bits)
    assert high - low < true_high - true_low + 3, (y, width, y_bits, bits)


def logarithms(rng: random.Random, count: int) -> None:
    for _ in range(count):
        bits = rng.choice([16, 64, 96, 128, 200, 256, 512])
        a, b = (rng.getrandbits(rng.randint(1, 300)) + 1 for _ in range(2))
        odd = 2 * rng.getrandbits(rng.randint(1, 64)) + 1
        a, b = rng.choice(
            [
                (a, b),
                (a + rng.randint(0, 3), a),
                (a, a + rng.randint(0, 3)),
                (1 << 65, (1 << 65) - odd),  # -ln(1 - U)
                (odd, 1 << 65),  # ln U
                ((1 << 8) + rng.randint(0, 256), 1 << 8),  # on the table's points
                (((256 + rng.randint(0, 256)) << 90) - rng.randint(0, 1), 1 << 98),  # below them
            ]
        )
        check_log(a, b, bits)


def exponentials(rng: random.Random, count: int) -> None:
    for _ in range(count):
        y_bits = rng.choice([0, 32, 64, 128])
        size = rng.randint(0, 8 + y_bits)  # |y| < 2^8
        y = rng.choice([1, -1]) * rng.getrandbits(size) if size else 0
        check_exp(y, rng.choice([0, 0, 1, 1000]), y_bits, rng.choice([16, 64, 128, 256]))


def test_logarithm_is_enclosed_within_two_units():
    logarithms(random.Random(1), 20_000)


def test_exponential_is_enclosed_within_three_units():
    exponentials(random.Random(2), 10_000)


@pytest.mark.campaign
def test_logarithm_is_enclosed_campaign():
    logarithms(random.Random(3), 1_000_000)


@pytest.mark.campaign
def test_exponential_is_enclosed_campaign():
    exponentials(random.Random(4), 1_000_000)


def test_logarithm_of_one_and_of_powers_of_two():
    assert log_enclosure(7, 7, 200) == (0, 0) or log_enclosure(7, 7, 200)[0] <= 0
    for shift in (1, 63, 4095, 1 << 14):
        check_log(1 << shift, 1, 300)
        check_log(1, 1 << shift, 300)


def test_logarithm_next_to_one_keeps_its_relative_precision():
    # -ln(1 - 2^-65) at 200 bits has 135 bits left.
    low, high = log_enclosure(1 << 65, (1 << 65) - 1, 200)
    assert low > 1 << 134
    assert high - low <= 2


def test_logarithm_of_huge_counts():
    check_log(3**5000, 1, 128)
    check_log(1, 3**5000, 128)


def test_logarithm_at_the_greatest_precision():
    low, high = log_two(4096)
    assert high - low <= 2
    with gmpy2.context(gmpy2.get_context(), precision=4400):
        assert low <= gmpy2.log(gmpy2.mpfr(2)) * gmpy2.mpfr(2) ** 4096 <= high


def test_exponential_far_below_the_last_place_is_next_to_zero():
    assert exp_enclosure((-(1 << 20), -(1 << 20)), 0, 64) == (0, 1)


@pytest.mark.parametrize(
    ("exponent", "places", "bits"),
    [
        ((1 << 40, 1 << 40), 0, 0),
        ((-(1 << 40), 0), 0, 64),
        ((0, 1 << 60), 20, 64),
        ((0, 12_000), 0, 64),
        ((0, 0), 0, 4 * 4096 + 1),
        ((10**400, 10**400), 64, 64),
    ],
)
def test_a_power_too_great_to_write_down_is_declined_before_it_is_computed(exponent, places, bits):
    with pytest.raises(Rejected) as refused:
        exp_enclosure(exponent, places, bits)
    assert refused.value.code is Code.LIMIT


@pytest.mark.parametrize(
    "steps",
    [
        [96, 192, 384, 768, 1536, 3072],
        [104, 208, 416, 832, 1664, 3328],
        [128, 256, 512, 1024, 2048],
    ],
)
def test_decide_gives_up_at_4096_bits(steps):
    tried: list[int] = []

    def never(bits: int) -> tuple[int, int]:
        tried.append(bits)
        return 0, 1

    with pytest.raises(Rejected) as refused:
        decide(never, "here", steps[0])
    assert refused.value.code is Code.PRECISION
    assert refused.value.path == "here"
    assert tried == [*steps, 4096]


def test_a_power_may_have_as_many_bits_as_are_let_and_no_more():
    most = enclosures._MOST_PLACES
    low, high = exp_enclosure((0, 0), 0, most - 1)
    assert low <= 1 << most - 1 <= high
    with pytest.raises(Rejected):
        exp_enclosure((0, 0), 0, most)
