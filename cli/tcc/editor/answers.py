"""What an editor is answered about a name: its text, its declaration and uses, and the outline.

Nothing here reads a text; a question is about what was read last.  Protocol: LSP 3.17.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lsprotocol import types
from lsprotocol.types import DocumentSymbol, SymbolKind
from pygls import uris

from tcc import screen
from tcc.describe import bounds_plans
from tcc.editor import Diagnosed, Places, QuestionTime, Rooted, Texts, grammars_with
from tcc_certs.errors import escaped
from tcc_certs.formats.codec import written
from tcc_compiler.editing.project import Occurrence, Project, statement_ends
from tcc_compiler.editing.renaming import NotRenamed, renamed
from tcc_compiler.language import ast
from tcc_compiler.language.source import Region, Source
from tcc_runtime.artifact.load import Artifact

MOST_EDGES = 100_000
_MOST_BITS = 4096  # of a number of plans that is worked with
_MOST_SHOWN = 2000
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def hover_text(project: Project, found: Occurrence, counted: tuple[int, int] | None) -> str | None:
    """What is to be shown, in Markdown; None where there is nothing to say.

    Args:
        counted: of a tool, what :func:`plans_with` says; None where that is not known.
    """
    match found.kind:
        case "tool":
            tool = project.tool(found.key[0])
            return None if tool is None else _tool(project, tool, counted)
        case "rule":
            rules = (s for s in project.statements if isinstance(s, ast.RuleStatement))
            rule = next((rule for rule in rules if rule.name.text == found.key[0]), None)
            return None if rule is None else _statement(project, rule.region)
        case "parameter" | "value":
            return _parameter(project, found.key[0], found.key[1])
        case "attribute":
            places = project.all_of(found.kind, found.key)
            region = next((place.region for place in places if place.defines), None)
            around = () if region is None else project.statements
            attributes = (s for s in around if isinstance(s, ast.GivenStatement | ast.LetStatement))
            stated = (one.region for one in attributes if _holds(one.region, region))
            return next((_statement(project, whole) for whole in stated), None)
        case _:
            return None


def _tool(project: Project, tool: ast.ToolStatement, counted: tuple[int, int] | None) -> str:
    parts = [_statement(project, tool.region)]
    for attribute in tool.attributes:
        if isinstance(attribute, ast.Doc):
            parts.append(_MARKS.sub(r"\\\1", escaped(attribute.text.value[:_MOST_SHOWN])))
    calls = _calls(tool)
    said = [f"{calls} call{'' if calls == '1' else 's'}"]
    if counted is not None:
        some, every = map(screen.big, counted)
        said.append(f"in {some} of {every} plans")
    return "\n\n".join([*parts, ", ".join(said)])


def _parameter(project: Project, owner: str, name: str) -> str | None:
    tool = project.tool(owner)
    if tool is None:
        return None
    for parameter in (*tool.parameters, *tool.opened, *tool.observed, *tool.answers):
        if parameter.name.text == name:
            region = _declaration(parameter)
            return f"parameter of `{written(owner)}`\n\n{_fenced(project, region)}"
    return None


def _declaration(parameter: ast.ParameterDeclaration | ast.OpenDeclaration) -> Region:
    """The characters of a parameter with its values or its type."""
    if isinstance(parameter, ast.ParameterDeclaration):
        return parameter.name.region.to(parameter.domain.region)
    return parameter.name.region.to(
        parameter.made.region if parameter.at is None else parameter.at.region
    )


def _holds(whole: Region, part: Region | None) -> bool:
    """Whether a place lies in another."""
    if part is None or part.source != whole.source:
        return False
    return whole.start <= part.start and part.end <= whole.end


def _statement(project: Project, region: Region) -> str:
    """A statement as it is written, from its word to its last token."""
    end = statement_ends(project.sources[region.source]).get(region.start, region.end)
    return _fenced(project, Region(region.source, region.start, end))


def _fenced(project: Project, region: Region) -> str:
    source: Source = project.sources[region.source]
    text = source.text[region.start : region.end][:_MOST_SHOWN]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(escaped(line) for line in text.splitlines())
    return f"{fence}tcg\n{shown}\n{fence}"


def _calls(tool: ast.ToolStatement) -> str:
    """How many calls a tool stands for: the product of its listed and observed values."""
    calls = 1
    for parameter in (*tool.parameters, *tool.opened, *tool.observed):
        domain = getattr(parameter, "domain", None)
        if not isinstance(domain, ast.Domain):
            continue
        size = len(domain.values)
        if domain.ends is not None:
            size = max(0, int(domain.ends[1].value) - int(domain.ends[0].value) + 1)
        calls *= size + parameter.optional
        if calls.bit_length() > _MOST_BITS:
            return "very many"
    return screen.big(calls)


def current_artifact(sources: Sequence[str], diagnosed: Diagnosed) -> Artifact | None:
    """What the texts of a grammar compile to; None where others were compiled, or none."""
    linted = diagnosed.linted
    if linted is None or linted.artifact is None:
        return None
    same = list(sources) == [source.text for source in linted.sources.values()]
    return linted.artifact if same else None


def plans_with(artifact: Artifact, tool: str) -> tuple[int, int] | None:
    """How many plans call a tool, and how many there are; None where that is not exact, or dear."""
    rows = artifact.automaton
    if bounds_plans(artifact) or len(rows.edge_call) > MOST_EDGES:
        return None
    name = written(tool)
    mine = [text == name or text.startswith(f"{name}(") for text in artifact.texts]
    every, without = [0] * rows.states, [0] * rows.states
    for q in range(rows.states):
        every[q] = without[q] = int(rows.accept[q] != 0)
        for at in range(rows.edge_start[q], rows.edge_start[q + 1]):
            target = rows.edge_target[at]
            every[q] += every[target]
            if not mine[rows.edge_call[at]]:
                without[q] += without[target]
        if every[q].bit_length() > _MOST_BITS:
            return None
    return every[-1] - without[-1], every[-1]


# Declaration, references and rename, in all grammars that use the file.


def definitions(mine: Rooted, found: Occurrence, texts: Texts) -> list[types.Location]:
    """Where a name is declared; of the path of a used file, that file."""
    if found.kind == "file":
        return _file(mine, found)
    places = mine.project.all_of(found.kind, found.key)
    return [_location(mine, place, texts) for place in places if place.defines]


def _file(mine: Rooted, found: Occurrence) -> list[types.Location]:
    here = mine.project.sources[found.region.source].path
    if here is None:
        return []
    try:
        target = Path(os.path.realpath(here.parent / found.key[0]))
    except (OSError, ValueError):
        return []
    if all(source.path != target for source in mine.project.sources):
        return []
    zero = types.Position(line=0, character=0)
    uri = uris.from_fs_path(str(target))
    return [types.Location(uri=uri, range=types.Range(start=zero, end=zero))] if uri else []


def references(
    mine: Rooted, found: Occurrence, texts: Texts, budget: QuestionTime, *, declared: bool
) -> list[types.Location]:
    """Every place where a name stands, in all grammars that have its declaration.

    Args:
        declared: whether those where it is declared are among them.
    """
    rooted, _ = grammars_with(mine, _home(mine, found), texts, budget)
    made: dict[tuple[str, int, int], types.Location] = {}
    for one in rooted:
        for place in one.project.all_of(found.kind, found.key):
            if declared or not place.defines:
                at = _location(one, place, texts)
                key = (at.uri, at.range.start.line, at.range.start.character)
                made.setdefault(key, at)
    return list(made.values())


def rename(
    mine: Rooted, found: Occurrence, name: str, texts: Texts, budget: QuestionTime
) -> types.WorkspaceEdit:
    """The edits that give a tool or a rule another name, in all grammars that have it.

    Raises:
        NotRenamed: it may not be, and why.
    """
    rooted, complete = grammars_with(mine, _home(mine, found), texts, budget)
    if not complete:
        raise NotRenamed("too many files may have this name; rename it with your own tools")
    edits = renamed([one.project for one in rooted], found, name)
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri = texts.uri(edit.source, mine.document)
        where = texts.places(edit.source.text).range(edit.start, edit.end)
        changes.setdefault(uri, []).append(types.TextEdit(range=where, new_text=edit.text))
    return types.WorkspaceEdit(changes=changes)


def _home(mine: Rooted, found: Occurrence) -> Path | None:
    """The file in which a name is declared, else that in which it stands."""
    owner = [o for o in mine.project.all_of(found.kind, found.key) if o.defines]
    place = owner[0] if owner else found
    return mine.project.sources[place.region.source].path


def _location(one: Rooted, place: Occurrence, texts: Texts) -> types.Location:
    source = one.project.sources[place.region.source]
    where = texts.places(source.text).range(place.region.start, place.region.end)
    return types.Location(uri=texts.uri(source, one.document), range=where)


# Outline: the named statements of a document.


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


def _symbols(statement: ast.Statement, whole: Region, places: Places) -> Iterator[DocumentSymbol]:
    match statement:
        case ast.GrammarStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Module, whole, name.region, places)
        case ast.ToolStatement():
            name = statement.name
            made = _symbol(name.text, SymbolKind.Function, whole, name.region, places)
            made.children = [
                _symbol(p.name.text, SymbolKind.Field, p.name.region, p.name.region, places)
                for p in (*statement.parameters, *statement.opened, *statement.observed)
            ]
            yield made
        case ast.RuleStatement():
            name = statement.name
            yield _symbol(name.text, SymbolKind.Variable, whole, name.region, places)
        case ast.PlanStatement():
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
