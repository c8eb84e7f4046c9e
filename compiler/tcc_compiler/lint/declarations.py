"""Lint rules on tools: TCC708 bare words, TCC709 and TCC710 costs, TCC712 dead ends, TCC717 errors.

TCC712: a gate allows a call, but after one of its answers no plan continues, so the gate can allow
no further call. `strict` tools exclude this. There is one finding for each tool, with a shortest
way to the call.
TCC717: a limit counts calls of a server's tool that may answer with an error, and the tool does not
declare the meaning of an error. The outcome of such a call is unknown, and the call counts.
Specification: docs/lint.md. Cost: linear in the statements; for TCC712 the cost of
:mod:`tcc_compiler.automata.answers`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcc_certs.policy.core import Core
from tcc_compiler.automata.answers import unanswered, unanswered_text
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Machine, Table
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Span
from tcc_compiler.lint.declared import Declared, DeclaredTool, fields_of, name_of
from tcc_compiler.lint.finding import Edit, LintFinding, listed
from tcc_compiler.lint.policies import Policy
from tcc_compiler.syntax.tree import Tree

# Words that are JSON values themselves, and texts only in quotes.
_LITERALS = ("true", "false", "null")


def missing_costs(declared: Declared) -> Iterator[LintFinding]:
    """Yield TCC709 if no tool has a cost, else TCC710 for each tool without a cost."""
    bare = [tool for tool in declared.tools.values() if not _has_cost(tool.tree)]
    if len(bare) < len(declared.tools):
        for tool in bare:
            yield _of_tool(
                declared,
                tool,
                "TCC710",
                f"tool `{name_of(tool.name)}` has no cost, and others have: it counts as 0",
                "write `cost 0` if this is meant",
            )
        return
    for head in declared.of_kind("header") if declared.of_kind("plan") else ():
        yield _warning(
            "TCC709",
            "no tool has a cost: every plan is as good as every other",
            declared.span(head),
            "give the tools a `cost`; a gate needs none",
        )


def _has_cost(tool: Tree) -> bool:
    return any(
        amount.trees()[0].has("cost")
        for block in tool.trees("block")
        for amount in block.trees("amount")
    )


def bare_words(declared: Declared) -> Iterator[LintFinding]:
    """Yield TCC708 for each field whose only value is a word without quotes."""
    for tool in declared.tools.values():
        for field in fields_of(tool.tree):
            name, domain = field.trees()[:2]
            values = [value for one in domain.trees("values") for value in one.trees()]
            if domain.kind != "listed" or len(values) != 1 or values[0].kind != "name":
                continue
            word = name_of(values[0])
            if word in _LITERALS:
                continue
            fix = Edit(start=values[0].start, end=values[0].end, text=f'"{word}"')
            yield LintFinding(
                diagnostic=Diagnostic(
                    code="TCC708",
                    severity="warning",
                    message=f"`{word}` is the only value of `{name_of(name)}`: a bare word is a "
                    "value, and no type",
                    span=declared.span(values[0], tool.source),
                    hint=f'write "{word}" if this value is meant; `text`, `integer` and `number` '
                    "are types",
                ),
                fix=() if tool.source else (fix,),
            )


def unanswered_calls(
    core: Core, letters: Letters, table: Machine | Table, declared: Declared
) -> Iterator[LintFinding]:
    """Yield TCC712 for each tool with an answer after which no plan continues."""
    open_tools = {
        at
        for at, tool in enumerate(core.tools)
        if not tool.strict and any(field.type is None for field in tool.answers)
    }
    if not open_tools:
        return
    for item in unanswered(core, letters, table):
        at = core.calls[item.answered[0]].tool
        if at not in open_tools:
            continue
        open_tools.discard(at)
        yield _of_tool(
            declared,
            declared.tools[core.tools[at].name],
            "TCC712",
            unanswered_text(core, item),
            "say what follows that answer, or make the tool `strict`",
        )
        if not open_tools:
            return


def counted_errors(policy: Policy) -> Iterator[LintFinding]:
    """Yield TCC717 for each limit that counts calls whose errors have no declared meaning."""
    core = policy.core
    unsaid = {
        tool.name
        for tool in core.tools
        if tool.bind is not None and tool.bind[0] == "mcp" and not tool.errors_failed
    }
    for stated in policy.stated:
        rule = stated.rule
        if rule.kind != "limit" or rule.field is not None or rule.tools is None:
            continue
        found = [
            tool.name for tool in core.tools if tool.name in unsaid and tool.name in rule.tools
        ]
        if found:
            yield _warning(
                "TCC717",
                f"{listed(found)} may answer an error, and the tool does not say whether such a "
                "call counts",
                stated.span,
                "write `errors mean failed` in its braces if an error changes nothing: then the "
                "call does not count; else allow this lint",
            )


def _of_tool(
    declared: Declared, tool: DeclaredTool, code: str, message: str, hint: str
) -> LintFinding:
    return _warning(code, message, declared.span(tool.name, tool.source), hint)


def _warning(code: str, message: str, span: Span | None, hint: str) -> LintFinding:
    return LintFinding(
        diagnostic=Diagnostic(code=code, severity="warning", message=message, span=span, hint=hint)
    )
