"""A session by the definition: decide calls and record their outcomes.

This is the simplest implementation of a session, for validators and tests.
:mod:`tcc_certs.session` checks times and the order of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.policy.core import Core, Learned, Tool
from tcc_certs.policy.history import DONE, Call, DictHistory, Draw, ListHistory
from tcc_certs.policy.meaning import Policy, Refusal
from tcc_certs.values import places
from tcc_certs.values.fields import Field
from tcc_certs.values.members import declared_in, is_declared
from tcc_certs.values.places import State


def argument_states(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, State]:
    """Return the states of all declared arguments of a call.

    Raises:
        Rejected: R102 an argument is not declared.  R103 an argument is missing.  R104 a value is
            not listed.  R105 a value has another type or an undeclared member.  R106 a value is not
            JSON.
    """
    return _states(tool.arguments, arguments)


def answer_states(tool: Tool, answer: object) -> dict[str, State]:
    """Return the states of all answers of a done call; UNKNOWN for a value of another type."""
    return {one.name: places.answered(answer, one) for one in tool.answers}


def given_states(core: Core, given: Mapping[str, Any]) -> dict[str, State]:
    """Return the states of the attributes that a session starts with.

    Raises:
        Rejected: with the codes of :func:`argument_states`.
    """
    return _states([one for one in core.given if not isinstance(one, Learned)], given)


def _states(declared: Sequence[Field], values: Mapping[str, Any]) -> dict[str, State]:
    members = {one.name for one in declared if one.steps == (one.name,)}
    for name in values:
        ensure(name in members, Code.UNDECLARED_ARGUMENT, name, "a declared name", "another")
    inside = declared_in(declared)
    found = {}
    for one in declared:
        try:
            found[one.name] = places.read(values, one)
        except places.Missing:
            raise Rejected(Code.MISSING_ARGUMENT, one.name, "a value", "none") from None
        except places.Wrong as wrong:
            raise Rejected(wrong.code, one.name, "a value of its type", "another") from None
        if one.name in inside and one.name in values:
            whole = is_declared(values[one.name], inside[one.name])
            ensure(whole, Code.OPEN_VALUE, one.name, "declared members alone", "others")
    return found


class Course:
    """A session whose calls are decided by the definition.

    Args:
        given: the attributes that the session starts with, as JSON values.
        indexed: True looks calls up by their keys, False scans all calls.
        account: the draws of all sessions on limits across sessions; sessions share this object.
    """

    def __init__(
        self,
        policy: Policy,
        given: Mapping[str, Any] | None = None,
        *,
        indexed: bool = True,
        account: dict[int, list[Draw]] | None = None,
    ) -> None:
        self.policy = policy
        states = given_states(policy.core, given or {})
        history = DictHistory if indexed else ListHistory
        self.history: ListHistory = history(policy.core, states, account)

    def check(self, tool: str, arguments: Mapping[str, Any], at_ms: int = 0) -> list[Refusal]:
        """Return the statements that refuse a call; the call is not added."""
        call = self._call(tool, arguments, at_ms)
        return self.policy.refusals(self.history, call, at_ms)

    def call(self, tool: str, arguments: Mapping[str, Any], at_ms: int = 0) -> Call:
        """Add a call, even if a statement refuses it."""
        call = self._call(tool, arguments, at_ms)
        self.history.add(call, self.policy.draws(self.history, call, at_ms))
        return call

    def record(self, call: Call, outcome: str, answer: object = None) -> None:
        """Record the outcome of a call, with its answer if the outcome is DONE."""
        tool = self.policy.core.tool_of[call.tool]
        states = answer_states(tool, answer) if outcome == DONE else {}
        self.history.record(call, outcome, states)

    def unmet(self, now_ms: int = 0) -> list[int]:
        """Return the numbers of the statements that keep the session from finishing."""
        return self.policy.unmet(self.history, now_ms)

    def _call(self, tool: str, arguments: Mapping[str, Any], at_ms: int) -> Call:
        states = argument_states(self.policy.core.tool_of[tool], arguments)
        return Call(tool, len(self.history.calls), at_ms, states)
