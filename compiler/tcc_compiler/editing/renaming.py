"""Edits of texts: renaming something in every file, and allowing a lint by a comment.

After a renaming the new texts are read again. They must have the same names at the same places,
except for the new name, and no additional mistakes. Otherwise the renaming is refused with a
reason.
Cost: compiling the grammars twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from tcc_certs.errors import hidden_in
from tcc_certs.formats.codec import MAX_NAME, is_identifier
from tcc_certs.policy.nodes import Name, written
from tcc_compiler.editing.project import Key, Kind, Occurrence, Project, changed, read_project
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, quote
from tcc_compiler.language.source import Source, Unreadable, read_bytes, source_of
from tcc_compiler.lint.allowances import Allowances
from tcc_compiler.lint.finding import Edit
from tcc_compiler.names.compile import compile_source


class NotRenamed(Exception):
    """Raised if a name cannot be changed; the message says why and what to do."""


@frozen
class Renaming:
    """An edit: replace the characters `start` to `end` of a source with `text`."""

    source: Source
    start: int
    end: int
    text: str


RENAMED: frozenset[Kind] = frozenset(
    {"tool", "rule", "let", "local", "shape", "field", "attribute"}
)
# Kinds of names that the language writes without backticks.
_BARE: frozenset[Kind] = frozenset({"rule", "shape"})
# Groups of kinds: within a group no two declarations may have the same name.
_TOGETHER: Sequence[frozenset[Kind]] = (
    frozenset({"tool", "rule", "let"}), frozenset({"shape"}), frozenset({"attribute"}),
)  # fmt: skip
_Names = frozenset[tuple[Kind, Key]]


def renamed(projects: Sequence[Project], found: Occurrence, name: str) -> tuple[Renaming, ...]:
    """Return the edits that give something another name.

    If one word means several fields, such as the fields of both calls in `same order`, all of them
    are renamed.

    Args:
        projects: every grammar that uses the file with the declaration.
        found: one place of the name.
        name: the new name.

    Raises:
        NotRenamed: the name cannot be used, or a text has mistakes.
    """
    if found.kind not in RENAMED:
        raise NotRenamed(f"this is a {found.kind}, which has no declared name to change")
    _check_name(found.kind, name)
    names = _linked(projects, found)
    for project in projects:
        _check_project(project, names, name)
    bare = written([Name(name)])
    edits = _edits(projects, names, bare)
    try:
        _check_same(projects, names, name, edits)
    except NotRenamed:
        if bare != name or found.kind in _BARE:
            raise
        # At some place the word may mean something else; in backticks it is always a name.
        edits = _edits(projects, names, f"`{name}`")
        _check_same(projects, names, name, edits)
    return edits


def _linked(projects: Sequence[Project], found: Occurrence) -> _Names:
    """Return the names to rename together: all fields that some word means at the same time."""
    names = {(found.kind, found.key)}
    if found.kind != "field":
        return frozenset(names)
    while True:
        regions = {
            (at, one.region)
            for at, project in enumerate(projects)
            for one in project.occurrences
            if (one.kind, one.key) in names
        }
        more = {
            (one.kind, one.key)
            for at, project in enumerate(projects)
            for one in project.occurrences
            if one.kind == "field" and (at, one.region) in regions
        }
        if more <= names:
            return frozenset(names)
        names |= more


def _check_name(kind: Kind, name: str) -> None:
    hidden = hidden_in(name)
    if not 1 <= len(name) <= MAX_NAME:
        raise NotRenamed(f"a name has 1 to {MAX_NAME} characters, and this one has {len(name)}")
    if "`" in name:
        raise NotRenamed("a name that contains a backtick cannot be written")
    if hidden is not None:
        raise NotRenamed(f"the name holds U+{ord(hidden):04X}, a control or hidden character")
    if kind in _BARE and not is_identifier(name):
        raise NotRenamed(
            f"{quote(name)} cannot name a {kind}: write letters, digits and _, no digit first"
        )


def _check_project(project: Project, names: _Names, name: str) -> None:
    file = project.sources[0].name
    if not project.whole:
        raise NotRenamed(f"{file} has syntax errors, or uses a file that is not there: correct it")
    for kind, key in names:
        for together in _TOGETHER:
            for other in sorted(together) if kind in together else ():
                if (name,) in project.defined(other) and (name,) != key:
                    message = f"{file} has a {other} {quote(name)} already; choose another name"
                    raise NotRenamed(message)
        places = project.all_of(kind, key)
        if places and not any(one.defines for one in places):
            raise NotRenamed(f"{file} declares no {kind} {quote(name_in(kind, key))}")


def name_in(kind: Kind, key: Key) -> str:
    """Return the name that a key is about."""
    return key[0] if kind == "local" else key[-1]


def _edits(projects: Sequence[Project], names: _Names, text: str) -> tuple[Renaming, ...]:
    made: dict[tuple[Path | str, int], Renaming] = {}
    for project in projects:
        for place in project.occurrences:
            if (place.kind, place.key) not in names:
                continue
            source = project.sources[place.region.source]
            start, end = place.region.start, place.region.end
            made.setdefault(
                (source.path or source.name, start),
                Renaming(source=source, start=start, end=end, text=text),
            )
    return tuple(made.values())


def _check_same(
    projects: Sequence[Project], names: _Names, name: str, edits: Sequence[Renaming]
) -> None:
    """Check that the edited texts have the same names but the new one, and no new mistakes."""
    for project in projects:
        after = _edited(project, edits)
        file = project.sources[0].name
        before = _places([_told(one, names, name) for one in project.occurrences], project)
        if after is None or not after.whole or before != _places(
            [(one.kind, one.key, one.defines) for one in after.occurrences], after
        ):  # fmt: skip
            raise NotRenamed(f"{file} would not say the same with {quote(name)}; choose another")
        mistakes = _mistakes(after) - _mistakes(project)
        if mistakes:
            said = sorted(mistakes)[0]
            raise NotRenamed(
                f"{file} would have mistakes with {quote(name)}, such as {said}; choose another"
            )


_Told = tuple[Kind, Key, bool]


def _places(told: Sequence[_Told], project: Project) -> list[frozenset[_Told]]:
    """Return the set of names at each place, in the order of the text."""
    found: dict[tuple[int, int], set[_Told]] = {}
    for one, place in zip(told, project.occurrences, strict=True):
        found.setdefault((place.region.source, place.region.start), set()).add(one)
    return [frozenset(some) for some in found.values()]


def _mistakes(project: Project) -> Counter[str]:
    """Return the codes of a grammar's errors, counted; none for a file that other grammars use."""
    if project.is_part:
        return Counter()
    root = project.sources[0]
    held = {source.path: source.text for source in project.sources if source.path is not None}

    def read(path: Path, limit: int) -> bytes | Unreadable:
        text = held.get(path)
        return read_bytes(path, limit) if text is None else text.encode()

    compiled = compile_source(root.text, root.name, path=root.path, read=read)
    return Counter([one.code for one in compiled.diagnostics if one.severity == "error"])


