"""C4, race counts: m(q) is what its own edges add up to, weights and ranks applied.

m(q) = accept 2^(F d(q)) + sum of W(a) 2^(F (d(q) - 1 - d(p))) m(p), docs/spec/race.md, section 3.
The column is left out exactly where it would repeat ``plans``.  Cost: one product and one shift
of the column's width an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from operator import lshift, mul, sub

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.rules.plans import check_width


def check_race_counts(
    automaton: Automaton,
    counts: Sequence[int],
    weight: Sequence[int],
    fraction_bits: int,
    width: int,
) -> None:
    """Every race count is right, and no row is wider than the largest needs.

    Args:
        automaton: targets precede sources, ranks right (C2).
        counts: [n], the column, or ``plans`` where there is none.
        weight: [c], W(a).
        fraction_bits: F.
        width: limbs a row.

    Raises:
        Rejected: C401 at the first state whose count differs, C402 the width.
    """
    _check_shifts(automaton, fraction_bits, width)
    weights = map(weight.__getitem__, automaton.edge_call)
    masses = map(mul, weights, map(counts.__getitem__, automaton.edge_target))
    terms = map(lshift, masses, _shifts(automaton, fraction_bits)) if fraction_bits else masses
    for q, degree in enumerate(automaton.degrees()):
        due = sum(islice(terms, degree))
        if automaton.accept[q]:
            due += 1 << fraction_bits * automaton.rank[q]
        if counts[q] != due:
            raise Rejected(Code.RACE_COUNT, f"race_count[{q}]", due, counts[q])
    check_width(counts, width, "race_count", Code.RACE_WIDTH)


def _shifts(automaton: Automaton, fraction_bits: int) -> Iterator[int]:
    """F (d(q) - 1 - d(p)), edge by edge."""
    up = [fraction_bits * (rank - 1) for rank in automaton.rank]
    down = [fraction_bits * rank for rank in automaton.rank]
    sources = chain.from_iterable(map(repeat, up, automaton.degrees()))
    return map(sub, sources, map(down.__getitem__, automaton.edge_target))


def _check_shifts(automaton: Automaton, fraction_bits: int, width: int) -> None:
    """No term is longer than the column.

    Only a hostile file breaks this; without it a few bytes of it could ask for terabits of shifts.
    """
    room = 64 * width
    worst = max(_shifts(automaton, fraction_bits), default=0)
    ensure(worst < room, Code.RACE_COUNT, "race_count", f"terms below 2^{room}", f"2^{worst}")
    for q, accept in enumerate(automaton.accept):
        if accept and fraction_bits * automaton.rank[q] >= room:
            found = f"2^{fraction_bits * automaton.rank[q]}"
            raise Rejected(Code.RACE_COUNT, f"race_count[{q}]", f"a term below 2^{room}", found)


def check_presence(plans: Sequence[int], counts: Sequence[int] | None) -> None:
    """The column is there exactly where it differs from ``plans`` in some state.

    Raises:
        Rejected: C402.
    """
    differs = counts is None or any(map(sub, counts, plans))
    ensure(differs, Code.RACE_WIDTH, "race_count", "no column that repeats plans", "a repeat")
