"""W, F and r against exact arithmetic: MPFR at 1,000 bits."""

from __future__ import annotations

import random
from fractions import Fraction

import gmpy2
import pytest

from tcc_certs.race.enclosures import MAX_WEIGHT, NANO, call_residual, call_weight, fraction_bits


@pytest.fixture(autouse=True)
def _precise():
    with gmpy2.context(gmpy2.get_context(), precision=1000):
        yield


def real(value: Fraction) -> gmpy2.mpfr:
    return gmpy2.mpfr(value.numerator) / gmpy2.mpfr(value.denominator)


def drawn(rng: random.Random) -> tuple[tuple[int, int], int, int]:
    beta = (rng.getrandbits(rng.randint(1, 20)), rng.randint(0, 6))
    cost = rng.choice([1, -1]) * rng.getrandbits(rng.randint(1, 40))
    return beta, cost, rng.randint(1, 24)


def test_weight_is_the_nearest_integer_within_its_clamp():
    rng = random.Random(5)
    for _ in range(3000):
        beta, cost, tilt = drawn(rng)
        bits = rng.randint(tilt, 64)
        score = -Fraction(beta[0] * cost, NANO * 10 ** beta[1])
        found = call_weight(beta, cost, bits, tilt)
        if score > 64:
            due = MAX_WEIGHT
        elif score < -64:
            due = 1
        else:
            true = gmpy2.exp(real(score)) * gmpy2.mpfr(2) ** bits
            due = min(MAX_WEIGHT, max(1, int(gmpy2.rint_round(true))))
        assert found == due, (beta, cost, bits)


def test_residual_is_rounded_up():
    rng = random.Random(6)
    for _ in range(3000):
        beta, cost, tilt = drawn(rng)
        bits = rng.randint(tilt, 64)
        weight = call_weight(beta, cost, bits, tilt)
        score = real(-Fraction(beta[0] * cost, NANO * 10 ** beta[1]))
        log = gmpy2.log(gmpy2.mpfr(weight) / gmpy2.mpfr(2) ** bits)
        true = (score - log) * gmpy2.mpfr(2) ** 32
        found = call_residual(beta, cost, weight, bits)
        assert found - 1 < true <= found, (beta, cost, bits)


def test_fraction_bits_is_the_least_that_suffices():
    rng = random.Random(7)
    for _ in range(2000):
        beta, cost, tilt = drawn(rng)
        found = fraction_bits(beta, cost, tilt)
        need = real(Fraction(beta[0] * cost, NANO * 10 ** beta[1])) / gmpy2.log(gmpy2.mpfr(2))
        assert tilt <= found <= 64
        assert found == 64 or found - tilt >= need
        assert found == tilt or found - tilt - 1 < need


def test_tilt_zero_is_the_plain_race():
    assert fraction_bits((1, 0), 10**12, 0) == 0
    assert call_weight((1, 0), 10**12, 0, 0) == 1
    assert call_residual((1, 0), 10**9, 1, 0) == -(1 << 32)


def test_beta_zero_gives_weight_one_and_no_residual():
    assert fraction_bits((0, 0), 10**12, 8) == 8
    assert call_weight((0, 0), 10**12, 8, 8) == 256
    assert call_residual((0, 0), 10**12, 256, 8) == 0


def test_weight_of_one_at_64_bits_is_clamped():
    assert call_weight((1, 0), 0, 64, 64) == MAX_WEIGHT


def test_extreme_costs_and_betas_are_decided_at_once():
    for beta in ((10**39, 0), (1, 39)):
        for cost in (2**63 - 1, -(2**63), 1, -1):
            bits = fraction_bits(beta, cost, 8)
            weight = call_weight(beta, cost, bits, 8)
            assert 8 <= bits <= 64
            assert 1 <= weight <= MAX_WEIGHT
            call_residual(beta, cost, weight, bits)
