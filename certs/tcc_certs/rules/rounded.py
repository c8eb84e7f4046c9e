"""C4, rounded race counts: the least number of few bits that is no less than the exact sum.

m(q) = mantissa * 2^exponent is rounded up from its own edges' sum over rounded targets, so it is
never below the exact count and never above what its targets' rounding forces.  The pair is the
canonical one: exponent 0, or a mantissa of all its bits.  Exponents may be large in a small file,
so sums are taken in a window of a few hundred bits that slides up, and never written out.
Cost: one product an edge, and one sort of its terms a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import mul, sub
from typing import overload

from tcc_certs.errors import Code, require
from tcc_certs.manifest import MAX_ROUND_BITS
from tcc_certs.rules.sweep import Block

_WINDOW = MAX_ROUND_BITS + 1


def check_rounded(
    block: Block,
    accept: Sequence[int],
    scale: Sequence[int],
    mantissa: Sequence[int],
    exponent: Sequence[int],
    weight: Sequence[int],
    fraction_bits: int,
    bits: int,
) -> None:
    """Every pair of mantissa and exponent is the one that is due.

    Args:
        block: its targets precede their sources, its ranks are right (C2).
        accept: [n], 0 or 1.
        scale: [n], F d(q).
        mantissa, exponent: [n], the columns.
        weight: [c], W(a).
        fraction_bits: F.
        bits: most bits of a mantissa.

    Raises:
        Rejected: C401 at the first state whose count differs.
    """
    values = list(map(mul, block.at_calls(weight), block.at_targets(mantissa)))
    # A term's shift is F (d(q) - 1) and, of the target, exponent less F d(p).
    lifts = list(map(sub, block.at_targets(exponent), block.at_targets(scale)))
    pairs = list(zip(values, lifts, strict=True))
    rows: list[tuple[tuple[int, int], ...]] = block.fold(tuple, pairs, ())
    stops = block.at_states(scale)
    due = []
    for accepts, stop, row in zip(block.at_states(accept), stops, rows, strict=True):
        terms = [(value, stop - fraction_bits + lift) for value, lift in row]
        due.append(round_up([*terms, (accepts, stop)], bits))
    found = zip(block.at_states(mantissa), block.at_states(exponent), strict=True)
    for state, pair, expected in zip(block.states, found, due, strict=True):
        require(expected, pair, Code.RACE_COUNT, f"race_mantissa, race_exponent[{state}]")


def round_up(terms: Iterable[tuple[int, int]], bits: int) -> tuple[int, int]:
    """The least mantissa * 2^exponent, mantissa < 2^bits, at or above a sum; canonical.

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
