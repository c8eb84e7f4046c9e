"""Every curve is at or above the closed form that it rounds, and hardly above it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from mpmath import exp, log, mpf

from tcc_certs.policy.atoms import Atom, RandomizedResponse
from tcc_certs.privacy.curves import ORDERS, UNITS, curve_of, pure_curve
from tests.certs.privacy.truth import atom, renyi

_SLACK = mpf(10) ** -36
_OWN = mpf(10) ** -50  # the relative error that the truth has by itself
_SOME = ORDERS[::9]  # all kinds of them; every order below, for a few atoms


def _holds(of: Atom, orders: object = _SOME) -> None:
    curve = curve_of(of)
    for order, epsilon in zip(ORDERS, curve.rdp, strict=True):
        if order not in orders:  # type: ignore[operator]
            continue
        due, found = renyi(of, mpf(order.text)), mpf(epsilon) / UNITS
        assert due * (1 - _OWN) <= found <= due * (1 + _SLACK) + _SLACK, (of, order.text)


decimals = st.decimals("0.001", "1000", places=3).map(lambda value: format(value.normalize(), "f"))
shares = st.decimals("0.00001", "0.99999", places=5).map(lambda value: format(value, "f"))


@settings(max_examples=25)
@given(probability=shares, choices=st.integers(2, 1000))
def test_randomised_response_is_its_closed_form_rounded_up(probability: str, choices: int) -> None:
    _holds(atom(mechanism="randomized_response", probability=probability, choices=choices))


@settings(max_examples=25)
@given(scale=decimals, sensitivity=decimals)
def test_laplace_is_its_closed_form_rounded_up(scale: str, sensitivity: str) -> None:
    _holds(atom(mechanism="laplace", scale=scale, sensitivity=sensitivity))


@settings(max_examples=25)
@given(sigma=decimals, sensitivity=decimals)
def test_gaussian_is_its_closed_form_rounded_up(sigma: str, sensitivity: str) -> None:
    _holds(atom(mechanism="gaussian", sigma=sigma, sensitivity=sensitivity))


@pytest.mark.parametrize(
    "of",
    [
        atom(mechanism="randomized_response", probability="0.75", choices=2),
        atom(mechanism="randomized_response", probability="0.1", choices=5),
        atom(mechanism="randomized_response", probability="0." + "9" * 18, choices=10**18),
        atom(mechanism="randomized_response", probability="0." + "5" * 17 + "6", choices=2),
        atom(mechanism="laplace", scale="0." + "0" * 17 + "1", sensitivity="9" * 18),
        atom(mechanism="laplace", scale="9" * 18, sensitivity="0." + "0" * 17 + "1"),
        atom(mechanism="laplace", scale="3", sensitivity="1"),
        atom(mechanism="gaussian", sigma="0." + "0" * 17 + "1", sensitivity="9" * 18),
        atom(mechanism="gaussian", sigma="3", sensitivity="2"),
    ],
)
def test_every_order_holds_at_the_ends_of_the_ranges(of: Atom) -> None:
    curve = curve_of(of)
    for order, epsilon in zip(ORDERS, curve.rdp, strict=True):
        found = mpf(epsilon) / UNITS
        if isinstance(of, RandomizedResponse) or of.__class__.__name__ == "Laplace":
            assert curve.pure is not None
            assert epsilon <= curve.pure
        due = renyi(of, mpf(order.text))
        assert due * (1 - _OWN) <= found <= due * (1 + mpf(10) ** -30) + _SLACK


def test_a_fair_answer_takes_nothing() -> None:
    curve = curve_of(atom(mechanism="randomized_response", probability="0.2", choices=5))
    assert curve.pure == 0
    assert set(curve.rdp) == {0}


def test_pure_epsilons_are_those_of_the_mechanisms() -> None:
    response = curve_of(atom(mechanism="randomized_response", probability="0.75", choices=2))
    assert response.pure is not None
    assert log(3) * (1 - _OWN) <= mpf(response.pure) / UNITS <= log(3) + _SLACK
    laplace = curve_of(atom(mechanism="laplace", scale="4", sensitivity="3"))
    assert laplace.pure == 3 * UNITS // 4
    assert curve_of(atom(mechanism="gaussian", sigma="1", sensitivity="1")).pure is None


def test_times_is_that_many_sums() -> None:
    once = curve_of(atom(mechanism="laplace", scale="4", sensitivity="3"))
    seven = curve_of(atom(mechanism="laplace", scale="4", sensitivity="3", times=7))
    assert seven.rdp == [7 * epsilon for epsilon in once.rdp]
    assert seven.pure == 7 * (once.pure or 0)


@settings(max_examples=25)
@given(epsilon=st.integers(1, 5 * 10**9))
def test_a_pure_epsilon_bounds_the_worst_mechanism_that_has_it(epsilon: int) -> None:
    # Randomised response of two choices is the worst of all that have its pure epsilon.
    e = mpf(epsilon) / 10**9
    p = exp(e) / (1 + exp(e))
    curve = pure_curve(epsilon)
    for order, bound in list(zip(ORDERS, curve.rdp, strict=True))[::9]:
        a, q = mpf(order.text), 1 - p
        due = log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        assert due * (1 - _OWN) <= mpf(bound) / UNITS


def test_points_are_joined_by_chords_and_end_at_the_last() -> None:
    points = atom(mechanism="rdp", points=[["2", "0.1"], ["3", "0.4"], ["5", "0.2"]])
    known = {
        order.text: epsilon for order, epsilon in zip(ORDERS, curve_of(points).rdp, strict=False)
    }
    # The point at 5 bounds the one at 3; half way in alpha the products are half way, too.
    assert known["2"] == UNITS // 10
    assert known["3"] == UNITS // 5
    assert known["5"] == UNITS // 5
    assert known["1.5"] == UNITS // 10
    assert known["2.5"] == -(-UNITS * (10 + 40) // 2 // 150)
    assert known["5"] == max(known.values())
    assert "5.5" not in known


@settings(max_examples=25)
@given(sigma=decimals)
def test_a_curve_by_points_is_never_below_the_mechanism(sigma: str) -> None:
    of = atom(mechanism="gaussian", sigma=sigma, sensitivity="1")
    points = []
    for text in ("1.5", "2", "4.5", "32"):
        # Eighteen places, rounded up.
        epsilon = int(renyi(of, mpf(text)) * 10**18) + 1
        points.append([text, f"{epsilon // 10**18}.{epsilon % 10**18:018d}"])
    for order, bound in zip(
        ORDERS, curve_of(atom(mechanism="rdp", points=points)).rdp, strict=False
    ):
        assert mpf(bound) / UNITS >= renyi(of, mpf(order.text)) * (1 - _OWN)
