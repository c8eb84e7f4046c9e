"""The graph of a core's partial derivatives, trimmed, and the digest of its root.

Normative text: docs/spec/core.md, section 6.  Residuals are met from the first one on; those that
reach no acceptance are left out; digests go from the last ones up, each residual's edges as a set.
Cost: linear in the residuals and their edges, calls counted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.core.model import Core
from tcc_certs.corecheck.budget import KEPT, Budget
from tcc_certs.corecheck.graph import Edges, reaching, targets_first
from tcc_certs.corecheck.residuals import Residuals
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.hashes import call_digest, state_digest

_PLACE = "state_digest of the root"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """S of the root; how many residuals have a plan, and how many were left out."""

    root: bytes
    live: int
    dead: int


def network_of(core: Core, most: int, budget: Budget) -> Network:
    """The graph of `core`.

    Args:
        core: what to derive; relaxed statements are left out already.
        most: the most residuals that are looked at.
        budget: the work that may be done.

    Raises:
        Rejected: G103 where the core has no plan or infinitely many; D201 past a bound.
    """
    residuals = Residuals(core, budget, in_parts=True)
    edges = _explore(residuals, most, budget)
    stops = residuals.stops
    live = reaching(stops, edges)
    if not live[:1] or not live[0]:
        raise Rejected(Code.CORE_DERIVATIVES, _PLACE, "a core with a plan", "none")
    order = targets_first(edges, live)
    if len(order) < sum(live):
        raise Rejected(Code.CORE_DERIVATIVES, _PLACE, "finitely many plans", "a cycle")
    digests = _digests(core, residuals, edges, stops, order, budget)
    return Network(root=digests[0], live=len(order), dead=len(edges) - len(order))


def _explore(residuals: Residuals, most: int, budget: Budget) -> Edges:
    """The edges of every residual that the first one leads to, numbered as they are met."""
    found: Edges = []
    met = 0 if residuals.first is None else 1
    while len(found) < met:
        left = residuals.left[len(found)]
        moves = residuals.moves(len(found))
        budget.spend(len(moves))
        after = [(letter, arrivals[left]) for letter, arrivals in moves]
        row = [(letter, target) for letter, target in after if target is not None]
        met = max(met, 1 + max((target for _, target in row), default=0))
        ensure(met <= most, Code.LIMIT, "core", f"at most {most} residuals", "more")
        budget.spend(KEPT * len(row))
        found.append(row)
    return found


def _digests(
    core: Core,
    residuals: Residuals,
    edges: Edges,
    stops: Sequence[bool],
    order: Sequence[int],
    budget: Budget,
) -> dict[int, bytes]:
    """S of every residual of `order`."""
    labels = [call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    letters = residuals.alphabet.letters
    found: dict[int, bytes] = {}
    for residual in order:
        pairs: set[tuple[int, bytes]] = set()
        for letter, target in edges[residual]:
            budget.spend(len(letters[letter].calls))
            pairs.update((call, found[target]) for call in letters[letter].calls)
        rows = [(labels[call], target) for call, target in sorted(pairs)]
        found[residual] = state_digest(stops[residual], rows)
    return found
