"""What the limits of a grammar still leave to a session.

Calls whose outcome is unknown count.
Cost: linear in the history.
"""

from __future__ import annotations

from decimal import Decimal

from tcc_runtime.gate.session import Session


def remaining(session: Session) -> dict[str, int | Decimal]:
    """By name: ``calls`` (the most that may still follow), and each limit as it is written."""
    states = session.states()
    rank = session.policy.artifact.rank
    return {"calls": min([0 if q < 0 else rank(q) for q in states])}
