"""What a run gives back, and what it tells while it goes on.

Text: docs/spec/race.md, section 9.  Values, keys and gaps are Q64.64 text; costs exact decimals.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.fixed import format_decimal, format_q64
from tcc_runtime.controller import Spending
from tcc_runtime.guards import Guard, Stop
from tcc_runtime.modes import Claim
from tcc_runtime.node import Node, prefix

_NANO_PLACES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan that the run found: canonical calls, cost, value, and L in hex.

    `cost_high` is above the cost where that of a call was never known, only its range; else None.
    """

    calls: tuple[str, ...]
    cost: str
    value: str
    leaf_id: str
    cost_high: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands after an expansion; numbers are Q64.64.

    Attributes:
        expansions: nodes expanded so far.
        incumbent: B*, None until k leaves were found.
        bound: the greatest key left, None where none is.
        gap: bound - incumbent, where both are there.
    """

    expansions: int
    incumbent: int | None
    bound: int | None

    @property
    def gap(self) -> int | None:
        """How far the incumbent may still be beaten."""
        if self.incumbent is None or self.bound is None:
            return None
        return self.bound - self.incumbent


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one run.

    Attributes:
        mode: the one that the run ended in.
        claim_type: what the run shows of its plans.
        law: ``softmax`` where the plans are draws of it; ``run_wise_only`` where a cost came from
            a tool that does not promise one cost for each edge; else ``none``.
        stop: why it ended.
        plans: the best k found, best first.
        expansions, leaves: internal nodes expanded, leaves popped.
        frontier_key: the greatest key left; None where the frontier is empty.
        gap: frontier_key - incumbent, where both are there.
        materialised: leaves given a value of their own, in fallback mode; else None.
        tail_lse: T_K, where the run looked at short plans alone, Q64.64; else None.
        guards: those that fired, in the order of their first firing.
        seed: hex.
        ledger_head: hex head of the ledger's chain; None where nothing was recorded.
        spent: what asking has taken; None where every cost is a point.
    """

    mode: str
    claim_type: Claim
    law: str
    stop: Stop
    plans: tuple[Found, ...]
    expansions: int
    leaves: int
    frontier_key: str | None
    gap: str | None
    materialised: int | None
    tail_lse: str | None
    guards: tuple[Guard, ...]
    seed: str
    ledger_head: str | None
    spent: Spending | None = None


def found(leaf: Node, cost_high: int) -> Found:
    """The plan of a leaf, the cost of which is at most `cost_high`."""
    return Found(
        calls=prefix(leaf),
        cost=format_decimal(leaf.cost, _NANO_PLACES),
        value=format_q64(leaf.value),
        leaf_id=leaf.digest.hex(),
        cost_high=None if cost_high == leaf.cost else format_decimal(cost_high, _NANO_PLACES),
    )
