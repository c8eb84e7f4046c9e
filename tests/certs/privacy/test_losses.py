"""What the losses come to is at or above the truth, and at most so much above it.

The truth is that of mpmath with 60 digits: closed forms, finite sums, and for Laplace noise a
distribution of losses that is rounded the other way.
"""

from __future__ import annotations

import random
from fractions import Fraction
from time import process_time

import numpy as np
import pytest
from mpmath import exp, mp, mpf, sqrt

from tcc_certs.errors import Rejected
from tcc_certs.policy.atoms import Atom, Exact, Gaussian, Laplace, RandomizedResponse
from tcc_certs.privacy import gaussians
from tcc_certs.privacy.accountant import by_orders, stated, total_of
from tcc_certs.privacy.curves import pure_curve
from tests.certs.privacy.truth import (
    atom,
    mixed_delta,
    response_losses,
    shift_delta,
    subsampled_epsilon,
)

ONE = 1 << 192


def gaussian(sigma: str, sensitivity: str = "1", times: int = 1) -> Gaussian:
    made = atom(mechanism="gaussian", sigma=sigma, sensitivity=sensitivity, times=times)
    assert isinstance(made, Gaussian)
    return made


def response(probability: str, choices: int = 2, times: int = 1) -> RandomizedResponse:
    members = {"probability": probability, "choices": choices, "times": times}
    made = atom(mechanism="randomized_response", **members)
    assert isinstance(made, RandomizedResponse)
    return made


def laplace(scale: str, times: int = 1) -> Laplace:
    made = atom(mechanism="laplace", scale=scale, sensitivity="1", times=times)
    assert isinstance(made, Laplace)
    return made


def subsampled(rate: str, sigma: str, times: int = 1) -> Atom:
    name = "subsampled_gaussian"
    return atom(mechanism=name, rate=rate, sigma=sigma, sensitivity="1", times=times)


def shift(atoms: list[Atom]) -> mpf:
    """mu of the Gaussians of a list."""
    squares = mpf(0)
    for of in atoms:
        if isinstance(of, Gaussian):
            squares += of.times * (mpf(of.sensitivity.text) / mpf(of.sigma.text)) ** 2
    return sqrt(squares)


def epsilon(atoms: list[Atom], delta: Exact) -> mpf:
    return mpf(stated(total_of(atoms), delta).epsilon) / 10**10


def decimal(rng: random.Random, low: float, high: float) -> str:
    """A decimal between two powers of ten."""
    return f"{10 ** rng.uniform(low, high):.6f}"


@pytest.mark.parametrize("x", ["-3.9", "-1", "0", "0.001", "1", "3.999", "4", "4.001", "9", "15.9"])
def test_the_normal_tail_is_enclosed(x: str) -> None:
    at = round(Fraction(x) * ONE)
    truth = mpf(at) / ONE
    for (low, high), due in (
        (gaussians._density(at), mp.npdf(truth)),
        (gaussians._mills(at), mp.ncdf(-truth) / mp.npdf(truth)),
    ):
        assert mpf(low) / ONE <= due <= mpf(high) / ONE
        assert high - low < ONE >> 140


def test_pi_is_pi() -> None:
    assert mpf(gaussians._PI) / mpf(10) ** 63 <= mp.pi <= mpf(gaussians._PI + 1) / mpf(10) ** 63


def test_gaussians_are_never_below_the_truth_and_hardly_above_it() -> None:
    rng = random.Random("gaussians")
    for _ in range(150):
        many = range(rng.choice((1, 1, 2, 5, 12)))
        atoms: list[Atom] = [
            gaussian(decimal(rng, -1, 2), decimal(rng, -1, 1), rng.choice((1, 1, 3, 40)))
            for _ in many
        ]
        delta = Exact(rng.randint(1, 9), rng.randint(2, 12))
        found, mu = stated(total_of(atoms), delta), shift(atoms)
        value = mpf(found.epsilon) / 10**10
        assert found.alpha in ("gdp", "1.0078125") or not value, (atoms, delta)
        assert shift_delta(mu, value) <= mpf(delta.text), (atoms, delta)
        if value > mpf(10) ** -8:
            assert shift_delta(mu, value - mpf(10) ** -9) > mpf(delta.text), (atoms, delta)


@pytest.mark.parametrize(("mu", "due"), [("0.25", "0.92634"), ("1", "4.37718"), ("5", "33.1037")])
def test_figures_of_gaussians(mu: str, due: str) -> None:
    found = epsilon([gaussian("1", mu)], Exact(1, 5))
    assert f"{float(found):.5f}".startswith(due)


