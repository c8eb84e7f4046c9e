"""A batch in shards by engine: runs per second, and validations of its ledgers per second.

Wall clock, including the start of processes or of a cluster.  The engines take turns, and must
write the same bytes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import tcc
from tcc_runtime.settings.settings import Settings

GRAMMARS = Path(__file__).parents[1] / "grammars"
RUNS, TOP, SHARD, REPEATS = 200, 4, 25, 1
ENGINES: dict[str, dict[str, Any]] = {
    "1 process": {"processes": 1},
    "2 processes": {"processes": 2},
    "Dask, local, 2 workers": {"dask": "local", "processes": 2},
}
COLUMNS = ("engine", "parts", "runs a second", "validations a second")


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tcc.save(tcc.compile_file(GRAMMARS / "coding_agent.tcg", beta="1"), folder / "a.tcca")
        for form in ("ndjson", "parquet"):
            measured = [_round(folder, form, turn) for turn in range(REPEATS)]
            for engine in ENGINES:
                figures = [median(turn[engine][at] for turn in measured) for at in range(2)]
                cells = [engine, form, *(f"{RUNS / seconds:.0f}" for seconds in figures)]
                yield f"| {' | '.join(cells)} |"


def _round(folder: Path, form: Any, turn: int) -> dict[str, tuple[float, float]]:
    """Return the seconds of making and of validating a batch, by engine."""
    artifact = tcc.load(folder / "a.tcca")
    asked = [Settings(seed=number.to_bytes(32, "little"), top=TOP) for number in range(RUNS)]
    more: dict[str, Any] = {"part_format": form, "shard_size": SHARD, "started_ms": 0}
    found: dict[str, tuple[float, float]] = {}
    written: set[tuple[bytes, ...]] = set()
    for number, (engine, by) in enumerate(ENGINES.items()):
        out = folder / f"{form}-{turn}-{number}"
        begin = time.perf_counter()
        tcc.batch(artifact, asked, out, **more, **by)
        seconds = [time.perf_counter() - begin]
        begin = time.perf_counter()
        report = tcc.validate_batch(out, folder / "a.tcca", **by)
        seconds.append(time.perf_counter() - begin)
        if report.verdicts != {"VALID": RUNS}:
            raise ValueError(f"{engine}: {report.verdicts}")
        written.add(tuple(path.read_bytes() for path in sorted(out.glob("part-*"))))
        found[engine] = seconds[0], seconds[1]
    if len(written) != 1:
        raise ValueError("the engines made different bytes")
    return found
