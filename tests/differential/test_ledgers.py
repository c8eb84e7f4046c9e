"""Runtime against validator: every ledger that a run writes is valid, and is the reference's.

Any mode, race and key policy over artifacts of every kind.  The runtime and the reference writer
share formats; the search, the race and the arithmetic of the two have nothing in common, and the
validator has its own of all three.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import QUICKEST, Engine, search
from tcc_runtime.settings.settings import Settings
from tests.oracle.build import build
from tests.oracle.cores import random_core
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.upper import drawn_upper
from tests.oracle_ledger.writer import reference_ledger

STARTED = 1_700_000_000_000


def runtime_ledger(
    artifact: Artifact, *, withhold: bool = False, engine: Engine = QUICKEST, **told: Any
) -> bytes:
    sink = MemorySink()
    search(
        artifact,
        Settings(**{"race": "coupled", **told}),
        Recorder(sink, started_ms=STARTED, withhold=withhold),
        engine=engine,
    )
    return bytes(sink.data)


def drawn(rng: random.Random) -> tuple[CheckedArtifact, Artifact]:
    """One random artifact with exact counts, as the kernel and as the runtime has it."""
    while True:
        core, read = random_core(rng)
        words = plans(read, 4)
        if 1 <= len(words) <= 300:
            beta = rng.choice(["0", "0.5", "1", "3.25", "0.001"])
            data = build(core, words, beta=beta, tilt=rng.choice([0, 1, 8, 16, 40]))
            return check(data), load(data)


def settings(rng: random.Random, checked: CheckedArtifact) -> dict[str, Any]:
    """Settings of a run over this artifact, of every mode that it allows."""
    manifest = checked.file.manifest
    modes = ["surrogate", "surrogate", "fallback"] + ["exact"] * 2 * (manifest.counts == "exact")
    told: dict[str, Any] = {
        "seed": rng.randbytes(32),
        "mode": rng.choice(modes),
        "top": rng.choice([1, 1, 2, 3, 10, 1000]),
        "recipe": rng.choice(["r1", "r2"]),
    }
    if told["mode"] != "fallback":
        told["keys"] = rng.choice(["finalized", "anchored"])
        if rng.random() < 0.3:
            told["truncate"] = rng.randint(0, 4)
    if told["mode"] == "surrogate":
        told["inflate"] = rng.choice(["1", "1.7", "3", "1.000001", "12345.678"])
        if manifest.tilt == 0 and rng.random() < 0.5:
            told |= {"race": "literal", "keys": "anchored"}
            told.pop("truncate", None)
    if told["mode"] != "fallback" and told.get("race") != "literal" and rng.random() < 0.4:
        told |= {"race": "rest", "keys": "finalized"}
    if rng.random() < 0.3:
        told["max_expansions"] = rng.randint(1, 6)
    if rng.random() < 0.3:
        told["alpha"], told["eta"] = rng.choice(["0.25", "1.5", "30"]), rng.choice(["1", "0.125"])
    if rng.random() < 0.2:
        told["count_bits"] = rng.randint(1, 40)
    if rng.random() < 0.3:
        told["tau"] = rng.choice(["0.5", "3", "0.0001"])
    if rng.random() < 0.2:
        told["beacon"] = rng.randbytes(rng.randint(1, 40))
    if rng.random() < 0.2:
        told["client_nonce"] = rng.randbytes(rng.randint(1, 40))
    return told


def reference(checked: CheckedArtifact, told: dict[str, Any]) -> bytes:
    named = {"client_nonce": "nonce"}
    told = {named.get(name, name): value for name, value in told.items()}
    return reference_ledger(checked, started_ms=STARTED, **told)


def agree(checked: CheckedArtifact, loaded: Artifact, told: dict[str, Any], seen: Counter) -> None:
    """Runtime and reference write one ledger, and it is valid."""
    written = runtime_ledger(loaded, **told)
    found = validate(written, checked)
    assert (found.verdict, found.findings) == (0, ()), told
    assert written == reference(checked, told), told
    seen[found.claim_type] += 1
    for what in (
        b'"dead_end"',
        b'"kind":"downgrade"',
        b'"phantom"',
        b'"tail_lse"',
        b'"race":"lit',
        b'"kind":"rest"',
        b'"kind":"draw"',
    ):
        seen[what] += what in written


def all_agree(rng: random.Random, grammars: int, runs: int) -> Counter:
    seen: Counter = Counter()
    for at in range(grammars):
        if at % 3 == 0:
            checked, loaded = drawn(rng)
        else:
            upper = drawn_upper(rng)
            checked, loaded = upper.checked, load(upper.data)
        for _ in range(runs):
            agree(checked, loaded, settings(rng, checked), seen)
    print(dict(seen))
    return seen


def test_every_ledger_of_the_runtime_is_valid_and_the_reference_s():
    seen = all_agree(random.Random(31), 60, 6)
    assert len(seen) == 11  # every claim, and every kind of record that is not in each ledger
    assert min(seen.values()) >= 5


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(30))
def test_every_ledger_of_the_runtime_is_valid_and_the_reference_s_campaign(part):
    all_agree(random.Random(3200 + part), 100, 10)  # 3,000 grammars and 30,000 runs in all


def test_a_withheld_seed_leaves_a_ledger_that_is_valid_with_it():
    rng = random.Random(33)
    for _ in range(10):
        checked, loaded = drawn(rng)
        seed = rng.randbytes(32)
        ledger = runtime_ledger(loaded, seed=seed, withhold=True)
        assert validate(ledger, checked).verdict == 2
        assert validate(ledger, checked, seed=seed).verdict == 0


def test_a_run_that_is_interrupted_is_valid_and_claims_nothing():
    loaded = load(_small_bytes())
    sink = MemorySink()
    recorder = Recorder(sink, started_ms=STARTED)
    search(
        loaded,
        Settings(seed=bytes(32), race="coupled", top=9),
        recorder,
        on_expand=lambda p: p.expansions == 2,
    )
    found = validate(bytes(sink.data), small())
    assert (found.verdict, found.claim_type, found.claim_upheld) == (0, "NoCert", False)


def test_a_run_out_of_time_is_valid_and_claims_nothing():
    ticks = iter(range(10**6))
    sink = MemorySink()
    told = Settings(seed=bytes(32), race="coupled", top=9, max_seconds=3)
    recorder = Recorder(sink, started_ms=STARTED)
    search(load(_small_bytes()), told, recorder, clock=lambda: next(ticks))
    found = validate(bytes(sink.data), small())
    assert b'"stop":"max_seconds"' in sink.data
    assert (found.verdict, found.claim_type) == (0, "NoCert")


def _small_bytes() -> bytes:
    from tcc_compiler.artifact import write_artifact

    file = small().file
    columns = {name: bytes(t.data) for name, t in file.columns.items() if name != "manifest"}
    return write_artifact(file.manifest, columns)
