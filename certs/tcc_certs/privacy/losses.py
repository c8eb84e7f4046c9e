"""The distribution of privacy losses, of all that has one here: an epsilon hardly above the truth.

Normative text: docs/spec/privacy.md, section 5.  Neighbours are as in :mod:`.curves`.  The loss L
of an output is a random number, losses of a composition add up, and

    delta(e) = E max(0, 1 - e^(e-L)).

As a function of y = e^-L alone, the others fixed, that is convex and does not rise.  So delta is
never lowered where a loss is replaced by a random one with E e^-L' <= e^-L: one rounded up, one
moved to infinity, or one that is split between the two points of a grid beside it so that E e^-L
stays (Doroshenko and others, Connect the dots, 2022).  All that is done here is one of the three,
so that a grid of step h costs a share of h^2 of the variance, and nothing of the bound.

Numbers have 192 fractional bits, probabilities as many as delta and the number of uses ask for;
every step is rounded to the side of the greater delta.
Cost: that of :mod:`.grid`, as often as two parts are composed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tcc_certs.core.atoms import Exact, Gaussian, Laplace, RandomizedResponse
from tcc_certs.privacy.curves import Part
from tcc_certs.privacy.gaussians import (
    BITS,
    ONE,
    PER_DEVIATION,
    TENTHS,
    Enclosure,
    gaussian_shift,
    normal_cells,
)
from tcc_certs.race.numbers import exp_enclosure, log_enclosure

# ---- Distributions of losses on grids, and what two of them come to.
#
# Cost: a product of two integers of 200,000 bits each time two are composed.

POINTS = 1024  # of a grid, at most


def fall(x: int) -> Enclosure:
    """e^-x, for x >= 0."""
    return (0, 1) if x >> BITS >= 1024 else exp_enclosure((-x, -x), BITS, BITS)


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
        return -(-mass << self.bits >> BITS)


class Shares:
    """What of a loss u above a point of a grid goes to the next: (1 - e^-u) / (1 - e^-step)."""

    def __init__(self, step: int) -> None:
        self._whole = ONE - fall(step)[1]
        self._known = {0: 0}

    def __call__(self, above: int) -> int:
        """The share, rounded up."""
        if above not in self._known:
            part = ONE - fall(above)[0]
            self._known[above] = -(-(part << BITS) // self._whole) if part < self._whole else ONE
        return self._known[above]


def composed(one: Losses, other: Losses, work: Work) -> Losses:
    """Both, on one grid: as fine as that of the finer, or as the number of points allows."""
    reach = (len(one.masses) - 1) * one.step + (len(other.masses) - 1) * other.step
    step = min(one.step, other.step)
    while reach > POINTS * step:
        step *= 2  # so that of one grid on the next there are few shares to compute
    same = other is one
    one = _on_grid(one, step)
    other = one if same else _on_grid(other, step)
    masses = [-(-mass >> work.bits) for mass in _product(one.masses, other.masses, work.bits)]
    lost = one.lost + other.lost
    base = one.base + other.base
    return tidy(Losses(base=base, step=one.step, masses=masses, lost=lost), work)


def _on_grid(losses: Losses, step: int) -> Losses:
    """On a grid of another step, with the same base."""
    if losses.step == step:
        return losses
    share = Shares(step)
    masses = [0] * ((len(losses.masses) - 1) * losses.step // step + 2)
    for i, mass in enumerate(losses.masses):
        at, above = divmod(i * losses.step, step)
        top = -(-mass * share(above) >> BITS)
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


def tidy(losses: Losses, work: Work) -> Losses:
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


_Spread: TypeAlias = "Laplace | RandomizedResponse | int"  # what has losses of its own here

_MOST_WORK = 2000  # compositions of two, of which one on two grids is worth many


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
        found.append(composed(found.pop(), found.pop(), work))
    return _epsilon(found[0], delta, work) if found else 0


@lru_cache(maxsize=1 << 10)
def _power(part: _Spread, times: int, work: Work) -> Losses:
    """A part composed with itself."""
    if times == 1:
        return tidy(_losses(part, work), work)
    half = _power(part, times // 2, work)
    whole = composed(half, half, work)
    return composed(whole, _power(part, 1, work), work) if times % 2 else whole


def _losses(part: _Spread, work: Work) -> Losses:
    if isinstance(part, int):
        return _plain(part, work)
    return _laplace(part, work) if isinstance(part, Laplace) else _response(part, work)


def _plain(nano: int, work: Work) -> Losses:
    """The losses e and -e, the first e^e times as likely: no pure epsilon e tells more apart."""
    base, top = -((nano << BITS) // 10**9), -(-(nano << BITS) // 10**9)
    low, high = fall(top)[0], fall(-base)[1]
    masses = [-(-(high << BITS) // (ONE + high)), -(-ONE * ONE // (ONE + low))]
    return Losses(base=base, step=top - base or 1, masses=[work.rounded(mass) for mass in masses])


def _response(part: RandomizedResponse, work: Work) -> Losses:
    """ln(p/q) where the one input is answered, its negative for the other, 0 for the rest."""
    one: int = 10**part.probability.places * (part.choices - 1)
    truth = part.probability.numerator * (part.choices - 1)
    other = 10**part.probability.places - part.probability.numerator
    great, least = max(truth, other), min(truth, other)
    low, high = log_enclosure(great, least, BITS)
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
    low, high = (over << BITS) // under, -(-(over << BITS) // under)
    count = 2 * min(POINTS // 8, max(8, 8 * high >> BITS))
    step = -(-2 * high // count)
    ratio = fall(low // count)
    ends = -(-ONE * ONE // (ONE + ratio[0]))
    inner = -(-(ONE - ratio[0] << BITS) // (ONE + ratio[0]))
    masses, power = [ends], ONE
    for k in range(count):
        power = -(-power * ratio[1] >> BITS)
        masses.append(-(-power * (inner if k < count - 1 else ends) >> BITS))
    return Losses(base=-low, step=step, masses=[work.rounded(mass) for mass in reversed(masses)])


def _gaussian_losses(mu: int, work: Work) -> Losses:
    """A loss is mu^2/2 + mu x; the share of a cell for its upper end is greatest at its mean."""
    *cells, (beyond, _, _) = normal_cells((work.spare << BITS) >> work.bits)
    width, count = ONE // PER_DEVIATION, len(cells)
    step = -(-mu // PER_DEVIATION)
    share = Shares(step)
    masses = [0] * (2 * count + 1)
    masses[0] = beyond
    for i, (mass, nearest, furthest) in enumerate(cells):
        for at, inside in ((count + i, furthest), (count - i - 1, width - nearest)):
            top = -(-mass * share(-(-mu * inside >> BITS)) >> BITS)
            masses[at + 1] += top
            masses[at] += mass - top
    base = -(-mu * (mu - 2 * count * width) >> BITS + 1)
    rounded = [work.rounded(mass) for mass in masses]
    return Losses(base=base, step=step, masses=rounded, lost=work.rounded(beyond))


def _epsilon(losses: Losses, delta: Exact, work: Work) -> int | None:
    """The least e with delta(e) <= delta, in units of 10^-10; None: there is none.

    With A the probability of losses above a point L, and S the sum of theirs times e^(L - loss), up
    to the next one delta(e) = lost + A - e^(e-L) S.
    """
    most = (delta.numerator << work.bits) // 10**delta.places
    if losses.lost > most:
        return None
    power, above, weighed = fall(losses.step)[0], losses.lost, 0
    for at in range(len(losses.masses) - 1, 0, -1):
        mass = losses.masses[at]
        above, weighed = above + mass, (weighed + (mass << BITS)) * power >> BITS
        if above - (weighed >> BITS) > most:
            lift = losses.step
            if weighed:
                lift = min(lift, log_enclosure(above - most << BITS, weighed, BITS)[1])
            return max(0, tenths(losses.base + (at - 1) * losses.step + lift))
    return max(0, tenths(losses.base))


def tenths(value: int) -> int:
    """A number of 192 fractional bits in units of 10^-10, rounded up."""
    return -(-value * TENTHS >> BITS)
