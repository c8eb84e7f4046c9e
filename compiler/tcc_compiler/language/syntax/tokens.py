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
from functools import partial

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report, cut, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax import words


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


_KEYWORDS = {word: word.upper() for word in words.RESERVED}
_OPERANDS = frozenset(("NAME", "NUMBER", "RPAR"))
# Behind one of these, inside the braces of a tool, no name can stand.
_ATTRIBUTE_ENDS = frozenset(
    (*_OPERANDS, "STRING", "UNIT", "LBRACE", "RBRACE", "SAME", "STRICT", "FAILED", "EXECUTE",
     "PARALLEL")
)  # fmt: skip
_PATTERN_ENDS = frozenset(("NAME", "STRING", "RPAR"))
# What follows a word or a '(', with white space or comments between.
_GAP = r"(?:[ \t\r\n]++|\#[^\n]*+)*+"
_QUOTED = r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+"'
_ARGUMENT = re.compile(rf"{_GAP}(?:[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}){_GAP}=(?!=)")
_NEXT_NAME = re.compile(rf'{_GAP}([A-Za-z_][A-Za-z0-9_]*+|")')
_NEXT_STRING = re.compile(rf'{_GAP}"')
_NEXT_NULL = re.compile(rf"{_GAP}null\b")
_NEXT_SET = re.compile(rf"{_GAP}(?:any\b|\()")
_NEXT = {
    "given": re.compile(rf"{_GAP}(?:[A-Za-z_][A-Za-z0-9_]*+|{_QUOTED}){_GAP}\??{_GAP}:"),
    "let": re.compile(rf"{_GAP}[A-Za-z_][A-Za-z0-9_]*+{_GAP}[=(]"),
    "monitor": re.compile(rf"{_GAP}(?:limit|require|forbid)\b"),
    # At the end of a text, too: an editor asks there what may come next.
    "pass": re.compile(rf"{_GAP}(?:(?:resources|prompts|input)\b|\Z)"),
}
_STATED = frozenset(("REQUIRE", "FORBID", "LIMIT"))
# What a type may end with; behind it stand `or null` and `at`.
_TYPE_ENDS = frozenset(("TYPE", "TIME", "UTC", "NUMBER", "STRING", "NAME", "STAR", "RPAR", "NULL"))
# What a number that asks for so many calls stands behind.
_HEADS = frozenset(("REQUIRE", "FORBID", "OR", "UNLESS"))


