"""Finds a session that the gates of two policies decide differently, by random walks through both.

A walk makes calls that both gates allow, with values from the constants and types of the policies,
until the gates disagree about a call or about the end of the session.  The walks depend only on the
policies.  If no walk finds such a session, this proves nothing.
Cost: a decision of both gates for each step, and a call for each step that both allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any, Final

from tcc_certs.errors import Code
from tcc_certs.policy.core import Learned
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.nodes import UNITS
from tcc_certs.values.fields import Field
from tcc_runtime.analysis.mutants import names_in
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact.values import NOW_MS, Maker, Session, SessionCall, json_of, put
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.calls import quiet
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.session_access import Home

STEPS: Final = 4000
_LONGEST: Final = 40  # calls of a session
_STUCK: Final = 12  # refused calls in a row before a walk ends
_VALUES: Final = 12  # values that are tried for each field
_ABSENT: Final = object()


def differing(
    one: Artifact,
    other: Artifact,
    *,
    about: Sequence[object] = (),
    steps: int = STEPS,
    is_over: Callable[[], bool] = lambda: False,
) -> tuple[Session, bool] | None:
    """Return a session whose last call or end exactly one of two policies allows.

    Args:
        one, other: artifacts with the same tools and attributes.
        about: statements whose tools the walks call more often than others.
        steps: the most decisions of all walks together.
        is_over: asked before each walk; true ends the search.

    Returns:
        The session, and whether `one` is the policy that allows it; None: no walk found a session.
    """
    names = {name for part in about for name in names_in(part)}
    walks = _Walks((one, other), names)
    while walks.steps < steps and not is_over():
        found = walks.walk()
        if found is not None:
            return found
    return None


class _Walks:
    """Walks through the gates of two policies.

    Attributes:
        steps: decisions so far.
    """

    def __init__(self, sides: Sequence[Artifact], tools: set[str]) -> None:
        self._sides = sides
        self._tools = tools
        self._random = Random(0)
        self._core = sides[0].core
        self._makers = [Maker(policy_of(side.core)) for side in sides]
        spans = {span for maker in self._makers for span in maker.spans}
        self._spans = [*sorted(spans), UNITS["s"], UNITS["m"], UNITS["h"]]
        self._is_timed = any(maker.is_timed for maker in self._makers)
        self._pools: dict[Field, list[Any]] = {}
        self._now = NOW_MS
        self.steps = 0

    def walk(self) -> tuple[Session, bool] | None:
        """Build one session in both gates, until they disagree or it is long enough.

        Returns:
            The session and whether the first gate allows it, if they disagree; else None.
        """
        declared = [one for one in self._core.given if not isinstance(one, Learned)]
        given = self._object(declared, {})
        self._now = NOW_MS
        calls: list[SessionCall] = []
        known: dict[str, Any] = {}
        stuck = 0
        with quiet(), ExitStack() as stack:
            gates = [stack.enter_context(self._gate(side, given)) for side in self._sides]
            while len(calls) < _LONGEST and stuck < _STUCK:
                self.steps += 1
                call = self._call(gates, known)
                if call is None:
                    return None
                allows = [_allows(gate, call) for gate in gates]
                at_ms = self._now if self._is_timed else None
                if allows[0] != allows[1]:
                    last = SessionCall(tool=call.tool, arguments=call.arguments, at_ms=at_ms)
                    return Session(given=given, calls=(*calls, last)), allows[0]
                if not allows[0]:
                    stuck += 1
                    continue
                stuck = 0
                call = self._with_outcome(call, known, at_ms)
                calls.append(call)
                for gate in gates:
                    _make(gate, call)
                ends = [gate.may_finish for gate in gates]
                if ends[0] != ends[1]:
                    return Session(given=given, calls=tuple(calls), ends=True), ends[0]
        return None

    def _gate(self, side: Artifact, given: Any) -> Gate:
        home = Home(recorded=False)
        return Gate(side, durable=False, given=given, clock=lambda: self._now, home=home)

    def _pass_time(self) -> None:
        span = self._random.choice(self._spans) + self._random.choice((-1, 0, 0, 1))
        self._now += max(0, span)

    def _call(self, gates: Sequence[Gate], known: dict[str, Any]) -> SessionCall | None:
        """Return a call that the plans of a gate allow, with all its arguments; None if no call is
        allowed.
        """
        if self._random.random() < 0.25:
            self._pass_time()
        offers = gates[self._random.randrange(2)].allowed()
        if not offers:
            return None
        likely = [offer for offer in offers if offer.tool in self._tools]
        chosen = self._random.choice(likely if likely and self._random.random() < 0.5 else offers)
        declared = self._core.tool_of[chosen.tool].arguments
        found = self._object([one for one in declared if one.type is not None], known)
        return SessionCall(tool=chosen.tool, arguments={**found, **chosen.arguments})

    def _object(self, declared: Sequence[Field], known: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for one in sorted(declared, key=lambda field: (len(field.steps), "*" not in field.steps)):
            made = self._put(made, one, known)
        return made

    def _put(self, into: dict[str, Any], one: Field, known: dict[str, Any]) -> dict[str, Any]:
        value = self._value(one, known)
        if value is _ABSENT:
            return into
        if one.steps == (one.name,):
            known[one.name] = value
        made = put(into, one.steps, value)
        return made if isinstance(made, dict) else into

    def _value(self, one: Field, known: dict[str, Any]) -> Any:
        """Return a value of a field: a value that the session has used, or a candidate."""
        if one.optional and self._random.random() < 0.3:
            return _ABSENT
        pool = self._pools.get(one)
        if pool is None:
            states = [s for maker in self._makers for turn in (0, 1)
                      for s in maker.candidates(one, (), turn)]  # fmt: skip
            states = list(dict.fromkeys(states))[:_VALUES]
            pool = self._pools[one] = [json_of(state, one.type, one.values) for state in states]
        if not pool:
            return _ABSENT
        if one.name in known and self._random.random() < 0.6:
            return known[one.name]
        alike = [value for value in known.values() if type(value) is type(pool[0])]
        if alike and self._random.random() < 0.4:
            return self._random.choice(alike)
        return pool[min(int(self._random.expovariate(0.5)), len(pool) - 1)]

    def _with_outcome(
        self, call: SessionCall, known: dict[str, Any], at_ms: int | None
    ) -> SessionCall:
        """Return the call with a random outcome, and an answer if it is done."""
        outcome = self._random.choice(("done",) * 8 + ("unknown", "failed"))
        answers = self._core.tool_of[call.tool].answers
        answer = self._object(answers, known) if answers and outcome == "done" else None
        return replace(call, outcome=outcome, answer=answer, at_ms=at_ms)


def _allows(gate: Gate, call: SessionCall) -> bool:
    """Return whether a gate allows a call, possibly after an approval."""
    found = gate.check(call.tool, call.arguments)
    return found.allowed or found.code == Code.PENDING.value


def _make(gate: Gate, call: SessionCall) -> None:
    """Make a call, approving the questions about it."""
    try:
        with gate.call(call.tool, call.arguments) as permit:
            if call.outcome == "done":
                permit.done(call.answer)
            elif call.outcome == "failed":
                permit.failed()
            else:
                permit.unknown()
    except Pending as question:
        gate.approve(question.id, who="walk")
        _make(gate, call)
