"""The search compared with its peers: k draws from softmax(-C) without replacement, one automaton.

Processor times in milliseconds, medians over seeds, all in one process; all tables are made before.
Automata of up to 69,107 states are compiled from a grammar; the one with a million states is random
(:mod:`benchmarks.layered`).  tcc uses exact arithmetic and ends with a certificate for the run;
with a ledger the run can be audited.

The peers draw in floating point from shared tables.  For each state these have the targets and the
probabilities of its children, `stop` last, from a log-sum-exp over all plans below.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.layered import kept
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Race, Settings

STOP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """For each state, the targets of its children (:data:`STOP` last) and their probabilities.

    Attributes:
        root: the state of the empty prefix.
        rows: for each state, targets, probabilities as an array, and their running sums as a list.
        targets, logs: targets and log probabilities as arrays [states, most children], padded with
            STOP and -infinity.
    """

    root: int
    rows: list[tuple[list[int], Any, list[float]]]
    targets: Any
    logs: Any


def chances_of(artifact: Artifact) -> Chances:
    """Return the tables of an artifact, by one pass over its edges."""
    beta, places = artifact.manifest.beta
    scale = beta / 10 ** (places + 9)
    score = [-scale * cost for cost in artifact.cost_low]
    total: list[float] = []
    rows = []
    for q in range(artifact.manifest.states):
        edges = artifact.edges(q)
        parts = [score[call] + total[target] for call, target in edges]
        targets = [target for _, target in edges]
        if artifact.accepts(q):
            parts.append(0.0)
            targets.append(STOP)
        top = max(parts)
        whole = top + math.log(math.fsum(math.exp(part - top) for part in parts))
        total.append(whole)
        chance = np.exp(np.array(parts) - whole)
        chance /= chance.sum()
        rows.append((targets, chance, np.cumsum(chance).tolist()))
    width = max(len(row[0]) for row in rows)
    targets = np.full((len(rows), width), STOP, dtype=np.int64)
    logs = np.full((len(rows), width), -np.inf)
    for q, (found, chance, _) in enumerate(rows):
        targets[q, : len(found)] = found
        logs[q, : len(found)] = np.log(chance)
    return Chances(root=artifact.root, rows=rows, targets=targets, logs=logs)


def unique_randomizer(chances: Chances, k: int, seed: int) -> int:
    """Draw k plans with the package UniqueRandomizer 0.0.1; return the number of steps."""
    # The package was written for numpy 1, which had this name.
    np.NINF = -np.inf  # type: ignore[attr-defined]
    from unique_randomizer.unique_randomizer import UniqueRandomizer

    np.random.seed(seed)
    draw, rows, steps = UniqueRandomizer(), chances.rows, 0
    for _ in range(k):
        state = chances.root
        while state != STOP:
            targets, chance, _ = rows[state]
            state = targets[draw.sample_distribution(chance)]
            steps += 1
        draw.mark_sequence_complete()
    return steps


def stochastic_beam_search(chances: Chances, k: int, seed: int) -> int:
    """Stochastic beam search in numpy, level by level, keeping leaves; return the expansions.

    Source: Kool, van Hoof and Welling, Stochastic Beams and Where to Find Them, 2019.
    """
    rng = np.random.default_rng(seed)
    states = np.array([chances.root])
    log_p, gumbel = np.zeros(1), np.zeros(1)
    expansions = 0
    while (inner := states != STOP).any():
        expansions += int(inner.sum())
        below = log_p[inner][:, None] + chances.logs[states[inner]]
        noise = below + rng.gumbel(size=below.shape)
        top = noise.max(axis=1, keepdims=True)
        parent = gumbel[inner][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            v = parent - noise + np.log1p(-np.exp(noise - top))
            held = parent - np.maximum(v, 0) - np.log1p(np.exp(-np.abs(v)))
        held = np.where(np.isneginf(below), -np.inf, held)
        states = np.concatenate([chances.targets[states[inner]].ravel(), states[~inner]])
        log_p = np.concatenate([below.ravel(), log_p[~inner]])
        gumbel = np.concatenate([held.ravel(), gumbel[~inner]])
        best = np.argsort(-gumbel)[:k]
        best = best[~np.isneginf(gumbel[best])]
        states, log_p, gumbel = states[best], log_p[best], gumbel[best]
    return expansions


def ancestral(chances: Chances, k: int, seed: int) -> int:
    """Walk from the root until k different plans are found; return the number of steps."""
    rng, rows, steps = random.Random(seed), chances.rows, 0
    found: set[tuple[int, ...]] = set()
    while len(found) < k:
        state, plan = chances.root, []
        while state != STOP:
            targets, _, running = rows[state]
            place = rng.choices(range(len(targets)), cum_weights=running)[0]
            plan.append(place)
            state = targets[place]
            steps += 1
        found.add(tuple(plan))
    return steps


def random_generator(artifact: Artifact) -> Callable[[int, int], int]:
    """Return a function that draws by OpenFst's randgen from the same automaton.

    Costs are weights in the log semiring, pushed to the start.  The function draws plans with
    replacement until k are different, and returns the number of draws.
    """
    import pynini

    beta, places = artifact.manifest.beta
    scale = beta / 10 ** (places + 9)
    fst = pynini.Fst(arc_type="log64")
    for _ in range(artifact.manifest.states):
        fst.add_state()
    one = pynini.Weight.one("log64")
    for q in range(artifact.manifest.states):
        if artifact.accepts(q):
            fst.set_final(q, one)
        for call, target in artifact.edges(q):
            weight = pynini.Weight("log64", scale * artifact.cost_low[call])
            fst.add_arc(q, pynini.Arc(call + 1, call + 1, weight, target))
    fst.set_start(artifact.root)
    fst = pynini.push(fst, push_weights=True, delta=1e-9, remove_total_weight=True)
    longest = artifact.rank(artifact.root) + 1

    def draw(k: int, seed: int) -> int:
        found: set[tuple[int, ...]] = set()
        drawn = 0
        while len(found) < k:
            more = pynini.randgen(
                fst, npath=k - len(found), seed=seed + drawn, select="log_prob", max_length=longest
            )
            found.update(_paths(more))
            drawn += k
        return drawn

    return draw


def _paths(fst: Any) -> Iterator[tuple[int, ...]]:
    paths = fst.paths()
    while not paths.done():
        yield tuple(paths.ilabels())
        paths.next()


RUNS = {1: 15, 16: 3, 256: 2}
# Depth and limits on the uses of the first tools, giving 260, 883, 7,579 and 69,107 states.
CASES = ((8, (2, 2, 2, 2)), (32, (5, 5)), (64, (12, 12)), (128, (28, 28)))
LARGE, DEEP = 1_000_000, 128
COLUMNS = (
    "states", "depth", "k", "expansions", "rest race", "coupled", "rest, ledger",
    "coupled, ledger", "unique-randomizer", "beam: expansions", "beam", "randgen", "ancestral",
    "rest race is faster than unique-randomizer by",
)  # fmt: skip


def grammar(depth: int, uses: tuple[int, ...]) -> str:
    """Return a grammar of twelve tools and at most `depth` calls; `uses` limits the first tools."""
    tools = "\n".join(
        f"tool t{i:02d} {{ cost 0.{(i * 37 + 11) % 89 + 10:02d} }}" for i in range(12)
    )
    limits = "\n".join(f"limit count(t{i:02d}) <= {most}" for i, most in enumerate(uses))
    return f'grammar bench version "1"\n{tools}\nlimit depth <= {depth}\n{limits}\n'


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
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
    """Yield the rows of one automaton, for all k."""
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
    """Return the mean expansions and the median milliseconds of a run."""

    def run(seed: int) -> int:
        settings = Settings(seed=seed.to_bytes(32, "big"), top=k, race=race)
        recorder = Recorder(MemorySink(), started_ms=0) if ledger else None
        return search(artifact, settings, recorder).expansions

    for seed in range(runs):  # makes the tables
        run(seed)
    return timed(run, runs)


def timed(run: Callable[[int], int], runs: int) -> tuple[float, float]:
    """Return the mean result of the runs, and their median processor time in milliseconds."""
    work, times = [], []
    for seed in range(runs):
        started = time.process_time()
        work.append(run(seed))
        times.append(time.process_time() - started)
    return mean(work), 1000 * median(times)
