"""Predicted expansions compared with measured runs: means over 100 seeds, and twice their error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_file, compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.run import search
from tcc_runtime.settings.predict import EFFORT, predict
from tcc_runtime.settings.settings import Settings

GRAMMARS = Path(__file__).parents[1] / "grammars"
SEEDS = 100
COLUMNS = (
    "grammar",
    "edges",
    "predicted",
    "ms",
    "one bucket",
    "measured, coupled",
    "measured, rest",
)
STAR = 'grammar star version "1"\n{}\nlimit depth <= 12\n'.format(
    "\n".join(f"tool t{i} {{ cost 0.{i + 1:02d} }}" for i in range(12))
)


def cases() -> Iterator[tuple[str, Compiled, str]]:
    """Yield the name, the artifact and the inflation of each case."""
    for tilt in (0, 4, 8, 12):
        compiled = compile_text(STAR, Options(beta="4", tilt=tilt))
        yield f"any* of 12, depth 12, tilt {tilt}", compiled, "1"
    yield "the same, tilt 8, counts times 3", compile_text(STAR, Options(beta="4")), "3"
    for path in sorted(GRAMMARS.glob("*.tcg")):
        yield path.stem, compile_file(path, Options(beta="8")), "1"


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for name, compiled, inflate in cases():
        if compiled.artifact is None:
            yield f"| {name} | refused: {compiled.diagnostics[0].message} |"
            continue
        artifact = load(compiled.artifact)
        settings = Settings(seed=bytes(32), inflate=inflate)
        started = time.process_time()
        enclosures = [enclosure(artifact, settings, EFFORT)]
        spent = 1e3 * (time.process_time() - started)
        enclosures.append(enclosure(artifact, settings, 0))
        runs = [measured(artifact, inflate, rest) for rest in (False, True)]
        cells = [name, str(artifact.manifest.edges), enclosures[0], f"{spent:.0f}", enclosures[1]]
        yield f"| {' | '.join(cells + runs)} |"


def enclosure(artifact: Artifact, settings: Settings, effort: int) -> str:
    """Return the lower and the upper bound of the prediction as text."""
    found = predict(artifact, settings, effort=effort)
    return "not known" if found is None else f"{found.lower:.3f} .. {found.upper:.3f}"


def measured(artifact: Artifact, inflate: str, rest: bool) -> str:
    """Return the mean expansions over the seeds, with twice the standard error, as text."""
    counts = []
    for number in range(SEEDS):
        seed = number.to_bytes(32, "little")
        told = Settings(seed=seed, inflate=inflate, race="rest" if rest else "coupled")
        counts.append(search(artifact, told).expansions)
    return f"{mean(counts):.2f} +- {2 * stdev(counts) / SEEDS**0.5:.2f}"
