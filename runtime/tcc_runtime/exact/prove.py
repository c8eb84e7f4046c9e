"""Decides questions about every session that a gate allows.

Each argument of a question is searched for in rounds, with one more generation of witnesses in each
round.  A model of a round becomes a session, which the definition and then the gate replay.  The
verdict is ``proved`` with a proof that the kernel has checked, ``refuted`` with a session that the
gate has let through, or ``undecided``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.nodes import statement_text
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.questions import Part, Question, Unsupported, begun, parts_of, rules_of
from tcc_runtime.exact.concrete import (
    MAX_REPAIRS,
    Draft,
    Maker,
    Session,
    drafts,
    plain_draft,
    repaired,
    replayed,
)
from tcc_runtime.exact.engine import Closed, Deeper, Model, OutOfTime, Search
from tcc_runtime.exact.writing import proof_bytes, written

ROUNDS = 4
_DEPTH = 50_000  # Python calls inside one another; they take no stack of the machine


class GateRefusal(NamedTuple):
    """What a gate says of a session that it does not let through.

    Attributes:
        at: the call, from 0; the number of calls if the session may not end.
        text: the statement or another reason.
    """

    at: int
    code: str
    text: str


Verdict = Literal["proved", "refuted", "reachable", "unreachable", "undecided"]
Gate = Callable[[Session], "GateRefusal | None"]


@dataclass(slots=True, kw_only=True)
class Answer:
    """The answer to a question.

    Attributes:
        verdict: ``proved``, ``refuted``, ``reachable``, ``unreachable`` or ``undecided``.
        session: that breaks the statement, or reaches the call.
        used: the statements of the core that the proof used.
        rounds: the most generations of witnesses that an argument needed, from 1.
        states: branches that the searches looked at.
        missing: why the question is undecided.
        proof: the bytes of a proof.
    """

    verdict: Verdict
    session: Session | None = None
    used: tuple[int, ...] = ()
    rounds: int = 0
    states: int = 0
    seconds: float = 0.0
    missing: str = ""
    proof: bytes | None = None


class _Refuted(Exception):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session


@dataclass(slots=True)
class _Work:
    """The state of a question.

    Attributes:
        nearest: why the session that came furthest was refused.
    """

    core: Core
    question: Question
    gate: Gate
    end: float
    clock: Callable[[], float]
    states: int = 0
    rounds: int = 0
    nearest: str = ""
    _ticks: int = 0
    _reach: tuple[int, int] = (-1, 0)
    arguments: list[dict[str, Json]] = field(default_factory=list)

    def tick(self) -> None:
        if self.clock() > self.end:
            raise OutOfTime


def answer(
    core: Core,
    question: Question,
    gate: Gate,
    *,
    timeout: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """Return the answer to a question.

    Args:
        gate: replays a session.
        timeout: seconds.

    Raises:
        Rejected: T102 the question is wrong in this core.
    """
    began = clock()
    work = _Work(core, question, gate, began + timeout, clock)
    with _deep():
        found = _answered(work)
    found.states, found.rounds = work.states, work.rounds
    found.seconds = clock() - began
    return found


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _answered(work: _Work) -> Answer:
    rules = rules_of(work.question, work.core)
    policy = policy_of(work.core)
    try:
        parts = parts_of(rules, policy)
    except Unsupported as why:
        return Answer(verdict="undecided", missing=f"{why}")
    is_open = ""
    for part in parts:
        try:
            found = _argued(work, policy, rules[part.statement], part)
        except _Refuted as refuted:
            is_reached = work.question.kind == "reachable"
            verdict: Verdict = "reachable" if is_reached else "refuted"
            return Answer(verdict=verdict, session=refuted.session)
        if found:
            is_open = is_open or found
    if is_open:
        return Answer(verdict="undecided", missing=is_open)
    proof = proof_bytes(work.core, work.question, work.arguments)
    checked = check_proof(proof, work.core)
    verdict = "unreachable" if work.question.kind == "reachable" else "proved"
    return Answer(verdict=verdict, used=checked.used, proof=proof)


def _argued(work: _Work, policy: Policy, rule: Rule, part: Part) -> str:
    """Argue about a part of a question.

    Returns:
        why it stays open; empty: the argument was added.

    Raises:
        _Refuted: a session breaks the statement.
    """
    makers: list[Maker] = []  # made with the first model: proofs need no values

    def maker() -> Maker:
        if not makers:
            makers.append(Maker(Policy(work.core, [rule])))
        return makers[0]

    def on_model(model: Model) -> None:
        _tried(work, maker(), model)

    for most in range(ROUNDS + 1):
        work.rounds = max(work.rounds, most + 1)
        scene, start = begun(policy, rule, work.question.kind, part.tool)
        search = Search(scene, start, range(len(policy.rules)), most, on_model, work.tick)
        try:
            closed: Closed | None = search.run()
        except Deeper:
            if most == 1:
                _wandered(work, maker(), part)
            continue
        except OutOfTime:
            return work.nearest or "the time is over"
        finally:
            work.states += search.steps
        if closed is None:
            break
        new, formulas = begun(policy, rule, work.question.kind, part.tool)
        steps, used = written(new, formulas, closed.tree, scene.literals)
        tool = "" if part.tool is None else part.tool
        work.arguments.append({"tool": tool, "statements": used, "steps": steps})
        return ""
    _wandered(work, maker(), part)
    return work.nearest or "no proof and no session was found"


def _wandered(work: _Work, maker: Maker, part: Part) -> None:
    """Search with the definition alone, from the deciding call on."""
    tools = [tool.name for tool in work.core.tools]
    others = [()] if part.tool is not None else [(), *[(tool,) for tool in tools]]
    for some in others:
        try:
            _try(work, maker, plain_draft(maker, part.tool, some))
        except OutOfTime:
            return


def _tried(work: _Work, maker: Maker, model: Model) -> None:
    for draft in drafts(maker, model):
        work.tick()
        _try(work, maker, draft, 300 if model.is_whole else 150)


def _try(work: _Work, maker: Maker, draft: Draft, most: int = MAX_REPAIRS) -> None:
    """Make a session of a draft, and let the gate replay it.

    Raises:
        _Refuted: the session breaks the statement.
    """
    session, found = repaired(maker, work.question.kind, draft, work.tick, most)
    if found.breaks is None:
        _note(work, found.refused or 0, [one.statement for one in found.refusals])
        return
    session = replace(session, calls=session.calls[: found.breaks])
    refusal = work.gate(session)
    if refusal is None:
        raise _Refuted(_shortened(work, maker, session))
    work.nearest = f"the gate refuses each session that was tried: {refusal.text}"


def _shortened(work: _Work, maker: Maker, session: Session) -> Session:
    """The session without calls that it does not need."""
    at = len(session.calls) - 2
    while at >= 0:
        calls = (*session.calls[:at], *session.calls[at + 1 :])
        less = replace(session, calls=calls)
        found = replayed(maker.policy, work.question.kind, less)
        if found.breaks == len(calls) and work.gate(less) is None:
            session = less
        at -= 1
    return session


def _note(work: _Work, reached: int, statements: Sequence[int]) -> None:
    """Note what refuses a session, if it came further than those before."""
    if (reached, -len(statements)) <= work._reach or not statements:
        return
    work._reach = reached, -len(statements)
    texts = [statement_text(work.core.statements[one]) for one in statements
             if one < len(work.core.statements)]  # fmt: skip
    if texts:
        work.nearest = f"each session that was tried is refused by `{texts[0]}`"


__all__ = ["Answer", "Gate", "GateRefusal", "Rejected", "answer"]
