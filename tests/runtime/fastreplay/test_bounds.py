"""The bounds of a state say who wins as the definition does, on both sides of each."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import pytest

from tcc_certs.race.arrivals import WORD, winner
from tcc_certs.replay.left import Children
from tcc_runtime.fastreplay.tables import StateTable

MASSES = [(1,), (1, 1), (1, 2, 4), (3, 5, 7), (1, 0, 10**30), (7**400, 5**500, 1), ()]


@pytest.mark.parametrize("phantom", [0, 1, 3**700])
@pytest.mark.parametrize("masses", MASSES)
def test_the_winner_is_that_of_the_definition_on_both_sides_of_every_bound(masses, phantom):
    total = sum(masses) + phantom or 1
    running = tuple(accumulate(masses))
    children = Children(steps=(), masses=masses, running=running, total=total, unit=0)
    bounds = StateTable(None, children, 0).bounds
    near = [0, (1 << WORD) - 1]
    for mass in running:
        at = (mass << WORD) // total
        near += [x for x in range(at - 3, at + 4) if 0 <= x < 1 << WORD]
    for x in near:
        place = bisect_right(bounds, 2 * x + 1)
        assert (place if place < len(bounds) else None) == winner(x, total, masses)
