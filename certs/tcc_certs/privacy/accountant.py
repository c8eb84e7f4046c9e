"""Composition and conversion: the epsilon of a list of atoms at a delta.

Normative text: docs/spec/privacy.md, sections 3 to 5.  Curves are added order by order, and pure
epsilons are added separately.  Each order a gives an epsilon by the bound of Canonne, Kamath and
Steinke:

    epsilon(a) + ln((a-1)/a) - (ln delta + ln a)/(a-1), or 0 if this is negative.

The result is the least of these.  If the sum of the pure epsilons is no greater, it is the result
instead.  The epsilon from the distribution of losses is the result if it is
less.  Mironov's epsilon(a) + ln(1/delta)/(a-1) is never the least, because ln((a-1)/a) -
ln(a)/(a-1) < 0 at every order.  Source: Canonne, Kamath and Steinke, The discrete Gaussian (2020),
Proposition 12; Mironov (2017).

The distribution of privacy losses (privacy.md, section 5) gives an epsilon that is close to the
true one.  Neighbours are defined as in :mod:`.curves`.  The loss L of an output is a random number,
the losses of a composition add up, and

    delta(e) = E max(0, 1 - e^(e-L)).

As a function of y = e^-L of one part, with the other parts fixed, this is convex and never
increases.  So delta does not decrease if a loss is replaced by a random one L' with E e^-L' <=
e^-L.  This module uses three such replacements.  It rounds a loss up, or makes it infinite, or
splits it between the two nearest points of a grid so that E e^-L does not change (Doroshenko and
others, Connect the dots, 2022).  Splitting on a grid of step h raises the variance by a share of
h^2, and the result remains a bound.

Losses have 192 fractional bits.  Probabilities have as many as delta and the number of uses need.
Every step is rounded so that delta grows.

Cost: a sum and a minimum over the orders, and a convolution of losses for each pair of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.policy.atoms import (
    Atom,
    Exact,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SubsampledGaussian,
)
from tcc_certs.privacy import curves
from tcc_certs.privacy.gaussians import (
    BITS,
    ONE,
    PER_DEVIATION,
    TENTHS,
    Enclosure,
    gaussian_epsilon,
    gaussian_shift,
    normal_cells,
)
from tcc_certs.race.enclosures import exp_enclosure, log_enclosure

# Losses.

# Distributions of losses on grids, and their composition.
#
# Each composition of two distributions multiplies two integers of 200,000 bits.

POINTS = 1024  # the most points of a grid


def fall(x: int) -> Enclosure:
    """Enclose e^-x for x >= 0; all numbers have 192 fractional bits."""
    return (0, 1) if x >> BITS >= 1024 else exp_enclosure((-x, -x), BITS, BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """A distribution of losses: the loss `base` + i * `step` has the probability `masses[i]`.

    `base` and `step` have 192 fractional bits, and probabilities have :attr:`Work.bits`.

    Attributes:
        lost: the probability of an infinite loss.
    """

    base: int
    step: int
    masses: Sequence[int]
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """The precision of a computation.

    Attributes:
        bits: the number of fractional bits of a probability.
        spare: the greatest probability of a tail that may be moved.
    """

    bits: int
    spare: int

    def rounded(self, mass: int) -> int:
        """A probability of 192 fractional bits with `bits` fractional bits instead, rounded up."""
        return -(-mass << self.bits >> BITS)


class Shares:
    """Shares for splitting a loss at distance u above a grid point.

    The next point gets (1 - e^-u) / (1 - e^-step), and the point below gets the rest.
    """

    def __init__(self, step: int) -> None:
        self._whole = ONE - fall(step)[1]
        self._known = {0: 0}

    def __call__(self, above: int) -> int:
        """The share of the next point, rounded up; `above` is u."""
        if above not in self._known:
            part = ONE - fall(above)[0]
            self._known[above] = -(-(part << BITS) // self._whole) if part < self._whole else ONE
        return self._known[above]


def composed(one: Losses, other: Losses, work: Work) -> Losses:
    """The distribution of the sum of two losses, on one grid.

    Its step is the smaller of both steps, doubled until the grid has at most POINTS steps.
    """
    reach = (len(one.masses) - 1) * one.step + (len(other.masses) - 1) * other.step
    step = min(one.step, other.step)
    while reach > POINTS * step:
        step *= 2  # doubling keeps grids commensurable, so few different shares are computed
    same = other is one
    one = _on_grid(one, step)
    other = one if same else _on_grid(other, step)
    masses = [-(-mass >> work.bits) for mass in _product(one.masses, other.masses, work.bits)]
    lost = one.lost + other.lost
    base = one.base + other.base
    return tidy(Losses(base=base, step=one.step, masses=masses, lost=lost), work)


def _on_grid(losses: Losses, step: int) -> Losses:
    """The distribution on a grid with another step and the same base."""
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
    """The product of two polynomials, computed as one product of two integers.

    Each coefficient gets so many bytes that no sum overflows.
    """
    size = (2 * bits + 8 + min(len(one), len(other)).bit_length()) // 8 + 1
    first, second = (
        int.from_bytes(b"".join(mass.to_bytes(size, "little") for mass in masses), "little")
        for masses in (one, other)
    )
    count = len(one) + len(other) - 1
    data = (first * second).to_bytes(count * size, "little")
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, count * size, size)]


def tidy(losses: Losses, work: Work) -> Losses:
    """Remove tails of probability at most `work.spare`.

    The upper tail becomes an infinite loss, and the lower tail moves up to the first loss that is
    kept.
    """
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


# parts whose losses this module can compute
_Spread: TypeAlias = "Laplace | RandomizedResponse | int"

# limits the number of compositions; one between two different grids takes much longer
_MOST_WORK = 2000


@lru_cache(maxsize=1 << 8)
def losses_epsilon(parts: frozenset[tuple[curves.Part, int]], delta: Exact) -> int | None:
    """An epsilon for all parts from their losses, in units of 10^-10.

    None if a part has no known distribution of losses, if there are too many parts, or if no finite
    epsilon suffices.
    """
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
    # At most delta / 2^20 may be lost by moving tails, and as much again by rounding.
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
    """The losses of a part that is composed with itself `times` times."""
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
    """The losses of a plain epsilon e: e and -e, where the loss e is e^e times as likely.

    No mechanism with this pure epsilon distinguishes its neighbours better.
    """
    base, top = -((nano << BITS) // 10**9), -(-(nano << BITS) // 10**9)
    low, high = fall(top)[0], fall(-base)[1]
    masses = [-(-(high << BITS) // (ONE + high)), -(-ONE * ONE // (ONE + low))]
    return Losses(base=base, step=top - base or 1, masses=[work.rounded(mass) for mass in masses])


def _response(part: RandomizedResponse, work: Work) -> Losses:
    """The losses of randomised response.

    The loss is ln(p/q) if the answer is the one input, -ln(p/q) if it is the other, and 0
    otherwise.
    """
    one: int = 10**part.probability.places * (part.choices - 1)
    truth = part.probability.numerator * (part.choices - 1)
    other = 10**part.probability.places - part.probability.numerator
    great, least = max(truth, other), min(truth, other)
    low, high = log_enclosure(great, least, BITS)
    rest = (part.choices - 2) * other
    masses = [-(-(mass << work.bits) // one) for mass in (least, rest, great)]
    return Losses(base=-low, step=max(high, 1), masses=masses)


def _laplace(part: Laplace, work: Work) -> Losses:
    """The losses of the Laplace mechanism with t = sensitivity/scale.

    The loss is t - 2x for an exponential x in 0 .. t; it is t for x < 0 and -t for x > t.
    Splitting it between the points t - k h with h = t/n gives the losses of geometric noise.  With
    g = e^(-h/2), t has probability 1/(1+g), the points between have g^k (1-g)/(1+g), and -t has
    g^(2n)/(1+g).
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
    """The losses of a Gaussian of shift mu: mu^2/2 + mu x for a normal x.

    The share of a cell that goes to its upper end is greatest if all of the cell is at its mean.
    """
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
    """The least e with delta(e) <= delta in units of 10^-10; None if no finite e suffices.

    Let A be the probability of losses above a grid point L, and S the sum of their probabilities
    times e^(L - loss).  Between L and the next point delta(e) = lost + A - e^(e-L) S.
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


# Composition and conversion.

PLACES = 10
PURE, GDP, PLD = "pure", "gdp", "pld"
MOST_SUBSAMPLED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A sum of curves.

    Attributes:
        curve: the curve of the sum; all numbers are in units of 10^-40 and at least the true ones.
        atoms: how many atoms it has; an atom counts `times` times.
        parts: how often each part is in the sum; None stands for an unknown part.
    """

    curve: curves.Curve = field(
        default_factory=lambda: curves.Curve(rdp=(0,) * len(curves.ORDERS), pure=0)
    )
    atoms: int = 0
    parts: Mapping[curves.Part | None, int] = field(default_factory=dict)

    def plus(self, other: curves.Curve, atoms: int = 0) -> Composed:
        """The sum with one more curve; it ends at the last order that both curves have.

        Args:
            atoms: how many atoms the other curve counts for.

        Raises:
            Rejected: E104 the parts use two relations of neighbours; E103 there are too many
                different subsampled Gaussians.
        """
        mine, pure = self.curve, None
        if mine.pure is not None and other.pure is not None:
            pure = mine.pure + other.pure
        rdp = tuple([one + more for one, more in zip(mine.rdp, other.rdp, strict=False)])
        parts = dict(self.parts)
        if other.part != 0:
            parts[other.part] = parts.get(other.part, 0) + other.times
        sampled = sum(isinstance(part, SubsampledGaussian) for part in parts)
        one = "one relation of neighbours: a record is replaced, or it is added or removed"
        ensure(sampled in (0, len(parts)), Code.NEIGHBOURS, "atoms", one, "both")
        most = f"at most {MOST_SUBSAMPLED} different subsampled ones"
        ensure(sampled <= MOST_SUBSAMPLED, Code.MANY_ATOMS, "atoms", most, sampled)
        return Composed(
            curve=curves.Curve(rdp=rdp, pure=pure), atoms=self.atoms + atoms, parts=parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonBound:
    """The epsilon of a total at a delta, and how it was found.

    Attributes:
        epsilon: in units of 10^-10, rounded up.
        alpha: the order that gave it, as canonical text; or ``pure``, ``gdp`` or ``pld``.
        rdp: the value of the total's curve at that order, in units of 10^-10, rounded up; for the
            other methods the epsilon.
    """

    epsilon: int
    alpha: str
    rdp: int


def total_of(atoms: Iterable[Atom]) -> Composed:
    """The sum of the curves of some atoms."""
    total = Composed()
    for atom in atoms:
        total = total.plus(curves.curve_of(atom), atom.times)
    return total


def stated(total: Composed, delta: Exact) -> EpsilonBound:
    """The least epsilon that the total has at a delta, where 0 < delta < 1.

    If several methods give the least, pure summation comes first, then the orders from the lowest
    one up, then losses.
    """
    found, at = by_orders(total, delta)
    parts = {part: times for part, times in total.parts.items() if part is not None}
    if not found.epsilon or len(parts) < len(total.parts):
        return found
    sampled = [(part, n) for part, n in parts.items() if isinstance(part, SubsampledGaussian)]
    if sampled:
        return _between(sampled, delta, at, found)
    exact = all(isinstance(part, Gaussian) for part in parts)
    if exact:
        epsilon: int | None = gaussian_epsilon(gaussian_shift(parts), delta)
    else:
        epsilon = losses_epsilon(frozenset(parts.items()), delta)
    if epsilon is None or epsilon >= found.epsilon:
        return found
    return EpsilonBound(epsilon=epsilon, alpha=GDP if exact else PLD, rdp=epsilon)


def by_orders(total: Composed, delta: Exact) -> tuple[EpsilonBound, int]:
    """The least epsilon by pure summation and by the orders, and the index of the best order."""
    pure, rdp = total.curve.pure, total.curve.rdp
    best, at = _least(rdp, _penalties(delta))
    if pure is not None and pure <= best:
        return EpsilonBound(epsilon=tenth(pure), alpha=PURE, rdp=tenth(pure)), at
    return EpsilonBound(epsilon=tenth(best), alpha=curves.ORDERS[at].text, rdp=tenth(rdp[at])), at


def _between(
    sampled: Sequence[tuple[SubsampledGaussian, int]], delta: Exact, at: int, found: EpsilonBound
) -> EpsilonBound:
    """Search for a better integer order between two neighbours in the table of orders.

    A curve of subsampled Gaussians may rise steeply between them.  Wherever the search ends, the
    result is a bound.
    """
    if curves.ORDERS[at].places or not 0 < at < len(curves.ORDERS) - 1:
        return found

    def of(order: int) -> tuple[int, int]:
        rdp = sum(curves.sampled_at(part, order) * times for part, times in sampled)
        return rdp + _penalty(Exact(order, 0), _surplus(delta)), rdp

    low, high = (
        curves.ORDERS[i].numerator // 10 ** curves.ORDERS[i].places for i in (at - 1, at + 1)
    )
    low = max(low, 2)
    while high > low + 1:
        middle = (low + high) // 2
        if of(middle) <= of(middle + 1):
            high = middle
        else:
            low = middle + 1
    order = min((low, high), key=of)
    epsilon, rdp = of(order)
    if tenth(epsilon) >= found.epsilon:
        return found
    return EpsilonBound(epsilon=max(0, tenth(epsilon)), alpha=str(order), rdp=tenth(rdp))


def points_of(total: Composed) -> list[tuple[str, str]]:
    """The curve as texts (alpha, epsilon), with epsilon rounded up to ten places."""
    known = zip(curves.ORDERS, total.curve.rdp, strict=False)
    return [(alpha.text, epsilon_text(tenth(epsilon))) for alpha, epsilon in known]


def tenth(units: int) -> int:
    """Units of 10^-40 as units of 10^-10, rounded up."""
    scale: int = 10**PLACES
    return -(-units * scale // curves.UNITS)


def epsilon_text(number: int) -> str:
    """Units of 10^-10 as a decimal with exactly ten fractional digits."""
    whole, part = divmod(number, 10**PLACES)
    return f"{whole}.{part:0{PLACES}d}"


def _least(rdp: Sequence[int], penalties: Sequence[int]) -> tuple[int, int]:
    """The least sum of an rdp and its penalty, at least 0, and the first index that has it."""
    sums = [one + other for one, other in zip(rdp, penalties, strict=False)]
    least = min(sums)
    if least <= 0:
        return 0, next(i for i, value in enumerate(sums) if value <= 0)
    return least, sums.index(least)


@lru_cache(maxsize=64)
def _penalties(delta: Exact) -> Sequence[int]:
    """ln((a-1)/a) - (ln delta + ln a)/(a-1) at every order, rounded up."""
    return [_penalty(alpha, _surplus(delta)) for alpha in curves.ORDERS]


def _surplus(delta: Exact) -> int:
    one: int = 10**delta.places
    return log_enclosure(one, delta.numerator, curves.WORK_BITS)[1]


def _penalty(alpha: Exact, surplus: int) -> int:
    unit: int = 10**alpha.places
    above = alpha.numerator - unit
    share = log_enclosure(above, alpha.numerator, curves.WORK_BITS)[1]
    log_alpha = log_enclosure(alpha.numerator, unit, curves.WORK_BITS)[0]
    return curves.from_bits(share) + curves.from_bits(-(-(surplus - log_alpha) * unit // above))
