"""Logarithms by tables hold their bound against the enclosures."""

from __future__ import annotations

import random

import pytest

from tcc_certs.race.arrivals import (
    BASE_BITS,
    LOG_ERROR,
    UNIT_BITS,
    Arrival,
    log_units,
    neg_log,
    times_log_two,
)
from tcc_certs.race.enclosures import log_enclosure

MORE = 64  # bits of the enclosures beyond the units


def off_by_at_most(found: int, value: int, power: int, error: int) -> None:
    low, high = log_enclosure(value, 1, UNIT_BITS + MORE, power)
    assert low - (error << MORE) < found << MORE < high + (error << MORE)


def arguments() -> list[int]:
    rng = random.Random(1)
    edges = [(m << e) + d for m in (1, 3) for e in range(2, 114) for d in (-1, 0, 1)]
    # Both ends of what each leading byte, and each leading seventeen bits near 1, stand for.
    bytes_ = [(b << 80) + d for b in range(256, 512) for d in (-1, 0, (1 << 80) - 1)]
    near = [(b << 90) + d for b in range((1 << 17) - 600, (1 << 17) + 600) for d in (-1, 0)]
    words = [rng.getrandbits(64) * 2 + 1 for _ in range(2000)]
    return [1, 2, *edges, *bytes_, *near, *words, *[rng.getrandbits(n) | 1 for n in range(1, 116)]]


def test_a_logarithm_is_within_its_bound_everywhere():
    for value in arguments():
        off_by_at_most(log_units(value), value, 0, LOG_ERROR)


@pytest.mark.parametrize("power", [0, 1, -1, 65, -180, 10**6, -(10**9)])
def test_a_logarithm_of_any_size_is_within_its_bound(power):
    rng = random.Random(2)
    for bits in (1, 64, 115, 116, 117, 118, 500, 3000):
        for value in (rng.getrandbits(bits) | 1 << bits - 1, (1 << bits) - 1, 1 << bits - 1):
            off_by_at_most(log_units(value, power), value, power, LOG_ERROR)


@pytest.mark.parametrize("times", [0, 1, -1, 96, 65, -(10**6), 10**9])
def test_multiples_of_ln_2_are_within_two_units(times):
    low, high = log_enclosure(2, 1, UNIT_BITS + MORE)
    ends = sorted((low * times, high * times))
    assert ends[0] - (2 << MORE) < times_log_two(times) << MORE < ends[1] + (2 << MORE)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_enclosures_along_a_path_hold_the_arrival(seed):
    # A path of forty steps, some of them to winners, some by tiny or great uniforms.
    rng = random.Random(seed)
    arrival = None
    for _ in range(40):
        count, unit = rng.getrandbits(400) | 1 << 399, rng.randrange(250, 420)
        x = rng.choice((rng.getrandbits(64), 0, 5, (1 << 64) - 9, (1 << 64) - 1))
        if arrival is not None and rng.random() < 0.6:
            x = None
        weight = 1 if arrival is None else rng.randrange(1, 1 << 20)
        arrival = Arrival(arrival, weight, 0 if arrival is None else 20, x, count, unit)
        low, more, scale = arrival.base
        least, most, exact = arrival.enclose(512)
        assert low << exact - scale <= least
        assert least + most <= low + more << exact - scale
        low, high = neg_log(arrival, BASE_BITS)
        least, most = neg_log(arrival, 512)
        assert low << 512 - BASE_BITS <= least <= most <= high << 512 - BASE_BITS
