"""Diagnostics of an open text, as `tcc lint` finds them, and code actions that fix or allow them.

Work on a text that has changed meanwhile ends early: its clock jumps to the end of time.  A fix is
offered only when the fixed text was compiled and has the same plans.
Cost: that of `tcc lint`, within the limits here or those of ``tcc.toml``, whichever is less; one
more compilation per fix.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from tcc.compilation import check_for_use
from tcc.config_file import LINTS, config_for
from tcc.configuration import Config, ConfigError
from tcc.editor.documents import Budget, Document, OutOfTime, Places, Texts, grammar_of
from tcc.linting import Linted, has_plans, lint_read
from tcc_compiler.editing.renaming import allowance
from tcc_compiler.frontend import Frontend, read_grammar_text
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import (
    MAX_SOURCE_BYTES,
    Source,
    Span,
    Unreadable,
    decode,
    source_of,
)
from tcc_compiler.language.syntax.parse import check_syntax
from tcc_compiler.lint.finding import LintFinding, fixed_text
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


# Code actions: safe fixes of lints, and comments that allow a lint.

MOST = 4  # findings of one question that are compiled anew
_ALL = -1
_SECONDS = 3.0


def code_actions(
    document: Document, diagnosed: Diagnosed, texts: Texts, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """What an editor may offer for a range of a document that was diagnosed as it stands."""
    linted = diagnosed.linted
    source = None if linted is None else _source(document, diagnosed, texts)
    if linted is None or source is None or source.text != document.text:
        return []
    places = texts.places(document.text)
    low, high = places.offset(params.range.start), places.offset(params.range.end)
    numbered = [
        (number, finding)
        for number, finding in enumerate(linted.findings)
        if _touches(finding, source, low, high)
    ]
    only = params.context.only
    made: list[types.CodeAction] = []
    if _wanted("quickfix", only):
        made += _fixes(numbered, document, diagnosed, places)
        made += _allowances(numbered, source, document, places)
    if _wanted("source.fixAll.tcc", only):
        made += _fix_all(document, diagnosed, places)
    return made


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    return only is None or any(kind == str_of(o) or kind.startswith(f"{str_of(o)}.") for o in only)


def str_of(kind: types.CodeActionKind | str) -> str:
    """The text of a kind."""
    return kind.value if isinstance(kind, types.CodeActionKind) else kind


def _source(document: Document, diagnosed: Diagnosed, texts: Texts) -> Source | None:
    linted = diagnosed.linted
    for source in () if linted is None else linted.sources.values():
        if texts.uri(source, diagnosed.document) == document.uri:
            return source
    return None


def _touches(finding: LintFinding, source: Source, low: int, high: int) -> bool:
    span = finding.diagnostic.span
    if span is None:
        return low == 0
    if span.file != source.name:
        return False
    start, end = ends(source, span)
    return start <= high and low <= end


def _fixes(
    numbered: Sequence[tuple[int, LintFinding]],
    document: Document,
    diagnosed: Diagnosed,
    places: Places,
) -> Iterator[types.CodeAction]:
    if document.uri != diagnosed.document.uri:
        return
    for number, finding in [item for item in numbered if item[1].fix][:MOST]:
        text = _fixed(number, [finding], diagnosed)
        if text is not None:
            title = f"Fix {finding.diagnostic.code}: the plans stay the same"
            edit = changed_part(document.text, text, places)
            yield _action(title, types.CodeActionKind.QuickFix, document, edit)


def _allowances(
    numbered: Sequence[tuple[int, LintFinding]], source: Source, document: Document, places: Places
) -> Iterator[types.CodeAction]:
    seen: set[tuple[str, int]] = set()
    for _, finding in numbered:
        made = allowance(source, finding.diagnostic, LINTS)
        if made is None or (finding.diagnostic.code, made.start) in seen:
            continue
        seen.add((finding.diagnostic.code, made.start))
        edit = types.TextEdit(range=places.range(made.start, made.end), new_text=made.text)
        title = f"Allow {finding.diagnostic.code} here"
        yield _action(title, types.CodeActionKind.QuickFix, document, edit)


def _fix_all(
    document: Document, diagnosed: Diagnosed, places: Places
) -> Iterator[types.CodeAction]:
    linted = diagnosed.linted
    if linted is None or document.uri != diagnosed.document.uri:
        return
    found = [finding for finding in linted.findings if finding.fix]
    text = _fixed(_ALL, found, diagnosed) if found else None
    if text is not None:
        edit = changed_part(document.text, text, places)
        title = "Fix all lints that can be fixed: the plans stay the same"
        yield _action(title, "source.fixAll.tcc", document, edit)


def _fixed(number: int, found: Sequence[LintFinding], diagnosed: Diagnosed) -> str | None:
    """The text after some fixes, where it was compiled and has the same plans."""
    linted = diagnosed.linted
    if linted is None or linted.text is None or linted.root_state is None:
        return None
    if number not in diagnosed.fixes:
        text = fixed_text(linted.text, found)
        options = replace(diagnosed.options, timeout=_SECONDS)
        front = front_of(diagnosed.document, text, diagnosed.texts)
        diagnosed.fixes[number] = text if has_plans(front, linted, options) else None
    return diagnosed.fixes[number]


def changed_part(before: str, after: str, places: Places) -> types.TextEdit:
    """One edit that makes one text of another, without what both begin and end with."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    most -= start
    end = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    # No place of the protocol is between a CR and its LF.
    start -= before[start - 1 : start + 1] == "\r\n"
    end -= end > 0 and before[len(before) - end - 1 : len(before) - end + 1] == "\r\n"
    where = places.range(start, len(before) - end)
    return types.TextEdit(range=where, new_text=after[start : len(after) - end])


def _action(
    title: str, kind: types.CodeActionKind | str, document: Document, edit: types.TextEdit
) -> types.CodeAction:
    changes = types.WorkspaceEdit(changes={document.uri: [edit]})
    return types.CodeAction(title=title, kind=kind, edit=changes)
