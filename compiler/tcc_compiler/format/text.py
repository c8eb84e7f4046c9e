"""A grammar's text in its canonical layout, with every comment where it belongs.

Normative text: docs/working.md.  The layout follows from the tokens and the comments; of the lines
of the text it takes which comment stands behind a token and which on a line of its own, and the
blank lines beside comments.  The tokens stay what they are, and are read again to see that.
Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcc_compiler.format.comments import NOTHING, Gap, gap_of
from tcc_compiler.format.elements import Elements
from tcc_compiler.format.lines import lines_of
from tcc_compiler.format.statements import put_statement
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import (
    MAX_SOURCE_BYTES,
    Source,
    Unreadable,
    decode,
    source_of,
    too_large,
)
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.parse import parse
from tcc_compiler.language.syntax.tokens import Chunk, split

# Statements of one number stand together, a blank line before and after them.
_PARAGRAPHS = (
    ("GRAMMAR",), ("CURRENCY",), ("USE",), ("TOOL",), ("START", "GOAL"), ("RULE", "PLAN"),
    ("LIMIT",), ("REQUIRE", "FORBID"), ("ACCEPT", "REJECT"), ("EXPECT",),
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

    source: Source
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def format_bytes(
    data: bytes | Unreadable, name: str, check_time: Callable[[], None] | None = None
) -> Formatted:
    """The canonical layout of a file's bytes.

    Args:
        data: the bytes, at most MAX_SOURCE_BYTES are taken; or why there are none.
        name: how diagnostics name the file.
        check_time: called every few hundred steps; it ends the work by raising.
    """
    if isinstance(data, bytes):
        text = too_large() if len(data) > MAX_SOURCE_BYTES else decode(data)
    else:
        text = data
    if isinstance(text, Unreadable):
        source = source_of(text.text, name)
        report = Report([source])
        report.error(text.code, Region(0, text.offset, text.offset), text.message, text.hint)
        return Formatted(source=source, text=None, diagnostics=report.diagnostics())
    return format_source(source_of(text, name), check_time)


def format_text(text: str, name: str = "<text>") -> Formatted:
    """The canonical layout of a text."""
    try:
        return format_bytes(text.encode(), name)
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return format_bytes(Unreadable(code="TCC108", message=message), name)


def format_source(source: Source, check_time: Callable[[], None] | None = None) -> Formatted:
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
        if len(text.encode()) > MAX_SOURCE_BYTES:
            problem = too_large()
            report.error(problem.code, Region(0, 0, 0), f"laid out, {problem.message}")
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
        made = Elements(text, gaps)
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
    source = source_of(written, "<laid out>")
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
