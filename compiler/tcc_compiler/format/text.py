"""A grammar's text in its canonical layout, with every comment where it belongs.

Normative text: docs/working.md.  The layout follows from the tokens and the comments; of the lines
of the text it takes which comment stands behind a token and which on a line of its own, and the
blank lines beside comments.  The tokens stay what they are, and are read again to see that.
Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_compiler.format.elements import (
    NOTHING,
    Break,
    Close,
    Element,
    Gap,
    Open,
    StatementElements,
    gap_of,
)
from tcc_compiler.format.layout import put_statement
from tcc_compiler.frozen import frozen
from tcc_compiler.language import source as sources
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.syntax.parse import parse
from tcc_compiler.language.syntax.tokens import Chunk, split

# Elements to lines: a new line begins at column DEEPEST at the most, so that nesting does not make
# the text long.

WIDTH = 100
DEEPEST = 60


def lines_of(elements: Sequence[Element], width: int = WIDTH) -> str:
    """The text of a statement, without a newline at its end."""
    ends, forced = _measured(elements)
    return _Printer(width).run(elements, ends, forced)


def _measured(elements: Sequence[Element]) -> tuple[list[int], set[int]]:
    """How wide what a group or a break decides about is on one line; groups with comments inside.

    For a group that is all of it, and what is glued behind it; for a break what comes up to the
    next break of its group, or of one around it.
    """
    starts, at = [], 0
    for element in elements:
        starts.append(at)
        if isinstance(element, str | Break):
            at += len(element if isinstance(element, str) else element.flat)
    ends = [0] * len(elements)
    forced: set[int] = set()
    following = stop = at  # the next break of all, the next with a comment
    outer: list[tuple[int, bool]] = []  # of each group around: the break behind it, any comment
    levels = [at]  # by depth: the next break that is no deeper
    inside = False
    for index in range(len(elements) - 1, -1, -1):
        element = elements[index]
        if isinstance(element, Break):
            ends[index] = min(levels[-1], stop) - starts[index]
            levels[-1] = following = starts[index]
            if element.forced:
                stop, inside = starts[index], True
        elif isinstance(element, Close):
            outer.append((following, inside))
            levels.append(levels[-1])
            inside = False
        elif isinstance(element, Open):
            levels.pop()
            behind, before = outer.pop()
            ends[index] = behind - starts[index]
            if inside:
                forced.add(index)
            inside = inside or before
    return ends, forced


class _Printer:
    """One pass over the elements.

    Invariant: `groups` has of each open group whether it is on one line, whether it is filled, and
    where its new lines begin; `column` is where the next text stands.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.parts: list[str] = []
        self.column = 0
        self.groups: list[tuple[bool, bool, int]] = [(False, True, 0)]

    def run(self, elements: Sequence[Element], ends: Sequence[int], forced: set[int]) -> str:
        for index, element in enumerate(elements):
            if isinstance(element, str):
                self._say(element)
            elif isinstance(element, Open):
                self._open(element, ends[index], index in forced)
            elif isinstance(element, Close):
                self.groups.pop()
            else:
                self._break(element, ends[index])
        return "".join(self.parts)

    def _say(self, text: str) -> None:
        self.parts.append(text)
        self.column += len(text)

    def _open(self, group: Open, size: int, forced: bool) -> None:
        flat, _, indent = self.groups[-1]
        fits = flat or (not forced and self.column + size <= self.width)
        own = (self.column if group.aligned else indent) + group.indent
        if own > DEEPEST:
            own = min(indent + 2, DEEPEST)
        self.groups.append((fits, group.fill, own))

    def _break(self, at: Break, size: int) -> None:
        flat, fill, indent = self.groups[-1]
        if at.forced:
            self._comments(at, indent)
        elif flat or (fill and self.column + size <= self.width):
            self._say(at.flat)
        else:
            self._new_line(indent + at.offset)

    def _comments(self, at: Break, indent: int) -> None:
        if at.gap.trailing is not None:
            self.parts.append(f"  {at.gap.trailing}")
        for comment in at.gap.own:
            self._new_line(indent)
            self.parts.append(comment.text)
        self._new_line(indent + at.offset)

    def _new_line(self, indent: int) -> None:
        self.parts.append("\n" + " " * indent)
        self.column = indent


# Statements of one number stand together, a blank line before and after them.
_PARAGRAPHS = (
    ("GRAMMAR",), ("CURRENCY",), ("USE",), ("TOOL",), ("START", "GOAL"), ("RULE", "PLAN"),
    ("LIMIT",), ("REQUIRE", "FORBID", "MONITOR"),
    ("PASS",), ("GIVEN", "LET"), ("ACCEPT", "REJECT"), ("EXPECT",),
)  # fmt: skip
_PARAGRAPH = {kind: number for number, kinds in enumerate(_PARAGRAPHS) for kind in kinds}


class LayoutError(Exception):
    """The laid out text would not be the same grammar: a defect of this module."""


