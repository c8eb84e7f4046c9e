"""The search beside its peers: k draws from softmax(-C) without replacement, over one automaton.

Processor times in milliseconds, medians over seeds, all in one process; every run and every peer
has its tables made before.  Up to 69,107 states the automata are compiled from a grammar; that of a
million states is a random one (:mod:`benchmarks.layered`).  Ours are exact arithmetic all along,
end with a certificate for the run, and with a ledger can be audited; the peers draw in floating
point.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import mean, median

from benchmarks.layered import kept
from benchmarks.peers import (
    ancestral,
    chances_of,
    random_generator,
    stochastic_beam_search,
    unique_randomizer,
)
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import Memory
from tcc_runtime.search import search
from tcc_runtime.terms.settings import Race, Settings

RUNS = {1: 15, 16: 3, 256: 2}
# depth, limits on the uses of the first tools: 260, 883, 7,579 and 69,107 states
CASES = ((8, (2, 2, 2, 2)), (32, (5, 5)), (64, (12, 12)), (128, (28, 28)))
LARGE, DEEP = 1_000_000, 128
COLUMNS = (
    "states", "depth", "k", "expansions", "rest race", "coupled", "rest, ledger",
    "coupled, ledger", "unique-randomizer", "beam: expansions", "beam", "randgen", "ancestral",
    "rest race is faster than unique-randomizer by",
)  # fmt: skip


def grammar(depth: int, uses: tuple[int, ...]) -> str:
    """Twelve tools, any of them up to `depth` times, some of them less often."""
    tools = "\n".join(
        f"tool t{i:02d} {{ cost 0.{(i * 37 + 11) % 89 + 10:02d} }}" for i in range(12)
    )
    limits = "\n".join(f"limit uses(t{i:02d}) <= {most}" for i, most in enumerate(uses))
    return f'grammar bench version "1"\n{tools}\nlimit depth <= {depth}\n{limits}\n'


def table() -> Iterator[str]:
    """The rows, Markdown."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "| --- " * len(COLUMNS) + "|"
    for depth, uses in CASES:
        compiled = compile_text(grammar(depth, uses), Options(beta="4", tilt=12)).artifact
        if compiled is None:
            yield f"| refused: depth {depth} |"
            continue
        artifact = load(compiled)
        yield from rows(artifact, depth)
    yield from rows(load(kept(LARGE, DEEP, tilt=12)), DEEP)


def rows(artifact: Artifact, depth: int) -> Iterator[str]:
    """One automaton, all k."""
    chances, generate = chances_of(artifact), random_generator(artifact)
    for k, runs in RUNS.items():
        expansions, rest = ours(artifact, k, runs, "rest", ledger=False)
        _, coupled = ours(artifact, k, runs, "coupled", ledger=False)
        _, rest_ledger = ours(artifact, k, (runs + 1) // 2, "rest", ledger=True)
        _, coupled_ledger = ours(artifact, k, (runs + 1) // 2, "coupled", ledger=True)
        _, unique = timed(lambda seed, k=k: unique_randomizer(chances, k, seed), runs)
        beam_work, beam = timed(lambda seed, k=k: stochastic_beam_search(chances, k, seed), runs)
        _, generated = timed(lambda seed, k=k: generate(k, seed), runs)
        _, walked = timed(lambda seed, k=k: ancestral(chances, k, seed), runs)
        times = (rest, coupled, rest_ledger, coupled_ledger, unique)
        shown = " | ".join(f"{found:.2f}" for found in times)
        peers = f"{beam_work:.0f} | {beam:.2f} | {generated:.2f} | {walked:.2f}"
        size = f"{artifact.manifest.states} | {depth} | {k} | {expansions:.1f}"
        yield f"| {size} | {shown} | {peers} | {unique / rest:.1f} |"


def ours(artifact: Artifact, k: int, runs: int, race: Race, *, ledger: bool) -> tuple[float, float]:
    """Mean expansions and the median time of a run."""

    def run(seed: int) -> int:
        settings = Settings(seed=seed.to_bytes(32, "big"), top=k, race=race)
        recorder = Recorder(Memory(), started_ms=0) if ledger else None
        return search(artifact, settings, recorder).expansions

    for seed in range(runs):  # tables are made
        run(seed)
    return timed(run, runs)


def timed(run: Callable[[int], int], runs: int) -> tuple[float, float]:
    """What the runs gave, in the mean, and the median of their processor times in milliseconds."""
    work, times = [], []
    for seed in range(runs):
        started = time.process_time()
        work.append(run(seed))
        times.append(time.process_time() - started)
    return mean(work), 1000 * median(times)
