"""Distributions of losses on grids, and what two of them come to.

Normative text: docs/spec/privacy.md, section 5; why each step is sound is said in :mod:`.losses`.
Cost: a product of two integers of 200,000 bits each time two are composed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.privacy.gaussians import BITS, ONE, Enclosure
from tcc_certs.race.numbers import exp_enclosure

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
