"""The log-sum-exp of short plans, of long ones, and what the paper's bound makes of them.

For each K: the sum over plans of at most K calls and over longer ones, both exact sums over states
and lengths; and the bound  max(LSE(<= K), s_ref + ln sum over k > K of B_k e^(-k c_min)) + ln 2
with s_ref the score of the empty prefix and with s_ref = M(root).
Cost: milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log
from typing import Any

from tcc_experiments.figures import COLOURS, HEIGHT, WIDTH
from tcc_experiments.graphs import any_of, compiled
from tcc_experiments.model import (
    ClaimFinding,
    ClaimVerdict,
    Conclusion,
    Experiment,
    Part,
    ResultTable,
    Row,
    Size,
)
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.plans import plans_by_depth
from tcc_runtime.numbers.tail import tail_lse

GRAPHS: dict[str, tuple[tuple[str, ...], int]] = {
    # B e^-c < 1: the tail falls off.
    "any{1,12} of four calls, costs 1.6 to 2.4": (("1.6", "1.8", "2", "2.4"), 12),
    "any{1,3} of two calls of cost 1": (("1", "1"), 3),
}
SMALL = "any{1,3} of two calls of cost 1"


def parts(_: Size) -> list[Part]:
    """One for each graph; the same at both sizes."""
    return [{"graph": name} for name in GRAPHS]


def work(part: Part) -> list[Row]:
    """A row for each K."""
    name = str(part["graph"])
    costs, most = GRAPHS[name]
    artifact = compiled(any_of(list(costs), 1, most))
    by_length = weights_by_length(artifact)
    counts = plans_by_depth(artifact)
    least = min(artifact.cost_low) / 1e9
    root = -artifact.cost_to_go(artifact.root) / 1e9
    rows: list[Row] = []
    for cut in range(1, most):
        partial = log(sum(by_length[: cut + 1]))
        tail = log(sum(counts[k] * exp(-k * least) for k in range(cut + 1, most + 1)))
        rows.append(
            {
                "graph": name,
                "K": cut,
                "all": log(sum(by_length)),
                "partial": partial,
                "tail": tail_lse(artifact, cut) * 2.0**-64,
                "paper_tail": tail,
                "bound": max(partial, tail) + log(2),
                "bound_M_root": max(partial, root + tail) + log(2),
            }
        )
    return rows


def weights_by_length(artifact: Artifact) -> list[float]:
    """The sum of e^score over the plans of each length."""
    level = {artifact.root: 1.0}
    found = []
    while level:
        found.append(sum(w for q, w in level.items() if artifact.accepts(q)))
        after: dict[int, float] = {}
        for q, weight in level.items():
            for call, target in artifact.edges(q):
                step = weight * exp(-artifact.cost_low[call] / 1e9)
                after[target] = after.get(target, 0.0) + step
        level = after
    return found


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Which bounds hold."""
    table: list[Row] = []
    for row in rows:
        numbers = {k: round(float(v), 4) for k, v in row.items() if isinstance(v, float)}
        whole = float(row["all"] or 0)
        table.append(
            {
                "graph": row["graph"],
                "K": row["K"],
                **numbers,
                "bound_holds": whole <= float(row["bound"] or 0) + 1e-12,
                "bound_M_root_holds": whole <= float(row["bound_M_root"] or 0) + 1e-12,
            }
        )
    false = [row for row in table if not row["bound_M_root_holds"]]
    small = next(row for row in table if row["graph"] == SMALL and row["K"] == 1)
    large = [row for row in table if row["graph"] != SMALL]
    loosest = max(float(r["paper_tail"] or 0) - float(r["tail"] or 0) for r in large)
    crossing = next(
        (r["K"] for r in large if float(r["paper_tail"] or 0) < float(r["partial"] or -inf)), None
    )
    exact = next((r["K"] for r in large if float(r["tail"] or 0) < float(r["partial"] or 0)), None)
    sound = all(row["bound_holds"] for row in table)
    return Conclusion(
        tables=(
            ResultTable(
                name="truncation",
                caption="Natural logarithms of sums of e^score, beta 1. `partial`: plans of at "
                "most K "
                "calls; `tail`: longer ones, exact, as a run with a cut publishes it; "
                "`paper_tail`: the "
                "paper's bound of the tail with s_ref = 0; `bound`, `bound_M_root`: its bound of "
                "`all` "
                "with s_ref = 0 and with s_ref = M(root).",
                rows=table,
            ),
        ),
        findings=(
            ClaimFinding(
                claim="after a small K the partial term dominates, which certifies safe truncation "
                "(Fig. LSE tail)",
                found=f"paper's tail bound below the partial term from K = {crossing} on; the "
                "exact "
                f"tail from K = {exact} on",
                verdict=ClaimVerdict.HOLDS if crossing else ClaimVerdict.FAILS,
                because="if B e^-c < 1; the tail itself can be summed, and the bound is up to "
                f"{loosest:.2f} score units above it",
            ),
            ClaimFinding(
                claim="the bound of the whole holds for any certified s_ref, such as M(root) (Eq. "
                "LSE)",
                found=f"{SMALL}, K = 1: all {small['all']}, bound {small['bound_M_root']} with "
                f"M(root); false in {len(false)} of {len(table)} rows",
                verdict=ClaimVerdict.FAILS if false else ClaimVerdict.HOLDS,
                because="M(root) already includes the first steps, and e^(-k c_min) charges them "
                "again; "
                f"with s_ref = 0 it holds in {'all' if sound else 'not all'} rows",
            ),
        ),
    )


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Partial and tails by K."""
    rows = [row for row in conclusion.table("truncation") if row["graph"] != SMALL]
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    ks = [row["K"] for row in rows]
    lines = (
        ("partial", "partial, at most K calls", "o-", 0),
        ("tail", "tail, exact", "s-", 2),
        ("paper_tail", "tail, paper's bound, $s_{ref}$ = 0", "^--", 1),
    )
    for column, label, style, colour in lines:
        axes.plot(ks, [row[column] for row in rows], style, color=COLOURS[colour], label=label)
    axes.set_xlabel("K (calls)")
    axes.set_ylabel("ln $\\sum$ e$^{score}$ (score units)")
    axes.legend(loc="lower left")
    return figure


EXPERIMENT = Experiment(
    name="truncation",
    title="Truncation: partial and tail",
    paper=("fig:lse-tail",),
    seconds={Size.QUICK: 2, Size.FULL: 2},
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"truncation": draw},
)
