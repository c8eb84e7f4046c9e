"""What can be told of the text alone: costs that are left out, and domains of one bare word.

Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_compiler.language.ast.statements import ToolStatement
from tcc_compiler.language.ast.tools import Amount, ParameterDeclaration
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source
from tcc_compiler.lint.finding import Edit, Finding
from tcc_compiler.resolve.program import Program

# Values of JSON: in quotes they are others.
_LITERALS = ("true", "false", "null")


def missing_costs(program: Program, sources: Sequence[Source]) -> Iterator[Finding]:
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
        yield Finding(
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


def bare_words(program: Program, sources: Sequence[Source]) -> Iterator[Finding]:
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
            yield Finding(
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


def _warning(code: str, message: str, source: Source, tool: ToolStatement, hint: str) -> Finding:
    span = source.span(tool.name.region)
    return Finding(
        diagnostic=Diagnostic(code=code, severity="warning", message=message, span=span, hint=hint)
    )
