"""Weighted sums over all words from each state, exact integers of any size.

The value of a state is 1 where it accepts, and for each edge its letter's weight times the value of
its target, all over 2^F, read off at the scale 2^(F d) for a state of rank d.  They
are computed a level at a time in digits (:mod:`tcc_compiler.counting.digits`); where a weight is
too large for digits, or values are rounded, edge by edge with Python's integers.
Specification: docs/spec/artifact.md, C3 and C4.
Cost: a multiplication for each edge and digit; or a product of long integers for each edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tcc_compiler.automata.table import Table
from tcc_compiler.counting.digits import Limbs, digit_bits, level_sums
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused

_MOST_BITS = 1 << 33
_LEAST_DIGIT = 20


def weighted_sums(table: Table, weights: Sequence[int], fraction_bits: int, guard: Guard) -> Limbs:
    """[limbs, states], the value of every state at the scale 2^(F rank); the width is minimal.

    Args:
        table: ranked.
        weights: [letters], at least 0.

    Raises:
        Refused: TCC407 where the values take more than a gigabyte.
    """
    bits = digit_bits(table, weights)
    if bits < _LEAST_DIGIT:
        values = [value for value, _ in _long_sums(table, weights, fraction_bits, None, guard)]
        return packed(values)
    most = _MOST_BITS // (bits * table.states)
    return level_sums(table, weights, bits, fraction_bits, guard, _check_room, most)


def rounded_sums(
    table: Table, weights: Sequence[int], fraction_bits: int, round_bits: int, guard: Guard
) -> tuple[list[int], list[int]]:
    """[states] mantissas and [states] exponents; each value is rounded up to `round_bits` bits."""
    pairs = list(_long_sums(table, weights, fraction_bits, round_bits, guard))
    return [value for value, _ in pairs], [exponent for _, exponent in pairs]


def _long_sums(
    table: Table, weights: Sequence[int], fraction_bits: int, round_bits: int | None, guard: Guard
) -> Iterator[tuple[int, int]]:
    """The value of every state as (m, e), m * 2^e; e is 0 where values are exact."""
    first, target = table.edge_start.tolist(), table.target.tolist()
    factor = [weights[letter] for letter in table.letter.tolist()]
    accept = table.accept.tolist()
    value, exponent = [0] * table.states, [0] * table.states
    level = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels)).tolist()
    widest = 0
    for q, (begin, end) in enumerate(pairwise(first)):
        guard.tick(1 + end - begin)
        below = level[q] - 1
        total = int(accept[q]) << fraction_bits * level[q]
        for edge in range(begin, end):
            p = target[edge]
            total += factor[edge] * value[p] << exponent[p] + fraction_bits * (below - level[p])
        value[q], exponent[q] = (total, 0) if round_bits is None else round_up(total, round_bits)
        widest = max(widest, value[q].bit_length())
        _check_room(widest * table.states)
        yield value[q], exponent[q]


def round_up(value: int, bits: int) -> tuple[int, int]:
    """The least m * 2^e, m below 2^bits, that is no less than `value`, as the canonical (m, e)."""
    exponent = max(0, value.bit_length() - bits)
    mantissa = -(-value >> exponent)
    # Rounding up may carry into one bit more: then it is a power of two.
    return (mantissa >> 1, exponent + 1) if mantissa >> bits else (mantissa, exponent)


def packed(values: Sequence[int]) -> Limbs:
    """Integers as columns of limbs; the width is the least that holds them all."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    raw = b"".join([value.to_bytes(size, "little") for value in values])
    return np.frombuffer(raw, dtype="<u8").reshape(len(values), -1).T


def integer(limbs: Limbs, q: int) -> int:
    """The value of state `q`."""
    return int.from_bytes(limbs[:, q].astype("<u8").tobytes(), "little")


def _check_room(bits: int) -> None:
    """Refuse columns of counts that take more than a gigabyte."""
    if bits > _MOST_BITS:
        raise Refused(
            "TCC407",
            f"the counts of all states take more than {_MOST_BITS >> 33} GiB",
            hint="add `limit depth <= N`, or lower --tilt",
        )
