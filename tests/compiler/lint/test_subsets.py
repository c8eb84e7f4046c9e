"""Smallest sets are found whatever the order of the items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from tcc_compiler.relax.contradiction import irreducible, smallest


def enough(chosen: Sequence[int]) -> bool:
    return {1, 2, 3} <= set(chosen) or {4, 5} <= set(chosen)


def test_the_smallest_of_two_sets_is_found_in_every_order() -> None:
    sizes = set()
    for items in permutations(range(1, 6)):
        sizes.add(len(irreducible(items, enough)))
        found, known = smallest(items, enough, 100)
        assert (set(found), known) == ({4, 5}, True)
    assert sizes == {2, 3}


def test_past_the_bound_no_set_is_called_smallest() -> None:
    found, known = smallest((4, 1, 2, 3, 5), enough, 0)
    assert enough(found)
    assert not known
