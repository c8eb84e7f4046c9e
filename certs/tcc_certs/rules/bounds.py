"""C5, bounds: the least cost and the best residual to go, and the greatest cost of a call.

h(q) is the least of 0 where a plan may stop and cost_low(a) + h(p) over the edges; g(q) the
greatest of 0 and r(a) + g(p).  They are what keys of recipes R1 and R2 stand on.
Cost: one pass over the edges for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import add

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, ensure, require


def check_bounds(
    automaton: Automaton,
    cost_low: Sequence[int],
    residual: Sequence[int],
    cost_to_go: Sequence[int],
    residual_to_go: Sequence[int],
) -> None:
    """Both bounds hold their equations.

    Args:
        automaton: targets precede sources (C2).
        cost_low, residual: [c], nano-units and Q31.32.
        cost_to_go, residual_to_go: [n], the columns.

    Raises:
        Rejected: C501, C502 at the first state whose bound differs; C504 where what is due leaves
            64 bits.
    """
    costs = _through(automaton, cost_low, cost_to_go)
    for q, degree in enumerate(automaton.degrees()):
        due = min(islice(costs, degree), default=0)
        if due > 0 and automaton.accept[q]:
            due = 0
        if cost_to_go[q] != due:
            raise _differs(Code.COST_TO_GO, f"cost_to_go[{q}]", due, cost_to_go[q])
    residuals = _through(automaton, residual, residual_to_go)
    for q, degree in enumerate(automaton.degrees()):
        due = max(islice(residuals, degree), default=0)
        if due < 0 and automaton.accept[q]:
            due = 0
        if residual_to_go[q] != due:
            raise _differs(Code.RESIDUAL_TO_GO, f"residual_to_go[{q}]", due, residual_to_go[q])


def _through(automaton: Automaton, call: Sequence[int], state: Sequence[int]) -> Iterator[int]:
    """Edge by edge, the call's own value plus the target's."""
    labels = map(call.__getitem__, automaton.edge_call)
    return map(add, labels, map(state.__getitem__, automaton.edge_target))


def _differs(code: Code, path: str, due: int, found: int) -> Rejected:
    fits = -(1 << 63) <= due < 1 << 63
    return Rejected(code if fits else Code.BOUND_RANGE, path, due, found)


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
