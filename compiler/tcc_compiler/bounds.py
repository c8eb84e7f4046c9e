"""The least cost to go and the best residual to go of every state.

Specification: docs/spec/artifact.md, C5.  Cost: one pass over the edges, once a letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.grammar import Core
from tcc_compiler.count import Weights
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters
from tcc_compiler.machine import Machine
from tcc_compiler.refusal import Refused

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Per state: h in nano-units and g in Q31.32; `cost_max` is the greatest cost_high."""

    cost_to_go: list[int]
    residual_to_go: list[int]
    cost_max: int


def bound(
    core: Core,
    machine: Machine,
    order: Sequence[int],
    letters: Letters,
    weights: Weights,
    guard: Guard,
) -> Bounds:
    """The bounds of every state; `order` has targets first.

    Raises:
        Refused: TCC405 where a bound leaves 64 bits.
    """
    low, best = [0] * len(letters.calls), [0] * len(letters.calls)
    for letter, group in enumerate(letters.calls):
        if group[0] in weights.weight:
            low[letter] = min(core.calls[call].cost_low for call in group)
            best[letter] = max(weights.residual[call] for call in group)
    cost, residual = [0] * machine.states, [0] * machine.states
    for q in order:
        edges = machine.edges[q]
        guard.tick(1 + len(edges))
        costs = [low[letter] + cost[target] for letter, target in edges]
        residuals = [best[letter] + residual[target] for letter, target in edges]
        if machine.accept[q]:
            costs.append(0)
            residuals.append(0)
        cost[q], residual[q] = min(costs), max(residuals)
    _check_range("the least cost to go", cost)
    _check_range("the best residual to go", residual)
    _check_range("the residual of a call", list(weights.residual.values()))
    return Bounds(
        cost_to_go=cost,
        residual_to_go=residual,
        cost_max=max((core.calls[call].cost_high for call in weights.weight), default=0),
    )


def _check_range(what: str, values: Sequence[int]) -> None:
    worst = max(values, key=abs, default=0)
    if not _LEAST <= worst <= _MOST:
        raise Refused(
            "TCC405",
            f"{what} leaves 64 bits: {worst}",
            hint="make the costs or --beta smaller",
        )
