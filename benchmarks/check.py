"""The cost of checking an artifact: two kernels, compared with one SHA-256 over the same file.

Each row has its own process, so that its memory can be measured.  Figures are medians of processor
times, which other work on the machine affects less.  `equations` is the whole vectorised kernel,
with calls and documents, except for the digests of states and (while reading) of columns.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.layered import kept
from benchmarks.measure import peak
from tcc_certs import kernel as pure
from tcc_certs.formats.artifact import read_artifact
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file
from tcc_runtime.artifact.load import mapped
from tcc_runtime.fastcheck import kernel as fast

GRAMMARS = Path(__file__).parents[1] / "grammars"
RUNS = 3
COLUMNS = (
    "artifact",
    "states",
    "edges",
    "file, MB",
    "SHA-256, s",
    "fast: equations, s",
    "in SHA-256s (goal)",
    "column digests, s",
    "state digests, us a state (goal 1.5)",
    "memory in files (goal 3)",
    "pure, s",
    "pure, 10^6 edges/s (goal 1)",
)


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    yield row("10^6 states, 64-bit counts", kept(1_000_000, 24), 4)
    yield row("10^6 states, race counts of 8 limbs", kept(1_000_000, 35, tilt=12), 8)
    yield row("10^5 states, 64-bit counts", kept(100_000, 24), 4)
    for name in ("data_pipeline", "coding_agent"):
        path = kept(100_000, 24).with_name(f"{name}.tcca")
        data = compile_file(GRAMMARS / f"{name}.tcg", Options(beta="1")).artifact
        if data is None:
            raise ValueError(f"{name} is refused")
        path.write_bytes(data)
        yield row(name, path, None)


def row(name: str, path: Path, goal: int | None) -> str:
    """Return the row of one artifact; `goal` is a number of SHA-256s."""
    found = json.loads(_child("fast", path))
    slow = json.loads(_child("pure", path))
    times = found["total"] - found["digests"] - found["reading"]
    ratio = f"{times / found['sha256']:.1f}" + (f" ({goal})" if goal else "")
    cells = [
        name,
        found["states"],
        found["edges"],
        f"{found['bytes'] / 1e6:.1f}",
        f"{found['sha256']:.4f}",
        f"{times:.3f}",
        ratio,
        f"{found['reading']:.3f}",
        f"{found['digests'] / found['states'] * 1e6:.2f}",
        f"{found['memory'] / found['bytes']:.1f}",
        f"{slow['total']:.2f}",
        f"{found['edges'] / slow['total'] / 1e6:.2f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _child(kernel: str, path: Path) -> str:
    command = [sys.executable, "-m", "benchmarks.check", kernel, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _measure(which: str, path: Path) -> dict[str, float]:
    """Measure one kernel in this process, and return its figures."""
    before = peak()
    data = mapped(path)
    sha = [_time(lambda: hashlib.sha256(data).digest()) for _ in range(RUNS)]
    spent = [0.0]
    digested = fast.digested

    def timed(*arguments: object) -> bool:
        begin = time.process_time()
        held: bool = digested(*arguments)  # type: ignore[arg-type]
        spent[0] += time.process_time() - begin
        return held

    fast.digested = timed
    check: Callable[..., pure.CheckedArtifact] = fast.check if which == "fast" else pure.check
    reading = median(_time(lambda: read_artifact(data)) for _ in range(RUNS))
    totals, digests = [], []
    for _ in range(RUNS if which == "fast" or len(data) < 2e7 else 1):
        spent[0] = 0.0
        totals.append(_time(lambda: check(data)))
        digests.append(spent[0])
    manifest = read_artifact(data, digests=False).manifest
    return {
        "states": manifest.states,
        "edges": manifest.edges,
        "bytes": len(data),
        "sha256": median(sha),
        "total": median(totals),
        "digests": median(digests),
        "reading": reading,
        "memory": peak() - before,
    }


def _time(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], Path(sys.argv[2]))))
