"""The main job, step by step, on the shipped grammars and on a grammar with 10^64 plans.

Each figure is the median of five runs in one process, in seconds of wall clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TypeVar

from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_file, compile_text
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

GRAMMARS = Path(__file__).parents[1] / "grammars"
SEED = bytes(range(32))
RUNS = 5
COLUMNS = (
    "grammar",
    "plans",
    "states",
    "edges",
    "compile",
    "check",
    "check --core",
    "run, top 16",
    "expansions",
    "validate",
)
_Value = TypeVar("_Value")

ANY = 'grammar star version "1"\n{tools}\nlimit depth <= 60\n'.format(
    tools="\n".join(f"tool t{i} {{ cost 0.{i + 1:02d} }}" for i in range(12))
)


def timed(action: Callable[[], _Value]) -> tuple[float, _Value]:
    """Return the median time of `action`, and its last result."""
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        value = action()
        times.append(time.perf_counter() - started)
    return median(times), value


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    options = Options(beta="8")
    yield row("any* of 12 tools, depth 60", lambda: compile_text(ANY, options))
    for path in sorted(GRAMMARS.glob("*.tcg")):
        yield row(path.stem, lambda path=path: compile_file(path, options))


def row(name: str, compiling: Callable[[], Compiled]) -> str:
    """Return the row of one grammar through the whole job."""
    compile_time, compiled = timed(compiling)
    data = compiled.artifact
    if data is None:
        return f"| {name} | refused: {compiled.diagnostics[0].message} |"
    check_time, checked = timed(lambda: check(data))
    core_time, _ = timed(lambda: check_core(checked))
    artifact = load(data)
    settings = Settings(seed=SEED, top=16)

    def run() -> tuple[int, bytes]:
        sink = MemorySink()
        found = search(artifact, settings, Recorder(sink, started_ms=0))
        return found.expansions, bytes(sink.data)

    run_time, (expansions, ledger) = timed(run)
    validate_time, found = timed(lambda: validate(ledger, checked))
    if found.verdict:
        return f"| {name} | the ledger is not valid: {found.summary} |"
    plans = artifact.plans(artifact.root)
    sizes = f"{float(plans):.2g} | {artifact.manifest.states} | {artifact.manifest.edges}"
    times = f"{compile_time:.3f} | {check_time:.3f} | {core_time:.3f}"
    return f"| {name} | {sizes} | {times} | {run_time:.3f} | {expansions} | {validate_time:.3f} |"
