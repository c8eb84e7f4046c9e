"""The paper's two suites: how much each method expands, and how often it misses the winner.

Each method runs on the same graphs and seeds, and the methods without a race of their own look the
values up in the one that the exact mode realises.  What a miss is, brute force decides: the plan of
greatest value among all plans of the race that the method claims to search.
Cost: about 10 ms a run of all methods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tcc_experiments import baselines
from tcc_experiments.baselines import Found
from tcc_experiments.evidence import search
from tcc_experiments.graphs import suite
from tcc_experiments.listing import Listing, Race
from tcc_experiments.model import Conclusion, Experiment, Finding, Part, Row, Size, Table, Verdict
from tcc_experiments.seeds import seed_of
from tcc_experiments.suites_drawing import draw
from tcc_experiments.sums import mean, merged, percent, rate, spread
from tcc_runtime.terms.settings import Settings

INFLATE = "2"
WIDTHS = (1, 2, 4, 8, 16)
GRAPHS = (("A", 3), ("A", 4), ("A", 5), ("B", 3), ("B", 4))
NUMBERS = {Size.QUICK: (1, 10), Size.FULL: (10, 50)}
PRINTED = "Surrogate, as printed (literal)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    leaf: str | None
    expansions: int
    due: int | None


def parts(size: Size) -> list[Part]:
    """One for each graph."""
    graphs, seeds = NUMBERS[size]
    return [
        {"suite": name, "size": depth, "graph": number, "seeds": seeds}
        for name, depth in GRAPHS
        for number in range(graphs)
    ]


def work(part: Part) -> list[Row]:
    """Every method on every seed of one graph."""
    name, depth, number = str(part["suite"]), int(part["size"]), int(part["graph"])
    plain, tilted = suite(name, depth, number), suite(name, depth, number, 8)
    listing, weighed = Listing(plain), Listing(tilted)
    rows: list[Row] = []
    for at in range(int(part["seeds"])):
        seed = seed_of(f"suite {name}", depth, number, at)
        for method, seen, wins, seconds in _methods(listing, weighed, seed):
            rows.append(
                {
                    "suite": name,
                    "size": depth,
                    "method": method,
                    "runs": 1,
                    "plans": len(listing.leaves()),
                    "expansions": seen.expansions,
                    "expansions2": seen.expansions**2,
                    "missed": int(seen.leaf != wins),
                    "due": seen.expansions if seen.due is None else seen.due,
                    "never": int(seen.due is None),
                    "seconds": seconds,
                }
            )
    return list(merged(rows, ("suite", "size", "method")))


def _methods(
    listing: Listing, weighed: Listing, seed: bytes
) -> Iterator[tuple[str, _Seen, str, float]]:
    """(method, what it saw, the winner it should have found, seconds)."""
    race, bounded, tilted = listing.race(seed), listing.race(seed, INFLATE), weighed.race(seed)
    yield _ran("Exact", listing, Settings(seed=seed, race="coupled"), race.value)
    yield _ran("Exact, tilt 8", weighed, Settings(seed=seed, race="coupled"), tilted.value)
    surrogate = Settings(seed=seed, race="coupled", mode="surrogate", inflate=INFLATE)
    yield _ran("Surrogate, coupled", listing, surrogate, bounded.value)
    anchored = Settings(
        seed=seed, race="coupled", mode="surrogate", inflate=INFLATE, keys="anchored"
    )
    yield _ran("Surrogate, coupled, anchored", listing, anchored, bounded.value)
    literal = Settings(seed=seed, mode="surrogate", inflate=INFLATE, race="literal")
    yield _ran(PRINTED, listing, literal, race.literal())
    yield _ran(
        "Fallback", listing, Settings(seed=seed, race="coupled", mode="fallback"), race.fallback()
    )
    for method, act in _baselines(listing, race).items():
        yield _looked(method, race, act)


def _baselines(listing: Listing, race: Race) -> dict[str, Callable[[], Found]]:
    value = race.value
    beams = {f"Beam({width})": partial(baselines.beam, listing, value, width) for width in WIDTHS}
    return {
        "Greedy by bound": partial(baselines.greedy, listing, value),
        **beams,
        "Dist-level": partial(baselines.distribution_level, listing, value),
        "Ancestral sampling": partial(baselines.ancestral, listing, race),
    }


def _ran(
    method: str, listing: Listing, settings: Settings, value: Sequence[float]
) -> tuple[str, _Seen, str, float]:
    started = time.thread_time()
    run = search(listing.artifact, settings)
    seconds = time.thread_time() - started
    leaf = run.plans[0].leaf_id
    best = max(range(len(value)), key=value.__getitem__)
    wins = listing.places[best].digest.hex()
    due = run.expansions if leaf == wins else None
    return method, _Seen(leaf=leaf, expansions=run.expansions, due=due), wins, seconds


def _looked(method: str, race: Race, act: Callable[[], Found]) -> tuple[str, _Seen, str, float]:
    started = time.thread_time()
    found = act()
    seconds = time.thread_time() - started
    places = race.listing.places
    leaf = None if found.leaf is None else places[found.leaf].digest.hex()
    seen = _Seen(leaf=leaf, expansions=found.expansions, due=found.due)
    return method, seen, places[race.best()[0]].digest.hex(), seconds


def conclude(rows: Sequence[Row]) -> Conclusion:
    """The table of all methods, and the claims of the paper's figure on baselines."""
    table: list[Row] = []
    for row in merged(rows, ("suite", "size", "method")):
        runs = int(row["runs"])
        table.append(
            {
                "suite": row["suite"],
                "size": row["size"],
                "plans": round(mean(row, "plans")),
                "method": row["method"],
                "runs": runs,
                "expansions": round(mean(row, "expansions"), 2),
                "+-": round(spread(row, "expansions"), 2),
                "missed": rate(int(row["missed"]), runs),
                "missed_runs": int(row["missed"]),
                "to_winner": round(mean(row, "due"), 2) if not row["never"] else None,
                "cpu_ms": round(1000 * mean(row, "seconds"), 3),
            }
        )
    caption = (
        "Suite A: balanced trees of `size` calls, three a node; suite B: partition graphs of `size`"
        " layers. `plans`: mean number. `expansions`: mean until the method stops, +- half of its "
        "95 % interval. `missed`: the plan given is not the winner of its race, with exact 95 % "
        "limits (Fallback and the printed surrogate have races of their own). `to_winner`: mean "
        "expansions until the winner was popped, had the method not stopped; empty where it never "
        "would be in some run. `cpu_ms`: ours with all arithmetic, the baselines with values "
        "looked up."
    )
    return Conclusion(
        tables=(Table(name="suites", caption=caption, rows=table),), findings=_findings(table)
    )


