"""Language server (docs/editors.md): open texts, their grammars, diagnostics and code actions."""

from __future__ import annotations

import math
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from lsprotocol.types import Position, PositionEncodingKind, Range
from pygls import uris

from tcc.configuration import LINTS, config_for
from tcc.library import check_for_use
from tcc.library.linting import Linted, has_core, lint_read
from tcc.options import Config, ConfigError
from tcc_certs.policy.type_texts import name_text
from tcc_compiler.editing.project import Project, read_project
from tcc_compiler.editing.renaming import allowance
from tcc_compiler.frontend import Compiled as Frontend, read_grammar_text
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import (
    MAX_SOURCE_BYTES,
    Source,
    Span,
    Unreadable,
    decode,
    read_bytes,
    source_of,
    too_large,
)
from tcc_compiler.lint.finding import LintFinding, fixed_text
from tcc_compiler.options import Options
from tcc_compiler.syntax.parse import parse

_END = re.compile(r"\r\n|\r|\n")


class Places:
    """Converts between character offsets in a text and positions of the protocol."""

    def __init__(self, text: str, encoding: str = PositionEncodingKind.Utf16) -> None:
        """Split the text into lines.

        Args:
            encoding: what columns count: code units of ``utf-8``, ``utf-16`` or ``utf-32``.
        """
        self._text = text
        self._encoding = encoding
        ends = [(0, 0), *((end.start(), end.end()) for end in _END.finditer(text))]
        self._starts = [after for _, after in ends]
        self._ends = [*(before for before, _ in ends[1:]), len(text)]

    def offset(self, position: Position) -> int:
        """Return the offset of a position, or the nearest one for a position outside the text."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[position.line], self._ends[position.line]
        line = self._text[start:end]
        if self._encoding == PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for at, char in enumerate(line):
            units += self._units(char)
            if units > position.character:
                return start + at
        return end

    def position(self, offset: int) -> Position:
        """Return the line and column of an offset."""
        line = bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : offset]
        return Position(line=line, character=self._units(before))

    def range(self, start: int, end: int) -> Range:
        """Return the range from `start` to `end`, which is exclusive."""
        return Range(start=self.position(start), end=self.position(end))

    def _units(self, text: str) -> int:
        if self._encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(char > "\uffff" for char in text)


# Open texts.


LARGE = 1 << 17  # characters of a text whose names are not looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An open text.

    Attributes:
        uri: the URI that the editor uses.
        text: the current text.
        path: the path of its file, with a resolved folder; None if it has no file yet.
        name: the name of the text in diagnostics.
    """

    uri: str
    text: str
    path: Path | None
    name: str

    @property
    def is_large(self) -> bool:
        """Return whether to check the text only: names would take seconds and much memory."""
        return len(self.text) > LARGE


