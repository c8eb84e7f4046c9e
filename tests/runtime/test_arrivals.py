"""The arithmetic of recorded runs: every error within the bound that their roundings allow for."""

from __future__ import annotations

import random
from itertools import pairwise

import gmpy2
import pytest

from tcc_runtime.artifact.load import load
from tcc_runtime.numbers import arrivals
from tcc_runtime.numbers.arrivals import (
    ERROR,
    FRACTION,
    LEAST,
    decided,
    later,
    log_of_ratio,
    log_of_wait,
    rate,
)
from tcc_runtime.numbers.fixed import Fixed
from tcc_runtime.states import Tables
from tests.runtime.graphs import build, vec_core, vec_rows

FINE = 1200
ENDS = [LEAST, LEAST + 1, 2 * LEAST - 1, 2 * LEAST - 2]
WORDS = [0, 1, 2, 2**57, 2**58, 2**58 + 2**52, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


def mantissas(rng):
    """Both ends, both sides of every entry of the first table, and some between."""
    edges = [side for lead in range(512, 1024) for side in ((lead << 118) - 1, lead << 118)][1:]
    near = [LEAST + rng.getrandbits(rng.randrange(1, 127)) for _ in range(500)]
    below = [2 * LEAST - 1 - rng.getrandbits(rng.randrange(1, 127)) for _ in range(500)]
    return [*ENDS, *edges, *near, *below, *(rng.getrandbits(127) | LEAST for _ in range(8000))]


def true_time(mass, scale, word):
    """E / n, a real; within the precision of the context that is active."""
    tail = gmpy2.mpfr(2 * (2**64 - 1 - word) + 1) / gmpy2.mpfr(2) ** 65
    return -gmpy2.log(tail) * gmpy2.mpfr(2) ** scale / mass


def test_logarithms_are_off_by_less_than_two_to_the_minus_91():
    with gmpy2.context(precision=FINE):
        for mantissa in mantissas(random.Random(1)):
            true = gmpy2.log(gmpy2.mpfr(mantissa) / LEAST) * 2**FRACTION
            assert abs(arrivals.logarithm(mantissa) - true) < 2 ** (FRACTION - 91)


def test_logarithms_of_weights_are_off_by_two():
    with gmpy2.context(precision=FINE):
        for numerator, bits in [(1, 0), (1, 64), (2**63 - 1, 64), (2**63 - 1, 1), (3, 2), (7, 63)]:
            true = (gmpy2.log(gmpy2.mpfr(numerator)) - bits * gmpy2.log(gmpy2.mpfr(2))) * 2**112
            assert abs(log_of_ratio(numerator, bits) - true) <= 2


def test_small_waits_are_within_two_to_the_minus_100():
    rng = random.Random(2)
    greatest = int((1 - gmpy2.exp(-(gmpy2.mpfr(2) ** -6))) * 2**64)
    words = [greatest - 1, greatest, greatest + 1, 0, 1, *(rng.getrandbits(57) for _ in range(300))]
    words += [rng.getrandbits(rng.randrange(1, 57)) for _ in range(300)]
    with gmpy2.context(precision=FINE):
        for word in words:
            wait, bits = arrivals._small_wait(word)
            true = true_time(1, 0, word)
            assert abs(wait / gmpy2.mpfr(2) ** bits / true - 1) < gmpy2.mpfr(2) ** -100.5


def test_the_logarithm_of_a_wait_is_that_of_an_arrival_at_rate_one():
    rng = random.Random(3)
    low = [rng.getrandbits(rng.randrange(1, 64)) for _ in range(500)]
    for word in [*WORDS, *low, *(2**64 - 1 - word for word in low)]:
        assert log_of_wait(word) == later(0, 0, word, *rate(1, 0))[2]


@pytest.mark.parametrize("bits", [1, 5, 127, 128, 129, 1500])
def test_first_arrivals_are_within_their_bound(bits):
    rng = random.Random(bits)
    low = [rng.getrandbits(rng.randrange(1, 64)) for _ in range(200)]
    words = [*WORDS, *low, *(2**64 - 1 - word for word in low)]
    words += [rng.getrandbits(64) for _ in range(500)]
    with gmpy2.context(precision=FINE):
        for word in words:
            mass, scale = rng.getrandbits(bits) | 1 << bits - 1, rng.randrange(2000)
            mantissa, exponent, log = later(0, 0, word, *rate(mass, scale))
            true = true_time(mass, scale, word)
            assert LEAST <= mantissa < 2 * LEAST
            assert abs(mantissa / gmpy2.mpfr(2) ** exponent / true - 1) < gmpy2.mpfr(2) ** -84.9
            assert abs(log - gmpy2.log(true) * 2**FRACTION) < ERROR


def test_long_paths_stay_within_the_bound():
    rng = random.Random(5)
    with gmpy2.context(precision=FINE):
        for _ in range(4):
            mantissa = exponent = 0
            true = gmpy2.mpfr(0)
            for step in range(1500):
                if step % 3 and mantissa:
                    factor, shift = rng.getrandbits(62) | 1 << 62, rng.randrange(-40, 40)
                    mantissa, exponent = mantissa * factor >> 63, exponent + shift
                    if mantissa < LEAST:
                        mantissa, exponent = mantissa << 64, exponent + 64
                    true = true * factor / gmpy2.mpfr(2) ** (63 + shift)
                    continue
                mass, scale = rng.getrandbits(300) | 1, 300 + max(-400, min(400, -exponent))
                word = rng.choice([*WORDS, rng.getrandbits(64), rng.getrandbits(40)])
                mantissa, exponent, log = later(mantissa, exponent, word, *rate(mass, scale))
                true += true_time(mass, scale, word)
                assert abs(log - gmpy2.log(true) * 2**FRACTION) < ERROR


class Asked:
    """The rungs above, when they are asked."""

    def published(self, item, cost=None):
        return 0, OPEN


OPEN = 1 << 256


def rounded(log, bound):
    """The key of a leaf by `stop`, which adds nothing; OPEN where the next rung is asked."""
    artifact = load(build(vec_core(), vec_rows()))
    rung = Fixed(Tables(artifact, "r2"), ERROR, Asked())
    view = rung.view(rung_state(artifact))
    view.open()
    source = 0, b"", view, None, None, 0, None, 0, None, LEAST, 0, log, bound
    return -rung.won(source, rung.edge(view, len(view.state.edges)), b"", 0, -1, None)[0]


def rung_state(artifact):
    """A state that accepts."""
    states = range(artifact.manifest.states)
    return Tables(artifact, "r2").state((next(q for q in states if artifact.accepts(q)),))


def test_a_rounding_is_left_open_exactly_where_the_error_reaches_another_number():
    unit = 1 << FRACTION - 64
    half = unit >> 1
    for bound in (0, 5 * unit, -7 * unit):
        for part in (0, 1, half // 2, half - ERROR - 1, half - ERROR, half, half + ERROR, unit - 1):
            key = rounded(-(3 * unit + part), bound)
            shown = 3 * unit + part + half
            low, high = ((shown + e) // unit for e in (-ERROR, ERROR))
            assert decided(shown, shown + bound, ERROR) == (key != OPEN)
            if low == high and abs(part - half) > ERROR + 1:
                assert key == low + bound // unit
            else:
                assert key == OPEN
    # ... and where that is so of the key alone.
    assert rounded(-unit, half) == OPEN
    assert rounded(-unit, half // 2) == 1


def test_the_tables_have_no_gaps():
    for lead in range(512, 1024):
        r, _ = arrivals._first(lead)
        for mantissa in (lead << 118, (lead + 1 << 118) - 1):
            assert abs(mantissa * r - (1 << 149)) < (1 << 139) + (1 << 129)
    seconds = [arrivals._second(lead)[0] for lead in range(1027)]
    assert all(a > b for a, b in pairwise(seconds))
