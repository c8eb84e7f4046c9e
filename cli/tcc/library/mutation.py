"""Runs the tests of a grammar on mutants of its policy: `tcc test --mutants`.

A mutant is tested with the `accept`, `reject` and `expect` lines and the recorded sessions of its
grammar.  If all tests pass, the exact engine looks for a session that the policy and the mutant
decide differently.  The gates of both replay that session before it is reported.  A mutant that the
engine proves equivalent in both directions needs no test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tcc.library import only_guards
from tcc.library.proving import gate_of
from tcc.library.recorded import Expected, Recorded, failure_of
from tcc_certs.errors import Rejected
from tcc_certs.proof.implication import is_any
from tcc_certs.proof.questions import Question
from tcc_compiler.pipeline import compile_frontend
from tcc_compiler.resources import Timer
from tcc_runtime.analysis.mutants import Mutant, mutants
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.exact.prove import answer

if TYPE_CHECKING:
    from tcc_compiler.frontend import Compiled as Frontend
    from tcc_compiler.options import Options
    from tcc_runtime.exact.values import Session

QUESTION_SECONDS: Final = 10.0
BUDGET_SECONDS: Final = 600.0
Verdict: TypeAlias = 'Literal["killed", "equivalent", "open", "survived"]'
OnMutant: TypeAlias = "Callable[[int, int], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A mutant and its verdict.

    Attributes:
        statement: the original statement.
        change: the kind of the change.
        mutant: the changed statement; None if it was removed.
        verdict: ``killed``, ``survived``, ``equivalent`` or ``open``.
        why: the test that notices a killed mutant, or the answer that an open one lacks.
        session: for a survivor, the calls that the policy and the mutant decide differently.
        given: the attributes of that session.
        ends: whether the two decide only the end of that session differently.
        expected: the decision of the policy about the last call, or about the end.
    """

    statement: str
    change: str
    mutant: str | None
    verdict: Verdict
    why: str = ""
    session: Sequence[Mapping[str, Any]] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    ends: bool = False
    expected: Expected = "refused"

    def line(self) -> dict[str, Any]:
        """Return the session of a survivor as a line for the file of recorded sessions."""
        found: dict[str, Any] = {"id": f"{self.change}: {self.statement}"}
        found |= {"given": dict(self.given)} if self.given else {}
        found |= {"calls": [dict(call) for call in self.session]}
        return found | ({"ends": True} if self.ends else {})


def judge(
    front: Frontend,
    artifact: Artifact,
    recorded: Sequence[Recorded],
    options: Options,
    *,
    question_seconds: float = QUESTION_SECONDS,
    budget: float = BUDGET_SECONDS,
    on_mutant: OnMutant = lambda done, of: None,
) -> Iterator[Judged]:
    """Judge each mutant of a grammar, in the order of its statements.

    Args:
        front: the grammar as read, with its examples and expectations.
        artifact: the artifact of the grammar, whose tests all hold.
        recorded: the recorded sessions of the grammar.
        options: the compiler options for mutants.
        question_seconds: time limit of each question to the engine.
        budget: time limit in seconds for all mutants; the remaining mutants are ``open``.
        on_mutant: called before each mutant with its number, from 0, and the number of mutants.
    """
    every = list(mutants(artifact.core))
    end = options.clock() + budget
    work = _Work(front, artifact, list(recorded), options, question_seconds, end)
    for number, mutant in enumerate(every):
        on_mutant(number, len(every))
        yield work.judged(mutant)


