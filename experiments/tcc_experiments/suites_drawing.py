"""The figure of the suites: expansions of each method, and which of them are right."""

from __future__ import annotations

from typing import Any

from tcc_experiments.figures import COLOURS
from tcc_experiments.model import Conclusion

_GRAPHS = (("A", 5), ("B", 4))


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Two panels of bars, on the paper's trees; a cross is a method that misses winners, with the
    share that it misses.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.3), sharey=True)
    table = conclusion.table("suites")
    for panel, (name, size) in zip(panels, _GRAPHS, strict=True):
        rows = [
            row
            for row in table
            if (row["trees"], row["suite"], row["size"]) == ("paper", name, size)
        ]
        for at, row in enumerate(rows):
            right = not row["missed_runs"]
            mean = float(row["expansions"] or 0)
            colour = COLOURS[0] if right else COLOURS[4]
            panel.barh(
                at,
                mean,
                color=colour,
                height=0.7,
                hatch=None if right else "////",
                edgecolor="white",
                linewidth=0,
            )
            share = int(row["missed_runs"] or 0) / int(row["runs"] or 1)
            words = f"{mean:.1f}" if right else f"{mean:.1f}  × {100 * share:.0f} %"
            panel.text(mean * 1.06, at, words, va="center", fontsize=6.5)
        panel.set_xscale("log")
        panel.set_xlim(1, 2000)
        panel.set_yticks(range(len(rows)), [str(row["method"]) for row in rows])
        panel.set_xlabel("mean expansions (internal nodes), log scale")
        kind = "balanced trees, 5 calls" if name == "A" else "partition graphs, 4 layers"
        panel.set_title(f"Suite {name}: {kind}")
        panel.tick_params(axis="y", length=0)
    panels[0].invert_yaxis()
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=COLOURS[0]),
        plt.Rectangle((0, 0), 1, 1, facecolor=COLOURS[4], hatch="////", edgecolor="white"),
    ]
    labels = ["never missed the winner", "missed it, × in that share of the runs"]
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure
