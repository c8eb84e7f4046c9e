"""Rounded counts: a mantissa of some bits times a power of two, in place of a long number.

Normative text: docs/spec/artifact.md, sections 3 and 7.  A rounded count is the least number of its
bits that is no less than the sum over the rounded targets, so it is never below the exact count and
never above what its targets' rounding forces.  The pair is the canonical one: exponent 0, or a
mantissa of all its bits.  Exponents may be large in a small file, so a sum is taken in a window of
a few hundred bits that slides up, and never written out.
Loaded for an artifact whose counts are rounded.  Cost: of a sum, sorting its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import overload

from tcc_certs.formats.artifact import MAX_ROUND_BITS

_WINDOW = MAX_ROUND_BITS + 1


def round_up(terms: Iterable[tuple[int, int]], bits: int) -> tuple[int, int]:
    """The least mantissa * 2^exponent, mantissa < 2^bits, at or above the sum; canonical.

    Args:
        terms: (value, shift), each for value * 2^shift, values and shifts at least 0.
        bits: 1 .. 63.
    """
    # With 64 bits or more above its level, or at level 0, no term says more than is kept of it.
    padded = []
    for value, shift in terms:
        if value:
            pad = min(shift, max(0, _WINDOW - value.bit_length()))
            padded.append((shift - pad, value << pad))
    total = level = cut = 0
    for above, value in sorted(padded):
        kept = total >> (above - level)
        # What falls below the level of all further terms can only matter by being there.
        cut |= kept << (above - level) != total
        total, level = kept + value, above
    total += cut
    drop = max(0, total.bit_length() - bits)
    mantissa = -(-total >> drop)
    if mantissa >> bits:
        mantissa, drop = mantissa >> 1, drop + 1
    return mantissa, level + drop


class RoundedCounts(Sequence[int]):
    """Race counts as integers, each written out when it is asked for.

    Attributes:
        mantissa, exponent: [n], the columns.
    """

    __slots__ = ("exponent", "mantissa")

    def __init__(self, mantissa: Sequence[int], exponent: Sequence[int]) -> None:
        self.mantissa = mantissa
        self.exponent = exponent

    def __len__(self) -> int:
        return len(self.mantissa)

    @overload
    def __getitem__(self, q: int) -> int: ...

    @overload
    def __getitem__(self, q: slice) -> list[int]: ...

    def __getitem__(self, q: int | slice) -> int | list[int]:
        if isinstance(q, slice):
            return [self[at] for at in range(*q.indices(len(self)))]
        return self.mantissa[q] << self.exponent[q]


def count_pairs(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each count as a number and a power of two, 0 where counts are exact."""
    if isinstance(counts, RoundedCounts):
        return zip(counts.mantissa, counts.exponent, strict=True)
    return zip(counts, repeat(0), strict=False)
