"""The resolver on one page: statements in, a resolved grammar out, or errors.

Normative text: docs/spec/language.md.  Everything is checked before anything is refused, so that
all the errors of a grammar are reported together.  Cost: linear in the statements and the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcc_certs.policy.plans import PASSABLE, CallSet
from tcc_certs.formats.codec import Json, encode
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.resolve import calls, statements
from tcc_compiler.resolve.amounts import Steps
from tcc_compiler.resolve.core import Resolved, limit_text, monitor_text, policy_json
from tcc_compiler.resolve.expansion import Expanded, TooManyPairs, expand, narrowed, numbered
from tcc_compiler.resolve.parameters import MAX_CALLS
from tcc_compiler.resolve.policies import ResolvedPolicy
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.tools import ResolvedTool, tool_of
from tcc_compiler.resources import forbid_place, require_place


@frozen
class Checked:
    """The statements other than rules and plan, resolved; incomplete where there was an error."""

    stated: statements.Stated
    examples: Sequence[tuple[calls.ResolvedSelection, ...]]
    expects: tuple[statements.Expect, ...]


def resolve(
    program: Program, report: Report
) -> tuple[Resolved, tuple[statements.Example, ...], tuple[statements.Expect, ...]] | None:
    """The grammar with its examples and expectations, None after an error."""
    tools = _tools(program, report)
    scope = calls.Scope(program=program, tools=tools, report=report)
    expressions = [rule.body for rule in program.rules.values()]
    if program.plan is not None:
        expressions.append(program.plan.body)
    for expression in expressions:
        check_expression(expression, scope)
    check_left_recursion(program, report)
    _check_states(program, tools, report)
    _check_signatures(program, report)
    checked = _check_statements(program, scope)
    passed = _passed(program, report)
    grammar = program.grammar
    sound = {name: tool for name, tool in tools.items() if tool is not None}
    if report.failed or grammar is None or len(sound) < len(tools):
        return None
    call_list = calls.call_list_of(sound, report)
    try:
        examples = tuple(
            statements.example_of(statement, selections, call_list, report)
            for statement, selections in zip(program.examples, checked.examples, strict=True)
        )
        resolved = _assemble(grammar, program, scope, call_list, checked)
        return replace(resolved, passed=passed), examples, checked.expects
    except TooManyPairs as pairs:
        message = "this statement compares too many calls with each other"
        hint = "list fewer values, or let the parameters be open: then a gate holds the statement"
        report.error("TCC320", pairs.region, message, hint)
        return None
    except calls.TooManyMembers:
        message = "the patterns of this grammar stand for too many calls in all"
        report.error("TCC314", grammar.region, message, "use fewer different patterns or values")
        return None


def _passed(program: Program, report: Report) -> tuple[str, ...]:
    """What passes a gate unread, sorted; each is said once, and nothing else may be said."""
    first: dict[str, Region] = {}
    for word in [word for one in program.passes for word in one.words]:
        if word.text not in PASSABLE:
            message = f"{quote(word.text)} does not pass a gate"
            report.error("TCC228", word.region, message, f"what may pass is {some(PASSABLE)}")
        elif word.text in first:
            message = f"{quote(word.text)} passes already"
            hint, note = "take one of them away", [("first", first[word.text])]
            report.error("TCC211", word.region, message, hint, note)
        first.setdefault(word.text, word.region)
    return tuple(sorted(first))


def _tools(program: Program, report: Report) -> Mapping[str, ResolvedTool | None]:
    """The tools by name, None for one with an error; calls and their texts are limited in size."""
    tools: dict[str, ResolvedTool | None] = {}
    steps = Steps()
    count = text = 0
    for name, statement in program.tools.items():
        if count > MAX_CALLS or text > calls.MAX_TEXT_BYTES or report.full:
            tools[name] = None
            continue
        tool = tools[name] = tool_of(statement, steps, report)
        if tool is None:
            continue
        count += calls.calls_in(tool)
        text += calls.text_bytes(tool)
        if count > MAX_CALLS:
            message = f"with tool {quote(name)} the grammar has more than {MAX_CALLS} calls"
            report.error("TCC303", statement.name.region, message, "use fewer or coarser values")
        elif text > calls.MAX_TEXT_BYTES:
            message = (
                f"with tool {quote(name)} the texts of the calls pass {calls.MAX_TEXT_BYTES} bytes"
            )
            report.error("TCC304", statement.name.region, message, "shorten names and values")
    if not tools and program.grammar and not program.incomplete and "tool" not in program.gaps:
        hint = "declare those that an agent may call: tool search"
        report.error("TCC214", program.grammar.region, "the grammar has no tool", hint)
    return tools


def _check_states(
    program: Program, tools: Mapping[str, ResolvedTool | None], report: Report
) -> None:
    """`start` and `goal` come together, and name states that signatures have."""
    start, goal = program.start, program.goal
    for one, other, what in ((start, goal, "goal"), (goal, start, "start")):
        if one is not None and other is None and what not in program.gaps:
            here = "start" if what == "goal" else "goal"
            message = f"there is a '{here}' statement and no '{what}' statement"
            report.error("TCC210", one.region, message, f"add the state: {what} STATE")
    _check_goals(goal, report)
    excused = program.incomplete or None in tools.values() or bool(program.gaps & {"tool"})
    if start is None or goal is None or excused:
        return
    known = {state for tool in tools.values() if tool for state in (tool.takes, tool.gives)}
    _check_known(start, goal, sorted(state for state in known if state is not None), report)


def _check_signatures(program: Program, report: Report) -> None:
    """A tool with a signature needs a `start` and a `goal` statement."""
    # With one of the two, the other is reported missing already.
    reported = program.start or program.goal or program.gaps & {"start", "goal"}
    if reported or program.incomplete:
        return
    for name, tool in program.tools.items():
        if tool.signature is None or report.full:
            continue
        takes, gives = tool.signature
        region = Region(takes.region.source, takes.region.start, gives.region.end)
        report.error(
            "TCC215",
            region,
            f"the signature of {quote(name)} means nothing: there is no `start` and no `goal`",
            f"add `start {takes.text}` and `goal {gives.text}`, or the states that are meant; "
            "or take the signature away",
        )


def _check_goals(goal: ast.GoalStatement | None, report: Report) -> None:
    first: dict[str, Region] = {}
    for state in goal.states if goal else ():
        if state.text in first:
            message = f"the goal {quote(state.text)} is named twice"
            hint, note = "take one of them away", [("first", first[state.text])]
            report.error("TCC201", state.region, message, hint, note)
        first.setdefault(state.text, state.region)


def _check_known(
    start: ast.StartStatement, goal: ast.GoalStatement, known: Sequence[str], report: Report
) -> None:
    # A state that is both start and goal needs no signature: the empty plan may be meant.
    both = {state.text for state in goal.states if state.text == start.state.text}
    named = both.union(known)
    for state in (start.state, *goal.states):
        if state.text not in named:
            message = f"no tool's signature names the state {quote(state.text)}"
            hint = suggest(state.text, known)
            if hint is None:
                hint = (
                    f"the states are {some(known)}"
                    if known
                    else "say what a tool needs: tool a : STATE -> STATE"
                )
            report.error("TCC209", state.region, message, hint)


def _check_statements(program: Program, scope: calls.Scope) -> Checked:
    examples = [statements.selections_of(statement, scope) for statement in program.examples]
    expects = [statements.expect_of(statement, scope) for statement in program.expects]
    asked = [statement.forbid for statement in program.exacts]
    if any(asked):  # their names and values are held to the tools, and nothing is made of them
        statements.stated(
            replace(
                program,
                limits=[],
                requires=[],
                forbids=[one for one in asked if isinstance(one, ast.ForbidStatement)],
                policies=[one for one in asked if isinstance(one, ast.PolicyStatement)],
                monitors=[],
            ),
            scope,
        )
    return Checked(
        stated=statements.stated(program, scope),
        examples=[example for example in examples if example is not None],
        expects=tuple(expect for expect in expects if expect is not None),
    )


def _assemble(
    grammar: ast.GrammarStatement,
    program: Program,
    scope: calls.Scope,
    call_list: calls.CallList,
    checked: Checked,
) -> Resolved:
    """The grammar, its call sets numbered.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    reached = reached_rules(program)
    expanded = expand(checked.stated.policies, call_list)
    patterns = sorted(_used_sets(program, reached, scope, call_list, checked) | _sets_of(expanded))
    numbers = {pattern: number for number, pattern in enumerate(patterns)}

    def number(selection: calls.ResolvedSelection) -> int:
        return numbers[call_list.calls_of(selection)]

    found = checked.stated
    requires = [(order, number(a), number(b)) for order, a, b, _ in found.requires]
    forbids = [(kind, tuple(map(number, chain))) for kind, chain, _ in found.forbids]
    requires += [(order, numbers[a], numbers[b]) for order, a, b, _ in expanded.requires]
    forbids += [(kind, tuple(numbers[one] for one in c)) for kind, c, _ in expanded.forbids]
    regions = [item[-1] for item in (*found.requires, *expanded.requires)]
    others = [item[-1] for item in (*found.forbids, *expanded.forbids)]
    orders = list(zip(requires, regions, strict=True)), list(zip(forbids, others, strict=True))
    policies = [one for one in found.policies if one.held] + expanded.beside
    written = list(_written(found, *orders, call_list.tools))
    written += [(policy_place(one, call_list.tools), one.region) for one in policies]
    cuts, asked = [
        [(numbered(one, numbers), region) for one, region in some]
        for some in (expanded.cuts, expanded.asked)
    ]
    for word, made in (("cut", cuts), ("asked", asked)):
        written += [(f"{word} {encode(one).decode()}", region) for one, region in made]
    return Resolved(
        name=grammar.name.text,
        version=grammar.version.value,
        call_list=call_list,
        patterns=patterns,
        rules={
            name: expression_json(program.rules[name].body, scope, call_list, numbers)
            for name in reached
        },
        plan=narrowed(
            plan_json(program.plan, scope, call_list, numbers),
            [one for one, _ in cuts],
            [one for one, _ in asked],
        ),
        start=program.start.state.text if program.start else None,
        goals=[state.text for state in program.goal.states] if program.goal else [],
        limits=[limit for limit, _ in found.limits],
        requires=requires,
        forbids=forbids,
        monitors=[monitor for monitor, _ in found.monitors],
        policies=policies,
        session=found.session,
        places=dict(written),
        written=written,
    )


