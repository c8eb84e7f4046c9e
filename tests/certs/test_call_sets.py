"""Sets of calls as ranges, against sets of calls one by one."""

from __future__ import annotations

import random

import pytest

from tcc_certs.core.model import members
from tcc_certs.statements import Reach, Reaching


def drawn_set(rng: random.Random, calls: int) -> tuple[tuple[int, int], ...]:
    """Ranges that do not touch."""
    ends = sorted(rng.sample(range(calls + 1), 2 * rng.randint(0, min(4, calls // 2))))
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return tuple(pairs)


@pytest.mark.parametrize("seed", range(40))
def test_a_call_is_in_the_sets_that_hold_it(seed):
    rng = random.Random(seed)
    size = rng.choice([1, 2, 3, 7, 8, 9, 31, 64])
    kept = sorted(rng.sample(range(size), rng.randint(1, size)))  # the calls of the artifact
    sets = [drawn_set(rng, size) for _ in range(6)]
    reaches = [Reach(chosen, kept) for chosen in sets]
    reaching = Reaching(enumerate(reaches))
    for call, index in enumerate(kept):
        due = [n for n, chosen in enumerate(sets) if index in set(members(chosen))]
        assert [n for n, reach in enumerate(reaches) if call in reach] == due
        assert sorted(reaching.of(call)) == due
