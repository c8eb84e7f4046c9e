"""Where a guard or an auditor's wish is in the way, records do not go straight, and all is told."""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import check
from tcc_certs.replay import descent, pushes, steps, straight, validate
from tests.differential.test_runtime_validator import artifact, recorded
from tests.differential.test_straight_way import looked_into
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.graphs import build, free_core, random_rows


def records_of(ledger: bytes) -> list[dict]:
    found = [json.loads(line) for line in ledger.splitlines()]
    return [{name: value for name, value in record.items() if name != "~"} for record in found]


def told(ledger: bytes, data: bytes, monkeypatch, **given):
    """The validation, which is that with nothing going straight."""
    found = validate(ledger, data, **given)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "straight_way", lambda *_: None)
        assert validate(ledger, data, **given) == found
    return found


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_beyond_its_cap_is_refused_at_the_first_expansion_too_many(race, monkeypatch):
    data = artifact(3)
    run, ledger = recorded(data, 1, top=5, race=race, max_expansions=1000)
    head, *body = records_of(ledger)
    assert told(ledger, data, monkeypatch).verdict == 0
    expands = [at for at, record in enumerate([head, *body]) if record["kind"] == "expand"]
    for cap in range(1, run.expansions):
        forged = with_run_id({**head, "run_limits": {"max_expansions": cap}})
        found = told(chained([forged, *body]), data, monkeypatch)
        assert (found.verdict, found.findings[0].code) == (1, Code.GUARD)
        assert found.findings[0].line == expands[cap] + 1


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_a_search_that_goes_on_past_the_stop_rule_is_refused(number, race, monkeypatch):
    data = artifact(number)
    for salt in range(3):
        run, ledger = recorded(data, salt, top=4, race=race)
        head, *body = records_of(ledger)
        for top in range(1, len(run.plans)):
            found = told(chained([with_run_id({**head, "top": top}), *body]), data, monkeypatch)
            assert found.verdict == 1


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_that_passes_over_its_limit_on_counts_is_refused(race, monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race, count_bits=64)
    head, *body = records_of(ledger)
    assert told(ledger, data, monkeypatch).verdict == 0
    found = told(chained([with_run_id({**head, "count_bits": 1}), *body]), data, monkeypatch)
    assert (found.verdict, found.findings[0].code) == (1, Code.GUARD)


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_kappa_beside_handed_in_counts_is_that_of_the_whole_replay(race, monkeypatch):
    rng = random.Random(5)
    core, rows = free_core([10**8, 9 * 10**8, 10**9], 12), random_rows(rng, 3, 4, 3)
    rounded, exact = build(core, rows, "1", 4, round_counts=2), build(core, rows, "1", 4)
    _, ledger = recorded(rounded, 1, top=5, race=race)
    found = told(ledger, rounded, monkeypatch, counts=check(exact))
    assert found.verdict == 0
    assert found.kappa["nodes"] > 0
    assert found.kappa["tightened"] > 0


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_children_left_out_behind_a_recovery_are_missed(race, monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race)
    records = records_of(ledger)
    seen = 0
    for at in range(2, len(records)):
        end = at
        while records[end]["kind"] in ("node", "rest"):
            end += 1
        if end > at:  # those from `at` on are left out
            taken_up = {"kind": "recovered", "dropped_bytes": 1, "records": at}
            forged = chained([*records[:at], taken_up, *records[end:]])
            found = told(forged, data, monkeypatch)
            assert (found.verdict, found.findings[0].line) == (1, at + 2)
            seen += 1
    assert seen > 5


def test_numbers_that_are_not_near_enough_send_every_draw_the_other_way(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    for module in (straight, descent):
        monkeypatch.setattr(module, "usable", lambda gauge: False)
    found, kinds = looked_into(ledger, data)
    assert found.verdict == 0
    for kind in ("expand", "draw"):
        due = sum(record["kind"] == kind for record in records_of(ledger))
        assert kinds.count(kind) == due > 0


def test_a_leaf_whose_uniform_is_not_decided_goes_the_other_way(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    monkeypatch.setattr(straight, "_POINT", 64)  # two multiples of 2^-64 are always enclosed
    found, kinds = looked_into(ledger, data)
    assert found.verdict == 0
    assert kinds.count("leaf") == sum(one["kind"] == "leaf" for one in records_of(ledger)) > 0


def test_what_is_left_and_not_decided_goes_the_other_way(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    monkeypatch.setattr(pushes, "spread", lambda time, loss: 1 << 32)
    monkeypatch.setattr(descent, "_LOGS", 1 << 32)
    found, kinds = looked_into(ledger, data)
    assert found.verdict == 0
    assert kinds.count("rest") == sum(one["kind"] == "rest" for one in records_of(ledger)) > 0


def test_a_winner_whose_key_is_not_decided_goes_the_other_way(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    resumed = []
    resume = descent.Descent._resumed
    monkeypatch.setattr(
        descent.Descent, "_resumed", lambda *given: resumed.append(given[-1]) or resume(*given)
    )
    assert looked_into(ledger, data)[0].verdict == 0
    assert resumed == []
    monkeypatch.setattr(descent, "_WON_ERROR", 1 << 32)
    assert looked_into(ledger, data)[0].verdict == 0
    assert resumed
    assert all(resumed)  # the winner was due, not what is left


def test_numbers_that_are_not_near_enough_end_a_way_down(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    popped = []
    expand = straight.Straight._expand
    monkeypatch.setattr(
        straight.Straight, "_expand", lambda *given: popped.append(1) or expand(*given)
    )
    monkeypatch.setattr(descent, "usable", lambda gauge: False)
    found, _ = looked_into(ledger, data)
    assert found.verdict == 0
    assert len(popped) == found.checked["expansions"]
