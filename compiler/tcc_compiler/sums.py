"""Weighted sums over all words from each state, exact, whatever their size.

The value of a state is 1 where it accepts, and for each edge its letter's weight times the value of
its target, all over 2^F.  Values are kept by digits, one array for each, units at place 0 and parts
below, so that one multiplication and one sum serve the edges of a whole level; a digit is as
narrow as keeps those sums within 63 bits.  At the end a state of rank d is read off at the scale
2^(F d), at which it is whole.  Where a weight leaves too little room for digits, or values are
rounded, Python's integers do it, edge by edge.
Specification: docs/spec/artifact.md, C3 and C4.
Cost: a multiplication an edge and digit; or a product of long integers an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_compiler.guard import Guard
from tcc_compiler.refusal import Refused
from tcc_compiler.table import Ints, Table

# [states, width], least first.
Limbs: TypeAlias = NDArray[np.uint64]

_MOST_BITS = 1 << 33
_LEAST_DIGIT = 20


def weighted_sums(table: Table, weights: Sequence[int], fraction_bits: int, guard: Guard) -> Limbs:
    """[states, limbs], the value of every state at the scale 2^(F rank); the width is minimal.

    Args:
        table: ranked.
        weights: [letters], at least 0.

    Raises:
        Refused: TCC407 where the values take more than a gigabyte.
    """
    heaviest = max(weights).bit_length()
    widest = int(np.diff(table.edge_start).max()).bit_length()
    bits = 62 - heaviest - widest
    if bits < _LEAST_DIGIT:
        values = [value for value, _ in _long_sums(table, weights, fraction_bits, None, guard)]
        return packed(values)
    factor = np.array(weights, dtype=np.int64)[table.letter]
    digits = _Digits(bits, fraction_bits, table)
    for states, edges in table.bands():
        guard.tick(edges.stop - edges.start)
        digits.add_level(states, edges, factor[edges])
        _check_room(len(digits.place) * bits * table.states)
    return digits.limbs()


def rounded_sums(
    table: Table, weights: Sequence[int], fraction_bits: int, round_bits: int, guard: Guard
) -> tuple[list[int], list[int]]:
    """[states] mantissas and [states] exponents: values rounded up to so many bits, each one."""
    found = list(_long_sums(table, weights, fraction_bits, round_bits, guard))
    return [value for value, _ in found], [exponent for _, exponent in found]


class _Digits:
    """The digits of the states' values, for those of a place together.

    Attributes:
        place: place -> [states]; place 0 counts units, each other 2^bits of the next below.
    """

    def __init__(self, bits: int, fraction_bits: int, table: Table) -> None:
        self._bits = bits
        self._fraction = fraction_bits
        self._table = table
        self._whole, self._part = divmod(fraction_bits, bits)
        self.place: dict[int, Ints] = {0: table.accept.astype(np.int64)}
        # What acceptance adds, before sums are taken over 2^F.
        self._accepting = self.place[0] << self._part

    def add_level(self, states: slice, edges: slice, factor: Ints) -> None:
        """Set the digits of the states of a level; those below are set."""
        table = self._table
        target = table.target[edges]
        firsts = table.edge_start[states] - edges.start
        sums = {
            place: np.add.reduceat(values.take(target) * factor, firsts)
            for place, values in self.place.items()
        }
        whole, accepting = self._whole, self._accepting[states]
        sums[whole] = sums[whole] + accepting if whole in sums else accepting
        self._carry(sums)
        for place, values in (self._shifted(sums) if self._fraction else sums).items():
            if place not in self.place:
                if not values.any():
                    continue
                self.place[place] = np.zeros(table.states, dtype=np.int64)
            self.place[place][states] = values

    def _carry(self, sums: dict[int, Ints]) -> None:
        """Bring every digit below 2^bits."""
        mask = (1 << self._bits) - 1
        place, last = min(sums), max(sums)
        while place <= last:
            value = sums.get(place)
            if value is not None and int(value.max()) > mask:
                carry = value >> self._bits
                sums[place] = value & mask
                sums[place + 1] = sums[place + 1] + carry if place + 1 in sums else carry
                last = max(last, place + 1)
            place += 1

    def _shifted(self, sums: dict[int, Ints]) -> dict[int, Ints]:
        """`sums` over 2^F."""
        mask = (1 << self._bits) - 1
        whole, part = self._whole, self._part
        found: dict[int, Ints] = {}
        for place, value in sums.items():
            high = value >> part
            low = (value << (self._bits - part)) & mask
            for to, bits in ((place - whole, high), (place - whole - 1, low)):
                found[to] = found[to] | bits if to in found else bits
        return found

    def limbs(self) -> Limbs:
        """The values at their scales."""
        table, bits, fraction = self._table, self._bits, self._fraction
        ranks = len(table.levels) - 2
        size = ((max(self.place) + 1) * bits + fraction * ranks >> 6) + 1
        found = np.zeros((table.states, size), dtype=np.uint64)
        groups = list(pairwise(table.levels.tolist())) if fraction else [(0, table.states)]
        for rank, (first, last) in enumerate(groups):
            for place, digits in self.place.items():
                values = digits[first:last].astype(np.uint64)
                at = place * bits + fraction * rank
                if at < 0:
                    values, at = values >> np.uint64(min(63, -at)), 0
                limb, inner = divmod(at, 64)
                found[first:last, limb] |= values << np.uint64(inner)
                if inner + bits > 64:
                    found[first:last, limb + 1] |= values >> np.uint64(64 - inner)
        return narrowed(found)


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
    """Integers as rows of limbs; the width is the least that holds them all."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    raw = b"".join([value.to_bytes(size, "little") for value in values])
    return np.frombuffer(raw, dtype="<u8").reshape(len(values), -1)


def narrowed(limbs: Limbs) -> Limbs:
    """`limbs` without the last columns that are all zero; one column at least is left."""
    width = limbs.shape[1]
    while width > 1 and not limbs[:, width - 1].any():
        width -= 1
    return np.ascontiguousarray(limbs[:, :width])


def integer(limbs: Limbs, q: int) -> int:
    """The value of state `q`."""
    return int.from_bytes(limbs[q].astype("<u8").tobytes(), "little")


def _check_room(bits: int) -> None:
    """Refuse columns of counts that take more than a gigabyte."""
    if bits > _MOST_BITS:
        raise Refused(
            "TCC407",
            f"the counts of all states take more than {_MOST_BITS >> 33} GiB",
            hint="add `limit depth <= N`, or lower --tilt",
        )
