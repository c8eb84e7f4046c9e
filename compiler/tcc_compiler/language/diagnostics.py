"""Diagnostics: what is wrong, where, and how to correct it; collected, and rendered as text.

Codes and their explanations stand in :mod:`tcc_compiler.language.catalogue`.  Rendering is pure:
the same diagnostic and sources give the same text.  Control and hidden characters of a source are
escaped.  Cost: linear in what is shown.
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
_MOST_KNOWN = 5000  # names that a misspelt one is compared with
_MOST_LIKELY = 60  # of these, closely
_MOST_SHOWN = 8
_WINDOW = 160
_TAB = "    "


@frozen
class Note:
    """A further message, most often about a second place."""

    message: str
    span: Span | None = None


@frozen
class Diagnostic:
    """One finding about a grammar.

    Attributes:
        code: stable, such as ``TCC101``; explained by :mod:`tcc_compiler.language.catalogue`.
        severity: after an error there is no core, or no artifact.
        message: what is wrong, a sentence without its full stop.
        span: where; None where the message is about no place of a source.
        hint: how to correct it.
        notes: other places that matter.
    """

    code: str
    message: str
    span: Span | None
    severity: Severity = "error"
    hint: str | None = None
    notes: tuple[Note, ...] = ()


class Report:
    """Collects the errors of one reading of a grammar, and returns them sorted by place.

    Every pass of the front end has one, so it counts their steps too, for the time limit.
    """

    def __init__(
        self, sources: Sequence[Source], check_time: Callable[[], None] | None = None
    ) -> None:
        """Begin a reading.

        Args:
            sources: by number, as regions name them; passes may append to it.
            check_time: called every few hundred steps; it ends the reading by raising.
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
        """Add an error; the same one at the same place counts once."""
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
        """Count `steps` small steps: tokens, nodes, terms, calls."""
        self._ticks += steps
        if self._ticks >= _TICKS:
            self._ticks = 0
            if self._check_time is not None:
                self._check_time()

    def span(self, region: Region) -> Span:
        """The span of a region of any of the sources."""
        return self._sources[region.source].span(region)

    @property
    def failed(self) -> bool:
        """True as soon as there is an error."""
        return bool(self._errors)

    @property
    def full(self) -> bool:
        """True when further errors would not be shown."""
        return len(self._errors) > MAX_DIAGNOSTICS

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All errors by file, place and code; past the limit, one that says there are more."""
        ordered = [self._errors[key] for key in sorted(self._errors)]
        if len(ordered) <= MAX_DIAGNOSTICS:
            return tuple(ordered)
        shown = ordered[:MAX_DIAGNOSTICS]
        rest = f"more than {MAX_DIAGNOSTICS} errors; the others are not shown"
        return (*shown, Diagnostic(code="TCC112", message=rest, span=shown[-1].span))


def suggest(word: str, known: Sequence[str]) -> str | None:
    """A hint that names the closest of `known`, if one is close; the work is bounded."""
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
    from difflib import get_close_matches  # here: most grammars have no misspelt name

    nearest = nlargest(_MOST_LIKELY, likely, key=lambda other: _shared(other, word))
    close = get_close_matches(word, nearest, n=1, cutoff=0.6)
    return f"did you mean {quote(close[0])}?" if close else None


def _shared(one: str, other: str) -> int:
    """How many characters two words share at their beginnings and ends."""
    pairs = list(zip(one, other, strict=False))
    back = zip(reversed(one), reversed(other), strict=False)
    ahead = sum(1 for _ in takewhile(_alike, pairs))
    return ahead + sum(1 for _ in takewhile(_alike, back))


def _alike(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def some(texts: Sequence[str], joint: str = ", ") -> str:
    """The first few of some texts of a source, with how many there are where those are not all."""
    shown = joint.join(
        text if len(text) <= 40 else text[:30] + "..." for text in texts[:_MOST_SHOWN]
    )
    return shown if len(texts) <= _MOST_SHOWN else f"{shown}{joint}.. ({len(texts)} in all)"


def quote(text: str) -> str:
    """A word of the source between quotes, cut where it is long."""
    return f"'{cut(text)}'"


def cut(text: str) -> str:
    """A word of the source, without its middle where it is long."""
    return text if len(text) <= 60 else f"{text[:45]}...{text[-12:]}"


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
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
