"""Characters to tokens, and tokens to statements.

Normative text: docs/spec/language.md, section 2.  A statement begins at a reserved keyword that
can stand nowhere else, so the list of tokens is cut there and an error in one statement cannot
swallow the next.  Cost: one regular expression match a token.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.lexemes import Lexeme, lexeme
from tcc_compiler.language.syntax.place import Place
from tcc_compiler.language.syntax.words import OPENERS, PUNCTUATION

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
_STARTS = frozenset(word.upper() for word in OPENERS)
_HINTS = {
    "<": "write '<='",
    ">": "write '>='",
    ";": "statements need no ';'",
    "'": "strings take double quotes",
    "/": "comments start with '#'",
    "//": "comments start with '#'",
    "!": "to forbid a call use '-' or a 'forbid' statement",
}


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

    Invariant: `place` and `wrong` belong to the statement that is being read: how far it is, and
    the offset of its first error.
    """

    def __init__(self, text: str, source: int, report: Report) -> None:
        self.text = text
        self.source = source
        self.report = report
        self.chunks: list[Chunk] = []
        self._reset()

    def _reset(self) -> None:
        self.place = Place(self.text)
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
                self.place = Place(self.text)
                self.place.add(lexeme("WRONG", "", self._region(match)))
                break
            self._take(kind, match)
            if self.report.full:
                break
        self._close()

    def _take(self, kind: str, match: re.Match[str]) -> None:
        text = match.group()
        if kind == "NAME":
            kind = self.place.word(text, match.end())
            if kind in _STARTS:
                self._close()
        elif kind == "NUMBER":
            text = self._number(text, match)
        elif kind == "STRING":
            text = self._string(text, match)
        elif kind == "MARK" and self.place.has_mark(PUNCTUATION[text]):
            kind = self._mark(text, match)
        else:
            self._refuse(kind, match)
            if kind != "OPEN":
                return
            kind, text = "STRING", ""
        self.place.add(lexeme(kind, text, self._region(match)))

    def _mark(self, text: str, match: re.Match[str]) -> str:
        kind = PUNCTUATION[text]
        if kind == "LPAR":
            if self.place.parens == MAX_NESTING:
                self._error("TCC106", match, f"parentheses are nested deeper than {MAX_NESTING}")
            if self.place.opens_arguments(match.end()):
                kind = "_ARGS"
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
        if self.place.tokens:
            self.chunks.append(Chunk(tokens=self.place.tokens, wrong=self.wrong))
            self._reset()


_SURROGATE = re.compile("[\ud800-\udfff]")
