"""The least cost to go and the best residual to go of every state.

Specification: docs/spec/artifact.md, C5.  Cost: one pass over the edges for each of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tcc_certs.core.model import Core
from tcc_compiler.automata.best_to_go import best_to_go, exact_array
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Ints, Table
from tcc_compiler.counting.count import Weights
from tcc_compiler.frozen import frozen
from tcc_compiler.resources.guard import Guard
from tcc_compiler.resources.refusal import Refused

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@frozen(eq=False)
class Bounds:
    """Per state: h in nano-units and g in Q31.32; `cost_max` is the greatest cost_high."""

    cost_to_go: Ints
    residual_to_go: Ints
    cost_max: int


def bound(core: Core, table: Table, letters: Letters, weights: Weights, guard: Guard) -> Bounds:
    """The bounds of every state.

    Raises:
        Refused: TCC405 where a bound leaves 64 bits.
    """
    low, best = [0] * len(letters.calls), [0] * len(letters.calls)
    for letter, group in enumerate(letters.calls):
        if group[0] in weights.weight:
            low[letter] = min(core.calls[call].cost_low for call in group)
            best[letter] = max(weights.residual[call] for call in group)
    steps = len(table.levels)
    cost = best_to_go(table, exact_array(low, steps)[table.letter], np.minimum, guard)
    residual = best_to_go(table, exact_array(best, steps)[table.letter], np.maximum, guard)
    # The error names the tool of the call with the largest amount of that kind.
    costs = {call: core.calls[call].cost_low for call in weights.weight}
    _check_range("the least cost to go", (cost.min(), cost.max()), _tool(core, costs))
    place = _tool(core, weights.residual)
    _check_range("the best residual to go", (residual.min(), residual.max()), place)
    _check_range("the residual of a call", weights.residual.values(), place)
    return Bounds(
        cost_to_go=cost.astype(np.int64),
        residual_to_go=residual.astype(np.int64),
        cost_max=max((core.calls[call].cost_high for call in weights.weight), default=0),
    )


def _tool(core: Core, amounts: Mapping[int, int]) -> str | None:
    """The place of the tool with the call of the largest amount."""
    if not amounts:
        return None
    worst = max(sorted(amounts), key=lambda call: abs(amounts[call]))
    return f"tool {core.tools[core.calls[worst].tool].name}"


def _check_range(what: str, values: Iterable[int], place: str | None) -> None:
    worst = max(map(int, values), key=abs, default=0)
    if not _LEAST <= worst <= _MOST:
        raise Refused(
            "TCC405",
            f"{what} leaves 64 bits: {worst}",
            hint="make the costs or --beta smaller",
            place=place,
        )