def _edited(project: Project, edits: Sequence[Renaming]) -> Project | None:
    root = project.sources[0]
    texts: dict[Path, str] = {}
    for source in project.sources:
        mine = [edit for edit in edits if _same_file(edit.source, source)]
        if source is root and root.path is None:
            return changed_text(project, _applied(source.text, mine))
        if source.path is not None:
            texts[source.path] = _applied(source.text, mine)
    return changed(project, texts)


def changed_text(project: Project, text: str) -> Project | None:
    """Return the project of another text, for a project that is one text without a file."""
    return read_project(text, None, project.sources[0].name)


def _same_file(one: Source, other: Source) -> bool:
    return (one.path or one.name) == (other.path or other.name)


def _applied(text: str, edits: Sequence[Renaming]) -> str:
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _told(found: Occurrence, names: _Names, name: str) -> _Told:
    """Return the kind, key and role of an occurrence as they are after the renaming."""
    kind, key = found.kind, found.key
    for changed_kind, old in names:
        match changed_kind:
            case "tool" | "shape" | "attribute":
                owner = "given" if changed_kind == "attribute" else changed_kind
                if kind == changed_kind and key == old:
                    key = (name,)
                elif kind in ("field", "value") and key[:2] == (owner, *old):
                    key = (owner, name, *key[2:])
            case "field":
                if kind in ("field", "value") and key[: len(old)] == old:
                    key = (*old[:-1], name, *key[len(old) :])
            case "local":
                key = (name, old[1]) if (kind, key) == (changed_kind, old) else key
            case _:
                key = (name,) if (kind, key) == (changed_kind, old) else key
    return kind, key, found.defines


# ``# lint: allow CODE``, added to the comment of the line if there is one (docs/lint.md).

_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+')
_ALLOWING = re.compile(
    r"#\s*lint\s*:\s*allow[ \t]+[A-Za-z]+[0-9]+(?:[ \t]*,?[ \t]*[A-Za-z]+[0-9]+)*"
)


def allowance(source: Source, diagnostic: Diagnostic, known: Collection[str]) -> Edit | None:
    """Return the edit that allows a lint of `source` by a comment; None if that is not possible.

    Args:
        known: the codes that may be allowed.
    """
    if diagnostic.code not in known:
        return None
    made = _edit(source, diagnostic)
    text = source.text[: made.start] + made.text + source.text[made.end :]
    after = Allowances((source_of(text, source.name),), _head(diagnostic, made), known)
    return made if after.allows(diagnostic) else None


def _head(diagnostic: Diagnostic, made: Edit) -> int:
    """Return where the first statement begins, as far as the new comment is concerned."""
    return -1 if diagnostic.span is not None else made.start + len(made.text)


def _edit(source: Source, diagnostic: Diagnostic) -> Edit:
    span, code = diagnostic.span, diagnostic.code
    if span is None:
        return Edit(start=0, end=0, text=f"# lint: allow {code}\n")
    start = source.starts[span.end_line - 1]
    line = source.line(span.end_line)
    comment = next((m.start() for m in _MARK.finditer(line) if m[0].startswith("#")), None)
    if comment is None:
        end = start + len(line.rstrip())
        return Edit(start=end, end=end, text=f"  # lint: allow {code}")
    allowing = _ALLOWING.match(line, comment)
    if allowing is not None:
        end = start + allowing.end()
        return Edit(start=end, end=end, text=f", {code}")
    return Edit(start=start + comment, end=start + comment + 1, text=f"# lint: allow {code}")
