"""The number of plans and the race count of every state: suffix counts, exact, of any size.

The paper's SuffixCountDP.  Specification: docs/spec/artifact.md, C3 and C4; the weights,
docs/spec/race.md, section 3.
Cost: one logarithm and one exponential for each distinct cost; then that of
:mod:`tcc_compiler.counting.sums`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcc_certs.core.model import Core
from tcc_certs.race.weights import Beta, call_residual, call_weight, fraction_bits
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Table
from tcc_compiler.counting.digits import Limbs
from tcc_compiler.counting.sums import integer, rounded_sums, weighted_sums
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused


@frozen
class Weights:
    """The weights of the calls that stand on an edge.

    Attributes:
        fraction_bits: F.
        weight: call -> W(a).
        residual: call -> r(a), Q31.32.
    """

    fraction_bits: int
    weight: dict[int, int]
    residual: dict[int, int]


@frozen(eq=False)
class Counts:
    """Per state: the number of plans N, the race count m.

    Attributes:
        plans: [limbs, states].
        race: [limbs, states]; None where race counts are rounded.
        rounded: [states] mantissas and [states] exponents of m; None where m is exact.
        round_bits: the bits of the mantissas, None where race counts are exact.
        total: the number of plans of the start.
    """

    plans: Limbs
    race: Limbs | None
    rounded: tuple[Sequence[int], Sequence[int]] | None
    round_bits: int | None
    total: int


def weigh(core: Core, calls: Sequence[int], beta: Beta, tilt: int, guard: Guard) -> Weights:
    """The weights of `calls`, which stand on edges; computed once for each distinct cost."""
    costs = sorted({core.calls[call].cost_low for call in calls})
    bits = fraction_bits(beta, max(costs, default=0), tilt)
    weights, residuals = {}, {}
    for cost in costs:
        guard.tick(64)
        weights[cost] = call_weight(beta, cost, bits, tilt)
        residuals[cost] = call_residual(beta, cost, weights[cost], bits)
    lows = {call: core.calls[call].cost_low for call in calls}
    return Weights(
        fraction_bits=bits,
        weight={call: weights[low] for call, low in lows.items()},
        residual={call: residuals[low] for call, low in lows.items()},
    )


def used_calls(table: Table, letters: Letters) -> list[int]:
    """The calls that stand on at least one edge, increasing."""
    used = np.flatnonzero(np.bincount(table.letter)).tolist()
    return sorted(call for letter in used for call in letters.calls[letter])


def count(
    table: Table, letters: Letters, weights: Weights, guard: Guard, round_bits: int | None
) -> Counts:
    """Number of plans and race count of every state; `table` is ranked.

    Args:
        round_bits: round race counts up to so many bits, state by state; None keeps them exact.

    Raises:
        Refused: TCC407 where the counts take more than a gigabyte.
    """
    sizes = [len(group) for group in letters.calls]
    totals = [sum(weights.weight.get(call, 0) for call in group) for group in letters.calls]
    bits = weights.fraction_bits
    plans = weighted_sums(table, sizes, 0, guard)
    race = rounded = None
    if round_bits is None:
        race = weighted_sums(table, totals, bits, guard)
    else:
        rounded = rounded_sums(table, totals, bits, round_bits, guard)
    return Counts(
        plans=plans,
        race=race,
        rounded=rounded,
        round_bits=round_bits,
        total=integer(plans, table.start),
    )


def check_bits(counts: Counts, limit: int | None) -> None:
    """Refuse a number of plans of more than `limit` bits.

    Raises:
        Refused: TCC407.
    """
    bits = counts.total.bit_length()
    if limit is not None and bits > limit:
        raise Refused(
            "TCC407",
            f"the number of plans takes {bits} bits, more than {limit}",
            hint="raise --count-bits, or add a limit",
        )