def _findings(table: Sequence[Row]) -> list[Finding]:
    by = {(row["suite"], row["size"], row["method"]): row for row in table}

    def of(method: str, column: str = "expansions") -> list[float]:
        return [float(by[(name, size, method)][column] or 0) for name, size in GRAPHS]

    def shown(method: str) -> str:
        return ", ".join(f"{value:.1f}" for value in of(method))

    def missed(method: str) -> str:
        runs = sum(of(method, "runs"))
        return percent(sum(of(method, "missed_runs")) / runs)

    exact, literal, coupled = of("Exact"), of(PRINTED), of("Surrogate, coupled")
    most = max(p / e for p, e in zip(literal, exact, strict=True))
    wide = f"Beam({WIDTHS[-1]})"
    return [
        Finding(
            claim="Exact expands least (Fig. baselines a, b)",
            found=f"A3, A4, A5, B3, B4: Exact {shown('Exact')}; Greedy {shown('Greedy by bound')}; "
            f"Beam(1) {shown('Beam(1)')}; Fallback {shown('Fallback')}",
            verdict=Verdict.DIFFERS,
            because="of the methods that never miss the winner it does; greedy search, a narrow "
            f"beam and Fallback stop earlier, and Greedy misses {missed('Greedy by bound')}, "
            f"Beam(1) {missed('Beam(1)')}, Exact {missed('Exact')}",
        ),
        Finding(
            claim="Surrogate is slightly larger than Exact, but certified",
            found=f"as printed {shown(PRINTED)}; coupled {shown('Surrogate, coupled')}; "
            f"Exact {shown('Exact')} (bounds {INFLATE} times the counts)",
            verdict=Verdict.FAILS,
            because=f"as printed it is up to {most:.0f} times Exact and misses the winner of its "
            "own race "
            f"in {missed(PRINTED)}; coupled it is at most "
            f"{max(c / e for c, e in zip(coupled, exact, strict=True)):.1f} times and misses "
            f"{missed('Surrogate, coupled')}",
        ),
        Finding(
            claim="Beam and Greedy by bound expand more than Exact",
            found=f"{wide} {shown(wide)} and misses {missed(wide)}; Greedy "
            f"{shown('Greedy by bound')}",
            verdict=Verdict.DIFFERS,
            because="what Greedy expands depends on when it stops: by its own rule it expands "
            "about as "
            "much and is nearly always wrong; to have popped the winner it needs "
            + ", ".join(f"{v:.0f}" for v in of("Greedy by bound", "to_winner")),
        ),
        Finding(
            claim="the distribution-level heuristic can be unsound",
            found=f"Dist-level misses the winner in {missed('Dist-level')} of the runs, at "
            f"{shown('Dist-level')} expansions",
            verdict=Verdict.HOLDS,
        ),
        Finding(
            claim="(ancestral sampling needs no race)",
            found=f"one walk of {shown('Ancestral sampling')} nodes draws from the same softmax; "
            "it is "
            "another draw, and differs from the winner of the race in "
            f"{missed('Ancestral sampling')}",
            verdict=Verdict.EXTRA,
        ),
    ]


EXPERIMENT = Experiment(
    name="suites",
    title="Two suites: expansions, and how often each method misses the realised winner",
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"suites": draw},
)
