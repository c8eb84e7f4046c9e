"""Why no session has a call, or can finish: the statements that exclude it.

The exact engine proves the answer with some of the statements.  This module then looks for a
smaller set of these statements that is enough.
Cost: one question, and another one for each statement that the proof uses.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from tcc.library import Given, artifact_of
from tcc.library.proving import TIMEOUT, calls_question, gate_of, read_statements

if TYPE_CHECKING:
    from tcc_certs.policy.core import Core
    from tcc_certs.proof.questions import Question
    from tcc_runtime.analysis.statements import WrittenStatement
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.exact.values import Session

_PLANS: Final = 8  # plans that are tried as sessions
_EACH: Final = 0.5  # seconds to prove the same with fewer statements


@dataclass(frozen=True, slots=True, kw_only=True)
class WhySession:
    """The answer to a question about all sessions, with the reasons if no session is possible.

    Attributes:
        verdict: ``reachable``, ``unreachable`` or ``undecided``.
        session: the calls of such a session, as `tcc replay` reads them; None if none is known.
        given: the attributes of that session.
        because: statements that exclude it; empty unless the verdict is ``unreachable``.
        missing: for an undecided question, what would decide it; else empty.
    """

    verdict: Literal["reachable", "unreachable", "undecided"]
    session: Sequence[Mapping[str, Any]] | None = None
    given: Mapping[str, Any] | None = None
    because: tuple[WrittenStatement, ...] = ()
    missing: str = ""


def why_session(source: Given, calls: str | None = None, *, timeout: float = TIMEOUT) -> WhySession:
    """Decide whether some session has a call in a set, or (without `calls`) can finish.

    Args:
        source: a grammar or an artifact.
        calls: a set of calls such as ``refund(amount > 100)``.
        timeout: seconds for the search.

    Raises:
        ValueError: `calls` is not one set of calls.
        CompileError: a grammar is refused, or the set has mistakes.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    from tcc_certs.proof.questions import Question
    from tcc_runtime.analysis.joined import joined
    from tcc_runtime.analysis.sessions import idle_tools
    from tcc_runtime.exact.planned import plan_of
    from tcc_runtime.exact.prove import answer

    artifact = artifact_of(source)
    if calls is None:
        statements = read_statements(artifact.core, "finally require false")
        question = Question(kind="statement", statements=statements)
    else:
        question = calls_question(artifact.core, calls)
    core = joined(artifact.core, artifact.core, idle_tools(artifact)).core
    end = time.monotonic() + timeout
    # First without plans, so that a proof blames statements and not the plan expression.
    found = answer(core, question, gate_of(artifact), timeout=timeout / 2)
    session, used = found.session, found.used
    if session is None and found.proof is None and calls is None:
        session = _finished(artifact)
    if session is None and found.proof is None:
        left = max(end - time.monotonic(), 0.001)
        plan = partial(plan_of, artifact)
        found = answer(artifact.core, question, gate_of(artifact), plan=plan, timeout=left)
        session, used = found.session, (*found.used, len(artifact.core.statements))
    elif session is None:
        used = tuple(_fewest(core, question, used, end))
    if session is not None:
        return WhySession(verdict="reachable", session=session.json(), given=dict(session.given))
    if found.proof is None:
        return WhySession(verdict="undecided", missing=found.missing)
    return WhySession(verdict="unreachable", because=_blamed(artifact, used))


def _finished(artifact: Artifact) -> Session | None:
    """Return a session with the calls of a cheapest plan that a gate lets finish, or None."""
    from tcc_runtime.analysis.graph import graph_of
    from tcc_runtime.analysis.sessions import plan_sessions
    from tcc_runtime.artifact.plans import cheapest_in

    graph, gate = graph_of(artifact), gate_of(artifact)
    plans = () if graph.root is None else cheapest_in(graph, graph.root, _PLANS)
    for _, plan in plans:
        for session in plan_sessions(artifact, plan):
            ended = replace(session, ends=True)
            if gate(ended) is None:
                return ended
    return None


def _fewest(core: Core, question: Question, used: Sequence[int], end: float) -> list[int]:
    """Remove statements of a proof while the rest still proves the answer; return the rest.

    The result is minimal unless the time runs out.
    """
    from tcc_runtime.exact.prove import answer

    left = list(used)
    for number in used:
        if len(left) == 1 or time.monotonic() > end:
            break
        fewer = [one for one in left if one != number]
        only = replace(core, statements=tuple([core.statements[one] for one in fewer]))
        found = answer(only, question, _allows, timeout=_EACH)
        if found.proof is not None:
            left = [fewer[one] for one in found.used]
            if not left:
                break
    return left


def _allows(session: object) -> None:
    """Allow every session, so that the search ends at the first session, without a proof."""


def _blamed(artifact: Artifact, used: Sequence[int]) -> tuple[WrittenStatement, ...]:
    """Return the used statements; a number beyond the core's statements is the plan expression."""
    from tcc.library.plan_questions import written_of
    from tcc_runtime.analysis.statements import statements_of

    many = len(artifact.core.statements)
    wanted = {("statements", one) if one < many else ("plan", 0) for one in used}
    return tuple([
        one for one in statements_of(artifact.core, written_of(artifact)) if one.part in wanted
    ])  # fmt: skip
