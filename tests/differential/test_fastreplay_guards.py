"""Where a guard or an auditor's wish is in the way, the definition takes over, and tells all."""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import check
from tcc_certs.replay import validate as by_definition
from tcc_experiments.q64 import q64_of
from tcc_runtime.fastreplay import estimates, pushed, shortcut
from tests.differential.test_fastreplay import looked_into, validate
from tests.differential.test_runtime_validator import artifact, recorded
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.graphs import build, free_core, random_rows


def records_of(ledger: bytes) -> list[dict]:
    found = [json.loads(line) for line in ledger.splitlines()]
    return [{name: value for name, value in record.items() if name != "~"} for record in found]


def told(ledger: bytes, data: bytes, **given):
    """The validation, which is the definition's."""
    found = validate(ledger, data, **given)
    assert by_definition(ledger, data, **given) == found
    return found


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_beyond_its_cap_is_refused_at_the_first_expansion_too_many(race):
    data = artifact(3)
    run, ledger = recorded(data, 1, top=5, race=race, max_expansions=1000)
    head, *body = records_of(ledger)
    assert told(ledger, data).verdict == 0
    expands = [at for at, record in enumerate([head, *body]) if record["kind"] == "expand"]
    for cap in range(1, run.expansions):
        forged = with_run_id({**head, "run_limits": {"max_expansions": cap}})
        found = told(chained([forged, *body]), data)
        assert (found.verdict, found.findings[0].code) == (1, Code.GUARD)
        assert found.findings[0].line == expands[cap] + 1


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_a_search_that_goes_on_past_the_stop_rule_is_refused(number, race):
    data = artifact(number)
    for salt in range(3):
        run, ledger = recorded(data, salt, top=4, race=race)
        head, *body = records_of(ledger)
        for top in range(1, len(run.plans)):
            found = told(chained([with_run_id({**head, "top": top}), *body]), data)
            assert found.verdict == 1


def with_top(records: list[dict], top: int) -> list[dict]:
    """The records of a run for more plans, its leaves with the incumbents that `top` gives."""
    head, *body = records
    values: list[tuple[int, str]] = []
    found = [with_run_id({**head, "top": top})]
    for record in body:
        record = dict(record)
        if record["kind"] == "leaf":
            values.append((q64_of(record["V"]), record["V"]))
            values.sort(reverse=True)
            record.pop("incumbent", None)
            if len(values) >= top:
                record["incumbent"] = values[top - 1][1]
        found.append(record)
    return found


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_a_search_that_goes_on_past_its_own_incumbent_is_refused_at_the_next_pop(number, race):
    data = artifact(number)
    for salt in range(3):
        run, ledger = recorded(data, salt, top=4, race=race)
        records = records_of(ledger)
        for top in range(1, len(run.plans)):
            forged = with_top(records, top)
            found, kinds = looked_into(chained(forged), data)
            assert found == by_definition(chained(forged), data)
            assert found.verdict == 1
            # The shortcut has passed all that comes before.
            assert "leaf" not in kinds[:-1]


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_that_passes_over_its_limit_on_counts_is_refused(race):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race, count_bits=64)
    head, *body = records_of(ledger)
    assert told(ledger, data).verdict == 0
    found = told(chained([with_run_id({**head, "count_bits": 1}), *body]), data)
    assert (found.verdict, found.findings[0].code) == (1, Code.GUARD)


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_kappa_beside_handed_in_counts_is_that_of_the_whole_replay(race):
    rng = random.Random(5)
    core, rows = free_core([10**8, 9 * 10**8, 10**9], 12), random_rows(rng, 3, 4, 3)
    rounded, exact = build(core, rows, "1", 4, round_counts=2), build(core, rows, "1", 4)
    _, ledger = recorded(rounded, 1, top=5, race=race)
    found = told(ledger, rounded, counts=check(exact))
    assert found.verdict == 0
    assert found.kappa["nodes"] > 0
    assert found.kappa["tightened"] > 0


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_children_left_out_behind_a_recovery_are_missed(race):
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
            found = told(forged, data)
            assert (found.verdict, found.findings[0].line) == (1, at + 2)
            seen += 1
    assert seen > 5


def test_numbers_that_are_not_near_enough_send_every_draw_the_other_way(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    monkeypatch.setattr(shortcut, "GREATEST", 0)
    found, kinds = looked_into(ledger, data)
    assert found.verdict == 0
    for kind in ("expand", "draw"):
        due = sum(record["kind"] == kind for record in records_of(ledger))
        assert kinds.count(kind) == due > 0


def test_a_leaf_whose_uniform_an_estimate_leaves_open_has_the_definitions(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    monkeypatch.setattr(shortcut, "_POINT", 64)  # two multiples of 2^-64 are always enclosed
    asked = []
    exact = shortcut._exact_leaf_uniform
    monkeypatch.setattr(
        shortcut, "_exact_leaf_uniform", lambda leaf: asked.append(leaf) or exact(leaf)
    )
    found, kinds = looked_into(ledger, data)
    assert found.verdict == 0
    assert kinds == ["open", "node", "close"]
    assert len(asked) == sum(one["kind"] == "leaf" for one in records_of(ledger)) > 0


def widened(monkeypatch, units: int) -> None:
    """What is pushed is taken to be so many units less certain than its parent, or more."""
    for module in (estimates, pushed):
        monkeypatch.setattr(module, "SLACK", units)


def test_what_is_left_of_a_node_and_left_open_has_the_definitions_numbers(monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race="rest")
    widened(monkeypatch, 1 << 36)
    found, kinds = looked_into(ledger, data)
    assert found == by_definition(ledger, data)
    assert found.verdict == 0
    assert kinds == ["open", "node", "close"]


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_number_left_open_leaves_the_errors_of_the_others_as_they_are(race, monkeypatch):
    wide = 1 << 28  # leaves some roundings open, and most of them not
    widened(monkeypatch, wide)
    exact, pushes = [], []
    estimated = pushed.estimated
    monkeypatch.setattr(
        pushed, "estimated", lambda arrival: exact.append(estimated(arrival)) or exact[-1]
    )
    push = pushed.heappush
    monkeypatch.setattr(
        pushed, "heappush", lambda heap, entry: pushes.append(entry) or push(heap, entry)
    )
    for number in range(8):
        data = artifact(number)
        for salt in range(4):
            _, ledger = recorded(data, salt, top=8, race=race)
            assert validate(ledger, data) == by_definition(ledger, data)
    errors = [entry[6] for entry in pushes if entry[5:] not in exact]
    assert min(errors) >= wide
    assert min(len(exact), len(errors)) > 20
