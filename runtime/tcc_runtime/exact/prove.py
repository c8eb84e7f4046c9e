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
from typing import Any, Literal, NamedTuple, Protocol

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.nodes import Compare, Limit, Node, Number, Word, statement_text
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.plans import Plan, Plans
from tcc_certs.proof.questions import (
    Part,
    Question,
    Unsupported,
    begun,
    parts_of,
    reachable,
    rules_of,
)
from tcc_certs.session.machine import SessionMachine
from tcc_certs.values.numbers import canonical_number
from tcc_runtime.exact.drafts import drafts, plain_draft
from tcc_runtime.exact.ends import unfinishable, why_open
from tcc_runtime.exact.engine import Deeper, Model, OutOfTime, Search
from tcc_runtime.exact.longer import lengthened
from tcc_runtime.exact.planned import SearchedPlan
from tcc_runtime.exact.repairs import (
    MAX_REPAIRS,
    PLAN,
    Replayed,
    counted,
    refusing,
    repaired,
    replayed,
)
from tcc_runtime.exact.routes import Router
from tcc_runtime.exact.values import Draft, Maker, Session
from tcc_runtime.exact.writing import proof_bytes, written

ROUNDS = 4
PARTIAL_ROUND = 1  # from which models that lack calls become sessions
LENGTHENED = 0.3  # of the time that is left: for sessions that are made longer
MAX_AMOUNTS = 8  # that a counted call may have
MAX_SHORTENED = 40  # calls of a session of which each is left out once
REDRAW = 0.25  # seconds between two calls of `progress`
_DEPTH = 50_000  # Python calls inside one another; they take no stack of the machine


class GateRefusal(NamedTuple):
    """The refusal of a session by a gate.

    Attributes:
        at: the call, from 0; the number of calls if the session may not end.
        text: the statement or another reason.
    """

    at: int
    code: str
    text: str


Roles = tuple[str, ...]


Verdict = Literal["proved", "refuted", "reachable", "unreachable", "undecided"]
Gate = Callable[[Session], "GateRefusal | None"]


