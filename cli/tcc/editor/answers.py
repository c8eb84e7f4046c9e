"""Answers about names and statements: hover, definition, references, rename, outline.

Each answer uses a grammar that was already read.  Protocol: LSP 3.17.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from lsprotocol.types import DocumentSymbol, SymbolKind
from pygls import uris

from tcc import screen
from tcc.describe import bounds_plans
from tcc.editor import Diagnosed, Places, QuestionTime, Rooted, Texts, grammars_with
from tcc_certs.errors import escaped
from tcc_certs.formats.codec import written
from tcc_certs.policy.listing import listed_statements
from tcc_certs.policy.nodes import statement_text
from tcc_certs.policy.type_texts import field_text, name_text
from tcc_compiler.editing.project import Key, Occurrence, Project, Statement
from tcc_compiler.editing.renaming import NotRenamed, renamed
from tcc_compiler.editing.sentences import sentence
from tcc_compiler.language.source import Region, Source
from tcc_compiler.lint.declared import fields_of, name_of
from tcc_compiler.names.statements import Stated
from tcc_compiler.names.types import signed
from tcc_compiler.syntax.tokens import string_value
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of
from tcc_runtime.artifact.load import Artifact

MOST_EDGES = 100_000
_MOST_BITS = 4096  # bits in a number of plans
_MOST_SHOWN = 2000
_MOST_STATED = 4  # statements shown at a place, and declarations shown for a name
_MOST_FIELDS = 12
_ESCAPED = r"\\\1"
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The place that enforces a statement.

    Attributes:
        place: ``automaton``, ``gate`` or ``both``.
        part: for ``both``, the text of the automaton's part, with ``_`` for the other conditions.
    """

    place: str
    part: str | None


_HELD = {
    "automaton": "held by the automaton: plans keep it",
    "gate": "held by the gate: it decides each call",
    "both": "held by both: the gate decides each call, and plans keep",
}


def hover_text(
    project: Project,
    offset: int,
    counted: tuple[int, int] | None = None,
    held: Mapping[str, Held] | None = None,
) -> str | None:
    """Return the hover text at an offset, in Markdown; None without a name or a statement there.

    Args:
        counted: for a tool, the result of :func:`plans_with`; None if unknown.
        held: the known places of statements, by statement text.
    """
    found = project.at(offset)
    parts = [] if found is None else _declarations(project, found, counted)
    stated = project.stated_at(offset)[:_MOST_STATED]
    for one in stated:
        parts.append(_stated(project, one, held or {}))
    if stated:
        parts += _scope(project, offset)
    return "\n\n".join(parts) or None


def _declarations(
    project: Project, found: Occurrence, counted: tuple[int, int] | None
) -> list[str]:
    """Return the declarations of a name in Markdown, each once."""
    said: dict[str, None] = {}
    for one in project.all_at(found)[:_MOST_STATED]:
        kind, key = one.kind, one.key
        if kind == "value":
            kind, key = "field", key[:-1]
            if key[0] == "given":
                kind, key = "attribute", key[1:]
        declaration = project.declaration(kind, key)
        if declaration is None:
            continue
        match kind:
            case "tool":
                said[_tool(project, declaration, counted)] = None
            case "field":
                said[_field(project, declaration, key)] = None
            case "local":
                said[_local(project, declaration, key)] = None
            case "rule" | "let" | "shape" | "attribute":
                said[_fenced(project, declaration.region)] = None
    return list(said)


def _stated(project: Project, one: Stated, held: Mapping[str, Held]) -> str:
    """Return a statement in words, with its reason and the place that enforces it."""
    statement = one.statement
    said = sentence(statement, project.words.meanings)
    lines = [_cut(said)]
    if statement.because is not None:
        lines.append(f"Because: *{_MARKS.sub(_ESCAPED, escaped(_cut(statement.because)))}*")
    where = held.get(statement_text(statement))
    if where is not None:
        part = f" `{_cut(where.part)}`" if where.part is not None else ""
        lines.append(f"Place: **{where.place}**, {_HELD[where.place]}{part}")
    return "\n\n".join(lines)


def _scope(project: Project, offset: int) -> list[str]:
    """Return the fields that a condition at this offset may name."""
    own, this = project.fields_at(offset)
    said = []
    for title, fields in (("Fields in scope", own), ("Fields of this call, behind `this.`", this)):
        if fields:
            texts = [f"`{_cut(field_text(one), 80)}`" for one in fields[:_MOST_FIELDS]]
            more = ["…"] if len(fields) > _MOST_FIELDS else []
            said.append(f"{title}: {', '.join([*texts, *more])}")
    return said


