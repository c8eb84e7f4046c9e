"""What `open` says of adapters, atoms and the margin: each rule of section 6, broken alone."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tests.forgery.mutants import Records
from tests.forgery.test_range_forgeries import ADAPTERS, RUNS, SEED, forged_run, honest, ranges
from tests.oracle.cores import depth, letters, make_core
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.graphs import build

SMALL, LARGE = ({"name": a.name, "adapter_id": a.adapter_id, "tier": a.tier,
                 "dp_cert_id": a.dp_cert_id, "eps_train": a.eps_train,
                 "delta_train": a.delta_train} for a in ADAPTERS)  # fmt: skip
OTHER = {**LARGE, "name": "other"}


def refusals(records: Records, checked, **changes: Any) -> set[tuple[str, str, str]]:
    """Code, field and expectation of all that is found where `open` says something else."""
    header = {name: value for name, value in {**records[0], **changes}.items() if value is not None}
    found = validate(chained([with_run_id(header), *records[1:]]), checked)
    return {(str(f.code), f.field, f.expected) for f in found.findings}


def of(name: str, **changes: Any) -> set[tuple[str, str, str]]:
    checked, _, records = forged_run(name)
    return refusals(records, checked, **changes)


@pytest.mark.parametrize("listed", [None, [LARGE], [SMALL], [LARGE, OTHER, SMALL], [LARGE, OTHER]])
def test_the_adapters_of_the_models_are_listed_all_and_no_others(listed):
    assert forged_run("adapted")[2][0]["adapters"] == [LARGE, SMALL]
    found = of("adapted", adapters=listed)
    assert {(code, field) for code, field, _ in found} == {("L201", "adapters")}
    assert "large" in next(iter(found))[2]


def test_adapters_where_no_model_has_one_are_refused():
    assert of("leaf", adapters=[SMALL]) == {("L201", "adapters", "no field")}


def test_where_nobody_is_asked_no_adapter_is_listed():
    data, checked = ranges(adapted=True)
    records = honest(data, {"seed": SEED, "ask": "never", "top": 2}, None)
    assert "adapters" not in records[0]
    assert validate(chained(records), checked).verdict == 0
    found = refusals(records, checked, adapters=[LARGE, SMALL])
    assert found == {("L201", "adapters", "no field")}


@pytest.mark.parametrize("name", ["atoms", "atoms of the input"])
def test_a_run_that_counts_atoms_states_its_delta(name):
    assert ("atoms" in forged_run(name)[2][0]) == ("atoms" in RUNS[name][1])
    assert {(code, field) for code, field, _ in of(name, delta=None)} == {("L201", "delta")}


def test_where_nobody_is_asked_the_atoms_of_models_need_no_delta():
    parts = letters(2, cost=[3 * 10**8, 10**9])
    model = {"name": "probe", "price": 2, "latency_ms": 40, "epsilon": 0}
    model["atom"] = {"mechanism": "laplace", "scale": "8", "sensitivity": "1"}
    parts["tools"][0]["models"] = [model]
    core = make_core(**parts, plan=["repeat", ["call", {0, 1}], 0, 2], statements=[depth(2)])
    core = core.replace(b'"version":[1,0]', b'"version":[1,1]')
    data = build(core, [(True, []), (True, [(0, 0), (1, 0)]), (True, [(0, 1), (1, 1)])], tilt=8)
    records = honest(data, {"seed": SEED, "top": 2}, None)
    assert "delta" not in records[0]
    assert validate(chained(records), check(data)).verdict == 0


@pytest.mark.parametrize("margin", ["0", "1", "1.5"])
def test_a_margin_lies_between_0_and_1(margin):
    rule = forged_run("margin")[2][0]["controller"]
    found = of("margin", controller={**rule, "margin": margin})
    assert {(code, field) for code, field, _ in found} == {("L201", "controller")}