def test_gaussians_with_responses_are_within_three_hundredths_of_the_finite_sum() -> None:
    rng = random.Random("mixed")
    for _ in range(40):
        some = [
            response(f"0.{rng.randint(2, 98):02d}", rng.choice((2, 2, 3, 7)), rng.choice((1, 2, 5)))
            for _ in range(rng.choice((1, 1, 2, 3)))
        ]
        more = [gaussian(decimal(rng, -0.5, 1.5)) for _ in range(rng.choice((0, 1, 2)))]
        delta = Exact(1, rng.randint(2, 9))
        atoms: list[Atom] = [*some, *more]
        value, known, mu = epsilon(atoms, delta), response_losses(some), shift(atoms)
        assert mixed_delta(known, mu, value) <= mpf(delta.text), (atoms, delta)
        if value > mpf(10) ** -8:
            less = (value - mpf(10) ** -9) / mpf("1.03")
            assert mixed_delta(known, mu, less) > mpf(delta.text), (atoms, delta)


def lower_losses(parts: list[Laplace], mu: float, delta: float) -> float:
    """An epsilon that is below the true one: each loss rounded down to a fine grid, in floats."""
    tops = [float(of.sensitivity.text) / float(of.scale.text) for of in parts]
    step = min([t / 60 for t in tops] + ([mu / 60] if mu else []))
    mass, base = np.ones(1), 0
    for of, t in zip(parts, tops, strict=True):
        edges = np.arange(np.floor(-t / step), np.floor(t / step) + 2) * step
        below = np.where(edges <= -t, 0, np.where(edges > t, 1, np.exp((edges - t) / 2) / 2))
        once = np.diff(below)
        for _ in range(of.times):
            mass, base = np.convolve(mass, once), base + int(np.floor(-t / step))
    if mu:
        ends = np.arange(np.floor((mu * mu / 2 - 9 * mu) / step), (mu * mu / 2 + 9 * mu) / step)
        normal = [float(mp.ncdf((end * step - mu * mu / 2) / mu)) for end in ends]
        mass, base = np.convolve(mass, np.diff(normal)), base + int(ends[0])
    at = (np.arange(len(mass)) + base) * step

    def gap(value: float) -> float:
        return float((mass * np.maximum(0, -np.expm1(value - at))).sum())

    low, high = 0.0, float(at[-1])
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) > delta else (low, middle)
    return low


@pytest.mark.parametrize(
    ("parts", "mu"),
    [
        ([laplace("10", 100)], 0.0),
        ([laplace("1", 20)], 0.0),
        ([laplace("0.5", 3)], 0.0),
        ([laplace("20", 30), laplace("7", 10)], 0.0),
        ([laplace("4", 5)], 0.5),
        ([laplace("1", 2), laplace("8", 9)], 2.0),
    ],
)
@pytest.mark.parametrize("places", [3, 6])
@pytest.mark.sampled(5)
def test_laplace_noise_is_within_three_hundredths_of_its_losses(
    parts: list[Laplace], mu: float, places: int
) -> None:
    atoms: list[Atom] = [*parts, *([gaussian("1", str(mu))] if mu else [])]
    found = float(epsilon(atoms, Exact(1, places)))
    below = lower_losses(parts, mu, 10.0**-places)
    assert below <= found <= below * 1.03


@pytest.mark.parametrize(
    ("scale", "times", "low", "high"),
    [("10", 100, 4.692646, 4.692667), ("100", 10000, 4.873772, 4.876258)],
)
def test_laplace_noise_beside_dp_accounting(
    scale: str, times: int, low: float, high: float
) -> None:
    assert low <= epsilon([laplace(scale, times)], Exact(1, 6)) <= high * 1.01


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "places", "truth", "best"),
    [
        ("0.01", "1", 1000, 5, 1.828, 2.101),
        ("0.01", "0.8", 500, 6, 2.925, 3.531),
        ("0.05", "2", 200, 5, 1.561, 1.721),
        ("0.02", "1.5", 3000, 7, 4.433, 4.725),
        ("0.1", "1", 1, 5, 1.685, 2.133),
    ],
)
def test_figures_of_the_subsampled_gaussian(
    rate: str, noise: str, steps: int, places: int, truth: float, best: float
) -> None:
    found = epsilon([subsampled(rate, noise, steps)], Exact(1, places))
    assert truth < found <= best * 1.03


def test_the_subsampled_gaussian_is_the_best_of_its_orders() -> None:
    rng = random.Random("subsampled")
    for _ in range(6):
        rate, noise = f"{10 ** rng.uniform(-3, -0.3):.4f}", f"{rng.uniform(0.6, 3):.2f}"
        steps, delta = rng.choice((1, 50, 2000)), Exact(1, rng.randint(4, 7))
        due = subsampled_epsilon(mpf(rate), mpf(noise), steps, mpf(delta.text), 80)
        found = epsilon([subsampled(rate, noise, steps)], delta)
        assert due * mpf("0.97") <= found <= due * mpf("1.03") + mpf(10) ** -9, (rate, noise)


def test_taking_every_record_is_the_gaussian_of_renyi_orders() -> None:
    whole = total_of([subsampled("1", "2", 3)]).curve.rdp
    assert whole == total_of([gaussian("2", "1", 3)]).curve.rdp
    # A sample tells no more than all of it.
    part = total_of([subsampled("0.999999", "2", 3)]).curve.rdp
    assert all(one <= other for one, other in zip(part, whole, strict=True))


