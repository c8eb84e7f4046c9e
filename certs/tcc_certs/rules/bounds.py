"""C5, bounds: the least cost and the best residual to go, and the greatest cost of a call.

h(q) is the least of 0 where a plan may stop and cost_low(a) + h(p) over the edges; g(q) the
greatest of 0 and r(a) + g(p).  They are what keys of recipes R1 and R2 stand on.
Cost: one pass over the edges for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.rules.sweep import Block


def check_cost_to_go(
    block: Block, accept: Sequence[int], cost_low: Sequence[int], cost_to_go: Sequence[int]
) -> None:
    """The least cost to go of every state.

    Args:
        block: its targets precede their sources (C2).
        accept: [n], 0 or 1.
        cost_low: [c], nano-units.
        cost_to_go: [n], the column.

    Raises:
        Rejected: C501 at the first state whose bound differs; C504 where what is due there leaves
            64 bits.
    """
    due = _best(block, min, cost_low, cost_to_go)
    accepts = block.at_states(accept)
    due = [0 if ends and cost > 0 else cost for cost, ends in zip(due, accepts, strict=True)]
    _compare(block, due, cost_to_go, Code.COST_TO_GO, "cost_to_go")


def check_residual_to_go(
    block: Block, accept: Sequence[int], residual: Sequence[int], residual_to_go: Sequence[int]
) -> None:
    """The best residual to go of every state.

    Args:
        block: its targets precede their sources (C2).
        accept: [n], 0 or 1.
        residual: [c], Q31.32.
        residual_to_go: [n], the column.

    Raises:
        Rejected: C502 at the first state whose bound differs; C504 where what is due there leaves
            64 bits.
    """
    due = _best(block, max, residual, residual_to_go)
    accepts = block.at_states(accept)
    due = [0 if ends and best < 0 else best for best, ends in zip(due, accepts, strict=True)]
    _compare(block, due, residual_to_go, Code.RESIDUAL_TO_GO, "residual_to_go")


def _best(
    block: Block, best: Callable[..., int], call: Sequence[int], column: Sequence[int]
) -> list[int]:
    """The best of call plus target over the edges, 0 where there are none."""
    through = tuple(map(add, block.at_calls(call), block.at_targets(column)))
    return block.fold(best, through, 0)


def _compare(block: Block, due: list[int], column: Sequence[int], code: Code, name: str) -> None:
    found = block.at_states(column)
    if due != found:
        at = next(i for i, (x, y) in enumerate(zip(due, found, strict=True)) if x != y)
        fits = -(1 << 63) <= due[at] < 1 << 63
        path = f"{name}[{block.states[at]}]"
        raise Rejected(code if fits else Code.BOUND_RANGE, path, due[at], found[at])


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
