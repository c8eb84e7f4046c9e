"""The validator beside the run: what a ledger costs to write and to verify.

Processor times in one process, medians of three; the ledger is kept in memory.  The last row is a
ledger of the size of the paper's: about 203 appends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import TypeVar

from benchmarks.search import grammar
from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.load import load
from tcc_runtime.recorder import Recorder
from tcc_runtime.search import search
from tcc_runtime.settings import Settings
from tcc_runtime.sinks import Memory

# depth, uses, race, k: the third is of 10^5 nodes
CASES = (
    (64, (12, 12), "coupled", 1),
    (64, (12, 12), "coupled", 16),
    (64, (12, 12), "coupled", 128),
    (64, (12, 12), "rest", 1),
    (64, (12, 12), "rest", 256),
    (16, (), "coupled", 1),
)
COLUMNS = (
    "depth", "race", "k", "records", "bytes a record", "run, us a record",
    "validate, us a record", "ratio", "validate, ms",
)  # fmt: skip
_Value = TypeVar("_Value")


def table() -> Iterator[str]:
    """The rows, Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for depth, uses, race, k in CASES:
        data = compile_text(grammar(depth, uses), Options(beta="4", tilt=12)).artifact
        if data is None:
            yield f"| {depth} | refused |"
            continue
        artifact, checked = load(data), check(data)
        settings = Settings(seed=bytes(range(32)), top=k, race=race)

        def run(artifact=artifact, settings=settings) -> bytes:
            sink = Memory()
            search(artifact, settings, Recorder(sink, started_ms=0))
            return bytes(sink.data)

        writing, ledger = timed(run)
        reading, found = timed(lambda ledger=ledger, checked=checked: validate(ledger, checked))
        if found.verdict:
            yield f"| {depth} | not valid: {found.summary} |"
            continue
        size = found.checked["records"]
        each = f"{1e6 * writing / size:.1f} | {1e6 * reading / size:.1f}"
        what = f"{depth} | {race} | {k} | {size} | {len(ledger) / size:.0f}"
        yield f"| {what} | {each} | {reading / writing:.2f} | {1000 * reading:.1f} |"


def timed(action: Callable[[], _Value]) -> tuple[float, _Value]:
    """The median processor time of `action`, and what it gave; it is done once before."""
    value = action()
    times = []
    for _ in range(3):
        started = time.process_time()
        value = action()
        times.append(time.process_time() - started)
    return median(times), value
