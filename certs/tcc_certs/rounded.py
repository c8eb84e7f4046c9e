"""Rounded counts: a mantissa of limited size times a power of two, instead of a long number.

Normative text: docs/spec/artifact.md, sections 3 and 7.  A rounded count is the least number with
this many bits that is not below the sum over the rounded targets.  So it is never below the exact
count, and only as far above it as this rounding requires.  The pair is canonical: exponent 0, or a
mantissa with all its bits.  Exponents may be large in a small file.  So a sum is computed in a
sliding window of a few hundred bits, and never expanded.  Only artifacts with rounded counts load
this module.  Cost: a sum takes the sorting of its terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import overload

from tcc_certs.formats.artifact import MAX_ROUND_BITS

_WINDOW = MAX_ROUND_BITS + 1


def round_up(terms: Iterable[tuple[int, int]], bits: int) -> tuple[int, int]:
    """Return the least mantissa * 2^exponent not below the sum, mantissa < 2^bits, canonical.

    Args:
        terms: (value, shift), each for value * 2^shift; values and shifts are at least 0.
        bits: 1 .. 63.
    """
    # A term with 64 bits or more above its level, or at level 0, loses no information.
    padded = []
    for value, shift in terms:
        if value:
            pad = min(shift, max(0, _WINDOW - value.bit_length()))
            padded.append((shift - pad, value << pad))
    total = level = cut = 0
    for above, value in sorted(padded):
        kept = total >> (above - level)
        # Bits below the level of all further terms matter only for whether any of them is set.
        cut |= kept << (above - level) != total
        total, level = kept + value, above
    total += cut
    drop = max(0, total.bit_length() - bits)
    mantissa = -(-total >> drop)
    if mantissa >> bits:
        mantissa, drop = mantissa >> 1, drop + 1
    return mantissa, level + drop


class RoundedCounts(Sequence[int]):
    """Race counts as a sequence of integers, each expanded when it is read.

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
    """Return each count as a number and a power of two (0 for exact counts)."""
    if isinstance(counts, RoundedCounts):
        return zip(counts.mantissa, counts.exponent, strict=True)
    return zip(counts, repeat(0), strict=False)
