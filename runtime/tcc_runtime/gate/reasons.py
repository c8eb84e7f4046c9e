"""Reasons of refusals: the statements that refuse, by the texts of their authors.

The definition says which statements refuse a call, and which ones keep a session from its end.
:mod:`tcc_runtime.gate.dead_ends` says why no plan continues with a call, and
:mod:`tcc_runtime.gate.remedies` what would be allowed.
Text: docs/gate.md.  Cost: about that of the decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, cast

from tcc_certs.errors import Rejected, clip
from tcc_certs.policy import forms, nodes
from tcc_certs.policy.history import Call, Draw
from tcc_certs.policy.meaning import Debt, shown
from tcc_certs.policy.nodes import quoted, text_of
from tcc_certs.policy.type_texts import name_text
from tcc_certs.values.places import UNKNOWN, State, decimal_of
from tcc_runtime.gate.dead_ends import LONGEST, PLAN, restrictions_of, trials_of
from tcc_runtime.gate.decide.history import NO_EFFECT, FastHistory
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Reason
from tcc_runtime.gate.remedies import time_text
from tcc_runtime.gate.session import Session

_WIDEST: Final = 1000
_MOST_DRAWS: Final = 1000


def statement_reason(
    policy: Policy, number: int, *, relation: str = "", arguments: str = "", remedy: str = ""
) -> Reason:
    """Return the reason that names a statement; empty texts are left out.

    Args:
        relation: the part of the statement that is not true.
        arguments: the arguments that the statement reads, with their values.
        remedy: the condition under which the call would be allowed.
    """
    reason: dict[str, str | None] = {
        "kind": policy.decider.rules[number].kind,
        "text": policy.texts[number],
        "because": policy.core.statements[number].because,
    }
    more = {"relation": relation, "arguments": arguments, "remedy": remedy}
    return reason | {name: clip(text, _WIDEST) for name, text in more.items() if text}


def refusal_reasons(
    session: Session, call: Call, values: Mapping[str, State], statements: Sequence[int]
) -> list[Reason]:
    """Return a reason for each statement that refuses the call, for the session as it is now.

    Args:
        values: the states of the arguments of the call, by name.
    """
    found = []
    for number in statements:
        arguments = session.policy.remedies.arguments(number, call.tool, values)
        said = {"arguments": arguments, **_refusing(session, call, values, number)}
        found.append(statement_reason(session.policy, number, **said))
    return found


def _refusing(
    session: Session, call: Call, values: Mapping[str, State], number: int
) -> dict[str, str]:
    """Return `relation`, `remedy` and, for an `owe`, `arguments` of a refusal."""
    policy, history = session.policy, session.course.history
    remedies, decider = policy.remedies, policy.decider
    statement, rule = policy.core.statements[number], decider.rules[number]
    match statement:
        case nodes.Require(then=then):
            failing = decider.failing(number, history, call, call.at_ms)
            remedy = remedies.require(number, call.tool, failing).text(values)
            return {"relation": _conjuncts_text(then, failing), "remedy": remedy}
        case nodes.Forbid(where=where):
            remedy = remedies.forbid(number, call.tool).text(values)
            return {"relation": ", ".join(map(text_of, where)), "remedy": remedy}
        case nodes.Limit():
            return _over(session, call, number, rule)
        case nodes.Total(what=what, most=most):
            total = decider.total(number, history, call)
            return {"relation": f"{what}: {decimal_of(Fraction(total))} <= {most}"}
        case nodes.Owe():
            debt = decider.oldest_debt(number, history, call.at_ms)
            return {} if debt is None else _owing(session, debt)
    return {}


def _conjuncts_text(then: nodes.Node, failing: Sequence[int]) -> str:
    """Return the author's text of these parts of a condition."""
    if not isinstance(then, nodes.And):
        return text_of(then)
    parts = [then.parts[at] for at in failing]
    return text_of(parts[0] if len(parts) == 1 else nodes.And(tuple(parts))) if parts else ""


