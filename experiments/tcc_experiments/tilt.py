"""Expansions against depth: weights that carry the costs, against the paper's race without weights.

Every plan of any{D} has D calls, so no search can expand fewer than the D + 1 nodes on the path to
its plan.  any{0,D} has plans of all lengths.
Cost: a run of 20,000 expansions takes some seconds; they are cut off there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcc_experiments.evidence import search
from tcc_experiments.figures import COLOURS, HEIGHT, MARKS, WIDTH
from tcc_experiments.graphs import any_of, compiled, cost
from tcc_experiments.intervals import mean, merged, spread
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
from tcc_runtime.settings.predict import predict
from tcc_runtime.settings.settings import Settings

TILTS = (0, 2, 4, 8, 16)
DEPTHS = (2, 4, 8, 16, 32, 64)
CALLS = 6
EFFORT = 30_000  # of the prediction: a bucket pushed over an edge
RUNS = {Size.QUICK: 2, Size.FULL: 25}
CAP = {Size.QUICK: 200, Size.FULL: 3_000}


def parts(size: Size) -> list[Part]:
    """One for each kind of plans, depth and tilt."""
    return [
        {"least": least, "depth": depth, "tilt": bits, "runs": RUNS[size], "cap": CAP[size]}
        for least in ("depth", "none")
        for depth in DEPTHS
        for bits in TILTS
    ]


def work(part: Part) -> list[Row]:
    """The runs of one automaton."""
    depth, bits, cap = int(part["depth"]), int(part["tilt"]), int(part["cap"])
    rng = random_of("tilt")
    costs = [cost(rng) for _ in range(CALLS)]
    least = depth if part["least"] == "depth" else 0
    artifact = compiled(any_of(costs, least, depth), tilt=bits)
    due = predict(artifact, Settings(seed=bytes(32), race="coupled"), effort=EFFORT)
    row: Row = {
        "plans": f"any{{{depth}}}" if least else f"any{{0,{depth}}}",
        "depth": depth,
        "tilt": bits,
        "lower": due.lower if due else None,
        "upper": due.upper if due else None,
        "runs": 0,
        "expansions": 0,
        "expansions2": 0,
        "path": 0,
        "cut_off": 0,
    }
    for number in range(int(part["runs"])):
        seed = seed_of("tilt", depth, number)
        run = search(artifact, Settings(seed=seed, race="coupled", max_expansions=cap))
        whole = run.claim_type != "NoCert"
        seen: Row = {
            "runs": 1,
            "expansions": run.expansions,
            "expansions2": run.expansions**2,
            "path": len(run.plans[0].calls) + 1 if whole else 0,
            "cut_off": int(not whole),
        }
        row |= {name: int(row[name] or 0) + int(value or 0) for name, value in seen.items()}
        if int(row["cut_off"] or 0) == 5:
            break  # five that are cut off say as much as fifty
    return [row]


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Means by depth and tilt, beside the least possible."""
    table: list[Row] = []
    for row in merged(rows, ("plans", "depth", "tilt", "lower", "upper")):
        whole = row["runs"] - row["cut_off"]
        table.append(
            {
                "plans": row["plans"],
                "depth": row["depth"],
                "tilt": row["tilt"],
                "runs": row["runs"],
                "expansions": round(mean(row, "expansions"), 2),
                "+-": round(spread(row, "expansions"), 2) if row["runs"] > 1 else None,
                "predicted": _enclosure(row["lower"], row["upper"]),
                "predicted_middle": None
                if row["lower"] is None
                else float(f"{(row['lower'] * row['upper']) ** 0.5:.4g}"),
                "least": round(row["path"] / whole, 2) if whole else None,
                "cut_off": row["cut_off"],
            }
        )
    by = {(row["plans"], row["tilt"]): row for row in table}

    deep = by[f"any{{{DEPTHS[-1]}}}", 0]

    def of(plans: str, bits: int) -> str:
        row = by[plans, bits]
        return f"{'more than ' if row['cut_off'] else ''}{row['expansions']}"

    return Conclusion(
        tables=(
            ResultTable(
                name="tilt",
                caption=f"Expansions of exact runs over {CALLS} calls with costs in 0..1, beta 1, "
                "by bits "
                "of tilt; tilt 0 is the paper's race. `predicted`: an enclosure of the mean over "
                "all seeds. `least`: mean number of nodes on the path "
                "to the "
                "plan, which any search expands. `cut_off`: runs stopped at the cap; their mean "
                "is a "
                "lower bound.",
                rows=table,
            ),
        ),
        findings=(
            ClaimFinding(
                claim="(the paper does not say how its race grows with depth)",
                found=f"at depth 8, 16, 64 and tilt 0: {of('any{8}', 0)}, {of('any{16}', 0)}, "
                f"{of('any{64}', 0)} expansions; tilt 8: {of('any{8}', 8)}, {of('any{16}', 8)}, "
                f"{of('any{64}', 8)}, where the least possible is 9, 17, 65",
                verdict=ClaimVerdict.EXTRA,
                because="without weights the expansions grow exponentially with the depth: at 64 "
                f"{deep['predicted']} are predicted",
            ),
        ),
    )


def _enclosure(low: float | None, high: float | None) -> str | None:
    if low is None or high is None:
        return None
    ends = f"{low:.4g}", f"{high:.4g}"
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Expansions by depth, a line for each tilt."""
    rows = [r for r in conclusion.table("tilt") if not str(r["plans"]).startswith("any{0")]
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT + 0.5))
    for at, bits in enumerate(TILTS):
        mine = [row for row in rows if row["tilt"] == bits]
        depths = [int(row["depth"] or 0) for row in mine]
        means = [float(row["expansions"] or 0) for row in mine]
        axes.plot(depths, means, MARKS[at] + "-", color=COLOURS[at], label=f"tilt {bits}")
    axes.plot(
        DEPTHS, [d + 1 for d in DEPTHS], "--", color=COLOURS[6], linewidth=0.8,
        label="least possible",
    )  # fmt: skip
    due = [row for row in rows if row["tilt"] == 0 and row["predicted_middle"]]
    axes.plot(
        [row["depth"] for row in due], [row["predicted_middle"] for row in due], ":",
        color=COLOURS[0], label="predicted, tilt 0",
    )  # fmt: skip
    cut = [(row["depth"], row["expansions"]) for row in rows if row["cut_off"]]
    if cut:
        axes.plot(
            *zip(*cut, strict=True), "^", color=COLOURS[6], markersize=7, fillstyle="none",
            label="cut off: at least this",
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(DEPTHS, [str(d) for d in DEPTHS])
    axes.minorticks_off()
    axes.set_xlabel("depth of the plans (calls)")
    axes.set_ylabel("mean expansions (internal nodes)")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


EXPERIMENT = Experiment(
    name="tilt",
    title="Tilt: expansions against depth",
    paper=(),
    seconds={Size.QUICK: 4, Size.FULL: 9},
    revision=2,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"tilt": draw},
)
