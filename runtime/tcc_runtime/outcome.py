"""What a run gives back, and what it tells while it goes on.

Text: docs/spec/race.md, section 9.  Values, keys and gaps are Q64.64 text; costs exact decimals.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.fixed import format_decimal, format_q64
from tcc_runtime.guards import Guard, Stop
from tcc_runtime.race import Node

_NANO_PLACES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan that the run found: canonical calls, cost, value, and L in hex."""

    calls: tuple[str, ...]
    cost: str
    value: str
    leaf_id: str


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
        mode: ``exact``.
        claim_type: ``RunWiseExact`` or ``NoCert``.
        stop: why it ended.
        plans: the best k found, best first.
        expansions, leaves: internal nodes expanded, leaves popped.
        frontier_key: the greatest key left; None where the frontier is empty.
        gap: frontier_key - incumbent, where both are there.
        guards: those that fired, in the order of their first firing.
        seed: hex.
        ledger_head: hex head of the ledger's chain; None where nothing was recorded.
    """

    mode: str
    claim_type: str
    stop: Stop
    plans: tuple[Found, ...]
    expansions: int
    leaves: int
    frontier_key: str | None
    gap: str | None
    guards: tuple[Guard, ...]
    seed: str
    ledger_head: str | None


def found(leaf: Node) -> Found:
    """The plan of a leaf."""
    return Found(
        calls=prefix(leaf),
        cost=format_decimal(leaf.cost, _NANO_PLACES),
        value=format_q64(leaf.key),
        leaf_id=leaf.digest.hex(),
    )


def prefix(node: Node) -> tuple[str, ...]:
    """The calls that lead to `node`, first to last."""
    calls: list[str] = []
    step: Node | None = node
    while step is not None:
        if step.call is not None:
            calls.append(step.call.text)
        step = step.parent
    return tuple(reversed(calls))
