"""Tokens, and the trees that the parser makes from them.

A tree keeps every token of its rule, so a formatter can print it and a message can point at any
part. Its kind is the rule of grammar.lark, or the alias of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tcc_compiler.language.source import Region


class Token:
    """A token.

    Attributes:
        kind: NAME, QNAME (in backticks), NUMBER, STRING, `_ARGS` or `_FIELDS` (a bracket). For
            keywords and other marks the text itself.
        text: its characters, as in the source.
        start, end: its place, in characters.
    """

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: str, text: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"{self.kind}:{self.text}" if self.kind != self.text else repr(self.text)


class Tree:
    """A match of a rule of the grammar.

    Attributes:
        kind: the rule, or its alias.
        parts: tokens and trees, in the order of the text.
        start, end: from the start of the first token to the end of the last.
        height: how many trees are nested in one another, including this one.
    """

    __slots__ = ("end", "height", "kind", "parts", "start")

    start: int
    end: int
    height: int

    def __init__(self, kind: str, parts: list[Part]) -> None:
        self.kind = kind
        self.parts = parts
        self.start = parts[0].start
        self.end = parts[-1].end
        self.height = 1 + max([part.height for part in parts if isinstance(part, Tree)], default=0)

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(repr, self.parts))})"

    def trees(self, *kinds: str) -> list[Tree]:
        """Return the trees directly inside, of these kinds if any are given."""
        inside = [part for part in self.parts if isinstance(part, Tree)]
        return [tree for tree in inside if tree.kind in kinds] if kinds else inside

    def tree(self, kind: str) -> Tree | None:
        """Return the first tree of a kind directly inside; None if there is none."""
        return next(iter(self.trees(kind)), None)

    def tokens(self, *kinds: str) -> list[Token]:
        """Return the tokens of these kinds directly inside."""
        return [part for part in self.parts if isinstance(part, Token) and part.kind in kinds]

    def has(self, kind: str) -> bool:
        """Return whether a token of this kind is directly inside."""
        return any(isinstance(part, Token) and part.kind == kind for part in self.parts)


Part: TypeAlias = Token | Tree


def region_of(part: Part, number: int) -> Region:
    """Return the region of a tree or token of the source with this number."""
    return Region(number, part.start, part.end)


def tokens_of(part: Part) -> Iterator[Token]:
    """Yield all tokens of a tree, in the order of the text."""
    todo = [part]
    while todo:
        part = todo.pop()
        if isinstance(part, Token):
            yield part
        else:
            todo += reversed(part.parts)


def text_of(part: Part, text: str) -> str:
    """Return the source text of a tree, on one line."""
    return " ".join(text[part.start : part.end].split())
