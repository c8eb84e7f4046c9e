"""The result of a run that was stopped.

Text: docs/spec/race.md, section 11.  Cost: the numbers of the best plans; in fallback mode one look
at each item of the frontier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcc_certs.formats.fixed import format_q64
from tcc_runtime.asking.refine import Refinement
from tcc_runtime.guards import Stop
from tcc_runtime.item import VIEW, Item, calls_of
from tcc_runtime.loop import Search
from tcc_runtime.numbers.reals import UNDECIDED, clamped
from tcc_runtime.outcome import Found, Run, plan
from tcc_runtime.terms.modes import Claim, Terms


def result_of(
    search: Search,
    terms: Terms,
    refinement: Refinement | None,
    tail: int | None,
    stop: Stop,
    observed: frozenset[str],
    heuristic: Callable[[Item], int] | None = None,
) -> Run:
    """What a search has shown.

    Args:
        refinement: where costs are ranges.
        tail: T_K, where the run looked at short plans alone.
        stop: why it ended.
        observed: the calls with observed values.
        heuristic: the PaM value of a leaf, where it is asked for.
    """
    left, best = None, search.incumbent
    try:
        left = search.key_left()
    except UNDECIDED:  # only where nobody published it
        stop = Stop.PRECISION
    return Run(
        mode=search.mode,
        claim_type=search.claim if stop.certifies else Claim.NONE,
        law=_law(search, terms, refinement),
        stop=stop,
        plans=_plans(search, refinement, observed, heuristic),
        expansions=search.expansions,
        leaves=len(search.found),
        frontier_key=None if left is None else format_q64(left),
        gap=None if left is None or best is None else format_q64(clamped(left - best)),
        materialised=_materialised(search) if search.mode == "fallback" else None,
        tail_lse=None if tail is None else format_q64(tail),
        guards=tuple(search.fired),
        seed=terms.settings.seed.hex(),
        ledger_head=None,
        spent=None if refinement is None else refinement.controller.spent,
        taken=terms.taken if refinement is None else refinement.controller.spent.taken,
        atoms=() if refinement is None else tuple(refinement.atoms),
        after=tuple(terms.settings.after),
    )


def _plans(
    search: Search,
    refinement: Refinement | None,
    observed: frozenset[str],
    heuristic: Callable[[Item], int] | None,
) -> tuple[Found, ...]:
    """The best plans found; where PaM values are asked for, with these and their order."""
    plans = [_plan(*found, refinement, observed) for found in search.best]
    if heuristic is None:
        return tuple(plans)
    # In fallback the value of a leaf is its PaM value.
    falls = search.mode == "fallback"
    values = [order if falls else -heuristic(leaf) for order, _, leaf in search.best]
    by = sorted(range(len(plans)), key=lambda at: (values[at], search.best[at][1]))
    for rank, at in enumerate(by, 1):
        plans[at] = replace(plans[at], pam=(format_q64(-values[at]), rank))
    return tuple(plans)


def _materialised(search: Search) -> int:
    """The leaves that were pushed: those that were popped, and those that were not."""
    return len(search.found) + sum(item[VIEW] is None for item in search.frontier())


def _law(search: Search, terms: Terms, refinement: Refinement | None) -> str:
    """What the best plans are draws of."""
    if search.mode == "fallback" or terms.race == "literal":
        return "none"
    same = not search.switched and (refinement is None or refinement.same)
    return "softmax" if same else "run_wise_only"


def _plan(
    minus_value: int,
    name: bytes,
    leaf: Item,
    refinement: Refinement | None,
    observed: frozenset[str],
) -> Found:
    calls = calls_of(leaf)
    texts = [call.text for call in calls]
    if refinement is None:
        low: int = sum([call.cost_low for call in calls])
        return plan(texts, low, -minus_value, name, observed=observed)
    low, high = refinement.costs(leaf)
    return plan(texts, low, -minus_value, name, high, observed)
