"""Comparison of the sessions of two grammars: the sessions that one gate allows and the other
refuses.

Each statement of one side is a question about the sessions of the other side.  Statements that both
sides have, and limits with a smaller bound, need no search.  The exact engine answers the other
questions.  The plans of both sides are compared by their automata.  A session is reported only if
the gate of one side allows it and the gate of the other side refuses it.
Cost: that of the questions, within a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Final, Literal

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy import forms
from tcc_certs.policy.core import Core, Learned, Tool
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.kinds import Fault, walk
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.nodes import (
    Compare,
    Forbid,
    Get,
    It,
    Node,
    Number,
    Owe,
    Statement,
    Total,
    Word,
    statement_text,
)
from tcc_certs.policy.places import parts_of
from tcc_certs.proof.implication import is_any
from tcc_certs.proof.questions import Question, rules_of
from tcc_certs.session.approvals import term_of
from tcc_certs.values.declared import NumberType, TextType
from tcc_certs.values.places import NONE, State, exact_number, listed_states
from tcc_runtime.analysis.difference import OneSided
from tcc_runtime.analysis.joined import Incomparable, Joined, joined
from tcc_runtime.analysis.neighbours import together, variants
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.planned import plan_of
from tcc_runtime.exact.prove import AskingGate, Roles, answer
from tcc_runtime.exact.values import NOW_MS, Maker, Session, SessionCall, object_of

SECONDS: Final = 10.0  # for a comparison
_FIRST: Final = 1.0  # seconds for a question before other sessions are tried
_MOST_TOOLS: Final = 4  # tools of a statement whose sessions are varied
_MOST_CALLS: Final = 2000  # calls of a session for a plan or a total

Verdict = Literal["equal", "wider", "narrower", "incomparable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A grammar of a comparison, and a gate that replays sessions of it."""

    artifact: Artifact
    gate: AskingGate


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A session that one side allows and the other refuses.

    Attributes:
        refused_by: the text of the statement of the other side, or another reason.
    """

    session: Session
    refused_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A question without an answer.

    Attributes:
        statement: the text of the statement; empty: the question is about plans or declarations.
        missing: the reason.
    """

    statement: str
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanges:
    """The differences of the sessions of a new grammar from those of an old one.

    Attributes:
        verdict: the verdict about the new grammar; None: not known.
        added, removed: a session that only the new, or only the old, gate allows; or None.  The
            verdict can be `wider` or `narrower` without a session, if it follows from the
            statements.
        open: the undecided questions.
    """

    verdict: Verdict | None
    added: Shown | None = None
    removed: Shown | None = None
    open: tuple[Open, ...] = ()


@dataclass(slots=True)
class _Direction:
    """The answer to the question whether the other side allows every session of one side.

    Attributes:
        shown: a session that the other side refuses.
        open: the undecided questions; if it is empty and `shown` is None, the other side allows
            every session.
        is_plain: whether no search was needed, because each statement of the other side is one of
            this side, or has a larger bound.
        is_clear: whether the open statements probably exclude a session.
    """

    shown: Shown | None = None
    open: list[Open] = field(default_factory=list)
    is_plain: bool = False
    is_clear: bool = True

    def add(self, statement: str, missing: str, *, is_clear: bool = True) -> None:
        """Add an open question."""
        self.open.append(Open(statement=statement, missing=missing))
        self.is_clear = self.is_clear and is_clear

    @property
    def holds(self) -> bool:
        """True if the other side surely allows every session."""
        return self.shown is None and not self.open


