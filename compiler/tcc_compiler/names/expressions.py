"""Plan expressions: names and counts are checked, patterns resolved, left recursion is reported.

Nothing here recurses.  A cycle of rules is looked for together with what may be empty, which is
known as the walk goes.
Cost: linear in the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tcc_certs.formats.codec import Json
from tcc_certs.policy.plans import CallSet
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.resolve import calls
from tcc_compiler.resolve.program import Program

MAX_REPEAT = 10_000


def check_expression(expression: ast.Expression, scope: calls.Scope) -> None:
    """Report undefined names, wrong patterns and wrong repetitions."""
    for node in ast.postorder(expression):
        scope.report.tick()
        if isinstance(node, ast.Reference):
            scope.check(node)
        elif isinstance(node, ast.Repeated):
            _check_repeat(node, scope.report)
        if scope.report.full:
            return


def _check_repeat(node: ast.Repeated, report: Report) -> None:
    for count in (node.low, node.high):
        if count is not None and not _is_count(count):
            message = f"a repetition counts with whole numbers from 0 to {MAX_REPEAT}"
            report.error("TCC311", count.region, message, "write {3}, {1,3} or {1,}")
            return
    if node.high is not None and node.low.value > node.high.value:
        message = "this repetition asks for more at least than at most"
        region = node.low.region.to(node.high.region)
        report.error("TCC311", region, message, "write the smaller number first")


def _is_count(number: ast.Number) -> bool:
    return number.value.denominator == 1 and number.value <= MAX_REPEAT


def reached_rules(bodies: Sequence[ast.Expression], program: Program) -> list[str]:
    """The names of the rules that expressions reach, in increasing order."""
    reached: set[str] = set()
    todo = list(bodies)
    while todo:
        for node in ast.postorder(todo.pop()):
            if isinstance(node, ast.Reference):
                name = node.pattern.name.text
                if name in program.rules and name not in reached:
                    reached.add(name)
                    todo.append(program.rules[name].body)
    return sorted(reached)


def call_sets(
    expression: ast.Expression, scope: calls.Scope, call_list: calls.CallList
) -> Iterator[CallSet]:
    """The call sets of the patterns in an expression.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    for node in ast.postorder(expression):
        scope.report.tick()
        if isinstance(node, ast.AnyCall):
            yield call_list.every
        elif isinstance(node, ast.Reference) and not scope.is_rule(node):
            selection = scope.selection(node.pattern)
            if selection is not None:
                yield call_list.calls_of(selection)


def expression_json(
    expression: ast.Expression,
    scope: calls.Scope,
    call_list: calls.CallList,
    numbers: Mapping[CallSet, int],
) -> Json:
    """The expression as the core writes it; `numbers` gives each call set its pattern's number."""

    def call(call_set: CallSet) -> Json:
        return ["call", numbers[call_set]]

    done: list[Json] = []
    for node in ast.postorder(expression):
        scope.report.tick()
        first = len(done) - len(ast.operands(node))
        done[first:] = [_node(node, done[first:], scope, call_list, call)]
    return done[0]


def _node(
    node: ast.Expression,
    parts: list[Json],
    scope: calls.Scope,
    call_list: calls.CallList,
    call: Callable[[CallSet], Json],
) -> Json:
    match node:
        case ast.NoCall():
            return ["empty"]
        case ast.AnyCall():
            return call(call_list.every)
        case ast.Reference():
            selection = None if scope.is_rule(node) else scope.selection(node.pattern)
            if selection is None:
                return ["rule", node.pattern.name.text]
            return call(call_list.calls_of(selection))
        case ast.Many():
            return [node.kind, parts]
        case ast.Minus():
            return ["diff", parts[0], parts[1:]]
        case ast.Repeated():
            low = int(node.low.value)
            bounds = [low] if node.high is None else [low, int(node.high.value)]
            return ["repeat", parts[0], *bounds]


# Left recursion: rules that are reached from themselves before a call is made.  Each rule is
# evaluated once for whether it can be empty; what that evaluation looks at is exactly what can be
# reached without a call, so a rule met while it is being evaluated is left-recursive.


@dataclass(slots=True)
class _Visit:
    """A node whose operands are being evaluated; `rule` names the rule whose body it is."""

    node: ast.Expression
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


def _rule_of(node: ast.Expression, program: Program) -> str | None:
    if isinstance(node, ast.Reference) and node.pattern.name.text in program.rules:
        name = node.pattern.name.text
        return None if node.pattern.arguments or name in program.tools else name
    return None


def _next(visit: _Visit) -> ast.Expression | None:
    """The next operand to evaluate; a sequence is not evaluated past one that cannot be empty.

    A rule whose body is a bare name of a rule has that name as its one operand.
    """
    node, answers = visit.node, visit.answers
    if isinstance(node, ast.Reference):
        return node if visit.rule is not None and not answers else None
    parts = ast.operands(node)
    done = len(answers) == len(parts)
    if done or (isinstance(node, ast.Many) and node.kind == "seq" and answers and not answers[-1]):
        return None
    return parts[len(answers)]


def _empty(visit: _Visit) -> bool:
    """Whether a node can be the empty sequence, its operands' answers known."""
    node, answers = visit.node, visit.answers
    match node:
        case ast.NoCall():
            return True
        case ast.Many(kind="alt"):
            return any(answers)
        case ast.Many():
            return all(answers)
        case ast.Minus():
            return answers[0] and not any(answers[1:])
        case ast.Repeated():
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
