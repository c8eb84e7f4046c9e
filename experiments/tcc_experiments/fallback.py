"""The fallback's work bound: leaves that it makes and pops, by each bound that the paper names.

The text prunes nodes by M, the lemma and its appendix by "exact leaf-wise LSE": of scores, or of
the values that leaves are ranked by.  With the last one, over the paper's trees,

- the leaves popped are the k best, in order: what the baseline of the lemma pops, step by step;
- the nodes expanded are those whose bound is above the k-th value;
- the leaves made and not popped are at most  (b - 1) * nodes - (k - 1)  where no node has more than
  b children: each node expanded but the root, each node left, and each leaf made is a child of a
  node expanded.  For b = 2 this is the bound as printed, which has no b.

With tau = 1 the noise  G - ln E = -ln(ln U ln(1 - U))  is at least -2 ln ln 2 = 0.733 for every U:
by M the best leaf of the best bound exceeds every bound, so the search never turns back.  With a
great tau the noise is that of the race.  The runtime's fallback, which claims nothing, goes by M;
its leaves hang below one more node.
Cost: 1 ms a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tcc_experiments.evidence import search
from tcc_experiments.figures import COLOURS, HEIGHT, MARKS, WIDTH
from tcc_experiments.graphs import balanced_tree, compiled
from tcc_experiments.intervals import mean, merged, percent
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
from tcc_experiments.paper_trees import (
    BOUNDS,
    REALISED,
    M,
    Tree,
    balanced,
    best_leaves,
    drawn,
    fallback_keys,
    fallback_values,
    search as searched,
    words,
)
from tcc_runtime.settings.settings import Settings

BRANCHINGS = (2, 3, 4, 6, 8, 12)
CALLS = 2
TOP = 3  # how many leaves are looked at in their order
# The value that leaves are ranked by: (tau, whether it has - ln E).
TEXT, RACE, ALGORITHM = "G - ln E", "G/100 - ln E", "G"
NOISE = {TEXT: ("1", True), RACE: ("100", True), ALGORITHM: ("1", False)}
RUNTIME = (TEXT, RACE)
NUMBERS = {
    "paper": {Size.QUICK: (1, 50), Size.FULL: (10, 200)},
    "runtime": {Size.QUICK: (1, 20), Size.FULL: (5, 50)},
}
# Trees of two calls without costs in which all nodes have to be expanded for one leaf: the uniforms
# of their leaves, whose value is G.  The paper has the first in words.
TIGHT = "tight"
BEST, OTHER, BESIDE = 0.36788, 0.19230, 0.13349  # values 0, -0.5 and -0.7
UNIFORMS = {
    2: (BEST, BESIDE, OTHER, OTHER),
    3: (BEST, BESIDE, BESIDE, *[OTHER] * 6),
}


def parts(size: Size) -> list[Part]:
    """One for each tight tree, and for each noise, branching and graph."""
    tight: list[Part] = [{"who": TIGHT, "noise": TIGHT, "branching": b} for b in UNIFORMS]
    return tight + [
        {"who": who, "noise": noise, "branching": b, "graph": number, "seeds": numbers[size][1]}
        for who, numbers in NUMBERS.items()
        for noise in (NOISE if who == "paper" else RUNTIME)
        for b in BRANCHINGS
        for number in range(numbers[size][0])
    ]


def work(part: Part) -> list[Row]:
    """The fallback by each bound on the paper's trees, or the runtime's own."""
    branching = int(part["branching"])
    if part["who"] == TIGHT:
        return [_judged(tight_tree(branching), tight_values(branching), TIGHT, REALISED, branching)]
    runs = _on_paper if part["who"] == "paper" else _of_runtime
    found = runs(str(part["noise"]), branching, int(part["graph"]), int(part["seeds"]))
    return list(merged(list(found), ("who", "noise", "bound", "branching")))


def _on_paper(noise: str, branching: int, number: int, seeds: int) -> Iterator[Row]:
    tau, arrival = NOISE[noise]
    for at in range(seeds):
        rng = random_of("fallback work", branching, number, at)
        tree = drawn(balanced(CALLS, branching), rng)
        value = fallback_values(tree, words(tree, rng), float(tau), arrival)
        for bound in BOUNDS:
            yield _judged(tree, value, noise, bound, branching)


def _judged(tree: Tree, value: Sequence[float], noise: str, bound: str, branching: int) -> Row:
    key = fallback_keys(tree, value, bound)
    one = searched(tree, key)
    nodes = len(one.expanded)
    order = one.popped == best_leaves(tree, value)
    order = order and searched(tree, key, TOP).popped == best_leaves(tree, value, TOP)
    return {
        "who": "paper",
        "noise": noise,
        "bound": bound,
        "branching": branching,
        "runs": 1,
        "n_int": nodes,
        "popped": len(one.popped),
        "made": one.made,
        "beyond": int(one.deferred > (branching - 1) * nodes),
        "beyond_printed": int(one.deferred > nodes),
        "late": int(bound == REALISED and not order),
    }


def tight_tree(branching: int) -> Tree:
    """Two calls, without costs."""
    shape = balanced(CALLS, branching)
    return Tree(shape, [0.0] * len(shape.below))


def tight_values(branching: int) -> list[float]:
    """The values of the leaves of the worked example."""
    tree = tight_tree(branching)
    word = [0] * len(tree.shape.below)
    for at, uniform in zip(tree.leaves, UNIFORMS[branching], strict=True):
        word[at] = int(uniform * 2**64)
    return fallback_values(tree, word, arrival=False)


def _of_runtime(noise: str, branching: int, number: int, seeds: int) -> Iterator[Row]:
    artifact = compiled(balanced_tree(random_of("fallback", branching, number), CALLS, branching))
    for at in range(seeds):
        seed = seed_of("fallback", branching, number, at)
        tau = NOISE[noise][0]
        run = search(artifact, Settings(seed=seed, race="coupled", mode="fallback", tau=tau))
        made = run.materialised or 0
        yield {
            "who": "runtime",
            "noise": noise,
            "bound": M,
            "branching": branching,
            "runs": 1,
            "n_int": run.expansions,
            "popped": run.leaves,
            "made": made,
            "beyond": int(made - run.leaves > (branching - 1) * run.expansions),
            "beyond_printed": int(made - run.leaves > run.expansions),
            "late": 0,
        }


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Leaves made against what the lemma allows."""
    tables: dict[str, list[Row]] = {"paper": [], "runtime": []}
    for row in merged(rows, ("who", "noise", "bound", "branching")):
        runs = int(row["runs"])
        tables[row["who"]].append(
            {
                "noise": row["noise"],
                "bound": row["bound"],
                "branching": row["branching"],
                "runs": runs,
                "n_int": round(mean(row, "n_int"), 3),
                "popped": round(mean(row, "popped"), 3),
                "made": round(mean(row, "made"), 3),
                "beyond": round(row["beyond"] / runs, 5),
                "beyond_printed": round(row["beyond_printed"] / runs, 5),
                "late": round(row["late"] / runs, 5),
            }
        )
    return Conclusion(
        tables=(
            ResultTable(
                name="fallback",
                caption=f"The paper's balanced trees of {CALLS} calls, with costs drawn for each "
                "run; `noise` is the part of a leaf's value beside its score, `bound` the bound "
                "by which nodes are popped. Means per run: nodes expanded, leaves popped, leaves "
                "made. Shares of runs: `beyond`, more leaves unpopped than (b - 1) per expanded "
                "node; `beyond_printed`, more than one; `late`, for realised LSE, the leaves "
                "popped are "
                f"not the best one, or the best {TOP}, in order. `{TIGHT}`: worked examples, of "
                "one run each.",
                rows=tables["paper"],
            ),
            ResultTable(
                name="fallback_runtime",
                caption="The fallback of the runtime, by M, on artifacts of the same kind, where "
                "each leaf is below a node of its own, which is expanded, "
                "too. It claims nothing.",
                rows=[
                    {name: cell for name, cell in row.items() if name != "late"}
                    for row in tables["runtime"]
                ],
            ),
        ),
        findings=_findings(tables["paper"], tables["runtime"]),
    )


