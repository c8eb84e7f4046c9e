"""How often a plan outside beats a stop: every claim against brute force, run by run.

All plans of the race are listed beside each run.  A violation is a plan that the run did not give
and whose value exceeds the last of those that it gave.  The literal race is the surrogate race as
the paper prints it, on artifacts of balanced trees, three calls a node: two to four steps, each of
which draws, are one to three calls and the stop.  The paper's trees have no stop: `suites` has
them.
Cost: 0.5 to 2 ms a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from tcc_experiments.evidence import search
from tcc_experiments.figures import COLOURS, HEIGHT, WIDTH
from tcc_experiments.graphs import any_of, compiled, cost, suite
from tcc_experiments.intervals import lower_limit, mean, merged, percent, upper_limit
from tcc_experiments.listing import Listing
from tcc_experiments.model import (
    ClaimFinding,
    ClaimVerdict,
    Conclusion,
    Experiment,
    Part,
    ResultTable,
    Row,
    Size,
    random_of,
    seed_of,
)
from tcc_runtime.outcome import Run
from tcc_runtime.settings.settings import Settings

INFLATE = "2"
# (graphs, seeds each): 10^5 runs a row.
NUMBERS = {Size.QUICK: (4, 25), Size.FULL: (100, 1000)}
CLOSE = 1e-9  # what two values in double precision may differ by and be equal
GRAPHS = (("A", 3), ("B", 3), ("B", 4))
LITERAL = "Surrogate, as printed"


BOUNDS: dict[str, Any] = {"mode": "surrogate", "inflate": INFLATE}
CUT = "Exact, cut at 2 of 3 calls"
# name -> (tilt, settings); those with the same tilt and inflation have the same race.
OURS: dict[str, tuple[int, dict[str, Any]]] = {
    "Exact": (0, {}),
    "Surrogate, coupled": (0, BOUNDS),
    "Surrogate, coupled, anchored": (0, {**BOUNDS, "keys": "anchored"}),
    "Exact, tilt 8": (8, {}),
}
STEPS = (2, 3, 4)  # of the printed race: calls, and the stop


def parts(size: Size) -> list[Part]:
    """One for each row and graph number."""
    graphs, seeds = NUMBERS[size]
    return [
        {"row": row, "graph": number, "seeds": seeds}
        for row in (*OURS, CUT, *map(str, STEPS))
        for number in range(graphs)
    ]


def work(part: Part) -> list[Row]:
    """The runs of one row on one graph."""
    row, number, seeds = str(part["row"]), int(part["graph"]), int(part["seeds"])
    if row in OURS:
        rows = _ours(row, number, seeds)
    else:
        rows = _cut(number, seeds) if row == CUT else _printed(int(row), number, seeds)
    return list(merged(list(rows), ("method", "steps")))


def _ours(method: str, number: int, seeds: int) -> Iterator[Row]:
    tilt, settings = OURS[method]
    listing = Listing(suite(*GRAPHS[number % len(GRAPHS)], number, tilt))
    for at in range(seeds):
        told = Settings(**{"seed": seed_of("soundness", number, at), "race": "coupled", **settings})
        yield judged(method, 0, listing, listing.race(told.seed, told.inflate).value, told)


def _cut(number: int, seeds: int) -> Iterator[Row]:
    rng = random_of("soundness cut", number)
    listing = Listing(compiled(any_of([cost(rng) for _ in range(3)], 0, 3), tilt=8))
    for at in range(seeds):
        told = Settings(seed=seed_of("soundness cut", number, at), race="coupled", truncate=2)
        yield judged(CUT, 0, listing, listing.race(told.seed).value, told)


def _printed(steps: int, number: int, seeds: int) -> Iterator[Row]:
    listing = Listing(suite("A", steps - 1, number))
    for at in range(seeds):
        seed = seed_of("soundness printed", steps, number, at)
        told = Settings(seed=seed, race="literal", **BOUNDS)
        yield judged(LITERAL, steps, listing, listing.race(seed).literal(), told)


def judged(
    method: str, steps: int, listing: Listing, value: Sequence[float], told: Settings
) -> Row:
    """One run against the list of all plans."""
    run = search(listing.artifact, told)
    beaten, close, same = against(listing, value, run, told)
    return {
        "method": method,
        "steps": steps,
        "runs": 1,
        "certified": int(run.claim_type != "NoCert"),
        "violations": int(beaten),
        "close": int(close),
        "differing": int(not same),
        "expansions": run.expansions,
    }


def against(
    listing: Listing, value: Sequence[float], run: Run, told: Settings
) -> tuple[bool, bool, bool]:
    """Whether a plan outside is better, whether one is too close to tell, and whether the run's
    plans and values are those of the list.
    """
    most = told.truncate
    places = listing.places
    leaves = [
        at
        for at, place in enumerate(places)
        if place.state is None and (most is None or place.depth <= most)
    ]
    best = sorted(leaves, key=lambda at: -value[at])
    given = {plan.leaf_id: float(plan.value) for plan in run.plans}
    last = float(run.plans[-1].value) if len(run.plans) == told.top else -inf
    outside = max(
        (value[at] for at in best[: told.top + 1] if places[at].digest.hex() not in given),
        default=-inf,
    )
    due = {places[at].digest.hex(): value[at] for at in best[: told.top]}
    same = due.keys() == given.keys() and all(abs(due[k] - given[k]) < CLOSE for k in due)
    return outside > last + CLOSE, abs(outside - last) <= CLOSE, same


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Rates with exact limits."""
    table: list[Row] = []
    for row in merged(rows, ("method", "steps")):
        runs, events = int(row["runs"]), int(row["violations"])
        table.append(
            {
                "method": row["method"],
                "steps": _told(int(row["steps"])) or None,
                "claim": "certified" if row["certified"] == runs else "NoCert",
                "runs": runs,
                "violations": events,
                "rate": percent(events / runs),
                "lower": lower_limit(events, runs),
                "upper": upper_limit(events, runs),
                "too_close": row["close"],
                "differing": row["differing"],
                "expansions": round(mean(row, "expansions"), 2),
            }
        )
    caption = (
        "Violations: runs in which a plan that was not returned exceeds the last plan returned. "
        "`lower`, `upper`: "
        "one-sided 95 % Clopper-Pearson limits of the rate. `differing`: runs whose plans or "
        "values "
        f"are not those of the list. Bounds of surrogate runs: {INFLATE} times the counts. "
        "`steps` of the printed race: calls, and the stop, each of which draws again; table "
        "`suites` has the paper's trees, which have no stop."
    )
    return Conclusion(
        tables=(ResultTable(name="soundness", caption=caption, rows=table),),
        findings=_findings(table),
    )


