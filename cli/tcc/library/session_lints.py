"""Lints that need the exact engine: statements that others imply, tools that no session calls.

Cheap checks come first.  A statement is implied if another one is at least as strict.  A session
that reaches a tool also answers for the other tools that it calls.  Variants of these sessions show
that a statement is needed, if only that statement refuses them.  The engine decides the remaining
questions.
A statement counts as implied only if statements that are not removed themselves imply it.  So all
fixes can be applied together.
Cost: about `SECONDS`; each question that is still open then becomes a note.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from tcc_certs.errors import Rejected
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.nodes import Forbid, Word, statement_text
from tcc_certs.policy.type_texts import name_text
from tcc_certs.proof.questions import Question
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.lint.finding import Edit, LintFinding, LintNote
from tcc_runtime.analysis.neighbours import variants
from tcc_runtime.analysis.sessions import covers, idle_tools
from tcc_runtime.exact.prove import Answer, answer
from tcc_runtime.exact.values import Maker

if TYPE_CHECKING:
    from tcc_certs.policy.core import Core
    from tcc_certs.policy.forms import Rule
    from tcc_compiler.language.source import Span
    from tcc_compiler.resources import Place
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.exact.values import Session

SECONDS: Final = 2.5  # processor time of this process, independent of other work on the machine
_FIRST: Final = 40.0  # steps of the engine for each question
_STEPS: Final = 250.0  # steps for a question that is still open
_VARIANTS: Final = 150  # variants of a session for a statement


@dataclass(slots=True)
class SessionLints:
    """The lints about the statements and tools of a grammar.

    Attributes:
        findings: TCC704 and TCC746.
        notes: questions that the engine left open.
        implied: the numbers of statements that the others imply.  All can be removed together.
    """

    findings: list[LintFinding] = field(default_factory=list)
    notes: list[LintNote] = field(default_factory=list)
    implied: list[int] = field(default_factory=list)


class _Steps:
    """A clock that counts its own readings, so that answers do not depend on the machine."""

    def __init__(self, end: float) -> None:
        self.count = 0.0
        self._end = end

    def __call__(self) -> float:
        self.count += 1
        return self.count if time.process_time() < self._end else float("inf")


def session_lints(
    artifact: Artifact,
    places: Mapping[Place, Span],
    edits: Mapping[int, tuple[Edit, ...]],
    dead: Sequence[str],
) -> SessionLints:
    """Return TCC704 and TCC746 for an artifact.

    Args:
        places: the span of each statement.
        edits: the edits that remove a statement, by its number.
        dead: tools that are already known to be uncallable.
    """
    return _Linting(artifact, places, edits, frozenset(dead)).run()


@dataclass(slots=True)
class _Linting:
    artifact: Artifact
    places: Mapping[Place, Span]
    edits: Mapping[int, tuple[Edit, ...]]
    dead: frozenset[str]
    found: SessionLints = field(default_factory=SessionLints)
    end: float = 0.0
    pool: dict[str, Session] = field(default_factory=dict)
    needed: set[int] = field(default_factory=set)
    missing: str = ""

    @property
    def core(self) -> Core:
        return self.artifact.core

    def run(self) -> SessionLints:
        self.end = time.process_time() + SECONDS
        rules = policy_of(self.core).rules
        left = dict.fromkeys(range(len(rules)))
        open_ones = [one for one in reversed(range(len(rules))) if _is_asked(rules[one])]
        open_ones = [one for one in open_ones if self._is_open(one, rules, left, _FIRST)]
        self._tools(rules)
        self._vary(open_ones, rules)
        for number in open_ones:
            if number not in self.needed and self._is_open(number, rules, left, _STEPS):
                text = statement_text(self.core.statements[number])
                what = f"the other statements imply `{text}`"
                self._open("TCC704", text, what, self.missing, self.places.get(number))
        self.found.implied.sort()
        return self.found

    def _asked(self, core: Core, question: Question, steps: float) -> Answer:
        """Ask the engine about the statements only; plans are not considered here."""
        if time.process_time() > self.end:
            return Answer(verdict="undecided", missing="the time is over")
        found = answer(core, question, _allows, timeout=steps, clock=_Steps(self.end))
        if found.missing.startswith("more time"):  # this clock counts steps, not seconds
            found.missing = f"more than {int(steps)} steps of the engine; `tcc prove` takes more"
        return found

    # Tools.

    def _tools(self, rules: Sequence[Rule]) -> None:
        """Ask for each tool whether a session can call it."""
        idle = {*idle_tools(self.artifact), *self.dead}
        restricted = {tool for rule in rules if rule.then is not None for tool in rule.tools or ()}
        forbidden = {tool for rule in rules if rule.kind == "forbid" for tool in rule.tools or ()}
        asked = [tool.name for tool in self.core.tools if tool.name not in idle]
        asked.sort(key=lambda one: one not in restricted)
        for steps in (_FIRST, _STEPS):
            for name in list(asked):
                said = None if name in self.pool else self._reached(name, steps)
                if said is None or said.verdict != "undecided":
                    asked.remove(name)
                elif steps == _STEPS and name in restricted | forbidden:
                    what = f"`{name_text(name)}` can be called"
                    self._open("TCC746", name_text(name), what, said.missing, None)

    def _reached(self, name: str, steps: float) -> Answer | None:
        """Ask whether a session can call a tool, and record the answer; None if it is refused."""
        question = Question(kind="reachable", statements=(Forbid(on=Word(name)),))
        try:
            said = self._asked(self.core, question, steps)
        except Rejected:
            return None
        if said.session is not None:
            self._keep(said.session, len(said.session.calls))
        elif said.proof is not None:
            self._never(name, said.used)
        return said

    def _keep(self, session: Session, many: int) -> None:
        """Record the session of the first `many` calls as possible, for each tool that it calls."""
        for at, call in enumerate(session.calls[:many], 1):
            self.pool.setdefault(call.tool, replace(session, calls=session.calls[:at], ends=False))

    def _never(self, name: str, used: Sequence[int]) -> None:
        texts = [statement_text(self.core.statements[one]) for one in used]
        first = next((self.places[one] for one in used if one in self.places), None)
        together = "exclude" if len(used) > 1 else "excludes"
        statements = "these statements" if len(used) > 1 else "this statement"
        message = f"`{name_text(name)}` can never be called: {statements} {together} every call"
        hint = f"relax or remove one of: {'; '.join(texts[:4])}"
        self.found.findings.append(self._finding("TCC746", message, hint, first, used, ()))

    # Statements.

    def _vary(self, numbers: Sequence[int], rules: Sequence[Rule]) -> None:
        """Look for calls that exactly one statement refuses, among variants of known sessions."""
        policy = policy_of(self.core)
        half = time.process_time() + (self.end - time.process_time()) / 2
        for number in numbers:
            rule = rules[number]
            if number in self.needed or rule.tools is None:
                continue
            maker = Maker(Policy(self.core, [rule]))
            for tool in sorted(rule.tools & self.pool.keys())[:2]:
                for session in islice(variants(maker, self.pool[tool], rule), _VARIANTS):
                    if time.process_time() > half:
                        return
                    self.needed.update(_refusing_alone(policy, session))
                    if number in self.needed:
                        break

    def _is_open(
        self, number: int, rules: Sequence[Rule], left: dict[int, None], steps: float
    ) -> bool:
        """Ask whether the remaining statements imply one; return whether that stays open."""
        rule = rules[number]
        others = [one for one in left if one != number]
        twin = next((one for one in others if covers(rules[one], rule)), None)
        if twin is not None:
            self._implied(number, [twin], left)
            return False
        if rule.across or rule.kind == "total":
            return False
        if not _may_be_implied(rule, [rules[one] for one in others]):
            return False
        core = replace(self.core, statements=tuple([self.core.statements[one] for one in others]))
        question = Question(kind="statement", statements=(self.core.statements[number],))
        said = self._asked(core, question, steps)
        self.missing = said.missing
        if said.session is not None:  # only this statement refuses the last call, or the end
            self._keep(said.session, len(said.session.calls) - (not said.session.ends))
        if said.proof is not None:
            self._implied(number, [others[one] for one in said.used], left)
        return said.verdict == "undecided"

    def _implied(self, number: int, used: Sequence[int], left: dict[int, None]) -> None:
        del left[number]
        self.found.implied.append(number)
        texts = [f"`{statement_text(self.core.statements[one])}`" for one in used]
        text = statement_text(self.core.statements[number])
        by = ", ".join(texts[:6]) or "the types of its fields"
        message = f"`{text}` changes no decision: it follows from {by}"
        hint = "remove it, or allow this lint if it is meant as a second lock"
        span, fix = self.places.get(number), self.edits.get(number, ())
        self.found.findings.append(self._finding("TCC704", message, hint, span, used, fix))

    def _finding(
        self,
        code: str,
        message: str,
        hint: str,
        span: Span | None,
        used: Sequence[int],
        fix: tuple[Edit, ...],
    ) -> LintFinding:
        notes = [
            Note(message="by this statement", span=self.places[one])
            for one in used[:8]
            if one in self.places
        ]
        return LintFinding(
            diagnostic=Diagnostic(
                code=code, severity="warning", message=message, span=span, hint=hint,
                notes=tuple(notes),
            ),
            fix=fix,
        )  # fmt: skip

    def _open(self, code: str, statement: str, what: str, missing: str, span: Span | None) -> None:
        diagnostic = Diagnostic(
            code="TCC715",
            severity="note",
            message=f"not decided: {code}: whether {what}",
            span=span,
            notes=(Note(message=missing),),
        )
        note = LintNote(diagnostic=diagnostic, statement=statement, question=code, missing=missing)
        self.found.notes.append(note)


def _allows(session: Session) -> None:
    """Allow every session: the definition of the policy has already replayed it."""


def _is_asked(rule: Rule) -> bool:
    """Return whether to ask if other statements imply this one."""
    return rule.kind != "ask" and not (rule.kind == "owe" and rule.within is not None)


def _may_be_implied(rule: Rule, others: Sequence[Rule]) -> bool:
    """Return whether other statements restrict every tool that this statement restricts.

    If not, only types, or tools that no session calls, could imply this statement.
    """
    if rule.tools is None:
        return True
    spoken = frozenset[str]().union(*[one.tools or () for one in others if one.kind != "ask"])
    return rule.tools <= spoken


def _refusing_alone(policy: Policy, session: Session) -> Iterator[int]:
    """Yield the statement that alone causes the first refusal in a session; nothing otherwise."""
    try:
        course = Course(policy, session.given)
        for one in session.calls:
            now = one.at_ms or 0
            refusals = [
                refusal
                for refusal in course.check(one.tool, one.arguments, now)
                if refusal.code != "R211"
            ]
            if refusals:
                numbers = {refusal.statement for refusal in refusals}
                if len(numbers) == 1:
                    yield from numbers
                return
            call = course.call(one.tool, one.arguments, now)
            course.record(call, one.outcome or "done", one.answer)
    except Rejected:
        return


__all__ = ["SECONDS", "SessionLints", "session_lints"]