def session_changes(
    old: Side,
    new: Side,
    added: OneSided | None,
    removed: OneSided | None,
    *,
    timeout: float = SECONDS,
    clock: Callable[[], float] = time.process_time,
) -> SessionChanges:
    """Compare the sessions of two grammars.

    Args:
        added, removed: the plans that only one side has; None: only bounds are known.
        timeout: seconds of `clock` for all questions.  The default clock is the processor time of
            this process, so other work on the machine changes no answer.
    """
    end = clock() + timeout
    more = _Asking(new, old, added, clock() + timeout / 2, clock).direction()
    less = _Asking(old, new, removed, end, clock).direction()
    return SessionChanges(
        verdict=_verdict(more, less),
        added=more.shown,
        removed=less.shown,
        open=(*more.open, *less.open),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The answer to the question whether a gate allows every session of another gate.

    Attributes:
        holds: the answer; None: not known.
        shown: a session that the gate refuses.
        open: the undecided questions.
    """

    holds: bool | None
    shown: Shown | None = None
    open: tuple[Open, ...] = ()


def allows_all(
    side: Side,
    other: Side,
    plans: OneSided | None,
    *,
    timeout: float = SECONDS,
    clock: Callable[[], float] = time.process_time,
) -> Allowed:
    """Decide whether `other` allows every session of `side`.

    Args:
        plans: the plans that only `side` has; None: only bounds are known.
    """
    found = _Asking(side, other, plans, clock() + timeout, clock).direction()
    holds = True if found.holds else False if found.shown is not None else None
    return Allowed(holds=holds, shown=found.shown, open=tuple(found.open))


def _verdict(more: _Direction, less: _Direction) -> Verdict | None:
    """Return the verdict about the new side.

    A side that only lost statements, or got larger bounds, allows more, even if no session was
    found.
    """
    if more.holds and less.holds:
        return "equal"
    if less.holds and (more.shown is not None or (less.is_plain and more.is_clear)):
        return "wider"
    if more.holds and (less.shown is not None or (more.is_plain and less.is_clear)):
        return "narrower"
    return "incomparable" if more.shown is not None and less.shown is not None else None


@dataclass(slots=True)
class _Asking:
    """The questions whether `other` allows every session of `side`."""

    side: Side
    other: Side
    plans: OneSided | None
    end: float
    clock: Callable[[], float]

    def direction(self) -> _Direction:
        """Answer the questions."""
        found = _Direction()
        core, other = self.side.artifact.core, self.other.artifact.core
        try:
            beside = joined(core, other, idle_tools(self.side.artifact))
            policy = policy_of(beside.core)
            held = policy.rules
            asked = self._asked(beside, other)
        except (Incomparable, Fault, Rejected) as why:
            found.shown = next(self._plain(), None)
            if found.shown is None:
                found.add("", str(why), is_clear=False)
            return found
        left: list[tuple[Statement, Rule]] = []
        for statement, rule in asked:
            if not any(covers(one, rule) for one in held):
                left.append((statement, rule))
        found.is_plain = not left
        for at, (statement, rule) in enumerate(left):
            found.shown = self._question(beside, other, statement, rule, len(left) - at, found)
            if found.shown is not None:
                found.open.clear()
                return found
        self._plans(core, other, found)
        return found

    def _asked(self, beside: Joined, other: Core) -> list[tuple[Statement, Rule]]:
        """Return the statements of the other side over the joined core, with their rules."""
        statements = (*other.statements, *beside.asked)
        if not statements:
            return []
        question = Question(kind="implies", statements=statements, lets=other.lets)
        return list(zip(statements, rules_of(question, beside.core), strict=True))

    def _question(
        self,
        beside: Joined,
        other: Core,
        statement: Statement,
        rule: Rule,
        left: int,
        found: _Direction,
    ) -> Shown | None:
        """Return a session that breaks a statement of the other side, or None; add open questions
        to `found`.
        """
        text = statement_text(statement)
        if rule.kind == "total":
            shown = next(self._long(rule), None)
            if shown is None:
                missing = "no session with a larger total was found"
                found.add(text, missing, is_clear=not self._is_held(text))
            return shown
        question = Question(kind="statement", statements=(statement,), lets=other.lets)
        artifact = self.side.artifact
        has_plan = beside.core.calls == artifact.core.calls
        plan = partial(plan_of, artifact) if has_plan else None
        missing = "the time is over"
        share = (self.end - self.clock()) / left
        is_held = self._is_held(text)
        for seconds in (min(share, _FIRST), *([] if is_held else [share])):
            if self.clock() > self.end:
                break
            try:
                said = answer(
                    beside.core, question, self.side.gate, plan=plan, timeout=seconds,
                    clock=self.clock,
                )  # fmt: skip
            except (Rejected, Fault) as why:
                missing = str(why)
                break
            if said.session is not None:
                shown = self._shown(said.session)
                if shown is not None:
                    return shown
            if said.verdict == "proved":
                if not rule.across:
                    return None
                missing = "sessions of one account are counted together, and one was looked at"
            else:
                missing = said.missing or "the gates disagree"
            if seconds <= _FIRST:
                shown = self._near(beside, statement, rule)
                if shown is not None:
                    return shown
            if said.seconds < seconds:
                break
        found.add(text, missing, is_clear=not is_held)
        return None

    def _is_held(self, text: str) -> bool:
        """Return whether a statement is in the automaton of the other side, and no plan is excluded
        by it.
        """
        if self.plans is None or self.plans.plans:
            return False
        parts = parts_of(self.other.artifact.core)
        return any(part.text == text and part.place == "automaton" for part in parts)

    def _near(self, beside: Joined, statement: Statement, rule: Rule) -> Shown | None:
        """Return a variant of a session with a call that the statement restricts or counts, or
        None.
        """
        if rule.tools is None or isinstance(statement, Total | Owe):
            return None
        maker = Maker(Policy(beside.core, [rule]))
        tools = [tool for tool in self.side.artifact.core.tools if tool.name in rule.tools]
        seeds: list[Session] = []
        for tool in tools[:_MOST_TOOLS]:
            wheres = [statement.where, (), *_pinned(tool, rule)]
            for where in dict.fromkeys(wheres):
                seed = self._reached(beside, Forbid(on=Word(tool.name), where=where))
                if seed is None:
                    continue
                seeds.append(seed)
                for session in variants(maker, seed, rule):
                    shown = self._shown(session)
                    if shown is not None or self.clock() > self.end:
                        return shown
        match rule.most:
            case forms.Constant(("n", most)):
                for one, other in permutations(seeds, 2):
                    both = together(one, other, most)
                    shown = None if both is None else self._shown(both)
                    if shown is not None or self.clock() > self.end:
                        return shown
        return None

    def _reached(self, beside: Joined, calls: Forbid) -> Session | None:
        """Return a session of this side with such a call, or None."""
        question = Question(kind="reachable", statements=(calls,))
        try:
            said = answer(
                beside.core, question, self.side.gate, timeout=_FIRST / 2, clock=self.clock
            )
        except (Rejected, Fault):
            return None
        return said.session

    def _shown(self, session: Session) -> Shown | None:
        """Return the session if the gate of this side allows it and the other gate refuses it, else
        None.

        The other gate also refuses a call if it asks a role that this side does not ask.
        """
        roles: list[Roles] = []
        if self.side.gate(session, told=roles) is not None:
            return None
        refusal = self.other.gate(session, by=roles)
        if refusal is None:
            return None
        if refusal.at < len(session.calls):  # calls after the refused one are not needed
            session = replace(session, calls=session.calls[: refusal.at + 1], ends=False)
        return Shown(session=session, refused_by=refusal.text)

    # Plans.

    def _plans(self, core: Core, other: Core, found: _Direction) -> None:
        """Compare the plans of both sides; store a session that shows a difference, or an open
        question.
        """
        if _is_free(other) or _same_automaton(core, other):
            return
        plans = self.plans
        if plans is not None and not plans.plans and not self.side.artifact.manifest.relaxed:
            return
        if plans is not None and plans.shortest is not None:
            for session in plan_sessions(self.side.artifact, plans.shortest):
                found.shown = self._shown(session) or self._shown(replace(session, ends=True))
                if found.shown is not None:
                    found.open.clear()
                    return
        found.open.append(
            Open(statement="", missing="whether plans of one side alone are sessions")
        )

    def _long(self, rule: Rule) -> Iterator[Shown]:
        """Yield sessions with more calls, or a larger total, than a total of the other side
        allows.
        """
        core = self.side.artifact.core
        maker = Maker(policy_of(core))
        plan = None if self.plans is None else self.plans.shortest
        for session in plan_sessions(self.side.artifact, plan or ()):
            shown = self._shown(session)
            if shown is not None:
                yield shown
        most = int(Fraction(exact_number(rule.total))) + 1 if rule.what == "depth" else 40
        if most > _MOST_CALLS:
            return
        for tool in core.tools:
            if self.clock() > self.end:
                return
            shown = self._shown(_session(maker, [_call(maker, tool.name, {}, 0)] * most))
            if shown is not None:
                yield shown

    def _plain(self) -> Iterator[Shown]:
        """Yield sessions of one call, for declarations that no statement can express."""
        maker = Maker(policy_of(self.side.artifact.core))
        for tool in maker.core.tools:
            for turn in range(4):
                shown = self._shown(_session(maker, [_call(maker, tool.name, {}, turn)]))
                if shown is not None:
                    yield shown


def plan_sessions(artifact: Artifact, plan: Sequence[str]) -> Iterator[Session]:
    """Yield sessions with the calls of a plan, and plain values of open fields."""
    core = artifact.core
    if len(plan) > _MOST_CALLS:
        return
    calls = {call.text: call for call in core.calls}
    maker = Maker(policy_of(core))
    for turn in range(3):
        made = []
        for text in plan:
            call = calls[text]
            tool = core.tools[call.tool]
            listed = {
                one.name: listed_states(one)[value]
                for one, value in zip(tool.listed, call.values, strict=True)
            }
            made.append(_call(maker, tool.name, listed, turn))
        yield _session(maker, made)


def _session(maker: Maker, calls: Sequence[SessionCall]) -> Session:
    fields = [one for one in maker.core.given if not isinstance(one, Learned)]
    states = {one.name: (maker.candidates(one) or [NONE])[0] for one in fields}
    return Session(given=object_of(fields, states), calls=tuple(calls))


def _call(maker: Maker, tool: str, listed: dict[str, State], turn: int) -> SessionCall:
    """Return a call with plain values for the fields that `listed` lacks."""
    declared = maker.core.tool_of[tool]
    states: dict[str, State] = dict(listed)
    for one in (*declared.arguments, *declared.answers):
        if one.name not in states:
            is_left_out = one.optional and one in declared.arguments
            candidates = [] if is_left_out else maker.candidates(one, (), 0)
            match one.type:
                case TextType(most=most, pattern=None, among=()) if turn == 3 and most <= 10_000:
                    candidates = [("s", "x" * most)]
            states[one.name] = candidates[min(turn, len(candidates) - 1)] if candidates else NONE
    return SessionCall(
        tool=tool,
        arguments=object_of(declared.arguments, states),
        outcome="done",
        answer=object_of(declared.answers, states) if declared.answers else None,
        at_ms=NOW_MS,
    )


def _pinned(tool: Tool, rule: Rule) -> Iterator[tuple[Node, ...]]:
    """Yield filters for calls that have a number near a constant of a statement."""
    constants = {
        one.state[1]: None
        for one in walk(rule)
        if isinstance(one, forms.Constant) and one.state[0] == "n"
    }
    for declared in tool.arguments:
        if not isinstance(declared.type, NumberType):
            continue
        for constant in list(constants)[:_MOST_TOOLS]:
            for value in (constant, constant + 1, constant - 1):
                number = format_decimal(int(value * 1000), 3)
                yield (Compare("=", Get(It(), declared.name), Number(number)),)


def covers(held: Rule, asked: Rule) -> bool:
    """Return whether a statement surely allows no more than another one.

    True if they are equal, or if `held` has the same form and a bound that is not larger.
    """
    if held == asked:
        return True
    if held.kind != asked.kind:
        return False
    if held.kind == "ask":
        return term_of(held) <= term_of(asked) and replace(held, within=asked.within) == asked
    if held.kind == "total":
        return held.what == asked.what and exact_number(held.total) <= exact_number(asked.total)
    if held.kind != "limit":
        return False
    match held.most, asked.most:
        case forms.Constant(("n", one)), forms.Constant(("n", other)):
            return one <= other and replace(held, most=asked.most) == asked
    return False


def idle_tools(artifact: Artifact) -> list[str]:
    """Return the tools that occur in no plan of an artifact."""
    core = artifact.core
    used, tools = set(artifact.texts), set[int]()
    for call in core.calls:
        if call.text in used:
            tools.add(call.tool)
    return [tool.name for at, tool in enumerate(core.tools) if at not in tools]


def _is_free(core: Core) -> bool:
    """Return whether the automaton of a core refuses no call that the statements allow."""
    if not is_any(core):
        return False
    policy: Policy = policy_of(core)
    for rule in policy.rules:
        if rule.kind == "owe" or (rule.kind == "require" and rule.tools is None):
            return False
        if rule.kind == "total" and rule.what == "cost":
            return False
    return True


_PLANS = "plan", "rules", "patterns", "calls", "start", "goals"


def _same_automaton(core: Core, other: Core) -> bool:
    """Return whether two cores surely have the same automaton, because all parts that affect it are
    equal.
    """
    members = (*_PLANS, "tools", "lets", "statements")
    return all(getattr(core, name) == getattr(other, name) for name in members)


__all__ = [
    "Open",
    "SessionChanges",
    "Shown",
    "Side",
    "idle_tools",
    "plan_sessions",
    "session_changes",
]