def _told(steps: int) -> str:
    """Steps of the printed race in words; empty where there are none."""
    return f"{steps - 1} call{'s' * (steps > 2)} and a stop" if steps else ""


def _findings(table: Sequence[Row]) -> list[ClaimFinding]:
    ours = [row for row in table if row["method"] != LITERAL]
    printed = [row for row in table if row["method"] == LITERAL]
    runs = sum(int(row["runs"] or 0) for row in ours)
    events = sum(int(row["violations"] or 0) for row in ours)
    rates = ", ".join(f"{row['rate']} at {row['steps']}" for row in printed)
    return [
        ClaimFinding(
            claim="at a stop of Exact mode no unexpanded leaf can improve the incumbent (Thm. "
            "frontier, "
            "exact)",
            found=f"{ours[0]['violations']} violations in {ours[0]['runs']} runs, rate at most "
            f"{float(ours[0]['upper'] or 0):.2g}",
            verdict=ClaimVerdict.FAILS if ours[0]["violations"] else ClaimVerdict.HOLDS,
        ),
        ClaimFinding(
            claim="the same of Surrogate mode (Lemma surrogate frontier coverage, Thm. two modes)",
            found=f"as printed: violated in {rates}",
            verdict=ClaimVerdict.FAILS,
            because="values come from draws of the leaves, keys from draws of the nodes, and "
            "neither bounds the other; coupled to one race, with phantoms "
            f"for the excess of the bounds, there are {events} violations in {runs} runs of all "
            "modes of tcc",
        ),
    ]


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Violation rates with their limits: ours at the bottom, as printed by steps."""
    table = conclusion.table("soundness")
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    names = []
    for at, row in enumerate(table):
        printed = row["method"] == LITERAL
        low, high = 100 * float(row["lower"] or 0), 100 * float(row["upper"] or 0)
        share = 100 * int(row["violations"] or 0) / int(row["runs"] or 1)
        colour = COLOURS[1] if printed else COLOURS[0]
        axes.plot([low, high], [at, at], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot([share], [at], "s" if printed else "o", color=colour)
        axes.text(
            max(high, share) + 3, at, f"{share:.1f} %" if share else "0", va="center", fontsize=6.5
        )
        names.append(f"As printed, {row['steps']}" if printed else str(row["method"]))
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(-2, 100)
    axes.set_xlabel("runs that a plan outside beats (%)")
    return figure


EXPERIMENT = Experiment(
    name="soundness",
    title="Soundness: how often a plan outside beats the stop",
    paper=(),
    seconds={Size.QUICK: 3, Size.FULL: 900},
    revision=2,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"soundness": draw},
)