def _cut(text: str, most: int = _MOST_SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _tool(project: Project, tool: Statement, counted: tuple[int, int] | None) -> str:
    parts = [_fenced(project, tool.region)]
    for block in tool.tree.trees("block"):
        for doc in block.trees("doc"):
            text = string_value(doc.tokens("STRING")[0].text)
            parts.append(_MARKS.sub(_ESCAPED, escaped(text[:_MOST_SHOWN])))
    calls = _calls(tool.tree)
    said = [f"{calls} call{'' if calls == '1' else 's'}"]
    if counted is not None:
        some, every = map(screen.big, counted)
        said.append(f"in {some} of {every} plans")
    return "\n\n".join([*parts, ", ".join(said)])


def _field(project: Project, owner: Statement, key: Key) -> str:
    """Return a field's declaration, and the tool or shape that has the field."""
    (place,) = [one for one in project.all_of("field", key) if one.defines][:1]
    tree = _field_tree(owner.tree, place.region.start)
    kind, name = key[:2]
    inside = "".join(f".{part}" for part in key[2:-1])
    told = f"field of {kind} `{name_text(name)}{inside}`"
    return told if tree is None else f"{told}\n\n{_fenced(project, region_of(tree, owner.number))}"


def _field_tree(tree: Tree, start: int) -> Tree | None:
    """Return the declaration of the field whose name starts at an offset, or None."""
    todo = [tree]
    while todo:
        one = todo.pop()
        if one.kind == "field" and one.start == start:
            return one
        todo += [part for part in one.trees() if part.start <= start < part.end]
    return None


def _local(project: Project, owner: Statement, key: Key) -> str:
    """Return the declaration of a block's `let`, or a note that the name is a parameter."""
    (place,) = [one for one in project.all_of("local", key) if one.defines][:1]
    for let in (owner.tree, *owner.tree.trees("let")):
        if let.kind == "let" and let.start <= place.region.start < let.end:
            return _fenced(project, region_of(let, owner.number))
    return f"parameter `{name_text(key[0])}`"


def _fenced(project: Project, region: Region) -> str:
    source: Source = project.sources[region.source]
    text = source.text[region.start : region.end][:_MOST_SHOWN]
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(escaped(line) for line in text.splitlines())
    return f"{fence}tcg\n{shown}\n{fence}"


def _calls(tool: Tree) -> str:
    """Return the number of calls of a tool: the product of the sizes of its listed fields."""
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


def is_current(sources: Sequence[str], diagnosed: Diagnosed) -> bool:
    """Return whether a grammar was diagnosed with exactly these texts."""
    linted = diagnosed.linted
    if linted is None:
        return False
    return list(sources) == [source.text for source in linted.sources.values()]


def held_of(diagnosed: Diagnosed) -> dict[str, Held]:
    """Return the places of a grammar's statements by text; empty if the grammar has errors."""
    core = None if diagnosed.linted is None else diagnosed.linted.core
    listed = () if core is None else listed_statements(core)
    return {one.text: Held(place=one.place, part=one.holds) for one in listed}


def plans_with(artifact: Artifact, tool: str) -> tuple[int, int] | None:
    """Return the numbers of plans that call a tool and of all plans.

    Returns:
        None if the counts are not exact, or if counting is too expensive.
    """
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


# Definition, references and rename, in all grammars that use the file.


def definitions(mine: Rooted, found: Occurrence, texts: Texts) -> list[types.Location]:
    """Return the declaration of a name; for the path of a used file, the start of that file."""
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
    """Return all places of a name, in all grammars that use the file of its declaration.

    Args:
        declared: whether to include the declaration.

    Raises:
        QuestionTimeout: the time of `budget` is over.
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
    """Return the edits that rename something in all grammars that use the file of its declaration.

    Raises:
        NotRenamed: the name cannot be changed; the text of the error says why.
        QuestionTimeout: the time of `budget` is over.
    """
    homes: list[Path | None] = [_home(mine, found)]
    searched: set[Path | None] = {None}
    rooted: dict[str, Rooted] = {}
    while True:
        searched.update(homes)
        for home in homes:
            more, complete = grammars_with(mine, home, texts, budget)
            if not complete:
                raise NotRenamed("too many files may have this name; rename it with your own tools")
            rooted |= {one.document.uri: one for one in more}
        edits = renamed([one.project for one in rooted.values()], found, name)
        # Fields that must be renamed together may be declared in several files.
        roots = {one.document.path for one in rooted.values()}
        files = {edit.source.path for edit in edits} - {*roots, *homes, None}
        if not files:
            break
        homes += sorted(path for path in files if path is not None)
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri = texts.uri(edit.source, mine.document)
        where = texts.places(edit.source.text).range(edit.start, edit.end)
        changes.setdefault(uri, []).append(types.TextEdit(range=where, new_text=edit.text))
    return types.WorkspaceEdit(changes=changes)


def _home(mine: Rooted, found: Occurrence) -> Path | None:
    """Return the file of a name's declaration; without a declaration, the file of the name."""
    owner = [o for o in mine.project.all_of(found.kind, found.key) if o.defines]
    place = owner[0] if owner else found
    return mine.project.sources[place.region.source].path


def _location(one: Rooted, place: Occurrence, texts: Texts) -> types.Location:
    source = one.project.sources[place.region.source]
    where = texts.places(source.text).range(place.region.start, place.region.end)
    return types.Location(uri=texts.uri(source, one.document), range=where)


# Outline.


def outline(project: Project, places: Places) -> list[DocumentSymbol]:
    """Return the symbols of a grammar: tools, fields, shapes, attributes, `let`s, rules, plan."""
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
