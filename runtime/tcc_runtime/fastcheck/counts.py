"""C3 and C4 in bulk: sums of big integers, digit by digit, exact.

A count becomes a row of digits of b bits in words of 64, b so small that the products of a state's
edges add up without wrapping; carries are settled once a state.  Weights too wide for that are
taken in pieces of b bits.  Race counts are brought to one scale, m(q) 2^(F (D - d(q))), D the
greatest rank, so that the equation

    2^F m(q) 2^(F (D - d(q)))  =  accept(q) 2^(F (D + 1))  +  sum of W(a) m(p) 2^(F (D - d(p)))

has no shift that depends on an edge; with F = 0 and no weights it is that of the plans.
Cost: a gather, a product and a running sum an edge for every digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np

from tcc_runtime.fastcheck.spans import Array, Span

_WORD = 62  # bits of a sum; two more are for carries and for adding up pieces
_LEAST_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """Counts of all states at one scale.

    Attributes:
        rows: [n, k], digits of m(q) 2^(F (D - d(q))), least first.
        bits: b.
        fraction_bits: F.
        unit: F (D + 1), the place of a plan that stops.
        weights: the calls' weights in pieces, [c] each, piece i in units of 2^(b i).
    """

    rows: Array
    bits: int
    fraction_bits: int
    unit: int
    weights: Sequence[Array]


def minimal(limbs: Array) -> bool:
    """No row is wider than the largest needs."""
    return limbs.shape[1] == 1 or bool(limbs[:, -1].any())


def digits_of(
    limbs: Array, rank: Array, weight: Array, fraction_bits: int, degree: int
) -> Digits | None:
    """Counts at one scale; None where their sizes are too odd for that.

    Args:
        limbs: [n, w], m(q), of 64 bits.
        rank: [n], not falling.
        weight: [c], W(a).
        fraction_bits: F.
        degree: the most edges of a state.
    """
    most, deepest = int(weight.max()), int(rank[-1])
    unit = fraction_bits * (deepest + 1)
    bits = _WORD - (most * degree).bit_length()
    pieces = 1
    if bits < _WORD // 2:
        bits = (_WORD - 1 - degree.bit_length()) // 2
        pieces = -(-most.bit_length() // bits)
    room = 64 * (2 * limbs.shape[1] + 2)
    if bits < _LEAST_BITS or unit > room:
        return None
    ends = np.searchsorted(rank, np.arange(deepest + 2)).tolist() if unit else [0, len(rank)]
    shifts = [fraction_bits * (deepest - at) for at in range(len(ends) - 1)]
    parts = [limbs[low:high] for low, high in pairwise(ends)]
    wide = max(_bits(part) + shift for part, shift in zip(parts, shifts, strict=True))
    wide = max(wide, unit - fraction_bits + 1)
    if wide > room:
        return None
    rows = np.empty((len(limbs), -(-wide // bits)), np.uint64)
    for low, part, shift in zip(ends, parts, shifts, strict=False):
        for at in range(rows.shape[1]):
            rows[low : low + len(part), at] = _window(part, at * bits - shift, bits)
    mask = np.uint64((1 << bits) - 1)
    words = weight.astype(np.uint64)
    return Digits(
        rows=rows,
        bits=bits,
        fraction_bits=fraction_bits,
        unit=unit,
        weights=[words >> np.uint64(bits * at) & mask for at in range(pieces)],
    )


def _bits(limbs: Array) -> int:
    """The bit length of the greatest row."""
    for at in reversed(range(limbs.shape[1])):
        greatest = int(limbs[:, at].max(initial=0))
        if greatest:
            return 64 * at + greatest.bit_length()
    return 0


def _window(limbs: Array, low: int, bits: int) -> Array:
    """Bits ``low .. low + bits - 1`` of each row; below its first bit and past its last are 0."""
    if low < 0:
        return _window(limbs, 0, max(0, bits + low)) << np.uint64(min(-low, bits))
    at, part = divmod(low, 64)
    if at >= limbs.shape[1]:
        return np.zeros(len(limbs), np.uint64)
    found = limbs[:, at] >> np.uint64(part)
    if part + bits > 64 and at + 1 < limbs.shape[1]:
        found |= limbs[:, at + 1] << np.uint64(64 - part)
    return found & np.uint64((1 << bits) - 1)


def summed(span: Span, accept: Array, plans: Array) -> bool:
    """``N(q) = accept(q) + sum of N(target)``, of counts [n] of one limb; False also where a sum
    might not fit one.
    """
    below = span.at_targets(plans)
    if int(below.max()) * span.degree >= (1 << 64) - 1:
        return False
    due = span.sums(below) + span.of(accept)
    return bool((due == span.of(plans)).all())


def raced(span: Span, accept: Array, digits: Digits) -> bool:
    """The equation of C4 at one scale; of C3 with weights of 1 and no scale.

    Args:
        accept: [n], 0 or 1.
    """
    bits, own = digits.bits, span.of(digits.rows)
    due = _shifted(own, digits.fraction_bits, bits, len(digits.weights))
    found = np.zeros_like(due)
    below = np.ascontiguousarray(span.at_targets(digits.rows).T)
    for place, piece in enumerate(digits.weights):
        words = span.at_calls(piece)
        for at, digit in enumerate(below, place):
            found[at] += span.sums(digit * words)
    whole, part = divmod(digits.unit, bits)
    found[whole] += span.of(accept).astype(np.uint64) << np.uint64(part)
    return _equal(found, due, bits)


def _shifted(rows: Array, shift: int, bits: int, spare: int) -> Array:
    """[j, k]: the rows' digits times 2^shift, one digit of all rows after the other."""
    whole, part = divmod(shift, bits)
    size = rows.shape[1]
    found = np.zeros((size + max(whole + 2, spare + 1), len(rows)), np.uint64)
    columns = np.ascontiguousarray(rows.T)
    found[whole : whole + size] = (columns << np.uint64(part)) & np.uint64((1 << bits) - 1)
    found[whole + 1 : whole + 1 + size] |= columns >> np.uint64(bits - part)
    return found


def _equal(sums: Array, due: Array, bits: int) -> bool:
    """Sums of digits, carries not yet settled, make the numbers `due`."""
    mask = np.uint64((1 << bits) - 1)
    carry = np.zeros_like(sums[0])
    for total, digit in zip(sums, due, strict=True):
        whole = total + carry
        if not ((whole & mask) == digit).all():
            return False
        carry = whole >> np.uint64(bits)
    return not carry.any()


class Rows(Sequence[int]):
    """Counts as integers, each made when it is asked for."""

    __slots__ = ("_limbs",)

    def __init__(self, limbs: Array) -> None:
        self._limbs = limbs

    def __len__(self) -> int:
        return len(self._limbs)

    @overload
    def __getitem__(self, q: int) -> int: ...

    @overload
    def __getitem__(self, q: slice) -> list[int]: ...

    def __getitem__(self, q: int | slice) -> int | list[int]:
        if isinstance(q, slice):
            return [self[at] for at in range(*q.indices(len(self)))]
        return int.from_bytes(self._limbs[q].tobytes(), "little")
