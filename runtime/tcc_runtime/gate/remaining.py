"""What the limits of a grammar still leave to a session.

A call whose outcome is unknown counts, with what it may have taken at most.  What a plan still
needs is no part of it.
Cost: linear in the limits, whatever was called before.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from operator import add
from typing import Final

from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.gate.session import Session

_NANO: Final = 9


def remaining(session: Session) -> dict[str, int | Decimal]:
    """By name: ``calls``, the most that may still follow, then each limit as a grammar has it.

    Price and latency are whole (cents, ms), uses are calls, everything else is a decimal.
    """
    policy, taken = session.policy, session.taken
    if session.under_way:
        taken = tuple(map(add, taken, policy.takes(session.made[-1].group, None)))
    found: dict[str, int | Decimal] = {"calls": _most_calls(session)}
    for limit, took in zip(policy.core.limits, taken, strict=True):
        if limit.least:
            continue
        left = limit.value - took
        if limit.kind == "depth":
            found["calls"] = min(found["calls"], left)
            continue
        name = limit.text.rpartition("<=")[0].strip()
        exact = limit.kind in ("cost", "epsilon", "sum")
        value = Decimal(format_decimal(left, _NANO)) if exact else left
        found[name] = min(found.get(name, value), value)
    return {**found, **_of_monitors(session)}


def _most_calls(session: Session) -> int:
    walk, rank = session.policy.walk, session.policy.artifact.rank
    return min(
        max([0 if q < 0 else rank(q) for q in walk.states(place)])
        for place in session.known_places()
    )


def _of_monitors(session: Session) -> Mapping[str, Decimal]:
    """What monitors that add up still leave."""
    memory = session.memory
    if memory is None:
        return {}
    behind = session.made[-1].seen if session.under_way else None
    found: dict[str, Decimal] = {}
    for text, left in memory.left_of_sums(behind):
        name = text.removeprefix("limit ").rpartition("<=")[0].strip()
        # Of two limits on one sum the tighter one counts.
        found[name] = min(found.get(name, Decimal(left)), Decimal(left))
    return found
