"""Working precision: each error stays within its bound, and no rounding is guessed."""

from __future__ import annotations

import random
from decimal import ROUND_FLOOR, Decimal, localcontext

import gmpy2
import pytest

from tcc_certs.digest import FIRST_ARRIVAL
from tcc_runtime.errors import Undecided
from tcc_runtime.frontier import Frontier, Incumbent
from tcc_runtime.artifact.load import load
from tcc_runtime.node import Node
from tcc_runtime.numbers.reals import Reals, units
from tcc_runtime.race import Coupled
from tcc_runtime.search import search
from tcc_runtime.terms.settings import Settings
from tcc_runtime.states import Tables
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


def test_a_callers_own_context_changes_nothing():
    artifact = build(vec_core(), vec_rows())
    due = search(load(artifact), Settings(seed=bytes(32), race="coupled", top=12))
    narrow = gmpy2.context(precision=11, emin=-23, emax=16, round=gmpy2.RoundUp)
    with narrow:
        assert search(load(artifact), Settings(seed=bytes(32), race="coupled", top=12)) == due


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
    race = Coupled(
        Tables(artifact, "r2"),
        lambda purpose, identity: word if purpose == FIRST_ARRIVAL else 0,
    )
    child = race.expand(race.root()).children[0]
    (leaf,) = race.expand(child).children
    assert leaf.won
    with pytest.raises(Undecided, match="4096"):
        race.settle(leaf)


def item(key: int, digest: bytes) -> Node:
    node = Node()
    node.key = node.value = key
    node.digest = digest
    return node


def test_equal_keys_are_popped_by_digest():
    frontier = Frontier()
    for key, digest in ((3, b"b"), (5, b"c"), (3, b"a"), (5, b"d"), (-1, b"0")):
        frontier.push(item(key, digest))
    popped = [frontier.pop() for _ in range(5)]
    assert [(node.key, node.digest) for node in popped] == [
        (5, b"c"), (5, b"d"), (3, b"a"), (3, b"b"), (-1, b"0"),
    ]  # fmt: skip
    assert frontier.top() is None


def test_the_incumbent_is_the_kth_best_and_ties_keep_the_lesser_leaf():
    best = Incumbent(2)
    seen = []
    for key, digest in ((1, b"x"), (1, b"m"), (1, b"z"), (4, b"q"), (1, b"a")):
        best.offer(item(key, digest))
        seen.append(best.value)
    assert seen == [None, 1, 1, 1, 1]
    assert [(leaf.key, leaf.digest) for leaf in best.leaves()] == [(4, b"q"), (1, b"a")]


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
    race = Coupled(Tables(artifact, "r2"), lambda purpose, identity: word)
    assert race.expand(race.root()).winner == winner
