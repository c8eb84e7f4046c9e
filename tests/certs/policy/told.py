"""Sessions told by text, for tests of the definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course, answer_states, argument_states
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, OPEN, Call, Draw
from tcc_certs.policy.kinds import Kinds
from tcc_certs.policy.meaning import Evaluation, Policy
from tests.oracle_meaning.written import condition_of, core_of

T = TypeVar("T")


class Told:
    """A session of a core that is written as text, in both forms of a history.

    Every question is asked of both, and the answers have to agree.

    Args:
        accounts: of both forms, the draws on limits across sessions.
        given: the attributes that the session starts with.
    """

    def __init__(
        self, text: str | Core, accounts: Sequence[dict[int, list[Draw]]] = (), **given: Any
    ) -> None:
        self.core = core_of(text) if isinstance(text, str) else text
        self.policy = Policy(self.core)
        self.courses = [
            Course(self.policy, given, indexed=indexed, account=account)
            for indexed, account in zip((False, True), accounts or (None, None), strict=True)
        ]
        self.now = 0

    # Calls.

    def done(self, tool: str, answer: object = None, **arguments: Any) -> int:
        """Add a call that is done; return its place."""
        return self.add(tool, DONE, answer, **arguments)

    def failed(self, tool: str, **arguments: Any) -> int:
        return self.add(tool, FAILED, **arguments)

    def answered(self, tool: str, **arguments: Any) -> int:
        return self.add(tool, ANSWERED, **arguments)

    def lost(self, tool: str, **arguments: Any) -> int:
        return self.add(tool, LOST, **arguments)

    def open(self, tool: str, **arguments: Any) -> int:
        return self.add(tool, OPEN, **arguments)

    def add(self, tool: str, outcome: str, answer: object = None, **arguments: Any) -> int:
        for course in self.courses:
            call = course.call(tool, arguments, self.now)
            if outcome != OPEN:
                course.record(call, outcome, {} if answer is None else answer)
        return len(self.courses[0].history.calls) - 1

    def later(self, at: int, outcome: str, answer: object = None) -> None:
        """Record the outcome of the call at a place."""
        for course in self.courses:
            course.record(course.history.calls[at], outcome, {} if answer is None else answer)

    # Questions.

    def _alike(self, ask: Callable[[Course], T]) -> T:
        found, other = (ask(course) for course in self.courses)
        assert found == other, (found, other)
        return found

    def refused(self, tool: str, **arguments: Any) -> list[str]:
        """The codes by which statements refuse a call."""
        return [refusal.code for refusal in self.refusals(tool, **arguments)]

    def refusals(self, tool: str, **arguments: Any) -> list[Any]:
        return self._alike(lambda course: course.check(tool, arguments, self.now))

    def unmet(self) -> list[int]:
        return self._alike(lambda course: course.unmet(self.now))

    def truth(self, text: str, tool: str = "x", **arguments: Any) -> bool | None:
        """The truth of a condition while a call is decided."""
        return self.evaluated(text, tool, **arguments)[0]

    def evaluated(self, text: str, tool: str = "x", **arguments: Any) -> tuple[bool | None, bool]:
        """The truth of a condition, and whether something was cut."""
        require = n.Require(on=n.Word(tool), then=condition_of(text))
        rule = Kinds(replace(self.core, statements=())).rule(require)
        assert rule.then is not None
        then = rule.then

        def ask(course: Course) -> tuple[bool | None, bool]:
            states = argument_states(self.core.tool_of[tool], arguments)
            call = Call(tool, len(course.history.calls), self.now, states)
            evaluation = Evaluation(course.history, call, self.now)
            return evaluation.truth(then), evaluation.cut

        return self._alike(ask)


def states_of(core: Core, tool: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The states of an answer."""
    return answer_states(core.tool_of[tool], answer)
