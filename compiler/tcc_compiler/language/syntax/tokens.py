"""Characters to tokens, and tokens to statements.

Normative text: docs/spec/language.md, section 2.  A statement begins at a reserved keyword that
can stand nowhere else, so the list of tokens is cut there and an error in one statement cannot
swallow the next.  Cost: one regular expression match a token.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lark import Token

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.words import (
    BLOCK_WORDS,
    CURRENCY,
    OPENERS,
    PLACED,
    PUNCTUATION,
    RESERVED,
    TYPES,
)
from tcc_compiler.language.syntax.words import UNITS as UNIT_WORDS

MAX_TOKENS = 1 << 17
MAX_DIGITS = 1000
MAX_NESTING = 200

_TOKEN = re.compile(
    r"""(?P<SPACE>[ \t\r\n]++ | \#[^\n]*+)
      | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*+)
      | (?P<NUMBER>[0-9]++(?:\.[0-9]++)?)
      | (?P<STRING>"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+")
      | (?P<MARK>->|\.\.|<=|>=|==|[(){},:|=+\-*?&;~.])
      | (?P<OPEN>"[^\n]*+)
      | (?P<WRONG>[^ \t\r\n\#A-Za-z_0-9"(){},:|=+\-*?&;~.]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = {word: word.upper() for word in RESERVED}
_STARTS = frozenset(word.upper() for word in OPENERS)
_OPERANDS = frozenset(("NAME", "NUMBER", "RPAR"))
# Behind one of these, inside the braces of a tool, no name can stand.
_ATTRIBUTE_ENDS = frozenset(
    (*_OPERANDS, "STRING", "UNIT", "LBRACE", "RBRACE", "SAME", "STRICT", "FAILED")
)
_PATTERN_ENDS = frozenset(("NAME", "STRING", "RPAR"))
# Marks that stand in the parentheses of a tool, or of a sum, and mean nothing elsewhere.
_LOCAL_MARKS = frozenset(("_SEMI", "TILDE", "_DOT"))
_HINTS = {
    "<": "write '<='",
    ">": "write '>='",
    ";": "statements need no ';'",
    "'": "strings take double quotes",
    "/": "comments start with '#'",
    "//": "comments start with '#'",
    "!": "to forbid a call use '-' or a 'forbid' statement",
}


class Lexeme(Token):
    """A token with its region in the source."""

    region: Region


def lexeme(kind: str, text: str, region: Region) -> Lexeme:
    """A token of a kind that grammar.lark declares."""
    # The constructor of the base class is left out: it costs more than everything else here.
    token = str.__new__(Lexeme, text)
    token.type = kind
    token.value = text
    token.region = region
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The tokens of one statement, its keyword first.

    Attributes:
        tokens: one or more.
        wrong: the offset of the first character that was reported, None where nothing was.
    """

    tokens: Sequence[Lexeme]
    wrong: int | None = None


def split(text: str, source: int, report: Report) -> tuple[Chunk, ...]:
    """The statements of a text, as tokens; characters that are no token are reported and left out.

    A text with too many tokens comes out as one chunk that is no statement.
    """
    scanner = _Scanner(text, source, report)
    scanner.run()
    return tuple(scanner.chunks)


class _Scanner:
    """One pass over a text.

    Invariant: `tokens`, `braces`, `parens`, `opened`, `ordered` and `wrong` belong to the statement
    that is being read: its tokens so far, how many braces and parentheses are open, whether a `;`
    stands in these parentheses, whether it has had `before` or `with`, and the offset of its first
    error.
    """

    def __init__(self, text: str, source: int, report: Report) -> None:
        self.text = text
        self.source = source
        self.report = report
        self.chunks: list[Chunk] = []
        self._reset()

    def _reset(self) -> None:
        self.tokens: list[Lexeme] = []
        self.braces = 0
        self.parens = 0
        self.opened = False
        self.ordered = False
        self.wrong: int | None = None

    def run(self) -> None:
        """Read the whole text."""
        count = 0
        for match in _TOKEN.finditer(self.text):
            self.report.tick()
            kind = match.lastgroup or "WRONG"
            if kind == "SPACE":
                continue
            count += 1
            if count > MAX_TOKENS:
                self._error("TCC107", match, f"the file has more than {MAX_TOKENS} tokens")
                self.chunks.clear()
                self.tokens = [lexeme("WRONG", "", self._region(match))]
                break
            self._take(kind, match)
            if self.report.full:
                break
        self._close()

    def _take(self, kind: str, match: re.Match[str]) -> None:
        text = match.group()
        if kind == "NAME":
            kind = self._word(text, match.end())
            if kind in _STARTS:
                self._close()
            self.ordered |= kind in ("BEFORE", "WITH")
        elif kind == "NUMBER":
            text = self._number(text, match)
        elif kind == "STRING":
            text = self._string(text, match)
        elif kind == "MARK" and self._means(text):
            kind = self._mark(text, match)
        else:
            self._refuse(kind, match)
            if kind != "OPEN":
                return
            kind, text = "STRING", ""
        self.tokens.append(lexeme(kind, text, self._region(match)))

    def _word(self, text: str, end: int) -> str:
        """The kind of a name at this place; the text goes on at `end`."""
        if text in _KEYWORDS:
            return _KEYWORDS[text]
        before = self.tokens[-1].type if self.tokens else ""
        if text in PLACED.get(before, ()):
            return text.upper()
        if text in BLOCK_WORDS and self.braces and before not in ("_EQUAL", "_PIPE", "MODEL"):
            return text.upper()
        if text in UNIT_WORDS and before in _OPERANDS and self._takes_unit():
            return "UNIT"
        if text in _LOCAL_WORDS and _LOCAL_WORDS[text](self, before, end):
            return text.upper() if text not in TYPES else "TYPE"
        return "NAME"

    def _takes_unit(self) -> bool:
        """A unit follows an operand in a block, or the number of a limit."""
        return self.braces > 0 or (bool(self.tokens) and self.tokens[0].type == "LIMIT")

    def _in(self, keyword: str) -> bool:
        return bool(self.tokens) and self.tokens[0].type == keyword

    def _is_attribute(self, before: str, _end: int) -> bool:
        return self.braces > 0 and before in _ATTRIBUTE_ENDS

    def _is_gives(self, before: str, _end: int) -> bool:
        """After the name of a tool, or after its parameters."""
        bare = not self.braces and not self.parens and self._in("TOOL")
        return bare and (before == "RPAR" or len(self.tokens) == 2)

    def _is_type(self, before: str, _end: int) -> bool:
        return self.opened and before == "_COLON"

    def _is_bound(self, before: str, _end: int) -> bool:
        return self.opened and before in ("TYPE", "NUMBER", "STRING")

    def _is_each(self, before: str, end: int) -> bool:
        """After `before`, where a name follows."""
        found = _NEXT_NAME.match(self.text, end) if before == "BEFORE" else None
        return found is not None and found[1] not in RESERVED

    def _is_same(self, before: str, _end: int) -> bool:
        """After the second pattern of a `require` or a `forbid`."""
        stated = self.ordered and (self._in("REQUIRE") or self._in("FORBID"))
        return stated and not self.parens and before in _PATTERN_ENDS

    def _is_per(self, before: str, _end: int) -> bool:
        return before == "RPAR" and not self.parens and self._in("LIMIT")

    def _is_currency(self, _before: str, end: int) -> bool:
        return not self.braces and not self.parens and bool(_NEXT_STRING.match(self.text, end))

    def _means(self, text: str) -> bool:
        """Whether a mark means something in this place."""
        kind = PUNCTUATION[text]
        if kind not in _LOCAL_MARKS:
            return True
        if kind == "_DOT":
            return self.parens > 0 and len(self.tokens) > 1 and self.tokens[1].type == "SUM"
        return self.parens > 0 and not self.braces and self._in("TOOL")

    def _mark(self, text: str, match: re.Match[str]) -> str:
        kind = PUNCTUATION[text]
        in_tool = bool(self.tokens) and self.tokens[0].type == "TOOL"
        if kind == "LBRACE":
            self.braces += in_tool
        elif kind == "RBRACE":
            self.braces -= self.braces > 0
        elif kind == "RPAR":
            self.parens -= self.parens > 0
            self.opened = False
        elif kind == "_SEMI":
            self.opened = True
        elif kind == "LPAR":
            self.parens += 1
            if self.parens == MAX_NESTING + 1:
                self._error("TCC106", match, f"parentheses are nested deeper than {MAX_NESTING}")
            after_name = bool(self.tokens) and self.tokens[-1].type in ("NAME", "STRING")
            if after_name and not in_tool and _ARGUMENT.match(self.text, match.end()):
                return "_ARGS"
        return kind

    def _number(self, text: str, match: re.Match[str]) -> str:
        if len(text) <= MAX_DIGITS:
            return text
        self._error("TCC105", match, f"a number of more than {MAX_DIGITS} digits")
        return "0"

    def _string(self, text: str, match: re.Match[str]) -> str:
        """The characters that a string literal stands for."""
        try:
            value = json.loads(text)
        except ValueError:
            self._error("TCC104", match, "this string has an escape that JSON does not know")
        else:
            if isinstance(value, str) and not _SURROGATE.search(value):
                return value
            self._error("TCC104", match, "this string has half of a surrogate pair")
        return ""

    def _refuse(self, kind: str, match: re.Match[str]) -> None:
        if kind == "OPEN":
            self._error(
                "TCC103",
                match,
                "this string is not closed on its line, or holds a control character",
                "end it with '\"'; write a newline as \\n",
            )
            return
        text = match.group()
        named = unicodedata.name(text[0], "unnamed") if len(text) == 1 else "the first of a run"
        shown = f"'{text}'" if text in _HINTS else f"U+{ord(text[0]):04X} ({named})"
        self._error("TCC102", match, f"{shown} has no meaning here", _HINTS.get(text))

    def _error(
        self, code: str, match: re.Match[str], message: str, hint: str | None = None
    ) -> None:
        self.report.error(code, self._region(match), message, hint)
        if self.wrong is None:
            self.wrong = match.start()

    def _region(self, match: re.Match[str]) -> Region:
        return Region(self.source, match.start(), match.end())

    def _close(self) -> None:
        if self.tokens:
            self.chunks.append(Chunk(tokens=self.tokens, wrong=self.wrong))
            self._reset()


# What follows the '(' of pattern arguments: a name and '=', with white space or comments between.
_GAP = r"(?:[ \t\r\n]++|\#[^\n]*+)*+"
_QUOTED = r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+"'
_ARGUMENT = re.compile(rf"{_GAP}(?:[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}){_GAP}=(?!=)")
_NEXT_NAME = re.compile(rf'{_GAP}([A-Za-z_][A-Za-z0-9_]*+|")')
_NEXT_STRING = re.compile(rf'{_GAP}"')
_SURROGATE = re.compile("[\ud800-\udfff]")

# Words that stand for themselves where their place says so, and are names elsewhere.
_LOCAL_WORDS: Mapping[str, Callable[[_Scanner, str, int], bool]] = {
    "strict": _Scanner._is_attribute,
    "errors": _Scanner._is_attribute,
    "gives": _Scanner._is_gives,
    **dict.fromkeys(TYPES, _Scanner._is_type),
    "min": _Scanner._is_bound,
    "max": _Scanner._is_bound,
    "each": _Scanner._is_each,
    "same": _Scanner._is_same,
    "per": _Scanner._is_per,
    CURRENCY: _Scanner._is_currency,
}
