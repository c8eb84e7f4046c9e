"""T_K: the logarithm of the total weight of all plans of more than K calls, rounded up.

Text: docs/spec/race.md, section 13.  The weight of a plan is e^(-beta cost).  Paths are followed
forward from the root; paths of the same length to the same state are followed together.  A path
ends when it is known whether its plans are longer than K.  It is then dropped, or multiplied by the
weight below its state.  So no plan is listed.
Cost: two passes over the edges and `steps` more edges (:mod:`tcc_runtime.artifact.cuts`), some
microseconds each.  If 160 bits leave the rounding open, the passes are repeated at 640 and at 4096
bits.  That takes a plan that is nearly all of the sum, or a chance of one in 2^60.
Error: all numbers are positive.  A path of d calls takes d powers and d + 1 products, and no more
sums than there are in all.  Each operation adds the units given at :class:`Scaled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import gmpy2

from tcc_certs.formats.ledger import Q64_MAX, Q64_MIN
from tcc_runtime.artifact.cuts import Cut, cut_of, fewest_calls
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import Undecided
from tcc_runtime.numbers.reals import FIRST_BITS, LAST_BITS, Real, Reals, context_of

# Positive reals of any size: an MPFR mantissa and a separate binary exponent. The exponent of
# e^(-beta cost) may have a hundred bits, and MPFR allows thirty. So the exponents here are
# integers, which have no limit. A sum or a product is one or two MPFR operations and one integer
# operation. Error analysis, in the units of :mod:`tcc_runtime.numbers`. A product rounds once,
# shifts are exact and a sum rounds once. If the exponents of two summands differ by more than the
# precision and 64 bits, the smaller summand is omitted. The caller keeps mantissas between 2^-32
# and 2^32 by :meth:`Scaled.settled`, so the omitted summand is less than a unit of the greater.

Number: TypeAlias = "tuple[Real, int]"  # mantissa * 2^exponent; that of 0 has any exponent
POWER_UNITS: Final = 3
_SPARE = 64


class Scaled:
    """Arithmetic at one precision; `bits` is the precision of the mantissas."""

    __slots__ = (
        "_add",
        "_bits",
        "_doubled",
        "_exp",
        "_far",
        "_halved",
        "_mul",
        "_reals",
        "one",
        "zero",
    )

    def __init__(self, bits: int) -> None:
        context = context_of(bits)
        self._reals = Reals(bits)
        self._bits = bits
        self._far = bits + _SPARE
        self._add, self._mul = context.add, context.mul
        self._exp, self._halved, self._doubled = context.exp, context.div_2exp, context.mul_2exp
        self.one: Number = (self._reals.scaled(1, 0), 0)
        self.zero: Number = (self._reals.scaled(0, 0), 0)

    def power(self, numerator: int, denominator: int) -> Number:
        """Return e^(numerator / denominator), within `POWER_UNITS`; the mantissa lies in 1 .. 2.

        With y = k ln 2 + r, e^y = e^r 2^k. y and ln 2 get enough places that the integer r is off
        by less than 2^-(p+60).  This costs less than a unit.  The rounding of r to p bits costs
        another unit, as r < 1, and the power a third.
        """
        size = max(0, numerator.bit_length() - denominator.bit_length() + 1)
        places = self._bits + _SPARE + size
        two = _log_two(places)
        whole, rest = divmod((numerator << places) // denominator, two)
        return self._exp(self._reals.scaled(rest, places)), whole

    def product(self, left: Number, right: Number) -> Number:
        """Return the product; its error is the sum of both errors and 1 unit."""
        return self._mul(left[0], right[0]), left[1] + right[1]

    def sum(self, left: Number, right: Number) -> Number:
        """Return the sum; its error is the larger of both errors and 1 unit."""
        apart = left[1] - right[1]
        if apart < 0:
            left, right, apart = right, left, -apart
        if not left[0]:
            return right
        if apart > self._far or not right[0]:
            return left
        return self._add(left[0], self._halved(right[0], apart)), left[1]

    def settled(self, number: Number) -> Number:
        """Return the same number with a mantissa between 1/2 and 1; exact."""
        mantissa, exponent = number
        if not mantissa:
            return number
        lift = gmpy2.get_exp(mantissa)
        if lift < 0:
            return self._doubled(mantissa, -lift), exponent + lift
        return self._halved(mantissa, lift), exponent + lift

    def log_ceilings(self, number: Number, units: int) -> tuple[int, int]:
        """Return both ends of an enclosure of ln `number`, as Q64.64, rounded up.

        Args:
            units: the error of `number`.

        Raises:
            Undecided: the number is 0, which has no logarithm; or an error of `UNDECIDED`.
        """
        mantissa, exponent = self.settled(number)
        shift, extra = self._reals.shift, exponent.bit_length() + 2
        log = self._reals.log(mantissa)
        error = self._reals.log_error(log, units) + 2
        return self._reals.ceilings(log + (exponent * _log_two(shift + extra) >> extra), error)


def _log_two(places: int) -> int:
    """Return ln 2 with `places` fractional bits, off by less than two last places."""
    context = context_of(places + 2)
    return int(context.mul_2exp(context.log(gmpy2.mpfr(2)), places))


_NANO_PLACES = 9
_PRECISIONS = (FIRST_BITS, 4 * FIRST_BITS, LAST_BITS)
_OFTEN = 1023  # the time is checked once in 1,024 edges


class Abandoned(Exception):
    """The caller no longer needs the tail."""


def tail_lse(
    artifact: Artifact,
    most: int,
    over: Callable[[], bool] | None = None,
    members: tuple[int, ...] | None = None,
) -> int:
    """Return T_K for K = `most`, which is below the root's rank, and store it with the artifact.

    T_K is the least Q64.64 number that is not below ln of the sum of e^(-beta cost) over the plans
    of more than `most` calls.

    Args:
        over: called again and again during the work; True ends the work.
        members: the states that the run begins at; None: the root of the artifact.

    Raises:
        Abandoned: `over` returned True.
        Undecided, or another of `UNDECIDED`: there is no such number.  A verified artifact never
            raises it.
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
    # The sum of several powers of e with rational exponents has an irrational logarithm. So its
    # rounding stays open only if one power is nearly the whole sum. The sum is above that power, so
    # the greater end is right.
    least, greatest = 0, 1
    for bits in _PRECISIONS:
        if least != greatest:
            least, greatest = _Tail(artifact, cut, members, bits, over).ceilings()
    return greatest


