"""Reasons of refusals: the statements that refuse, by the texts of their authors.

The definition says which statements refuse a call, and which ones keep a session from its end.  If
no plan continues with a call, trials find restrictions that exclude it together
(:mod:`tcc_runtime.analysis.blame`).
Text: docs/gate.md.  Cost: of a trial bounded, and it starts when somebody reads the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Final

from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.errors import Rejected, clip
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.history import Call
from tcc_certs.policy.meaning import Evaluation
from tcc_certs.policy.nodes import text_of
from tcc_runtime.analysis.blame import lets_through, restricted
from tcc_runtime.analysis.statements import statements_of
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.session import Made, Session

PLAN: Final[Reason] = {"kind": "plan", "text": "plan", "because": None}
_NOWHERE: Final = "an outcome that may have led where no plan continues"
_UNDECIDED: Final = "finding the statements that refuse takes more work than a reason is worth"
_WIDEST: Final = 1000
_MOST_RUNS: Final = 64  # outcomes of unknown calls that are tried
_LONGEST: Final = 20_000  # calls
_MOST_WORK: Final = 4_000_000  # units of all trials of one reason


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
    unmet = course.unmet(now_ms)
    found = [statement_reason(policy, number) for number in unmet]
    if all(map(policy.machine.accepts, course.held)):
        return found
    if not found:
        return [PLAN]
    word = session.word()
    if word is None or len(word) > _LONGEST:
        return found
    parts = [one.part for one in statements_of(policy.core, {}) if one.part[0] != "statements"]
    core, _ = restricted(policy.core, parts)
    calls = [policy.core_calls[one] for one in word]
    try:
        ends = lets_through(core, (), calls, WorkBudget(_MOST_WORK), ends=True)
    except Rejected:
        return found
    return found if ends else [*found, PLAN]


def plan_reasons(session: Session, made: int, calls: Sequence[int]) -> list[Reason]:
    """The reasons why no plan continues with a call.

    Args:
        made: the number of calls before it.
        calls: of the core, one for each of its answers.
    """
    policy = session.policy
    if not calls or made > _LONGEST:
        return [PLAN if not calls else _undecided()]
    for run in islice(_runs(session, session.made[:made]), _MOST_RUNS):
        position = policy.machine.start[0]
        for call in run:
            position = policy.machine.step(position, call)
        if not position:
            return [{"kind": "gate", "text": _NOWHERE, "because": None}]
        if not any(policy.leads_to(position, call) for call in calls):
            word = [policy.core_calls[call] for call in run]
            return _excluding(policy, [*word, calls[0]])
    return [_undecided()]


def _undecided() -> Reason:
    return {"kind": "gate", "text": _UNDECIDED, "because": None}


def _runs(session: Session, made: Sequence[Made]) -> Iterator[list[int]]:
    """The calls of the artifact that may have been done, for each choice of unknown outcomes."""
    choices: list[list[tuple[int, ...]]] = []
    for one in made:
        calls = one.offer.calls
        if one.outcome == "failed":
            continue
        known = calls.get(session.answer(one)) if one.outcome == "done" else None
        if known is not None:
            choices.append([(known,)])
        else:
            nothing: list[tuple[int, ...]] = [()] if one.outcome == "unknown" else []
            choices.append([*nothing, *[(call,) for call in calls.values()]])
    for chosen in product(*choices):
        yield [call for some in chosen for call in some]


def _excluding(policy: Policy, word: Sequence[int]) -> list[Reason]:
    """Restrictions that together exclude all plans that begin so; each of them is needed."""
    core, relaxed = policy.core, policy.artifact.relaxed
    kept = [
        one
        for one in statements_of(core, {})
        if one.part[0] != "statements" or one.part[1] not in relaxed
    ]
    left = _MOST_WORK
    for one in list(kept):  # the plan comes first, and stays only if it is needed
        rest = [other for other in kept if other is not one]
        limited, parts = restricted(core, [other.part for other in rest])
        budget = WorkBudget(left)
        left -= 4 * len(core.calls) * (len(parts) + 1)
        try:
            possible = left > 0 and lets_through(limited, parts, word, budget, ends=False)
        except Rejected:
            left = 0
        if left <= 0:
            return [_undecided()]
        if not possible:
            kept = rest
    return [
        statement_reason(policy, one.part[1])
        if one.part[0] == "statements"
        else PLAN
        if one.kind == "plan"
        else {**PLAN, "text": one.text}
        for one in kept
    ]
