"""The listing that judges the experiments, against the oracle that judges the runtime."""

from __future__ import annotations

from math import isclose

import pytest

from tcc_certs.policy.reader import read_core
from tcc_experiments.listing import Listing, exponential, gumbel
from tcc_runtime.artifact.load import Artifact
from tests.differential.tree_oracle import Oracle, Tree
from tests.runtime.graphs import free_core, named_rows, opened

ROWS = [(True, []), (True, [(0, 0), (2, 0)]), (False, [(1, 1), (2, 0)]), (True, [(0, 2), (1, 1)])]
COSTS = [300_000_000, 1_250_000_000, 0]
SEED = bytes(range(32))


def both(tilt: int, inflate: str = "1") -> tuple[Artifact, Oracle]:
    core = free_core(COSTS, 9)
    names = [call.text for call in read_core(core).calls]
    tree = Tree(
        rows=named_rows(core, ROWS),
        cost=dict(zip(names, COSTS, strict=True)),
        limits=["limit depth <= 9"],
        tilt=tilt,
        inflate=inflate,
    )
    return opened(core, ROWS, tilt=tilt), Oracle(tree, SEED)


def same(found: dict[bytes, float], due: list[tuple[int, bytes, tuple[str, ...]]]) -> bool:
    assert found.keys() == {digest for _, digest, _ in due}
    return all(isclose(found[d], v / 2**64, rel_tol=1e-12, abs_tol=1e-12) for v, d, _ in due)


def by_leaf(listing: Listing, value: list[float]) -> dict[bytes, float]:
    return {listing.places[at].digest: value[at] for at in listing.leaves()}


@pytest.mark.parametrize(("tilt", "inflate"), [(0, "1"), (8, "1"), (0, "2"), (8, "3.5")])
def test_the_race_is_that_of_the_oracle(tilt: int, inflate: str) -> None:
    artifact, oracle = both(tilt, inflate)
    listing = Listing(artifact)
    race = listing.race(SEED, inflate)
    assert len(listing.leaves()) == 8
    assert same(by_leaf(listing, race.value), oracle.numbers.coupled)
    best = [listing.places[at].digest for at in race.best(3)]
    assert best == [digest for _, digest, _ in oracle.numbers.coupled[:3]]
    assert race.greatest[0] == max(race.value)


def test_the_printed_race_and_the_fallback_are_those_of_the_oracle() -> None:
    artifact, oracle = both(0)
    listing = Listing(artifact)
    race = listing.race(SEED)
    assert same(by_leaf(listing, race.literal()), oracle.numbers.literal)
    assert same(by_leaf(listing, race.fallback()), oracle.numbers.fallback)


def test_exponentials_are_right_at_both_ends() -> None:
    assert isclose(exponential(0), 2.0**-65, rel_tol=1e-15)
    assert isclose(exponential(2**64 - 1), 65 * 0.6931471805599453, rel_tol=1e-15)
    assert isclose(exponential(2**63), 0.6931471805599453, rel_tol=1e-15)
    assert isclose(gumbel(2**63), 0.36651292058166435, rel_tol=1e-12)
