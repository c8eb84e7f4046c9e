"""Translate patterns of JSON Schema into patterns of the language.

JSON Schema has ECMAScript's regular expressions, which match anywhere in a text. Patterns of the
language match whole values, in linear time (docs/spec/core.md, section 4). So an expression is read
into a tree. Its anchors are removed; at an end without an anchor ``.*`` is added. Every class is
written out. Lookaround, back references, word boundaries, and characters that a grammar may not
contain have no counterpart; the result is then None.
Specification: docs/spec/imports.md, section 2. Cost: linear in a pattern, which has at most 4,096
characters.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from tcc_certs.errors import Rejected, is_plain
from tcc_certs.values.text_pattern import parse
from tcc_certs.values.text_syntax import MAX_PATTERN, Ranges, complement, merged
from tcc_compiler.frozen import frozen

# Patterns.

_LAST = 0x10FFFF
_DEEPEST = 60
_DIGIT = ((0x30, 0x39),)
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
# ECMAScript's white space, without the three characters that no grammar may contain.
_SPACE = merged(
    tuple(
        (ord(char), ord(char))
        for char in "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
        "\u2009\u200a\u202f\u205f\u3000"
    )
)
_CLASSES = {
    "d": _DIGIT, "D": complement(_DIGIT), "w": _WORD, "W": complement(_WORD),
    "s": _SPACE, "S": complement(_SPACE),
}  # fmt: skip
_CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B}
_WRITTEN = {code: f"\\{letter}" for letter, code in _CONTROLS.items()}
_DOT = complement(((0x0A, 0x0A), (0x0D, 0x0D)))
_ALL = ((0, _LAST),)
_ANYTHING = ".*"
_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SYNTAX = frozenset("\\.+*?()[]{}^$|")  # escaped by a backslash, which other dialects also accept
_REPEATS = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")


class _Other(Exception):
    """Raised if the dialect cannot express an expression."""


@frozen(kw_only=False)
class _Piece:
    """A part of an alternative: text of the dialect, an anchor, or the alternatives of a group."""

    text: str = ""
    anchor: str = ""
    group: _Alternatives | None = None


_Alternatives: TypeAlias = "list[list[_Piece]]"


def dialect_of(pattern: str) -> str | None:
    """Return the pattern in the dialect, for whole values; None if it has no counterpart."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        made = _Reader(pattern).whole()
        parse(made)
    except (_Other, Rejected):
        return None
    return made


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = self._depth = 0

    def whole(self) -> str:
        """Return the expression in the dialect, for whole values."""
        alternatives = self._alternatives()
        if self._at < len(self._source):
            raise _Other
        return "|".join(_anchored(pieces) for pieces in _flat(alternatives))

    def _alternatives(self) -> _Alternatives:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Other
        found = [self._pieces()]
        while self._take("|"):
            found.append(self._pieces())
        self._depth -= 1
        return found

    def _pieces(self) -> list[_Piece]:
        found: list[_Piece] = []
        while (char := self._peek()) and char not in "|)":
            if self._take("^") or self._take("$"):
                found.append(_Piece(anchor=char))
            else:
                found.append(self._quantified(self._atom()))
        return found

    def _quantified(self, piece: _Piece) -> _Piece:
        mark = self._mark()
        if mark is None:
            return piece
        self._take("?")  # a lazy quantifier matches the same texts
        text = _joined(piece)
        return _Piece(text=f"{text}{mark}" if text else "")

    def _mark(self) -> str | None:
        for mark in "*+?":
            if self._take(mark):
                return mark
        found = _REPEATS.match(self._source, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _atom(self) -> _Piece:
        if self._take("("):
            return self._group()
        if self._take("["):
            return _Piece(text=_class_text(self._class()))
        if self._take("."):
            return _Piece(text=_class_text(_DOT))
        if self._take("\\"):
            return _Piece(text=_class_text(self._escape(False)))
        char = self._peek()
        if char in "*+?" or _REPEATS.match(self._source, self._at):
            raise _Other  # a quantifier with nothing to repeat
        self._at += 1
        return _Piece(text=_char(ord(char)))

    def _group(self) -> _Piece:
        named = re.compile(r"\?<[A-Za-z_$][A-Za-z0-9_$]*>").match(self._source, self._at)
        if named is not None:
            self._at = named.end()
        elif not self._take("?:") and self._peek() == "?":
            raise _Other
        alternatives = self._alternatives()
        if not self._take(")"):
            raise _Other
        return _Piece(group=alternatives)

    def _escape(self, in_class: bool) -> Ranges:
        char = self._peek()
        if char and char in _CLASSES:
            self._at += 1
            return _CLASSES[char]
        code = self._code(char, in_class)
        return ((code, code),)

    def _code(self, char: str, in_class: bool) -> int:
        found = _HEX.match(self._source, self._at)
        if found is not None:
            self._at = found.end()
            return int(found[1] or found[2] or found[3], 16)
        self._at += 1
        if char and char in _CONTROLS:
            return _CONTROLS[char]
        if char == "b" and in_class:
            return 8
        if not char or char not in _MARKS:
            raise _Other
        return ord(char)

    def _class(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            found += self._members()
        ranges = merged(tuple(found))
        return complement(ranges) if negated else ranges

    def _members(self) -> Ranges:
        low = self._end()
        if self._peek() != "-" or self._source[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = self._end()
        one_each = (
            len(low) == len(high) == 1 and low[0][0] == low[0][1] and high[0][0] == high[0][1]
        )
        if not one_each or low[0][0] > high[0][0]:
            raise _Other
        return ((low[0][0], high[0][0]),)

    def _end(self) -> Ranges:
        if self._take("\\"):
            return self._escape(True)
        char = self._peek()
        if not char:
            raise _Other
        self._at += 1
        return ((ord(char), ord(char)),)

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        there = self._source.startswith(text, self._at)
        self._at += len(text) if there else 0
        return there


def _flat(alternatives: _Alternatives) -> _Alternatives:
    """Replace alternatives that consist of one group by the group's; anchors then apply to each."""
    found: _Alternatives = []
    for pieces in alternatives:
        inner = pieces[0].group if len(pieces) == 1 else None
        found += [pieces] if inner is None else _flat(inner)
    return found


def _anchored(pieces: list[_Piece]) -> str:
    begins = bool(pieces) and pieces[0].anchor == "^"
    ends = len(pieces) > begins and pieces[-1].anchor == "$"
    inner = "".join(map(_joined, pieces[begins : len(pieces) - ends]))
    return ("" if begins else _ANYTHING) + inner + ("" if ends else _ANYTHING)


def _joined(piece: _Piece) -> str:
    """Return the text of a piece at a place where no anchor is allowed."""
    if piece.anchor:
        raise _Other
    if piece.group is None:
        return piece.text
    return f"(?:{'|'.join(''.join(map(_joined, inner)) for inner in piece.group)})"


def _class_text(ranges: Ranges) -> str:
    """Return a class as text; if it has the last character, it is written as a complement."""
    if ranges == _ALL:
        return "."
    if not ranges:
        raise _Other
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0])
    if ranges[-1][1] == _LAST:
        return f"[^{_ranges_text(complement(ranges))}]"
    return f"[{_ranges_text(ranges)}]"


def _ranges_text(ranges: Ranges) -> str:
    return "".join(
        _member(low) if low == high else f"{_member(low)}-{_member(high)}" for low, high in ranges
    )


def _member(code: int) -> str:
    return "\\-" if code == 0x2D else _char(code)


def _char(code: int) -> str:
    if code in _WRITTEN:
        return _WRITTEN[code]
    if code > _LAST or 0xD800 <= code < 0xE000 or not is_plain(chr(code)):
        raise _Other
    char = chr(code)
    return f"\\{char}" if char in _SYNTAX else char
