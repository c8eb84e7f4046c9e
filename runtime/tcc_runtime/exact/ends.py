"""Decides whether every session can be finished (:mod:`tcc_certs.proof.ends` has the definition).

Proved: the kernel's conditions hold.  Refuted: a session that a gate has let through can never end,
because an answer led where no plan continues, or because a proof shows that its obligation is
never paid, or that no session ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tcc_certs.errors import Rejected
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.nodes import Compare, Forbid, No, Number, Owe, Require, Same, Where
from tcc_certs.proof.ends import Stuck, open_reason, stuck
from tcc_certs.proof.plans import Step
from tcc_certs.proof.questions import Question
from tcc_certs.session.machine import SessionMachine
from tcc_runtime.exact.drafts import plain_draft
from tcc_runtime.exact.planned import SearchedPlan
from tcc_runtime.exact.repairs import repaired, replayed
from tcc_runtime.exact.routes import Router
from tcc_runtime.exact.values import Maker, Session, done

if TYPE_CHECKING:
    from tcc_runtime.exact.prove import Answer, Gate

MAX_STUCK = 20  # answers that lead nowhere and are tried
FINISHABLE = Question(kind="finishable", statements=())
NEVER = Require(on=None, then=Compare("=", Number("1"), Number("2")))


def why_open(plan: SearchedPlan | None) -> str:
    """Return why the kernel does not accept that sessions can be finished; empty: it does."""
    if plan is None:
        return "the question needs an artifact"
    try:
        return open_reason(plan)
    except Rejected:
        return "the automaton is too large"


def unfinishable(
    core: Core,
    gate: Gate,
    plan: SearchedPlan,
    tick: Callable[[], None],
    ask: Callable[[Question], Answer],
) -> Answer | None:
    """Return the answer with a session that can never end; None: no such session was found.

    Args:
        ask: answers another question about the same artifact.

    Raises:
        OutOfTime: from `tick`.
    """
    from tcc_runtime.exact.prove import Answer

    maker = Maker(Policy(core, [Rule(kind="require", tools=frozenset())]))
    maker.machine = SessionMachine(core, plan.automaton, plan.core_calls)
    router = Router(plan, maker.machine)
    for one in islice(stuck(plan), MAX_STUCK):
        session = _led(maker, router, plan, one, tick)
        if session is not None and _is_refused_at_end(gate, session):
            return Answer(verdict="refuted", session=session)
    if any(isinstance(one, Require) and one.on is None for one in core.statements):
        found = ask(Question(kind="statement", statements=(NEVER,)))
        empty = Session(given={}, calls=(), ends=True)
        if found.verdict == "proved" and _is_refused_at_end(gate, empty):
            return Answer(verdict="refuted", session=empty, used=found.used)
    for number, statement in enumerate(core.statements):
        if isinstance(statement, Owe):
            answer = _owing(maker, gate, number, statement, ask)
            if answer is not None:
                return answer
    return None


def _is_refused_at_end(gate: Gate, session: Session) -> bool:
    """Return whether a gate lets all calls of a session through, and refuses its end."""
    refusal = gate(session)
    return refusal is not None and refusal.at == len(session.calls)


def _led(
    maker: Maker, router: Router, plan: SearchedPlan, one: Stuck, tick: Callable[[], None]
) -> Session | None:
    """A session whose last answer leads nowhere."""
    tool = plan.tool(one.label).name
    draft = router.along(maker, plain_draft(maker, tool, ()), _way(plan, one), one.label)
    states = {**draft.states}
    for name, state in one.answers.items():
        states["get", ("call", 0), name] = state
    draft = replace(draft, states=states, outcomes={**draft.outcomes, 0: "done"}, ends=True)
    session, found = repaired(maker, "finishable", draft, tick)
    return session if found.breaks is not None else None


def _way(plan: SearchedPlan, one: Stuck) -> list[Step]:
    """A shortest path to a state."""
    before: dict[int, tuple[int, int] | None] = {plan.root: None}
    queue = deque([plan.root])
    while queue and one.state not in before:
        state = queue.popleft()
        for target, labels in plan.row(state):
            if target not in before:
                before[target] = state, (labels & -labels).bit_length() - 1
                queue.append(target)
    steps: list[Step] = []
    link = before.get(one.state)
    while link is not None:
        steps.append(Step(link[1], -1))
        link = before[link[0]]
    return steps[::-1]


def _owing(
    maker: Maker,
    gate: Gate,
    number: int,
    statement: Owe,
    ask: Callable[[Question], Answer],
) -> Answer | None:
    """A session with an obligation that no later call can pay."""
    from tcc_runtime.exact.prove import Answer

    same = tuple([one for one in statement.pays if isinstance(one, Same)])
    after = Where(statement.after, same) if same else statement.after
    never = Require(on=statement.calls, then=No(after))
    blocked = ask(Question(kind="statement", statements=(never,)))
    if blocked.verdict != "proved":
        return None
    owes = Forbid(on=statement.after, where=statement.where)
    reached = ask(Question(kind="reachable", statements=(owes,)))
    if reached.session is None:
        return None
    *earlier, last = reached.session.calls
    session = replace(reached.session, calls=(*earlier, done(maker, last)), ends=True)
    found = replayed(maker, "finishable", session)
    unmet = [one.statement for one in found.refusals]
    if found.refused != len(session.calls) or number not in unmet:
        return None
    if not _is_refused_at_end(gate, session):
        return None
    return Answer(verdict="refuted", session=session, used=blocked.used)
