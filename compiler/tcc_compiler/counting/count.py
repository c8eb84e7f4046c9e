"""Suffix counts and bounds of every state: plans, race counts, least cost and best residual to go.

The paper's SuffixCountDP, exact and of any size. Specification: docs/spec/artifact.md, C3 to C5;
the weights, docs/spec/race.md, section 3.
Cost: one logarithm and one exponential for each distinct cost; the weighted sums of
:mod:`tcc_compiler.counting.sums`; one pass over the edges for each bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tcc_certs.core.model import Core
from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.race.weights import Beta, call_residual, call_weight, fraction_bits
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Ints, Table, best_to_go, exact_array
from tcc_compiler.counting.sums import Limbs, integer, rounded_sums, weighted_sums
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard, Refused


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
class SuffixCounts:
    """Per state: the number of plans N, the race count m.

    Attributes:
        plans: [limbs, states]; None for a gate.
        race: [limbs, states]; None where race counts are rounded, and for a gate.
        rounded: [states] mantissas and [states] exponents of m, for a gate of N; None where counts
            are exact.
        round_bits: the bits of the mantissas of m, None where race counts are exact.
        total: the number of plans of the start; for a gate an upper bound.
    """

    plans: Limbs | None
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
) -> SuffixCounts:
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
    return SuffixCounts(
        plans=plans,
        race=race,
        rounded=rounded,
        round_bits=round_bits,
        total=integer(plans, table.start),
    )


def count_for_gate(table: Table, letters: Letters, guard: Guard) -> SuffixCounts:
    """Upper bounds of the number of plans of every state; `table` is ranked."""
    sizes = [len(group) for group in letters.calls]
    mantissa, exponent = rounded_sums(table, sizes, 0, MAX_ROUND_BITS, guard)
    return SuffixCounts(
        plans=None,
        race=None,
        rounded=(mantissa, exponent),
        round_bits=None,
        total=mantissa[table.start] << exponent[table.start],
    )


def check_bits(counts: SuffixCounts, limit: int | None) -> None:
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


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@frozen(eq=False)
class Bounds:
    """Per state: h in nano-units and g in Q31.32; `cost_max` is the greatest cost_high."""

    cost_to_go: Ints
    residual_to_go: Ints
    cost_max: int


def bound(core: Core, table: Table, letters: Letters, weights: Weights, guard: Guard) -> Bounds:
    """The bounds of every state.

    Raises:
        Refused: TCC405 where a bound leaves 64 bits.
    """
    low, best = [0] * len(letters.calls), [0] * len(letters.calls)
    for letter, group in enumerate(letters.calls):
        if group[0] in weights.weight:
            low[letter] = min(core.calls[call].cost_low for call in group)
            best[letter] = max(weights.residual[call] for call in group)
    steps = len(table.levels)
    cost = best_to_go(table, exact_array(low, steps)[table.letter], np.minimum, guard)
    residual = best_to_go(table, exact_array(best, steps)[table.letter], np.maximum, guard)
    # The error names the tool of the call with the largest amount of that kind.
    costs = {call: core.calls[call].cost_low for call in weights.weight}
    _check_range("the least cost to go", (cost.min(), cost.max()), _tool(core, costs))
    place = _tool(core, weights.residual)
    _check_range("the best residual to go", (residual.min(), residual.max()), place)
    _check_range("the residual of a call", weights.residual.values(), place)
    return Bounds(
        cost_to_go=cost.astype(np.int64),
        residual_to_go=residual.astype(np.int64),
        cost_max=max((core.calls[call].cost_high for call in weights.weight), default=0),
    )


def _tool(core: Core, amounts: Mapping[int, int]) -> str | None:
    """The place of the tool with the call of the largest amount."""
    if not amounts:
        return None
    worst = max(sorted(amounts), key=lambda call: abs(amounts[call]))
    return f"tool {core.tools[core.calls[worst].tool].name}"


def _check_range(what: str, values: Iterable[int], place: str | None) -> None:
    worst = max(map(int, values), key=abs, default=0)
    if not _LEAST <= worst <= _MOST:
        raise Refused(
            "TCC405",
            f"{what} leaves 64 bits: {worst}",
            hint="make the costs or --beta smaller",
            place=place,
        )
