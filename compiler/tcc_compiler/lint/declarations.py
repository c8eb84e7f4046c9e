"""Lint rules on tools: TCC708 bare words, TCC709 and TCC710 missing costs, TCC712 dead ends.

TCC712: a call may be made, and with one of its answers no plan continues. A gate permits the call,
and after that answer it can permit nothing. `strict` tools exclude this. One finding for each tool,
with a shortest way there.
Specification: docs/lint.md. Cost: linear in the statements; for TCC712 that of
:mod:`tcc_compiler.automata.answers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_certs.core.model import Core
from tcc_compiler.automata.answers import unanswered, unanswered_text
from tcc_compiler.automata.letters import Letters, is_observed
from tcc_compiler.automata.table import Table
from tcc_compiler.language.ast import Amount, ParameterDeclaration, ToolStatement
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.lint.finding import Edit, LintFinding
from tcc_compiler.resolve.program import Program

# Values of JSON: in quotes they are others.
_LITERALS = ("true", "false", "null")


def missing_costs(program: Program, sources: Sequence[Source]) -> Iterator[LintFinding]:
    """TCC709 where no tool has a cost, else TCC710 for each that has none."""
    bare = [tool for tool in program.tools.values() if not _has_cost(tool)]
    if len(bare) < len(program.tools):
        for tool in bare:
            yield _warning(
                "TCC710",
                f"tool `{tool.name.text}` has no cost, and others have: it counts as 0",
                sources[tool.name.region.source], tool, "write `cost 0` where this is meant",
            )  # fmt: skip
    elif program.grammar is not None:
        yield LintFinding(
            diagnostic=Diagnostic(
                code="TCC709",
                severity="warning",
                message="no tool has a cost: every plan is as good as every other",
                span=sources[program.grammar.region.source].span(program.grammar.region),
                hint="give the tools a `cost`; a gate needs none",
            )
        )


def _has_cost(tool: ToolStatement) -> bool:
    return any(isinstance(item, Amount) and item.kind == "cost" for item in tool.attributes)


def bare_words(program: Program, sources: Sequence[Source]) -> Iterator[LintFinding]:
    """TCC708 for each parameter whose only value is a word without quotes."""
    for tool in program.tools.values():
        for item in (*tool.parameters, *tool.opened, *tool.observed):
            if not isinstance(item, ParameterDeclaration) or len(item.domain.values) != 1:
                continue
            (value,) = item.domain.values
            if value.quoted or value.number is not None or value.text in _LITERALS:
                continue
            region = value.region
            fix = Edit(start=region.start, end=region.end, text=f'"{value.text}"')
            yield LintFinding(
                diagnostic=Diagnostic(
                    code="TCC708",
                    severity="warning",
                    message=f"`{value.text}` is the only value of `{item.name.text}`: "
                    "a bare word is a value, and no type",
                    span=sources[region.source].span(region),
                    hint=f'write "{value.text}" where this value is meant; what may be any '
                    "text or number stands behind a semicolon",
                ),
                fix=() if region.source else (fix,),
            )


def _warning(
    code: str, message: str, source: Source, tool: ToolStatement, hint: str
) -> LintFinding:
    span = source.span(tool.name.region)
    return LintFinding(
        diagnostic=Diagnostic(code=code, severity="warning", message=message, span=span, hint=hint)
    )


def unanswered_calls(
    program: Program, core: Core, letters: Letters, table: Table, sources: Sequence[Source]
) -> Iterator[LintFinding]:
    """TCC712 for each tool with an answer after which no plan continues."""
    open_tools = {at for at, tool in enumerate(core.tools) if is_observed(tool) and not tool.strict}
    if not open_tools:
        return
    for item in unanswered(core, letters, table):
        tool = core.calls[item.answered[0]].tool
        if tool in open_tools:
            open_tools.discard(tool)
            statement = program.tools[core.tools[tool].name]
            yield LintFinding(
                diagnostic=Diagnostic(
                    code="TCC712",
                    severity="warning",
                    message=unanswered_text(core, item),
                    span=sources[statement.region.source].span(statement.name.region),
                    hint="say what follows that answer, or make the tool `strict`",
                )
            )
        if not open_tools:
            return