def _over(session: Session, call: Call, number: int, rule: forms.Rule) -> dict[str, str]:
    """Return `relation` and `remedy` of a limit: the numbers that exceed it, and the condition
    under which it would allow the call.
    """
    decider, history = session.policy.decider, cast(FastHistory, session.course.history)
    draw = decider.draw(number, history, call, call.at_ms)
    most = decider.bound(number, history, call, call.at_ms)
    if draw is None or most is None or rule.most is None:
        return {"relation": "" if rule.most is None else _bound_text(session, number)}
    since = None if rule.within is None else call.at_ms - rule.within
    tally = history.tally(number, across=rule.across)
    used = tally.amount(draw.key, since)
    if used + draw.amount <= most:
        return {}  # other sessions have used the rest
    left = most - used
    relation = f"{_number_text(used)} + {_number_text(draw.amount)} <= {_number_text(most)}"
    if rule.field is not None and left >= 0:
        return {"relation": relation, "remedy": f"{name_text(rule.field)} <= {_number_text(left)}"}
    if rule.field is not None or since is None or used > _MOST_DRAWS:
        return {"relation": relation}
    earlier = tally.draws(draw.key, since)
    return {"relation": relation, "remedy": _later(rule, earlier, used + draw.amount - most)}


def _later(rule: forms.Rule, earlier: Sequence[Draw], over: Any) -> str:
    """Return the condition on `now` under which `over` of the earlier calls have left the window,
    or ''.
    """
    times = sorted([one.call.at_ms for one in earlier if one.call.outcome not in NO_EFFECT])
    if rule.within is None or not 1 <= over <= len(times):
        return ""
    moment = time_text(times[int(over) - 1] + rule.within + 1)
    return f"now >= {quoted(moment)}" if moment else ""


def _bound_text(session: Session, number: int) -> str:
    statement = session.policy.core.statements[number]
    return text_of(statement.most) if isinstance(statement, nodes.Limit) else ""


def _number_text(number: Any) -> str:
    return decimal_of(Fraction(number))


def _call_text(session: Session, call: Call) -> str:
    made = session.made.get(call.number + 1)
    return name_text(call.tool) if made is None else made.offer.text


def _owing(session: Session, debt: Debt) -> dict[str, str]:
    """Return the call that opened a debt, its arguments, and the call that would pay."""
    values = {name: shown(state) for name, state in debt.call.arguments.items()}
    known = {name: state for name, state in values.items() if state != UNKNOWN}
    remedies, tool = session.policy.remedies, debt.call.tool
    return {
        "relation": f"call {debt.call.number + 1}, {_call_text(session, debt.call)}",
        "arguments": remedies.arguments(debt.statement, tool, known),
        "remedy": remedies.owe(debt.statement, tool).text(known),
    }


def end_reasons(session: Session, now_ms: int) -> list[Reason]:
    """Return the reasons why the session may not finish."""
    course, policy = session.course, session.policy
    found = list(_unmet(session, now_ms))
    if all(map(policy.machine.accepts, course.held)):
        return found
    if not found:
        return [PLAN]
    word = session.word()
    if word is None or len(word) > LONGEST:
        return found
    parts = [one.part for one in restrictions_of(policy) if one.part[0] != "statements"]
    try:
        ends = trials_of(policy).may_end(parts, [policy.core_calls[one] for one in word])
    except Rejected:
        return found
    return found if ends else [*found, PLAN]


def _unmet(session: Session, now_ms: int) -> Iterator[Reason]:
    """Yield a reason for each unmet `finally` and each `owe` with an open debt."""
    policy, history = session.policy, session.course.history
    for number in session.course.unmet(now_ms):
        statement = policy.core.statements[number]
        relation = ""
        if isinstance(statement, nodes.Owe):
            debt = policy.decider.oldest_debt(number, history, now_ms)
            owing = {} if debt is None else _owing(session, debt)
            yield statement_reason(policy, number, **owing)
            continue
        if isinstance(statement, nodes.Require):
            failing = policy.decider.failing(number, history, None, now_ms)
            relation = _conjuncts_text(statement.then, failing)
        yield statement_reason(policy, number, relation=relation, remedy=relation)
