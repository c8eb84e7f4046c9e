"""A text with the files that it uses, as far as they can be read: what an editor looks names up in.

Cost: that of parsing, within the time that the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tcc_compiler.editing.occurrences import Kind, Occurrence, occurrences_of
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.statements import Broken, GrammarStatement, Statement, ToolStatement
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import (
    MAX_SOURCE_BYTES,
    Source,
    Unreadable,
    decode,
    read_bytes,
    source_of,
)
from tcc_compiler.language.syntax.tokens import split
from tcc_compiler.resolve.files import Read, gather


@frozen
class Project:
    """A grammar as it is written, errors and all.

    Attributes:
        sources: the root file and those that it uses, by number.
        statements: those of all files, the root's first.
        occurrences: the names in them.
        diagnostics: errors of syntax, and of files that cannot be used.
        whole: no statement has an error of syntax, and every file could be read.
    """

    sources: tuple[Source, ...]
    statements: tuple[Statement, ...]
    occurrences: tuple[Occurrence, ...]
    diagnostics: tuple[Diagnostic, ...]
    whole: bool

    @property
    def is_part(self) -> bool:
        """Whether the root has tools and no `grammar`: it is there for others to use."""
        root = [statement for statement in self.statements if statement.region.source == 0]
        if any(isinstance(statement, GrammarStatement) for statement in root):
            return False
        tools = any(isinstance(statement, ToolStatement) for statement in root)
        broken = [statement for statement in root if isinstance(statement, Broken)]
        return tools and all(statement.keyword in ("tool", "use") for statement in broken)

    def at(self, offset: int, number: int = 0) -> Occurrence | None:
        """The name at a character of a source; the place just behind it counts."""
        for found in self.occurrences:
            region = found.region
            if region.source == number and region.start <= offset <= region.end:
                return found
        return None

    def all_of(self, kind: Kind, key: tuple[str, ...]) -> tuple[Occurrence, ...]:
        """Every place where a name stands."""
        return tuple(o for o in self.occurrences if o.kind == kind and o.key == key)

    def defined(self, kind: Kind) -> tuple[tuple[str, ...], ...]:
        """What is declared, in the order of the text, each once."""
        keys = (o.key for o in self.occurrences if o.kind == kind and o.defines)
        return tuple(dict.fromkeys(keys))

    def tool(self, name: str) -> ToolStatement | None:
        """The statement that declares a tool."""
        tools = (s for s in self.statements if isinstance(s, ToolStatement))
        return next((tool for tool in tools if tool.name.text == name), None)


def statement_ends(source: Source) -> Mapping[int, int]:
    """Where each statement of a source ends, by where it begins; a tool's braces are its own."""
    chunks = split(source.text, 0, Report([source]))
    return {chunk.tokens[0].region.start: chunk.tokens[-1].region.end for chunk in chunks}


def read_project(
    text: str,
    path: Path | None,
    name: str,
    read: Read = read_bytes,
    check_time: Callable[[], None] | None = None,
) -> Project | None:
    """The project of a text; None where it is no text that a grammar could be in.

    Args:
        path: the resolved path of the file that it is in; None where it is in none.
        name: how diagnostics name it.
        read: gives the bytes of a used file.
        check_time: called every few hundred steps; it ends the reading by raising.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_SOURCE_BYTES or isinstance(decode(data), Unreadable):
        return None
    sources = [source_of(text, name, path)]
    report = Report(sources, check_time)
    gathered = gather(sources, report, read)
    statements = (*gathered.root, *gathered.used)
    broken = any(isinstance(statement, Broken) for statement in statements)
    return Project(
        sources=tuple(sources),
        statements=statements,
        occurrences=occurrences_of(statements),
        diagnostics=report.diagnostics(),
        whole=not (broken or gathered.incomplete or report.failed),
    )


def changed(project: Project, texts: Mapping[Path, str]) -> Project | None:
    """A project whose files have other texts, by their resolved paths."""
    root = project.sources[0]
    held = {source.path: source.text for source in project.sources if source.path is not None}

    def read(path: Path, limit: int) -> bytes | Unreadable:
        text = texts.get(path, held.get(path))
        return read_bytes(path, limit) if text is None else text.encode()

    text = root.text if root.path is None else texts.get(root.path, root.text)
    return read_project(text, root.path, root.name, read)