def _findings(table: Sequence[Row], runtime: Sequence[Row]) -> tuple[ClaimFinding, ...]:
    drawn_rows = [row for row in table if row["noise"] != TIGHT]
    realised = [row for row in drawn_rows if row["bound"] == REALISED]
    broken = [row for row in table if row["beyond_printed"]]
    worst = max(table, key=lambda row: float(row["beyond_printed"] or 0))
    beyond = sum(float(row["beyond"] or 0) * int(row["runs"] or 0) for row in table)
    late = sum(float(row["late"] or 0) * int(row["runs"] or 0) for row in realised)
    runs = sum(int(row["runs"] or 0) for row in realised)
    tight = "; ".join(
        f"b = {row['branching']}: {float(row['n_int'] or 0):g} nodes, "
        f"{float(row['made'] or 0) - float(row['popped'] or 0):g} leaves"
        for row in table
        if row["noise"] == TIGHT
    )
    # With that noise, by M: one plan, and no other.
    straight = [row for row in drawn_rows if (row["noise"], row["bound"]) == (TEXT, M)]
    least = all(row["n_int"] == CALLS for row in straight)
    spread = [float(row["n_int"] or 0) for row in realised if row["noise"] == TEXT]
    most = max(float(row["made"] or 0) for row in runtime)
    return (
        ClaimFinding(
            claim="of the leaves that are made, at most one a node expanded is not popped "
            "(Lemma fallback, Thm. fallback, part 1)",
            found=f"beyond it from branching {min(int(r['branching'] or 0) for r in broken)} on, "
            f"in up to {percent(float(worst['beyond_printed'] or 0))} of the runs"
            if broken
            else "never beyond it",
            verdict=ClaimVerdict.FAILS if broken else ClaimVerdict.HOLDS,
            because="a node with b leaves makes b at once: at most (b - 1) a node expanded, which "
            f"is exceeded in {beyond:g} runs, and reached ({tight}). For b = 2 that is the bound "
            f"as printed. The runtime's fallback makes at most {most:g} in the mean, as each "
            "leaf has a "
            "bound of its own",
        ),
        ClaimFinding(
            claim="the fallback pops the leaves of the baseline, none later than it does "
            "(Lemma fallback, Thm. fallback, part 2)",
            found=f"by realised LSE: not the best one, or the best {TOP}, in order, in {late:g} of "
            f"{runs} runs",
            verdict=ClaimVerdict.FAILS if late else ClaimVerdict.HOLDS,
        ),
        ClaimFinding(
            claim="Fallback explores the most (Tab. real pipeline)",
            found=f"with tau = 1 on these trees: by M {CALLS} nodes, those of one plan, in every "
            f"run; by realised LSE {min(spread):.1f} to {max(spread):.1f}"
            if least
            else "with tau = 1 some runs by M turn back",
            verdict=ClaimVerdict.DIFFERS if least else ClaimVerdict.FAILS,
            because="it depends on the bound, and the paper names two. With that of App. E "
            "Fallback expands more than both modes that certify (table "
            "`suites`). With M, the bound of the text and of the runtime, "
            "it expands least: G - ln E is never below 0.733, and M bounds "
            "scores without noise, so the first leaf of the best bound ends "
            "the search",
        ),
    )


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Leaves left unpopped by branching, by realised LSE, beside what is allowed."""
    rows = [
        row
        for row in conclusion.table("fallback")
        if (row["noise"], row["bound"]) == (TEXT, REALISED)
    ]
    nodes = [float(row["n_int"] or 0) for row in rows]
    branching = [int(row["branching"] or 0) for row in rows]
    left = [float(row["made"] or 0) - float(row["popped"] or 0) for row in rows]
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    lines = (
        (left, "made, not popped", "-"),
        (nodes, "allowed as printed: one a node", "--"),
        ([(b - 1) * n for b, n in zip(branching, nodes, strict=True)], "(b - 1) a node", ":"),
    )
    for at, (values, label, style) in enumerate(lines):
        axes.plot(branching, values, MARKS[at] + style, color=COLOURS[at], label=label)
    axes.set_xlabel("branching b (children a node)")
    axes.set_ylabel("mean leaves a run (realised LSE)")
    axes.set_ylim(0, 1.6 * max(left))
    axes.legend(loc="upper left")
    return figure


EXPERIMENT = Experiment(
    name="fallback",
    title="Fallback: leaves made and popped",
    paper=("thm:fallback",),
    seconds={Size.QUICK: 4, Size.FULL: 18},
    revision=2,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"fallback": draw},
)