def _sets_of(expanded: Expanded) -> set[CallSet]:
    """The call sets of what was written out."""
    used = set(expanded.used)
    for _, first, second, _ in expanded.requires:
        used.update((first, second))
    for _, chain, _ in expanded.forbids:
        used.update(chain)
    return used


def _written(
    found: statements.Stated,
    requires: Sequence[tuple[tuple[str, int, int], Region]],
    forbids: Sequence[tuple[tuple[str, tuple[int, ...]], Region]],
    tools: Mapping[str, ResolvedTool],
) -> Iterator[tuple[str, Region]]:
    """The place of everything that was stated, with its region; the same place may come twice."""
    for (order, first, second), region in requires:
        yield require_place(order, first, second), region
    for (kind, patterns), region in forbids:
        yield forbid_place(kind, sorted(patterns) if kind == "with" else patterns), region
    for limit, region in found.limits:
        yield f"limit {limit_text(limit, tools)}", region
    for monitor, region in found.monitors:
        yield f"monitor {monitor_text(monitor, tools)}", region


def policy_place(policy: ResolvedPolicy, tools: Mapping[str, ResolvedTool]) -> str:
    """The place of a statement of version 1.2 that a core has: its canonical JSON there."""
    numbers = {name: at for at, name in enumerate(sorted(tools))}
    return f"monitor {encode(policy_json(policy, numbers, tools)).decode()}"