class Context:
    """The tokens of a statement so far, and what a word or a mark means behind them.

    Attributes:
        braces, parens: how many are open; braces are counted in tools alone.
        opened: how many parentheses were open at the `;` of those that are; 0 without one.
        ordered: there was a `before` or a `with`.
        related: there was a word that terms and relations follow.
        bound: the arguments of a pattern are open.
        kept: the words of statements that this grammar has as names.
    """

    __slots__ = (
        "bound", "braces", "kept", "opened", "ordered", "parens", "related", "text", "tokens"
    )  # fmt: skip

    def __init__(self, text: str, kept: frozenset[str] = frozenset()) -> None:
        """Begin a statement of `text`."""
        self.text = text
        self.kept = kept
        self.tokens: list[Lexeme] = []
        self.braces = 0
        self.parens = 0
        self.opened = 0
        self.ordered = False
        self.related = False
        self.bound = False

    def add(self, token: Lexeme) -> None:
        """Go on behind the next token."""
        match token.type:
            case "LBRACE":
                self.braces += self._in("TOOL")
            case "RBRACE":
                self.braces -= self.braces > 0
            case "LPAR" | "_ARGS":
                self.parens += 1
                self.bound = token.type == "_ARGS"
            case "RPAR":
                self.parens -= self.parens > 0
                self.bound = False
                if self.parens < self.opened:
                    self.opened = 0
            case "_SEMI":
                self.opened = self.parens
            case "BEFORE" | "WITH":
                self.ordered = True
            case "AFTER":
                self.ordered = self.ordered or self._in("EXPECT")
            case "WHERE" | "SAME" | "PER" | "WITHIN":
                self.related = True
        self.tokens.append(token)

    def word(self, text: str, end: int) -> str:
        """The kind of a name that stands here; the text goes on at `end`."""
        if text in _KEYWORDS:
            return _KEYWORDS[text]
        before = self.tokens[-1].type if self.tokens else ""
        if text in words.PLACED.get(before, ()):
            return text.upper()
        if text in words.BLOCK_WORDS and self.braces and before not in ("_EQUAL", "_PIPE", "MODEL"):
            return text.upper()
        if text in words.UNITS and before in _OPERANDS and (self.braces or self._in("LIMIT")):
            return "UNIT"
        if text in words.DURATIONS and self.is_duration(before):
            return "UNIT"
        if text in _LOCAL and _LOCAL[text](self, before, end):
            return words.TYPE_WORDS.get(text) or text.upper()
        if text in words.POLICY_WORDS and self.is_stated(text, before):
            return text.upper()
        return "NAME"

    def has_mark(self, kind: str) -> bool:
        """Whether a mark means something here."""
        if kind == "_DOT":
            summed = self.parens > 0 and "SUM" in (token.type for token in self.tokens[1:3])
            return summed or self._relates() or self._in("LET")
        typed = self.parens > 0 and not self.braces and self._in("TOOL")
        if kind == "TILDE":
            said = bool(self.tokens) and self.tokens[-1].type == "FAILED"
            return typed or said or self._relates() or self._in("GIVEN")
        if kind in ("NE", "LT", "GT", "UNLIKE"):
            return self._relates()
        return typed if kind == "_SEMI" else True

    def _relates(self) -> bool:
        """Whether terms and relations may stand here."""
        return self.related and self._head() in _STATED

    def _head(self) -> str:
        """The kind of the statement, `monitor` aside."""
        if not self.tokens:
            return ""
        monitored = self.tokens[0].type == "MONITOR" and len(self.tokens) > 1
        return self.tokens[monitored].type

    def opens_arguments(self, end: int) -> bool:
        """Whether a '(' that stands here opens the arguments of a pattern."""
        named = bool(self.tokens) and self.tokens[-1].type in ("NAME", "STRING")
        # Behind `as x` a '(' opens a group, whatever follows.
        called = len(self.tokens) > 1 and self.tokens[-2].type == "AS"
        if not named or called or self._in("TOOL"):
            return False
        return _ARGUMENT.match(self.text, end) is not None

    def _in(self, keyword: str) -> bool:
        return bool(self.tokens) and self._head() == keyword

    def is_stated(self, text: str, before: str) -> bool:
        """A word of statements since 1.2, where the grammar has no name like it."""
        if text in self.kept or self.bound or before in ("_DOT", "AS"):
            return False
        return self._head() in _STATED or (text == "or" and self._in("LET") and not self.parens)

    def is_duration(self, before: str) -> bool:
        """``24 h``: behind a number, where terms stand; not behind one that counts calls."""
        if before != "NUMBER" or not self._relates() or self.bound:
            return False
        return len(self.tokens) < 2 or self.tokens[-2].type not in _HEADS

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

    def _typed(self) -> bool:
        return self.opened > 0 or (self._in("GIVEN") and not self.braces)

    def is_type(self, before: str, _end: int) -> bool:
        """The name of a type: after the ':' of an open parameter, or the `of` of a list."""
        return self._typed() and before in ("_COLON", "OF")

    def is_bound(self, before: str, _end: int) -> bool:
        """``min``, ``max``: after a type, or what limits it."""
        return self._typed() and before in ("TYPE", "NUMBER", "STRING", "LIST", "DISTINCT")

    def is_list_part(self, before: str, _end: int) -> bool:
        """``of``, ``distinct``: in the type of a list."""
        return self._typed() and before in ("LIST", "NUMBER", "DISTINCT")

    def is_zone(self, before: str, _end: int) -> bool:
        """``utc``: after the type of a time."""
        return self._typed() and before == "TIME"

    def _declares(self, before: str) -> bool:
        """Whether a type or a listed value ends here."""
        inside = self._in("GIVEN") or (self._in("TOOL") and self.parens > 0)
        return inside and not self.braces and before in _TYPE_ENDS

    def is_or(self, before: str, end: int) -> bool:
        """``or`` of `or null`, in the declaration of a field."""
        return self._declares(before) and _NEXT_NULL.match(self.text, end) is not None

    def is_null(self, before: str, _end: int) -> bool:
        """``null`` of `or null`."""
        return before == "OR" and (self._in("TOOL") or self._in("GIVEN"))

    def is_at(self, before: str, end: int) -> bool:
        """``at``: after the type of a field, where a string comes next."""
        return self._declares(before) and _NEXT_STRING.match(self.text, end) is not None

    def is_sessions(self, before: str, _end: int) -> bool:
        """``sessions`` of `across sessions`."""
        return before == "ACROSS"

    def is_each(self, before: str, end: int) -> bool:
        """``each``: after `before`, where a pattern follows and not `same` with its pairs."""
        if before != "BEFORE":
            return False
        opening = _NEXT_SET.match(self.text, end)
        if opening is not None and "each" not in self.kept:
            return _ARGUMENT.match(self.text, opening.end()) is None
        names = self._names(end, 3)
        # In `each same p` and `each same same` a tool is called each; in `each same` and
        # `each same same p` one is called same.
        if len(names) < 2 or names[0] != "same":
            return bool(names)
        return len(names) == 3 and names[1] == "same"

    def _names(self, end: int, most: int) -> list[str]:
        """The names that come next, at most so many; a quote stands for one in quotes."""
        names: list[str] = []
        while len(names) < most:
            found = _NEXT_NAME.match(self.text, end)
            if found is None or found[1] in words.RESERVED:
                break
            names.append(found[1])
            end = found.end()
        return names

    def is_same(self, before: str, _end: int) -> bool:
        """``same``: after a set of a `require` or a `forbid`, unless a tool is called so."""
        stated = self._in("REQUIRE") or self._in("FORBID") or self._in("EXPECT")
        if not stated or self.parens or before not in (*_PATTERN_ENDS, "ANY"):
            return False
        return self.ordered or "same" not in self.kept

    def is_per(self, before: str, _end: int) -> bool:
        """``per``: after the parentheses of `uses`."""
        return before == "RPAR" and not self.parens and self._in("LIMIT")

    def is_currency(self, _before: str, end: int) -> bool:
        """``currency``: where a string comes next."""
        return not self.braces and not self.parens and bool(_NEXT_STRING.match(self.text, end))


