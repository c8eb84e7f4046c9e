"""Split characters into tokens; the state of the parser decides the kind of a word.

The lexer is contextual, like Lark's: a word is a keyword only where the parser accepts that
keyword, and a NAME elsewhere. Cost: one match of a regular expression for each token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from tcc_compiler.language.diagnostics import cut, quote
from tcc_compiler.language.source import Source
from tcc_compiler.syntax.tree import Token

MAX_DIGITS = 1000
_GAP = r"(?:[ \t\r\n]++|\#[^\n]*+)*+"
_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*+|`[^`\n]++`)"
_SPACE = re.compile(_GAP)
_FIELD = re.compile(rf"{_GAP}{_NAME}{_GAP}\??{_GAP}:")
_ARGUMENT = re.compile(rf"{_GAP}{_NAME}{_GAP}=(?!=)")
_TOKEN = re.compile(
    r"""(?P<NAME>[A-Za-z_][A-Za-z0-9_]*+)
      | (?P<NUMBER>[0-9]++(?:\.[0-9]++)?)
      | (?P<STRING>"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+")
      | (?P<QNAME>`[^`\n]++`)
      | (?P<REMARK>//[^\n]*+ | /\*)
      | (?P<MARK>->|\.\.|<=|>=|!=|!~|[(){},:|=+\-*?&~.<>])
      | (?P<OPEN>"[^\n]*+)
      | (?P<TICK>`[^\n]*+)
      | (?P<QUOTED>[“”„‟«»‹›‘’‚‛][^\n“”„‟«»‹›‘’‚‛"]*+[“”„‟«»‹›‘’‚‛"] | '[^\n'"]*+')
      | (?P<WRONG>[^ \t\r\n\#A-Za-z_0-9"(){},:|=+\-*?&~.<>!“”„‟«»‹›‘’‚‛'`/;\[\]]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9A-Fa-f]{4}))|\\.')
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Wrong(Exception):
    """Raised for text that is no token.

    Attributes:
        start, end: its place.
        code, message, hint: the parts of the diagnostic.
    """

    def __init__(self, start: int, end: int, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.code = code
        self.message = message
        self.hint = hint


def next_token(source: Source, at: int, accepted: Mapping[str, object]) -> Token | None:
    """Return the token at or after `at`; None at the end of the text.

    Args:
        accepted: the terminals for which the state of the parser has an action.

    Raises:
        Wrong: the text there is no token.
    """
    text = source.text
    gap = _SPACE.match(text, at)
    at = gap.end() if gap else at
    found = _TOKEN.match(text, at)
    if found is None:
        return None
    kind = found.lastgroup or "WRONG"
    word = found[0]
    if kind == "NAME":
        kind = word if word in accepted else kind
    elif kind == "MARK":
        kind = word
        if word == "(":
            kind = _bracket(text, found.end(), accepted)
    elif kind == "NUMBER":
        if len(word) > MAX_DIGITS:
            message = f"a number of more than {MAX_DIGITS} digits"
            raise Wrong(at, found.end(), "TCC105", message, "write a shorter one")
    elif kind == "STRING":
        if "\\" in word and _SURROGATE.search(string_value(word)):
            message = "this string has half of a surrogate pair"
            hint = "write the character itself, or both halves"
            raise Wrong(at, found.end(), "TCC104", message, hint)
    elif kind != "QNAME":
        raise _wrong(kind, word, at, found.end())
    return Token(kind, word, at, found.end())


def _bracket(text: str, end: int, accepted: Mapping[str, object]) -> str:
    if "_FIELDS" in accepted and _FIELD.match(text, end):
        return "_FIELDS"
    return "_ARGS" if "_ARGS" in accepted and _ARGUMENT.match(text, end) else "("


def string_value(literal: str) -> str:
    """Return the characters of a string literal.

    The escapes of JSON are replaced; any other backslash stands for itself.
    """
    inner = literal[1:-1]
    if "\\" not in inner:
        return inner
    value = _ESCAPE.sub(_character, inner)
    if _SURROGATE.search(value):  # joins the halves of pairs; single halves remain
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return value


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _ESCAPES.get(found[1], found[1])
    return chr(int(found[2], 16)) if found[2] else found[0]


def name_value(token: Token) -> str:
    """Return the name that a NAME or a QNAME stands for."""
    return token.text[1:-1] if token.kind == "QNAME" else token.text


def _wrong(kind: str, text: str, start: int, end: int) -> Wrong:
    if kind == "OPEN":
        message = "this string is not closed on its line, or holds a control character"
        hint = "end it with '\"'; write a newline as \\n"
        return Wrong(start, end, "TCC103", message, hint)
    if kind == "TICK":
        message = "this name in backticks is not closed on its line"
        return Wrong(start, end, "TCC103", message, "end it with '`'")
    if kind == "QUOTED":
        message = f"{named(text[0])} is no quote of a string"
        return Wrong(start, end, "TCC102", message, f'write "{cut(text[1:-1])}"')
    if kind == "REMARK":
        message = f"{quote(text[:2])} has no meaning here"
        return Wrong(start, end, "TCC102", message, "comments start with '#'")
    return Wrong(start, end, "TCC102", f"{named(text)} has no meaning here", _meant(text))


# Quotation marks of other languages and of word processors.
_QUOTES = "“”„‟«»‹›‘’‚‛"
_BARE_PRICE = 'a price is a bare number of cents; say which: currency "EUR"'
_HINTS: Mapping[str, str] = {
    ";": "nothing ends with ';': fields have ',' between them, and statements begin on new lines",
    "!": "write `not`, `!=` or `!~`; for a set of calls write `no`",
    "[": "values are written a | b, and a field that may be left out name?: type",
    "]": "there are no square brackets",
    "@": "a name that holds more than letters, digits and '_' is written in backticks",
    "≤": "write '<='", "≥": "write '>='", "≠": "write '!='",
    "'": "strings have double quotes",
    "/": "there is no division: multiply by 0.5, say; comments start with '#'",
    "$": _BARE_PRICE, "€": _BARE_PRICE, "£": _BARE_PRICE, "¥": _BARE_PRICE,
    "%": "write the part of one as a decimal: 0.05 for 5%",
    "^": "to repeat write {3} after what is repeated",
    "→": "write '->'", "⇒": "write '->'",
    "–": "write '-'", "—": "write '-'", "−": "write '-'", "×": "write '*'", "…": "write '..'",
    "\\": "only strings have a backslash; a statement may go on in the next line as it is",
}  # fmt: skip


def _meant(text: str) -> str:
    """Return a hint about a wrong character, or about the run of characters that it begins."""
    known = _HINTS.get(text[0])
    if known is not None:
        return known
    if text[0] in _QUOTES:
        return 'strings have straight double quotes: "'
    if text[0].isspace() or unicodedata.category(text[0]) in ("Zs", "Cf"):
        return "put a plain space there, or nothing"
    if text[0].isalpha():
        return "a name with other letters than a to z is written in backticks"
    return "take it away; strings and comments may contain it"


def named(text: str) -> str:
    """Return the description of a wrong character, or of the run that it begins, in a message."""
    if text == "'":
        return "a single quote"
    if text.isascii() and text.isprintable():
        return quote(text)
    first = f"U+{ord(text[0]):04X} ({unicodedata.name(text[0], 'unnamed')})"
    return first if len(text) == 1 else f"{first}, the first of {len(text)} such characters,"
