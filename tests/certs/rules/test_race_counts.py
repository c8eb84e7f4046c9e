"""C4: C401, C402."""

import time

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.build import Node, build_graph
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.examples import example


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("at", [0, -1])
def test_rejects_race_count_off_by_one(at: int, step: int) -> None:
    forge = Forge(example())
    counts = forge.values("race_count")
    place = at % len(counts)
    forge.set("race_count", at, counts[at] + step)
    assert refusal(forge) == ("C401", f"race_count[{place}]")


def test_rejects_a_missing_column() -> None:
    forge = Forge(example())
    del forge.columns["race_count"]
    assert refusal(forge)[0] == "C401"


def test_rejects_a_column_that_repeats_the_plans() -> None:
    forge = Forge(example(tilt=0))
    forge.columns["race_count"] = list(forge.columns["plans"])
    assert refusal(forge) == ("C402", "race_count")


def test_rejects_a_limb_too_many() -> None:
    forge = Forge(example())
    rows = [limb for count in forge.values("race_count") for limb in (count, 0)]
    forge.put("race_count", rows, shape=(len(rows) // 2, 2))
    assert refusal(forge) == ("C402", "race_count")


def test_rejects_huge_shifts_without_making_them() -> None:
    # A long chain whose every state also has an edge to the last: shifts of millions of bits, were
    # they made, in a file of a few hundred kilobytes.
    end = Node(accept=True)
    node = end
    for _ in range(3000):
        node = Node(children={0: node, 1: end})
    plan = ["repeat", ["call", {0, 1}], 0]
    data = build_graph(make_core(**letters(2), plan=plan, statements=[depth(3000)]), node, tilt=0)
    forge = Forge(data).member("options", "tilt", value=64)
    forge.member("options", "fraction_bits", value=64).put("call_weight", [2**63 - 1] * 2)
    before = time.process_time()
    assert refusal(forge) == ("C401", "race_count[1]")
    assert time.process_time() - before < 5


@pytest.mark.parametrize("accepts", [0, 1])
def test_a_huge_rank_is_refused_before_a_count_is_written_out_at_its_scale(accepts: int) -> None:
    # 2^(64 * (2^32 - 1)) would take 32 GiB, in a file of a few kilobytes.
    forge = (
        Forge(example()).member("options", "tilt", value=64).member("options", "beta", value="0")
    )
    forge.member("options", "fraction_bits", value=64).put("call_weight", [2**63 - 1] * 4)
    forge.put("race_count", [1, 0] * 5, shape=(5, 2))
    state = 1
    forge.set("accept", state, accepts).set("rank", state, 2**32 - 1)
    assert refusal(forge) == ("C202", f"rank[{state}]")


@pytest.mark.parametrize(("bits", "place"), [(63, "race_count[1]"), (64, "race_count[1]")])
def test_a_shift_by_all_the_bits_of_a_row_is_not_made(bits: int, place: str) -> None:
    # An edge past one rank: its term is shifted by F, and rows have one limb.
    end = Node(accept=True)
    node = Node(children={0: Node(children={0: end}), 1: end})
    core = make_core(**letters(2), plan=["repeat", ["call", {0, 1}], 0], statements=[depth(2)])
    forge = Forge(build_graph(core, node, tilt=0)).member("options", "tilt", value=bits)
    forge.member("options", "fraction_bits", value=bits)
    assert refusal(forge.put("call_weight", [2**63 - 1] * 2)) == ("C401", place)
