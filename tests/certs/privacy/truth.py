"""The closed forms again, with mpmath at 60 digits: what the integers are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mpmath import exp, expm1, log, mp, mpf

from tcc_certs.errors import Code
from tcc_certs.policy.atoms import Atom, Codes, Gaussian, Laplace, RandomizedResponse, read_atom

mp.dps = 60


def atom(**members: object) -> Atom:
    """The atom with these members."""
    return read_atom(members, "atom", Codes(Code.ATOMS, Code.ATOM_VALUE))  # type: ignore[arg-type]


def renyi(of: Atom, alpha: mpf) -> mpf:
    """D_alpha of one use, straight from the definition of each mechanism."""
    if isinstance(of, RandomizedResponse):
        p = mpf(of.probability.text)
        q = (1 - p) / (of.choices - 1)
        total = p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha) + (of.choices - 2) * q
        return log(total) / (alpha - 1)
    if isinstance(of, Gaussian):
        return alpha * (mpf(of.sensitivity.text) / mpf(of.sigma.text)) ** 2 / 2
    assert isinstance(of, Laplace)
    t = mpf(of.sensitivity.text) / mpf(of.scale.text)
    first = alpha / (2 * alpha - 1) * exp((alpha - 1) * t)
    return log(first + (alpha - 1) / (2 * alpha - 1) * exp(-alpha * t)) / (alpha - 1)


def converted(rdp: mpf, alpha: mpf, delta: mpf) -> mpf:
    """The bound of Canonne, Kamath and Steinke, Proposition 12."""
    return rdp + log((alpha - 1) / alpha) - (log(delta) + log(alpha)) / (alpha - 1)


def best_order(curve: Callable[[mpf], mpf], delta: mpf) -> mpf:
    """The least of `converted` over all real orders: a scan by ratio, then a golden section."""

    def at(above: mpf) -> mpf:
        return converted(curve(1 + above), 1 + above, delta)

    ratio = mpf(2) ** (mpf(1) / 2)
    tried = [mpf(2) ** -9 * ratio**i for i in range(60)]
    middle = min(tried, key=at)
    low, high = middle / ratio, middle * ratio
    share = (mpf(5) ** 0.5 - 1) / 2
    for _ in range(40):
        one, other = high - share * (high - low), low + share * (high - low)
        low, high = (low, other) if at(one) < at(other) else (one, high)
    return max(mpf(0), at((low + high) / 2))


def response_delta(p: mpf, epsilon: mpf, times: int) -> mpf:
    """The exact delta of randomised response of two choices, composed: a binomial sum.

    Of `times` answers, i are the truth of the one input and a lie of the other.
    """
    q, total = 1 - p, mpf(0)
    for i in range(times + 1):
        ways = mp.binomial(times, i)
        gap = p**i * q ** (times - i) - exp(epsilon) * q**i * p ** (times - i)
        total += ways * max(mpf(0), gap)
    return total


def many_choices_delta(p: mpf, choices: int, epsilon: mpf, times: int) -> mpf:
    """The same of more choices: i answers name the one input, j the other, the rest neither."""
    q = (1 - p) / (choices - 1)
    total, neither = mpf(0), (choices - 2) * q
    for i in range(times + 1):
        for j in range(times + 1 - i):
            rest = times - i - j
            ways = mp.binomial(times, i) * mp.binomial(times - i, j) * neither**rest
            gap = p**i * q**j - exp(epsilon) * q**i * p**j
            total += ways * max(mpf(0), gap)
    return total


def laplace_delta(scale: mpf, epsilon: mpf) -> mpf:
    """The exact delta of one Laplace mechanism of sensitivity 1."""
    return max(mpf(0), -expm1((epsilon - 1 / scale) / 2))


def shift_delta(mu: mpf, epsilon: mpf) -> mpf:
    """The exact delta of Gaussian differential privacy of that mu."""
    return mp.ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def response_losses(responses: Iterable[RandomizedResponse]) -> dict[mpf, mpf]:
    """The probability of each loss of all these, one after the other."""
    found = {mpf(0): mpf(1)}
    for of in responses:
        p = mpf(of.probability.text)
        q = (1 - p) / (of.choices - 1)
        once = [(log(p / q), p), (-log(p / q), q), (mpf(0), (of.choices - 2) * q)]
        for _ in range(of.times):
            after: dict[mpf, mpf] = {}
            for loss, mass in found.items():
                for more, share in once:
                    at = mp.nint((loss + more) * mpf(10) ** 40) / mpf(10) ** 40
                    after[at] = after.get(at, mpf(0)) + mass * share
            found = after
    return found


def mixed_delta(losses: Mapping[mpf, mpf], mu: mpf, epsilon: mpf) -> mpf:
    """The exact delta of a Gaussian beside what has these losses: a finite sum."""
    if not mu:
        return sum((m * max(mpf(0), -expm1(epsilon - at)) for at, m in losses.items()), mpf(0))
    return sum((mass * shift_delta(mu, epsilon - at) for at, mass in losses.items()), mpf(0))


def subsampled_epsilon(rate: mpf, noise: mpf, steps: int, delta: mpf, most: int) -> mpf:
    """The least that an integer order up to `most` gives."""
    best = None
    for a in range(2, most + 1):
        total = sum(
            mp.binomial(a, k) * (1 - rate) ** (a - k) * rate**k * exp(k * (k - 1) / (2 * noise**2))
            for k in range(a + 1)
        )
        found = converted(steps * log(total) / (a - 1), mpf(a), delta)
        best = found if best is None else min(best, found)
    assert best is not None
    return max(mpf(0), best)


def gaussian_delta(sigma: mpf, epsilon: mpf) -> mpf:
    """The exact delta of one Gaussian mechanism of sensitivity 1 (Balle and Wang, 2018)."""
    half, lift = 1 / (2 * sigma), epsilon * sigma
    return mp.ncdf(half - lift) - exp(epsilon) * mp.ncdf(-half - lift)
