"""From the trees of plans, rules, states and examples to the plan side of the core.

Calls, patterns and recursion are those of :mod:`tcc_compiler.resolve`.
Cost: linear in the trees and the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from tcc_certs.policy import nodes as n
from tcc_certs.policy.expressions import read_expression
from tcc_certs.policy.plans import PASSABLE, Call, CallSet, Empty, Expr, OneCall, Seq
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import quote, some, suggest
from tcc_compiler.language.source import Region, Span
from tcc_compiler.language.values import REST, parse_decimal
from tcc_compiler.names.expressions import (
    call_sets,
    check_expression,
    check_left_recursion,
    expression_json,
    reached_rules,
)
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.tools import DeclaredTool, values_of, word_of
from tcc_compiler.resolve import calls
from tcc_compiler.resolve.program import Program
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Token, Tree

_MOST_STEPS = 1 << 12  # that a `let` in a plan stands for


@frozen
class Example:
    """``accept`` or ``reject``.

    Attributes:
        patterns: the call sets that `plans` and `rules` name by number.
        rules: the rules that `plans` reaches.
        spans: of a plain sequence of calls the span of each; else empty.
    """

    accept: bool
    plans: Expr
    patterns: tuple[CallSet, ...]
    rules: Mapping[str, Expr]
    span: Span
    spans: tuple[Span, ...] = ()

    @property
    def steps(self) -> tuple[int, ...] | None:
        """The patterns of a plain sequence of calls; None for any other expression."""
        match self.plans:
            case Empty():
                return ()
            case OneCall(pattern):
                return (pattern,)
            case Seq(items):
                steps = [item.pattern for item in items if isinstance(item, OneCall)]
                return tuple(steps) if len(steps) == len(items) else None
        return None


@frozen
class PlanSide:
    """The plan side of a core."""

    calls: tuple[Call, ...]
    patterns: tuple[CallSet, ...]
    rules: Mapping[str, Expr]
    plan: Expr
    start: str | None
    goals: tuple[str, ...]
    passed: tuple[str, ...]
    examples: tuple[Example, ...]


@frozen
class Trees:
    """The trees of the plan side; each statement is there once, apart from rules and examples."""

    plan: Tree | None
    rules: Mapping[str, Tree]
    start: Tree | None
    goal: Tree | None
    passes: Sequence[Tree]
    examples: Sequence[Tree]


def plan_side(
    b: Builder,
    trees: Trees,
    tools: Mapping[str, DeclaredTool | None],
    lets: Mapping[str, n.Definition],
    complete: bool,
) -> PlanSide | None:
    """The plan side, None after a mistake.

    Args:
        tools: by name; None after a mistake in one.
        complete: whether every tool is known.
    """
    before = b.failed
    reader = _Plans(b, tools, trees.rules, lets)
    rules = {
        name: ast.RuleStatement(
            word_of(b, tree.tokens("NAME")[0], name), reader.plans(tree.trees()[-1]), b.region(tree)
        )
        for name, tree in trees.rules.items()
    }
    plan = None
    if trees.plan is not None:
        body = reader.plans(trees.plan.trees()[-1])
        plan = ast.PlanStatement(body, b.region(trees.plan))
    examples = [(tree, reader.plans(tree.trees()[-1])) for tree in trees.examples]
    resolved = {name: None if tool is None else tool.resolved for name, tool in tools.items()}
    program = _program(resolved, rules, plan, complete)
    scope = calls.Scope(program=program, tools=resolved, report=b.report)
    bodies = [rule.body for rule in rules.values()]
    bodies += [plan.body] if plan else []
    bodies += [body for _, body in examples]
    for body in bodies:
        check_expression(body, scope)
    check_left_recursion(program, b.report)
    _check_states(b, trees, tools)
    passed = _passed(b, trees.passes)
    sound = {name: tool for name, tool in resolved.items() if tool is not None}
    if b.failed > before or b.report.failed or len(sound) < len(resolved) or not sound:
        return None
    try:
        return _made(
            b, trees, program, scope, examples, calls.call_list_of(sound, b.report), passed
        )
    except calls.TooManyMembers:
        at = trees.plan or next(iter(trees.rules.values()), None)
        message = "the patterns of this grammar stand for too many calls in all"
        region = b.region(at) if at is not None else Region(0, 0, 0)
        b.report.error("TCC314", region, message, "use fewer different patterns or values")
        return None


def _program(
    tools: Mapping[str, object],
    rules: Mapping[str, ast.RuleStatement],
    plan: ast.PlanStatement | None,
    complete: bool,
) -> Program:
    return Program(
        grammar=None, currency=None, tools={}, rules=rules, plan=plan, start=None, goal=None,
        limits=(), requires=(), forbids=(), examples=(), expects=(), exacts=(), policies=(),
        monitors=(), givens=(), lets=(), passes=(), broken=frozenset(), gaps=frozenset(),
        incomplete=not complete,
    )  # fmt: skip


def _made(
    b: Builder,
    trees: Trees,
    program: Program,
    scope: calls.Scope,
    examples: Sequence[tuple[Tree, ast.Expression]],
    call_list: calls.CallList,
    passed: tuple[str, ...],
) -> PlanSide:
    planned = [] if program.plan is None else [program.plan.body]
    reached = reached_rules(planned, program)
    bodies = [*(program.rules[name].body for name in reached), *planned]
    used = {call_list.every} if program.plan is None else set()
    for body in bodies:
        used.update(call_sets(body, scope, call_list))
    patterns, expression = _numbered(used, scope, call_list)
    # Without a plan and rules there is one pattern, that of all calls.
    every = read_expression(["repeat", ["call", 0], 0], "plan", 1)
    numbers = {name: at for at, name in enumerate(call_list.tools)}
    return PlanSide(
        calls=tuple([_call(one, numbers[one.tool]) for one in call_list.calls]),
        patterns=patterns,
        rules={name: expression(program.rules[name].body) for name in reached},
        plan=every if program.plan is None else expression(program.plan.body),
        start=None if trees.start is None else trees.start.tokens("NAME")[0].text,
        goals=tuple(sorted(_states(trees.goal))),
        passed=passed,
        examples=tuple([_example(b, tree, body, scope, call_list) for tree, body in examples]),
    )


def _call(one: calls.ResolvedCall, tool: int) -> Call:
    cost_low, cost_high, price, latency, epsilon = one.amounts
    return Call(
        text=one.text, tool=tool, values=one.values, cost_low=cost_low, cost_high=cost_high,
        price=price, latency=latency, epsilon=epsilon,
    )  # fmt: skip


def _numbered(
    used: set[CallSet], scope: calls.Scope, call_list: calls.CallList
) -> tuple[tuple[CallSet, ...], Callable[[ast.Expression], Expr]]:
    """The call sets in order, and what reads an expression over them."""
    patterns = tuple(sorted(used))
    numbers = {pattern: at for at, pattern in enumerate(patterns)}

    def expression(body: ast.Expression) -> Expr:
        made = expression_json(body, scope, call_list, numbers)
        return read_expression(made, "plan", len(patterns))

    return patterns, expression


def _example(
    b: Builder,
    tree: Tree,
    body: ast.Expression,
    scope: calls.Scope,
    call_list: calls.CallList,
) -> Example:
    rules = {name: scope.program.rules[name].body for name in reached_rules([body], scope.program)}
    used = set(call_sets(body, scope, call_list))
    for rule in rules.values():
        used.update(call_sets(rule, scope, call_list))
    patterns, expression = _numbered(used, scope, call_list)
    steps = body.items if isinstance(body, ast.Many) and body.kind == "seq" else (body,)
    return Example(
        accept=tree.has("accept"),
        plans=expression(body),
        patterns=patterns,
        rules={name: expression(rule) for name, rule in rules.items()},
        span=b.report.span(b.region(tree)),
        spans=tuple([b.report.span(step.region) for step in steps]),
    )


# Expressions.


class _Plans:
    """Reads expressions of plans."""

    def __init__(
        self,
        b: Builder,
        tools: Mapping[str, DeclaredTool | None],
        rules: Mapping[str, Tree],
        lets: Mapping[str, n.Definition],
    ) -> None:
        self.b = b
        self.tools = tools
        self.rules = rules
        self.lets = lets

    def plans(self, tree: Tree) -> ast.Expression:
        """The expression of a tree."""
        order: list[Tree] = []
        todo = [tree]
        while todo:
            one = todo.pop()
            order.append(one)
            if one.kind in _OPERATORS:
                todo += one.trees()
        made: dict[int, ast.Expression] = {}
        for one in reversed(order):
            self.b.report.tick()
            if one.kind in _OPERATORS:
                parts = [made[id(part)] for part in one.trees()]
                made[id(one)] = _OPERATORS[one.kind](self, one, parts)
            else:
                made[id(one)] = self._call(one)
        return made[id(tree)]

    def many(self, tree: Tree, parts: list[ast.Expression]) -> ast.Expression:
        """``a b``, ``a | b``, ``a & b``; inner ones of the same operator are joined."""
        kind = _MANY[tree.kind]
        items: list[ast.Expression] = []
        for part in parts:
            same = isinstance(part, ast.Many) and part.kind == kind
            items += part.items if same and isinstance(part, ast.Many) else [part]
        return ast.Many(kind, tuple(items), self.b.region(tree), 0)

    def without(self, tree: Tree, parts: list[ast.Expression]) -> ast.Expression:
        """``a - b - c``."""
        base, others = parts[0], tuple(parts[1:])
        if isinstance(base, ast.Minus):
            return ast.Minus(base.base, base.others + others, self.b.region(tree), 0)
        return ast.Minus(base, others, self.b.region(tree), 0)

    def group(self, tree: Tree, parts: list[ast.Expression]) -> ast.Expression:
        """``( .. )``."""
        return parts[0]

    def repeated(self, tree: Tree, parts: list[ast.Expression]) -> ast.Expression:
        """``a?``, ``a*``, ``a+``, ``a{1,3}``."""
        region = self.b.region(tree)
        low: ast.Number
        high: ast.Number | None
        numbers = [self._number(token) for token in tree.tokens("NUMBER")]
        match tree.kind:
            case "maybe":
                low, high = _whole(0, region), _whole(1, region)
            case "any_number":
                low, high = _whole(0, region), None
            case "some_number":
                low, high = _whole(1, region), None
            case _:
                low = numbers[0]
                high = numbers[-1] if len(numbers) > 1 or not tree.has(",") else None
        return ast.Repeated(parts[0], low, high, region, 0)

    def _number(self, token: Token) -> ast.Number:
        return ast.Number(parse_decimal(token.text), self.b.region(token))

    def _call(self, tree: Tree) -> ast.Expression:
        region = self.b.region(tree)
        if tree.kind == "nothing":
            return ast.NoCall(region)
        step = tree if tree.kind == "step" else tree.trees()[0]
        token = step.parts[0]
        name = name_value(token) if isinstance(token, Token) else ""
        found = [self._argument(one, name) for one in tree.trees("argument")]
        arguments = [one for one in found if one is not None]
        if isinstance(token, Token) and token.kind == "NAME" and name == "any" and not arguments:
            return ast.AnyCall(region)
        if name in self.lets:
            others = [
                what
                for what, known in (("a tool", self.tools), ("a rule", self.rules))
                if name in known
            ]
            if others:
                message = f"{quote(name)} is {others[0]} and a `let`"
                self.b.error("TCC234", step, message, "give the `let` another name")
            elif not arguments:
                return self._let(step, name)
        pattern = ast.Pattern(word_of(self.b, step, name), tuple(arguments), region)
        return ast.Reference(pattern, region)

    def _argument(self, tree: Tree, tool: str) -> ast.Argument | None:
        name = tree.trees()[0]
        word = self.b.name(name)
        declared = self.tools.get(tool)
        fields = (*declared.tool.arguments, *declared.tool.answers) if declared else ()
        if any(one.name == word and one.type is not None for one in fields):
            message = f"{quote(word)} of {quote(tool)} has a type, and plans do not distinguish it"
            hint = "list its values in the tool; or write a statement: "
            hint += f"before {tool}({word} = ..) require .."
            self.b.error("TCC216", name, message, hint)
            return None
        values = tree.trees("values")
        if values:
            return ast.Argument(word_of(self.b, name, word), values_of(self.b, values[0]))
        star = tree.tokens("*")[0]
        rest = ast.Value(REST, None, self.b.region(star))
        return ast.Argument(word_of(self.b, name, word), (rest,))

    def _let(self, step: Tree, name: str) -> ast.Expression:
        """The expression of a `let` that is a plain set of calls."""
        region = self.b.region(step)
        left = [_MOST_STEPS]

        def made(node: n.Node, within: frozenset[str]) -> ast.Expression | None:
            left[0] -= 1
            if left[0] < 0 or len(within) > calls.MAX_HEIGHT:
                return None
            match node:
                case n.AnyTool():
                    return ast.AnyCall(region)
                case n.Word(word) if word in self.lets and word not in self.tools:
                    if word in within or self.lets[word].parameters:
                        return None
                    return made(self.lets[word].body, within | {word})
                case n.Word(word) if word in self.tools:
                    pattern = ast.Pattern(word_of(self.b, step, word), (), region)
                    return ast.Reference(pattern, region)
                case n.Union(parts):
                    items = [made(part, within) for part in parts]
                    sound = [one for one in items if one is not None]
                    return None if len(sound) < len(items) else _either(sound, region)
                case n.Minus(one, other):
                    base, less = made(one, within), made(other, within)
                    if base is None or less is None:
                        return None
                    if isinstance(base, ast.Minus):
                        return ast.Minus(base.base, (*base.others, less), region, 0)
                    return ast.Minus(base, (less,), region, 0)
                case _:
                    return None

        let = self.lets[name]
        found = None if let.parameters else made(let.body, frozenset({name}))
        if found is None:
            message = f"the `let` {quote(name)} is no plain set of calls"
            hint = "a plan takes tools, `a | b`, `any - a`, and a `let` of these; use a `rule`"
            self.b.error("TCC203", step, message, hint)
            return ast.NoCall(region)
        return found


def _either(parts: Sequence[ast.Expression], region: Region) -> ast.Expression:
    items: list[ast.Expression] = []
    for part in parts:
        items += part.items if isinstance(part, ast.Many) and part.kind == "alt" else [part]
    return ast.Many("alt", tuple(items), region, 0)


def _whole(value: int, region: Region) -> ast.Number:
    return ast.Number(Fraction(value), region)


_MANY: Mapping[str, Literal["seq", "alt", "and"]] = {
    "sequence": "seq",
    "choice": "alt",
    "both_plans": "and",
}
_OPERATORS: Mapping[str, Callable[[_Plans, Tree, list[ast.Expression]], ast.Expression]] = {
    "sequence": _Plans.many,
    "choice": _Plans.many,
    "both_plans": _Plans.many,
    "without": _Plans.without,
    "group_of_plans": _Plans.group,
    "maybe": _Plans.repeated,
    "any_number": _Plans.repeated,
    "some_number": _Plans.repeated,
    "repeat": _Plans.repeated,
}


# States, and what passes a gate.


def _states(goal: Tree | None) -> list[str]:
    return [] if goal is None else [token.text for token in goal.tokens("NAME")]


def _check_states(b: Builder, trees: Trees, tools: Mapping[str, DeclaredTool | None]) -> None:
    """`start` and `goal` come together, and name states that signatures have."""
    start, goal = trees.start, trees.goal
    for here, there, word in ((start, goal, "goal"), (goal, start, "start")):
        if here is not None and there is None:
            said = "start" if word == "goal" else "goal"
            message = f"there is a `{said}` statement and no `{word}` statement"
            b.error("TCC210", here, message, f"add the state: {word} STATE")
    seen: set[str] = set()
    for token in goal.tokens("NAME") if goal else []:
        if token.text in seen:
            message = f"the goal {quote(token.text)} is named twice"
            b.error("TCC201", token, message, "take one of them away")
        seen.add(token.text)
    if None in tools.values() or (start is None) != (goal is None):
        return
    states = [tool.tool for tool in tools.values() if tool is not None]
    known = sorted({s for tool in states for s in (tool.takes, tool.gives) if s is not None})
    if start is None and goal is None:
        _check_signatures(b, [tool for tool in tools.values() if tool is not None])
        return
    for token in (*(start.tokens("NAME") if start else ()), *(goal.tokens("NAME") if goal else ())):
        if token.text not in known:
            shown = f"the states are {some(known)}" if known else "write: tool a : STATE -> STATE"
            hint = suggest(token.text, known) or shown
            message = f"no tool's signature names the state {quote(token.text)}"
            b.error("TCC209", token, message, hint)


def _check_signatures(b: Builder, tools: Sequence[DeclaredTool]) -> None:
    for declared in tools:
        tool = declared.tool
        if tool.takes is None:
            continue
        message = f"the signature of {quote(tool.name)} has no effect without `start` and `goal`"
        hint = f"add `start {tool.takes}` and `goal {tool.gives}`, or take the signature away"
        b.failed += 1
        b.report.error("TCC215", declared.signature or Region(0, 0, 0), message, hint)


def _passed(b: Builder, passes: Sequence[Tree]) -> tuple[str, ...]:
    """The parts of MCP that pass a gate unread, sorted."""
    found: set[str] = set()
    for token in [token for tree in passes for token in tree.tokens("NAME")]:
        if token.text not in PASSABLE:
            message = f"{quote(token.text)} does not pass a gate"
            b.error("TCC228", token, message, f"what may pass is {some(PASSABLE)}")
        elif token.text in found:
            message = f"{quote(token.text)} passes already"
            b.error("TCC211", token, message, "take one of them away")
        found.add(token.text)
    return tuple(sorted(found))
