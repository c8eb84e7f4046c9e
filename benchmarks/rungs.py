"""The middle rung of number types: runs with a ledger, by fixed-size integers or by MPFR alone.

A recorded run publishes every key, so floats are not enough.  Without the middle rung MPFR would
compute every number.  Both take turns and must write the same ledgers. Processor times in
milliseconds, medians over seeds; tables are made before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.measure import head, row
from benchmarks.search import grammar
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.numbers.ladder import Numbers
from tcc_runtime.run import Engine, search
from tcc_runtime.settings.settings import Race, Settings

CASES = ((8, (2, 2, 2, 2)), (32, (5, 5)), (64, (12, 12)))
RUNS = {1: 15, 16: 5, 256: 2}
RACES: tuple[Race, ...] = ("coupled", "rest")


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head("states", "depth", "k", "race", "fixed size", "MPFR", "the middle rung gains")
    for depth, uses in CASES:
        compiled = compile_text(grammar(depth, uses), Options(beta="4", tilt=12)).artifact
        if compiled is None:
            raise ValueError("the grammar is refused")
        artifact = load(compiled)
        for k, runs in RUNS.items():
            for race in RACES:
                fixed, mpfr, gain = compared(artifact, race, k, runs)
                times = f"{1000 * fixed:.2f}", f"{1000 * mpfr:.2f}"
                yield row(artifact.manifest.states, depth, k, race, *times, f"{gain:.2f}x")


def compared(artifact: Artifact, race: Race, k: int, runs: int) -> tuple[float, float, float]:
    """Return the seconds with either rung, and the median of the ratios of the pairs."""
    pairs = []
    for seed in range(-1, runs):  # the first run makes the tables and is not counted
        settings = Settings(seed=(seed % 2**32).to_bytes(32, "big"), top=k, race=race)
        fixed, lines = recorded(artifact, settings, "fixed")
        mpfr, others = recorded(artifact, settings, "mpfr")
        if lines != others:
            raise ValueError("the ledgers differ")
        pairs.append((fixed, mpfr))
    pairs = pairs[1:]
    ratios = [mpfr / fixed for fixed, mpfr in pairs]
    return median(p[0] for p in pairs), median(p[1] for p in pairs), median(ratios)


def recorded(artifact: Artifact, settings: Settings, numbers: Numbers) -> tuple[float, bytes]:
    """Return the seconds of a run with a ledger, and the ledger."""
    sink = MemorySink()
    begin = time.process_time()
    search(artifact, settings, Recorder(sink, started_ms=0), engine=Engine(numbers=numbers))
    return time.process_time() - begin, bytes(sink.data)
