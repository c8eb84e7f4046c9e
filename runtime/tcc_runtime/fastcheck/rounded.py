"""C4 in bulk, race counts rounded up to few bits.

m(q) = mantissa 2^exponent is right if it is canonical, no less than the sum S of C4, and the number
of its form before it is less than S.  S is taken in units of 2^exponent: a whole part of 64 bits, a
fraction of 64 bits, and how many terms had bits below those, each worth less than one unit of the
fraction.  Where that leaves it open, nothing is said.  Cost: some thirty operations an edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcc_runtime.fastcheck.spans import Array, Span

_LOW = np.uint64((1 << 32) - 1)
_HALF = np.uint64(32)
# Whole parts, fractions, whether bits were lost, and whether every whole part fits.
Terms: TypeAlias = tuple[Array, Array, Array, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """Rounded race counts of all states.

    Attributes:
        mantissa, exponent: [n], the columns.
        rank: [n], not falling.
        weight: [c], W(a), below 2^63.
        fraction_bits: F.
        bits: most bits of a mantissa, 1 .. 63.
    """

    mantissa: Array
    exponent: Array
    rank: Array
    weight: Array
    fraction_bits: int
    bits: int

    def held(self, span: Span, accept: Array) -> bool:
        """The span's counts are shown to be right.

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
        """The least exponent: 0, or all bits of the mantissa are used."""
        full = own >= np.uint64(1 << self.bits - 1)
        fits = own <= np.uint64((1 << self.bits) - 1)
        return bool((fits & (full | (up == 0)) & (own > 0)).all())

    def _rounds(
        self, whole: Array, fraction: Array, open_ends: Array, own: Array, up: Array
    ) -> bool:
        """The number before `own` is less than the sum, and the sum is not more than `own`.

        Args:
            whole, fraction: [k], the sum without its open ends.
            open_ends: [k], of how many terms bits below the fraction are left out.
            own, up: [k], mantissa and exponent.
        """
        # At the least mantissa of an exponent the number before has the exponent before, and
        # stands half a unit below.
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
    """The products of two numbers below 2^64, as high and low words."""
    a, b, c, d = left >> _HALF, left & _LOW, right >> _HALF, right & _LOW
    low, middle, other = b * d, a * d, b * c
    carry = (low >> _HALF) + (middle & _LOW) + (other & _LOW)
    high = a * c + (middle >> _HALF) + (other >> _HALF) + (carry >> _HALF)
    return high, carry << _HALF | low & _LOW


def _scaled(high: Array, low: Array, lift: Array) -> Terms:
    """Numbers of two words times 2^lift, and whether all whole parts fit a word.

    A word that is shifted by 64 bits or more is 0.
    """
    left = np.clip(lift + 64, 0, 192).astype(np.uint64)
    right = np.clip(-lift - 64, 0, 192).astype(np.uint64)
    word, two = np.uint64(64), np.uint64(128)
    to_word, from_word = word - np.minimum(left, word), np.maximum(left, word) - word
    # Left of the point by more than a word: nothing may be pushed out at the top.
    over = np.where(left > word, high, high >> to_word)
    over |= np.where(left > word, low >> (two - np.minimum(left, two)), np.uint64(0))
    whole = np.where(left < word, high << left | low >> to_word, low << from_word)
    fraction = low << left
    # Right of it: what drops below the fraction is lost.
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
    """Whole part and fraction of sums, given by halves of a word, and of one more number.

    None where a whole part does not fit a word.
    """
    total, found = np.zeros_like(whole), []
    halves = (fraction & _LOW, fraction >> _HALF, whole & _LOW, whole >> _HALF)
    for part, more in zip((*fractions, *wholes), halves, strict=True):
        total = (total >> _HALF) + part + more
        found.append(total & _LOW)
    if (total >> _HALF).any():
        return None
    return found[3] << _HALF | found[2], found[1] << _HALF | found[0]
