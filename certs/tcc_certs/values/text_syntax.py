"""Parses the patterns of texts into trees.  The dialect is a subset of RE2.

Normative text: docs/spec/core.md, section 4.  A pattern matches whole values.  It may have
characters, ``.`` (any character), classes, groups, ``|`` and ``* + ? {m} {m,} {m,n}``, and ``(?i)``
at the start, which ignores case.  The reader refuses lazy quantifiers, back references and
look-around, and all syntax that other dialects read differently.  Repeats are not expanded, so
reading takes time in proportion to the source.  Cost: linear in the pattern, which has at most
4,096 characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NoReturn, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, is_plain

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"  # of code points, both ends included

MAX_PATTERN = 4096  # most characters of a pattern
MAX_POSITIONS = 1000  # most characters and classes after repeats are expanded
_MAX_DEPTH = 100
_LAST = 0x10FFFF
_DIGIT = ((0x30, 0x39),)
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_WHITE = {ord(char): None for char in "\n\r\t\f\v"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True, slots=True)
class Chars:
    """A single character in these ranges."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Join:
    """The concatenation of the items; without items the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """An alternative: any of the items."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """`body` repeated at least `low` and at most `high` times; None is unbounded."""

    body: Node
    low: int
    high: int | None


Node: TypeAlias = Chars | Join | Either | Times
NOTHING = Join(())


def complement(ranges: Ranges) -> Ranges:
    """Return all other characters."""
    found, at = [], 0
    for low, high in merged(ranges):
        if at < low:
            found.append((at, low - 1))
        at = high + 1
    return (*found, *([(at, _LAST)] if at <= _LAST else []))


def merged(ranges: Ranges) -> Ranges:
    """Return the same characters as ranges that increase and do not touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


_CLASSES = {
    "d": _DIGIT, "D": complement(_DIGIT), "w": _WORD, "W": complement(_WORD),
    "s": _SPACE, "S": complement(_SPACE),
}  # fmt: skip
_ANY: Ranges = ((0, _LAST),)

# Case is ignored among letters below this code point and these four signs, for which all versions
# of Python have the same tables.  The dotless i and the I with a dot have no other case, as in RE2.
_CASED = 0x590
_SIGNS = (0x2126, 0x212A, 0x212B, 0x1E9E)
_NO_CASE = (0x130, 0x131)


@cache
def _variants() -> Mapping[int, Ranges]:
    """Return, by code point with another case, all characters that differ only in case."""
    cased = [code for code in (*range(_CASED), *_SIGNS) if code not in _NO_CASE]
    groups: dict[str, set[int]] = {}
    for code in cased:
        char = chr(code)
        for form in (char.lower(), char.upper(), char.casefold()):
            if len(form) == 1 and form != char and ord(form) in cased:
                groups.setdefault(form.lower().upper().lower(), set()).update((code, ord(form)))
    return {
        code: tuple([(other, other) for other in sorted(group)])
        for group in groups.values()
        for code in group
    }


def _folded(ranges: Ranges) -> Ranges:
    """Return these characters, and all characters that differ from them only in case."""
    found = list(ranges)
    for code, variants in _variants().items():
        if any(low <= code <= high for low, high in ranges):
            found += variants
    return merged(tuple(found))


