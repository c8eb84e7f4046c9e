"""What a statement is made of on its way to lines: texts, breaks, and groups of them.

After Oppen, "Prettyprinting", TOPLAS 2(4), 1980: a group that fits stands on one line; one that
does not has a new line at all of its breaks, or only where the next part does not fit.
Cost: constant an element.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.syntax.tokens import Lexeme

# The comments between two tokens.  Which one stands behind a token, which on a line of its own and
# whether a blank line stands beside it is all that the layout takes from where things stood.

_COMMENT = re.compile(r"#[^\n]*")


@frozen
class Comment:
    """A comment on a line of its own.

    Attributes:
        text: from its `#`, without white space at the end.
        apart: whether a blank line stands before it.
    """

    text: str
    apart: bool


@frozen
class Gap:
    """What stands between two tokens, beside white space.

    Attributes:
        trailing: the comment on the line on which the first token ends; None where there is none.
        own: those on lines of their own, in order.
        apart: whether a blank line stands after the last of them.
    """

    trailing: str | None = None
    own: tuple[Comment, ...] = ()
    apart: bool = False

    def comments(self) -> list[str]:
        """The texts, in order."""
        first = [] if self.trailing is None else [self.trailing]
        return first + [comment.text for comment in self.own]


NOTHING = Gap()


def gap_of(text: str, start: int, end: int) -> Gap:
    """The gap from `start`, the end of a token or the start of the text, to `end`."""
    if text.find("#", start, end) < 0:
        return NOTHING
    trailing = None
    own: list[Comment] = []
    at = start
    for match in _COMMENT.finditer(text, start, end):
        shown = match.group().rstrip(" \t\r")
        lines = text.count("\n", at, match.start())
        if lines == 0 and at == start and start > 0:
            trailing = shown
        else:
            own.append(Comment(text=shown, apart=lines > 1))
        at = match.end()
    apart = bool(own) and text.count("\n", at, end) > 1
    return Gap(trailing=trailing, own=tuple(own), apart=apart)


@frozen(kw_only=False)
class Space:
    """What stands between two tokens that are never parted but by a comment."""

    flat: str


@frozen(kw_only=False)
class LayoutLine:
    """What stands between two tokens that may be parted.

    Attributes:
        flat: where they are not.
        offset: how far the new line begins from where those of the group do.
    """

    flat: str = " "
    offset: int = 0


Separator: TypeAlias = Space | LayoutLine
GLUE = Space("")
SPACE = Space(" ")
LINE = LayoutLine()


@dataclass(slots=True, eq=False)
class Open:
    """The beginning of a group.

    Attributes:
        fill: a new line only where the next part does not fit, not at all breaks.
        indent: where new lines begin: from where those of the group around do.
        aligned: `indent` counts from the column that the group begins at.
    """

    fill: bool
    indent: int = 0
    aligned: bool = False


@frozen(kw_only=False, eq=False)
class Close:
    """The end of a group."""


@frozen(kw_only=False, eq=False)
class Break:
    """A place for a new line; with comments there is one."""

    flat: str
    offset: int
    gap: Gap

    @property
    def forced(self) -> bool:
        """Whether a comment ends the line."""
        return self.gap is not NOTHING


Element: TypeAlias = str | Open | Close | Break
_CLOSE = Close()


class StatementElements:
    """The elements of one statement, made from its tokens in order.

    Invariant: every token was taken by `before` and then `put`, in the order of the text.
    """

    def __init__(self, text: str, gaps: dict[int, Gap]) -> None:
        """Begin a statement.

        Args:
            text: the source.
            gaps: by the offset of a token, the comments before it.
        """
        self.made: list[Element] = []
        self._text = text
        self._gaps = gaps

    def open(self, *, fill: bool, indent: int = 0, aligned: bool = False) -> Open:
        """Begin a group."""
        group = Open(fill, indent, aligned)
        self.made.append(group)
        return group

    def close(self, groups: int = 1) -> None:
        """End the innermost groups."""
        self.made.extend([_CLOSE] * groups)

    def before(self, token: Lexeme, separator: Separator) -> None:
        """Take what stands before a token, comments included."""
        gap = self._gaps.get(token.region.start, NOTHING)
        if isinstance(separator, LayoutLine):
            self.made.append(Break(separator.flat, separator.offset, gap))
        elif gap is not NOTHING:
            self.made.append(Break(separator.flat, 0, gap))
        elif separator.flat:
            self.made.append(separator.flat)

    def put(self, token: Lexeme) -> None:
        """Take a token, as it was written."""
        self.made.append(self._text[token.region.start : token.region.end])

    def add(self, token: Lexeme, separator: Separator) -> None:
        """Take what stands before a token, and the token."""
        self.before(token, separator)
        self.put(token)
