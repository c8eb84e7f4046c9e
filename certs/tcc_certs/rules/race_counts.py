"""C4, race counts: m(q) is what its own edges add up to, weights and ranks applied.

m(q) = accept 2^(F d(q)) + sum of W(a) 2^(F (d(q) - 1 - d(p))) m(p), docs/spec/race.md, section 3.
The column is left out exactly where it would repeat ``plans``.  Cost: one product and one shift
of the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, lshift, mul, sub

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
    terms = list(map(mul, block.at_calls(weight), block.at_targets(counts)))
    shifts = _shifts(block, scale, fraction_bits, 64 * width) if fraction_bits else []
    if any(shifts):
        terms = list(map(lshift, terms, shifts))
    accepts, stops = block.at_states(accept), block.at_states(scale)
    _check_room(map(mul, accepts, stops), 64 * width)
    due = list(map(add, block.fold(sum, terms, 0), map(lshift, accepts, stops)))
    block.compare(due, counts, Code.RACE_COUNT, "race_count")


def _shifts(block: Block, scale: Sequence[int], fraction_bits: int, room: int) -> list[int]:
    """F (d(q) - 1 - d(p)), edge by edge."""
    up = [own - fraction_bits for own in block.at_states(scale)]
    shifts = list(map(sub, block.each_edge(up), block.at_targets(scale)))
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