class PatternReader:
    """Reads a pattern from left to right."""

    def __init__(self, source: str, path: str) -> None:
        self._source, self._path = source, path
        self._at = self._depth = 0
        self._ignores_case = False

    def parse(self) -> Node:
        """Return the tree of the pattern.

        Raises:
            Rejected: C801 at the path, with the place in the pattern.
        """
        if len(self._source) > MAX_PATTERN:
            self._refuse(f"a pattern of at most {MAX_PATTERN} characters", len(self._source))
        # A line feed or tab from an escape in a string is allowed like any character.
        if not is_plain(self._source.translate(_WHITE)):
            self._refuse("no control or hidden characters (write \\n, \\t)", "one")
        self._ignores_case = self._take("(?i)")
        self._take("^")
        node = self._either()
        self._take("$")
        if self._peek():
            self._refuse("$ at the very end alone, and no ) without its (")
        return node

    def _peek(self, ahead: int = 0) -> str:
        return self._source[self._at + ahead : self._at + ahead + 1]

    def _take(self, text: str) -> bool:
        there = self._source.startswith(text, self._at)
        self._at += len(text) * there
        return there

    def _either(self) -> Node:
        items = [self._join()]
        while self._take("|"):
            items.append(self._join())
        # Equal alternatives count once.  An empty item has no positions, and is not repeated.
        items = list(dict.fromkeys(items))
        if len(items) == 1:
            return items[0]
        pairs = [pair for item in items if isinstance(item, Chars) for pair in item.ranges]
        single = all(isinstance(item, Chars) for item in items)
        return Chars(merged(tuple(pairs))) if single else Either(tuple(items))

    def _join(self) -> Node:
        items: list[Node] = []
        while (char := self._peek()) and char not in "|)$":
            item = self._times(self._atom())
            if item != NOTHING:
                items.append(item)
        return items[0] if len(items) == 1 else Join(tuple(items))

    def _times(self, body: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return body
        if self._peek() and self._peek() in "*+?{":
            self._refuse("one quantifier, not lazy and not possessive")
        low, high = bounds
        return NOTHING if body == NOTHING or high == 0 else Times(body, low, high)

    def _bounds(self) -> tuple[int, int | None] | None:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(mark):
                return bounds
        if not self._take("{"):
            return None
        high: int | None
        low = high = self._number()
        if self._take(","):
            high = self._number() if self._peek() != "}" else None
        if not self._take("}") or (high is not None and high < low):
            self._refuse("{m}, {m,} or {m,n} with m <= n")
        return low, high

    def _number(self) -> int:
        start = self._at
        while self._peek() and self._peek() in "0123456789":
            self._at += 1
        text = self._source[start : self._at]
        if not text or int(text[:5]) > MAX_POSITIONS:
            self._refuse(f"a number of 0 .. {MAX_POSITIONS}", text)
        return int(text)

    def _atom(self) -> Node:
        char = self._peek()
        if char == "(":
            return self._group()
        if char == "[":
            return Chars(self._class())
        self._at += 1
        if char == ".":
            return Chars(_ANY)
        if char == "\\":
            return Chars(self._escape())
        if char in "*+?{}]^":
            self._refuse(f"\\{char}, as {char} has a meaning here", char)
        return Chars(self._one(char))

    def _one(self, char: str) -> Ranges:
        """Return the ranges of a character; with ``(?i)`` also of its other cases."""
        ranges: Ranges = ((ord(char), ord(char)),)
        return _variants().get(ord(char), ranges) if self._ignores_case else ranges

    def _group(self) -> Node:
        self._at += 1
        if not self._take("?:") and self._peek() == "?":
            self._refuse("( ) or (?: ), no other group")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._refuse(f"at most {_MAX_DEPTH} groups in one another")
        node = self._either()
        if not self._take(")"):
            self._refuse("a ) to the (, and no $ before it")
        self._depth -= 1
        return node

    def _escape(self) -> Ranges:
        char = self._peek()
        self._at += 1
        if char and char in _CLASSES:
            return _CLASSES[char]
        if char not in _PUNCTUATION and char not in _CONTROLS:
            self._refuse(
                "\\d \\w \\s \\D \\W \\S \\n \\r \\t \\f \\v or \\ and a mark", f"\\{char}"
            )
        code = ord(_CONTROLS.get(char, char))
        return ((code, code),)

    def _class(self) -> Ranges:
        self._at += 1
        negated = self._take("^")
        if self._peek() == "]":
            self._refuse("a class of some characters (write \\] for the bracket)")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            ranges += self._member(not ranges)
        found = merged(tuple(ranges))
        if self._ignores_case:
            found = _folded(found)
        return complement(found) if negated else found

    def _member(self, begins: bool) -> Ranges:
        if self._peek() == "-" and not (begins or self._peek(1) == "]"):
            self._refuse("\\- for the character, but at the ends of a class")
        low = self._end()
        if self._peek() != "-" or self._peek(1) == "]":
            return low
        self._at += 1
        high = self._end()
        (first, *more), (last, *others) = low, high
        if more or others or first[0] != first[1] or last[0] != last[1] or first > last:
            self._refuse("a range of two characters that increases")
        return ((first[0], last[0]),)

    def _end(self) -> Ranges:
        if not (char := self._peek()) or self._source.startswith("[:", self._at):
            self._refuse("a class that ends in ], and no [: in it")
        self._at += 1
        return self._escape() if char == "\\" else ((ord(char), ord(char)),)

    def _refuse(self, expected: str, found: object = None) -> NoReturn:
        place = f"{self._path} character {min(self._at, len(self._source)) + 1}"
        shown = self._source[self._at : self._at + 24] if found is None else found
        raise Rejected(Code.CORE_SCHEMA, place, expected, shown or "the end")


# Bounds on the size of patterns.

MAX_STEPS = 1 << 20  # most positions times characters of one text; at most about 0.1 s


def read_tree(source: str, path: str) -> Node:
    """Return the tree of `source`.

    Raises:
        Rejected: C801 at `path`: `source` is not in the dialect, or has more than 1,000 positions.
    """
    tree = PatternReader(source, path).parse()
    size = size_of(tree)
    most = f"at most {MAX_POSITIONS} positions"
    ensure(size <= MAX_POSITIONS, Code.CORE_SCHEMA, path, most, size)
    return tree


def ensure_quick(source: str, most: int, path: str) -> None:
    """Refuse a pattern that takes too much work for texts of at most `most` characters.

    Raises:
        Rejected: C801 at `path`: as :func:`read_tree`.  Or its positions times the characters to
            read (`most`, or the length of the longest match) exceed `MAX_STEPS`.
    """
    tree = read_tree(source, path)
    steps = size_of(tree) * min(most, _longest(tree))
    ensure(steps <= MAX_STEPS, Code.CORE_SCHEMA, path, f"at most {MAX_STEPS} steps a text", steps)


def size_of(node: Node) -> int:
    """Return the number of positions of a tree after its repeats are expanded."""
    match node:
        case Chars():
            return 1
        case Join(items) | Either(items):
            return sum([size_of(item) for item in items])
        case Times(body, low, high):
            return size_of(body) * (max(low, 1) if high is None else high)


def _longest(node: Node) -> int:
    """Return the length of the longest matching text; a large number if there is no longest."""
    match node:
        case Chars():
            return 1
        case Join(items):
            return sum([_longest(item) for item in items])
        case Either(items):
            return max([_longest(item) for item in items])
        case Times(body, _, high):
            return _longest(body) * (MAX_STEPS if high is None else high)
