"""The statements of a document that have a name, for the editor's outline.

Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lsprotocol.types import DocumentSymbol, SymbolKind

from tcc.editor.positions import Places
from tcc_certs.plain import escaped
from tcc_compiler.editing.project import Project, statement_ends
from tcc_compiler.language.ast.statements import (
    GrammarStatement,
    PlanStatement,
    RuleStatement,
    Statement,
    ToolStatement,
)
from tcc_compiler.language.spans import Region


def outline(project: Project, places: Places) -> list[DocumentSymbol]:
    """The grammar, its tools with their parameters, its rules and its plan."""
    ends = statement_ends(project.sources[0])
    root = [statement for statement in project.statements if statement.region.source == 0]
    return [
        symbol
        for statement in root
        for symbol in _symbols(statement, _whole(statement.region, ends), places)
    ]


def _whole(region: Region, ends: Mapping[int, int]) -> Region:
    return Region(region.source, region.start, ends.get(region.start, region.end))


def _symbols(statement: Statement, whole: Region, places: Places) -> Iterator[DocumentSymbol]:
    match statement:
        case GrammarStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Module, whole, name.region, places)
        case ToolStatement():
            name = statement.name
            made = _symbol(name.text, SymbolKind.Function, whole, name.region, places)
            made.children = [
                _symbol(p.name.text, SymbolKind.Field, p.name.region, p.name.region, places)
                for p in (*statement.parameters, *statement.opened, *statement.observed)
            ]
            yield made
        case RuleStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Variable, whole, name.region, places)
        case PlanStatement():
            word = Region(whole.source, whole.start, whole.start + len("plan"))
            yield _symbol("plan", SymbolKind.Constant, whole, word, places)
        case _:
            pass


def _symbol(
    name: str, kind: SymbolKind, region: Region, chosen: Region, places: Places
) -> DocumentSymbol:
    return DocumentSymbol(
        name=escaped(name) or '""',
        kind=kind,
        range=places.range(region.start, region.end),
        selection_range=places.range(chosen.start, chosen.end),
    )
