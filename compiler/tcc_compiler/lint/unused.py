"""Lint rules TCC701, TCC702 and TCC703: tools, rules and values that no plan uses.

A tool, or a value of a listed argument, is used if some plan has a call with it. A rule is used if
`plan` reaches it. Tools of other files are not reported, because such files serve several grammars.
Specification: docs/lint.md. Cost: linear in the calls and the expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Set as AbstractSet

from tcc_certs.policy.core import Core
from tcc_certs.values.fields import Field
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Span
from tcc_compiler.lint.declared import Declared, DeclaredTool, fields_of, name_of
from tcc_compiler.lint.expectations import named_calls
from tcc_compiler.lint.finding import Edit, LintFinding, listed, removal
from tcc_compiler.names.types import value_text
from tcc_compiler.syntax.tree import Tree


def unused_rules(core: Core, declared: Declared) -> Iterator[LintFinding]:
    """Yield TCC702 for each rule that `plan` does not reach."""
    for tree in declared.of_kind("rule"):
        name = tree.tokens("NAME")[0]
        if name.text in core.rules:
            continue
        message = f"rule `{name.text}` is not used: `plan` does not lead to it"
        hint = "use it, or take it out"
        yield _warning("TCC702", message, declared.span(name), hint, removal(tree))


def unused_calls(
    core: Core, declared: Declared, used: AbstractSet[int], dead: AbstractSet[str] = frozenset()
) -> Iterator[LintFinding]:
    """Yield TCC701 for each unused tool, TCC703 for each listed argument with unused values.

    Args:
        used: the calls that some plan has.
        dead: the tools that TCC746 reports.
    """
    named = {core.calls[call].tool for low, high in named_calls(core) for call in range(low, high)}
    of_tool: dict[int, list[int]] = {}
    for call in sorted(used):
        of_tool.setdefault(core.calls[call].tool, []).append(call)
    for at, tool in enumerate(core.tools):
        statement = declared.tools[tool.name]
        if statement.source or tool.name in dead:
            continue
        if at in of_tool:
            yield from _unused_values(core, at, of_tool[at], statement, declared)
            continue
        why = "the statements leave no plan with it" if at in named else "`plan` does not name it"
        yield _warning(
            "TCC701",
            f"tool `{tool.name}` is not used: {why}",
            declared.span(statement.name),
            "use it, or take it out",
        )


def _unused_values(
    core: Core, at: int, calls: list[int], statement: DeclaredTool, declared: Declared
) -> Iterator[LintFinding]:
    tool = core.tools[at]
    trees = {name_of(field.trees()[0]): field for field in fields_of(statement.tree)}
    arguments = {id(field) for field in tool.arguments}
    for place, field in enumerate(tool.listed):
        if id(field) not in arguments or field.name not in trees:
            continue
        seen = {core.calls[call].values[place] for call in calls}
        unused = [value for number, value in _numbered(field) if number not in seen]
        if unused:
            values = "value" if len(unused) == 1 else "values"
            yield _warning(
                "TCC703",
                f"no plan calls `{tool.name}` with `{field.name}` = {listed(unused)}",
                declared.span(_value_tree(trees[field.name], unused[0])),
                f"take the {values} out, or say where a plan has a call with it",
            )


def _numbered(field: Field) -> Iterator[tuple[int, str]]:
    """Yield the values of a listed field, with their numbers in calls."""
    values = [value for value in field.values if value]
    return enumerate(values, 1 if field.optional else 0)


def _value_tree(field: Tree, value: str) -> Tree:
    """Return the tree of a value of a listed field; for a range the tree of the whole domain."""
    domain = field.trees()[1]
    todo = [domain]
    while todo:
        tree = todo.pop()
        if tree.kind in ("listed", "listed_or_other", "values"):
            todo += tree.trees()
        elif tree.kind in ("name", "string", "signed") and value_text(tree) == value:
            return tree
    return domain


def _warning(
    code: str, message: str, span: Span, hint: str, fix: tuple[Edit, ...] = ()
) -> LintFinding:
    diagnostic = Diagnostic(code=code, severity="warning", message=message, span=span, hint=hint)
    return LintFinding(diagnostic=diagnostic, fix=fix)