def _score_unit(artifact: Artifact) -> tuple[int, int]:
    """Return beta * cost as a fraction: multiply a cost in nano-units by the first, divide by the
    second.
    """
    beta, places = artifact.manifest.beta
    return beta, 10 ** (places + _NANO_PLACES)


def _single_cost(artifact: Artifact, most: int, members: tuple[int, ...]) -> int | None:
    """Return the cost of the only plan of more than `most` calls; None if several exist.

    From every state a plan leads on that has as many calls as the state's rank.  So a plan is the
    only one if no other edge or end on its way can still become long enough.
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
        """Return both ends of an enclosure, rounded up; raises as :meth:`_weight` does."""
        total = self._longer(self._below())
        sizes = self._artifact.manifest
        paths = (POWER_UNITS + 1) * (self._artifact.rank(self._artifact.root) + 1)
        sums = self._cut.steps + 2 * (sizes.edges + sizes.states)
        return self._numbers.log_ceilings(total, paths + sums)

    def _weight(self, call: int) -> Number:
        """Return e^(-beta cost) of a call; called at every step, so it also checks the time.

        Raises:
            Abandoned: `over` returned True.
        """
        self._steps += 1
        if self._over is not None and not self._steps & _OFTEN and self._over():
            raise Abandoned
        cost = self._artifact.cost_low[call]
        found = self._by_cost.get(cost)
        if found is None:
            beta, unit = _score_unit(self._artifact)
            found = self._by_cost[cost] = self._numbers.power(-beta * cost, unit)
        return found

    def _below(self) -> list[Number]:
        """Return for each state the total weight of the plans below it."""
        artifact, numbers, weight = self._artifact, self._numbers, self._weight
        found: list[Number] = []
        for q in range(artifact.manifest.states):
            total = numbers.one if artifact.accepts(q) else numbers.zero
            for call, target in artifact.edges(q):
                total = numbers.sum(total, numbers.product(weight(call), found[target]))
            found.append(numbers.settled(total))
        return found

    def _longer(self, below: list[Number]) -> Number:
        """Return the total weight of the plans of more than K calls."""
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
