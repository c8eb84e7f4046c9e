"""Reasons of refusals: the statements that refuse, by the texts of their authors.

The definition says which statements refuse a call, and which ones keep a session from its end.
Text: docs/gate.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.errors import clip
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.history import Call
from tcc_certs.policy.meaning import Evaluation
from tcc_certs.policy.nodes import text_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import Session

PLAN: Reason = {"kind": "plan", "text": "plan", "because": None}
_WIDEST = 1000


def statement_reason(policy: Policy, number: int, relation: str = "") -> Reason:
    """The reason that names a statement.

    Args:
        relation: the part of the statement that is not true; empty if it is not known.
    """
    statement = policy.core.statements[number]
    reason: dict[str, str | None] = {
        "kind": policy.decider.rules[number].kind,
        "text": policy.texts[number],
        "because": statement.because,
    }
    if relation:
        reason["relation"] = clip(relation, _WIDEST)
    remedy = _remedy(statement)
    return {**reason, "remedy": clip(remedy, _WIDEST)} if remedy else reason


def _remedy(statement: nodes.Statement) -> str:
    """What would satisfy a statement."""
    match statement:
        case nodes.Require():
            return text_of(statement.then)
        case nodes.Owe():
            pays = statement.pays
            return text_of(nodes.Where(statement.calls, pays) if pays else statement.calls)
    return ""


def refusal_reasons(session: Session, call: Call, statements: Sequence[int]) -> list[Reason]:
    """The reasons of a call that these statements refuse, as the session is now."""
    policy = session.policy
    return [
        statement_reason(policy, number, _relation(session, call, number)) for number in statements
    ]


def _relation(session: Session, call: Call, number: int) -> str:
    """The parts of a `require` that are not true of a call, if it has several parts."""
    statement, rule = session.policy.core.statements[number], session.policy.decider.rules[number]
    if not isinstance(statement, nodes.Require) or not isinstance(statement.then, nodes.And):
        return ""
    conditions = rule.then.parts if isinstance(rule.then, forms.All) else ()
    parts = statement.then.parts
    if len(conditions) != len(parts):
        return ""
    evaluation = Evaluation(session.course.history, call, call.at_ms)
    failed = [
        part
        for part, condition in zip(parts, conditions, strict=True)
        if evaluation.truth(condition) is not True
    ]
    return text_of(failed[0] if len(failed) == 1 else nodes.And(tuple(failed))) if failed else ""


def end_reasons(session: Session, now_ms: int) -> list[Reason]:
    """The reasons why a session may not finish."""
    course, policy = session.course, session.policy
    found = [statement_reason(policy, number) for number in course.unmet(now_ms)]
    return found if all(map(policy.machine.accepts, course.held)) else [*found, PLAN]
