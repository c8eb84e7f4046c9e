"""Why a call is refused: statements of the grammar, found when somebody asks.

Cost: stands with each function; bounded.
"""

from __future__ import annotations

from tcc_certs.errors import Code
from tcc_runtime.gate.refusals import SAID, Reason
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.tools import Asked


def reasons(
    session: Session, made: int, code: Code, place: str, asked: Asked | None
) -> list[Reason]:
    """What forbids it, the session as it was after its first `made` calls."""
    if code is Code.MONITOR_FORBIDS:
        return [{"kind": "monitor", "text": place}]
    if code is Code.NOT_PLANNED:
        return [{"kind": "plan", "text": SAID[code]}]
    return [{"kind": "gate", "text": SAID[code]}]
