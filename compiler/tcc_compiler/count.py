"""How many plans each state has, and its race count: suffix counts, exact, in big integers.

Specification: docs/spec/artifact.md, C3 and C4; the weights, docs/spec/race.md, section 3.
Cost: one logarithm and one exponential a distinct cost; a big-integer product an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.grammar import Core
from tcc_certs.weights import Beta, call_residual, call_weight, fraction_bits
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.machine import Machine
from tcc_compiler.refusal import Refused

_MOST_BITS = 1 << 33


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Per state: the rank d, the number of plans N, the race count m.

    Attributes:
        race: m; where counts are rounded, the mantissa of m.
        exponent: the exponents of m, in bits; all 0 where counts are exact.
        round_bits: the bits of the mantissas, None where counts are exact.
    """

    rank: list[int]
    plans: list[int]
    race: list[int]
    exponent: list[int]
    round_bits: int | None


def weigh(core: Core, calls: Sequence[int], beta: Beta, tilt: int, guard: Guard) -> Weights:
    """The weights of `calls`, which stand on edges; each distinct cost is worked out once."""
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


def used_calls(machine: Machine, letters: Letters) -> list[int]:
    """The calls that stand on at least one edge, increasing."""
    used = {letter for edges in machine.edges for letter, _ in edges}
    return sorted(call for letter in used for call in letters.calls[letter])


def count(
    machine: Machine,
    order: Sequence[int],
    letters: Letters,
    weights: Weights,
    guard: Guard,
    round_bits: int | None,
) -> Counts:
    """Rank, number of plans and race count of every state; `order` has targets first.

    Args:
        round_bits: round race counts up to so many bits, state by state; None keeps them exact.

    Raises:
        Refused: TCC407 where the counts take more than a gigabyte.
    """
    sizes = [len(group) for group in letters.calls]
    totals = [
        sum(weights.weight.get(call, 0) for call in group) if group[0] in weights.weight else 0
        for group in letters.calls
    ]
    rank, plans, race, exponent = ([0] * machine.states for _ in range(4))
    bits = weights.fraction_bits
    widest = 0
    for q in order:
        edges = machine.edges[q]
        guard.tick(1 + len(edges))
        depth = max([1 + rank[target] for _, target in edges], default=0)
        accepting = int(machine.accept[q])
        rank[q] = depth
        plans[q] = accepting + sum([sizes[letter] * plans[target] for letter, target in edges])
        due = (accepting << (bits * depth)) + sum(
            [
                totals[letter] * race[target]
                << (exponent[target] + bits * (depth - 1 - rank[target]))
                for letter, target in edges
            ]
        )
        race[q], exponent[q] = (due, 0) if round_bits is None else round_up(due, round_bits)
        widest = max(widest, race[q].bit_length(), plans[q].bit_length())
        _check_room(widest * machine.states)
    return Counts(rank=rank, plans=plans, race=race, exponent=exponent, round_bits=round_bits)


def round_up(value: int, bits: int) -> tuple[int, int]:
    """The least m * 2^e, m below 2^bits, that is no less than `value`, as the canonical (m, e)."""
    exponent = max(0, value.bit_length() - bits)
    mantissa = -(-value >> exponent)
    # Rounding up may carry into one bit more: then it is a power of two.
    return (mantissa >> 1, exponent + 1) if mantissa >> bits else (mantissa, exponent)


def _check_room(bits: int) -> None:
    """Refuse columns of counts that take more than a gigabyte."""
    if bits > _MOST_BITS:
        raise Refused(
            "TCC407",
            f"the counts of all states take more than {_MOST_BITS >> 33} GiB",
            hint="add `limit depth <= N`, or lower --tilt",
        )


def check_bits(counts: Counts, machine: Machine, limit: int | None) -> None:
    """Refuse a number of plans of more than `limit` bits.

    Raises:
        Refused: TCC407.
    """
    bits = counts.plans[machine.start].bit_length()
    if limit is not None and bits > limit:
        raise Refused(
            "TCC407",
            f"the number of plans takes {bits} bits, more than {limit}",
            hint="raise --count-bits, or add a limit",
        )
