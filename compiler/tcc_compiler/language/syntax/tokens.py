"""Characters to tokens, and tokens to statements.

Normative text: docs/spec/language.md, section 2.  A statement begins at a reserved keyword that
can stand nowhere else, so the list of tokens is cut there and an error in one statement cannot
swallow the next.  Cost: one regular expression match a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, cut, quote
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.lexemes import Lexeme, lexeme
from tcc_compiler.language.syntax.place import Place
from tcc_compiler.language.syntax.words import BLOCK_WORDS, OPENERS, PUNCTUATION
from tcc_compiler.language.syntax.wrong import meant, named

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
      | (?P<QUOTED>[“”„‟«»‹›‘’‚‛][^\n“”„‟«»‹›‘’‚‛"]*+[“”„‟«»‹›‘’‚‛"] | '[^\n'"]*+')
      | (?P<REMARK>//[^\n]*+ | /\*)
      | (?P<WRONG>[^ \t\r\n\#A-Za-z_0-9"(){},:|=+\-*?&;~.“”„‟«»‹›‘’‚‛'/\[\]]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_SPLIT = "split the grammar: `use` takes tools from other files"
_STARTS = frozenset(word.upper() for word in OPENERS)


@frozen
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

    Invariant: `place`, `wrong` and `said` belong to the statement that is being read: how far it
    is, the offset of its first error, and the wrong characters that were reported.
    """

    def __init__(self, text: str, source: int, report: Report) -> None:
        self.text = text
        self.source = source
        self.report = report
        self.chunks: list[Chunk] = []
        self.remark_ends = 0
        self.no_remark_ends = False
        self._reset()

    def _reset(self) -> None:
        self.place = Place(self.text)
        self.wrong: int | None = None
        self.said: set[str] = set()

    def run(self) -> None:
        """Read the whole text."""
        count = 0
        for match in _TOKEN.finditer(self.text):
            self.report.tick()
            kind = match.lastgroup or "WRONG"
            if kind == "SPACE" or match.start() < self.remark_ends:
                continue
            count += 1
            if count > MAX_TOKENS:
                self._error("TCC107", match, f"the file has more than {MAX_TOKENS} tokens", _SPLIT)
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
            if kind not in ("OPEN", "QUOTED"):
                return
            kind, text = "STRING", ""
        self.place.add(lexeme(kind, text, self._region(match)))

    def _mark(self, text: str, match: re.Match[str]) -> str:
        kind = PUNCTUATION[text]
        if kind == "LPAR":
            if self.place.parens == MAX_NESTING:
                message = f"parentheses are nested deeper than {MAX_NESTING}"
                self._error("TCC106", match, message, "name the inner part by a rule of its own")
            if self.place.opens_arguments(match.end()):
                kind = "_ARGS"
        return kind

    def _number(self, text: str, match: re.Match[str]) -> str:
        if len(text) <= MAX_DIGITS:
            return text
        self._error(
            "TCC105", match, f"a number of more than {MAX_DIGITS} digits", "write a shorter one"
        )
        return "0"

    def _string(self, text: str, match: re.Match[str]) -> str:
        """The characters that a string literal stands for."""
        try:
            value = json.loads(text)
        except ValueError:
            message = "this string has an escape that JSON does not know"
            self._error(
                "TCC104", match, message, "write \\\\ for one backslash; \\u takes 4 digits"
            )
        else:
            if isinstance(value, str) and not _SURROGATE.search(value):
                return value
            message = "this string has half of a surrogate pair"
            self._error("TCC104", match, message, "write the character itself, or both halves")
        return ""

    def _refuse(self, kind: str, match: re.Match[str]) -> None:
        text = match.group()
        if kind == "OPEN":
            message = "this string is not closed on its line, or holds a control character"
            hint = "end it with '\"'; write a newline as \\n"
            self._error("TCC103", match, message, hint)
            self._pass_rest(match.end())
        elif kind == "QUOTED":
            message = f"{named(text[0])} is no quote of a string"
            self._wrong(text[0], match, message, f'write "{cut(text[1:-1])}"')
        elif kind == "REMARK":
            mark = text[:2]
            if mark == "/*":
                self._pass_remark(match.end())
            self._wrong(mark, match, f"{quote(mark)} has no meaning here")
        else:
            self._wrong(text[0], match, f"{named(text)} has no meaning here")

    def _pass_rest(self, end: int) -> None:
        """Skip what stands before the first quote of the next line, where it is no statement."""
        stop = self.text.find("\n", end + 1)
        line = self.text[end + 1 : stop if stop >= 0 else len(self.text)]
        word = _FIRST_WORD.match(line)
        quoted = line.find('"')
        if quoted >= 0 and (word is None or word[1] not in (*OPENERS, *BLOCK_WORDS)):
            self.remark_ends = end + 2 + quoted

    def _pass_remark(self, start: int) -> None:
        """Skip to the end of a comment as other languages have it; nothing where there is none."""
        found = -1 if self.no_remark_ends else self.text.find("*/", start)
        self.no_remark_ends = found < 0
        self.remark_ends = max(self.remark_ends, found + 2)

    def _wrong(
        self, mark: str, match: re.Match[str], message: str, hint: str | None = None
    ) -> None:
        """Report a wrong character, once in a statement, and not in what is none."""
        tokens = self.place.tokens
        keyword = tokens[0].type if tokens else ""
        if self.wrong is None:
            self.wrong = match.start()
        if mark in self.said or (tokens and keyword not in _STARTS):
            return
        self.said |= set("[]") if mark in "[]" else {mark}
        if hint is None:
            hint = meant(match.group(), keyword, tokens[-1].type if tokens else "")
        self.report.error("TCC102", self._region(match), message, hint)

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


_FIRST_WORD = re.compile(r"[ \t]*+([a-z]++)")
_SURROGATE = re.compile("[\ud800-\udfff]")
