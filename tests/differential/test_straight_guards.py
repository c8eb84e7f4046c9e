"""Where a guard or an auditor's wish is in the way, records do not go straight, and all is told."""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import check
from tcc_certs.replay import steps, validate
from tests.differential.test_runtime_validator import artifact, recorded
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
    assert run.expansions > 3
    forged = with_run_id({**head, "run_limits": {"max_expansions": run.expansions - 2}})
    found = told(chained([forged, *body]), data, monkeypatch)
    expands = [at for at, record in enumerate([head, *body]) if record["kind"] == "expand"]
    assert (found.verdict, found.findings[0].code) == (1, Code.GUARD)
    assert found.findings[0].line == expands[-2] + 1


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
