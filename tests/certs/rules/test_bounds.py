"""C5: C501 .. C504."""

import pytest

from tcc_certs.corecheck.graphs import state_digest
from tcc_certs.formats.codec import call_digest
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.build import build
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.examples import example

COLUMNS = [("cost_to_go", "C501"), ("residual_to_go", "C502")]


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("at", [0, -1])
@pytest.mark.parametrize(("column", "code"), COLUMNS)
def test_rejects_a_bound_off_by_one(column: str, code: str, at: int, step: int) -> None:
    forge = Forge(example())
    values = forge.values(column)
    place = at % len(values)
    forge.set(column, at, values[at] + step)
    assert refusal(forge) == (code, f"{column}[{place}]")


@pytest.mark.parametrize("step", [1, -1])
def test_rejects_a_greatest_cost_off_by_one(step: int) -> None:
    forge = Forge(example())
    forge.member("cost_max", value=forge.manifest["cost_max"] + step)
    assert refusal(forge) == ("C503", "manifest.cost_max")


def test_rejects_costs_that_leave_64_bits() -> None:
    core = make_core(
        **letters(1, cost=[6 * 10**18]), plan=["repeat", ["call", {0}], 0], statements=[depth(1)]
    )
    data = build(core, [(0,)], beta="0.1", tilt=0)
    forge = Forge(data)
    # The chain a a costs 1.2 * 10^19 nano-units: no 64-bit column can hold its bound.
    forge.put("edge_start", [0, 0, 1, 2]).put("edge_call", [0, 0]).put("edge_target", [0, 1])
    forge.put("rank", [0, 1, 2]).put("accept", [1, 0, 0]).put("plans", [1, 1, 1], shape=(3, 1))
    forge.put("cost_to_go", [0, 6 * 10**18, 2**63 - 1])
    step = -(6 * 10**8 << 32)
    forge.put("residual_to_go", [0, step, 2 * step])
    call, digests = call_digest(b"a", 6 * 10**18, 6 * 10**18), [state_digest(True, [])]
    for _ in range(2):
        digests.append(state_digest(False, [(call, digests[-1])]))
    forge.columns["state_digest"] = ["U8", (3, 32), b"".join(digests)]
    forge.member("states", value=3).member("edges", value=2)
    assert refusal(forge) == ("C504", "cost_to_go[2]")


def test_rejects_a_residual_that_leaves_64_bits() -> None:
    core = make_core(**letters(1, cost=[9 * 10**18]), plan=["call", {0}])
    forge = Forge(build(core, [(0,)], beta="0.1", tilt=0))
    forge.member("options", "beta", value="1")
    assert refusal(forge) == ("C504", "residual of call 0")
