"""Characters to tokens, and tokens to statements.

Normative text: docs/spec/language.md, section 2.  A statement begins at a reserved keyword that
can stand nowhere else, so the list of tokens is cut there and an error in one statement cannot
swallow the next.  The reserved words mean the same everywhere; the others are keywords only where
no name could stand, so that a grammar may name what it likes by them: `Context` decides.
Cost: one regular expression match a token; a look ahead passes white space and comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, cut, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.words import (
    BLOCK_WORDS,
    CURRENCY,
    OPENERS,
    PLACED,
    PUNCTUATION,
    RESERVED,
    TYPES,
    UNITS,
    meant,
    named,
)


class Lexeme(str):
    """A token: its text, with its kind and its region in the source."""

    __slots__ = ("region", "type")

    type: str
    region: Region


def lexeme(kind: str, text: str, region: Region) -> Lexeme:
    """A token of a kind that grammar.lark declares."""
    token = Lexeme(text)
    token.type = kind
    token.region = region
    return token


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


class Context:
    """The tokens of a statement so far, and what a word or a mark means behind them.

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


_LOCAL: Mapping[str, Callable[[Context, str, int], bool]] = {
    "strict": Context.is_attribute,
    "errors": Context.is_attribute,
    "atom": Context.is_model_part,
    "execute": Context.is_model_part,
    "quality": Context.is_model_part,
    "times": Context.is_times,
    "gives": Context.is_gives,
    **dict.fromkeys(TYPES, Context.is_type),
    "min": Context.is_bound,
    "max": Context.is_bound,
    "each": Context.is_each,
    "same": Context.is_same,
    "per": Context.is_per,
    CURRENCY: Context.is_currency,
}


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

    Invariant: `context`, `wrong` and `said` belong to the statement that is being read: how far it
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
        self.context = Context(self.text)
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
                self.context = Context(self.text)
                self.context.add(lexeme("WRONG", "", self._region(match)))
                break
            self._take(kind, match)
            if self.report.full:
                break
        self._close()

    def _take(self, kind: str, match: re.Match[str]) -> None:
        text = match.group()
        if kind == "NAME":
            kind = self.context.word(text, match.end())
            if kind in _STARTS:
                self._close()
        elif kind == "NUMBER":
            text = self._number(text, match)
        elif kind == "STRING":
            text = self._string(text, match)
        elif kind == "MARK" and self.context.has_mark(PUNCTUATION[text]):
            kind = self._mark(text, match)
        else:
            self._refuse(kind, match)
            if kind not in ("OPEN", "QUOTED"):
                return
            kind, text = "STRING", ""
        self.context.add(lexeme(kind, text, self._region(match)))

    def _mark(self, text: str, match: re.Match[str]) -> str:
        kind = PUNCTUATION[text]
        if kind == "LPAR":
            if self.context.parens == MAX_NESTING:
                message = f"parentheses are nested deeper than {MAX_NESTING}"
                self._error("TCC106", match, message, "name the inner part by a rule of its own")
            if self.context.opens_arguments(match.end()):
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
        tokens = self.context.tokens
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
        if self.context.tokens:
            self.chunks.append(Chunk(tokens=self.context.tokens, wrong=self.wrong))
            self._reset()


_FIRST_WORD = re.compile(r"[ \t]*+([a-z]++)")
_SURROGATE = re.compile("[\ud800-\udfff]")
