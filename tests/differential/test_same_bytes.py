"""The same bytes over hash seeds and run after run; one automaton over orders of statements."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tcc_certs.formats.container import read_container
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

GRAMMARS = Path(__file__).parents[2] / "grammars"
NAMES = ("support_refund", "question_answering")
SOURCE_ORDER = ("core", "tools", "manifest")
HEAD = 'grammar shuffled version "1"'
STATEMENTS = [
    "tool a(k: 1 | 2 | 3) { cost 0.5 * k price k }",
    "tool b { cost 0.25 latency 2 s }",
    "tool c(m: x | y) : raw -> text",
    "tool d : text -> raw { price 2 }",
    "rule r = a b? | c d",
    "rule s = (r | b){1,3}",
    "plan = s & any* - a(k=2) b",
    "start raw",
    "goal raw | text",
    "limit depth <= 5",
    "limit price <= 6",
    "limit count(a) <= 2",
    "before d require b",
    "before c require no a(k = 3)\nbefore a(k = 3) require no c",
    "before b require no b since any - b",
    "accept b",
    "expect max_depth <= 5",
]
SCRIPT = """
import hashlib, sys
from pathlib import Path
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tcc_runtime.ledger.sinks import MemorySink
for name in sys.argv[1:]:
    data = compile_file(Path(name), Options(tilt=4)).artifact
    sink = MemorySink()
    for race in ("coupled", "rest"):
        settings = Settings(seed=bytes(32), race=race, top=4)
        search(load(data), settings, Recorder(sink, started_ms=1))
    print(hashlib.sha256(data).hexdigest(), hashlib.sha256(sink.data).hexdigest())
"""


def digests(hash_seed: int) -> str:
    paths = [str(GRAMMARS / f"{name}.tcg") for name in NAMES]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *paths],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("many", [6, pytest.param(100, marks=pytest.mark.campaign)])
def test_hash_seeds_give_the_same_artifact_and_ledger(many: int) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = set(pool.map(digests, range(1, many + 1)))
    assert len(found) == 1
    assert len(found.pop().splitlines()) == len(NAMES)


def test_shuffled_statements_give_the_same_automaton() -> None:
    # The core and its tools are in the order of the source; nothing else depends on it.
    rng = random.Random(7)
    found = set()
    for _ in range(20):
        order = rng.sample(STATEMENTS, len(STATEMENTS))
        compiled = compile_text("\n".join([HEAD, *order]), Options())
        assert compiled.artifact is not None, compiled.diagnostics
        columns = sorted(read_container(compiled.artifact).items())
        found.add(
            tuple([(name, bytes(one.data)) for name, one in columns if name not in SOURCE_ORDER])
        )
    assert len(found) == 1
