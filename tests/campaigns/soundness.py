"""Soundness by brute force: does a plan outside ever beat a certified stop?

Each trial draws a small automaton (exact, nondeterministic, relaxed, rounded or a mixture) and runs
over it (race, inflation, tilt, recipe, keys, cut, number of plans, seed).  All plans of the race
are listed by an oracle that shares nothing with the runtime, and a plan that was not returned but
has a greater value than the last one returned is a violation.  Every other run writes a ledger,
which the validator has to pass with its claim.  The literal race runs beside it on
random trees of three children a node, where the printed claim fails more often than not.

    python -m tests.campaigns.soundness --runs 100000 --processes 2
    python -m tests.campaigns.soundness --runs 50000 --first 10000 --trees 0    its second half
    python -m tests.campaigns.soundness --behind --trees 0    each run after a prefix of a plan

A trial follows from its number alone, so a campaign can be done in parts, on any machines.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import exp, lgamma, log, log1p

from tcc_certs.replay import validate
from tcc_experiments.evidence import q64_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.outcome import Run
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.differential.tree_oracle import Oracle, Plan, Tree
from tests.runtime.graphs import free_core, named_rows, opened, random_network, random_rows
from tests.runtime.prefixes import drawn_prefix
from tests.runtime.relaxing import random_relaxed

RUNS_EACH = 5  # runs over one automaton
DEPTHS = (2, 3, 4)
TREES = 2000  # literal runs at each depth
DIGITS = 40
Leaves = list[tuple[int, bytes, Plan]]


def violations(run: Run, leaves: Leaves, top: int) -> int:
    """How many plans outside have a greater value than the last of the `top` that were found."""
    found = given(run)
    best = found[-1][0] if len(found) == top else None
    inside = {digest for _, digest, _ in found}
    outside = [value for value, digest, _ in leaves if digest not in inside]
    return sum(best is None or value > best for value in outside)


def trial(number: int, behind: bool = False) -> Counter[str]:
    """`RUNS_EACH` runs over the automaton of that number.

    Args:
        behind: each begins after a random prefix of a plan.
    """
    rng = random.Random(number)
    artifact, tree = automaton(rng)
    found: Counter[str] = Counter()
    allowed = tree.allowed
    for at in range(RUNS_EACH):
        told = settings(rng, artifact)
        if behind:
            drawn = random.Random(f"behind/{number}/{at}")
            told = replace(told, after=drawn_prefix(drawn, artifact))
        run = search(artifact, told) if (number + at) % 2 else recorded(artifact, told, found)
        tree.inflate = told.inflate
        tree.after = tuple(told.after)
        most = None if told.truncate is None else told.truncate + len(tree.after)
        tree.allowed = lambda plan, most=most: (most is None or len(plan) <= most) and allowed(plan)
        oracle = Oracle(tree, told.seed, races=(told.race,), digits=DIGITS)
        leaves = oracle.numbers.rest if told.race == "rest" else oracle.numbers.coupled
        found["runs"] += 1
        found[told.race] += 1
        found["certified"] += run.claim_type != "NoCert"
        found[run.claim_type] += 1
        found["plans"] += len(leaves)
        found["behind"] += len(tree.after) > 0
        found["expansions"] += run.expansions
        found["violations"] += violations(run, leaves, told.top) > 0
        found["differing"] += given(run) != leaves[: told.top]
    return found


def recorded(artifact: Artifact, told: Settings, found: Counter[str]) -> Run:
    """A run with a ledger, which the validator is asked about: one with its claim upheld is due."""
    ledger = MemorySink()
    run = search(artifact, told, Recorder(ledger, started_ms=7))
    data = artifact.kept["test.bytes"]
    said = validate(bytes(ledger.data), data) if isinstance(data, bytes) else None
    due = (0, run.claim_type, run.ledger_head)
    found["recorded"] += 1
    found["refused"] += said is None or (said.verdict, said.claim_type, said.head) != due
    return run


def given(run: Run) -> Leaves:
    """What the run found, as the oracle has it."""
    return [
        (
            q64_of(plan.value),
            bytes.fromhex(plan.leaf_id),
            plan.calls,
        )
        for plan in run.plans
    ]


def automaton(rng: random.Random) -> tuple[Artifact, Tree]:
    """A random artifact, and the tree of its race."""
    beta = rng.choice(("1", "1", "0", "0.125", "2.5", "7"))
    tilt = rng.choice((0, 0, 1, 4, 8, 24))
    bits = rng.randint(1, 12) if rng.random() < 0.2 else None
    shape = {"beta": beta, "tilt": tilt}
    if rng.random() < 0.25:
        relaxed = random_relaxed(rng, 60)
        tree = relaxed.tree(**shape, round_bits=bits)
        made = opened(relaxed.data, relaxed.rows, **shape, relaxed=relaxed.named, round_counts=bits)
        return made, tree
    network = rng.random() < 0.4
    calls = rng.randint(1, 3)
    costs = [rng.randrange(-(10**9), 3 * 10**9) for _ in range(calls)]
    rows = (random_network if network else random_rows)(rng, calls, rng.choice((1, 1, 2, 2, 3)), 2)
    core = free_core(costs, 9)
    tree = Tree(
        rows=named_rows(core, rows),
        cost=dict(zip("abc", costs, strict=False)),
        limits=["limit depth <= 9"],
        round_bits=bits,
        **shape,
    )
    return opened(core, rows, **shape, nondeterministic=network, round_counts=bits), tree


def settings(rng: random.Random, artifact: Artifact) -> Settings:
    """Random settings that the artifact allows and that can certify."""
    inflate = rng.choice(("1", "1", "1", "1", "1.01", "1.7", "4", "60.5"))
    exact = artifact.manifest.counts == "exact" and inflate == "1"
    longest = artifact.rank(artifact.root)
    # Half of the runs take the race that a run takes unasked.
    race, keys = rng.choice(
        (("coupled", "finalized"), ("coupled", "anchored"), ("rest", None), ("rest", None))
    )
    return Settings(
        seed=rng.randbytes(32),
        mode="surrogate" if rng.random() < 0.3 or not exact else "exact",
        inflate=inflate,
        race=race,
        keys=keys,
        recipe=rng.choice(("r1", "r2")),
        top=rng.choice((1, 1, 2, 5)),
        truncate=rng.randint(0, longest) if rng.random() < 0.2 else None,
    )


def tree_trial(task: tuple[int, int]) -> Counter[str]:
    """One random tree of that depth: the literal race, and the coupled one beside it.

    The last step of a path is `stop`: three children a node for depth - 1 calls, then a leaf.
    """
    depth, number = task
    rng = random.Random(f"{depth}/{number}")
    costs = [rng.randrange(10**9) for _ in range(26)]
    rows: list = []

    def row(left: int) -> int:
        some = sorted(rng.sample(range(len(costs)), 3)) if left else []
        edges = [(call, row(left - 1)) for call in some]
        rows.append((not left, edges))
        return len(rows) - 1

    row(depth - 1)
    core = free_core(costs, depth)
    artifact = opened(core, rows, tilt=0)
    names = [chr(ord("a") + i) for i in range(len(costs))]
    tree = Tree(
        rows=named_rows(core, rows),
        cost=dict(zip(names, costs, strict=True)),
        limits=[f"limit depth <= {depth}"],
        tilt=0,
        inflate="1.7",
    )
    seed = rng.randbytes(32)
    oracle = Oracle(tree, seed, races=("coupled", "literal"), digits=DIGITS).numbers
    found: Counter[str] = Counter(runs=1)
    for race, leaves in (("literal", oracle.literal), ("coupled", oracle.coupled)):
        run = search(artifact, Settings(seed=seed, race=race, mode="surrogate", inflate="1.7"))
        found[f"{race} violations"] += violations(run, leaves, 1) > 0
        found[f"{race} pops"] += run.expansions + run.leaves
    run = search(artifact, Settings(seed=seed, race="coupled"))
    found["exact pops"] += run.expansions + run.leaves
    return found


def upper_limit(events: int, runs: int, confidence: float = 0.95) -> float:
    """The exact binomial (Clopper-Pearson) one-sided upper limit of a rate."""
    if events >= runs:
        return 1.0
    low, high = events / runs, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (
            (middle, high) if at_most(events, runs, middle) > 1 - confidence else (low, middle)
        )
    return high


def at_most(events: int, runs: int, rate: float) -> float:
    """The chance of at most that many events."""
    ways = (lgamma(runs + 1) - lgamma(k + 1) - lgamma(runs - k + 1) for k in range(events + 1))
    return sum(exp(way + k * log(rate) + (runs - k) * log1p(-rate)) for k, way in enumerate(ways))


def summed(counts: Iterator[Counter[str]], every: int, label: str, total: int) -> Counter[str]:
    """Their sum, with a progress line."""
    found: Counter[str] = Counter()
    for done, count in enumerate(counts, 1):
        found.update(count)
        if sys.stderr.isatty() or done % every == 0 or done == total:
            beaten = ", ".join(
                f"{name} {n}" for name, n in sorted(found.items()) if "violat" in name
            )
            end = "\r" if sys.stderr.isatty() and done < total else "\n"
            print(f"{label}: {done} of {total}: {beaten}", end=end, file=sys.stderr, flush=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; 1 where a certified run was beaten, or differs from the oracle."""
    parser = argparse.ArgumentParser(prog="soundness", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first automaton")
    parser.add_argument("--trees", type=int, default=TREES, help="literal runs at each depth")
    parser.add_argument("--behind", action="store_true", help="each run after a random prefix")
    parser.add_argument("--processes", type=int, default=2)
    told = parser.parse_args(arguments)
    trials = -(-told.runs // RUNS_EACH)
    numbers, each = range(told.first, told.first + trials), partial(trial, behind=told.behind)
    with ProcessPoolExecutor(told.processes) as pool:
        ours = summed(pool.map(each, numbers, chunksize=20), 500, "automata", trials)
        report(ours)
        sys.stdout.flush()
        for depth in DEPTHS if told.trees else ():
            tasks = [(depth, number) for number in range(told.trees)]
            found = summed(pool.map(tree_trial, tasks, chunksize=10), 500, "trees", told.trees)
            report_trees(depth, found)
    return 1 if ours["violations"] or ours["differing"] or ours["refused"] else 0


def report(found: Counter[str]) -> None:
    """The figures of our own claims."""
    runs = found["certified"]
    limit = upper_limit(found["violations"], runs)
    kinds = ", ".join(
        f"{name} {found[name]}" for name in ("RunWiseExact", "RunWiseSurrogate", "TruncationOnly")
    )
    races = ", ".join(f"{name} {found[name]}" for name in ("coupled", "rest"))
    print(f"certified runs: {runs} of {found['runs']} ({kinds}; {races})")
    print(f"plans listed: {found['plans']}; expansions: {found['expansions']}")
    print(f"runs whose plans or values are not the oracle's: {found['differing']}")
    print(f"with a ledger: {found['recorded']}; the validator refused {found['refused']} of them")
    print(f"violations: {found['violations']}; 95 % upper limit of the rate: {limit:.3g}")


def report_trees(depth: int, found: Counter[str]) -> None:
    """The figures of one depth."""
    runs = found["runs"]
    rate = found["literal violations"] / runs
    limit = upper_limit(found["coupled violations"], runs)
    pops = {name: found[f"{name} pops"] / runs for name in ("literal", "coupled", "exact")}
    print(
        f"depth {depth}: literal {rate:.1%} of {runs} violated, "
        f"coupled {found['coupled violations']} (at most {limit:.2g}); pops: "
        + ", ".join(f"{name} {mean:.1f}" for name, mean in pops.items())
    )


if __name__ == "__main__":
    sys.exit(main())
