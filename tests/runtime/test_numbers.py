"""Working precision: each error stays within its bound, and no rounding is guessed."""

from __future__ import annotations

import random
from decimal import ROUND_FLOOR, Decimal, localcontext

import gmpy2
import pytest

from tcc_certs.race.digest import FIRST_ARRIVAL
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import Undecided
from tcc_runtime.item import WON, WORD
from tcc_runtime.numbers.reals import Reals, units
from tcc_runtime.process import Interrupts
from tcc_runtime.run import search
from tcc_runtime.search import Search
from tcc_runtime.settings.settings import Settings
from tests.runtime.engines import Given, race_over
from tests.runtime.graphs import build, free_core, vec_core, vec_rows

FINE = 2000
WORDS = [0, 1, 2**63, 2**64 - 2, 2**64 - 1]


def off(found, true, bits: int) -> Decimal:
    """The relative error, in units of 2^-bits."""
    with gmpy2.context(precision=FINE):
        return Decimal(str(abs(found / true - 1) * gmpy2.mpfr(2) ** bits))


@pytest.mark.parametrize("bits", [97, 160, 320])
def test_logarithms_of_words_and_scaled_integers_are_off_by_one_unit(bits):
    coarse, fine, rng = Reals(bits), Reals(FINE), random.Random(bits)
    for word in WORDS + [rng.randrange(2**64) for _ in range(200)]:
        assert off(coarse.log_tail(word), fine.log_tail(word), bits) <= 1
        size, shift = rng.randrange(1, 1500), rng.randrange(3000)
        mantissa = rng.randrange(1, 2**size)
        assert off(coarse.scaled(mantissa, shift), fine.scaled(mantissa, shift), bits) <= 1


@pytest.mark.parametrize("bits", [97, 160])
def test_arrivals_and_their_logarithms_stay_within_their_bounds(bits):
    coarse, fine, rng = Reals(bits), Reals(FINE), random.Random(bits + 1)
    for _ in range(60):
        times = []
        steps = [
            (rng.randrange(1, 2**63), rng.randrange(1, 2**300), rng.randrange(2**64), rng.random())
            for _ in range(rng.randrange(1, 120))
        ]
        for reals in (coarse, fine):
            _, count, word, _ = steps[0]
            time = reals.div(reals.exponential(word), reals.scaled(count, 200))
            for weight, count, word, luck in steps[1:]:
                w = reals.scaled(weight, 40)
                residual = reals.div(reals.log_tail(word), reals.scaled(count, 200))
                time = reals.mul(w, time) if luck < 0.5 else reals.fms(w, time, residual)
            times.append(time)
        depth = len(steps) - 1
        assert off(*times, bits) <= units(depth)
        log, true = coarse.log(times[0]), fine.log(times[1])
        true >>= fine.shift - coarse.shift
        assert abs(log - true) <= coarse.log_error(log, units(depth))


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_callers_own_context_changes_nothing(race):
    artifact, told = build(vec_core(), vec_rows()), Settings(seed=bytes(32), race=race, top=12)
    due = search(load(artifact), told)
    narrow = gmpy2.context(precision=11, emin=-23, emax=16, round=gmpy2.RoundUp)
    with narrow:
        assert search(load(artifact), told) == due


