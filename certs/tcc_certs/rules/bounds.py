"""C5, bounds: the least cost and the best residual to go, and the greatest cost of a call.

h(q) is the least of 0 where a plan may stop and cost_low(a) + h(p) over the edges; g(q) the
greatest of 0 and r(a) + g(p).  They are what keys of recipes R1 and R2 stand on.
Cost: one pass over the edges for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add

from tcc_certs.errors import Code, ensure, require
from tcc_certs.rules.sweep import Block, Differences


def check_bounds(
    blocks: Sequence[Block],
    accept: Sequence[int],
    cost_low: Sequence[int],
    residual: Sequence[int],
    cost_to_go: Sequence[int],
    residual_to_go: Sequence[int],
) -> None:
    """Both bounds hold their equations.

    Args:
        blocks: all states; targets precede sources (C2).
        accept: [n], 0 or 1.
        cost_low, residual: [c], nano-units and Q31.32.
        cost_to_go, residual_to_go: [n], the columns.

    Raises:
        Rejected: C501, C502 at the first state whose bound differs; C504 where what is due leaves
            64 bits.
    """
    found = _compare(blocks, min, accept, cost_low, cost_to_go)
    _refuse(found, Code.COST_TO_GO, "cost_to_go")
    found = _compare(blocks, max, accept, residual, residual_to_go)
    _refuse(found, Code.RESIDUAL_TO_GO, "residual_to_go")


def _compare(
    blocks: Sequence[Block],
    best: Callable[..., int],
    accept: Sequence[int],
    call: Sequence[int],
    column: Sequence[int],
) -> Differences[int]:
    """The best of 0 where a plan may stop, and of call plus target over the edges."""
    differences: Differences[int] = Differences()
    for block in blocks:
        through = map(add, block.at_calls(call), block.at_targets(column))
        due = block.fold(best, through, 0)
        for at, accepts in enumerate(block.at_states(accept)):
            if accepts:
                due[at] = best(due[at], 0)
        differences.note(block.states, due, block.at_states(column))
    return differences


def _refuse(found: Differences[int], code: Code, column: str) -> None:
    if found.first is not None:
        due = found.first[1]
        fits = -(1 << 63) <= due < 1 << 63
        found.refuse(code if fits else Code.BOUND_RANGE, column)


def check_range(residual: Iterable[int]) -> None:
    """Every residual of a call is a Q31.32 number.

    Raises:
        Rejected: C504.
    """
    for i, value in enumerate(residual):
        fits = -(1 << 63) <= value < 1 << 63
        ensure(fits, Code.BOUND_RANGE, f"residual of call {i}", "64 bits", value)


def check_cost_max(cost_high: Sequence[int], cost_max: int) -> None:
    """`cost_max` is the greatest cost_high, 0 without calls.

    Raises:
        Rejected: C503.
    """
    require(max(cost_high, default=0), cost_max, Code.COST_MAX, "manifest.cost_max")
