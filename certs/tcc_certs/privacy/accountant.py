"""Composition and conversion: what some atoms come to together, as an epsilon at a delta.

Normative text: docs/spec/privacy.md, sections 3 to 5.  Curves add up order by order, pure epsilons
by themselves; the epsilon is the least that any order gives by Canonne, Kamath and Steinke's bound,

    epsilon(a) + ln((a-1)/a) - (ln delta + ln a)/(a-1), but no less than 0,

the sum of the pure epsilons where that is no greater, or, by the rule PLD, what the losses of all
parts come to (:mod:`.losses`) where that is less.  Mironov's epsilon(a) + ln(1/delta)/(a-1) is
never the least, as ln((a-1)/a) - ln(a)/(a-1) < 0 at every order.
Source: Canonne, Kamath and Steinke, The discrete Gaussian (2020), Proposition 12; Mironov (2017).
Cost: a sum and a minimum over the orders; by the rule PLD that of :mod:`.losses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tcc_certs.core.atoms import Atom, Exact, Gaussian, SubsampledGaussian
from tcc_certs.errors import Code, ensure
from tcc_certs.privacy.accountant import losses_epsilon
from tcc_certs.privacy.curves import Curve, Part, curve_of, from_bits
from tcc_certs.privacy.gaussians import gaussian_epsilon, gaussian_shift
from tcc_certs.privacy.moments import ORDERS, UNITS, WORK_BITS, sampled_at
from tcc_certs.race.numbers import log_enclosure

PLACES = 10
PURE, GDP, PLD = "pure", "gdp", "pld"
RENYI = "renyi"  # the rule of ledgers that name none
MOST_SUBSAMPLED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum of curves.

    Attributes:
        curve: of the whole; all numbers in units of 10^-40, never below the truth.
        atoms: how many atoms are in it, each with its `times`.
        parts: what it is the sum of, and how often each is in it.
    """

    curve: Curve = field(default_factory=lambda: Curve(rdp=(0,) * len(ORDERS), pure=0))
    atoms: int = 0
    parts: Mapping[Part | None, int] = field(default_factory=dict)

    def plus(self, other: Curve, atoms: int = 0) -> Total:
        """The sum; its curve ends where the shorter of both does.

        Raises:
            Rejected: E104 they are about different neighbours; E103 too many atoms differ.
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
        return Total(curve=Curve(rdp=rdp, pure=pure), atoms=self.atoms + atoms, parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is said of a total at a delta.

    Attributes:
        epsilon: in units of 10^-10, rounded up.
        alpha: the order that gave it, canonical text; or ``pure``, ``gdp`` or ``pld``.
        rdp: the total at that order, in units of 10^-10, rounded up; of the others the epsilon.
    """

    epsilon: int
    alpha: str
    rdp: int


def total_of(atoms: Iterable[Atom]) -> Total:
    """What some atoms come to."""
    total = Total()
    for atom in atoms:
        total = total.plus(curve_of(atom), atom.times)
    return total


def stated(total: Total, delta: Exact, rule: str = PLD) -> Statement:
    """The least epsilon that the total gives at a delta, 0 < delta < 1.

    The first of equal orders is taken; plain summation before all of them, losses after.
    """
    pure, rdp = total.curve.pure, total.curve.rdp
    best, at = _least(rdp, _penalties(delta))
    found = Statement(epsilon=tenth(best), alpha=ORDERS[at].text, rdp=tenth(rdp[at]))
    if pure is not None and pure <= best:
        found = Statement(epsilon=tenth(pure), alpha=PURE, rdp=tenth(pure))
    parts = {part: times for part, times in total.parts.items() if part is not None}
    if rule == RENYI or not found.epsilon or len(parts) < len(total.parts):
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
    return Statement(epsilon=epsilon, alpha=GDP if exact else PLD, rdp=epsilon)


def _between(
    sampled: Sequence[tuple[SubsampledGaussian, int]], delta: Exact, at: int, found: Statement
) -> Statement:
    """The least of the integer orders around a great one, where a curve may rise at once.

    Wherever the search for it ends, what is found there holds.
    """
    if ORDERS[at].places or not 0 < at < len(ORDERS) - 1:
        return found

    def of(order: int) -> tuple[int, int]:
        rdp = sum(sampled_at(part, order) * times for part, times in sampled)
        return rdp + _penalty(Exact(order, 0), _surplus(delta)), rdp

    low, high = (ORDERS[i].numerator // 10 ** ORDERS[i].places for i in (at - 1, at + 1))
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
    return Statement(epsilon=max(0, tenth(epsilon)), alpha=str(order), rdp=tenth(rdp))


def points_of(total: Total) -> list[tuple[str, str]]:
    """The curve as (alpha, epsilon), both texts, epsilon rounded up to ten places."""
    known = zip(ORDERS, total.curve.rdp, strict=False)
    return [(alpha.text, epsilon_text(tenth(epsilon))) for alpha, epsilon in known]


def tenth(units: int) -> int:
    """Units of 10^-40 as units of 10^-10, rounded up."""
    scale: int = 10**PLACES
    return -(-units * scale // UNITS)


def epsilon_text(number: int) -> str:
    """Units of 10^-10 as a text with exactly ten fractional digits."""
    whole, part = divmod(number, 10**PLACES)
    return f"{whole}.{part:0{PLACES}d}"


def _least(rdp: Sequence[int], penalties: Sequence[int]) -> tuple[int, int]:
    """The least sum of both, at least 0, and the first place where it is."""
    sums = [one + other for one, other in zip(rdp, penalties, strict=False)]
    least = min(sums)
    if least <= 0:
        return 0, next(i for i, value in enumerate(sums) if value <= 0)
    return least, sums.index(least)


@lru_cache(maxsize=64)
def _penalties(delta: Exact) -> Sequence[int]:
    """ln((a-1)/a) - (ln delta + ln a)/(a-1) at every order, rounded up."""
    return [_penalty(alpha, _surplus(delta)) for alpha in ORDERS]


def _surplus(delta: Exact) -> int:
    one: int = 10**delta.places
    return log_enclosure(one, delta.numerator, WORK_BITS)[1]


def _penalty(alpha: Exact, surplus: int) -> int:
    unit: int = 10**alpha.places
    above = alpha.numerator - unit
    share = log_enclosure(above, alpha.numerator, WORK_BITS)[1]
    log_alpha = log_enclosure(alpha.numerator, unit, WORK_BITS)[0]
    return from_bits(share) + from_bits(-(-(surplus - log_alpha) * unit // above))
