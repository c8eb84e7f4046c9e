"""C2: C201, C202."""

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


@pytest.mark.parametrize("beyond", [0, 1, (1 << 32) - 1])
def test_rejects_an_edge_to_its_own_source_or_past_it(beyond: int) -> None:
    forge = Forge(example())
    root = len(forge.values("rank")) - 1
    last = len(forge.values("edge_target")) - 1
    target = min(root + beyond, (1 << 32) - 1)
    assert refusal(forge.set("edge_target", last, target)) == ("C201", f"edge_target[{last}]")


def test_rejects_a_loop_at_the_first_state_with_edges() -> None:
    forge = Forge(example())
    starts = forge.values("edge_start")
    state = next(q for q in range(len(starts) - 1) if starts[q + 1] > starts[q])
    assert refusal(forge.set("edge_target", 0, state)) == ("C201", "edge_target[0]")


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("at", [1, -1])
def test_rejects_a_rank_off_by_one(at: int, step: int) -> None:
    forge = Forge(example())
    ranks = forge.values("rank")
    place = at % len(ranks)
    code, path = refusal(forge.set("rank", at, ranks[at] + step))
    assert (code, path) == ("C202", f"rank[{place}]")


def test_rejects_a_rank_in_a_state_without_edges() -> None:
    assert refusal(Forge(example()).set("rank", 0, 1)) == ("C202", "rank[0]")
