"""Refresh an import: add new tools and fields to an author's grammar.

The author's text is kept. New tools and new fields are added, with the types of their schemas.
Tools and fields that have disappeared or changed are reported but kept: statements may use them,
and the author may have narrowed a type on purpose.
Specification: docs/spec/imports.md, section 2. Cost: linear in the grammar and in the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tcc_compiler.frozen import frozen
from tcc_compiler.imports.mcp_grammar import ToolDeclaration, set_text, sets_of
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import Source
from tcc_compiler.layout.format import format_text
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Token, Tree, text_of


@frozen
class Change:
    """A difference between a grammar and the current tools.

    Attributes:
        kind: ``came``, ``went`` or ``changed``.
        tool: the name of the tool.
        field: the name of the argument or answer; empty for the tool itself.
        old, new: the declarations; empty where there is none.
    """

    kind: Literal["came", "went", "changed"]
    tool: str
    field: str = ""
    old: str = ""
    new: str = ""


@frozen
class Refreshed:
    """A refreshed grammar.

    Attributes:
        text: the new text; empty if the grammar has syntax errors.
        changes: in the order of the tools' names.
        diagnostics: the syntax errors.
    """

    text: str
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def refreshed(source: Source, tools: Sequence[ToolDeclaration]) -> Refreshed:
    """Return the grammar of a source with everything that is new in the tools."""
    report = Report([source])
    statements = parse(source, 0, report).statements
    if report.failed:
        return Refreshed(text="", diagnostics=report.diagnostics())
    text = source.text
    known = {_name(tree): tree for tree in statements if tree.kind == "tool"}
    current = {tool.name: tool for tool in tools}
    changes: list[Change] = []
    edits: list[tuple[int, str]] = []
    added: list[str] = []
    for name in sorted({*known, *current}):
        if name not in known:
            changes.append(Change(kind="came", tool=name, new=current[name].head))
            added += [current[name].text(), *current[name].statements()]
        elif name not in current:
            changes.append(Change(kind="went", tool=name, old=text_of(known[name], text)))
        else:
            more, edit = _compared(text, known[name], current[name])
            changes += more
            edits += edit
    if added:
        after = max([tree.end for tree in known.values()], default=len(text))
        edits.append((after, "\n\n" + "\n".join(added)))
    lets = {_name(tree): tree for tree in statements if tree.kind == "let"}
    for word, names in sets_of(tools).items():
        if word in lets:
            tree = lets[word]
            edits.append((tree.end, ""))
            text, edits = _replaced(text, edits, tree, set_text(word, names))
    for at, inserted in sorted(edits, reverse=True):
        text = text[:at] + inserted + text[at:]
    return Refreshed(text=format_text(text).text or text, changes=tuple(changes))


def _replaced(
    text: str, edits: Sequence[tuple[int, str]], tree: Tree, new: str
) -> tuple[str, list[tuple[int, str]]]:
    """Return the text with a statement replaced, and the edits moved accordingly."""
    grown = len(new) - (tree.end - tree.start)
    moved = [(at + grown if at >= tree.end else at, inserted) for at, inserted in edits]
    return text[: tree.start] + new + text[tree.end :], moved


def _compared(
    text: str, tree: Tree, tool: ToolDeclaration
) -> tuple[list[Change], list[tuple[int, str]]]:
    """Return how the arguments and answers of a tool differ, and the edits to insert new ones."""
    changes: list[Change] = []
    edits: list[tuple[int, str]] = []
    name = tree.trees("name")[0]
    arguments, answers = tree.tree("fields"), tree.tree("gives")
    current = {one.name: one.text for one in tool.parameters}
    edits += _fields(text, arguments, current, tool.name, name.end, "", changes)
    if answers is None or answers.trees("field") or not answers.tokens("NAME"):
        end = arguments.end if arguments is not None else name.end
        known = {_field_name(one): one for one in tool.answers}
        edits += _fields(text, answers, known, tool.name, end, " gives ", changes)
    return changes, edits


def _fields(
    text: str, tree: Tree | None, current: Mapping[str, str], tool: str, end: int, word: str,
    changes: list[Change],
) -> list[tuple[int, str]]:  # fmt: skip
    known = {} if tree is None else {_name(one): one for one in tree.trees("field")}
    came = []
    for name in dict.fromkeys([*known, *current]):
        old = text_of(known[name], text) if name in known else ""
        if name not in current:
            changes.append(Change(kind="went", tool=tool, field=name, old=old))
        elif name not in known:
            came.append(current[name])
            changes.append(Change(kind="came", tool=tool, field=name, new=current[name]))
        elif _plain(old) != _plain(current[name]):
            changes.append(
                Change(kind="changed", tool=tool, field=name, old=old, new=current[name])
            )
    if not came:
        return []
    if tree is None:
        return [(end, f"{word}({', '.join(came)})")]
    inside = f", {', '.join(came)}" if known else ", ".join(came)
    return [(tree.end - 1, inside)]


def _plain(text: str) -> str:
    return "".join(text.split())


def _name(tree: Tree) -> str:
    token = tree.trees("name")[0].parts[0]
    return name_value(token) if isinstance(token, Token) else ""


def _field_name(text: str) -> str:
    """Return the name at the start of a declared field."""
    if text.startswith("`"):
        return text[1 : text.index("`", 1)]
    return text.partition(":")[0].rstrip("?")