class AskingGate(Protocol):
    """Replays a session, with the verdicts of persons."""

    def __call__(
        self, session: Session, /, *, told: list[Roles] | None = None, by: Sequence[Roles] = ()
    ) -> GateRefusal | None:
        """Return the refusal of a session, or None.

        Args:
            told: gets the roles that the gate asks about each call; each question is approved.
            by: without `told`, the roles whose questions are approved, for each call; empty: all.
        """


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
    began: float
    end: float
    clock: Callable[[], float]
    make_plan: Callable[[], Plan] | None
    progress: Callable[[float, int, int], None] | None
    plans: Plans = field(init=False)
    router: Router | None = None
    states: int = 0
    rounds: int = 0
    nearest: str = ""
    _shown: float = 0.0
    _numbers: dict[Rule, list[int]] = field(default_factory=dict)
    _reach: tuple[int, int] = (-1, 0)
    arguments: list[dict[str, Json]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plans = Plans(self.make_plan)

    def plan(self) -> SearchedPlan | None:
        """The automaton for a search; None: there is none, or it is too large."""
        if self.make_plan is None:
            return None
        try:
            return SearchedPlan(self.plans.get(), self.tick)
        except Rejected:
            self.make_plan = None
            return None

    def equal(self, policy: Policy, rule: Rule) -> list[int]:
        """Return the numbers of the statements of the policy that are equal to a statement."""
        if not self._numbers:
            for number, one in enumerate(policy.rules):
                self._numbers.setdefault(one, []).append(number)
        return self._numbers.get(rule, [])

    def tick(self) -> None:
        now = self.clock()
        if now > self.end:
            raise OutOfTime
        if self.progress is not None and now >= self._shown + REDRAW:
            self._shown = now
            self.progress(now - self.began, self.rounds, self.states)


def answer(
    core: Core,
    question: Question,
    gate: Gate,
    *,
    plan: Callable[[], Plan] | None = None,
    timeout: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
    progress: Callable[[float, int, int], None] | None = None,
) -> Answer:
    """Return the answer to a question.

    Args:
        gate: replays a session.
        plan: makes the automaton that the gate has (:func:`tcc_runtime.exact.planned.plan_of`);
            None: the question is about the statements alone.
        timeout: seconds.
        progress: called a few times a second with the seconds, the round and the branches so far.

    Raises:
        Rejected: T102 the question is wrong in this core.
    """
    began = clock()
    work = _Work(core, question, gate, began, began + timeout, clock, plan, progress)
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
    if work.question.kind == "finishable":
        return _finishable(work)
    rules = rules_of(work.question, work.core)
    policy = policy_of(work.core)
    try:
        parts = parts_of(rules, policy, work.plans)
    except Unsupported as why:
        try:
            for rule in rules:
                if rule.kind == "total":
                    _exceeded(work, _maker(work, rule))
        except _Refuted as refuted:
            return Answer(verdict="refuted", session=refuted.session)
        except OutOfTime:
            pass
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
    checked = check_proof(proof, work.core, work.make_plan)
    verdict = "unreachable" if work.question.kind == "reachable" else "proved"
    return Answer(verdict=verdict, used=checked.used, proof=proof)


def _finishable(work: _Work) -> Answer:
    plan = work.plan()
    reason = why_open(plan)
    if not reason:
        proof = proof_bytes(work.core, work.question, [])
        check_proof(proof, work.core, work.make_plan)
        return Answer(verdict="proved", proof=proof)
    if plan is None:
        return Answer(verdict="undecided", missing=reason)

    def ask(question: Question) -> Answer:
        left = max(0.0, work.end - work.clock()) / 2
        found = answer(
            work.core, question, work.gate, plan=work.make_plan, timeout=left, clock=work.clock
        )
        work.states += found.states
        return found

    try:
        found = unfinishable(work.core, work.gate, plan, work.tick, ask)
    except OutOfTime:
        found = None
    return found or Answer(verdict="undecided", missing=reason)


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
            makers.append(_maker(work, rule))
        return makers[0]

    def on_model(model: Model) -> None:
        if model.is_whole or most >= PARTIAL_ROUND:
            _tried(work, maker(), model)

    most = 0
    equal = work.equal(policy, rule)
    if equal and _searched(work, policy, rule, part, 2, _ignored, None, equal) == "closed":
        return ""
    for most in range(ROUNDS + 1):
        work.rounds = max(work.rounds, most + 1)
        for plan in _plans(work):
            ends = _searched(work, policy, rule, part, most, on_model, plan)
            if ends == "closed":
                return ""
            if ends == "time":
                return work.nearest or f"more time than {work.end - work.began:g} s"
        if most == 0:
            _lengthened(work, maker(), part)
        if ends == "open":
            break
        if most == 1:
            _wandered(work, maker(), part)
    _wandered(work, maker(), part)
    return work.nearest or "no proof and no session was found"


def _ignored(model: Model) -> None:
    """Make no session of a model."""


def _plans(work: _Work) -> Iterator[SearchedPlan | None]:
    """The automata that a round uses: none, and then that of the artifact.

    A proof about the core alone is better, because it holds for each artifact of the core.
    """
    yield None
    plan = work.plan()
    if plan is not None:
        yield plan


def _searched(
    work: _Work,
    policy: Policy,
    rule: Rule,
    part: Part,
    most: int,
    on_model: Callable[[Model], None],
    plan: SearchedPlan | None,
    statements: Sequence[int] = (),
) -> Literal["closed", "open", "deeper", "time"]:
    """Search for an argument; a closed one is added.

    Args:
        statements: that it may use; none: those of the policy.
    """
    scene, start = begun(policy, rule, work.question.kind, part.tool)
    statements = statements or range(len(policy.rules))
    search = Search(scene, start, statements, most, on_model, work.tick, plan)
    try:
        closed = search.run()
    except Deeper:
        return "deeper"
    except OutOfTime:
        return "time"
    finally:
        work.states += search.steps
    if closed is None:
        return "open"
    new, formulas = begun(policy, rule, work.question.kind, part.tool)
    steps, used = written(new, formulas, closed.tree, scene.literals, work.plans)
    tool = "" if part.tool is None else part.tool
    work.arguments.append({"tool": tool, "statements": used, "steps": steps})
    return "closed"


def _maker(work: _Work, rule: Rule) -> Maker:
    maker = Maker(Policy(work.core, [rule]))
    plan = work.plan()
    if plan is not None:
        machine = SessionMachine(work.core, plan.automaton, plan.core_calls)
        router = work.router = Router(plan, machine)
        maker.machine, maker.route = machine, lambda draft: router.routed(maker, draft)
    return maker


def _wandered(work: _Work, maker: Maker, part: Part) -> None:
    """Search with the definition alone, from the deciding call on."""
    tools = [tool.name for tool in work.core.tools]
    others = [()] if part.tool is not None else [(), *[(tool,) for tool in tools]]
    try:
        for some in others:
            _try(work, maker, plain_draft(maker, part.tool, some))
        for draft in counted(maker, plain_draft(maker, part.tool, ())):
            work.tick()
            asked = replayed(maker.without_policy(), work.question.kind, draft.session(maker))
            if asked.breaks is not None:
                _try(work, maker, draft)
    except OutOfTime:
        return


def _lengthened(work: _Work, maker: Maker, part: Part) -> None:
    """Look for a session beyond a limit: along a path, then by repeated calls.

    Raises:
        _Refuted: one was found.
    """
    limit = work.question.statements[part.statement]
    if not isinstance(limit, Limit):
        return
    try:
        _exceeded(work, maker)
    except OutOfTime:
        return
    end = work.clock() + max(0.0, work.end - work.clock()) * LENGTHENED
    for where in _amounts_of(maker, limit, part):
        asked = reachable(limit.of, (*limit.where, *where))
        left = max(0.0, end - work.clock()) / 2
        try:
            found = answer(
                work.core, asked, work.gate, plan=work.make_plan, timeout=left, clock=work.clock
            )
        except Rejected:  # a counted tool lacks the field
            continue
        work.states += found.states
        if found.session is None:
            continue
        try:
            longer = lengthened(maker, found.session, work.tick)
        except OutOfTime:
            return
        if longer is not None:
            _accepted(work, maker, longer)


def _amounts_of(maker: Maker, limit: Limit, part: Part) -> Iterator[tuple[Node, ...]]:
    """Conditions on the counted calls: great values of a summed field, else small numbers."""
    if limit.field is None:
        yield ()
    for declared in maker.core.tool_of[part.tool or ""].arguments:
        numbers = [state[1] for state in maker.candidates(declared) if state[0] == "n"]
        if declared.name == limit.field:
            for value in sorted(set(numbers), reverse=True)[:MAX_AMOUNTS]:
                yield (_compared(">=", declared.name, value),)
        elif limit.field is None and numbers:
            yield (_compared("<=", declared.name, min(numbers)),)


def _compared(operator: str, name: str, value: Any) -> Node:
    number = canonical_number(value if isinstance(value, int) else float(value))
    return Compare(operator, Word(name), Number(number))


def _exceeded(work: _Work, maker: Maker) -> None:
    """Look for a session beyond a limit or a total, along paths of the automaton, if there is one.

    Raises:
        _Refuted: one was found.
    """
    for draft in () if work.router is None else work.router.exceeding(maker):
        _try(work, maker, draft)


def _tried(work: _Work, maker: Maker, model: Model) -> None:
    for draft in drafts(maker, model):
        work.tick()
        if model.path is not None and work.router is not None:
            chain, steps = model.path
            if all(call in draft.tools for call in chain):
                followed = work.router.followed(maker, draft, chain, steps)
                _try(work, maker, followed, 100)
        _try(work, maker, draft, 300 if model.is_whole else 150)


def _try(work: _Work, maker: Maker, draft: Draft, most: int = MAX_REPAIRS) -> None:
    """Make a session of a draft, and let the gate replay it.

    Raises:
        _Refuted: the session breaks the statement.
    """
    session, found = repaired(maker, work.question.kind, draft, work.tick, most)
    if found.breaks is None:
        _note(work, maker, session, found)
        return
    _accepted(work, maker, replace(session, calls=session.calls[: found.breaks]))


def _accepted(work: _Work, maker: Maker, session: Session) -> None:
    """Let the gate replay a session whose last call breaks the question.

    Raises:
        _Refuted: the gate lets its calls through.
    """
    refusal = work.gate(session)
    if refusal is None:
        raise _Refuted(_shortened(work, maker, session))
    work.nearest = f"the gate refuses each session that was tried: {refusal.text}"


def _shortened(work: _Work, maker: Maker, session: Session) -> Session:
    """The session without calls that it does not need; a long one needs most of its calls."""
    at = len(session.calls) - 2
    while 0 <= at < MAX_SHORTENED:
        calls = (*session.calls[:at], *session.calls[at + 1 :])
        less = replace(session, calls=calls)
        found = replayed(maker, work.question.kind, less)
        if found.breaks == len(calls) and work.gate(less) is None:
            session = less
        at -= 1
    return session


def _note(work: _Work, maker: Maker, session: Session, found: Replayed) -> None:
    """Note what refuses a session, if it came further than those before."""
    statements = [one.statement for one in found.refusals]
    reached = found.refused or 0
    if (reached, -len(statements)) <= work._reach or not statements:
        return
    work._reach = reached, -len(statements)
    if statements[0] == PLAN:
        work.nearest = "the automaton has no plan for a session that was tried"
    elif statements[0] < len(work.core.statements):
        text = statement_text(work.core.statements[statements[0]])
        condition = refusing(maker, session, found)
        why = f", because `{condition}` is not true" if condition else ""
        work.nearest = f"each session that was tried is refused by `{text}`{why}"


__all__ = ["Answer", "Gate", "GateRefusal", "Rejected", "answer"]
