"""The margin of a prediction: the exact rank rule, what holds beyond it, coverage."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tcc_certs.policy.plans import Model
from tcc_certs.replay.amounts import AskRule, SpendingCaps, SpentAmounts
from tcc_certs.replay.asking.controller import Controller, raised

ONE = (1, 1)


def sorted_residuals(values):
    return [(value, 1) for value in sorted(values)]


@pytest.mark.parametrize(
    ("n", "margin", "rank"),
    [(9, (9, 1), 9), (10, (9, 1), 10), (19, (9, 1), 18), (1, (5, 1), 1), (2, (5, 1), 2),
     (3, (5, 1), 2), (4, (25, 2), 2), (99, (1, 2), 1), (7, (1, 39), 1)],
)  # fmt: skip
def test_the_residual_at_the_rank_is_what_is_added(n, margin, rank):
    residuals = sorted_residuals(range(n))
    assert raised((500, 1), 10**6, residuals, margin) == (500 + rank - 1, 1)


@pytest.mark.parametrize(("n", "margin"), [(0, (1, 1)), (8, (9, 1)), (98, (99, 2)), (0, (9, 39))])
def test_where_there_are_too_few_residuals_the_width_is_taken(n, margin):
    assert raised((500, 1), 10**6, sorted_residuals(range(n)), margin) == (10**6, 1)


def test_what_is_raised_stays_within_the_width_and_above_nothing():
    assert raised((500, 1), 600, sorted_residuals([200]), (5, 1)) == (600, 1)
    assert raised((500, 1), 600, sorted_residuals([-700]), (5, 1)) == (0, 1)
    assert raised((500, 1), 600, sorted_residuals([-700]), None) == (500, 1)


def test_a_residual_is_what_was_gained_less_what_was_predicted_of_that_model_alone():
    rule = AskRule(ask="leaf", price_weight=ONE, latency_weight=(1, 3), epsilon_weight=(0, 0),
                caps=SpendingCaps(), margin=(5, 1))  # fmt: skip
    models = [Model(name=name, price=1, latency=0, epsilon=0) for name in "ab"]
    controller = Controller(rule)
    first = controller.choose(0, models, [], 1000)
    assert (first.number, first.gain, first.raised) == (0, (1000 * 1000, 2000), (1000, 1))
    controller.settle(0, first, SpentAmounts(price=1), 1000, 400)
    again = controller.choose(0, models, [1], 800)
    gain, high = Fraction(*again.gain), Fraction(*again.raised)
    assert gain == Fraction(800 * (800 + 2 * 400), 2 * (800 + 1000))
    assert high - gain == Fraction(*again.margin) == 400 - 500
    assert Fraction(*controller.choose(0, models, [0], 800).raised) == 800  # b was never asked
    assert Fraction(*controller.choose(1, models, [1], 800).raised) == 800  # nor a of that tool


@pytest.mark.parametrize("margin", [(5, 1), (8, 1), (9, 1)])
def test_of_exchangeable_gains_at_least_the_quantile_is_within_what_is_raised(margin):
    rng, held, tried = random.Random(margin[0]), 0, 4000
    for _ in range(tried):
        drawn = [rng.randrange(10**6) for _ in range(rng.randrange(1, 30) + 1)]
        *past, new = [value - 500_000 for value in drawn]
        high = raised((500_000, 1), 10**6, sorted_residuals(past), margin)
        held += Fraction(new + 500_000) <= Fraction(*high)
    assert held / tried > margin[0] / 10 ** margin[1] - 0.02
