"""Runs over costs that are ranges: what the runtime writes, the validator passes, in every mode."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.ranged import Unreliable, ranged_artifact, ranged_settings

STARTED = 1_700_000_000_000
RUNS = 70


def recorded(data: bytes, quoter, withhold: bool = False, **told):
    """A run and its ledger."""
    sink, settings = MemorySink(), Settings(**{"seed": bytes(32), **told})
    recorder = Recorder(sink, started_ms=STARTED, withhold=withhold)
    run = search(load(data), settings, recorder, quoter=quoter)
    return run, bytes(sink.data)


def agree(number: int) -> Counter:
    """One random run; what happened in it."""
    rng = random.Random(number)
    data = ranged_artifact(rng)
    quoter = Unreliable(rng) if rng.random() < 0.9 else None
    told = ranged_settings(rng, load(data), quoter is not None)
    run, ledger = recorded(data, quoter, seed=rng.randbytes(32), **told)
    found = validate(ledger, data)
    assert (found.verdict, found.findings) == (0, ()), (number, told)
    assert found.claim_type == run.claim_type
    assert found.head == run.ledger_head
    records = [json.loads(line) for line in ledger.splitlines()]
    close = records[-1]
    assert close["law"] == run.law
    assert [plan["cost"] for plan in close["plans"]] == [plan.cost for plan in run.plans]
    seen = Counter(record["kind"] for record in records)
    assert seen["refine"] == len(quoter.asked if quoter else ())
    assert close["price_spent"] == str(run.spent.price)
    if run.claim_type != "NoCert":
        assert all(plan.cost_high is None for plan in run.plans)
    return seen + Counter([*run.guards, run.claim_type, run.law, run.mode])


@pytest.mark.parametrize("first", range(0, 4 * RUNS, RUNS))
@pytest.mark.sampled(2)
def test_runtime_and_validator_agree_on_random_runs(first):
    seen = sum((agree(number) for number in range(first, first + RUNS)), Counter())
    expected = (
        "refine", "requeue", "budget", "downgrade", "rest", "draw", "RangeFail", "BudgetFail",
        "CountFail", "CapExceeded", "run_wise_only", "softmax", "RunWiseExact", "NoCert",
        "RunWiseSurrogate", "TruncationOnly", "fallback",
    )  # fmt: skip
    assert [name for name in expected if not seen[name]] == []


@pytest.mark.campaign
def test_runtime_and_validator_agree_on_random_runs_campaign():
    seen = sum((agree(number) for number in range(10**6, 10**6 + 20000)), Counter())
    print(dict(seen))
