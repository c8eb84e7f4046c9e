"""Write a grammar's text in the standard layout, with every comment at its place.

The layout is determined by the syntax trees and the comments. Comments at the end of a line stay
there; other comments stay on separate lines. At most one blank line is kept between statements. The
result is parsed again, to make sure that it has the same tokens and comments. Cost: linear in the
text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language import source as sources
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.layout.lines import NOTHING, Elements, Gap, gap_of, lines_of
from tcc_compiler.layout.statements import Layout
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tree import Tree, tokens_of

# A blank line separates statements of different paragraphs.
_PARAGRAPHS: Sequence[tuple[str, ...]] = (
    ("header", "currency", "use"),
    ("given", "learned"),
    ("shape",),
    ("tool",),
    ("begin", "goal"),
    ("rule", "plan"),
    ("pass_",),
    ("let", "before", "finally_", "forbid", "owe", "limit"),
    ("example",),
    ("expect_number", "expect_always", "expect_reachable", "expect_implies"),
)
_PARAGRAPH = {kind: number for number, kinds in enumerate(_PARAGRAPHS) for kind in kinds}


class LayoutError(Exception):
    """Raised if the result would not be the same grammar, which is a defect of this package."""


@frozen
class Formatted:
    """A text and its layout.

    Attributes:
        source: the text; empty if the bytes are no text.
        text: the text in the standard layout; None if there are syntax errors.
        diagnostics: the syntax errors.
    """

    source: sources.Source
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def format_bytes(
    data: bytes | sources.Unreadable, name: str, check_time: Callable[[], None] | None = None
) -> Formatted:
    """Return the layout of a file's bytes.

    Args:
        data: the bytes, or the reason why they cannot be read.
        name: the name of the file in diagnostics.
        check_time: called every few hundred steps. It ends the work by raising.
    """
    text: str | sources.Unreadable
    if isinstance(data, bytes):
        text = sources.too_large() if len(data) > sources.MAX_SOURCE_BYTES else sources.decode(data)
    else:
        text = data
    if isinstance(text, sources.Unreadable):
        source = sources.source_of(text.text, name)
        report = Report([source])
        region = sources.Region(0, text.offset, text.offset)
        report.error(text.code, region, text.message, text.hint)
        return Formatted(source=source, text=None, diagnostics=report.diagnostics())
    return format_source(sources.source_of(text, name), check_time)


def format_text(text: str, name: str = "<text>") -> Formatted:
    """Return the layout of a text."""
    try:
        return format_bytes(text.encode(), name)
    except UnicodeEncodeError as error:
        message = f"character {error.start} is half of a surrogate pair: this is not text"
        return format_bytes(sources.Unreadable(code="TCC108", message=message), name)


def format_source(
    source: sources.Source, check_time: Callable[[], None] | None = None
) -> Formatted:
    """Return the layout of a source.

    Raises:
        LayoutError: the tokens or comments would change, which is a defect.
    """
    report = Report([source], check_time)
    file = parse(source, 0, report)
    if not report.failed:
        gaps = _gaps(source.text, file.statements)
        text = _written(source.text, file.statements, gaps)
        if len(text.encode()) <= sources.MAX_SOURCE_BYTES:
            _require_same(source.text, file.statements, gaps, text)
            return Formatted(source=source, text=text)
        problem = sources.too_large()
        report.error(problem.code, sources.Region(0, 0, 0), f"laid out, {problem.message}")
    return Formatted(source=source, text=None, diagnostics=report.diagnostics())


def _gaps(text: str, statements: Sequence[Tree]) -> dict[int, Gap]:
    """Return the comments before each token, by its offset; the last by the length of the text."""
    gaps: dict[int, Gap] = {}
    at = 0
    for statement in statements:
        for token in tokens_of(statement):
            gap = gap_of(text, at, token.start)
            if gap is not NOTHING:
                gaps[token.start] = gap
            at = token.end
    gap = gap_of(text, at, len(text))
    return gaps if gap is NOTHING else gaps | {len(text): gap}


def _written(text: str, statements: Sequence[Tree], gaps: Mapping[int, Gap]) -> str:
    parts: list[str] = []
    before: Tree | None = None
    for statement in statements:
        gap = gaps.get(statement.start, NOTHING)
        parted = False
        if before is not None:
            blank = not gap.own and text.count("\n", before.end, statement.start) > 1
            parted = blank or _PARAGRAPH[before.kind] != _PARAGRAPH[statement.kind]
        _write_between(parts, gap, parted=parted)
        made = Elements(text, gaps)
        Layout(made).put(statement)
        parts.append(lines_of(made.made))
        before = statement
    end = gaps.get(len(text), NOTHING)
    _write_between(parts, Gap(trailing=end.trailing, own=end.own), parted=False)
    whole = "".join(parts)
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def _write_between(parts: list[str], gap: Gap, *, parted: bool) -> None:
    """Write the space between two statements, from the end of the first to the start of the second.

    Args:
        parted: True requires a blank line; without one between comments, it is before them.
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


def _require_same(
    text: str, statements: Sequence[Tree], gaps: Mapping[int, Gap], written: str
) -> None:
    """Check that the written text has the same tokens, and the same comments between them."""
    source = sources.source_of(written, "<laid out>")
    report = Report([source])
    again = parse(source, 0, report).statements
    if report.failed or _content(text, statements, gaps) != _content(
        written, again, _gaps(written, again)
    ):
        raise LayoutError("the laid out text has other tokens or comments than the text")


def _content(text: str, statements: Sequence[Tree], gaps: Mapping[int, Gap]) -> list[list[str]]:
    """Return the tokens and comments of each statement, and the comments at the end of the text."""
    content = []
    for statement in statements:
        said: list[str] = []
        for token in tokens_of(statement):
            said += gaps.get(token.start, NOTHING).comments()
            said += (token.kind, token.text)
        content.append(said)
    return [*content, gaps.get(len(text), NOTHING).comments()]
