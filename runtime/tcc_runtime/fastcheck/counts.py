"""Checks C3 and C4 in bulk: exact sums of big integers digit by digit, and rounded race counts.

A count is split into digits of b bits in words of 64 bits. b is so small that the products of a
state's edges can be summed without overflow; carries are settled once for each state.  Weights that
are too wide for that are split into pieces of b bits.  Race counts are brought to one scale, m(q)
2^(F (D - d(q))), where D is the greatest rank.  Then the equation

    2^F m(q) 2^(F (D - d(q))) = accept(q) 2^(F (D + 1)) + sum of W(a) m(p) 2^(F (D - d(p)))

has no shift that depends on an edge.  With F = 0 and no weights it is the equation of the plans.
In states of low rank, and in all states that their edges lead to, the lowest digits are 0 and are
left out.

Cost: for each edge and digit a gather, a product and a running sum; before, some calls of numpy for
each rank and limb.  If ranks have few states and counts have many limbs, these calls dominate, and
the kernel's own rules are faster.

Rounded counts: m(q) = mantissa 2^exponent is right if three conditions are true.  It is canonical,
it is at least the sum S of C4, and the next smaller number of this form is less than S.  S is
computed in units of 2^exponent: a whole part of 64 bits, a fraction of 64 bits, and the number of
terms with lower bits, each worth less than one unit of the fraction.  If this does not decide, the
check gives no answer.

Cost: about thirty operations for each edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, overload

import numpy as np

from tcc_runtime.fastcheck.spans import Array, StateSpan

_WORD = 62  # bits of a sum; two more are for carries and for adding pieces
_LEAST_BITS = 16
_FREE_LIMBS, _LIMBS_PER_STATE = 1 << 15, 4  # limbs that are split one rank and limb at a time
_LOW, _HALF = np.uint64((1 << 32) - 1), np.uint64(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitColumns:
    """The counts of all states at one scale, as digits.

    Attributes:
        columns: [k, n], the digits of m(q) 2^(F (D - d(q))), the least digit first.
        bits: b, the bits of a digit.
        fraction_bits: F.
        unit: F (D + 1), the bit that a stopping plan adds to the sum.
        weights: the weights of the calls in pieces, [c] each; piece i is in units of 2^(b i).  One
            piece None: all weights are 1.
    """

    columns: Array
    bits: int
    fraction_bits: int
    unit: int
    weights: Sequence[Array | None]


def minimal(limbs: Array) -> bool:
    """Return whether the largest count needs all limbs of a row."""
    return limbs.shape[1] == 1 or bool(limbs[:, -1].any())


def digits_of(
    limbs: Array, rank: Array, weight: Array, fraction_bits: int, degree: int
) -> DigitColumns | None:
    """Return the counts at one scale; None if their sizes do not allow that, or if it does not pay
    off.

    Args:
        limbs: [n, w], the limbs of m(q), of 64 bits.
        rank: [n], not decreasing.
        weight: [c], W(a).
        fraction_bits: F.
        degree: the largest number of edges of a state.
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
    if (len(ends) - 1) * limbs.shape[1] > max(_FREE_LIMBS, _LIMBS_PER_STATE * len(limbs)):
        return None
    shifts = [fraction_bits * (deepest - at) for at in range(len(ends) - 1)]
    parts = [np.ascontiguousarray(limbs[low:high].T) for low, high in pairwise(ends)]
    wide = max(_bits(part) + shift for part, shift in zip(parts, shifts, strict=True))
    wide = max(wide, unit - fraction_bits + 1)
    if wide > room:
        return None
    columns = np.zeros((-(-wide // bits), len(limbs)), np.uint64)
    for low, part, shift in zip(ends, parts, shifts, strict=False):
        for at in range(shift // bits, len(columns)):
            columns[at, low : low + part.shape[1]] = _window(part, at * bits - shift, bits)
    mask = np.uint64((1 << bits) - 1)
    words = weight.astype(np.uint64)
    weights = [words >> np.uint64(bits * at) & mask for at in range(pieces)]
    return DigitColumns(
        columns=columns,
        bits=bits,
        fraction_bits=fraction_bits,
        unit=unit,
        weights=weights if most > 1 else [None],
    )


def _bits(limbs: Array) -> int:
    """Return the bit length of the greatest count of limbs [w, n]."""
    for at in reversed(range(len(limbs))):
        greatest = int(limbs[at].max(initial=0))
        if greatest:
            return 64 * at + greatest.bit_length()
    return 0


def _window(limbs: Array, low: int, bits: int) -> Array:
    """Return bits ``low .. low + bits - 1`` of each count.  Bits outside of the count are 0."""
    if low < 0:
        return _window(limbs, 0, max(0, bits + low)) << np.uint64(min(-low, bits))
    at, part = divmod(low, 64)
    if at >= len(limbs):
        return np.zeros(limbs.shape[1], np.uint64)
    found: Array = limbs[at] >> np.uint64(part)
    if part + bits > 64 and at + 1 < len(limbs):
        found |= limbs[at + 1] << np.uint64(64 - part)
    found &= np.uint64((1 << bits) - 1)
    return found


def summed(span: StateSpan, accept: Array, plans: Array) -> bool:
    """Return whether ``N(q) = accept(q) + sum of N(target)`` for counts [n] of one limb."""
    below, stops = span.at_targets(plans), span.of(accept)
    if int(below.max()) * span.degree < (1 << 64) - 1:
        return bool((span.sums(below) + stops == span.of(plans)).all())
    # Sums that may exceed a limb are computed in halves.
    low = span.sums(below & _LOW) + stops
    high = span.sums(below >> _HALF) + (low >> _HALF)
    expected = high << _HALF | low & _LOW
    return not (high >> _HALF).any() and bool((expected == span.of(plans)).all())


def raced(span: StateSpan, accept: Array, digits: DigitColumns, deepest: int) -> bool:
    """Return whether the equation of C4 is true in a span, at one scale; with weights of 1 and F =
    0 that of C3.

    Args:
        accept: [n], 0 or 1.
        deepest: the greatest rank of the span.
    """
    bits, shift = digits.bits, digits.fraction_bits
    # Counts of the span, and of its targets, are multiples of 2^(F (D - deepest)).
    first = (digits.unit - shift * (deepest + 1)) // bits
    own = digits.columns[first:, span.first : span.last]
    expected = _shifted(own, shift, bits, len(digits.weights))
    found = np.zeros_like(expected)
    words = [None if piece is None else span.at_calls(piece) for piece in digits.weights]
    for at, digit in enumerate(digits.columns[first:]):
        below = span.at_targets(digit)
        for place, word in enumerate(words, at):
            found[place] += span.sums(below if word is None else below * word)
    whole, part = divmod(digits.unit, bits)
    found[whole - first] += span.of(accept).astype(np.uint64) << np.uint64(part)
    return _equal(found, expected, bits)


def _shifted(columns: Array, shift: int, bits: int, spare: int) -> Array:
    """Return the digits of the counts times 2^shift, [j, k]."""
    whole, part = divmod(shift, bits)
    size = len(columns)
    found = np.zeros((size + max(whole + 2, spare + 1), columns.shape[1]), np.uint64)
    found[whole : whole + size] = (columns << np.uint64(part)) & np.uint64((1 << bits) - 1)
    found[whole + 1 : whole + 1 + size] |= columns >> np.uint64(bits - part)
    return found


def _equal(sums: Array, expected: Array, bits: int) -> bool:
    """Return whether sums of digits, before carries are settled, are the numbers `expected`."""
    mask = np.uint64((1 << bits) - 1)
    carry = np.zeros_like(sums[0])
    for total, digit in zip(sums, expected, strict=True):
        whole = total + carry
        if not ((whole & mask) == digit).all():
            return False
        carry = whole >> np.uint64(bits)
    return not carry.any()


class Rows(Sequence[int]):
    """Counts as a sequence of integers; each is built when it is read."""

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


# Rounded race counts. The terms: whole parts, fractions, whether bits were lost, and whether all
# whole parts fit into a word.
Terms: TypeAlias = tuple[Array, Array, Array, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """The rounded race counts of all states.

    Attributes:
        mantissa, exponent: [n], the columns.
        rank: [n], not decreasing.
        weight: [c], W(a), below 2^63.
        fraction_bits: F.
        bits: the most bits of a mantissa, 1.. 63.
    """

    mantissa: Array
    exponent: Array
    rank: Array
    weight: Array
    fraction_bits: int
    bits: int

    def held(self, span: StateSpan, accept: Array) -> bool:
        """Return whether the counts of a span are shown to be right.

        Args:
            accept: [n], 0 or 1.
        """
        own, up = span.of(self.mantissa), span.of(self.exponent).astype(np.int64)
        if not self._canonical(own, up):
            return False
        # 2^shift of a term, in units of 2^exponent of the state.
        stop = self.fraction_bits * span.of(self.rank).astype(np.int64) - up
        lift = span.at_targets(self.exponent).astype(np.int64)
        lift -= self.fraction_bits * span.at_targets(self.rank).astype(np.int64)
        lift += span.each_edge(stop) - self.fraction_bits
        product = _product(span.at_calls(self.weight), span.at_targets(self.mantissa))
        whole, fraction, lost, fits = _scaled(*product, lift)
        stops = span.of(accept).astype(np.uint64)
        unit, unit_fraction, unit_lost, unit_fits = _scaled(np.zeros_like(stops), stops, stop)
        if not (fits and unit_fits):
            return False
        total = _added(
            [span.sums(part) for part in (fraction & _LOW, fraction >> _HALF)],
            [span.sums(part) for part in (whole & _LOW, whole >> _HALF)],
            unit_fraction,
            unit,
        )
        open_ends = span.sums(lost) + unit_lost
        return total is not None and self._rounds(*total, open_ends, own, up)

    def _canonical(self, own: Array, up: Array) -> bool:
        """Return whether the exponents are the least: 0, or all bits of the mantissa are used."""
        full = own >= np.uint64(1 << self.bits - 1)
        fits = own <= np.uint64((1 << self.bits) - 1)
        return bool((fits & (full | (up == 0)) & (own > 0)).all())

    def _rounds(
        self, whole: Array, fraction: Array, open_ends: Array, own: Array, up: Array
    ) -> bool:
        """Return whether the next smaller number than `own` is less than the sum, and the sum is at
        most `own`.

        Args:
            whole, fraction: [k], the sum without the lost bits.
            open_ends: [k], the number of terms that lost bits below the fraction.
            own, up: [k], mantissa and exponent.
        """
        # At the least mantissa of an exponent, the next smaller number has the next smaller
        # exponent, and is half a unit below.
        least = (own == np.uint64(1 << self.bits - 1)) & (up > 0)
        before = own - np.uint64(1)
        half = np.where(least, np.uint64(1 << 63), np.uint64(0))
        exact = open_ends == 0
        above = (whole > before) | ((whole == before) & (fraction > half))
        above |= ~exact & (whole == before) & (fraction == half)
        most, carried = fraction + open_ends, whole + (fraction > ~open_ends)
        below = (carried < own) | ((carried == own) & (most == 0))
        return bool((above & below & (whole <= own)).all())


def _product(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the products of two numbers below 2^64, as high and low words."""
    a, b, c, d = left >> _HALF, left & _LOW, right >> _HALF, right & _LOW
    low, middle, other = b * d, a * d, b * c
    carry = (low >> _HALF) + (middle & _LOW) + (other & _LOW)
    high = a * c + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF)
    return high, carry << _HALF | low & _LOW


def _scaled(high: Array, low: Array, lift: Array) -> Terms:
    """Return numbers of two words times 2^lift, and whether all whole parts fit into a word.

    A word that is shifted by 64 bits or more becomes 0.
    """
    left = np.clip(lift + 64, 0, 192).astype(np.uint64)
    right = np.clip(-lift - 64, 0, 192).astype(np.uint64)
    word, two = np.uint64(64), np.uint64(128)
    to_word, from_word = word - np.minimum(left, word), np.maximum(left, word) - word
    # Shifted left: no bit may be lost at the top.
    over = np.where(left > word, high, high >> to_word)
    over |= np.where(left > word, low >> (two - np.minimum(left, two)), np.uint64(0))
    whole = np.where(left < word, high << left | low >> to_word, low << from_word)
    fraction = low << left
    # Shifted right: bits below the fraction are lost.
    down, far = np.minimum(right, word), np.maximum(right, word) - word
    whole = np.where(right > 0, high >> right, whole)
    slid = np.where(right <= word, low >> down | high << (word - down), high >> far)
    fraction = np.where(right > 0, slid, fraction)
    near = (low << (word - down)) != 0
    beyond = (low != 0) | (high << (word - np.minimum(far, word)) != 0)
    lost = np.where(right > 0, np.where(right <= word, near, beyond), False)
    return whole, fraction, lost, not over.any()


def _added(
    fractions: list[Array], wholes: list[Array], fraction: Array, whole: Array
) -> tuple[Array, Array] | None:
    """Return whole part and fraction of the sums in half words plus one more number.

    None if a whole part does not fit into a word.
    """
    total, found = np.zeros_like(whole), []
    halves = (
        fraction & _LOW,
        fraction >> _HALF,
        whole & _LOW,
        whole >> _HALF,
    )
    for part, more in zip((*fractions, *wholes), halves, strict=True):
        total = (total >> _HALF) + part + more
        found.append(total & _LOW)
    if (total >> _HALF).any():
        return None
    return found[3] << _HALF | found[2], found[1] << _HALF | found[0]