def _used_sets(
    program: Program,
    reached: Sequence[str],
    scope: calls.Scope,
    call_list: calls.CallList,
    checked: Checked,
) -> set[CallSet]:
    """The call sets that the core names."""
    used: set[CallSet] = set()
    if program.plan is None:
        used.add(call_list.every)
    else:
        used.update(call_sets(program.plan.body, scope, call_list))
    for name in reached:
        used.update(call_sets(program.rules[name].body, scope, call_list))
    for _, first, second, _ in checked.stated.requires:
        used.update((call_list.calls_of(first), call_list.calls_of(second)))
    for _, chain, _ in checked.stated.forbids:
        used.update(map(call_list.calls_of, chain))
    return used


# Expressions: names and counts checked, patterns resolved, core JSON (core.md, section 3); and left
# recursion (language.md, section 8).  No function here recurses.  A cycle of rules is looked for
# together with what may be empty, which is known as the walk goes; networkx wants a finished graph.


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


def plan_json(
    plan: ast.PlanStatement | None,
    scope: calls.Scope,
    call_list: calls.CallList,
    numbers: Mapping[CallSet, int],
) -> Json:
    """The plan; without a statement it is ``any*``."""
    if plan is None:
        return ["repeat", ["call", numbers[call_list.every]], 0]
    return expression_json(plan.body, scope, call_list, numbers)


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
