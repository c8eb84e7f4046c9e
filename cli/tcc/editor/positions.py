"""Places as editors count them: lines and columns from 0, columns in units of an encoding.

Lines end with LF, CR LF or CR, as the protocol has it; a column inside a character is the one where
it begins, and one past the end of a line is its end.
Source: Language Server Protocol 3.17, section Text Documents.
Cost: one pass over the text; then a bisection and the line.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, PositionEncodingKind, Range

_END = re.compile(r"\r\n|\r|\n")


class Places:
    """Offsets of a text to positions, and back."""

    def __init__(self, text: str, encoding: str = PositionEncodingKind.Utf16) -> None:
        """Find the lines.

        Args:
            encoding: what columns count: code units of ``utf-8``, ``utf-16`` or ``utf-32``.
        """
        self._text = text
        self._encoding = encoding
        ends = [(0, 0), *((end.start(), end.end()) for end in _END.finditer(text))]
        self._starts = [after for _, after in ends]
        self._ends = [*(before for before, _ in ends[1:]), len(text)]

    def offset(self, position: Position) -> int:
        """The character at a position."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[position.line], self._ends[position.line]
        line = self._text[start:end]
        if self._encoding == PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for at, char in enumerate(line):
            units += self._units(char)
            if units > position.character:
                return start + at
        return end

    def position(self, offset: int) -> Position:
        """The position of a character."""
        line = bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : offset]
        return Position(line=line, character=self._units(before))

    def range(self, start: int, end: int) -> Range:
        """From one character to just before another."""
        return Range(start=self.position(start), end=self.position(end))

    def _units(self, text: str) -> int:
        if self._encoding == PositionEncodingKind.Utf32 or text.isascii():
            return len(text)
        if self._encoding == PositionEncodingKind.Utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(char > "\uffff" for char in text)
