"""Elements to lines: where each break becomes a new line.

Cost: linear in the elements, and in what they say; a new line begins at column DEEPEST at the most,
so that nesting does not make the text long.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.format.elements import Break, Close, Element, Open

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
