"""The comments between two tokens: which stands behind the first, which on lines of their own.

That, and whether a blank line stands beside a comment between statements, is all that the layout
takes from where things stood.  Cost: linear in the text between the tokens.
"""

from __future__ import annotations

import re

from tcc_compiler.frozen import frozen

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
