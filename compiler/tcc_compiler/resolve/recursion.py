"""Left recursion: rules that are reached from themselves before a call is made.

Normative text: docs/spec/language.md, section 8; docs/spec/core.md, section 3.  Each rule is
evaluated once for whether it can be empty; what that evaluation looks at is exactly what can be
reached without a call, so a rule met while it is being evaluated is left-recursive.  No recursion
in here; cost: linear in the expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcc_compiler.language.ast.expressions import (
    Expression,
    Many,
    Minus,
    NoCall,
    Reference,
    Repeated,
    operands,
)
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.resolve.program import Program


@dataclass(slots=True)
class _Visit:
    """A node whose operands are being evaluated; `rule` names the rule whose body it is."""

    node: Expression
    rule: str | None
    answers: list[bool] = field(default_factory=list)


def check_left_recursion(program: Program, report: Report) -> None:
    """Report each cycle of rules that consumes no call, with the rules on it."""
    nullable: dict[str, bool] = {}
    for name in program.rules:
        if name not in nullable:
            _evaluate(name, program, nullable, report)


def _evaluate(name: str, program: Program, nullable: dict[str, bool], report: Report) -> None:
    """Fill in `nullable` for a rule and all that it can reach before a call."""
    path = {name: None}
    stack = [_Visit(program.rules[name].body, name)]
    while stack:
        report.tick()
        visit = stack[-1]
        child = _next(visit)
        if child is None:
            answer = _empty(visit)
            stack.pop()
            if visit.rule is not None:
                nullable[visit.rule] = answer
                del path[visit.rule]
            if stack:
                stack[-1].answers.append(answer)
            continue
        rule = _rule_of(child, program)
        if rule is None:
            stack.append(_Visit(child, None))
        elif rule in nullable:
            visit.answers.append(nullable[rule])
        elif rule in path:
            if not report.full:
                _report(list(path), rule, program, report)
            visit.answers.append(False)
        else:
            path[rule] = None
            stack.append(_Visit(program.rules[rule].body, rule))


def _rule_of(node: Expression, program: Program) -> str | None:
    if isinstance(node, Reference) and node.pattern.name.text in program.rules:
        name = node.pattern.name.text
        return None if node.pattern.arguments or name in program.tools else name
    return None


def _next(visit: _Visit) -> Expression | None:
    """The next operand to evaluate; a sequence is not evaluated past one that cannot be empty.

    A rule whose body is a bare name of a rule has that name as its one operand.
    """
    node, answers = visit.node, visit.answers
    if isinstance(node, Reference):
        return node if visit.rule is not None and not answers else None
    parts = operands(node)
    done = len(answers) == len(parts)
    if done or (isinstance(node, Many) and node.kind == "seq" and answers and not answers[-1]):
        return None
    return parts[len(answers)]


def _empty(visit: _Visit) -> bool:
    """Whether a node can be the empty sequence, its operands' answers known."""
    node, answers = visit.node, visit.answers
    match node:
        case NoCall():
            return True
        case Many(kind="alt"):
            return any(answers)
        case Many():
            return all(answers)
        case Minus():
            return answers[0] and not any(answers[1:])
        case Repeated():
            return answers[0] or node.low.value == 0
        case _:
            return bool(answers) and answers[0]


def _report(path: Sequence[str], rule: str, program: Program, report: Report) -> None:
    cycle = path[path.index(rule) :]
    shown = [*cycle, rule] if len(cycle) <= 12 else [*cycle[:10], "...", cycle[-1], rule]
    notes = [(f"by way of {quote(name)}", program.rules[name].name.region) for name in cycle[1:6]]
    report.error(
        "TCC207",
        program.rules[rule].name.region,
        f"rule {quote(rule)} is reached from itself before a call is made: {' -> '.join(shown)}",
        "let a call come first, or write a repetition ('+', '*')",
        notes,
    )
