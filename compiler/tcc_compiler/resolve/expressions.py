"""Expressions: their names and counts checked, their patterns resolved, their core JSON.

Normative text: docs/spec/language.md, section 8; docs/spec/core.md, section 3.  Cost: linear in
the trees; no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tcc_certs.core.model import CallSet
from tcc_certs.formats.codec import Json
from tcc_compiler.language.ast.expressions import (
    AnyCall,
    Expression,
    Many,
    Minus,
    NoCall,
    Reference,
    Repeated,
    operands,
    postorder,
)
from tcc_compiler.language.ast.leaves import Number
from tcc_compiler.language.ast.statements import PlanStatement
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.resolve.calls import CallList
from tcc_compiler.resolve.patterns import Scope
from tcc_compiler.resolve.program import Program

MAX_REPEAT = 10_000


def check_expression(expression: Expression, scope: Scope) -> None:
    """Report undefined names, wrong patterns and wrong repetitions."""
    for node in postorder(expression):
        scope.report.tick()
        if isinstance(node, Reference):
            scope.check(node)
        elif isinstance(node, Repeated):
            _check_repeat(node, scope.report)
        if scope.report.full:
            return


def _check_repeat(node: Repeated, report: Report) -> None:
    for count in (node.low, node.high):
        if count is not None and not _is_count(count):
            message = f"a repetition counts with whole numbers from 0 to {MAX_REPEAT}"
            report.error("TCC311", count.region, message, "write {3}, {1,3} or {1,}")
            return
    if node.high is not None and node.low.value > node.high.value:
        message = "this repetition asks for more at least than at most"
        region = node.low.region.to(node.high.region)
        report.error("TCC311", region, message, "write the smaller number first")


def _is_count(number: Number) -> bool:
    return number.value.denominator == 1 and number.value <= MAX_REPEAT


def reached_rules(program: Program) -> list[str]:
    """The names of the rules that the plan reaches, in increasing order."""
    if program.plan is None:
        return []
    reached: set[str] = set()
    todo: list[Expression] = [program.plan.body]
    while todo:
        for node in postorder(todo.pop()):
            if isinstance(node, Reference):
                name = node.pattern.name.text
                if name in program.rules and name not in reached:
                    reached.add(name)
                    todo.append(program.rules[name].body)
    return sorted(reached)


def call_sets(expression: Expression, scope: Scope, call_list: CallList) -> Iterator[CallSet]:
    """The call sets of the patterns in an expression.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    for node in postorder(expression):
        scope.report.tick()
        if isinstance(node, AnyCall):
            yield call_list.every
        elif isinstance(node, Reference) and not scope.is_rule(node):
            selection = scope.selection(node.pattern)
            if selection is not None:
                yield call_list.calls_of(selection)


def expression_json(
    expression: Expression, scope: Scope, call_list: CallList, numbers: Mapping[CallSet, int]
) -> Json:
    """The expression as the core writes it; `numbers` gives each call set its pattern's number."""

    def call(call_set: CallSet) -> Json:
        return ["call", numbers[call_set]]

    done: list[Json] = []
    for node in postorder(expression):
        scope.report.tick()
        first = len(done) - len(operands(node))
        done[first:] = [_node(node, done[first:], scope, call_list, call)]
    return done[0]


def _node(
    node: Expression,
    parts: list[Json],
    scope: Scope,
    call_list: CallList,
    call: Callable[[CallSet], Json],
) -> Json:
    match node:
        case NoCall():
            return ["empty"]
        case AnyCall():
            return call(call_list.every)
        case Reference():
            selection = None if scope.is_rule(node) else scope.selection(node.pattern)
            if selection is None:
                return ["rule", node.pattern.name.text]
            return call(call_list.calls_of(selection))
        case Many():
            return [node.kind, parts]
        case Minus():
            return ["diff", parts[0], parts[1:]]
        case Repeated():
            low = int(node.low.value)
            bounds = [low] if node.high is None else [low, int(node.high.value)]
            return ["repeat", parts[0], *bounds]


def plan_json(
    plan: PlanStatement | None,
    scope: Scope,
    call_list: CallList,
    numbers: Mapping[CallSet, int],
) -> Json:
    """The plan; without a statement it is ``any*``."""
    if plan is None:
        return ["repeat", ["call", numbers[call_list.every]], 0]
    return expression_json(plan.body, scope, call_list, numbers)
