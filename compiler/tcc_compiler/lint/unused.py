"""Lint rules TCC701, TCC702 and TCC703: tools, rules and values that no plan uses.

A tool or a value of a listed parameter is used where some plan has such a call; a rule where the
plan names it, or a used rule does. Tools of other files serve several grammars and are not
reported.
Specification: docs/lint.md. Cost: linear in the calls and the expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet

from tcc_certs.core.model import Core
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Region, Source
from tcc_compiler.lint.finding import LintFinding, listed, removal
from tcc_compiler.resolve.program import Program


def unused_rules(program: Program, root: Source) -> Iterator[LintFinding]:
    """TCC702 for each rule that is not reachable from `plan`."""
    todo = [] if program.plan is None else [program.plan.body]
    reached: set[str] = set(_in_sets(program))
    todo += [program.rules[name].body for name in sorted(reached)]
    for body in todo:
        for node in ast.postorder(body):
            name = node.pattern.name.text if isinstance(node, ast.Reference) else None
            if name is not None and name in program.rules and name not in reached:
                reached.add(name)
                todo.append(program.rules[name].body)
    for name, rule in program.rules.items():
        if name not in reached:
            yield LintFinding(
                diagnostic=Diagnostic(
                    code="TCC702",
                    severity="warning",
                    message=f"rule `{name}` is not used: `plan` does not lead to it",
                    span=root.span(rule.name.region),
                    hint="use it, or take it out",
                ),
                fix=removal(rule.region, root),
            )


def _in_sets(program: Program) -> Iterator[str]:
    """The rules that stand for sets of calls in statements."""
    sets: list[ast.CallsTerm | None] = [statement.pattern for statement in program.limits]
    for require in program.requires:
        sets += (require.first, require.second)
    for forbid in program.forbids:
        sets += forbid.patterns
    for policy in program.policies:
        sets += [policy.calls, *(one.calls for one in (*policy.before, *policy.unless))]
    for calls in sets:
        if isinstance(calls, ast.SetOf):
            sets += calls.items
        elif isinstance(calls, ast.Pattern) and calls.name.text in program.rules:
            yield calls.name.text


def unused_calls(
    program: Program, core: Core, used: AbstractSet[int], root: Source
) -> Iterator[LintFinding]:
    """TCC701 for each tool, TCC703 for each parameter with values, that no plan uses.

    Args:
        used: the calls that some plan has.
    """
    named = _named(program)
    tools = {tool.name: at for at, tool in enumerate(core.tools)}
    of_tool: dict[int, list[int]] = {}
    for call in sorted(used):
        of_tool.setdefault(core.calls[call].tool, []).append(call)
    for name, statement in program.tools.items():
        if statement.region.source:
            continue
        calls = of_tool.get(tools[name], [])
        if calls:
            yield from _values(statement, core, tools[name], calls, root)
            continue
        why = "nothing of `plan` names it"
        if named is None or name in named:
            why = "what the statements leave has no call of it"
        yield _warning(
            "TCC701", f"tool `{name}` is not used: {why}", root, statement.name.region,
            "use it, or take it out",
        )  # fmt: skip


def _named(program: Program) -> frozenset[str] | None:
    """The tools that expressions name; None where `any` may stand for each of them."""
    if program.plan is None:
        return None
    bodies = [program.plan.body, *(rule.body for rule in program.rules.values())]
    return frozenset(
        node.pattern.name.text
        for body in bodies
        for node in ast.postorder(body)
        if isinstance(node, ast.Reference)
    )


def _values(
    statement: ast.ToolStatement, core: Core, tool: int, calls: list[int], root: Source
) -> Iterator[LintFinding]:
    declared: Mapping[str, ast.ParameterDeclaration] = {
        item.name.text: item
        for item in (*statement.parameters, *statement.opened)
        if isinstance(item, ast.ParameterDeclaration)
    }
    for place, parameter in enumerate(core.tools[tool].parameters):
        seen = {core.calls[call].values[place] for call in calls}
        unused = [
            value
            for at, value in enumerate(parameter.values)
            if at not in seen and value and not parameter.observed
        ]
        if unused and parameter.name in declared:
            values = "value" if len(unused) == 1 else "values"
            message = (
                f"no plan calls `{statement.name.text}` with `{parameter.name}` = {listed(unused)}"
            )
            region = _value_region(declared[parameter.name], unused[0])
            yield _warning(
                "TCC703", message, root, region,
                f"take the {values} out, or say where a plan has a call with it",
            )  # fmt: skip


def _value_region(declared: ast.ParameterDeclaration, value: str) -> Region:
    for item in declared.domain.values:
        if item.text == value:
            return item.region
    return declared.domain.region


def _warning(code: str, message: str, root: Source, region: Region, hint: str) -> LintFinding:
    return LintFinding(
        diagnostic=Diagnostic(
            code=code, severity="warning", message=message, span=root.span(region), hint=hint
        )
    )