@pytest.mark.parametrize(("sigma", "steps"), [("0.5", 1), ("1", 1), ("3.2", 2), ("20", 7)])
@pytest.mark.parametrize("places", [2, 5, 9])
def test_the_discrete_gaussian_is_never_below_its_closed_form(
    sigma: str, steps: int, places: int
) -> None:
    of = atom(mechanism="discrete_gaussian", sigma=sigma, sensitivity=steps)
    value, square = epsilon([of], Exact(1, places)), mpf(sigma) ** 2
    reach = range(-int(12 * mpf(sigma)) - steps, int(12 * mpf(sigma)) + steps + 1)
    weights = {y: exp(-(mpf(y) ** 2) / (2 * square)) for y in reach}
    whole, middle = sum(weights.values()), value * square / steps
    above = sum(w for y, w in weights.items() if y > middle - mpf(steps) / 2)
    far = sum(w for y, w in weights.items() if y > middle + mpf(steps) / 2)
    assert (above - exp(value) * far) / whole <= mpf(10) ** -places


def test_losses_improve_the_epsilon_of_orders() -> None:
    total = total_of([gaussian("1")])
    by_order, _ = by_orders(total, Exact(1, 5))
    assert by_order.alpha == "5.4"
    assert by_order.epsilon > stated(total, Exact(1, 5)).epsilon * 1.05


def test_the_stated_epsilon_is_never_above_the_one_of_orders() -> None:
    rng = random.Random("rules")
    for _ in range(40):
        atoms: list[Atom] = rng.sample(
            [gaussian("3"), laplace("2", 4), response("0.7", 3, 2), laplace("0.3"), gaussian("90")],
            rng.randint(1, 5),
        )
        total, delta = total_of(atoms), Exact(1, rng.randint(1, 12))
        assert stated(total, delta).epsilon <= by_orders(total, delta)[0].epsilon


def test_a_plain_epsilon_has_the_losses_of_the_worst_that_has_it() -> None:
    # e = ln 3: randomised response of two choices with 3/4 is the mechanism that reaches it.
    total = total_of([])
    for _ in range(30):
        total = total.plus(pure_curve(1098612289))
    found, due = stated(total, Exact(1, 6)), epsilon([response("0.75", 2, 30)], Exact(1, 6))
    assert found.alpha == "pld"
    assert due <= mpf(found.epsilon) / 10**10 <= due * mpf("1.001")


@pytest.mark.parametrize(
    "other",
    [
        gaussian("1"), laplace("1"), response("0.6"),
        atom(mechanism="discrete_gaussian", sigma="1", sensitivity=1),
        atom(mechanism="rdp", points=[["2", "0.1"]]),
    ],
)  # fmt: skip
def test_two_relations_of_neighbours_are_refused(other: Atom) -> None:
    for atoms in ([subsampled("0.1", "1"), other], [other, subsampled("0.1", "1")]):
        with pytest.raises(Rejected) as refused:
            total_of(atoms)
        assert refused.value.code.value == "E104"
        assert "neighbour" in str(refused.value)
    with pytest.raises(Rejected) as refused:
        total_of([subsampled("0.1", "1")]).plus(pure_curve(10**8))
    assert refused.value.code.value == "E104"


def test_too_many_different_samples_are_refused() -> None:
    with pytest.raises(Rejected) as refused:
        total_of([subsampled(f"0.{i:03d}", "0.5") for i in range(1, 100)])
    assert refused.value.code.value == "E103"


_MOST = 10**9
_LEAST = "0.000000000000000001"
_GREAT = "9" * 18


@pytest.mark.parametrize(
    "atoms",
    [
        [gaussian(_LEAST, _GREAT, _MOST)],
        [gaussian(_GREAT, _LEAST)],
        [laplace(_LEAST, _MOST)],
        [laplace(_GREAT, _MOST)],
        [response("0." + "9" * 18, 10**18, _MOST)],
        [response("0.500000000000000001", 2, _MOST)],
        [response("0.50001", 2, _MOST), laplace("1000", _MOST), gaussian("100", "1", _MOST)],
        [subsampled("1", _LEAST, _MOST)],
        [subsampled(_LEAST, _GREAT, _MOST)],
        [subsampled("0.5", _LEAST, _MOST)],
        [subsampled("0.000001", "40", _MOST)],
        [laplace(f"{i}.5", i) for i in range(1, 40)],
        [laplace(f"{i}.5", i) for i in range(1, 500)],
        [atom(mechanism="discrete_gaussian", sigma=_LEAST, sensitivity=10**18, times=_MOST)],
    ],
)
@pytest.mark.parametrize("places", [2, 40])
@pytest.mark.sampled(10)
def test_hostile_numbers_are_answered_in_time(atoms: list[Atom], places: int) -> None:
    started = process_time()
    found = stated(total_of(atoms), Exact(1, places))
    assert found.epsilon >= 0
    assert process_time() - started < 15
