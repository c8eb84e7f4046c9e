"""Runs in which a guard or the stop rule was passed over are refused where it was."""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import check
from tcc_certs.replay import validate as told
from tcc_experiments.evidence import q64_of
from tests.differential.test_runtime_validator import artifact, recorded
from tests.oracle_ledger.writer import chained, with_run_id
from tests.runtime.graphs import build, free_core, random_rows


def records_of(ledger: bytes) -> list[dict]:
    found = [json.loads(line) for line in ledger.splitlines()]
    return [{name: value for name, value in record.items() if name != "~"} for record in found]


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
            found = told(chained(with_top(records, top)), data)
            assert found.verdict == 1
            assert len(found.findings) == 1


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
            resumed = {"kind": "recovered", "dropped_bytes": 1, "records": at}
            forged = chained([*records[:at], resumed, *records[end:]])
            found = told(forged, data)
            assert (found.verdict, found.findings[0].line) == (1, at + 2)
            seen += 1
    assert seen > 5
