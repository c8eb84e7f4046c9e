"""What is wrong with a text that is open: errors and lints, as `tcc lint` finds them.

The work ends early where the text has changed meanwhile: its clock stands at the end of time then.
Cost: that of `tcc lint`, within the limits here or those of ``tcc.toml``, whichever is less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from tcc.compilation import check_for_use
from tcc.config import config_for
from tcc.configuration import Config, ConfigError
from tcc.editor.grammars import Budget, OutOfTime, grammar_of
from tcc.editor.texts import Document, Texts
from tcc.linting import Linted, lint_read
from tcc_compiler.frontend import Frontend, read_grammar_text
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import (
    MAX_SOURCE_BYTES,
    Source,
    Unreadable,
    decode,
    source_of,
)
from tcc_compiler.language.spans import Span
from tcc_compiler.language.syntax.parse import check_syntax
from tcc_compiler.options import Options

TIMEOUT = 10.0
MAX_STATES = 200_000
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """What was found in one document and the files that it uses.

    Attributes:
        texts: what was open then.
        linted: None where the document is a part of other grammars, or no text.
        told: the diagnostics of each URI.
        uses: the resolved paths of the files that were read.
        fixes: texts after a safe fix, by the finding's number; None where it is not shown safe.
    """

    document: Document
    texts: Texts
    options: Options
    linted: Linted | None
    told: Mapping[str, tuple[types.Diagnostic, ...]]
    uses: frozenset[Path]
    fixes: dict[int, str | None] = field(default_factory=dict)


def diagnose(document: Document, texts: Texts, stale: Callable[[], bool]) -> Diagnosed:
    """Errors and lints of a document.

    Args:
        stale: whether nobody wants to know any more.
    """
    told: dict[str, list[types.Diagnostic]] = {document.uri: []}
    config = _config(document, texts, told)
    options = _options(config, stale)
    linted = None
    try:
        rooted = grammar_of(document, texts, Budget())
    except OutOfTime:
        rooted = None
    if rooted is not None and rooted.project.is_part:
        sources = {source.name: source for source in rooted.project.sources}
        found = [(diagnostic, "error") for diagnostic in rooted.project.diagnostics]
    else:
        linted = lint_read(
            lambda check_time: front_of(document, document.text, texts, check_time),
            document.name, options, config,
        )  # fmt: skip
        sources = dict(linted.sources)
        found = [(finding.diagnostic, finding.diagnostic.severity) for finding in linted.findings]
        found += [(diagnostic, "undecided") for diagnostic in linted.undecided]
    converter = _Converter(document, texts, sources)
    for diagnostic, level in found:
        uri, made = converter.diagnostic(diagnostic, level)
        told.setdefault(uri, []).append(made)
    return Diagnosed(
        document=document,
        texts=texts,
        options=options,
        linted=linted,
        told={uri: tuple(made) for uri, made in told.items()},
        uses=frozenset(source.path for source in sources.values() if source.path is not None),
    )


def syntax_of(
    document: Document, texts: Texts, known: Collection[str], budget: Budget
) -> tuple[tuple[types.Diagnostic, ...], frozenset[str]]:
    """The errors of syntax of a text, its own alone, and its statements that have none.

    Args:
        known: statements that are known to have none, as texts.

    Raises:
        OutOfTime: it takes too long, or nobody wants to know any more.
    """
    data = document.text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_SOURCE_BYTES or isinstance(decode(data), Unreadable):
        return (), frozenset()
    source = source_of(document.text, document.name, document.path)
    report = Report([source], budget.check)
    good = check_syntax(source, report, known)
    converter = _Converter(document, texts, {source.name: source})
    return tuple(converter.diagnostic(item, "error")[1] for item in report.diagnostics()), good


def front_of(
    document: Document, text: str, texts: Texts, check_time: Callable[[], None] | None = None
) -> Frontend:
    """The front end's result for a text of a document."""
    return read_grammar_text(text, document.name, check_time, document.path, texts.read)


def _config(document: Document, texts: Texts, told: dict[str, list[types.Diagnostic]]) -> Config:
    """What ``tcc.toml`` says; where it is refused, it is told there, and nothing of it holds."""
    if document.path is None:
        return Config()
    try:
        return config_for(document.path)
    except ConfigError as error:
        uri = uris.from_fs_path(str(Path(error.source.name).absolute())) or document.uri
        owner = Document(uri=uri, text=error.source.text, path=None, name=error.source.name)
        converter = _Converter(owner, texts, {error.source.name: error.source})
        told[uri] = [converter.diagnostic(item, "error")[1] for item in error.diagnostics]
        return Config()


def _options(config: Config, stale: Callable[[], bool]) -> Options:
    asked: dict[str, Any] = dict(config.compile)
    relax = asked.get("relax", ())
    asked["relax"] = (relax,) if isinstance(relax, str) else tuple(relax)
    asked["timeout"] = min(asked.get("timeout") or TIMEOUT, TIMEOUT)
    asked["max_states"] = min(asked.get("max_states") or MAX_STATES, MAX_STATES)
    return Options(
        check=check_for_use, clock=lambda: math.inf if stale() else time.monotonic(), **asked
    )


class _Converter:
    """Diagnostics of the compiler to those of the protocol."""

    def __init__(self, root: Document, texts: Texts, sources: Mapping[str, Source]) -> None:
        self._root = root
        self._texts = texts
        self._sources = sources
        self._places = {name: texts.places(source.text) for name, source in sources.items()}

    def diagnostic(self, found: Diagnostic, level: str) -> tuple[str, types.Diagnostic]:
        """The URI that a diagnostic is about, and what is told there."""
        uri, where = self._place(found.span)
        hint = "" if found.hint is None else f"\nhelp: {found.hint}"
        made = types.Diagnostic(
            range=where,
            message=found.message + hint,
            severity=_SEVERITY.get(level, types.DiagnosticSeverity.Information),
            code=found.code,
            source="tcc",
            related_information=list(self._notes(found)) or None,
        )
        return uri, made

    def _notes(self, found: Diagnostic) -> Iterator[types.DiagnosticRelatedInformation]:
        for note in found.notes:
            if note.span is not None:
                uri, where = self._place(note.span)
                yield types.DiagnosticRelatedInformation(
                    location=types.Location(uri=uri, range=where), message=note.message
                )

    def _place(self, span: Span | None) -> tuple[str, types.Range]:
        source = None if span is None else self._sources.get(span.file)
        if span is None or source is None:
            zero = types.Position(line=0, character=0)
            return self._root.uri, types.Range(start=zero, end=zero)
        start, end = ends(source, span)
        places = self._places[span.file]
        return self._texts.uri(source, self._root), places.range(start, end)


def ends(source: Source, span: Span) -> tuple[int, int]:
    """The characters of a span."""
    start = source.starts[span.line - 1] + span.column - 1
    return start, source.starts[span.end_line - 1] + span.end_column - 1
