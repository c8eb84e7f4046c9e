"""How the cost grows with the minimal automaton: time, memory, and a picture of both.

Each size is compiled to the file in a separate process, so that its peak memory can be measured.
OpenFst processes the same sizes.  The picture is written to ``benchmarks/growth.svg``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.family import Shape, shape
from benchmarks.measure import head, machine, peak, row

PICTURE = Path(__file__).with_name("growth.svg")
SHAPES = (
    shape(12, 6, 4, 16, 40, 2),
    shape(12, 8, 6, 22, 58, 2),
    shape(12, 10, 8, 30, 80, 3),
    shape(12, 14, 12, 40, 112, 3),
    shape(12, 18, 16, 50, 160, 3),
    shape(12, 26, 22, 74, 250, 3),
    shape(12, 36, 30, 100, 370, 4),
)
# Colours that everybody can distinguish (Okabe and Ito), and different marks.
_STYLES = (("#0072B2", "o"), ("#009E73", "s"), ("#D55E00", "^"))


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown; write the picture."""
    yield machine()
    yield ""
    yield from head("states", "edges", "automaton, s", "file, s", "us a state", "peak, MB",
                    "OpenFst, s", "us a state")  # fmt: skip
    found = []
    for one in SHAPES:
        ours, theirs = _apart(one, "ours"), _apart(one, "OpenFst")
        if ours["states"] != theirs["states"]:
            raise ValueError(f"{ours} and {theirs}")
        states = ours["states"]
        found.append((states, ours["automaton"], ours["file"], theirs["OpenFst"]))
        yield row(
            states, ours["edges"], f"{ours['automaton']:.3f}", f"{ours['file']:.3f}",
            f"{ours['file'] / states * 1e6:.1f}", ours["peak"], f"{theirs['OpenFst']:.3f}",
            f"{theirs['OpenFst'] / states * 1e6:.1f}",
        )  # fmt: skip
    draw(found)


def _apart(one: Shape, which: str) -> dict[str, Any]:
    """Return the result of :func:`measured` in a new process."""
    numbers = [one.tools, one.gather, one.steps, one.depth, one.price, one.uses]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", which, *map(str, numbers)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(which: str, one: Shape) -> dict[str, Any]:
    """Return processor seconds, the better of two runs, and the peak memory in megabytes."""
    if which == "OpenFst":
        from benchmarks import openfst

        seconds, fst = _best(lambda: openfst.best_order(one))
        return {"states": fst.num_states(), "OpenFst": seconds}
    from benchmarks.compile import UNCHECKED, core_bytes, minimal, written
    from tcc_certs.formats.artifact import read_artifact
    from tcc_certs.policy.reader import read_core

    data = core_bytes(one)
    core = read_core(data)
    automaton = _best(lambda: minimal(core))[0]
    with tempfile.TemporaryDirectory() as folder:
        file, artifact = _best(lambda: written(data, UNCHECKED, Path(folder, "family.tcca")))
    most = peak() >> 20
    manifest = read_artifact(artifact, digests=False).manifest
    return {
        "states": manifest.states,
        "edges": manifest.edges,
        "automaton": automaton,
        "file": file,
        "peak": most,
    }


def _best(program: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(2):
        started = time.process_time()
        result = program()
        times.append(time.process_time() - started)
    return min(times), result


def draw(rows: Sequence[tuple[int, float, float, float]]) -> None:
    """Draw processor time over minimal states, both logarithmic, with a line of slope one."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5.2, 3.6))
    states = [found[0] for found in rows]
    names = ("to the minimal automaton", "to the file", "OpenFst, to the minimal automaton")
    for at, (name, (colour, mark)) in enumerate(zip(names, _STYLES, strict=True), 1):
        axes.loglog(
            states, [r[at] for r in rows], color=colour, marker=mark, ms=4, lw=1, label=name
        )
    linear = [rows[-1][2] * n / states[-1] for n in states]
    axes.loglog(states, linear, color="0.6", ls=":", lw=1, label="slope one: linear")
    axes.set_xlabel("states of the minimal automaton")
    axes.set_ylabel("CPU time in seconds")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], shape(*map(int, sys.argv[2:])))))