@frozen
class Formatted:
    """A text and its canonical layout.

    Attributes:
        source: the text; empty where its bytes are no text.
        text: the canonical layout; None where the text has an error of syntax.
        diagnostics: those errors.
    """

    source: sources.Source
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def format_bytes(
    data: bytes | sources.Unreadable, name: str, check_time: Callable[[], None] | None = None
) -> Formatted:
    """The canonical layout of a file's bytes.

    Args:
        data: the bytes, at most MAX_SOURCE_BYTES are taken; or why there are none.
        name: how diagnostics name the file.
        check_time: called every few hundred steps; it ends the work by raising.
    """
    if isinstance(data, bytes):
        text = sources.too_large() if len(data) > sources.MAX_SOURCE_BYTES else sources.decode(data)
    else:
        text = data
    if isinstance(text, sources.Unreadable):
        source = sources.source_of(text.text, name)
        report = Report([source])
        report.error(
            text.code, sources.Region(0, text.offset, text.offset), text.message, text.hint
        )
        return Formatted(source=source, text=None, diagnostics=report.diagnostics())
    return format_source(sources.source_of(text, name), check_time)


def format_text(text: str, name: str = "<text>") -> Formatted:
    """The canonical layout of a text."""
    try:
        return format_bytes(text.encode(), name)
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return format_bytes(sources.Unreadable(code="TCC108", message=message), name)


def format_source(
    source: sources.Source, check_time: Callable[[], None] | None = None
) -> Formatted:
    """The canonical layout of a source.

    Raises:
        LayoutError: a defect: the tokens or the comments would change.
    """
    report = Report([source], check_time)
    parse(source, 0, report)
    if not report.failed:
        chunks = split(source.text, 0, report)
        gaps = _gaps(source.text, chunks)
        text = _written(source.text, chunks, gaps)
        _require_same(source.text, chunks, gaps, text)
        if len(text.encode()) > sources.MAX_SOURCE_BYTES:
            problem = sources.too_large()
            report.error(problem.code, sources.Region(0, 0, 0), f"laid out, {problem.message}")
        else:
            return Formatted(source=source, text=text)
    return Formatted(source=source, text=None, diagnostics=report.diagnostics())


def _gaps(text: str, chunks: Sequence[Chunk]) -> dict[int, Gap]:
    """The comments before each token, by its offset; those after the last by the text's length."""
    gaps: dict[int, Gap] = {}
    at = 0
    for chunk in chunks:
        for token in chunk.tokens:
            gap = gap_of(text, at, token.region.start)
            if gap is not NOTHING:
                gaps[token.region.start] = gap
            at = token.region.end
    gap = gap_of(text, at, len(text))
    return gaps if gap is NOTHING else gaps | {len(text): gap}


def _written(text: str, chunks: Sequence[Chunk], gaps: dict[int, Gap]) -> str:
    parts: list[str] = []
    before = None
    for chunk in chunks:
        first = chunk.tokens[0]
        paragraph = _PARAGRAPH[first.type]
        gap = gaps.get(first.region.start, NOTHING)
        _write_between(parts, gap, parted=before is not None and paragraph != before)
        made = StatementElements(text, gaps)
        put_statement(made, chunk.tokens)
        parts.append(lines_of(made.made))
        before = paragraph
    end = gaps.get(len(text), NOTHING)
    _write_between(parts, Gap(trailing=end.trailing, own=end.own), parted=False)
    whole = "".join(parts)
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def _write_between(parts: list[str], gap: Gap, *, parted: bool) -> None:
    """Write what stands between two statements, from the end of the one to the next line.

    Args:
        parted: there is a blank line, and if nowhere else, then before the comments.
    """
    begun = bool(parts)
    if gap.trailing is not None:
        parts.append(f"  {gap.trailing}")
    if begun:
        parts.append("\n")
    apart = gap.apart or any(comment.apart for comment in gap.own)
    if parted and not apart:
        parts.append("\n")
    for place, comment in enumerate(gap.own):
        blank = comment.apart and (begun or place > 0)
        parts.append(f"\n{comment.text}\n" if blank else f"{comment.text}\n")
    if gap.own and gap.apart:
        parts.append("\n")


def _require_same(text: str, chunks: Sequence[Chunk], gaps: dict[int, Gap], written: str) -> None:
    """Read the written text again: it has the same tokens, and the same comments between them."""
    source = sources.source_of(written, "<laid out>")
    report = Report([source])
    again = split(written, 0, report)
    same = not report.failed and _told(text, chunks, gaps) == _told(
        written, again, _gaps(written, again)
    )
    if not same:
        raise LayoutError("the laid out text has other tokens or comments than the text")


def _told(text: str, chunks: Sequence[Chunk], gaps: dict[int, Gap]) -> list[list[str]]:
    """Of each statement, and of the end of the text, what has to stay as it is."""
    told = []
    for chunk in chunks:
        said: list[str] = []
        for token in chunk.tokens:
            gap = gaps.get(token.region.start, NOTHING)
            said += gap.comments()
            said += (token.type, text[token.region.start : token.region.end])
        told.append(said)
    return [*told, gaps.get(len(text), NOTHING).comments()]
