"""PaM values: of each plan's own arrival, for ranking alone, and nothing else changes."""

from __future__ import annotations

from math import exp, expm1, isclose, log
from typing import Any

import pytest

from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, vec_core, vec_rows


@pytest.mark.parametrize("tau", ["1", "0.25", "40"])
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"race": "coupled"},
        {"race": "coupled", "keys": "anchored"},
        {"count_bits": 3},
        {"mode": "surrogate", "race": "literal", "keys": "anchored"},
    ],
    ids=str,
)
def test_the_value_is_that_of_the_plans_own_arrival(told: dict[str, Any], tau: str) -> None:
    artifact = load(build(vec_core(), vec_rows(), tilt=0 if "mode" in told else 8))
    beta = artifact.manifest.beta[0] / 10 ** artifact.manifest.beta[1]
    for number in range(10):
        settings = Settings(seed=bytes([number]) * 32, top=5, tau=tau, **told)
        ledgers = []
        for pam in (False, True):
            sink = MemorySink()
            run = search(artifact, settings, Recorder(sink, started_ms=7), pam=pam)
            ledgers.append(bytes(sink.data))
        assert ledgers[0] == ledgers[1]
        values = [float(plan.pam[0]) for plan in run.plans if plan.pam]
        for plan, value in zip(run.plans, values, strict=True):
            arrival = exp(-float(plan.value) - beta * float(plan.cost))
            gumbel = -log(-log(-expm1(-arrival)))
            assert isclose(value, gumbel / float(tau) + float(plan.value), abs_tol=1e-9)
        ranks = [plan.pam[1] for plan in run.plans if plan.pam]
        assert ranks == [1 + sum(other > value for other in values) for value in values]


@pytest.mark.parametrize("tau", ["1", "0.25"])
def test_in_fallback_it_is_the_value_that_the_plan_has(tau: str) -> None:
    artifact = load(build(vec_core(), vec_rows()))
    for number in range(10):
        settings = Settings(seed=bytes([number]) * 32, top=5, tau=tau, mode="fallback")
        run, plain = search(artifact, settings, pam=True), search(artifact, settings)
        assert [plan.pam for plan in run.plans] == [
            (plan.value, rank) for rank, plan in enumerate(run.plans, 1)
        ]
        assert [plan.value for plan in plain.plans] == [plan.value for plan in run.plans]
        assert [plan.pam for plan in plain.plans] == [None] * len(run.plans)