def test_an_interval_that_rounds_two_ways_is_undecided():
    reals = Reals(160)
    one = 1 << reals.shift - 64  # a unit of Q64.64
    for whole in (5, -5):
        assert reals.nearest(whole * one, one // 2 - 1, one // 2 - 1) == whole
        for tie in (whole * one - one // 2, whole * one + one // 2):
            with pytest.raises(Undecided):
                reals.nearest(tie, 1, 1)


@pytest.mark.parametrize(
    "time", ["1e-130", "1e-60", "1e-19", "0.3", "1", "43.9", "44.2", "45", "1e6"]
)
def test_arrival_words_from_the_least_to_the_greatest(time):
    reals = Reals(400)
    with gmpy2.context(precision=400):
        found = reals.arrival_word(gmpy2.mpfr(time), 3)
    with localcontext() as context:
        context.prec = 120
        exact = 2**64 * (1 - (-Decimal(time)).exp()) if Decimal(time) < 100 else 2**64 - Decimal(1)
        assert found == int(Decimal(exact).to_integral_value(ROUND_FLOOR))


def test_an_arrival_on_an_integer_is_never_decided():
    # Five plans, and 1 - U = (r / 2^13)^5: so e^-t is r / 2^13, and 2^64 e^-t an integer.
    r = 4095
    word = 2**64 - 1 - (r**5 - 1) // 2
    rows = [(True, []), (False, [(a, 0) for a in range(5)])]
    artifact = load(build(free_core([0] * 5, 1), rows, tilt=0))

    def draw(purpose, identity):
        return word if purpose == FIRST_ARRIVAL else 0

    for numbers in ("mpfr", "fixed", "floats"):
        race = race_over(artifact, Given(draw), numbers=numbers)
        child = race.expand(race.root())[3][0]
        (leaf,) = race.expand(child)[3]
        assert leaf[WORD] == WON
        with pytest.raises(Undecided, match="the last precision"):
            race.leaf_word(leaf)


class Same:
    """A race whose root has leaves of given keys."""

    late = False

    def __init__(self, *leaves):
        self._leaves = [(-key, name, None, None, None, 0, None, 0, None) for key, name in leaves]

    def root(self):
        return (-(1 << 70), bytes(32), self, None, None, 0, None, 0, None)

    def expand(self, item):
        return item, None, None, self._leaves, None, False

    def settle(self, leaf):
        return leaf


class Exact:
    """A rung of a run whose keys are exact."""

    width = 0.0

    def order(self, item):
        return item


def ran(top, *leaves):
    loop = Search(Same(*leaves), Exact(), "exact", "RunWiseExact", top, Interrupts())
    stop = loop.run()
    return loop, stop


def test_equal_keys_are_popped_by_digest():
    loop, stop = ran(9, (3, b"b"), (5, b"c"), (3, b"a"), (5, b"d"), (-1, b"0"))
    assert [(-leaf[0], leaf[1]) for leaf in loop.found] == [
        (5, b"c"), (5, b"d"), (3, b"a"), (3, b"b"), (-1, b"0"),
    ]  # fmt: skip
    assert (stop, loop.item, loop.heap) == ("exhausted", None, [])


def test_the_incumbent_is_the_kth_best_and_of_equal_ones_the_lesser_leaf_is_popped():
    loop, stop = ran(2, (1, b"x"), (1, b"m"), (1, b"z"), (4, b"q"), (1, b"a"))
    assert [(value, name) for value, name, _ in loop.best] == [(-4, b"q"), (-1, b"a")]
    assert (stop, loop.incumbent, len(loop.found), loop.item[1]) == ("bound", 1, 2, b"m")


def test_values_that_come_later_take_their_place_among_the_best():
    # As in fallback, where a value is not bounded by the keys.
    loop = Search(Same(), Exact(), "fallback", "NoCert", 2, Interrupts())
    seen = []
    for key, name in ((1, b"x"), (1, b"m"), (1, b"z"), (4, b"q"), (1, b"a")):
        loop.offer((-key, name))
        seen.append(loop.incumbent)
    assert seen == [None, 1, 1, 1, 1]
    assert [(value, name) for value, name, _ in loop.best] == [(-4, b"q"), (-1, b"a")]


def test_a_deep_automaton_runs_without_a_deep_stack():
    deep = 4000
    rows = [(True, [])] + [(False, [(0, q), (1, q)]) for q in range(deep)]
    artifact = load(build(free_core([1, 10**9], deep), rows, tilt=1))
    run = search(artifact, Settings(seed=bytes(32), race="coupled", max_expansions=deep + 50))
    assert run.expansions > deep / 2


@pytest.mark.parametrize(
    ("word", "winner"),
    [
        (0, 0),
        # 2^65 / 3 = 12297829382473034410.67: the last 2x + 1 below it, the first above.
        (6148914691236517204, 0),
        (6148914691236517205, 1),
        (12297829382473034410, 1),
        (12297829382473034411, 2),
        (2**64 - 1, 2),
    ],
)
def test_the_winner_changes_exactly_where_the_masses_say(word, winner):
    rows = [(True, []), (False, [(a, 0) for a in range(3)])]
    artifact = load(build(free_core([0] * 3, 1), rows, tilt=0))
    for numbers in ("mpfr", "fixed", "floats"):
        race = race_over(artifact, Given(lambda purpose, identity: word), numbers=numbers)
        assert race.expand(race.root())[2] == winner
