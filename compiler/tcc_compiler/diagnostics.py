"""Diagnostics: what is wrong, where, and how to mend it; their collection and their text.

Codes and their explanations stand in :mod:`tcc_compiler.catalogue`.  Rendering is pure: the same
diagnostic and sources give the same text.  Whatever a source holds, the lines have no control or
hidden characters in them.  Cost: linear in what is shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Literal, TypeAlias

from tcc_certs.plain import escaped, is_plain
from tcc_compiler.source import Source
from tcc_compiler.spans import Region, Span

Severity: TypeAlias = 'Literal["error", "warning"]'
MAX_DIAGNOSTICS = 200
_TICKS = 512
_WINDOW = 160
_TAB = "    "


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A second place, and what is to be seen there."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding about a grammar.

    Attributes:
        code: stable, such as ``TCC101``; explained by :mod:`tcc_compiler.catalogue`.
        severity: an error means that there is no core.
        message: what is wrong, a sentence without its full stop.
        span: where, or None where no place of a source is meant.
        hint: how to mend it.
        notes: other places that matter.
    """

    code: str
    message: str
    span: Span | None
    severity: Severity = "error"
    hint: str | None = None
    notes: tuple[Note, ...] = ()


class Report:
    """Collects the findings of a run over its sources, and hands them out sorted by place.

    Every pass of the front end has it, so that it is told here too how far they are.
    """

    def __init__(self, sources: Sequence[Source], look: Callable[[], None] | None = None) -> None:
        """Begin a run.

        Args:
            look: called every few hundred steps; it ends the run by raising.
        """
        self._sources = sources
        self._look = look
        self._ticks = 0
        self._found: dict[tuple[int, int, int, str, str], Diagnostic] = {}

    def error(
        self,
        code: str,
        region: Region,
        message: str,
        hint: str | None = None,
        notes: Sequence[tuple[str, Region]] = (),
    ) -> None:
        """Add an error; the same one at the same place counts once."""
        key = (region.source, region.start, region.end, code, message)
        self._found.setdefault(
            key,
            Diagnostic(
                code=code,
                message=message,
                span=self.span(region),
                hint=hint,
                notes=tuple(Note(message=text, span=self.span(at)) for text, at in notes),
            ),
        )

    def tick(self, steps: int = 1) -> None:
        """So many small steps were made: tokens, nodes, terms, calls."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            if self._look is not None:
                self._look()

    def span(self, region: Region) -> Span:
        """The span of a region of any of the sources."""
        return self._sources[region.source].span(region)

    @property
    def failed(self) -> bool:
        """True as soon as there is an error."""
        return bool(self._found)

    @property
    def full(self) -> bool:
        """True when more findings would not be shown."""
        return len(self._found) > MAX_DIAGNOSTICS

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings by file, place and code; past the limit one that says how many are left."""
        ordered = [self._found[key] for key in sorted(self._found)]
        if len(ordered) <= MAX_DIAGNOSTICS:
            return tuple(ordered)
        shown = ordered[:MAX_DIAGNOSTICS]
        rest = f"more than {MAX_DIAGNOSTICS} errors; the others are not shown"
        return (*shown, Diagnostic(code="TCC112", message=rest, span=shown[-1].span))


def suggest(word: str, known: Sequence[str]) -> str | None:
    """A mend that names the closest of `known`, where one is close; the work is bounded."""
    if not 0 < len(word) <= 64:
        return None
    likely = [
        other
        for other in islice(known, 5000)
        if abs(len(other) - len(word)) <= 3 and (other[0] == word[0] or other[-1] == word[-1])
    ]
    close = get_close_matches(word, likely[:60], n=1, cutoff=0.6)
    return f"did you mean {quote(close[0])}?" if close else None


def quote(text: str) -> str:
    """A word of the source between quotes, cut where it is long."""
    return f"'{text if len(text) <= 60 else text[:45] + '...' + text[-12:]}'"


def render(diagnostic: Diagnostic, sources: Mapping[str, Source]) -> str:
    """The diagnostic as plain text, with the source line and carets; no newline at the end.

    Args:
        diagnostic: what to show.
        sources: the sources by name; a file that is not among them is shown without its line.
    """
    head = f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"
    lines = _block(diagnostic.span, head, sources)
    if diagnostic.hint:
        lines.append(escaped(f"  help: {diagnostic.hint}"))
    for note in diagnostic.notes:
        lines += _block(note.span, f"note: {note.message}", sources)
    return "\n".join(lines)


def _block(span: Span | None, head: str, sources: Mapping[str, Source]) -> list[str]:
    if span is None:
        return [escaped(head)]
    lines = [escaped(f"{span.file}:{span.line}:{span.column}: {head}")]
    source = sources.get(span.file)
    if source is None or not source.text:
        return lines
    gutter = str(span.line)
    shown, carets = _window(source.line(span.line), span)
    return [*lines, f"{gutter} | {shown}".rstrip(), f"{' ' * len(gutter)} | {carets}"]


def _window(line: str, span: Span) -> tuple[str, str]:
    """The part of a line around the span, and the carets below it."""
    start = min(span.column - 1, len(line))
    stop = span.end_column - 1 if span.end_line == span.line else len(line)
    stop = max(stop, start + 1)
    first = 0
    if len(line) > _WINDOW:
        first = max(0, min(start - _WINDOW // 4, len(line) - _WINDOW))
    piece = line[first : first + _WINDOW]
    before = piece[: start - first]
    marked = piece[start - first : stop - first]
    lead = "... " if first else ""
    tail = " ..." if first + len(piece) < len(line) else ""
    indent = " " * sum(_columns(char) for char in before)
    carets = "^" * max(1, sum(_columns(char) for char in marked))
    shown = escaped(piece.replace("\t", _TAB))
    return f"{lead}{shown}{tail}", f"{' ' * len(lead)}{indent}{carets}"


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes, as it is shown."""
    if char == "\t":
        return len(_TAB)
    if not is_plain(char):
        return len(escaped(char))
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