def _opens_policy(word: str, context: Context, _before: str, end: int) -> bool:
    """``given``, ``let``, ``monitor``, ``pass``: where what they need comes next."""
    if context.braces or context.parens or word in context.kept:
        return False
    return _NEXT[word].match(context.text, end) is not None


_LOCAL: Mapping[str, Callable[[Context, str, int], bool]] = {
    "strict": Context.is_attribute,
    "errors": Context.is_attribute,
    "atom": Context.is_model_part,
    "execute": Context.is_model_part,
    "quality": Context.is_model_part,
    "times": Context.is_times,
    "gives": Context.is_gives,
    **dict.fromkeys(words.TYPE_WORDS, Context.is_type),
    "of": Context.is_list_part,
    "distinct": Context.is_list_part,
    "utc": Context.is_zone,
    "or": Context.is_or,
    "null": Context.is_null,
    "at": Context.is_at,
    "sessions": Context.is_sessions,
    "parallel": Context.is_attribute,
    "min": Context.is_bound,
    "max": Context.is_bound,
    "each": Context.is_each,
    "same": Context.is_same,
    "per": Context.is_per,
    words.CURRENCY: Context.is_currency,
    **{word: partial(_opens_policy, word) for word in _NEXT},
}


MAX_TOKENS = 1 << 17
MAX_DIGITS = 1000
MAX_NESTING = 200