def document_of(uri: str, text: str) -> Document:
    """Return the document of a URI; it has a path only if the URI names a file."""
    found = uris.to_fs_path(uri) if uri.startswith("file:") else None
    if not found or "\0" in found:
        return Document(uri=uri, text=text, path=None, name=uri)
    path = Path(found)
    resolved = Path(os.path.realpath(path.parent)) / path.name
    return Document(uri=uri, text=text, path=resolved, name=str(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The open documents at one moment.

    Attributes:
        documents: the documents, by URI.
        folders: the folders of the workspace.
        encoding: the unit of columns: ``utf-8``, ``utf-16`` or ``utf-32``.
    """

    documents: Mapping[str, Document]
    folders: tuple[Path, ...] = ()
    encoding: str = "utf-16"

    def read(self, path: Path, limit: int) -> bytes | Unreadable:
        """Return the bytes of a file; if the file is open, of its text in the editor."""
        document = self.at(path)
        if document is None:
            return read_bytes(path, limit)
        data = document.text.encode("utf-8", "surrogatepass")
        return data if len(data) <= limit else too_large(limit)

    def at(self, path: Path) -> Document | None:
        """Return the open document of a resolved path, or None."""
        for document in self.documents.values():
            if document.path is not None and os.path.realpath(document.path) == str(path):
                return document
        return None

    def uri(self, source: Source, root: Document) -> str:
        """Return the URI of a source file of the grammar whose root is `root`."""
        if source.path is None or source.path == root.path:
            return root.uri
        document = self.at(Path(os.path.realpath(source.path)))
        if document is not None:
            return document.uri
        return uris.from_fs_path(str(source.path)) or root.uri

    def places(self, text: str) -> Places:
        """Return the converter between offsets and positions of a text."""
        return Places(text, self.encoding)


# Grammars of documents, and the grammars that use a file.

MOST_SECONDS = 3.0
MOST_FILES = 300  # files that a request about a name reads at most


class QuestionTimeout(Exception):
    """A request of the editor took too long, or its text changed."""


class QuestionTime:
    """The time limit of a request.

    Args:
        seconds: the limit.
        stale: returns whether the answer is no longer needed.
    """

    def __init__(
        self, seconds: float = MOST_SECONDS, stale: Callable[[], bool] | None = None
    ) -> None:
        self._end = time.monotonic() + seconds
        self._stale = stale

    def check(self) -> None:
        """Raise if the request has to stop.

        Raises:
            QuestionTimeout: the time is over, or the answer is no longer needed.
        """
        if time.monotonic() > self._end or (self._stale is not None and self._stale()):
            raise QuestionTimeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooted:
    """A grammar, and the document of its root file."""

    document: Document
    project: Project


def grammar_of(document: Document, texts: Texts, budget: QuestionTime) -> Rooted | None:
    """Read the grammar of a document; None if it is too large or cannot be decoded.

    Raises:
        QuestionTimeout: the time is over, or the text has changed.
    """
    if document.is_large:
        return None
    project = read_project(document.text, document.path, document.name, texts.read, budget.check)
    return None if project is None else Rooted(document=document, project=project)


def grammars_with(
    mine: Rooted, path: Path | None, texts: Texts, budget: QuestionTime
) -> tuple[tuple[Rooted, ...], bool]:
    """Return every grammar that uses a file, `mine` first, and whether the search was complete.

    Args:
        path: the resolved path of the file; None for a text without a file.
    """
    found = [mine]
    if path is None or (path == mine.document.path and not mine.project.is_part):
        return tuple(found), True
    seen = {mine.document.path}
    for number, document in enumerate(_candidates(path, texts)):
        if number >= MOST_FILES:
            return tuple(found), False
        if document.path in seen:
            continue
        if document.is_large:
            return tuple(found), False
        seen.add(document.path)
        rooted = grammar_of(document, texts, budget)
        if rooted is not None and any(s.path == path for s in rooted.project.sources):
            found.append(rooted)
    return tuple(found), True


def _candidates(path: Path, texts: Texts) -> Iterator[Document]:
    yield from texts.documents.values()
    for folder in _folders(path, texts):
        try:
            files = sorted(file for file in folder.iterdir() if file.suffix == ".tcg")
        except OSError:
            continue
        for file in files:
            if texts.at(file) is not None:
                continue
            data = texts.read(file, 1 << 23)
            text = data if isinstance(data, Unreadable) else decode(data)
            if not isinstance(text, Unreadable) and (file == path or "use" in text):
                yield document_of(file.as_uri(), text)


def _folders(path: Path, texts: Texts) -> Iterator[Path]:
    """Yield the folder of a file, and the folders above it within the workspace."""
    yield path.parent
    for folder in path.parent.parents:
        if any(folder.is_relative_to(opened) for opened in texts.folders):
            yield folder


# A text with a tool or shape before any `grammar` statement is a part of other grammars.
_GAP = r"(?:[ \t\r\n]|#[^\n]*+)*+"
_PART = re.compile(rf"{_GAP}(?:use\b[^\n]*+{_GAP})*+(?:tool|shape)\b")
TIMEOUT = 10.0
MAX_STATES = 200_000
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """Diagnostics of a document and of the files that it uses.

    Attributes:
        document: the document that was checked.
        texts: the open documents at the time of the check.
        linted: the lints; None if the document is a part of other grammars, or cannot be read.
        told: the diagnostics, by URI.
        uses: the resolved paths of the files that were read.
        fixes: the text after a fix, by the number of the finding; None for a fix that would change
            the core.  Filled on demand.
    """

    document: Document
    texts: Texts
    linted: Linted | None
    told: Mapping[str, tuple[types.Diagnostic, ...]]
    uses: frozenset[Path]
    fixes: dict[int, str | None] = field(default_factory=dict)


def diagnose(document: Document, texts: Texts, stale: Callable[[], bool]) -> Diagnosed:
    """Check a document for errors and lints.

    Args:
        texts: the open documents.
        stale: returns whether the result is no longer needed.
    """
    told: dict[str, list[types.Diagnostic]] = {document.uri: []}
    config = _config(document, texts, told)
    options = _options(config, stale)
    linted = None
    try:
        rooted = grammar_of(document, texts, QuestionTime())
    except QuestionTimeout:
        rooted = None
    if rooted is not None and rooted.project.is_part:
        sources = {source.name: source for source in rooted.project.sources}
        found = [(diagnostic, "error") for diagnostic in rooted.project.diagnostics]
    elif document.is_large and _PART.match(document.text):
        sources = {document.name: source_of(document.text, document.name, document.path)}
        report = Report(list(sources.values()))
        parse(sources[document.name], 0, report)
        found = [(diagnostic, "error") for diagnostic in report.diagnostics()]
    else:
        linted = lint_read(
            lambda check_time: front_of(document, document.text, texts, check_time),
            document.name, options, config,
        )  # fmt: skip
        sources = dict(linted.sources)
        found = [(finding.diagnostic, finding.diagnostic.severity) for finding in linted.findings]
        found += [(note.diagnostic, "undecided") for note in linted.notes]
    converter = _Converter(document, texts, sources)
    for diagnostic, level in found:
        uri, made = converter.diagnostic(diagnostic, level)
        told.setdefault(uri, []).append(made)
    return Diagnosed(
        document=document,
        texts=texts,
        linted=linted,
        told={uri: tuple(made) for uri, made in told.items()},
        uses=frozenset(source.path for source in sources.values() if source.path is not None),
    )


def syntax_of(
    document: Document, texts: Texts, budget: QuestionTime
) -> tuple[types.Diagnostic, ...]:
    """Return the syntax errors of a text, without errors in the files that it uses.

    Raises:
        QuestionTimeout: the parser takes too long, or the text has changed.
    """
    data = document.text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_SOURCE_BYTES or isinstance(decode(data), Unreadable):
        return ()
    source = source_of(document.text, document.name, document.path)
    report = Report([source], budget.check)
    parse(source, 0, report)
    converter = _Converter(document, texts, {source.name: source})
    return tuple([converter.diagnostic(item, "error")[1] for item in report.diagnostics()])


def front_of(
    document: Document, text: str, texts: Texts, check_time: Callable[[], None] | None = None
) -> Frontend:
    """Run the front end on a text of a document."""
    return read_grammar_text(text, document.name, check_time, document.path, texts.read)


def _config(document: Document, texts: Texts, told: dict[str, list[types.Diagnostic]]) -> Config:
    """Return the configuration of ``tcc.toml``; report mistakes in it, and use defaults then."""
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
    """Converts diagnostics of the compiler to diagnostics of the protocol."""

    def __init__(self, root: Document, texts: Texts, sources: Mapping[str, Source]) -> None:
        self._root = root
        self._texts = texts
        self._sources = sources
        self._places = {name: texts.places(source.text) for name, source in sources.items()}

    def diagnostic(self, found: Diagnostic, level: str) -> tuple[str, types.Diagnostic]:
        """Return the URI of a diagnostic, and the diagnostic in the protocol's form."""
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
    """Return the offsets of a span: of its first character, and after its last."""
    start = source.starts[span.line - 1] + span.column - 1
    return start, source.starts[span.end_line - 1] + span.end_column - 1


# Code actions: apply a proposal of a hint, fix a lint safely, or add a comment that allows it.

MOST = 4  # findings for which one request computes fixes
_MOST_PROPOSED = 3  # corrections for one mistake
_WRITE = re.compile(r"write:? (?P<texts>.+)", re.DOTALL)
_MEANT = re.compile(r"did you mean '(?P<name>[^']+)'\?")
_OR = re.compile(r"[,;] or(?: [^:;,]*)?: | or (?=another name)")
_WHY = re.compile(r"[,;] (?:or|if|so that|say)\b.*", re.DOTALL)  # the rest after a proposed text
_NAMED = re.compile(r"`(?P<text>[^`]+)`")
_ALL = -1


def code_actions(
    document: Document, diagnosed: Diagnosed, texts: Texts, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """Return the code actions for a range of a document; none if its text has changed since."""
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
        made += _corrections(numbered, document, diagnosed, source, places)
        made += _fixes(numbered, document, diagnosed, places)
        made += _allowances(numbered, source, document, places)
    if _wanted("source.fixAll.tcc", only):
        made += _fix_all(document, diagnosed, places)
    return made


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    return only is None or any(kind == str_of(o) or kind.startswith(f"{str_of(o)}.") for o in only)


def str_of(kind: types.CodeActionKind | str) -> str:
    """Return the text of a kind of code action."""
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


def _corrections(
    numbered: Sequence[tuple[int, LintFinding]],
    document: Document,
    diagnosed: Diagnosed,
    source: Source,
    places: Places,
) -> Iterator[types.CodeAction]:
    """Yield corrections that hints propose.

    A correction must reduce the number of errors.  For a lint it must not increase it.
    """
    if document.uri != diagnosed.document.uri:
        return
    found = [one.diagnostic for _, one in numbered]
    count = _errors(document, document.text, diagnosed.texts) if found else 0
    for error in found[:MOST]:
        wrong = error.severity == "error"
        made = 0
        for start, end, text in _proposals(error, source):
            whole = document.text[:start] + text + document.text[end:]
            left = _errors(document, whole, diagnosed.texts)
            if left < count or (not wrong and left == count):
                made += 1
                edit = types.TextEdit(range=places.range(start, end), new_text=text)
                kind = types.CodeActionKind.QuickFix
                yield _action(f"Write {text}  ({error.code})", kind, document, edit)
            if made == _MOST_PROPOSED:
                break


def _proposals(error: Diagnostic, source: Source) -> Iterator[tuple[int, int, str]]:
    """Yield the corrections that a diagnostic's hint proposes: start, end and the new text."""
    if error.span is None or error.span.file != source.name:
        return
    start, end = ends(source, error.span)
    shown = source.text[start:end]
    named = _NAMED.search(error.message)
    part = -1 if named is None else shown.find(named["text"])
    meant = _MEANT.match(error.hint or "")
    if meant is not None:
        text = name_text(meant["name"])
        if named is not None and part >= 0:
            yield start + part, start + part + len(named["text"]), text
        yield start, end, text
        return
    for text in _proposed(error):
        if error.severity != "error":
            if named is not None and part >= 0:
                yield start + part, start + part + len(named["text"]), text
            continue
        yield start, end, text
        # A correction longer than the marked part replaces the text from its own first word on.
        before = source.text.rfind(text.split(" ")[0], source.text.rfind("\n", 0, start) + 1, start)
        if before >= 0:
            yield before, end, text


def _proposed(error: Diagnostic) -> list[str]:
    """Return the texts that a diagnostic's hint proposes to write."""
    write = _WRITE.match(error.hint or "")
    if write is None:
        return []
    texts = [_WHY.sub("", text) for text in _OR.split(write["texts"])]
    if error.code == "TCC234":
        texts = [one for text in texts for one in text.split(", ")]
    texts = [text.strip().removeprefix("'").removesuffix("'") for text in texts]
    return [text for text in texts if text and ".." not in text.replace(" .. ", "")]


def _errors(document: Document, text: str, texts: Texts) -> int:
    """Return the number of errors in a text of a document."""
    found = front_of(document, text, texts).diagnostics
    return len([one for one in found if one.severity == "error"])


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
            title = f"Fix {finding.diagnostic.code}: the meaning stays the same"
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
        title = "Fix all lints that can be fixed: the meaning stays the same"
        yield _action(title, "source.fixAll.tcc", document, edit)


def _fixed(number: int, found: Sequence[LintFinding], diagnosed: Diagnosed) -> str | None:
    """Return the text after some fixes, or None if its core would differ; cache the result."""
    linted = diagnosed.linted
    if linted is None or linted.text is None:
        return None
    if number not in diagnosed.fixes:
        text = fixed_text(linted.text, found)
        front = front_of(diagnosed.document, text, diagnosed.texts)
        diagnosed.fixes[number] = text if has_core(front, linted) else None
    return diagnosed.fixes[number]


def changed_part(before: str, after: str, places: Places) -> types.TextEdit:
    """Return the edit that turns `before` into `after`, without their common start and end."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    most -= start
    end = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    # The protocol has no position between a CR and its LF.
    start -= before[start - 1 : start + 1] == "\r\n"
    end -= end > 0 and before[len(before) - end - 1 : len(before) - end + 1] == "\r\n"
    where = places.range(start, len(before) - end)
    return types.TextEdit(range=where, new_text=after[start : len(after) - end])


def _action(
    title: str, kind: types.CodeActionKind | str, document: Document, edit: types.TextEdit
) -> types.CodeAction:
    changes = types.WorkspaceEdit(changes={document.uri: [edit]})
    return types.CodeAction(title=title, kind=kind, edit=changes)
