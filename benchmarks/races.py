"""The coupled race compared with the rest race, on shipped grammars and families, by top k.

Over 20 seeds (3 for top 64 and more): medians of the expansions, of process time with a ledger, and
of the ledger's size.  Without a tilt one plan takes tens of thousands of expansions, so only one is
searched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tcc_compiler.options import Options
from tcc_compiler.pipeline import Compiled, compile_file, compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

GRAMMARS = Path(__file__).parents[1] / "grammars"
TOPS = (1, 16, 256)
COLUMNS = (
    "grammar",
    "calls a state",
    "top",
    "expansions, coupled",
    "rest",
    "ms, coupled",
    "rest",
    "ratio",
    "kB, coupled",
    "rest",
    "ratio",
)


def families() -> Iterator[tuple[str, Compiled]]:
    """Yield the names of the grammars, and their compilations."""
    options = Options(beta="8")
    for path in sorted(GRAMMARS.glob("*.tcg")):
        yield path.stem, compile_file(path, options)
    for tools in (2, 4, 12, 64):
        text = 'grammar star version "1"\n{}\nlimit depth <= 24\n'.format(
            "\n".join(
                f"tool t{i} {{ cost {(i * 37 % 100) / 100 + 0.05:.2f} }}" for i in range(tools)
            )
        )
        for tilt in (0, 8) if tools == 4 else (8,):
            yield f"any* of {tools}, tilt {tilt}", compile_text(text, Options(beta="2", tilt=tilt))


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for name, compiled in families():
        if compiled.artifact is None:
            yield f"| {name} | refused: {compiled.diagnostics[0].message} |"
            continue
        artifact = load(compiled.artifact)
        for top in TOPS if artifact.manifest.tilt else TOPS[:1]:
            yield row(name, artifact, top)


def row(name: str, artifact: Artifact, top: int) -> str:
    """Return the row of one artifact with both races."""
    manifest = artifact.manifest
    coupled = measured(artifact, Settings(seed=bytes(32), top=top, race="coupled"))
    rest = measured(artifact, Settings(seed=bytes(32), top=top, race="rest"))
    (a, b, c), (x, y, z) = coupled, rest
    return (
        f"| {name} | {manifest.edges / manifest.states:.1f} | {top} | {a:.0f} | {x:.0f} | "
        f"{b:.2f} | {y:.2f} | {y / b:.2f} | {c:.1f} | {z:.1f} | {z / c:.2f} |"
    )


def measured(artifact: Artifact, settings: Settings) -> tuple[float, float, float]:
    """Return medians: expansions, milliseconds, kilobytes."""
    found = []
    for number in range(20 if settings.top < 64 else 3):
        sink, told = MemorySink(), _seeded(settings, number)
        started = time.process_time()
        run = search(artifact, told, Recorder(sink, started_ms=0), None)
        found.append((run.expansions, 1e3 * (time.process_time() - started), len(sink.data) / 1e3))
    expansions, times, sizes = zip(*found, strict=True)
    return median(expansions), median(times), median(sizes)


def _seeded(settings: Settings, number: int) -> Settings:
    return Settings(seed=number.to_bytes(32, "little"), top=settings.top, race=settings.race)
