"""Matches whole texts against patterns, in one pass for any pattern.

Normative text: docs/spec/core.md, section 4.  A pattern is a set of *positions*, one for each of
its characters or classes after repeats are expanded, and a relation of positions that may follow
each other (Glushkov 1961).  The matcher reads a text once, and knows after each character at which
positions a match may be.  Sets of positions are integers with one bit for each position.  Sets and
their transitions are cached up to a bound; then the cache is cleared.  A text that does not begin
with the fixed head of all matches is refused directly.

Cost: some tens of nanoseconds for a cached transition, and some microseconds for a new one, for any
text.  A pattern has at most 1,000 positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import or_

from tcc_certs.values import text_syntax

_MAX_KEPT = 1 << 12  # most cached sets and transitions; then the cache is cleared
MAX_STEPS = 1 << 20  # most characters times positions of a pattern
_LONGEST_HEAD = 64  # most characters of the fixed head
_LAST = 0x110000  # greater than all code points
_START = 1  # bit 0 is the place before the first character


def parse(source: str, path: str = "pattern") -> TextPattern:
    """Return the pattern of `source`.

    Raises:
        Rejected: C801: `source` is not in the dialect, or has more than 1,000 positions.
    """
    return TextPattern(_Positions(text_syntax.read_tree(source, path)))


@lru_cache(maxsize=64)
def pattern_of(source: str) -> TextPattern:
    """Return the pattern of `source`; recent patterns are cached.

    Raises:
        Rejected: as :func:`parse`.
    """
    return parse(source)


@lru_cache(maxsize=64)
def like_of(source: str) -> Callable[[str], bool | None]:
    """Return a function that tells whether a whole text matches; None if the text is too long."""
    pattern = pattern_of(source)
    longest = MAX_STEPS // pattern.size
    return lambda text: pattern.matches(text) if len(text) <= longest else None


@lru_cache(maxsize=64)
def likes_of(source: str) -> Callable[[Sequence[str]], Sequence[bool | None]]:
    """Return a function that does the same for several texts."""
    pattern, like = pattern_of(source), like_of(source)
    longest = MAX_STEPS // pattern.size

    def likes(texts: Sequence[str]) -> Sequence[bool | None]:
        if max(map(len, texts), default=0) > longest:
            return list(map(like, texts))
        return pattern.match_each(texts)

    return likes


class TextPattern:
    """A compiled pattern.

    Attributes:
        size: the number of positions, including the place before the text.
    """

    def __init__(self, positions: _Positions) -> None:
        bounds = {0}
        for ranges in set(positions.chars):
            bounds.update(end for low, high in ranges for end in (low, high + 1))
        # The code points between two neighbouring bounds are at the same positions.
        self.bounds = sorted(bounds)
        self.at = self._positions_of(positions)
        # The number of positions, including the place before the text.
        self.size = max([1, *[places.bit_length() for places in self.at]])
        self._accepting = positions.accepting
        self._follow = positions.follow
        self._chunks: dict[int, int] = {}
        self._sets: dict[int, _Set] = {}
        self._kept = 0
        # The fixed head of all matching texts, and the positions after it.
        self._head, self._first = self._head_of()
        self._free = self._free_of()

    def matches(self, text: str) -> bool:
        """Return whether the whole `text` matches."""
        head = self._head
        if not text.startswith(head):
            return False
        rest = text[len(head) :] if head else text
        free = self._free
        if free is not None and (not free or free not in rest):
            return True
        state = self.set_of(self._first)
        for char in rest:
            state = state[char]
        return state.accepts

    def match_each(self, texts: Sequence[str]) -> list[bool]:
        """Return whether each text matches; fast if the head decides most of them."""
        head, free = self._head, self._free
        if free is None:
            return list(map(self.matches, texts))
        if not free:
            return [text.startswith(head) for text in texts]
        return [
            text.startswith(head) and (free not in text or self.matches(text)) for text in texts
        ]

    def begins(self, text: str) -> bool:
        """Return whether some matching text begins with `text`."""
        state = self.set_of(_START)
        for char in text:
            state = state[char]
        return state.bits != 0

    def set_of(self, positions: int) -> _Set:
        """Return the cached object for a set of positions."""
        found = self._sets.get(positions)
        if found is None:
            self.keep()
            accepts = positions & self._accepting != 0
            found = self._sets[positions] = _Set(self, positions, accepts)
        return found

    def _head_of(self) -> tuple[str, int]:
        """Return the longest fixed head of all matching texts, and the positions after it."""
        head, bits = "", _START
        while len(head) < _LONGEST_HEAD and not bits & self._accepting:
            after = self.after(bits)
            found = [i for i, places in enumerate(self.at) if after & places]
            low = self.bounds[found[0]] if found else 0
            if len(found) != 1 or self.bounds[found[0] + 1 : found[0] + 2] != [low + 1]:
                break
            head, bits = head + chr(low), after & self.at[found[0]]
        return head, bits

    def _free_of(self) -> str | None:
        """Return the text of the only character that may not follow the head, as for ``.*``.

        '' means that any text may follow the head.  None means that the rest of the text needs a
        match.
        """
        lows = [low for low in self.bounds if low < _LAST]
        ends = [*lows[1:], _LAST]
        after = [self.after(self._first) & places for places in self.at[: len(lows)]]
        then = after[-1]
        again = [self.after(then) & places for places in self.at[: len(lows)]]
        ranges = zip(lows, ends, after, again, strict=True)
        held = [(low, end) for low, end, *to in ranges if to != [then, then]]
        accepts = self._first & self._accepting and then & self._accepting
        if not accepts or sum([end - low for low, end in held]) > 1:
            return None
        return "".join([chr(low) for low, _ in held])

    def after(self, positions: int) -> int:
        """Return all positions that may follow any of these."""
        found, first = 0, 0
        for byte in positions.to_bytes(positions.bit_length() // 8 + 1, "little"):
            if byte:
                key = first << 8 | byte
                chunk = self._chunks.get(key)
                if chunk is None:
                    chunk = self._chunks[key] = self._after_chunk(first, byte)
                found |= chunk
            first += 8
        return found

    def keep(self) -> None:
        """Count a new entry of the cache; at the bound, clear the cache."""
        self._kept += 1
        if self._kept >= _MAX_KEPT:
            self._sets, self._kept = {}, 0

    def _after_chunk(self, first: int, byte: int) -> int:
        return reduce(or_, [self._follow[first + i] for i in range(8) if byte >> i & 1])

    def _positions_of(self, positions: _Positions) -> list[int]:
        """Return, for each range of code points, the positions that accept its characters."""
        places: dict[text_syntax.Ranges, int] = {}
        for place, ranges in enumerate(positions.chars):
            places[ranges] = places.get(ranges, 0) | 1 << place
        found = [0] * len(self.bounds)
        for ranges, bits in places.items():
            for low, high in ranges:
                first = bisect_right(self.bounds, low) - 1
                for i in range(first, bisect_right(self.bounds, high)):
                    found[i] |= bits
        return found


class _Set(dict[str, "_Set"]):
    """A set of positions; as a mapping, the cached transitions by character."""

    __slots__ = ("_next", "_pattern", "accepts", "bits")

    def __init__(self, pattern: TextPattern, bits: int, accepts: bool) -> None:
        super().__init__()
        self._pattern, self.bits, self.accepts = pattern, bits, accepts
        self._next: int | None = None

    def __missing__(self, char: str) -> _Set:
        pattern = self._pattern
        if self._next is None:
            self._next = pattern.after(self.bits)
        place = bisect_right(pattern.bounds, ord(char)) - 1
        found = self[char] = pattern.set_of(self._next & pattern.at[place])
        pattern.keep()
        return found


class _Positions:
    """The positions of a tree: their characters, and which positions follow each other.

    Attributes:
        chars: by position, its characters; position 0 is the place before the text, without
            characters.
        follow: by position, the set of the positions that may come next.
        accepting: the positions at which a text may end.
    """

    def __init__(self, tree: text_syntax.Node) -> None:
        self.chars: list[text_syntax.Ranges] = [()]
        self.follow = [0]
        nullable, first, last = self._add(tree)
        self.follow[0] = first
        self.accepting = last | (_START if nullable else 0)

    def _add(self, node: text_syntax.Node) -> tuple[bool, int, int]:
        """Add a tree.

        Return whether it may be empty, its first positions and its last positions.
        """
        match node:
            case text_syntax.Chars(ranges):
                self.chars.append(ranges)
                self.follow.append(0)
                bit = 1 << len(self.chars) - 1
                return False, bit, bit
            case text_syntax.Join(items):
                found = (True, 0, 0)
                for item in items:
                    found = self._joined(found, self._add(item))
                return found
            case text_syntax.Either(items):
                parts = [self._add(item) for item in items]
                empty, first, last = zip(*parts, strict=True)
                return any(empty), reduce(or_, first), reduce(or_, last)
            case text_syntax.Times():
                return self._repeated(node)

    def _repeated(self, node: text_syntax.Times) -> tuple[bool, int, int]:
        found = (True, 0, 0)
        for _ in range(node.low - (node.high is None and node.low > 0)):
            found = self._joined(found, self._add(node.body))
        if node.high is None:
            nullable, first, last = self._add(node.body)
            self._link(last, first)
            return self._joined(found, (nullable or node.low == 0, first, last))
        return self._joined(found, self._optional(node.body, node.high - node.low))

    def _optional(self, body: text_syntax.Node, times: int) -> tuple[bool, int, int]:
        """Add at most `times` copies in a row, each of which may be the last."""
        firsts = lasts = before = 0
        whole = True  # whether all copies so far may be empty
        for _ in range(times):
            nullable, first, last = self._add(body)
            self._link(before, first)
            firsts |= first if whole else 0
            lasts |= last
            before = last | (before if nullable else 0)
            whole = whole and nullable
        return True, firsts, lasts

    def _joined(
        self, one: tuple[bool, int, int], other: tuple[bool, int, int]
    ) -> tuple[bool, int, int]:
        self._link(one[2], other[1])
        first = one[1] | (other[1] if one[0] else 0)
        last = other[2] | (one[2] if other[0] else 0)
        return one[0] and other[0], first, last

    def _link(self, before: int, after: int) -> None:
        while before and after:
            self.follow[before.bit_length() - 1] |= after
            before &= (1 << before.bit_length() - 1) - 1
