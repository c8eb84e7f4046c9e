"""Diagnostics name an error, its place and a correction. They are collected and rendered here.

Codes and their explanations are in :mod:`tcc_compiler.language.catalogue`. Rendering has no side
effects: equal diagnostics and sources give equal texts. Control and hidden characters of a source
are escaped. Cost: linear in the rendered text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from itertools import islice, takewhile
from typing import Literal, TypeAlias

from tcc_certs.errors import escaped, is_plain
from tcc_compiler.frozen import frozen
from tcc_compiler.language.source import Region, Source, Span

Severity: TypeAlias = 'Literal["error", "warning", "note"]'
MAX_DIAGNOSTICS = 200
_TICKS = 512
_MOST_KNOWN = 5000  # the most names that a misspelt name is compared with
_MOST_LIKELY = 60  # the most names that are compared closely
_MOST_SHOWN = 8
_WINDOW = 160
_TAB = "    "


@frozen
class Note:
    """A further message, usually about a second place."""

    message: str
    span: Span | None = None


@frozen
class Diagnostic:
    """One finding about a grammar.

    Attributes:
        code: stable, such as ``TCC101``; explained by :mod:`tcc_compiler.language.catalogue`.
        severity: with an error there is no core, or no artifact.
        message: a sentence about the problem, without its full stop.
        span: its place; None if it is about no place of a source.
        hint: how to correct it.
        notes: further messages, often about other places.
    """

    code: str
    message: str
    span: Span | None
    severity: Severity = "error"
    hint: str | None = None
    notes: tuple[Note, ...] = ()


class Report:
    """Collects the errors of one reading of a grammar, and returns them sorted by place.

    Every pass of the front end has a report, so it also counts their steps for the time limit.
    """

    def __init__(
        self, sources: Sequence[Source], check_time: Callable[[], None] | None = None
    ) -> None:
        """Begin a reading.

        Args:
            sources: by their numbers in regions. Passes may append to it.
            check_time: called every few hundred steps. It ends the reading by raising.
        """
        self._sources = sources
        self._check_time = check_time
        self._ticks = 0
        self._errors: dict[tuple[int, int, int, str, str], Diagnostic] = {}

    def error(
        self,
        code: str,
        region: Region,
        message: str,
        hint: str | None = None,
        notes: Sequence[tuple[str, Region]] = (),
    ) -> None:
        """Add an error; an equal error at the same place is added only once."""
        key = (region.source, region.start, region.end, code, message)
        self._errors.setdefault(
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
        """Count small steps, such as tokens, nodes, terms or calls; check the time now and then."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            if self._check_time is not None:
                self._check_time()

    def span(self, region: Region) -> Span:
        """Return the span of a region of any source."""
        return self._sources[region.source].span(region)

    @property
    def failed(self) -> bool:
        """True if there is an error."""
        return bool(self._errors)

    @property
    def full(self) -> bool:
        """True if there are so many errors that further ones would not be returned."""
        return len(self._errors) > MAX_DIAGNOSTICS

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the errors sorted by place; past the limit, a last one says there are more."""
        ordered = [self._errors[key] for key in sorted(self._errors)]
        if len(ordered) <= MAX_DIAGNOSTICS:
            return tuple(ordered)
        shown = ordered[:MAX_DIAGNOSTICS]
        rest = f"more than {MAX_DIAGNOSTICS} errors; the others are not shown"
        return (*shown, Diagnostic(code="TCC112", message=rest, span=shown[-1].span))


def suggest(word: str, known: Sequence[str]) -> str | None:
    """Return a hint that names the closest of `known`, or None; only some names are compared."""
    if not 0 < len(word) <= 64:
        return None
    folded = word.casefold()
    likely = []
    for other in islice(known, _MOST_KNOWN):
        if other.casefold() == folded:
            return f"did you mean {quote(other)}? Capital letters and small ones differ"
        alike = other[:1] == word[0] or other[-1:] == word[-1]
        if alike and abs(len(other) - len(word)) <= 3:
            likely.append(other)
    from difflib import get_close_matches  # imported here: most grammars have no misspelt name

    nearest = nlargest(_MOST_LIKELY, likely, key=lambda other: _shared(other, word))
    close = get_close_matches(word, nearest, n=1, cutoff=0.6)
    return f"did you mean {quote(close[0])}?" if close else None


def _shared(one: str, other: str) -> int:
    """Return how many characters two words share at the beginning plus at the end."""
    pairs = list(zip(one, other, strict=False))
    back = zip(reversed(one), reversed(other), strict=False)
    ahead = sum(1 for _ in takewhile(_alike, pairs))
    return ahead + sum(1 for _ in takewhile(_alike, back))


def _alike(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def some(texts: Sequence[str], joint: str = ", ") -> str:
    """Return the first few texts, joined; if there are more, with their number."""
    shown = joint.join(
        text if len(text) <= 40 else text[:30] + "..." for text in texts[:_MOST_SHOWN]
    )
    return shown if len(texts) <= _MOST_SHOWN else f"{shown}{joint}.. ({len(texts)} in all)"


def quote(text: str) -> str:
    """Return a word of the source in quotes; a long word is cut."""
    return f"'{cut(text)}'"


def cut(text: str) -> str:
    """Return a word of the source; of a long word the middle is left out."""
    return text if len(text) <= 60 else f"{text[:45]}...{text[-12:]}"


def render(diagnostic: Diagnostic, sources: Mapping[str, Source]) -> str:
    """Return the diagnostic as plain text with the source line and carets, no final newline.

    Args:
        diagnostic: the diagnostic to show.
        sources: the sources by name. A file that is missing here is shown without its line.
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
    """Return the part of a line around the span, and the carets to write below it."""
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
    """Return how many columns of a terminal a character takes, as it is shown."""
    if char == "\t":
        return len(_TAB)
    if not is_plain(char):
        return len(escaped(char))
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
