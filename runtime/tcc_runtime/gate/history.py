"""What was called in a session, for people and programs.

Cost: linear in the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcc_runtime.gate.records import observed_texts
from tcc_runtime.gate.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A call of the session.

    Attributes:
        seq: its number, from 1.
        call: canonical text, without observed parameters.
        outcome: ``done``, ``failed``, ``unknown``; ``open`` while it is under way.
        observed: the values that came back, as texts of the grammar.
        unforeseen: something else came back.
        model: that made it; empty where none was chosen.
    """

    seq: int
    call: str
    outcome: str
    observed: Mapping[str, str]
    unforeseen: bool
    model: str = ""


def history(session: Session) -> tuple[Happened, ...]:
    """All calls of a session."""
    return tuple(_happened(session, at) for at in range(len(session.made)))


def _happened(session: Session, at: int) -> Happened:
    made = session.made[at]
    table = session.policy.table(made.group.tool)
    told = observed_texts(table, made.observed) or {}
    under_way = session.under_way and at == len(session.made) - 1
    return Happened(
        seq=at + 1,
        call=made.group.text,
        outcome="open" if under_way else made.outcome,
        observed={name: str(text) for name, text in told.items()},
        unforeseen=made.unforeseen,
        model=made.model,
    )
