"""Elements of a layout (texts, breaks and groups), and how they are turned into lines.

After Oppen, "Prettyprinting", TOPLAS 2(4), 1980: if a group fits on one line, it is written on one
line. Otherwise it has a new line at each of its breaks. A filled group has new lines only where the
next part does not fit. Comments of the source force new lines. Cost: constant for each element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.syntax.tree import Token

WIDTH = 100
DEEPEST = 60  # the last column in which a new line begins
_COMMENT = re.compile(r"#[^\n]*")


@frozen
class Comment:
    """A comment on a separate line.

    Attributes:
        text: from its `#`, without white space at the end.
        apart: whether a blank line is before it.
    """

    text: str
    apart: bool


@frozen
class Gap:
    """The comments between two tokens.

    Attributes:
        trailing: the comment on the line where the first token ends; None if there is none.
        own: the comments on separate lines, in order.
        apart: whether a blank line is after the last of them.
    """

    trailing: str | None = None
    own: tuple[Comment, ...] = ()
    apart: bool = False

    def comments(self) -> list[str]:
        """Return the texts of the comments, in order."""
        first = [] if self.trailing is None else [self.trailing]
        return first + [comment.text for comment in self.own]


NOTHING = Gap()


def gap_of(text: str, start: int, end: int) -> Gap:
    """Return the gap from `start`, the end of a token or the start of the text, to `end`."""
    if text.find("#", start, end) < 0:
        return NOTHING
    trailing = None
    own: list[Comment] = []
    at = start
    for match in _COMMENT.finditer(text, start, end):
        shown = match[0].rstrip(" \t\r")
        lines = text.count("\n", at, match.start())
        if lines == 0 and at == start and start > 0:
            trailing = shown
        else:
            own.append(Comment(text=shown, apart=lines > 1))
        at = match.end()
    apart = bool(own) and text.count("\n", at, end) > 1
    return Gap(trailing=trailing, own=tuple(own), apart=apart)


@frozen(kw_only=False)
class Separator:
    """The space between two tokens.

    Attributes:
        flat: the text between them on one line.
        breaks: whether a new line may be here.
        always: whether a new line has to be here.
        offset: the indentation of that line relative to the lines of the group.
    """

    flat: str
    breaks: bool = False
    always: bool = False
    offset: int = 0


GLUE = Separator("")
SPACE = Separator(" ")
LINE = Separator(" ", True)
LOOSE = Separator("", True)  # a break without a space on one line
NEW_LINE = Separator(" ", True, True)
END_OF_BLOCK = Separator(" ", True, True, -2)


@dataclass(slots=True, eq=False)
class Open:
    """The beginning of a group.

    Attributes:
        fill: True: new lines only where the next part does not fit. False: at all breaks or none.
        indent: the indentation of new lines, relative to the group around.
        aligned: True: `indent` is relative to the column where the group begins.
        listed: True: after a part that took several lines, a new line begins.
    """

    fill: bool
    indent: int = 0
    aligned: bool = False
    listed: bool = False


@frozen(kw_only=False, eq=False)
class Close:
    """The end of a group."""


@frozen(kw_only=False, eq=False)
class Break:
    """A place for a new line. With comments, or if `always` is True, there is a new line."""

    flat: str
    offset: int
    gap: Gap
    always: bool

    @property
    def forced(self) -> bool:
        """True if a new line has to be here."""
        return self.always or self.gap is not NOTHING


Element: TypeAlias = "str | Open | Close | Break"


class Elements:
    """The elements of one statement, made from its tokens in order."""

    def __init__(self, text: str, gaps: Mapping[int, Gap]) -> None:
        """Begin a statement.

        Args:
            text: the source.
            gaps: the comments before each token, by the offset of the token.
        """
        self.made: list[Element] = []
        self._text = text
        self._gaps = gaps

    def open(
        self, *, fill: bool, indent: int = 0, aligned: bool = False, listed: bool = False
    ) -> None:
        """Begin a group."""
        self.made.append(Open(fill, indent, aligned, listed))

    def close(self) -> None:
        """End the innermost group."""
        self.made.append(Close())

    def before(self, start: int, separator: Separator) -> None:
        """Add the space before the token at an offset, with its comments."""
        gap = self._gaps.get(start, NOTHING)
        if separator.breaks or gap is not NOTHING:
            self.made.append(Break(separator.flat, separator.offset, gap, separator.always))
        elif separator.flat:
            self.made.append(separator.flat)

    def put(self, token: Token) -> None:
        """Add a token as it was written."""
        self.made.append(self._text[token.start : token.end])


def lines_of(elements: Sequence[Element], width: int = WIDTH) -> str:
    """Return the text of a statement, without a final newline."""
    ends, forced = _measured(elements)
    return _Printer(width).run(elements, ends, forced)


def _measured(elements: Sequence[Element]) -> tuple[list[int], set[int]]:
    """Return the width of each group or break on one line, and the groups with a forced new line.

    The width of a group includes the text up to the next break after it. The width of a break is
    the text up to the next break of its group, or of a group around it.
    """
    starts, at = [], 0
    for element in elements:
        starts.append(at)
        if isinstance(element, str | Break):
            at += len(element if isinstance(element, str) else element.flat)
    ends = [0] * len(elements)
    forced: set[int] = set()
    following = stop = at  # where the next break begins, and the next forced break
    outer: list[tuple[int, bool]] = []  # for each group around: the next break after it; any forced
    levels = [at]  # for each depth: the next break that is not deeper
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


@dataclass(slots=True)
class _Group:
    """An open group.

    Attributes:
        flat: whether it is written on one line.
        fill, listed: as in its `Open`.
        indent: the column of its new lines.
        line: the number of the line where its current part begins.
    """

    flat: bool
    fill: bool
    indent: int
    listed: bool = False
    line: int = 0


class _Printer:
    """Writes the elements in one pass.

    Invariant: `column` and `line` are the place of the next text.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.parts: list[str] = []
        self.column = 0
        self.line = 0
        self.groups = [_Group(False, True, 0)]

    def run(self, elements: Sequence[Element], ends: Sequence[int], forced: set[int]) -> str:
        for index, element in enumerate(elements):
            if isinstance(element, str):
                self._write(element)
            elif isinstance(element, Open):
                self._open(element, ends[index], index in forced)
            elif isinstance(element, Close):
                self.groups.pop()
            else:
                self._break(element, ends[index])
        return "".join(self.parts)

    def _write(self, text: str) -> None:
        self.parts.append(text)
        self.column += len(text)

    def _open(self, group: Open, size: int, forced: bool) -> None:
        around = self.groups[-1]
        fits = around.flat or (not forced and self.column + size <= self.width)
        own = (self.column if group.aligned else around.indent) + group.indent
        if own > DEEPEST:
            own = min(around.indent + 2, DEEPEST)
        self.groups.append(_Group(fits, group.fill, own, group.listed, self.line))

    def _break(self, at: Break, size: int) -> None:
        group = self.groups[-1]
        ends = group.listed and group.line < self.line
        if at.forced:
            self._comments(at, group.indent)
        elif group.flat or (group.fill and not ends and self.column + size <= self.width):
            self._write(at.flat)
        else:
            self._new_line(group.indent + at.offset)
        group.line = self.line

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
        self.line += 1