_TOKEN = re.compile(
    r"""(?P<SPACE>[ \t\r\n]++ | \#[^\n]*+)
      | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*+)
      | (?P<NUMBER>[0-9]++(?:\.[0-9]++)?)
      | (?P<STRING>"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+")
      | (?P<MARK>->|\.\.|<=|>=|==|!=|!~|[(){},:|=+\-*?&;~.<>])
      | (?P<OPEN>"[^\n]*+)
      | (?P<QUOTED>[“”„‟«»‹›‘’‚‛][^\n“”„‟«»‹›‘’‚‛"]*+[“”„‟«»‹›‘’‚‛"] | '[^\n'"]*+')
      | (?P<REMARK>//[^\n]*+ | /\*)
      | (?P<WRONG>[^ \t\r\n\#A-Za-z_0-9"(){},:|=+\-*?&;~.<>!“”„‟«»‹›‘’‚‛'/\[\]]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_SPLIT = "split the grammar: `use` takes tools from other files"
_STARTS = frozenset(word.upper() for word in words.OPENERS)


@frozen
class Chunk:
    """The tokens of one statement, its keyword first.

    Attributes:
        tokens: one or more.
        wrong: the offset of the first character that was reported, None where nothing was.
    """

    tokens: Sequence[Lexeme]
    wrong: int | None = None


def may_keep(text: str) -> bool:
    """Whether a text has words that another may keep as names."""
    return _KEPT.search(text) is not None


def kept_words(text: str) -> frozenset[str]:
    """The words of statements since 1.2 that a text declares, without quotes, as names.

    Of a tool, a rule, or a parameter; there they are names throughout.  Cost: linear.
    """
    if not may_keep(text):
        return frozenset()
    found: set[str] = set()
    context = Context(text)
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "WRONG"
        word = match.group()
        if kind == "SPACE":
            continue
        if kind == "MARK":
            kind = words.PUNCTUATION[word]
        elif kind == "STRING" and word in ('"same"', '"each"'):
            # Words of 1.1, which were names wherever one may stand, however declared.
            if _is_declared(context, match.end()):
                found.add(word[1:-1])
        elif kind == "NAME":
            kind = _KEYWORDS.get(word, "NAME")
            if kind in _STARTS:
                context = Context(text)
            elif word in words.KEPT_WORDS and _is_declared(context, match.end()):
                found.add(word)
        context.add(lexeme(kind, word, Region(0, match.start(), match.end())))
    return frozenset(found)


def _is_declared(context: Context, end: int) -> bool:
    """Whether a name that stands here is declared: of a tool or rule, or of a parameter."""
    if len(context.tokens) == 1:
        return context.tokens[0].type in ("TOOL", "RULE")
    inside = bool(context.tokens) and context.tokens[0].type == "TOOL"
    if not inside or context.parens != 1 or context.braces:
        return False
    starts = context.tokens[-1].type in ("LPAR", "_COMMA", "_SEMI")
    return starts and _DECLARES.match(context.text, end) is not None


def split(
    text: str, source: int, report: Report, kept: frozenset[str] | None = None
) -> tuple[Chunk, ...]:
    """The statements of a text, as tokens; characters that are no token are reported and left out.

    A text with too many tokens comes out as one chunk that is no statement.

    Args:
        kept: words that are names here; None for those that the text itself declares.
    """
    scanner = _Scanner(text, source, report, kept_words(text) if kept is None else kept)
    scanner.run()
    return tuple(scanner.chunks)


class _Scanner:
    """One pass over a text.

    Invariant: `context`, `wrong` and `said` belong to the statement that is being read: how far it
    is, the offset of its first error, and the wrong characters that were reported.
    """

    def __init__(self, text: str, source: int, report: Report, kept: frozenset[str]) -> None:
        self.text = text
        self.kept = kept
        self.source = source
        self.report = report
        self.chunks: list[Chunk] = []
        self.remark_ends = 0
        self.no_remark_ends = False
        self._reset()

    def _reset(self) -> None:
        self.context = Context(self.text, self.kept)
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
            if kind in _STARTS and not self._is_monitored(kind):
                self._close()
        elif kind == "NUMBER":
            text = self._number(text, match)
        elif kind == "STRING":
            text = self._string(text, match)
        elif kind == "MARK" and self.context.has_mark(words.PUNCTUATION[text]):
            kind = self._mark(text, match)
        else:
            self._refuse(kind, match)
            if kind not in ("OPEN", "QUOTED"):
                return
            kind, text = "STRING", ""
        self.context.add(lexeme(kind, text, self._region(match)))

    def _is_monitored(self, kind: str) -> bool:
        tokens = self.context.tokens
        return kind in _STATED and len(tokens) == 1 and tokens[0].type == "MONITOR"

    def _mark(self, text: str, match: re.Match[str]) -> str:
        kind = words.PUNCTUATION[text]
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
            message = f"{words.named(text[0])} is no quote of a string"
            self._wrong(text[0], match, message, f'write "{cut(text[1:-1])}"')
        elif kind == "REMARK":
            mark = text[:2]
            if mark == "/*":
                self._pass_remark(match.end())
            self._wrong(mark, match, f"{quote(mark)} has no meaning here")
        else:
            self._wrong(text[0], match, f"{words.named(text)} has no meaning here")

    def _pass_rest(self, end: int) -> None:
        """Skip what stands before the first quote of the next line, where it is no statement."""
        stop = self.text.find("\n", end + 1)
        line = self.text[end + 1 : stop if stop >= 0 else len(self.text)]
        word = _FIRST_WORD.match(line)
        quoted = line.find('"')
        if quoted >= 0 and (word is None or word[1] not in (*words.OPENERS, *words.BLOCK_WORDS)):
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
            hint = words.meant(match.group(), keyword, tokens[-1].type if tokens else "")
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


_KEPT = re.compile(rf"\b(?:{'|'.join(sorted(words.KEPT_WORDS))})\b")
_DECLARES = re.compile(rf"{_GAP}\??{_GAP}:")
_FIRST_WORD = re.compile(r"[ \t]*+([a-z]++)")
_SURROGATE = re.compile("[\ud800-\udfff]")
