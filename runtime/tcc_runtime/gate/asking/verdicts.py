"""Verdicts of persons, as a gate records them.

Callers have the turn, the lock of the file and that of the session.
Text: docs/ask.md; docs/spec/session.md, section 6.  Cost: a record.
"""

from __future__ import annotations

from tcc_certs.errors import Code
from tcc_runtime.gate.asking.questions import MOST_REASON, Verdict, VerdictError
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session_access import Access


def record(access: Access, question_id: str, verdict: Verdict, who: str, reason: str) -> None:
    """Record a verdict on a question of the session.

    Args:
        who: the name of the person; reason: of a denial.

    Raises:
        VerdictError: there is no such question, it has a verdict, or it has expired.
        ValueError: `who` is no name, or `reason` is too long.
        Refused: R303, R306.
    """
    check(who, reason)
    session = access.session
    if session.ended:
        access.refuse(Code.ENDED)
    at_ms = session.at(access.clock())
    why = session.questions.why_not(question_id, at_ms)
    if why is not None:
        raise VerdictError(question_id, why)

    def decided() -> None:
        session.note_time(at_ms)
        session.questions.decide(question_id, verdict, at_ms, reason)

    access.write(records.approval_record(question_id, verdict, who, at_ms), decided)


def check(who: object, reason: object) -> None:
    """Check the name of a person and the reason of a denial.

    Raises:
        ValueError: `who` is no name, or `reason` is no text or too long.
    """
    if not records.is_name(who):
        raise ValueError(f"who: a text of 1 to {records.MOST_NAME} characters that can be printed")
    if not isinstance(reason, str) or len(reason) > MOST_REASON:
        raise ValueError(f"reason: a text of at most {MOST_REASON} characters")
