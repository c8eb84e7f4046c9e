"""Privacy losses: the exact epsilon of Gaussians, and a distribution of losses for what else is.

Normative text: docs/spec/privacy.md, section 5.  Neighbours are as in :mod:`.curves`.  Gaussians of
shifts mu_i are together one of shift mu, mu^2 the sum of mu_i^2 (Dong, Roth and Su 2022), with

    delta(e) = phi(a) (R(a) - R(a + mu)), a = e/mu - mu/2, R = (1 - Phi)/phi (Balle and Wang 2018).

Of others the loss L of an output is a random number, losses of a composition add up, and

    delta(e) = E max(0, 1 - e^(e-L)).

As a function of y = e^-L alone, the others fixed, that is convex and does not rise.  So delta is
never lowered where a loss is replaced by a random one with E e^-L' <= e^-L: one rounded up, one
moved to infinity, or one that is split between the two points of a grid beside it so that E e^-L
stays (Doroshenko and others, Connect the dots, 2022).  All that is done here is one of the three,
so that a grid of step h costs a share of h^2 of the variance, and nothing of the bound.

Numbers are integers with 192 fractional bits, probabilities with a number of bits that delta and
the number of compositions ask for; every step is rounded to the side of the greater delta.
Cost: some ms a Gaussian; a product of two integers of 100,000 bits each time two are composed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import TypeAlias

from tcc_certs.core.atoms import Exact, Gaussian, Laplace, RandomizedResponse
from tcc_certs.privacy.curves import Part
from tcc_certs.race.numbers import exp_enclosure, log_enclosure

_Spread: TypeAlias = "Laplace | RandomizedResponse | int"  # what has losses of its own here
Enclosure: TypeAlias = "tuple[int, int]"

TENTHS = 10**10
_BITS = 192
_ONE = 1 << _BITS
_GUARD = 32
_PI = 3141592653589793238462643383279502884197169399375105820974944592  # over 10^63, rounded down
_FAR = 16  # standard deviations; 1 - Phi(16) < 10^-57, and a delta is at least 10^-40
_SERIES = 4  # the series below, the fraction from here on
_TERMS = 200  # of the fraction
_POINTS = 1024  # of a grid, at most
_PER_DEVIATION = 16  # points of a Gaussian
_MOST_WORK = 2000  # compositions of two, of which one on two grids is worth many


def gaussian_shift(parts: Mapping[Part, int]) -> int:
    """mu of all Gaussians among the parts, rounded up."""
    squares = 0
    for part, times in parts.items():
        if isinstance(part, Gaussian):
            over = part.sensitivity.numerator * 10**part.sigma.places
            under = part.sigma.numerator * 10**part.sensitivity.places
            squares += -(-(times * over * over << 2 * _BITS) // (under * under))
    return isqrt(squares - 1) + 1 if squares else 0


@lru_cache(maxsize=1 << 8)
def gaussian_epsilon(mu: int, delta: Exact) -> int:
    """The least epsilon, in units of 10^-10, whose delta is certified to be at most `delta`."""
    most = (delta.numerator << _BITS) // 10**delta.places
    below, above = -1, (mu * (mu + 2 * _FAR * _ONE) * TENTHS >> 2 * _BITS + 1) + 1
    while above - below > 1:
        middle = (above + below) // 2
        if _gaussian_delta(mu, middle) <= most:
            above = middle
        else:
            below = middle
    return above


def _gaussian_delta(mu: int, epsilon: int) -> int:
    """delta(e), rounded up.  With a rounded down it is that of a lesser e, which is above it."""
    a = (epsilon << 2 * _BITS) // (TENTHS * mu) - (mu + 1 >> 1)
    if a < -_SERIES * _ONE:
        return _ONE
    gap = _mills(a)[1] - _mills(a + mu)[0]
    return -(-_density(a)[1] * gap >> _BITS)


@lru_cache(maxsize=1 << 10)
def _density(x: int) -> Enclosure:
    """phi(x) = e^(-x^2/2) / sqrt(2 pi)."""
    if abs(x) > 2 * _FAR * _ONE:
        return 0, 1  # e^-512 is far below a unit
    low, high = exp_enclosure((-x * x, -x * x), 2 * _BITS + 1, _BITS)
    least, most = _root(2)
    return (low << _BITS) // most, -(-(high << _BITS) // least)


@lru_cache(maxsize=1 << 10)
def _mills(x: int) -> Enclosure:
    """R(x) = (1 - Phi(x)) / phi(x), for x >= -4."""
    return _fraction(x) if x >= _SERIES * _ONE else _series(x)


def _fraction(x: int) -> Enclosure:
    """1/(x + 1/(x + 2/(x + 3/ ..))): what is cut off lies between x and x + n/x."""
    low, high = x, x + (_TERMS << 2 * _BITS) // x + 1
    for n in range(_TERMS - 1, 0, -1):
        low, high = x + (n << 2 * _BITS) // high, x + -(-(n << 2 * _BITS) // low)
    return _ONE * _ONE // high, -(-_ONE * _ONE // low)


def _series(x: int) -> Enclosure:
    """sqrt(pi/2) e^(x^2/2) - S, S = sum of x^(2k+1) / (2k+1)!!, of which the sign is that of x.

    With |x| <= 4 a product of ratios x^2/(2k+3) is below 133, so a term is short by less than
    133 (k+1) units, of 32 bits more than the result; there are fewer than 200, and once one is 0
    the rest is below 2^16: S is short by less than 2^23 of these units.
    """
    work = _BITS + _GUARD
    wide = abs(x) << _GUARD
    square = wide * wide >> work
    total = term = wide
    k = 0
    while term:
        term = (term * square >> work) // (2 * k + 3)
        total, k = total + term, k + 1
    low, high = exp_enclosure((x * x, x * x), 2 * _BITS + 1, work)
    least, most = (root << _GUARD for root in _root(2))  # sqrt(pi/2) = sqrt(2 pi) / 2
    low, high = low * least >> work + 1, -(-high * most >> work + 1)
    ends = (total, total + (1 << 23)) if x >= 0 else (-total - (1 << 23), -total)
    return low - ends[1] >> _GUARD, -(ends[0] - high >> _GUARD)


def _root(times: int) -> Enclosure:
    """sqrt(times pi)."""
    low = (times * _PI << 2 * _BITS) // 10**63
    return isqrt(low), isqrt((times * (_PI + 1) << 2 * _BITS) // 10**63 + 1) + 1


def _tail(x: int) -> Enclosure:
    """1 - Phi(x), for x >= 0."""
    (low, high), (least, most) = _density(x), _mills(x)
    return low * least >> _BITS, -(-high * most >> _BITS)


def _fall(x: int) -> Enclosure:
    """e^-x, for x >= 0."""
    return (0, 1) if x >> _BITS >= 1024 else exp_enclosure((-x, -x), _BITS, _BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """A distribution of losses: `base` + i * `step` has the probability `masses[i]`.

    Attributes:
        lost: the probability of an infinite one.
    """

    base: int
    step: int
    masses: Sequence[int]
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """How finely it is worked.

    Attributes:
        bits: fractional ones of probabilities.
        spare: what a tail may have to be moved.
    """

    bits: int
    spare: int

    def rounded(self, mass: int) -> int:
        """A probability of 192 bits, rounded up."""
        return -(-mass << self.bits >> _BITS)


@lru_cache(maxsize=1 << 8)
def losses_epsilon(parts: frozenset[tuple[Part, int]], delta: Exact) -> int | None:
    """An epsilon of all parts, in units of 10^-10; None: they have none, or are too many."""
    known = dict(parts)
    mu = gaussian_shift(known)
    others: dict[_Spread, int] = {}
    for part, times in known.items():
        if isinstance(part, int | Laplace | RandomizedResponse):
            others[part] = times
        elif not isinstance(part, Gaussian):
            return None
    if sum(2 * times.bit_length() + 16 for times in others.values()) > _MOST_WORK:
        return None
    scale = 10**delta.places // delta.numerator
    uses = sum(others.values()) + len(others) + 1
    # A part in 2^20 of delta may be lost in all, and that again to roundings.
    bits = scale.bit_length() + 2 * uses.bit_length() + 64
    work = Work(bits, (1 << bits) // (scale + 1) // uses >> 24)
    found = [_power(part, times, work) for part, times in others.items()]
    if mu:
        found.append(_gaussian_losses(mu, work))
    while len(found) > 1:
        found.sort(key=lambda one: (one.step, one.base, one.masses), reverse=True)
        found.append(_composed(found.pop(), found.pop(), work))
    return _epsilon(found[0], delta, work) if found else 0


@lru_cache(maxsize=1 << 10)
def _power(part: _Spread, times: int, work: Work) -> Losses:
    """A part composed with itself."""
    if times == 1:
        return _tidy(_losses(part, work), work)
    half = _power(part, times // 2, work)
    whole = _composed(half, half, work)
    return _composed(whole, _power(part, 1, work), work) if times % 2 else whole


def _losses(part: _Spread, work: Work) -> Losses:
    if isinstance(part, int):
        return _plain(part, work)
    return _laplace(part, work) if isinstance(part, Laplace) else _response(part, work)


def _plain(nano: int, work: Work) -> Losses:
    """The losses e and -e, the first e^e times as likely: no pure epsilon e tells more apart."""
    base, top = -((nano << _BITS) // 10**9), -(-(nano << _BITS) // 10**9)
    low, high = _fall(top)[0], _fall(-base)[1]
    masses = [-(-(high << _BITS) // (_ONE + high)), -(-_ONE * _ONE // (_ONE + low))]
    return Losses(base=base, step=top - base or 1, masses=[work.rounded(mass) for mass in masses])


def _response(part: RandomizedResponse, work: Work) -> Losses:
    """ln(p/q) where the one input is answered, its negative for the other, 0 for the rest."""
    one: int = 10**part.probability.places * (part.choices - 1)
    truth = part.probability.numerator * (part.choices - 1)
    other = 10**part.probability.places - part.probability.numerator
    great, least = max(truth, other), min(truth, other)
    low, high = log_enclosure(great, least, _BITS)
    rest = (part.choices - 2) * other
    masses = [-(-(mass << work.bits) // one) for mass in (least, rest, great)]
    return Losses(base=-low, step=max(high, 1), masses=masses)


def _laplace(part: Laplace, work: Work) -> Losses:
    """With t = s/scale the loss is t - 2x, x of 0 .. t exponential, else t or -t.

    Split between the points t - k h, h = t/n, it is that of geometric noise, g = e^(-h/2): t has
    1/(1+g), those within have g^k (1-g)/(1+g), and -t has g^(2n)/(1+g).
    """
    over = part.sensitivity.numerator * 10**part.scale.places
    under = part.scale.numerator * 10**part.sensitivity.places
    low, high = (over << _BITS) // under, -(-(over << _BITS) // under)
    count = 2 * min(_POINTS // 8, max(8, 8 * high >> _BITS))
    step = -(-2 * high // count)
    ratio = _fall(low // count)
    ends = -(-_ONE * _ONE // (_ONE + ratio[0]))
    inner = -(-(_ONE - ratio[0] << _BITS) // (_ONE + ratio[0]))
    masses, power = [ends], _ONE
    for k in range(count):
        power = -(-power * ratio[1] >> _BITS)
        masses.append(-(-power * (inner if k < count - 1 else ends) >> _BITS))
    return Losses(base=-low, step=step, masses=[work.rounded(mass) for mass in reversed(masses)])


@lru_cache(maxsize=1 << 6)
def _cells(work: Work) -> Sequence[tuple[int, int, int]]:
    """Cells of a normal variable from 0 on: how likely, and how far inside its mean lies, from, to.

    The mean of a cell is the difference of phi at its ends, over its probability.  The last one is
    what lies beyond them all.
    """
    width = _ONE // _PER_DEVIATION
    cells, x = [], 0
    while work.rounded(_tail(x)[1]) > work.spare and x < _FAR * _ONE:
        (low, high), (least, most) = _tail(x), _tail(x + width)
        here, there = _density(x), _density(x + width)
        nearest = ((here[0] - there[1]) << _BITS) // (high - least) - x
        furthest = -(-((here[1] - there[0]) << _BITS) // (low - most)) - x
        cells.append((high - least, max(nearest, 0), min(furthest, width)))
        x += width
    return [*cells, (_tail(x)[1], 0, 0)]


def _gaussian_losses(mu: int, work: Work) -> Losses:
    """A loss is mu^2/2 + mu x; the share of a cell for its upper end is greatest at its mean."""
    *cells, (beyond, _, _) = _cells(work)
    width, count = _ONE // _PER_DEVIATION, len(cells)
    step = -(-mu // _PER_DEVIATION)
    share = _Shares(step)
    masses = [0] * (2 * count + 1)
    masses[0] = beyond
    for i, (mass, nearest, furthest) in enumerate(cells):
        for at, inside in ((count + i, furthest), (count - i - 1, width - nearest)):
            top = -(-mass * share(-(-mu * inside >> _BITS)) >> _BITS)
            masses[at + 1] += top
            masses[at] += mass - top
    base = -(-mu * (mu - 2 * count * width) >> _BITS + 1)
    rounded = [work.rounded(mass) for mass in masses]
    return Losses(base=base, step=step, masses=rounded, lost=work.rounded(beyond))


class _Shares:
    """What of a loss u above a point of a grid goes to the next: (1 - e^-u) / (1 - e^-step)."""

    def __init__(self, step: int) -> None:
        self._whole = _ONE - _fall(step)[1]
        self._known = {0: 0}

    def __call__(self, above: int) -> int:
        """The share, rounded up."""
        if above not in self._known:
            part = _ONE - _fall(above)[0]
            self._known[above] = -(-(part << _BITS) // self._whole) if part < self._whole else _ONE
        return self._known[above]


def _composed(one: Losses, other: Losses, work: Work) -> Losses:
    """Both, on one grid: as fine as that of the finer, or as the number of points allows."""
    reach = (len(one.masses) - 1) * one.step + (len(other.masses) - 1) * other.step
    step = min(one.step, other.step)
    while reach > _POINTS * step:
        step *= 2  # so that of one grid on the next there are few shares to compute
    same = other is one
    one = _on_grid(one, step)
    other = one if same else _on_grid(other, step)
    masses = [-(-mass >> work.bits) for mass in _product(one.masses, other.masses, work.bits)]
    lost = one.lost + other.lost
    base = one.base + other.base
    return _tidy(Losses(base=base, step=one.step, masses=masses, lost=lost), work)


def _on_grid(losses: Losses, step: int) -> Losses:
    """On a grid of another step, with the same base."""
    if losses.step == step:
        return losses
    share = _Shares(step)
    masses = [0] * ((len(losses.masses) - 1) * losses.step // step + 2)
    for i, mass in enumerate(losses.masses):
        at, above = divmod(i * losses.step, step)
        top = -(-mass * share(above) >> _BITS)
        masses[at + 1] += top
        masses[at] += mass - top
    return Losses(base=losses.base, step=step, masses=masses, lost=losses.lost)


def _product(one: Sequence[int], other: Sequence[int], bits: int) -> list[int]:
    """The product of two polynomials, as one of two integers: a place has room for every sum."""
    size = (2 * bits + 8 + min(len(one), len(other)).bit_length()) // 8 + 1
    first, second = (
        int.from_bytes(b"".join(mass.to_bytes(size, "little") for mass in masses), "little")
        for masses in (one, other)
    )
    count = len(one) + len(other) - 1
    data = (first * second).to_bytes(count * size, "little")
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, count * size, size)]


def _tidy(losses: Losses, work: Work) -> Losses:
    """Without its tails: the upper is lost, the lower moved up to what is kept."""
    masses = losses.masses
    end, above = len(masses), 0
    while end > 1 and above + masses[end - 1] <= work.spare:
        end, above = end - 1, above + masses[end - 1]
    start, below = 0, 0
    while start < end - 1 and below + masses[start] <= work.spare:
        start, below = start + 1, below + masses[start]
    kept = [masses[start] + below, *masses[start + 1 : end]]
    base = losses.base + start * losses.step
    return Losses(base=base, step=losses.step, masses=kept, lost=losses.lost + above)


def _epsilon(losses: Losses, delta: Exact, work: Work) -> int | None:
    """The least e with delta(e) <= delta, in units of 10^-10; None: there is none.

    With A the probability of losses above a point L, and S the sum of theirs times e^(L - loss), up
    to the next one delta(e) = lost + A - e^(e-L) S.
    """
    most = (delta.numerator << work.bits) // 10**delta.places
    if losses.lost > most:
        return None
    fall, above, weighed = _fall(losses.step)[0], losses.lost, 0
    for at in range(len(losses.masses) - 1, 0, -1):
        mass = losses.masses[at]
        above, weighed = above + mass, (weighed + (mass << _BITS)) * fall >> _BITS
        if above - (weighed >> _BITS) > most:
            lift = losses.step
            if weighed:
                lift = min(lift, log_enclosure(above - most << _BITS, weighed, _BITS)[1])
            return max(0, tenths(losses.base + (at - 1) * losses.step + lift))
    return max(0, tenths(losses.base))


def tenths(value: int) -> int:
    """A number of 192 fractional bits in units of 10^-10, rounded up."""
    return -(-value * TENTHS >> _BITS)
