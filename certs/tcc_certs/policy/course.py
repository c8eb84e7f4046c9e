"""A session by the definition: calls are decided, and their outcomes recorded.

This is the meaning of a session in its simplest form, for validators and tests.  Times and the
order of records are checked by :mod:`tcc_certs.session`.
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
    """The states of all arguments of a call.

    Raises:
        Rejected: R102 an argument is not declared, R103 one is missing, R104 it is not listed, R105
            it is of another type or has an undeclared member, R106 it is no JSON value.
    """
    return _states(tool.arguments, arguments)


def answer_states(tool: Tool, answer: object) -> dict[str, State]:
    """The states of all answers of a call that is done; UNKNOWN where the type is another."""
    return {one.name: places.answered(answer, one) for one in tool.answers}


def given_states(core: Core, given: Mapping[str, Any]) -> dict[str, State]:
    """The states of the attributes that a session starts with.

    Raises:
        Rejected: as :func:`argument_states`.
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
    """A session that is decided by the definition.

    Args:
        given: the attributes that the session starts with, as JSON values.
        indexed: whether calls are looked up by their keys, or scanned.
        account: the draws of all sessions on limits across sessions; sessions share it.
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
        """The statements that do not let a call through."""
        call = self._call(tool, arguments, at_ms)
        return self.policy.refusals(self.history, call, at_ms)

    def call(self, tool: str, arguments: Mapping[str, Any], at_ms: int = 0) -> Call:
        """Add a call, whether or not it is allowed."""
        call = self._call(tool, arguments, at_ms)
        self.history.add(call, self.policy.draws(self.history, call, at_ms))
        return call

    def record(self, call: Call, outcome: str, answer: object = None) -> None:
        """Record the outcome of a call, with its answer where it is DONE."""
        tool = self.policy.core.tool_of[call.tool]
        states = answer_states(tool, answer) if outcome == DONE else {}
        self.history.record(call, outcome, states)

    def unmet(self, now_ms: int = 0) -> list[int]:
        """The numbers of the statements that keep the session from finishing."""
        return self.policy.unmet(self.history, now_ms)

    def _call(self, tool: str, arguments: Mapping[str, Any], at_ms: int) -> Call:
        states = argument_states(self.policy.core.tool_of[tool], arguments)
        return Call(tool, len(self.history.calls), at_ms, states)
