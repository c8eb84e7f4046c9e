"""Turn the trees of plans, rules, states and examples into the plan side of the core.

Each expression is read once. Its patterns are numbered in the order in which they are found. They
get the numbers of the core when all calls are known.
Cost: linear in the trees and the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tcc_certs.formats.codec import written
from tcc_certs.policy import nodes as n
from tcc_certs.policy.expressions import fold, parts, walk, with_parts
from tcc_certs.policy.plans import (
    PASSABLE,
    Alt,
    Both,
    Call,
    CallSet,
    Diff,
    Empty,
    Expr,
    OneCall,
    Repeat,
    RuleRef,
    Seq,
)
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import quote, some, suggest
from tcc_compiler.language.source import Region, Span
from tcc_compiler.language.values import REST
from tcc_compiler.names.calls import ANY, CallList, Selection, TooManyMembers
from tcc_compiler.names.listed import places_of, values_in
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.tools import DeclaredTool
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Token, Tree

MAX_REPEAT = 10_000
_MOST_STEPS = 1 << 12  # the most steps for expanding a `let` in a plan
_MOST_NESTED = 50  # the most nested `let`s
_COUNTS = "write {3}, {1,3} or {1,}"


@frozen
class Example:
    """An ``accept`` or ``reject`` line.

    Attributes:
        patterns: the call sets that `plans` and `rules` refer to by number.
        rules: the rules that `plans` reaches.
        spans: the span of each call, if the example is a plain sequence of calls; else empty.
    """

    accept: bool
    plans: Expr
    patterns: tuple[CallSet, ...]
    rules: Mapping[str, Expr]
    span: Span
    spans: tuple[Span, ...] = ()

    @property
    def steps(self) -> tuple[int, ...] | None:
        """The pattern numbers of a plain sequence of calls; None for another expression."""
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
    """The trees of the plan side: the first statement of each kind, all rules and all examples."""

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
    """Return the plan side; None after a mistake.

    Args:
        tools: by name; None for a tool with a mistake.
        complete: whether every tool is known.
    """
    before = b.failed
    reader = _Plans(b, tools, trees.rules, lets, complete)
    rules = {name: reader.plans(tree.trees()[-1]) for name, tree in trees.rules.items()}
    plan: Expr = Repeat(OneCall(reader.number_of(ANY)), 0, None)
    if trees.plan is not None:
        plan = reader.plans(trees.plan.trees()[-1])
    examples = [(tree, reader.plans(tree.trees()[-1])) for tree in trees.examples]
    _check_left_recursion(b, rules, trees.rules)
    _check_states(b, trees, tools)
    passed = _passed(b, trees.passes)
    sound = {name: tool for name, tool in tools.items() if tool is not None}
    if b.failed > before or b.report.failed or len(sound) < len(tools) or not sound:
        return None
    calls = CallList(sound, b.report)
    sets = _Sets(calls, reader.selections, rules)
    try:
        patterns, expressions = sets.over(plan)
        return PlanSide(
            calls=calls.calls,
            patterns=patterns,
            rules={name: expressions(rules[name]) for name in _reached(plan, rules)},
            plan=expressions(plan),
            start=None if trees.start is None else trees.start.tokens("NAME")[0].text,
            goals=tuple(sorted(_states(trees.goal))),
            passed=passed,
            examples=tuple([_example(b, tree, body, sets) for tree, body in examples]),
        )
    except TooManyMembers:
        at = trees.plan or next(iter(trees.rules.values()), None)
        message = "the patterns of this grammar stand for too many calls in all"
        region = b.region(at) if at is not None else Region(0, 0, 0)
        b.report.error("TCC314", region, message, "use fewer different patterns or values")
        return None


def _reached(expression: Expr, rules: Mapping[str, Expr]) -> list[str]:
    """Return the names of the rules that an expression reaches, sorted."""
    reached: set[str] = set()
    todo = [expression]
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, RuleRef) and node.name not in reached:
                reached.add(node.name)
                todo.append(rules[node.name])
    return sorted(reached)


@frozen(kw_only=False, eq=False)
class _Sets:
    """Makes call sets from the patterns that were found.

    Attributes:
        selections: the patterns, by their numbers in the expressions that were read.
        rules: all rules, as they were read.
    """

    calls: CallList
    selections: Sequence[Selection]
    rules: Mapping[str, Expr]

    def over(self, body: Expr) -> tuple[tuple[CallSet, ...], Callable[[Expr], Expr]]:
        """Return the sorted call sets of an expression, and a function that renumbers patterns.

        Raises:
            TooManyMembers: the sets have too many calls.
        """
        bodies = [body, *[self.rules[name] for name in _reached(body, self.rules)]]
        found = {
            node.pattern: self.calls.calls_of(self.selections[node.pattern])
            for one in bodies
            for node in walk(one)
            if isinstance(node, OneCall)
        }
        patterns = tuple(sorted(set(found.values())))
        numbers = {pattern: at for at, pattern in enumerate(patterns)}

        def made(node: Expr, inner: tuple[Expr, ...]) -> Expr:
            if isinstance(node, OneCall):
                return OneCall(numbers[found[node.pattern]])
            return with_parts(node, inner)

        return patterns, lambda expression: fold(expression, made)


def _example(b: Builder, tree: Tree, body: Expr, sets: _Sets) -> Example:
    patterns, expression = sets.over(body)
    inside = tree.trees()[-1]
    steps = inside.trees() if inside.kind == "sequence" else [inside]
    return Example(
        accept=tree.has("accept"),
        plans=expression(body),
        patterns=patterns,
        rules={name: expression(sets.rules[name]) for name in _reached(body, sets.rules)},
        span=b.report.span(b.region(tree)),
        spans=tuple([b.report.span(b.region(step)) for step in steps]),
    )


# Expressions.

# Words that other notations use, with the sign that a plan has for them.
_WORDS = {
    "or": "alternatives are written 'a | b'",
    "and": "calls that follow each other stand side by side; 'a & b' asks for both",
    "then": "calls that follow each other stand side by side",
    "not": "a call is ruled out by 'any - a', or by a `forbid` statement",
}


@dataclass(slots=True)
class _Plans:
    """Reads expressions of plans.

    Attributes:
        selections: the patterns found so far; a `OneCall` refers to its place here.
    """

    b: Builder
    tools: Mapping[str, DeclaredTool | None]
    rules: Mapping[str, Tree]
    lets: Mapping[str, n.Definition]
    complete: bool
    selections: list[Selection] = field(default_factory=list)
    _numbers: dict[Selection, int] = field(default_factory=dict)

    def number_of(self, selection: Selection) -> int:
        """Return the number of a pattern; a new pattern is added."""
        number = self._numbers.setdefault(selection, len(self.selections))
        if number == len(self.selections):
            self.selections.append(selection)
        return number

    def plans(self, tree: Tree) -> Expr:
        """Return the expression of a tree; a part with a mistake becomes the empty sequence."""
        order: list[Tree] = []
        todo = [tree]
        while todo:
            one = todo.pop()
            order.append(one)
            if one.kind in _OPERATORS:
                todo += one.trees()
        made: dict[int, Expr] = {}
        for one in reversed(order):
            self.b.report.tick()
            if one.kind in _OPERATORS:
                inner = [made[id(part)] for part in one.trees()]
                made[id(one)] = _OPERATORS[one.kind](self, one, inner)
            else:
                made[id(one)] = Empty() if self.b.report.full else self._call(one)
        return made[id(tree)]

    def many(self, tree: Tree, inner: list[Expr]) -> Expr:
        """Return the expression of ``a b``, ``a | b`` or ``a & b``."""
        return joined(_MANY[tree.kind], inner)

    def without(self, tree: Tree, inner: list[Expr]) -> Expr:
        """Return the expression of ``a - b - c``."""
        return less(inner[0], inner[1:])

    def group(self, tree: Tree, inner: list[Expr]) -> Expr:
        """Return the expression of ``( .. )``."""
        return inner[0]

    def repeated(self, tree: Tree, inner: list[Expr]) -> Expr:
        """Return the expression of ``a?``, ``a*``, ``a+`` or ``a{1,3}``."""
        body = inner[0]
        match tree.kind:
            case "maybe":
                return Repeat(body, 0, 1)
            case "any_number":
                return Repeat(body, 0, None)
            case "some_number":
                return Repeat(body, 1, None)
        tokens = tree.tokens("NUMBER")
        for token in tokens:
            if not token.text.isdigit() or int(token.text) > MAX_REPEAT:
                message = f"a repetition counts with whole numbers from 0 to {MAX_REPEAT}"
                self.b.error("TCC311", token, message, _COUNTS)
                return Empty()
        low, high = int(tokens[0].text), int(tokens[-1].text)
        if low > high:
            message = "this repetition asks for more at least than at most"
            region = self.b.region(tokens[0]).to(self.b.region(tokens[-1]))
            self.b.error("TCC311", region, message, "write the smaller number first")
            return Empty()
        return Repeat(body, low, high if len(tokens) > 1 or not tree.has(",") else None)

    # Calls.

    def _call(self, tree: Tree) -> Expr:
        if tree.kind == "nothing":
            return Empty()
        step = tree if tree.kind == "step" else tree.trees()[0]
        token = step.parts[0]
        name = name_value(token) if isinstance(token, Token) else ""
        arguments = tree.trees("argument")
        plain = isinstance(token, Token) and token.kind == "NAME"
        if plain and name == "any" and not arguments:
            return OneCall(self.number_of(ANY))
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
        if name not in self.tools:
            return self._rule(step, name, bool(arguments))
        tool = self.tools[name]
        selection = None if tool is None else self._selection(tool, arguments)
        return Empty() if selection is None else OneCall(self.number_of(selection))

    def _rule(self, step: Tree, name: str, has_arguments: bool) -> Expr:
        if name in self.rules:
            if not has_arguments:
                return RuleRef(name)
            message = f"{quote(name)} is a rule; a pattern names a tool"
            note = [("the rule", self.b.region(self.rules[name].tokens("NAME")[0]))]
            hint = "name the tools of the rule, in a line of their own each"
            self.b.error("TCC203", step, message, hint, note)
        elif not self.complete or not self.tools:
            self.b.failed += 1  # a name is missing because of a mistake that was already reported
        elif has_arguments:
            tools = list(self.tools)
            hint = suggest(name, tools) or f"the tools are {some(tools)}"
            self.b.error("TCC203", step, f"no tool is named {quote(name)}", hint)
        else:
            known = [*self.tools, *self.rules]
            hint = _WORDS.get(name) or suggest(name, known) or ""
            hint = hint or f"the tools and rules are {some(known)}"
            self.b.error("TCC202", step, f"no tool or rule is named {quote(name)}", hint)
        return Empty()

    def _selection(self, tool: DeclaredTool, arguments: Sequence[Tree]) -> Selection | None:
        """Return the pattern of a tool; None after a mistake."""
        b, before = self.b, self.b.failed
        first: dict[int, Tree] = {}
        where: dict[int, tuple[int, ...]] = {}
        for argument in arguments:
            name = argument.trees()[0]
            word = b.name(name)
            place = tool.places.get(word)
            if place is None:
                self._report_no_field(tool, name, word)
                continue
            if place in first:
                message = f"the field {quote(word)} is given twice"
                note = [("first given here", b.region(first[place]))]
                b.error("TCC211", name, message, "list the values of one argument: k=1|2", note)
            first.setdefault(place, name)
            where[place] = self._values(tool, place, argument)
        return Selection(tool.name, tuple(sorted(where.items()))) if b.failed == before else None

    def _values(self, tool: DeclaredTool, place: int, argument: Tree) -> tuple[int, ...]:
        values, listed = argument.trees("values"), tool.fields[place]
        if values:
            return places_of(self.b, values_in(self.b, values[0]), listed) or ()
        if REST in listed.index:
            return (listed.index[REST],)
        star = argument.tokens("*")[0]
        message = f"{quote(REST)} is no value of {quote(listed.name)}"
        hint = f"{quote(listed.name)} is {some(list(listed.index), ' | ')}"
        self.b.error("TCC205", star, message, hint)
        return ()

    def _report_no_field(self, tool: DeclaredTool, name: Tree, word: str) -> None:
        fields = (*tool.tool.arguments, *tool.tool.answers)
        if any(one.name == word for one in fields):
            message = f"{quote(word)} of {quote(tool.name)} has a type, and plans do not"
            message += " distinguish it"
            hint = "list its values in the tool; or write a statement: "
            hint += f"before {tool.name}({word} = ..) require .."
            self.b.error("TCC216", name, message, hint)
            return
        known = [one.name for one in tool.fields]
        hint = suggest(word, known) or f"it has {some(known)}"
        hint = hint if known else f"it has none: write {written(tool.name)}"
        message = f"tool {quote(tool.name)} has no listed field {quote(word)}"
        self.b.error("TCC204", name, message, hint)

    def _let(self, step: Tree, name: str) -> Expr:
        """Return the expression of a `let` that is a plain set of calls; report any other `let`."""
        left = [_MOST_STEPS]

        def made(node: n.Node, within: frozenset[str]) -> Expr | None:
            left[0] -= 1
            if left[0] < 0 or len(within) > _MOST_NESTED:
                return None
            match node:
                case n.AnyTool():
                    return OneCall(self.number_of(ANY))
                case n.Word(word) if word in self.lets and word not in self.tools:
                    if word in within or self.lets[word].parameters:
                        return None
                    return made(self.lets[word].body, within | {word})
                case n.Word(word) if word in self.tools:
                    return OneCall(self.number_of(Selection(word)))
                case n.Union(items):
                    inner = [made(item, within) for item in items]
                    sound = [one for one in inner if one is not None]
                    return None if len(sound) < len(inner) else joined(Alt, sound)
                case n.Minus(one, other):
                    base, rest = made(one, within), made(other, within)
                    return None if base is None or rest is None else less(base, [rest])
            return None

        let = self.lets[name]
        found = None if let.parameters else made(let.body, frozenset({name}))
        if found is None:
            message = f"the `let` {quote(name)} is no plain set of calls"
            hint = "a plan takes tools, `a | b`, `any - a`, and a `let` of these; use a `rule`"
            self.b.error("TCC203", step, message, hint)
        return found or Empty()


def joined(kind: type[Seq] | type[Alt] | type[Both], inner: Sequence[Expr]) -> Expr:
    """Return a sequence, choice or conjunction; inner expressions of the same kind are merged."""
    items: list[Expr] = []
    for one in inner:
        items += one.items if isinstance(one, kind) else [one]
    return kind(tuple(items))


def less(base: Expr, others: Sequence[Expr]) -> Diff:
    """Return ``base - other - ..``."""
    if isinstance(base, Diff):
        return Diff(base.base, (*base.minus, *others))
    return Diff(base, tuple(others))


_MANY: Mapping[str, type[Seq] | type[Alt] | type[Both]] = {
    "sequence": Seq,
    "choice": Alt,
    "both_plans": Both,
}
_OPERATORS: Mapping[str, Callable[[_Plans, Tree, list[Expr]], Expr]] = {
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


# Left recursion: a rule that is reached from itself before a call is made. Each rule is evaluated
# once, to find whether it can be empty. This evaluation looks at exactly the rules that can be
# reached without a call. So a rule that is reached during its own evaluation is left-recursive.


@dataclass(slots=True)
class _Visit:
    """A node whose parts are being evaluated; `rule` is the rule whose body it is, or None."""

    node: Expr
    rule: str | None
    answers: list[bool] = field(default_factory=list)

    def next(self) -> Expr | None:
        """Return the next part to evaluate; None where further parts do not matter."""
        node, answers = self.node, self.answers
        inner = (node,) if isinstance(node, RuleRef) else parts(node)
        if len(answers) == len(inner) or (isinstance(node, Seq) and answers and not answers[-1]):
            return None
        return inner[len(answers)]

    def is_nullable(self) -> bool:
        """Return whether the node can be the empty sequence, given the answers of its parts."""
        match self.node:
            case Empty():
                return True
            case OneCall():
                return False
            case Alt():
                return any(self.answers)
            case Diff():
                return self.answers[0] and not any(self.answers[1:])
            case Repeat(_, low):
                return self.answers[0] or low == 0
            case _:
                return all(self.answers)


def _check_left_recursion(b: Builder, rules: Mapping[str, Expr], trees: Mapping[str, Tree]) -> None:
    """Report each cycle of rules without a call, with the rules on it."""
    nullable: dict[str, bool] = {}
    for name in rules:
        if name not in nullable:
            for path, rule in _circles(b, name, rules, nullable):
                if not b.report.full:
                    _report_circle(b, path[path.index(rule) :], rule, trees)


def _circles(
    b: Builder, name: str, rules: Mapping[str, Expr], nullable: dict[str, bool]
) -> Iterator[tuple[list[str], str]]:
    """Fill in `nullable` for a rule and for all rules that it can reach before a call.

    Yields:
        a path of rules, and the rule on it that is reached again.
    """
    path = {name: None}
    stack = [_Visit(rules[name], name)]
    while stack:
        b.report.tick()
        visit = stack[-1]
        part = visit.next()
        if part is None:
            answer = visit.is_nullable()
            stack.pop()
            if visit.rule is not None:
                nullable[visit.rule] = answer
                del path[visit.rule]
            if stack:
                stack[-1].answers.append(answer)
        elif not isinstance(part, RuleRef):
            stack.append(_Visit(part, None))
        elif part.name in nullable:
            visit.answers.append(nullable[part.name])
        elif part.name in path:
            yield list(path), part.name
            visit.answers.append(False)
        else:
            path[part.name] = None
            stack.append(_Visit(rules[part.name], part.name))


def _report_circle(b: Builder, circle: list[str], rule: str, trees: Mapping[str, Tree]) -> None:
    shown = [*circle, rule] if len(circle) <= 12 else [*circle[:10], "...", circle[-1], rule]
    at = {name: b.region(trees[name].tokens("NAME")[0]) for name in circle[:6]}
    message = f"rule {quote(rule)} is reached from itself before a call is made: "
    message += " -> ".join(shown)
    notes = [(f"by way of {quote(name)}", at[name]) for name in circle[1:6]]
    hint = "let a call come first, or write a repetition ('+', '*')"
    b.error("TCC207", at[rule], message, hint, notes)


# States, and the parts of MCP that pass a gate.


def _states(goal: Tree | None) -> list[str]:
    return [] if goal is None else [token.text for token in goal.tokens("NAME")]


def _check_states(b: Builder, trees: Trees, tools: Mapping[str, DeclaredTool | None]) -> None:
    """Check that `start` and `goal` are both there, and name states of signatures."""
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
    """Return the parts of MCP that pass a gate unread, sorted."""
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
