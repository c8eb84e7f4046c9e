"""A graph on which a bound on the mean of the race prunes the plan that wins the race.

adversarial.tcg: the single plan has the greatest distribution-level key; where its value is not
below gamma + ln 64 - 4.2 all groups are pruned, whatever their own arrivals are.
Cost: 1 ms a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from tcc_experiments.baselines import EULER, distribution_level
from tcc_experiments.evidence import search
from tcc_experiments.figures import COLOURS, HEIGHT, WIDTH
from tcc_experiments.graphs import compiled_file
from tcc_experiments.intervals import rate
from tcc_experiments.listing import ListedRace, Listing
from tcc_experiments.model import (
    ClaimFinding,
    ClaimVerdict,
    Conclusion,
    Experiment,
    Part,
    ResultTable,
    Row,
    Size,
    seed_of,
)
from tcc_runtime.settings.settings import Settings

RUNS = {Size.QUICK: 100, Size.FULL: 3_000}
BLOCK = 1000


def parts(size: Size) -> list[Part]:
    """Blocks of seeds."""
    runs = RUNS[size]
    return [{"from": at, "to": min(at + BLOCK, runs)} for at in range(0, runs, BLOCK)]


def work(part: Part) -> list[Row]:
    """Both methods on the same races."""
    listing = Listing(compiled_file("adversarial.tcg"))
    row: Row = {"kind": "sums", "runs": 0, "pruned": 0, "missed": 0, "expanded": 0, "exact": 0}
    example: list[Row] = []
    for number in range(int(part["from"]), int(part["to"])):
        seed = seed_of("adversarial", number)
        race = listing.race(seed)
        best = race.best()[0]
        found = distribution_level(listing, race.value)
        run = search(listing.artifact, Settings(seed=seed, race="coupled"))
        missed = found.leaf != best
        due: Row = {
            "runs": 1,
            "pruned": int(missed),
            "missed": int(run.plans[0].leaf_id != listing.places[best].digest.hex()),
            "expanded": found.expansions,
            "exact": run.expansions,
        }
        row |= {name: int(row[name] or 0) + int(value or 0) for name, value in due.items()}
        if missed and found.expansions == 2 and not example and number < BLOCK:
            example = _example(listing, race, number, found.leaf)
    return [row, *example]


def _example(listing: Listing, race: ListedRace, number: int, leaf: int | None) -> list[Row]:
    """The keys of the root's children in one race, with what lies below them.

    In one where the single plan alone was looked at, and all groups are pruned.
    """
    root = listing.places[0]
    names = [listing.artifact.texts[c] for c, _ in listing.artifact.edges(root.state or 0)]
    found: list[Row] = []
    for name, at in zip(names, range(root.first, root.last), strict=False):
        mean = listing.bound(at) + EULER + log(listing.count(at))
        found.append(
            {
                "kind": "example",
                "seed": number,
                "child": name,
                "plans": listing.count(at),
                "distribution_key": mean,
                "run_wise_key": listing.bound(at) - log(race.arrival[at]),
                "realised_maximum": race.greatest[at],
                "incumbent": -1.0 if leaf is None else race.value[leaf],
            }
        )
    return found


def conclude(rows: Sequence[Row]) -> Conclusion:
    """The rate over seeds, and one race in full."""
    sums = [row for row in rows if row["kind"] == "sums"]

    def total(name: str) -> int:
        return sum(int(row[name] or 0) for row in sums)

    runs, pruned, missed = total("runs"), total("pruned"), total("missed")
    rates: list[Row] = [
        {
            "method": method,
            "runs": runs,
            "winner_pruned": rate(events, runs),
            "winner_pruned_runs": events,
            "expansions": round(total(column) / runs, 2),
        }
        for method, events, column in (
            ("Dist-level", pruned, "expanded"),
            ("Exact, run-wise", missed, "exact"),
        )
    ]
    example: list[Row] = [
        {name: _rounded(value) for name, value in row.items() if name != "kind"}
        for row in rows
        if row["kind"] == "example"
    ]
    best = max(example, key=lambda row: float(row["realised_maximum"] or 0))
    return Conclusion(
        tables=(
            ResultTable(
                name="adversarial",
                caption="adversarial.tcg, both methods on the same races. `winner_pruned`: the "
                "method "
                "stopped without the plan of greatest value (exact 95 % limits).",
                rows=rates,
            ),
            ResultTable(
                name="adversarial_example",
                caption="One of these races: the children of the root. Dist-level stops at the "
                "incumbent; every run-wise key is at least the greatest value below it.",
                rows=example,
            ),
        ),
        findings=(
            ClaimFinding(
                claim="distribution-level pruning loses the realised winner on an adversarial "
                "graph "
                "(Fig. baselines c)",
                found=f"it does in {rates[0]['winner_pruned']} of {runs} runs; in run "
                f"{best['seed']} it stops at {best['incumbent']} while {best['child']} holds "
                f"{best['realised_maximum']}",
                verdict=ClaimVerdict.HOLDS if pruned else ClaimVerdict.FAILS,
            ),
            ClaimFinding(
                claim="the run-wise certificate does not prune it",
                found=f"{missed} of {runs} runs; in that run its key for {best['child']} is "
                f"{best['run_wise_key']}",
                verdict=ClaimVerdict.FAILS if missed else ClaimVerdict.HOLDS,
            ),
        ),
    )


def _rounded(value: object) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """For each child of the root: both keys and what was there to be found."""
    rows = conclusion.table("adversarial_example")
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    columns = (
        ("run_wise_key", "run-wise key", "v", COLOURS[0]),
        ("realised_maximum", "greatest value below", "o", COLOURS[6]),
        ("distribution_key", "Dist-level key", "s", COLOURS[1]),
    )
    for shift, (column, label, mark, colour) in zip((-0.12, 0, 0.12), columns, strict=True):
        axes.plot(
            [at + shift for at in range(len(rows))],
            [row[column] for row in rows],
            mark,
            color=colour,
            label=label,
        )
    level = float(rows[0]["incumbent"] or 0)
    axes.axhline(level, color=COLOURS[1], linewidth=0.8, linestyle="--")
    stops = "Dist-level stops here"
    axes.text(6.5, level - 0.03, stops, fontsize=6.5, va="top", ha="right", color=COLOURS[1])
    names = [str(row["child"]).replace("group(topic=", "").rstrip(")") for row in rows]
    axes.set_xticks(range(len(rows)), names)
    axes.set_xlabel("child of the root (a to f: groups of 64 plans)")
    axes.set_ylabel("score units (nats)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=3, columnspacing=0.9)
    return figure


EXPERIMENT = Experiment(
    name="adversarial",
    title="An adversarial graph: the mean of the race against the race",
    paper=("fig:adversarial",),
    seconds={Size.QUICK: 2, Size.FULL: 20},
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"adversarial": draw},
)
