"""Expression trees of the core: their reader, walks over them, and a check for left recursion.

Normative text: docs/spec/core.md, section 5.  Trees may be as deep as JSON allows, and chains of
rules have any length, so no function here recurses.  Cost: linear in the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import as_list, as_name, as_whole
from tcc_certs.limits import MAX_SAFE_INTEGER
from tcc_certs.policy.plans import Alt, Both, Diff, Empty, Expr, OneCall, Repeat, RuleRef, Seq

_SCHEMA = Code.CORE_SCHEMA
_MANY: Mapping[str, type[Seq] | type[Alt] | type[Both]] = {"seq": Seq, "alt": Alt, "and": Both}
_SIZES = {"empty": (1,), "call": (2,), "rule": (2,), "seq": (2,), "alt": (2,), "and": (2,),
          "diff": (3,), "repeat": (3, 4)}  # fmt: skip
_Visit: TypeAlias = "Generator[Expr, bool, bool]"
_T = TypeVar("_T")


def read_expression(value: Json, path: str, patterns: int) -> Expr:
    """Return the tree of a JSON value.

    Args:
        patterns: the number of patterns of the core; indices of patterns are below it.

    Raises:
        Rejected: C801 at `path`.
    """
    done: list[Expr] = []
    todo: list[tuple[Json, int]] = [(value, -1)]
    while todo:
        item, count = todo.pop()
        if count < 0:
            inner = _members(item, path)
            todo.append((item, len(inner)))
            todo.extend((member, -1) for member in reversed(inner))
        else:
            first = len(done) - count
            done[first:] = [_build(item, tuple(done[first:]), path, patterns)]
    return done[0]


def _members(value: Json, path: str) -> Sequence[Json]:
    """Return the members of an expression that are expressions."""
    item = as_list(value, path, _SCHEMA, 1)
    kind = item[0]
    if not isinstance(kind, str) or kind not in _SIZES or len(item) not in _SIZES[kind]:
        raise Rejected(_SCHEMA, path, "an expression", item)
    if kind in _MANY:
        members = as_list(item[1], path, _SCHEMA, 2)
        nested = any(_kind(member) == kind for member in members)
        ensure(not nested, _SCHEMA, path, f"no {kind} directly in a {kind}", f"a nested {kind}")
        return members
    if kind == "diff":
        ensure(_kind(item[1]) != "diff", _SCHEMA, path, "a base that is no diff", "a diff")
        return [item[1], *as_list(item[2], path, _SCHEMA, 1)]
    return [item[1]] if kind == "repeat" else []


def _kind(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else ""


def _build(value: Json, inner: tuple[Expr, ...], path: str, patterns: int) -> Expr:
    item = as_list(value, path, _SCHEMA)
    match item[0]:
        case "empty":
            return Empty()
        case "call":
            return OneCall(as_whole(item[1], path, _SCHEMA, patterns))
        case "rule":
            return RuleRef(as_name(item[1], path, _SCHEMA))
        case "diff":
            return Diff(inner[0], inner[1:])
        case "repeat":
            low = as_whole(item[2], path, _SCHEMA, MAX_SAFE_INTEGER + 1)
            if len(item) == 3:
                return Repeat(inner[0], low, None)
            high = as_whole(item[3], path, _SCHEMA, MAX_SAFE_INTEGER + 1)
            ensure(low <= high, _SCHEMA, path, "a least count up to the greatest", item[2:])
            return Repeat(inner[0], low, high)
        case kind:
            return _MANY[str(kind)](inner)


def parts(expression: Expr) -> Sequence[Expr]:
    """Return the expressions directly inside an expression, in order."""
    match expression:
        case Seq(items) | Alt(items) | Both(items):
            return items
        case Diff(base, minus):
            return (base, *minus)
        case Repeat(body):
            return (body,)
        case _:
            return ()


def walk(expression: Expr) -> Iterator[Expr]:
    """Yield the expression and all expressions inside it."""
    todo: list[Expr] = [expression]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(parts(node))


def fold(expression: Expr, made: Callable[[Expr, tuple[_T, ...]], _T]) -> _T:
    """Return `made(expression, values)`, where `values` are the results of `fold` for the parts."""
    done: list[_T] = []
    todo: list[tuple[Expr, int]] = [(expression, -1)]
    while todo:
        node, count = todo.pop()
        if count < 0:
            inner = parts(node)
            todo.append((node, len(inner)))
            todo.extend([(part, -1) for part in reversed(inner)])
        else:
            first = len(done) - count
            done[first:] = [made(node, tuple(done[first:]))]
    return done[0]


def with_parts(expression: Expr, inner: tuple[Expr, ...]) -> Expr:
    """Return an expression of the same form with other parts, as many as it has."""
    match expression:
        case Seq() | Alt() | Both():
            return type(expression)(inner)
        case Diff():
            return Diff(inner[0], inner[1:])
        case Repeat():
            return Repeat(inner[0], expression.low, expression.high)
        case _:
            return expression


def check_rules(plan: Expr, rules: Mapping[str, Expr]) -> None:
    """Refuse a missing rule, an unreached rule and left recursion.

    Raises:
        Rejected: C801.
    """
    reached: set[str] = set()
    todo = [plan]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, RuleRef) and node.name not in reached:
                ensure(node.name in rules, _SCHEMA, "core.rules", f"a rule {node.name}", "none")
                reached.add(node.name)
                todo.append(rules[node.name])
    require([], [name for name in rules if name not in reached], _SCHEMA, "core.rules unreached")
    nullable_rules(rules)


def nullable_rules(rules: Mapping[str, Expr]) -> Mapping[str, bool]:
    """Return, for every rule, whether it has the empty plan.

    Raises:
        Rejected: C801: a rule is left-recursive.
    """
    nullable: dict[str, bool] = {}
    for name in rules:
        _left_walk(RuleRef(name), rules, nullable)
    return nullable


def _left_walk(start: RuleRef, rules: Mapping[str, Expr], nullable: dict[str, bool]) -> None:
    """Visit the rules that `start` may reach before a call is consumed; record nullable rules."""
    stack: list[tuple[str, _Visit]] = []
    opened: set[str] = set()
    node: Expr = start
    while True:
        answer = None
        if not isinstance(node, RuleRef):
            stack.append(("", _visit(node)))
        elif node.name in nullable:
            answer = nullable[node.name]
        else:
            ensure(node.name not in opened, _SCHEMA, "core.rules", "no left recursion", node.name)
            opened.add(node.name)
            stack.append((node.name, _visit(rules[node.name])))
        while stack:
            name, visit = stack[-1]
            try:
                node = next(visit) if answer is None else visit.send(answer)
                break
            except StopIteration as end:
                stack.pop()
                answer = bool(end.value)
                if name:
                    nullable[name] = answer
        else:
            return


def _visit(node: Expr) -> _Visit:
    """Yield the parts at the left end of `node`, receive whether each is nullable.

    Return it of `node`.
    """
    match node:
        case Seq(items):
            for item in items:
                if not (yield item):
                    return False
            return True
        case Alt(items) | Both(items):
            answers = []
            for item in items:
                answers.append((yield item))
            return any(answers) if isinstance(node, Alt) else all(answers)
        case Diff(base, minus):
            answers = [(yield base)]
            for item in minus:
                answers.append(not (yield item))
            return all(answers)
        case Repeat(body, low):
            return (yield body) or low == 0
        case RuleRef():
            return (yield node)
        case _:
            return isinstance(node, Empty)
