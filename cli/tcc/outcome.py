"""The result of a run, as JSON fields and as text for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcc import screen
from tcc.forecast import estimate_fields, text
from tcc_certs.core.enforced import shortened
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.outcome import Run
from tcc_runtime.terms.estimate import Estimate
from tcc_runtime.terms.predict import Prediction

_STOPS = {
    "max_expansions": "the limit on expansions was reached",
    "max_seconds": "the time limit was reached",
    "interrupted": "the run was interrupted",
    "precision": "a rounding stayed open at the greatest precision",
    "guard": "a guard ended the run",
}


def run_fields(
    run: Run, predicted: Prediction | None = None, estimated: Estimate | None = None
) -> dict[str, Any]:
    """The JSON fields of a run; those that have no value are left out.

    Args:
        predicted: what was predicted before it.
        estimated: the same, of a run over a relaxed artifact.
    """
    known = None if predicted is None else {"lower": predicted.lower, "upper": predicted.upper}
    plans = [
        {
            "calls": list(p.calls),
            "cost": p.cost,
            **({} if p.cost_high is None else {"cost_high": p.cost_high}),
            "value": p.value,
            "leaf_id": p.leaf_id,
            **({"assumed": list(p.assumed)} if p.assumed else {}),
            **({} if p.pam is None else {"pam": {"value": p.pam[0], "rank": p.pam[1]}}),
        }
        for p in run.plans
    ]
    fields = {
        "mode": run.mode,
        "claim_type": run.claim_type,
        "law": run.law,
        "stop": str(run.stop),
        "after": list(run.after) or None,
        "plans": plans,
        "pam_claim": "NoCert" if any(p.pam for p in run.plans) else None,
        "expansions": run.expansions,
        "predicted_expansions": known,
        "estimated_expansions": None if estimated is None else estimate_fields(estimated),
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
    """What asking has taken, where costs are ranges, and what is stated of atoms, where any are."""
    stated = {} if run.taken is None else dict(run.taken.fields())
    if run.spent is None:
        return stated
    return {
        "price_spent": run.spent.price,
        "latency_ms": run.spent.latency,
        "epsilon_used": format_decimal(run.spent.epsilon_used, 9),
        **stated,
    }


def print_run(
    run: Run, ledger: Path | None, top: int | None, predicted: Prediction | None = None
) -> None:
    """The same for people: the plans, what it took, and what is claimed.

    Args:
        top: how many plans were asked for; None where that is not known.
    """
    nothing = "(nothing more)" if run.after else "(the empty plan)"
    if run.after:
        screen.say(f"after {' '.join(run.after)}:")
    for place, plan in enumerate(run.plans, 1):
        screen.say(f"{place:>3}. {' '.join(plan.calls) or nothing}")
        cost = plan.cost if plan.cost_high is None else f"{plan.cost} .. {plan.cost_high}"
        screen.say(f"     value {plan.value}, cost {cost}", dim=True)
        if plan.pam is not None:
            screen.say(f"     PaM {plan.pam[0]}, rank {plan.pam[1]}: NoCert", dim=True)
        if plan.assumed:
            screen.say(f"     assumes the answers in {shortened(plan.assumed)}", dim=True)
    if not run.plans:
        screen.say("no plan was found")
    screen.print_fields(_rows(run, ledger, predicted))
    if run.claim_type == "NoCert":
        screen.doubtful(f"NoCert: {_why(run)}")
        return
    screen.good(f"{run.claim_type}: {claim_text(run, top)}")


def claim_text(run: Run, top: int | None) -> str:
    """What a certified run has shown, in words: nothing is said of a plan that there is not.

    Args:
        top: as for :func:`print_run`; with fewer plans than that there are no others.
    """
    found = len(run.plans)
    short = " this short" if run.claim_type == "TruncationOnly" else ""
    if run.after:
        short += " after these calls" if len(run.after) > 1 else " after this call"
    # A run that has certified fewer plans than it was asked for has seen every one that there is.
    all_seen = top is not None and found < top
    if found == 0:
        return f"there is no plan{short}"
    if all_seen:
        return (
            f"these {found} are all the plans{short} there are"
            if found > 1
            else (f"this is the only plan{short} there is")
        )
    others = f"no other plan{short}" if found == 1 else f"no plan{short} but these {found}"
    return f"{others} could have scored higher in this run"


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
    if run.taken is not None and (said := run.taken.fields()):
        pair: Any = said["eps_delta"]
        rows.append(("privacy", f"epsilon {pair['eps']} at delta {pair['delta']}, of its atoms"))
    if run.guards:
        rows.append(("guards", ", ".join(str(guard) for guard in run.guards)))
    rows.append(("seed", run.seed))
    if ledger is not None:
        rows.append(("ledger", f"{ledger}, head {run.ledger_head}"))
    return rows


def _why(run: Run) -> str:
    if not run.plans:
        return _why_none(run)
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


def _why_none(run: Run) -> str:
    """Of a run that claims nothing and found no plan: that it does not say that there is none."""
    reason = _STOPS.get(str(run.stop)) or ", ".join(str(guard) for guard in run.guards)
    before = f"{reason} before a plan was found" if reason else "no plan was found"
    return f"{before}; this does not say that there is none"
