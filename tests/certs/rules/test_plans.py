"""C3: C301, C302."""

import pytest

from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.examples import example


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("at", [0, -1])
def test_rejects_count_off_by_one(at: int, step: int) -> None:
    forge = Forge(example())
    counts = forge.values("plans")
    place = at % len(counts)
    assert refusal(forge.set("plans", at, counts[at] + step)) == ("C301", f"plans[{place}]")


def test_rejects_acceptance_flipped_in_the_last_state() -> None:
    forge = Forge(example())
    root = len(forge.values("accept")) - 1
    flipped = 1 - forge.values("accept")[root]
    assert refusal(forge.set("accept", root, flipped)) == ("C301", f"plans[{root}]")


def test_rejects_a_limb_too_many() -> None:
    forge = Forge(example())
    rows = [limb for count in forge.values("plans") for limb in (count, 0)]
    forge.put("plans", rows, shape=(len(rows) // 2, 2))
    assert refusal(forge) == ("C302", "plans")


def test_rejects_counts_that_hide_in_a_second_limb() -> None:
    forge = Forge(example())
    rows = [limb for count in forge.values("plans") for limb in (count, 1)]
    forge.put("plans", rows, shape=(len(rows) // 2, 2))
    assert refusal(forge) == ("C301", "plans[0]")
