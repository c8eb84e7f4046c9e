"""Changes of texts: another name for a tool or a rule in every file, and a lint that is allowed.

What a renaming gives is read again, and has to have the same names in the same places but for the
new one; else it is said why not.  Cost: that of parsing the files twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from tcc_certs.errors import hidden_in
from tcc_certs.formats.codec import MAX_NAME, is_identifier
from tcc_certs.policy.nodes import Name, written
from tcc_compiler.editing.project import Kind, Occurrence, Project, changed, read_project
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, quote
from tcc_compiler.language.source import Source, Unreadable, read_bytes, source_of
from tcc_compiler.lint.allowances import Allowances
from tcc_compiler.lint.finding import Edit
from tcc_compiler.names.compile import compile_source


class NotRenamed(Exception):
    """Why a name cannot be changed, and what to do; a sentence for people."""


@frozen
class Renaming:
    """The characters `start` to `end` of a source are to be `text`."""

    source: Source
    start: int
    end: int
    text: str


def renamed(projects: Sequence[Project], found: Occurrence, name: str) -> tuple[Renaming, ...]:
    """The edits that give a tool or a rule another name.

    Args:
        projects: every grammar that has the file with its declaration.
        found: a place where it stands.

    Raises:
        NotRenamed: the name may not be taken, or a text has errors.
    """
    if found.kind not in ("tool", "rule"):
        raise NotRenamed(f"only tools and rules are renamed; this is a {found.kind}")
    old = found.key[0]
    _check_name(found.kind, name)
    for project in projects:
        _check_project(project, found.kind, old, name)
    bare = written([Name(name)])
    edits = _edits(projects, found.kind, old, bare)
    try:
        _check_same(projects, found.kind, old, name, edits)
    except NotRenamed:
        if bare != name:
            raise
        # A word that means something else in one of its places: in backticks it is a name.
        edits = _edits(projects, found.kind, old, f"`{name}`")
        _check_same(projects, found.kind, old, name, edits)
    return edits


def _check_name(kind: Kind, name: str) -> None:
    hidden = hidden_in(name)
    if not 1 <= len(name) <= MAX_NAME:
        raise NotRenamed(f"a name has 1 to {MAX_NAME} characters, and this one has {len(name)}")
    if "`" in name:
        raise NotRenamed("a name that contains a backtick cannot be written")
    if hidden is not None:
        raise NotRenamed(f"the name holds U+{ord(hidden):04X}, a control or hidden character")
    if kind == "rule" and not is_identifier(name):
        raise NotRenamed(
            f"{quote(name)} cannot name a rule: write letters, digits and _, no digit first"
        )


def _check_project(project: Project, kind: Kind, old: str, name: str) -> None:
    file = project.sources[0].name
    if not project.whole:
        raise NotRenamed(f"{file} has syntax errors, or uses a file that is not there: correct it")
    kinds: tuple[Kind, ...] = ("tool", "rule", "let")
    for other in kinds:
        if (name,) in project.defined(other) and name != old:
            raise NotRenamed(f"{file} has a {other} {quote(name)} already; choose another name")
    if project.all_of(kind, (old,)) and not any(o.defines for o in project.all_of(kind, (old,))):
        raise NotRenamed(f"{file} declares no {kind} {quote(old)}")


def _edits(projects: Sequence[Project], kind: Kind, old: str, text: str) -> tuple[Renaming, ...]:
    made: dict[tuple[Path | str, int], Renaming] = {}
    for project in projects:
        for place in project.all_of(kind, (old,)):
            source = project.sources[place.region.source]
            start, end = place.region.start, place.region.end
            made.setdefault(
                (source.path or source.name, start),
                Renaming(source=source, start=start, end=end, text=text),
            )
    return tuple(made.values())


def _check_same(
    projects: Sequence[Project], kind: Kind, old: str, name: str, edits: Sequence[Renaming]
) -> None:
    """The edited texts have the same names but for the new one, and compile as before."""
    for project in projects:
        after = _edited(project, edits)
        before = [_told(o, kind, old, name) for o in project.occurrences]
        same = after is not None and before == [
            (o.kind, o.key, o.defines) for o in after.occurrences
        ]
        if not same or after is None or not after.whole:
            file = project.sources[0].name
            raise NotRenamed(f"{file} would not say the same with {quote(name)}; choose another")
        if _mistakes(after) > _mistakes(project):
            file = project.sources[0].name
            raise NotRenamed(f"{file} would have mistakes with {quote(name)}; choose another")


def _mistakes(project: Project) -> int:
    """How many mistakes a grammar has; a part of other grammars has none."""
    if project.is_part:
        return 0
    root = project.sources[0]
    held = {source.path: source.text for source in project.sources if source.path is not None}

    def read(path: Path, limit: int) -> bytes | Unreadable:
        text = held.get(path)
        return read_bytes(path, limit) if text is None else text.encode()

    compiled = compile_source(root.text, root.name, path=root.path, read=read)
    return len([one for one in compiled.diagnostics if one.severity == "error"])


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
    """A project that is one text from no file, with another text."""
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


def _told(found: Occurrence, kind: Kind, old: str, name: str) -> tuple[Kind, tuple[str, ...], bool]:
    """What an occurrence is to be behind the change."""
    key = found.key
    owned = kind == "tool" and found.kind in ("parameter", "value")
    if (found.kind == kind or owned) and key[0] == old:
        key = (name, *key[1:])
    return found.kind, key, found.defines


# ``# lint: allow CODE``, put beside the comment that stands there (docs/lint.md).

_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+')
_ALLOWING = re.compile(
    r"#\s*lint\s*:\s*allow[ \t]+[A-Za-z]+[0-9]+(?:[ \t]*,?[ \t]*[A-Za-z]+[0-9]+)*"
)


def allowance(source: Source, diagnostic: Diagnostic, known: Collection[str]) -> Edit | None:
    """The edit after which a comment allows a lint of `source`; None where there is none.

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
    """Where the first statement begins, as far as this comment is concerned."""
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
