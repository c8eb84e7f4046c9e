"""What budgets buy: caps swept, each run's price and latency beside how far off its plan may be.

The same questions have the same answers at all caps: of each seed a call has one cost; a guess
leaves half of what is open, a probe a quarter, a quote nothing.  `gap` is by how much the best plan
of the race, at those costs, is worth more than the plan that was given: 0 where it is certified.
Cost: 10 ms a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcc_experiments.evidence import q64_of, shown
from tcc_experiments.figures import COLOURS, HEIGHT, MARKS, WIDTH
from tcc_experiments.graphs import compiled_file
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
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.pricing.quotes import Answer, Question
from tcc_runtime.settings.settings import Settings

PRICES = (0, 2, 4, 6, 8, 12, 16, 24, 48)
SLAS = (40, 600, 1200, 10_000)
STRICT = SLAS[0]
RUNS = {Size.QUICK: 6, Size.FULL: 200}
BLOCK = 50
LATENCY = {"guess": (15, 20), "probe": (90, 120), "quote": (150, 200)}


def parts(size: Size) -> list[Part]:
    """Blocks of seeds for each pair of caps."""
    runs = RUNS[size]
    return [
        {"sla": sla, "from": at, "to": min(at + BLOCK, runs)}
        for sla in SLAS
        for at in range(0, runs, BLOCK)
    ]


def work(part: Part) -> list[Row]:
    """All price caps, on the same seeds."""
    artifact = compiled_file("pareto.tcg", beta="3", tilt=8)
    rows = []
    for number in range(int(part["from"]), int(part["to"])):
        values = _values(artifact, number)
        for price in PRICES:
            rows.append(_run(artifact, number, int(part["sla"]), price, values))
    return rows


def _run(
    artifact: Artifact, number: int, sla: int, price: int, values: dict[tuple[str, ...], float]
) -> Row:
    """One run under two caps."""
    settings = Settings(seed=seed_of("pareto", number), price_cap=price, sla_ms=sla)
    name = f"pareto/{number}/{sla}/{price}"
    run = shown(name, artifact, settings, quoter=answers(number)).run
    spent = run.spent
    return {
        "sla_ms": sla,
        "price_cap": price,
        "number": number,
        "price": 0 if spent is None else spent.price,
        "latency_ms": 0 if spent is None else spent.latency,
        "gap": max(values.values()) - values[run.plans[0].calls],
        "certified": run.claim_type != "NoCert",
    }


def _values(artifact: Artifact, number: int) -> dict[tuple[str, ...], float]:
    """The value of every plan of the race, at the costs that its calls have."""
    settings = Settings(seed=seed_of("pareto", number), top=artifact.plans(artifact.root))
    run = shown(f"pareto/{number}/all", artifact, settings, quoter=answers(number)).run
    unit = 1 << 64
    return {plan.calls: q64_of(plan.value) / unit for plan in run.plans}


def answers(number: int) -> Callable[[Question], Answer]:
    """What the models say in the runs of one seed."""

    def quoter(question: Question) -> Answer:
        own = random_of(f"pareto/{question.call}", number)
        place = own.randrange(10**6)  # of the cost within the declared range, in millionths
        least, most = DECLARED[question.call]
        cost = least + (most - least) * place // 10**6
        share = {"guess": 2, "probe": 4}.get(question.model)
        latency = random_of(f"pareto/{question.model}", number, question.occurrence)
        took = latency.randint(*LATENCY[question.model])
        if share is None:
            return Answer(low=cost, high=cost, latency_ms=took)
        width = (question.high - question.low) // share
        low = max(question.low, min(cost - width * place // 10**6, question.high - width))
        return Answer(low=low, high=low + width, latency_ms=took)

    return quoter


DECLARED = {
    "gather(source=web)": (100_000_000, 2_100_000_000),
    "gather(source=archive)": (400_000_000, 1_800_000_000),
    "gather(source=expert)": (800_000_000, 1_400_000_000),
    "report(length=short)": (200_000_000, 800_000_000),
    "report(length=long)": (500_000_000, 1_700_000_000),
}


def conclude(rows: Sequence[Row]) -> Conclusion:
    """Means by caps, and which of them no other is better than."""
    points = [_point(rows, sla, price) for sla in SLAS for price in PRICES]
    for sla in SLAS:
        mine = [point for point in points if point["sla_ms"] == sla]
        for point in mine:
            point["pareto"] = not any(_better(other, point) for other in mine)
    fronts = {sla: _front(points, sla) for sla in SLAS}
    loose = max(len(front) for sla, front in fronts.items() if sla != STRICT)
    over = [int(row["latency_ms"] or 0) - int(row["sla_ms"] or 0) for row in rows]
    late = [ms for ms in over if ms > 0]
    dear = sum(int(row["price"] or 0) > int(row["price_cap"] or 0) for row in rows)
    certified = [row for row in rows if row["certified"]]
    greatest = max([float(row["gap"] or 0) for row in certified], default=0.0)
    return Conclusion(
        tables=(
            ResultTable(
                name="pareto",
                caption="Means over the same races. `price`: cents spent; `latency_ms`: of all "
                "questions; `gap`: value of the best plan of the race less that of the returned "
                "plan, score units; `certified`: share of runs that claim; "
                "`pareto`: no other price cap of this SLO has less price "
                "and less gap.",
                rows=points,
            ),
        ),
        findings=(
            ClaimFinding(
                claim="a strict SLO collapses the frontier to a single operating point "
                "(App. pareto)",
                found=f"at {STRICT} ms {len(fronts[STRICT])} point of {len(PRICES)} price caps",
                verdict=ClaimVerdict.HOLDS if len(fronts[STRICT]) == 1 else ClaimVerdict.FAILS,
            ),
            ClaimFinding(
                claim="with a looser SLO the same code yields multiple Pareto points",
                found=", ".join(f"{len(f)} at {sla} ms" for sla, f in fronts.items()),
                verdict=ClaimVerdict.HOLDS if loose > 1 else ClaimVerdict.FAILS,
            ),
            ClaimFinding(
                claim="the controller obeys the budgets, and selection keeps certificates "
                "(Prop. budget-sound)",
                found=f"of {len(rows)} runs {dear} beyond the price, {len(late)} beyond the SLO, "
                f"by at most {max(late, default=0)} ms; greatest gap of {len(certified)} certified "
                f"runs {greatest:g}; every ledger VALID",
                verdict=ClaimVerdict.FAILS if dear or greatest else ClaimVerdict.HOLDS,
                because="the time that an answer takes is known only when it has come: if the "
                "last one takes longer than 1.2 times the 95th percentile, "
                "the run ends in BudgetFail"
                if late
                else "",
            ),
        ),
    )


def _point(rows: Sequence[Row], sla: int, price: int) -> Row:
    mine = [row for row in rows if (row["sla_ms"], row["price_cap"]) == (sla, price)]
    mean = {
        name: sum(float(row[name] or 0) for row in mine) / len(mine)
        for name in ("price", "latency_ms", "gap", "certified")
    }
    point: Row = {"sla_ms": sla, "price_cap": price, "runs": len(mine)}
    point |= {name: round(value, 4) for name, value in mean.items()}
    return point


def _better(one: Row, other: Row) -> bool:
    """Whether a point is no worse in price and gap, and better in one of them."""
    pairs = [(float(one[n] or 0), float(other[n] or 0)) for n in ("price", "gap")]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _front(points: Sequence[Row], sla: int) -> set[tuple[float, float]]:
    return {
        (float(point["price"] or 0), float(point["gap"] or 0))
        for point in points
        if point["sla_ms"] == sla and point["pareto"]
    }


def draw(conclusion: Conclusion, plt: Any) -> Any:
    """Gap by price, a line for each SLO."""
    rows = conclusion.table("pareto")
    figure, axes = plt.subplots(figsize=(WIDTH, HEIGHT))
    for at, sla in enumerate(SLAS):
        mine = [row for row in rows if row["sla_ms"] == sla and row["pareto"]]
        mine.sort(key=lambda row: float(row["price"] or 0))
        axes.plot(
            [row["price"] for row in mine],
            [row["gap"] for row in mine],
            MARKS[at],
            linestyle="-",
            color=COLOURS[at],
            fillstyle="none",
            label=f"SLO {sla / 1000:g} s",
        )
    axes.set_xlabel("price (mean cents of a run)")
    axes.set_ylabel("gap to the best plan (score)")
    axes.set_ylim(0, None)
    axes.legend(loc="upper right")
    return figure


EXPERIMENT = Experiment(
    name="pareto",
    title="Budgets: price, latency and gap",
    paper=("fig:pareto",),
    seconds={Size.QUICK: 13, Size.FULL: 240},
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={"pareto": draw},
)
