"""How far the reading of a statement is, and what a word or a mark means in that place.

Normative text: docs/spec/language.md, section 2.  The reserved words mean the same everywhere; the
others are words only where no name could stand, so that a grammar may name what it likes by them.
Cost: constant a token; a look ahead passes white space and comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.words import (
    BLOCK_WORDS,
    CURRENCY,
    PLACED,
    RESERVED,
    TYPES,
    UNITS,
)

_KEYWORDS = {word: word.upper() for word in RESERVED}
_OPERANDS = frozenset(("NAME", "NUMBER", "RPAR"))
# Behind one of these, inside the braces of a tool, no name can stand.
_ATTRIBUTE_ENDS = frozenset(
    (*_OPERANDS, "STRING", "UNIT", "LBRACE", "RBRACE", "SAME", "STRICT", "FAILED", "EXECUTE")
)
_PATTERN_ENDS = frozenset(("NAME", "STRING", "RPAR"))
# What follows a word or a '(', with white space or comments between.
_GAP = r"(?:[ \t\r\n]++|\#[^\n]*+)*+"
_QUOTED = r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+"'
_ARGUMENT = re.compile(rf"{_GAP}(?:[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}){_GAP}=(?!=)")
_NEXT_NAME = re.compile(rf'{_GAP}([A-Za-z_][A-Za-z0-9_]*+|")')
_NEXT_STRING = re.compile(rf'{_GAP}"')


class Place:
    """The tokens of a statement so far, and what is open in it.

    Attributes:
        braces, parens: how many are open; braces are counted in tools alone.
        opened: a `;` stands in the parentheses that are open.
        ordered: there was a `before` or a `with`.
    """

    __slots__ = ("braces", "opened", "ordered", "parens", "text", "tokens")

    def __init__(self, text: str) -> None:
        """Begin a statement of `text`."""
        self.text = text
        self.tokens: list[Lexeme] = []
        self.braces = 0
        self.parens = 0
        self.opened = False
        self.ordered = False

    def add(self, token: Lexeme) -> None:
        """Go on behind the next token."""
        match token.type:
            case "LBRACE":
                self.braces += self._in("TOOL")
            case "RBRACE":
                self.braces -= self.braces > 0
            case "LPAR" | "_ARGS":
                self.parens += 1
            case "RPAR":
                self.parens -= self.parens > 0
                self.opened = False
            case "_SEMI":
                self.opened = True
            case "BEFORE" | "WITH":
                self.ordered = True
        self.tokens.append(token)

    def word(self, text: str, end: int) -> str:
        """The kind of a name that stands here; the text goes on at `end`."""
        if text in _KEYWORDS:
            return _KEYWORDS[text]
        before = self.tokens[-1].type if self.tokens else ""
        if text in PLACED.get(before, ()):
            return text.upper()
        if text in BLOCK_WORDS and self.braces and before not in ("_EQUAL", "_PIPE", "MODEL"):
            return text.upper()
        if text in UNITS and before in _OPERANDS and (self.braces or self._in("LIMIT")):
            return "UNIT"
        if text in _LOCAL and _LOCAL[text](self, before, end):
            return "TYPE" if text in TYPES else text.upper()
        return "NAME"

    def has_mark(self, kind: str) -> bool:
        """Whether a mark means something here."""
        if kind == "_DOT":
            return self.parens > 0 and len(self.tokens) > 1 and self.tokens[1].type == "SUM"
        if kind in ("_SEMI", "TILDE"):
            return self.parens > 0 and not self.braces and self._in("TOOL")
        return True

    def opens_arguments(self, end: int) -> bool:
        """Whether a '(' that stands here opens the arguments of a pattern."""
        named = bool(self.tokens) and self.tokens[-1].type in ("NAME", "STRING")
        return named and not self._in("TOOL") and _ARGUMENT.match(self.text, end) is not None

    def _in(self, keyword: str) -> bool:
        return bool(self.tokens) and self.tokens[0].type == keyword

    def is_attribute(self, before: str, _end: int) -> bool:
        """``strict``, ``errors``: where an attribute of a tool begins."""
        return self.braces > 0 and before in _ATTRIBUTE_ENDS

    def is_model_part(self, before: str, _end: int) -> bool:
        """``atom``, ``execute``, ``quality``: where a part of a model begins."""
        return self.braces > 1 and not self.parens and before in _ATTRIBUTE_ENDS

    def is_times(self, before: str, _end: int) -> bool:
        """``times``: after the numbers of an atom."""
        return self.braces > 1 and not self.parens and before == "RPAR"

    def is_gives(self, before: str, _end: int) -> bool:
        """``gives``: after the name of a tool, or after its parameters."""
        bare = not self.braces and not self.parens and self._in("TOOL")
        return bare and (before == "RPAR" or len(self.tokens) == 2)

    def is_type(self, before: str, _end: int) -> bool:
        """The name of a type: after the ':' of an open parameter."""
        return self.opened and before == "_COLON"

    def is_bound(self, before: str, _end: int) -> bool:
        """``min``, ``max``: after a type, or what limits it."""
        return self.opened and before in ("TYPE", "NUMBER", "STRING")

    def is_each(self, before: str, end: int) -> bool:
        """``each``: after `before`, where a pattern follows and not `same` with its pairs."""
        if before != "BEFORE":
            return False
        words = self._names(end, 3)
        # In `each same p` and `each same same` a tool is called each; in `each same` and
        # `each same same p` one is called same.
        if len(words) < 2 or words[0] != "same":
            return bool(words)
        return len(words) == 3 and words[1] == "same"

    def _names(self, end: int, most: int) -> list[str]:
        """The names that come next, at most so many; a quote stands for one in quotes."""
        words: list[str] = []
        while len(words) < most:
            found = _NEXT_NAME.match(self.text, end)
            if found is None or found[1] in RESERVED:
                break
            words.append(found[1])
            end = found.end()
        return words

    def is_same(self, before: str, _end: int) -> bool:
        """``same``: after the second pattern of a `require` or a `forbid`."""
        stated = self.ordered and (self._in("REQUIRE") or self._in("FORBID"))
        return stated and not self.parens and before in _PATTERN_ENDS

    def is_per(self, before: str, _end: int) -> bool:
        """``per``: after the parentheses of `uses`."""
        return before == "RPAR" and not self.parens and self._in("LIMIT")

    def is_currency(self, _before: str, end: int) -> bool:
        """``currency``: where a string comes next."""
        return not self.braces and not self.parens and bool(_NEXT_STRING.match(self.text, end))


_LOCAL: Mapping[str, Callable[[Place, str, int], bool]] = {
    "strict": Place.is_attribute,
    "errors": Place.is_attribute,
    "atom": Place.is_model_part,
    "execute": Place.is_model_part,
    "quality": Place.is_model_part,
    "times": Place.is_times,
    "gives": Place.is_gives,
    **dict.fromkeys(TYPES, Place.is_type),
    "min": Place.is_bound,
    "max": Place.is_bound,
    "each": Place.is_each,
    "same": Place.is_same,
    "per": Place.is_per,
    CURRENCY: Place.is_currency,
}
