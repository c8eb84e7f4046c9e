"""The validator compared with the run: the cost of writing and of verifying a ledger.

Processor times in one process, run and validation in turn, medians of five.  The ledger is in
memory, and the tables of the artifact exist from an earlier run.  The last row is a ledger of the
size in the paper, about 203 appends.

The second table has the validator's memory: the peak of its allocations beyond the artifact and its
tables.  There the ledger is read from a file in pieces of 64 KiB.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

from benchmarks.search import grammar
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import Validation, validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.process import collection_put_off
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

# Depth, uses, race and k.  The third has 10^5 nodes.  The second and the fifth have frontiers of
# similar sizes, and the fifth has more than three times as many records.
CASES = (
    (64, (12, 12), "coupled", 1),
    (64, (12, 12), "coupled", 16),
    (64, (12, 12), "coupled", 128),
    (64, (12, 12), "rest", 1),
    (64, (12, 12), "rest", 256),
    (16, (), "coupled", 1),
)
COLUMNS = (
    "depth", "race", "k", "records", "nodes", "bytes a record", "bytes a node",
    "run, us a record", "validate, us a record", "ratio", "validate, ms",
)  # fmt: skip
MEMORY_COLUMNS = (
    "depth", "race", "k", "records", "frontier at the end", "peak, KiB", "bytes a frontier item",
    "bytes a record",
)  # fmt: skip
_CHUNK = 1 << 16
Action: TypeAlias = "Callable[[], object]"


def table() -> Iterator[str]:
    """Yield the rows of both tables, in Markdown."""
    yield from _header(COLUMNS)
    memory: list[str] = []
    for depth, uses, race, k in CASES:
        data = compile_text(grammar(depth, uses), Options(beta="4", tilt=12)).artifact
        if data is None:
            yield f"| {depth} | refused |"
            continue
        artifact, checked = load(data), check(data)
        settings = Settings(seed=bytes(range(32)), top=k, race=race)

        def run(artifact=artifact, settings=settings) -> bytes:
            sink = MemorySink()
            search(artifact, settings, Recorder(sink, started_ms=0))
            return bytes(sink.data)

        ledger, found = run(), validate(run(), checked)
        writing, reading, ratio = medians(
            run, lambda ledger=ledger, checked=checked: read(ledger, checked)
        )
        if found.verdict:
            yield f"| {depth} | not valid: {found.summary} |"
            continue
        size, nodes = found.checked["records"], found.checked["nodes"]
        each = f"{1e6 * writing / size:.1f} | {1e6 * reading / size:.1f} | {ratio:.2f}"
        what = f"{depth} | {race} | {k} | {size}"
        bytes_ = f"{nodes} | {len(ledger) / size:.0f} | {len(ledger) / nodes:.0f}"
        yield f"| {what} | {bytes_} | {each} | {1000 * reading:.1f} |"
        left = frontier(ledger)
        peak = peak_memory(ledger, checked)
        if left > 1000:
            memory.append(
                f"| {what} | {left} | {peak / 1024:.0f} | {peak / left:.0f} | {peak / size:.0f} |"
            )
    yield ""
    yield from _header(MEMORY_COLUMNS)
    yield from memory


def read(ledger: bytes, checked: CheckedArtifact) -> Validation:
    """Validate as `tcc validate` does: with garbage collection of cycles put off, as in a run."""
    with collection_put_off(True):
        return validate(ledger, checked)


def _header(columns: tuple[str, ...]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"


def frontier(ledger: bytes) -> int:
    """Return the number of items that were pushed and not popped."""
    number = {
        kind: ledger.count(b'"kind":"%b"' % kind)
        for kind in (b"node", b"rest", b"expand", b"draw", b"leaf")
    }
    pushed = number[b"node"] + number[b"rest"]
    return pushed - number[b"expand"] - number[b"draw"] - number[b"leaf"]


class _File:
    """The bytes of a file in pieces; each iteration starts at the beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as handle:
            while chunk := handle.read(_CHUNK):
                yield chunk


def peak_memory(ledger: bytes, checked: CheckedArtifact) -> int:
    """Return the peak of the bytes that a validation of a file allocates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(ledger)
        tracemalloc.start()
        try:
            validate(_File(path), checked)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def medians(run: Action, validation: Action) -> Sequence[float]:
    """Return the medians of the processor times of both, and of their ratio."""
    rows = []
    for action in (run, validation):
        action()
    for _ in range(5):
        times = []
        for action in (run, validation):
            started = time.process_time()
            action()
            times.append(time.process_time() - started)
        rows.append((*times, times[1] / times[0]))
    return [median(column) for column in zip(*rows, strict=True)]