@dataclass(slots=True)
class _Work:
    """The grammar whose mutants are judged.

    Attributes:
        recorded: the sessions; the session that killed the latest mutant comes first.
        end: the time, by the clock of `options`, when all work must stop.
    """

    front: Frontend
    artifact: Artifact
    recorded: list[Recorded]
    options: Options
    question_seconds: float
    end: float

    def judged(self, mutant: Mutant) -> Judged:
        """Test a mutant; if all tests pass, ask the engine about it."""
        left = self.end - self.options.clock()
        if left <= 0:
            return _judged(mutant, "open", "the time for all mutants is over")
        options = self.options
        timeout = left if options.timeout is None else min(left, options.timeout)
        front = replace(self.front, core=mutant.core)
        options = replace(options, timeout=timeout)
        compiled = compile_frontend(front, options, Timer(options))
        if compiled.artifact is None:
            errors = [one for one in compiled.diagnostics if one.severity == "error"]
            if only_guards(compiled.diagnostics):
                return _judged(mutant, "open", f"{errors[0].code} {errors[0].message}")
            return _judged(mutant, "killed", f"{errors[0].code} {errors[0].message}")
        other = load(compiled.artifact, checked=compiled.checked)
        for at, one in enumerate(self.recorded):
            failure = failure_of(other, one)
            if failure is not None:
                self.recorded.insert(0, self.recorded.pop(at))
                return _judged(mutant, "killed", f"{one.path.name}: {failure}")
        return self._asked(mutant, other)

    def _asked(self, mutant: Mutant, other: Artifact) -> Judged:
        """Look for a session that the policy and the mutant decide differently.

        Walking through both gates finds sessions of long plans.  The engine finds sessions with
        equal values in several calls, and only the engine can prove that the two are equivalent.
        """
        is_free = is_any(mutant.core)
        found = None if is_free else self._walked(mutant, other)
        missing = ""
        if found is None:
            found, missing = self._answered(mutant, other)
        if found is None and missing and is_free:
            found = self._walked(mutant, other)
        if found is None:
            return _judged(mutant, "open" if missing else "equivalent", missing)
        session, expected = found
        return replace(
            _judged(mutant, "survived"),
            session=session.json(),
            given=dict(session.given),
            ends=session.ends,
            expected=expected,
        )

    def _walked(self, mutant: Mutant, other: Artifact) -> tuple[Session, Expected] | None:
        from tcc_runtime.analysis.twins import differing

        over = min(self.end, self.options.clock() + self.question_seconds)
        found = differing(
            self.artifact,
            other,
            about=mutant.before,
            is_over=lambda: self.options.clock() > over,
        )
        return None if found is None else self._shown(found[0], other)

    def _answered(
        self, mutant: Mutant, other: Artifact
    ) -> tuple[tuple[Session, Expected] | None, str]:
        """Ask the engine in both directions.

        Returns:
            a session with the policy's decision about its last step; or None and the missing
            answer, which is empty if the two are proved equivalent.
        """
        mine, missing = self.artifact, ""
        for source, statements, lets in (
            (other, mutant.before, mine.core.lets),
            (mine, mutant.after, mutant.core.lets),
        ):
            if not statements:
                continue  # the mutant has no such statement, so it allows what the policy allows
            question = Question(kind="implies", statements=statements, lets=lets)
            left = min(self.question_seconds, self.end - self.options.clock())
            try:
                found = answer(source.core, question, gate_of(source), timeout=max(left, 0.001))
            except Rejected as refusal:
                missing = missing or f"{refusal}"
                continue
            if found.verdict == "proved":
                continue
            shown = None if found.session is None else self._shown(found.session, other)
            if shown is not None:
                return shown, ""
            missing = missing or found.missing or "both gates decide the session alike"
        return None, missing

    def _shown(self, session: Session, other: Artifact) -> tuple[Session, Expected] | None:
        """Remove unnecessary calls from a session that exactly one gate allows.

        Returns:
            the shorter session and the policy's decision about its last call or its end; None if
            the gates do not differ exactly there.
        """
        gates = gate_of(self.artifact), gate_of(other)

        def verdict(session: Session) -> Expected | None:
            found = [gate(session) for gate in gates]
            last = len(session.calls) - (not session.ends)
            wrong = [one for one in found if one is not None]
            if len(wrong) != 1 or wrong[0].at != last:
                return None
            return "allowed" if found[0] is None else "refused"

        expected = verdict(session)
        if expected is None:
            return None
        for at in reversed(range(len(session.calls) - (not session.ends))):
            less = replace(session, calls=(*session.calls[:at], *session.calls[at + 1 :]))
            if verdict(less) == expected:
                session = less
        return session, expected


def _judged(mutant: Mutant, verdict: Verdict, why: str = "") -> Judged:
    return Judged(
        statement=mutant.statement,
        change=mutant.change,
        mutant=mutant.mutant,
        verdict=verdict,
        why=why,
    )
