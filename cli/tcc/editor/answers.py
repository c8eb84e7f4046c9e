"""What an editor is answered about a name: its text, its declaration and uses, and the outline.

Nothing here reads a text; a question is about what was read last.  Protocol: LSP 3.17.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from lsprotocol.types import DocumentSymbol, SymbolKind
from pygls import uris

from tcc import screen
from tcc.describe import bounds_plans
from tcc.editor import Diagnosed, Places, QuestionTime, Rooted, Texts, grammars_with
from tcc_certs.errors import escaped
from tcc_certs.formats.codec import written
from tcc_certs.policy.type_texts import name_text
from tcc_compiler.editing.project import Occurrence, Project, Statement
from tcc_compiler.editing.renaming import NotRenamed, renamed
from tcc_compiler.language.source import Region, Source
from tcc_compiler.lint.declared import fields_of, name_of
from tcc_compiler.names.types import signed
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of
from tcc_runtime.artifact.load import Artifact

MOST_EDGES = 100_000
_MOST_BITS = 4096  # of a number of plans that is worked with
_MOST_SHOWN = 2000
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def hover_text(project: Project, found: Occurrence, counted: tuple[int, int] | None) -> str | None:
    """The text to show, in Markdown; None if there is nothing to say.

    Args:
        counted: of a tool, the answer of :func:`plans_with`; None if it is not known.
    """
    kind, key = found.kind, found.key
    if kind == "value":
        kind, key = "parameter", key[:2]
    declaration = project.declaration(kind, key)
    if declaration is None:
        return None
    match kind:
        case "tool":
            return _tool(project, declaration, counted)
        case "rule" | "let" | "shape" | "attribute":
            return _fenced(project, declaration.region)
        case "parameter":
            return _field(project, declaration, *key)
        case _:
            return None


def _tool(project: Project, tool: Statement, counted: tuple[int, int] | None) -> str:
    parts = [_fenced(project, tool.region)]
    for block in tool.tree.trees("block"):
        for doc in block.trees("doc"):
            text = string_value(doc.tokens("STRING")[0].text)
            parts.append(_MARKS.sub(r"\\\1", escaped(text[:_MOST_SHOWN])))
    calls = _calls(tool.tree)
    said = [f"{calls} call{'' if calls == '1' else 's'}"]
    if counted is not None:
        some, every = map(screen.big, counted)
        said.append(f"in {some} of {every} plans")
    return "\n\n".join([*parts, ", ".join(said)])


def _field(project: Project, tool: Statement, owner: str, name: str) -> str | None:
    for field in fields_of(tool.tree):
        if name_of(field.trees()[0]) == name:
            region = region_of(field, tool.number)
            return f"field of `{name_text(owner)}`\n\n{_fenced(project, region)}"
    return None


def _fenced(project: Project, region: Region) -> str:
    source: Source = project.sources[region.source]
    text = source.text[region.start : region.end][:_MOST_SHOWN]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(escaped(line) for line in text.splitlines())
    return f"{fence}tcg\n{shown}\n{fence}"


def _calls(tool: Tree) -> str:
    """How many calls a tool stands for: the product of the values of its listed fields."""
    calls = 1
    for field in fields_of(tool):
        domain = field.trees()[1]
        match domain.kind:
            case "listed":
                size = len(domain.trees()[0].trees())
            case "listed_or_other":
                size = len(domain.trees()[0].trees()) + 1
            case "listed_range":
                low, high = map(signed, domain.trees())
                size = max(0, int(high) - int(low) + 1)
            case _:
                continue
        calls *= size + field.has("?")
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
    """The grammar, its tools with their fields, its rules, `let`s, attributes, and its plan."""
    root = [one for one in project.statements if one.number == 0]
    return [symbol for one in root for symbol in _symbols(one.tree, places)]


_NAMED = {
    "header": SymbolKind.Module,
    "tool": SymbolKind.Function,
    "shape": SymbolKind.Struct,
    "rule": SymbolKind.Variable,
    "let": SymbolKind.Variable,
    "learned": SymbolKind.Property,
}


def _symbols(tree: Tree, places: Places) -> Iterator[DocumentSymbol]:
    if tree.kind == "plan":
        yield _symbol("plan", SymbolKind.Constant, tree, tree.parts[0], places)
    elif tree.kind == "given":
        for field in tree.trees("field"):
            name = field.trees()[0]
            yield _symbol(name_of(name), SymbolKind.Property, field, name, places)
    elif tree.kind in _NAMED:
        names: list[Part] = [*tree.tokens("NAME"), *tree.trees("name")]
        chosen = names[0]
        text = chosen.text if isinstance(chosen, Token) else name_of(chosen)
        made = _symbol(text, _NAMED[tree.kind], tree, chosen, places)
        if tree.kind == "tool":
            made.children = [
                _symbol(name_of(label), SymbolKind.Field, label, label, places)
                for label in [field.trees()[0] for field in fields_of(tree)]
            ]
        yield made


def _symbol(
    name: str, kind: SymbolKind, whole: Part, chosen: Part, places: Places
) -> DocumentSymbol:
    return DocumentSymbol(
        name=escaped(name) or '""',
        kind=kind,
        range=places.range(whole.start, whole.end),
        selection_range=places.range(chosen.start, chosen.end),
    )
