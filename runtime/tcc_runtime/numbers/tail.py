"""T_K: the logarithm of what all plans of more than K calls weigh, rounded up.

Text: docs/spec/race.md, section 13.  The weight of a plan is e^(-beta cost).  Paths are counted
forward K + 1 calls from the root by state, then met by what lies below each state; so no plan is
listed.  Cost: K + 1 passes over the edges and one more.

Error: all numbers are positive and every operation rounds once, so a result that k operations went
into is off by k units at most; a weight has 1 + 3 beta abs(cost) of them.
"""

from __future__ import annotations

from tcc_certs.fixed import Q64_MAX
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.numbers.reals import FIRST_BITS, LAST_BITS, Real, Reals

_NANO_PLACES = 9


def tail_lse(artifact: Artifact, most: int) -> int:
    """The least Q64.64 number that is no less than ln of the sum of e^(-beta cost) over the plans
    of more than `most` calls; `most` is below the root's rank.
    """
    single = _single_cost(artifact, most)
    if single is not None:
        beta, places = artifact.manifest.beta
        unit: int = 10 ** (places + _NANO_PLACES)
        return min(Q64_MAX, -((beta * single << 64) // unit))
    # The sum of several powers of e with rational exponents has an irrational logarithm, so only
    # one that is all but a single power keeps open whether it is above that one's; it is.
    bits = FIRST_BITS
    while True:
        least, greatest = _candidates(artifact, most, Reals(bits))
        if least == greatest or bits >= LAST_BITS:
            return min(Q64_MAX, greatest)
        bits = min(2 * bits, LAST_BITS)


def _candidates(artifact: Artifact, most: int, reals: Reals) -> tuple[int, int]:
    """The roundings up of both ends of an enclosure."""
    weights = _weights(artifact, reals)
    ahead = _level(artifact, most, weights, reals)
    below = _below(artifact, weights, reals)
    total = reals.scaled(0, 0)
    for q in sorted(ahead):
        total = reals.add(total, reals.mul(ahead[q], below[q]))
    log = reals.log(total)
    return reals.ceilings(log, reals.log_error(log, _units(artifact, most)))


def _units(artifact: Artifact, most: int) -> int:
    """A bound of the error of the sum, in units."""
    beta, places = artifact.manifest.beta
    unit: int = 10 ** (places + _NANO_PLACES)
    steepest = max((abs(cost) for cost in artifact.cost_low), default=0)
    each = 4 - 3 * (-beta * steepest // unit)
    longest = artifact.rank(artifact.root)
    adds = artifact.manifest.edges + artifact.manifest.states
    return longest * each + adds * (most + 3)


def _weights(artifact: Artifact, reals: Reals) -> list[Real]:
    beta, places = artifact.manifest.beta
    unit: int = 10 ** (places + _NANO_PLACES)
    made: dict[int, Real] = {}
    for cost in artifact.cost_low:
        if cost not in made:
            made[cost] = reals.power(-beta * cost, unit)
    return [made[cost] for cost in artifact.cost_low]


def _level(artifact: Artifact, most: int, weights: list[Real], reals: Reals) -> dict[int, Real]:
    """What the paths of `most` + 1 calls to each state weigh together."""
    level: dict[int, Real] = {artifact.root: reals.scaled(1, 0)}
    for _ in range(most + 1):
        after: dict[int, Real] = {}
        for q, weight in level.items():
            for call, target in artifact.edges(q):
                step = reals.mul(weight, weights[call])
                after[target] = reals.add(after[target], step) if target in after else step
        level = after
    return level


def _below(artifact: Artifact, weights: list[Real], reals: Reals) -> list[Real]:
    """What the plans below each state weigh together."""
    found: list[Real] = []
    for q in range(artifact.manifest.states):
        total = reals.scaled(1 if artifact.accepts(q) else 0, 0)
        for call, target in artifact.edges(q):
            total = reals.add(total, reals.mul(weights[call], found[target]))
        found.append(total)
    return found


def _single_cost(artifact: Artifact, most: int) -> int | None:
    """The cost of the only plan of more than `most` calls; None where there are several."""
    level = {artifact.root: (1, 0)}
    for _ in range(most + 1):
        after: dict[int, tuple[int, int]] = {}
        for q, (ways, cost) in level.items():
            for call, target in artifact.edges(q):
                before = after.get(target, (0, 0))[0]
                after[target] = (min(2, ways + before), cost + artifact.cost_low[call])
        level = after
    ways = sum(count * artifact.plans(q) for q, (count, _) in level.items())
    if ways != 1:
        return None
    return next(cost + artifact.cost_to_go(q) for q, (_, cost) in level.items())
