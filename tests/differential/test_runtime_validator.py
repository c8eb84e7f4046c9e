"""What the runtime writes, the validator passes, and upholds as far as the run claims."""

from __future__ import annotations

import json
import random

import pytest

from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, free_core, random_rows


def recorded(data: bytes, salt: int = 0, on_expand=None, recorder=None, **settings):
    ledger = MemorySink()
    seed = salt.to_bytes(32, "big")
    run = search(
        load(data),
        Settings(**{"seed": seed, "race": "coupled", **settings}),
        Recorder(ledger, started_ms=1_700_000_000_000 + salt, **(recorder or {})),
        on_expand,
    )
    return run, bytes(ledger.data)


def artifact(number: int) -> bytes:
    rng = random.Random(number)
    calls = rng.randint(1, 4)
    costs = [rng.randrange(-(10**8), 2 * 10**9) for _ in range(calls)]
    rows = random_rows(rng, calls, rng.randint(1, 4), 3)
    return build(free_core(costs, 12), rows, rng.choice(("1", "3.25")), rng.choice((0, 6, 8)))


def passes(run, ledger: bytes, data: bytes, **given) -> None:
    found = validate(ledger, data, **given)
    assert (found.verdict, found.findings) == (0, ())
    assert found.claim_type == run.claim_type
    assert found.claim_upheld == (run.claim_type == "RunWiseExact")
    assert found.head == run.ledger_head
    assert found.checked["expansions"] == run.expansions
    assert found.checked["leaves"] == run.leaves


both = pytest.mark.parametrize("race", ["coupled", "rest"])


@both
@pytest.mark.parametrize("recipe", ["r1", "r2"])
@pytest.mark.parametrize("number", range(8))
def test_certified_runs(number, recipe, race):
    data = artifact(number)
    for salt, top in enumerate((1, 2, 50)):
        run, ledger = recorded(data, salt, top=top, recipe=recipe, race=race)
        assert run.claim_type == "RunWiseExact"
        passes(run, ledger, data)


@both
@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_runs_that_a_cap_ends(cap, race):
    for number in range(4):
        data = artifact(number)
        run, ledger = recorded(data, top=3, max_expansions=cap, race=race)
        passes(run, ledger, data)


@both
@pytest.mark.parametrize("after", [1, 2, 4])
def test_runs_that_a_person_ends(after, race):
    for number in range(4):
        data = artifact(number)
        run, ledger = recorded(data, on_expand=lambda p: p.expansions >= after, top=9, race=race)
        passes(run, ledger, data)


@both
@pytest.mark.parametrize(
    ("alpha", "eta"), [("0.1", "0.5"), ("0.9", "0.9"), ("123456789012.5", "0.000001")]
)
def test_runs_with_a_potential(alpha, eta, race):
    fired = set()
    for number in range(6):
        data = artifact(number)
        run, ledger = recorded(data, alpha=alpha, eta=eta, top=3, race=race)
        fired.update(run.guards)
        passes(run, ledger, data)
    assert ("AcyclicityFail" in fired) == (alpha != "0.1")


def test_a_withheld_seed_is_handed_to_the_validator():
    data = artifact(1)
    run, ledger = recorded(data, 5, recorder={"withhold": True}, opening_salt=bytes(range(32)))
    close = json.loads(ledger.splitlines()[-1])
    assert "seed" not in close
    assert "opening_salt" not in close
    assert validate(ledger, data).verdict == 2
    seed = (5).to_bytes(32, "big")
    passes(run, ledger, data, seed=seed, opening_salt=bytes(range(32)))
