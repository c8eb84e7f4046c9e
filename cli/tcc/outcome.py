"""The result of a run, as JSON fields and as text for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.forecast import text
from tcc_certs.fixed import format_decimal
from tcc_runtime.outcome import Run
from tcc_runtime.terms.predict import Prediction

_STOPS = {
    "max_expansions": "the limit on expansions was reached",
    "max_seconds": "the time limit was reached",
    "interrupted": "the run was interrupted",
    "precision": "a rounding stayed open at the greatest precision",
    "guard": "a guard ended the run",
}
_CLAIMS = {
    "RunWiseExact": "no plan but {these} could have scored higher in this run",
    "RunWiseSurrogate": "no plan but {these} could have scored higher in this run",
    "TruncationOnly": "no other plan this short could have scored higher in this run",
}


def run_fields(run: Run, predicted: Prediction | None = None) -> dict[str, Any]:
    """The JSON fields of a run; those that have no value are left out.

    Args:
        predicted: what was predicted before it.
    """
    known = None if predicted is None else {"lower": predicted.lower, "upper": predicted.upper}
    plans = [
        {
            "calls": list(p.calls),
            "cost": p.cost,
            **({} if p.cost_high is None else {"cost_high": p.cost_high}),
            "value": p.value,
            "leaf_id": p.leaf_id,
        }
        for p in run.plans
    ]
    fields = {
        "mode": run.mode,
        "claim_type": run.claim_type,
        "law": run.law,
        "stop": str(run.stop),
        "plans": plans,
        "expansions": run.expansions,
        "predicted_expansions": known,
        "leaves": run.leaves,
        "materialised": run.materialised,
        "tail_lse": run.tail_lse,
        "frontier_key": run.frontier_key,
        "gap": run.gap,
        "guards": [str(guard) for guard in run.guards],
        "seed": run.seed,
        "ledger_head": run.ledger_head,
        **_spent(run),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _spent(run: Run) -> dict[str, Any]:
    """What asking has taken: cents, milliseconds, epsilon; nothing where costs are points."""
    if run.spent is None:
        return {}
    return {
        "price_spent": run.spent.price,
        "latency_ms": run.spent.latency,
        "epsilon_used": format_decimal(run.spent.epsilon, 9),
    }


def print_run(run: Run, ledger: Path | None, predicted: Prediction | None = None) -> None:
    """The same for people: the plans, what it took, and what is claimed."""
    for place, plan in enumerate(run.plans, 1):
        click.echo(screen.clean(f"{place:>3}. {' '.join(plan.calls) or '(the empty plan)'}"))
        cost = plan.cost if plan.cost_high is None else f"{plan.cost} .. {plan.cost_high}"
        click.echo(click.style(f"     value {plan.value}, cost {cost}", dim=True))
    if not run.plans:
        click.echo("no plan was found")
    screen.print_fields(_rows(run, ledger, predicted))
    if run.claim_type == "NoCert":
        screen.doubtful(f"NoCert: {_why(run)}")
        return
    these = "these" if len(run.plans) > 1 else "it"
    screen.good(f"{run.claim_type}: {_CLAIMS[run.claim_type].format(these=these)}")


def _rows(run: Run, ledger: Path | None, predicted: Prediction | None) -> list[tuple[str, object]]:
    beside = "" if predicted is None else f" ({text(predicted)} predicted)"
    rows: list[tuple[str, object]] = [
        ("mode", run.mode),
        ("expansions", f"{run.expansions}{beside}, {run.leaves} leaves"),
    ]
    if run.gap is not None:
        rows.append(("gap", run.gap))
    if run.tail_lse is not None:
        rows.append(("longer plans", f"log-sum-exp of their scores at most {run.tail_lse}"))
    if run.spent is not None:
        amounts = "{price_spent} cents, {latency_ms} ms, epsilon {epsilon_used}"
        rows.append(("asking took", amounts.format(**_spent(run))))
    if run.guards:
        rows.append(("guards", ", ".join(str(guard) for guard in run.guards)))
    rows.append(("seed", run.seed))
    if ledger is not None:
        rows.append(("ledger", f"{ledger}, head {run.ledger_head}"))
    return rows


def _why(run: Run) -> str:
    stop = _STOPS.get(str(run.stop))
    if stop is not None and run.gap is not None:
        return f"{stop}; another plan may score higher, by up to the gap"
    if stop is not None:
        return stop
    if "BudgetFail" in run.guards:
        return "what plans cost could not all be asked (--quotes, caps); nothing is claimed"
    if run.guards:
        return f"{', '.join(str(guard) for guard in run.guards)}; nothing is claimed"
    return "this mode claims nothing of the plans that it did not visit"
