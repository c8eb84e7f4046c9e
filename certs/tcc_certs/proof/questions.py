"""Questions about every session, and the arguments that a proof of each needs.

A statement is broken by a call that the policy lets through and the statement does not, or by the
end of the session.  A question has one argument for each tool whose call may break it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy import nodes
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.nodes import Definition, Forbid, Node, Statement
from tcc_certs.policy.reader import read_question
from tcc_certs.proof.ground import VIEW, ground
from tcc_certs.proof.plans import Plans, is_total_of_plans
from tcc_certs.proof.reasons import bounds_of
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import Formula, Scene, opposite
from tcc_certs.session.approvals import term_of
from tcc_certs.values.places import exact_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question that a proof answers.

    Attributes:
        kind: ``statement`` (every session satisfies it), ``implies`` (every session satisfies all
            statements), ``reachable`` (no session has such a call: a `forbid`), ``finishable``
            (every session can be finished).
        statements: none of ``finishable``, any number of ``implies``, else one.
        lets: the `let`s that the statements may name; None: those of the core.
    """

    kind: str
    statements: tuple[Statement, ...]
    lets: tuple[Definition, ...] | None = None

    def rules(self, core: Core) -> list[Rule]:
        """The statements with their words resolved.

        Raises:
            Fault: a statement is wrong in this core.
        """
        lets = core.lets if self.lets is None else self.lets
        kinds = Kinds(replace(core, lets=lets, statements=()))
        kinds.check_lets()
        return [kinds.rule(statement) for statement in self.statements]


def reachable(calls: Node, where: Sequence[Node]) -> Question:
    """The question whether a session can have such a call."""
    return Question(kind="reachable", statements=(Forbid(on=calls, where=tuple(where)),))


def question_json(question: Question) -> dict[str, Json]:
    """The JSON object of a question."""
    found: dict[str, Json] = {"kind": question.kind}
    found["statements"] = [nodes.statement_json(one) for one in question.statements]
    if question.lets is not None:
        found["lets"] = [nodes.definition_json(let) for let in question.lets]
    return found


def question_of(value: Json) -> Question:
    """The question that a JSON object is.

    Raises:
        Rejected: T101.
    """
    kind, statements, lets = read_question(value, "question", Code.PROOF_SCHEMA)
    most = {"implies": len(statements), "finishable": 0}.get(kind, 1)
    ensure(len(statements) == most, Code.PROOF_SCHEMA, "question.statements", most, len(statements))
    reached = kind != "reachable" or isinstance(statements[0], Forbid)
    ensure(reached, Code.PROOF_SCHEMA, "question.statements[0]", "calls", "another statement")
    return Question(kind=kind, statements=statements, lets=lets)


def rules_of(question: Question, core: Core) -> list[Rule]:
    """The rules of a question.

    Raises:
        Rejected: T102 a statement is wrong in this core.
    """
    try:
        return question.rules(core)
    except Fault as fault:
        raise Rejected(Code.PROOF_QUESTION, "question", "a statement of this core", fault) from None


@dataclass(frozen=True, slots=True)
class Part:
    """An argument that a question needs.

    Attributes:
        statement: of the question, from 0.
        tool: of the call that would break it; None: it is the end of the session.
    """

    statement: int
    tool: str | None


class Unsupported(Exception):
    """No argument can be made about a statement: why."""


def parts_of(rules: Sequence[Rule], policy: Policy, plans: Plans) -> list[Part]:
    """The arguments that a question needs, in order.

    A total needs none: the policy has one that is as tight, or limits that bound it, or no path of
    the automaton exceeds it.

    Raises:
        Unsupported: the kernel has no argument about a statement of this form.
    """
    found = []
    scene = Scene(policy, None)
    for number, rule in enumerate(rules):
        tools = scene.ordered(rule.tools or frozenset())
        match rule.kind:
            case "total":
                most = exact_number(rule.total)
                holds = _has_total(rule, policy) or _is_total_of_plans(rule, plans)
                if not holds and all(most < bound for bound in bounds_of(scene, rule.what)):
                    raise Unsupported(f"whether `limit {rule.what}` always holds")
            case "owe":
                found.append(Part(number, None))
                if rule.within is not None:
                    found += [Part(number, name) for name in tools]
            case _ if rule.tools is None:
                found.append(Part(number, None))
            case _:
                found += [Part(number, name) for name in tools]
    return found


def _has_total(rule: Rule, policy: Policy) -> bool:
    """Return whether the policy has a total of the same kind that is as tight."""
    most = exact_number(rule.total)
    return any(
        one.kind == "total" and one.what == rule.what and exact_number(one.total) <= most
        for one in policy.rules
    )


def _is_total_of_plans(rule: Rule, plans: Plans) -> bool:
    try:
        return is_total_of_plans(plans.get(), rule.what, rule.total)
    except Wrong:
        return False


def stricter(policy: Policy, rule: Rule, tool: str | None) -> list[int]:
    """The numbers of the policy's `ask`s that ask the same role for calls of a tool.

    Their approvals are as fresh as those of `rule`, or fresher.
    """
    return [
        number
        for number, one in enumerate(policy.rules)
        if one.kind == "ask"
        and one.who == rule.who
        and tool in (one.tools or ())
        and term_of(one) <= term_of(rule)
    ]


def begun(policy: Policy, rule: Rule, kind: str, tool: str | None) -> tuple[Scene, list[Formula]]:
    """Return the scene in which a call breaks a statement, and the formulas that hold there."""
    scene = Scene(policy, rule)
    call = scene.enter(tool)
    this = ("call", call)
    levels: Mapping[int, Any] = {0: this, VIEW: this}
    if kind == "reachable":
        return scene, [scene.where(-1, call, False, True)]
    if rule.kind == "owe" and tool is None:
        return scene, [opposite(scene.lit("settled", -1, this))]
    if rule.kind == "ask":
        # No `ask` of the policy that is at least as strict asks for this call.
        asked = [scene.where(number, call, True, False) for number in stricter(policy, rule, tool)]
        return scene, [opposite(scene.where(-1, call, True, False)), *asked]
    if tool is None:
        return scene, [opposite(scene.truth(ground(rule.then, levels), False, True))]
    return scene, [opposite(scene.allows(-1, call))]


__all__ = ["Question", "begun", "parts_of", "question_json", "question_of", "rules_of"]
