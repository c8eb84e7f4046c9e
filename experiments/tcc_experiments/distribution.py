"""Are the plans drawn from the softmax of their scores?  Chi-square tests of first and second.

The first k plans in order of value are a draw of k without replacement: the second of two has the
law  sum over i of p_i p_j / (1 - p_i).
Cost: 0.4 ms a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcc_experiments.baselines import ancestral
from tcc_experiments.evidence import search
from tcc_experiments.figures import COLOURS, HEIGHT, MARKS, WIDTH
from tcc_experiments.graphs import compiled_file
from tcc_experiments.intervals import chi_square, chi_square_tail, merged
from tcc_experiments.listing import Listing
from tcc_experiments.model import (
    Cell,
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

RUNS = {Size.QUICK: 300, Size.FULL: 6_000}
BLOCK = 2000
BOUNDS = {"mode": "surrogate", "inflate": "2"}
PRINTED = "Surrogate, as printed"
ANCESTRAL = "Ancestral sampling"
METHODS: dict[str, tuple[int, dict[str, Any]]] = {
    "Exact, tilt 0": (0, {}),
    "Exact, tilt 2": (2, {}),
    "Exact, tilt 8": (8, {}),
    "Exact, tilt 16": (16, {}),
    "Surrogate, coupled, tilt 0": (0, BOUNDS),
    "Surrogate, coupled, tilt 8": (8, BOUNDS),
    "Surrogate, coupled, anchored": (0, {**BOUNDS, "keys": "anchored"}),
    PRINTED: (0, {**BOUNDS, "race": "literal"}),
    "Fallback": (0, {"mode": "fallback"}),
    ANCESTRAL: (0, {}),
}
LAWFUL = tuple(name for name in METHODS if name not in (PRINTED, "Fallback", ANCESTRAL))


def parts(size: Size) -> list[Part]:
    """Blocks of seeds of each method."""
    runs = RUNS[size]
    return [
        {"method": method, "from": at, "to": min(at + BLOCK, runs)}
        for method in METHODS
        for at in range(0, runs, BLOCK)
    ]


def work(part: Part) -> list[Row]:
    """How often each plan came first, and second."""
    method = str(part["method"])
    tilt, told = METHODS[method]
    artifact = compiled_file("distribution.tcg", tilt=tilt)
    listing = Listing(artifact)
    leaves = listing.leaves()
    names = {listing.places[at].digest.hex(): k for k, at in enumerate(leaves)}
    first, second = [0] * len(leaves), [0] * len(leaves)
    for number in range(int(part["from"]), int(part["to"])):
        seed = seed_of(f"distribution {method}", number)
        if method == ANCESTRAL:
            leaf = ancestral(listing, listing.race(seed).uniform).leaf
            first[leaves.index(leaf or 0)] += 1
            continue
        run = search(artifact, Settings(**{"seed": seed, "top": 2, "race": "coupled", **told}))
        first[names[run.plans[0].leaf_id]] += 1
        second[names[run.plans[1].leaf_id]] += 1
    chance = [listing.total(at) / listing.total(0) for at in leaves]
    return [
        {
            "method": method,
            "plan": k,
            "chance": chance[k],
            "second_chance": sum(p * chance[k] / (1 - p) for i, p in enumerate(chance) if i != k),
            "first": first[k],
            "second": second[k],
        }
        for k in range(len(leaves))
    ]


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Statistics and tail areas."""
    counts = merged(rows, ("method", "plan", "chance", "second_chance"))
    table: list[Row] = []
    for method in METHODS:
        mine = [row for row in counts if row["method"] == method]
        runs = sum(row["first"] for row in mine)
        row: Row = {"method": method, "plans": len(mine), "runs": runs}
        for place, law in (("first", "chance"), ("second", "second_chance")):
            if not any(r[place] for r in mine):
                row |= {f"{place}_chi2": None, f"{place}_freedom": None, f"{place}_p": None}
                continue
            found, freedom = chi_square(
                [r[place] for r in mine], [runs * float(r[law]) for r in mine]
            )
            row |= {
                f"{place}_chi2": round(found, 2),
                f"{place}_freedom": freedom,
                f"{place}_p": float(f"{chi_square_tail(found, freedom):.3g}"),
            }
        table.append(row)
    points: list[Row] = [
        {
            "method": row["method"],
            "plan": row["plan"],
            "softmax": row["chance"],
            "share": row["first"] / sum(r["first"] for r in counts if r["method"] == row["method"]),
        }
        for row in counts
    ]
    lawful = [row for row in table if row["method"] in LAWFUL]
    least = min(min(float(r["first_p"] or 0), float(r["second_p"] or 0)) for r in lawful)
    tests = 2 * len(lawful)
    printed = next(row for row in table if row["method"] == PRINTED)
    walk = next(row for row in table if row["method"] == ANCESTRAL)
    return Conclusion(
        tables=(
            ResultTable(
                name="distribution",
                caption="Chi-square of the plan that came first, and of the one that came second, "
                "against the softmax of the scores (distribution.tcg, beta 1); p is the tail area.",
                rows=table,
            ),
            ResultTable(
                name="distribution_points",
                caption="Shares of each plan.",
                rows=points,
                shown=False,
            ),
        ),
        findings=(
            ClaimFinding(
                claim="the race is an exponential race: its winner is a draw from softmax(-C), at "
                "any "
                "tilt, with counts or bounds, and so is the second (Sec. model)",
                found=f"least p of {tests} tests {least:.3g} (by chance alone about "
                f"{1 / (tests + 1):.2g})",
                verdict=ClaimVerdict.HOLDS if least * tests > 0.01 else ClaimVerdict.FAILS,
            ),
            ClaimFinding(
                claim="(fixed additive costs need no search for a draw)",
                found=f"ancestral sampling: p = {walk['first_p']}",
                verdict=ClaimVerdict.EXTRA,
                because="weighted counts and one walk draw from the same softmax; the search is "
                "for runs "
                "that have to be certified and audited",
            ),
            ClaimFinding(
                claim="Surrogate mode realises the same race",
                found=f"as printed: p {_tail(printed['first_p'])} for the first, "
                f"{_tail(printed['second_p'])} "
                "for "
                "the second",
                verdict=ClaimVerdict.FAILS
                if float(printed["second_p"] or 0) < 1e-4
                else ClaimVerdict.DIFFERS,
                because="its stop omits plans that would have won, depending on their cost and "
                "position; the coupled race draws from the softmax with "
                "bounds, too",
            ),
        ),
    )


def _tail(area: Cell) -> str:
    """A tail area, that may be too small for a number."""
    return f"= {area}" if area else "below 1e-300"


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Shares against the softmax."""
    points = conclusion.table("distribution_points")
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    shown = ("Exact, tilt 0", "Exact, tilt 8", "Surrogate, coupled, tilt 0", PRINTED)
    most = max(float(row["softmax"] or 0) for row in points)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, zorder=0)
    for at, method in enumerate(shown):
        mine = [row for row in points if row["method"] == method]
        axes.plot(
            [row["softmax"] for row in mine],
            [row["share"] for row in mine],
            MARKS[at],
            color=COLOURS[at],
            label=method,
            fillstyle="none",
        )
    axes.set_xlim(0, 1.1 * most)
    axes.set_ylim(
        0, 1.1 * max(float(row["share"] or 0) for row in points if row["method"] in shown)
    )
    axes.set_xlabel("chance of the plan, softmax of its score")
    axes.set_ylabel("share of runs that it won")
    axes.legend(loc="upper left")
    return figure


EXPERIMENT = Experiment(
    name="distribution",
    title="The law: first and second plan against the softmax",
    paper=(),
    seconds={Size.QUICK: 3, Size.FULL: 25},
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"distribution": draw},
)
