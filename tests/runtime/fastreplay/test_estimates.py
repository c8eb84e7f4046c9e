"""Logarithms to 2^-96 and estimates of arrivals hold their bounds against the enclosures."""

from __future__ import annotations

import random

import pytest

from tcc_certs.race.arrivals import Arrival
from tcc_certs.race.numbers import log_enclosure
from tcc_runtime.fastreplay.estimates import LOGS, WON, estimated, slack, spread
from tcc_runtime.fastreplay.logarithm import (
    LOG_ERROR,
    MAX_BITS,
    UNIT_BITS,
    log_of,
    log_of_any,
    times_log_two,
)

MORE = 64  # bits of the enclosures beyond the units


def off_by_at_most(found: int, numerator: int, denominator: int, error: int) -> None:
    low, high = log_enclosure(numerator, denominator, UNIT_BITS + MORE)
    assert low - (error << MORE) < found << MORE < high + (error << MORE)


def arguments() -> list[int]:
    rng = random.Random(1)
    edges = [(m << e) + d for m in (1, 3) for e in range(2, MAX_BITS - 2) for d in (-1, 0, 1)]
    # Both ends of what each leading byte, and each leading seventeen bits, stand for.
    bytes_ = [(b << 80) + d for b in range(256, 512) for d in (-1, 0, (1 << 80) - 1)]
    words = [rng.getrandbits(64) * 2 + 1 for _ in range(2000)]
    return [1, 2, *edges, *bytes_, *words, *[rng.getrandbits(n) | 1 for n in range(1, MAX_BITS)]]


def test_a_logarithm_is_within_its_bound_everywhere():
    for value in arguments():
        off_by_at_most(log_of(value), value, 1, LOG_ERROR)


def test_a_logarithm_of_any_size_is_within_its_bound():
    rng = random.Random(2)
    for bits in (1, 109, 110, 111, 500, 3000):
        value = rng.getrandbits(bits) | 1 << bits - 1
        off_by_at_most(log_of_any(value), value, 1, LOG_ERROR + 3)


@pytest.mark.parametrize("times", [0, 1, -1, 96, 65, -(10**6), 10**9])
def test_multiples_of_ln_2_are_within_two_units(times):
    low, high = log_enclosure(2, 1, UNIT_BITS + MORE)
    ends = sorted((low * times, high * times))
    assert ends[0] - (2 << MORE) < times_log_two(times) << MORE < ends[1] + (2 << MORE)


def holds(arrival, estimate) -> None:
    """The estimate holds t as an enclosure at 512 bits has it."""
    tau, error, neg, neg_error = estimate
    low, high, scale = arrival.enclose(512)
    drop = scale + arrival.unit - UNIT_BITS  # n * t in units = t * count / 2^drop
    assert (tau - error) << drop < low * arrival.count
    assert high * arrival.count < (tau + error) << drop
    least, _ = log_enclosure(low, 1 << scale, UNIT_BITS + MORE)
    _, most = log_enclosure(high, 1 << scale, UNIT_BITS + MORE)
    assert (neg - neg_error) << MORE < -most
    assert -least < (neg + neg_error) << MORE


@pytest.mark.parametrize("seed", range(20))
def test_estimates_along_a_path_hold_the_arrival(seed):
    # A path of forty steps, some of them to winners, some by tiny or great uniforms.
    rng = random.Random(seed)
    bits, count = 20, rng.getrandbits(400) | 1 << 399
    arrival = Arrival(
        parent=None, weight=1, fraction_bits=0, x=rng.getrandbits(64), count=count, unit=300
    )
    estimate = estimated(arrival)
    holds(arrival, estimate)
    for _ in range(40):
        weight = rng.randrange(1, 1 << bits)
        mass = rng.randrange(1, arrival.count)  # in units of the node's count
        won = rng.random() < 0.6
        x = None if won else rng.choice((rng.getrandbits(64), 5, (1 << 64) - 9))
        # n(u) = mass / (w * 2^unit), and the child's own unit is one call less.
        child = max(1, mass // weight) + (1 << 90)
        unit = arrival.unit - bits
        share = (weight * child << UNIT_BITS) // arrival.count
        if share >> UNIT_BITS:
            break
        tau, loss = share * estimate[0] >> UNIT_BITS, slack(estimate)
        level = log_of_any(child) - times_log_two(unit) + times_log_two(UNIT_BITS)
        if won:
            lean = times_log_two(bits) - log_of(weight)
            made = tau, loss, estimate[2] + lean, estimate[3] + WON
        else:
            tau += times_log_two(65) - log_of((1 << 65) - 1 - 2 * x)
            made = tau, loss, level - log_of(tau), spread(tau, loss)
        arrival = Arrival(
            parent=arrival, weight=weight, fraction_bits=bits, x=x, count=child, unit=unit
        )
        holds(arrival, made)
        estimate = made


def test_the_spread_takes_no_less_than_twice_the_error_of_its_argument():
    assert spread(1 << 200, 1000) == 2000 + LOGS
    assert spread(1 << UNIT_BITS, 1000) == 2000 + LOGS
    assert spread(1 << UNIT_BITS - 1, 1000) == 4000 + LOGS
    assert spread((1 << UNIT_BITS) - 1, 1000) == 4000 + LOGS
