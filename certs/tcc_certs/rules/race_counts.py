"""C4, race counts: m(q) is what its own edges add up to, weights and ranks applied.

m(q) = accept 2^(F d(q)) + sum of W(a) 2^(F (d(q) - 1 - d(p))) m(p), docs/spec/race.md, section 3.
The column is left out exactly where it would repeat ``plans``.  Cost: one product and one shift
of the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add, lshift, mul, sub

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, ensure
from tcc_certs.rules.plans import check_width
from tcc_certs.rules.sweep import Block, Differences


def check_race_counts(
    blocks: Sequence[Block],
    automaton: Automaton,
    counts: Sequence[int],
    weight: Sequence[int],
    fraction_bits: int,
    width: int,
) -> None:
    """Every race count is right, and no row is wider than the largest needs.

    Args:
        blocks: all states; targets precede sources, ranks right (C2).
        automaton: the same states; its ranks and acceptance are read.
        counts: [n], the column, or ``plans`` where there is none.
        weight: [c], W(a).
        fraction_bits: F.
        width: limbs a row.

    Raises:
        Rejected: C401 at the first state whose count differs, C402 the width.
    """
    scale = [fraction_bits * rank for rank in automaton.rank]
    differences: Differences[int] = Differences()
    for block in blocks:
        terms: Iterable[int] = map(mul, block.at_calls(weight), block.at_targets(counts))
        if fraction_bits:
            terms = map(lshift, terms, _shifts(block, scale, fraction_bits, 64 * width))
        accepts = block.at_states(automaton.accept)
        stops = block.at_states(scale)
        _check_room(map(mul, accepts, stops), 64 * width)
        due = list(map(add, block.fold(sum, terms, 0), map(lshift, accepts, stops)))
        differences.note(block.states, due, block.at_states(counts))
    differences.refuse(Code.RACE_COUNT, "race_count")
    check_width(counts, width, "race_count", Code.RACE_WIDTH)


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


def check_presence(plans: Sequence[int], counts: Sequence[int] | None) -> None:
    """The column is there exactly where it differs from ``plans`` in some state.

    Raises:
        Rejected: C402.
    """
    differs = counts is None or any(map(sub, counts, plans))
    ensure(differs, Code.RACE_WIDTH, "race_count", "no column that repeats plans", "a repeat")
