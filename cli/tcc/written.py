"""What is asked about, opened; its statements as they were written, and their JSON fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tcc.compilation import compile_file, load
from tcc.files import GRAMMAR_ENDINGS
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.questions.statements import Place, Statement, Written

if TYPE_CHECKING:
    from tcc_compiler.language.spans import Span
    from tcc_compiler.pipeline import Compiled

Given: TypeAlias = "Artifact | str | Path"


def artifact_of(given: Given) -> Artifact:
    """What was given, opened or compiled as its ending says.

    Raises:
        CompileError: a grammar was refused, or a limit was reached.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    if isinstance(given, Artifact):
        return given
    path = Path(given)
    return compile_file(path) if path.suffix in GRAMMAR_ENDINGS else load(path)


def written_of(artifact: Artifact) -> Mapping[str, Written]:
    """The statements as they were written, by place; nothing for an artifact from a file."""
    from tcc_compiler.pipeline import Compiled

    compiled = artifact.kept.get("written")
    return written_in(compiled) if isinstance(compiled, Compiled) else {}


def written_in(compiled: Compiled) -> Mapping[str, Written]:
    """The statements of a grammar that was compiled as they were written, by place."""
    return {
        name: Written(text=compiled.sources[span.file].statement(span), place=_place(span))
        for name, span in compiled.places.items()
        if span.file in compiled.sources
    }


def _place(span: Span) -> Place:
    return Place(file=span.file, line=span.line, column=span.column)


def statement_fields(statement: Statement) -> dict[str, Any]:
    """A statement that is blamed, as JSON."""
    place = None if statement.place is None else asdict(statement.place)
    return {"kind": statement.kind, "text": statement.text, "place": place}


def statement_line(statement: Statement) -> str:
    """The same for people, in a line."""
    text = " ".join(statement.text.split())
    if statement.place is None:
        return text
    place = statement.place
    return f"{text}  ({place.file}:{place.line}:{place.column})"
