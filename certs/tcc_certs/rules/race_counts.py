"""C4, race counts: m(q) is what its own edges add up to, weights and ranks applied.

m(q) = accept 2^(F d(q)) + sum of W(a) 2^(F (d(q) - 1 - d(p))) m(p), docs/spec/race.md, section 3.
The column is left out exactly where it would repeat ``plans``.  Cost: one product and one shift
of the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import add, eq, lshift, mul, sub

from tcc_certs.errors import Code, ensure
from tcc_certs.rules.sweep import Block


def check_race_counts(
    block: Block,
    accept: Sequence[int],
    scale: Sequence[int],
    counts: Sequence[int],
    weight: Sequence[int],
    fraction_bits: int,
    width: int,
) -> None:
    """Every race count is right.

    Args:
        block: its targets precede their sources, its ranks are right (C2).
        accept: [n], 0 or 1.
        scale: [n], F d(q).
        counts: [n], the column, or ``plans`` where there is none.
        weight: [c], W(a).
        fraction_bits: F.
        width: limbs a row.

    Raises:
        Rejected: C401 at the first state whose count differs.
    """
    products = map(mul, block.at_calls(weight), block.at_targets(counts))
    shifts = _shifts(block, scale, fraction_bits, 64 * width) if fraction_bits else []
    terms = tuple(map(lshift, products, shifts)) if any(shifts) else tuple(products)
    accepts, stops = block.at_states(accept), block.at_states(scale)
    _check_room(map(mul, accepts, stops), 64 * width)
    due = list(map(add, block.fold(sum, terms, 0), map(lshift, accepts, stops)))
    block.compare(due, counts, Code.RACE_COUNT, "race_count")


class OneScale:
    """Race counts as m(q) 2^(F (D - d(q))), D the greatest rank: terms then need no shifts.

    Attributes:
        counts: [n], at that scale.
        unit: a plan that stops, F (D + 1) as a power of two.
    """

    __slots__ = ("counts", "unit")

    def __init__(self, scale: Sequence[int], counts: Sequence[int], fraction_bits: int) -> None:
        deepest = max(scale)
        self.counts = list(map(lshift, counts, map(sub, repeat(deepest), scale)))
        self.unit = 1 << deepest + fraction_bits

    def holds(
        self, block: Block, accept: Sequence[int], weight: Sequence[int], fraction_bits: int
    ) -> bool:
        """Whether ``2^F m(q) = accept(q) 2^(F (D + 1)) + sum of W(a) m(p)``, at one scale."""
        terms = tuple(map(mul, block.at_calls(weight), block.at_targets(self.counts)))
        below = block.fold(sum, terms, 0)
        stops = map((0, self.unit).__getitem__, block.at_states(accept))
        due = map(lshift, block.at_states(self.counts), repeat(fraction_bits))
        return all(map(eq, map(add, below, stops), due))


def _shifts(block: Block, scale: Sequence[int], fraction_bits: int, room: int) -> list[int]:
    """F (d(q) - 1 - d(p)), edge by edge."""
    up = [own - fraction_bits for own in block.at_states(scale)]
    shifts = list(map(sub, block.each_edge(up), block.at_targets(scale)))
    if max(up) >= room:  # no shift is more than that
        _check_room(shifts, room)
    return shifts


def _check_room(shifts: Iterable[int], room: int) -> None:
    """No shift makes a term longer than the column's `room` bits.

    Only a hostile file has one that does; a few bytes of it could ask for terabits.
    """
    worst = max(shifts, default=0)
    ensure(worst < room, Code.RACE_COUNT, "race_count", f"terms below 2^{room}", f"2^{worst}")


def check_presence(plans: Sequence[int], counts: Sequence[int]) -> None:
    """A column that is there differs from ``plans`` in some state.

    Raises:
        Rejected: C402.
    """
    ensure(
        any(map(sub, counts, plans)),
        Code.RACE_WIDTH,
        "race_count",
        "no column that repeats plans",
        "a repeat",
    )
