"""T_K: the logarithm of what all plans of more than K calls weigh, rounded up.

Text: docs/spec/race.md, section 13.  The weight of a plan is e^(-beta cost).  Paths are followed
forward from the root, those of equally many calls to one state together, as long as it is open
whether their plans are longer than K; then they are dropped, or meet what lies below their state.
So no plan is listed.
Cost: two passes over the edges and `steps` more edges (:mod:`tcc_runtime.artifact.cuts`), some
microseconds each; again at 640 and at 4096 bits where 160 leave the rounding open, for which one
plan has to be nearly all of the sum, or chance 2^60 to one.

Error: all numbers are positive.  A path of d calls takes d powers and d + 1 products, and no more
sums than there are in all; of each it gains the units that :mod:`tcc_runtime.numbers.scaled` says.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_certs.formats.fixed import Q64_MAX, Q64_MIN
from tcc_runtime.artifact.cuts import Cut, cut_of, fewest_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import Undecided
from tcc_runtime.numbers.reals import FIRST_BITS, LAST_BITS
from tcc_runtime.numbers.scaled import POWER_UNITS, Number, Scaled

_NANO_PLACES = 9
_PRECISIONS = (FIRST_BITS, 4 * FIRST_BITS, LAST_BITS)
_OFTEN = 1023  # of one edge more than that, one looks whether there is time left


class Ended(Exception):
    """Whoever wanted the tail wants it no longer."""


def tail_lse(
    artifact: Artifact,
    most: int,
    over: Callable[[], bool] | None = None,
    members: tuple[int, ...] | None = None,
) -> int:
    """The least Q64.64 number that is no less than ln of the sum of e^(-beta cost) over the plans
    of more than `most` calls; `most` is below the root's rank.  Kept with the artifact.

    Args:
        over: is asked time and again; True ends it.
        members: the states that the run begins at; None: the root of the artifact.

    Raises:
        Ended: `over` said so.
        Undecided, or another of `UNDECIDED`: no such number; of an artifact that a kernel has
            passed never.
        Rejected: an unverified artifact leads out of its ranges.
    """
    members = (artifact.root,) if members is None else members
    name = f"tail.{most}.{members}"
    kept = artifact.kept.get(name)
    if isinstance(kept, int):
        return kept
    found = _tail_lse(artifact, cut_of(artifact, most, members), members, over)
    if found > Q64_MAX:
        raise Undecided("the tail is beyond Q64.64")
    artifact.kept[name] = found = max(Q64_MIN, found)
    return found


def _tail_lse(
    artifact: Artifact, cut: Cut, members: tuple[int, ...], over: Callable[[], bool] | None
) -> int:
    single = _single_cost(artifact, cut.most, members)
    if single is not None:
        beta, unit = _score_unit(artifact)
        return -((beta * single << 64) // unit)
    # The sum of several powers of e with rational exponents has an irrational logarithm, so only
    # one that is all but a single power keeps open whether it is above that one's; it is.
    least, greatest = 0, 1
    for bits in _PRECISIONS:
        if least != greatest:
            least, greatest = _Tail(artifact, cut, members, bits, over).ceilings()
    return greatest


def _score_unit(artifact: Artifact) -> tuple[int, int]:
    """beta * cost as a fraction: what a cost in nano-units is multiplied and divided by."""
    beta, places = artifact.manifest.beta
    return beta, 10 ** (places + _NANO_PLACES)


def _single_cost(artifact: Artifact, most: int, members: tuple[int, ...]) -> int | None:
    """The cost of the only plan of more than `most` calls; None where there are several.

    From every state leads a plan of as many calls as its rank says, so one is the only one where
    it is never joined by another that can still become long enough.
    """
    begun = [q for q in members if artifact.rank(q) > most]
    if len(begun) != 1:
        return None
    (q,), calls, cost = begun, 0, 0
    while True:
        long = [step for step in artifact.edges(q) if calls + 1 + artifact.rank(step[1]) > most]
        stops = artifact.accepts(q) and calls > most
        if len(long) + stops != 1:
            return None
        if stops:
            return cost
        ((call, q),) = long
        calls, cost = calls + 1, cost + artifact.cost_low[call]


class _Tail:
    """The sum at one precision."""

    def __init__(
        self,
        artifact: Artifact,
        cut: Cut,
        members: tuple[int, ...],
        bits: int,
        over: Callable[[], bool] | None,
    ) -> None:
        self._artifact = artifact
        self._members = members
        self._cut = cut
        self._numbers = Scaled(bits)
        self._over = over
        self._steps = 0
        self._by_cost: dict[int, Number] = {}

    def ceilings(self) -> tuple[int, int]:
        """The roundings up of both ends of an enclosure; raises as :meth:`_weight`."""
        total = self._longer(self._below())
        sizes = self._artifact.manifest
        paths = (POWER_UNITS + 1) * (self._artifact.rank(self._artifact.root) + 1)
        sums = self._cut.steps + 2 * (sizes.edges + sizes.states)
        return self._numbers.log_ceilings(total, paths + sums)

    def _weight(self, call: int) -> Number:
        """e^(-beta cost) of a call; it is asked for at every step.

        Raises:
            Ended: there is no time left.
        """
        self._steps += 1
        if self._over is not None and not self._steps & _OFTEN and self._over():
            raise Ended
        cost = self._artifact.cost_low[call]
        found = self._by_cost.get(cost)
        if found is None:
            beta, unit = _score_unit(self._artifact)
            found = self._by_cost[cost] = self._numbers.power(-beta * cost, unit)
        return found

    def _below(self) -> list[Number]:
        """What the plans below each state weigh together."""
        artifact, numbers, weight = self._artifact, self._numbers, self._weight
        found: list[Number] = []
        for q in range(artifact.manifest.states):
            total = numbers.one if artifact.accepts(q) else numbers.zero
            for call, target in artifact.edges(q):
                total = numbers.sum(total, numbers.product(weight(call), found[target]))
            found.append(numbers.settled(total))
        return found

    def _longer(self, below: list[Number]) -> Number:
        """What the plans of more than K calls weigh together."""
        artifact, numbers, weight = self._artifact, self._numbers, self._weight
        most, rank, fewest = self._cut.most, artifact.automaton.rank, fewest_calls(artifact)
        total, level, calls = numbers.zero, dict.fromkeys(self._members, numbers.one), 0
        while level:
            calls += 1
            after: dict[int, Number] = {}
            for q, prefixes in level.items():
                for call, target in artifact.edges(q):
                    if calls + rank[target] <= most:
                        continue
                    step = numbers.product(prefixes, weight(call))
                    if calls + fewest[target] > most:
                        total = numbers.settled(
                            numbers.sum(total, numbers.product(step, below[target]))
                        )
                    elif target in after:
                        after[target] = numbers.sum(after[target], step)
                    else:
                        after[target] = step
            level = {q: numbers.settled(sum_) for q, sum_ in after.items()}
        return total
