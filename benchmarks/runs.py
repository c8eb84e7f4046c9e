"""Many runs over one artifact: in one process, and in two processes at the same time.

Wall clock.  On a busy machine two processes get less than two processors.  So the table also has
the gain of two processes that only count, at about the same time, as the best possible gain.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.layered import kept
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.pool import RunRequest, runs
from tcc_runtime.settings.settings import Settings

GRAMMARS = Path(__file__).parents[1] / "grammars"
REPEATS = 3
COUNT = "n = 0\nfor i in range(5_000_000): n += i"
COLUMNS = (
    "artifact",
    "states",
    "runs",
    "1 process, s",
    "2 processes, s",
    "gain (goal 1.8)",
    "gain of plain counting",
)


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    data = compile_file(GRAMMARS / "coding_agent.tcg", Options(beta="1")).artifact
    if data is None:
        raise ValueError("the grammar is refused")
    yield row("coding_agent, top 16", load(data), 800, 16)
    yield row("10^6 states, top 1", load(kept(1_000_000, 24), verify=False), 100, 1)


def row(name: str, artifact: Artifact, count: int, top: int) -> str:
    """Return the row of one artifact; both ways take turns, so that other work affects both."""
    pairs = [
        (_runs(artifact, count, top, 1), _runs(artifact, count, top, 2), _counting())
        for _ in range(REPEATS)
    ]
    one, two = median(p[0] for p in pairs), median(p[1] for p in pairs)
    gain, counting = median(p[0] / p[1] for p in pairs), median(p[2] for p in pairs)
    cells = [name, artifact.manifest.states, count, f"{one:.2f}", f"{two:.2f}"]
    return f"| {' | '.join(map(str, cells))} | {gain:.2f} | {counting:.2f} |"


def _runs(artifact: Artifact, count: int, top: int, processes: int) -> float:
    asked = (
        RunRequest(settings=Settings(seed=number.to_bytes(32, "little"), top=top))
        for number in range(count)
    )
    begin = time.perf_counter()
    for _ in runs(artifact, asked, processes=processes):
        pass
    return time.perf_counter() - begin


def _counting() -> float:
    """Return how many times faster two processes count in parallel than one after the other."""
    command = [sys.executable, "-c", COUNT]
    begin = time.perf_counter()
    for _ in range(2):
        subprocess.run(command, check=True)
    middle = time.perf_counter()
    for child in [subprocess.Popen(command) for _ in range(2)]:
        child.wait()
    return (middle - begin) / (time.perf_counter() - middle)
