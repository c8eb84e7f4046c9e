"""The cost of opening an artifact for a run, compared with OpenFst's readers of the same automaton.

Medians of processor time, which other work on the machine affects less; the files are in the page
cache.  Resident memory is measured in a separate process after one run over the mapped, unverified
artifact, including the touched pages of the file.  OpenFst by pynini (extra ``[bench]``): the same
edges, with calls as labels and costs as weights, from files of a `ConstFst` and a `VectorFst`.
"""

from __future__ import annotations

import importlib
import json
import mmap
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from blake3 import blake3

from benchmarks.layered import FOLDER, kept
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

RUNS = 9
COLUMNS = (
    "states",
    "file, MB",
    "open, ms (goal 5)",
    "open, known digest, ms",
    "BLAKE3 of the file, ms",
    "open, all certificates, ms",
    "ConstFst, ms (goal 3x)",
    "VectorFst, ms (goal 100x)",
    "run after opening, ms",
    "states made",
    "resident, MB",
    "of it without an artifact",
)


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for states in (10_000, 100_000, 1_000_000):
        yield row(kept(states, 24), peers=states <= 100_000)


def row(path: Path, *, peers: bool) -> str:
    """Return the row of one artifact."""
    artifact = load(path, verify=False)
    digest = artifact.digest.hex()
    opened = _time(lambda: load(path, verify=False))
    const, vector = _peers(artifact) if peers else (None, None)
    ran = json.loads(_child(path))
    cells = [
        artifact.manifest.states,
        f"{path.stat().st_size / 1e6:.1f}",
        f"{opened:.2f}",
        f"{_time(lambda: load(path, checked=digest)):.1f}",
        f"{_time(lambda: _blake3(path)):.1f}",
        f"{_time(lambda: load(path), 3):.0f}",
        _beside(const, opened),
        _beside(vector, opened),
        f"{ran['ms']:.1f}",
        ran["made"],
        f"{ran['resident']:.0f}",
        f"{ran['before']:.0f}",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _time(action: Callable[[], object], runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return 1000 * median(times)


def _blake3(path: Path) -> bytes:
    with path.open("rb") as handle:
        return blake3(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)).digest()


def _beside(peer: float | None, ours: float) -> str:
    return "not measured" if peer is None else f"{peer:.2f} ({peer / ours:.1f}x)"


def _peers(artifact: Artifact) -> tuple[float | None, float | None]:
    """Return the milliseconds of reading the automaton as a ConstFst and as a VectorFst."""
    try:
        fst: Any = importlib.import_module("pywrapfst")
    except ImportError:
        return None, None
    names = [FOLDER / f"{artifact.manifest.states}.{kind}" for kind in ("const", "vector")]
    if not all(name.exists() for name in names):
        machine = _machine(fst, artifact)
        machine.write(str(names[1]))
        fst.convert(machine, "const").write(str(names[0]))
    const, vector = (_time(lambda name=name: fst.Fst.read(str(name))) for name in names)
    return const, vector


def _machine(fst: Any, artifact: Artifact) -> Any:
    machine = fst.VectorFst()
    machine.add_states(artifact.manifest.states)
    machine.set_start(artifact.root)
    for q in range(artifact.manifest.states):
        if artifact.accepts(q):
            machine.set_final(q)
        for call, target in artifact.edges(q):
            weight = fst.Weight(machine.weight_type(), artifact.cost_low[call] / 1e9)
            machine.add_arc(q, fst.Arc(call + 1, call + 1, weight, target))
    return machine


def _child(path: Path) -> str:
    command = [sys.executable, "-m", "benchmarks.load", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _resident() -> float:
    """Return the resident memory of this process in megabytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def _run(path: Path) -> dict[str, float]:
    before = _resident()
    artifact = load(path, verify=False)
    begin = time.process_time()
    search(artifact, Settings(seed=bytes(32)))
    spent = time.process_time() - begin
    made = sum(getattr(kept_, "size", 0) for kept_ in artifact.kept.values())
    return {"ms": 1000 * spent, "made": made, "resident": _resident(), "before": before}


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]))))
