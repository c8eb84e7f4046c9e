"""The words and marks of the language, and how messages name them and what stands in their place.

Normative text: docs/spec/language.md, section 2.  Which word is a keyword depends on its place for
the words of a block and of a few statements; the reserved ones are keywords everywhere.  Characters
that the language has no use for stand for something elsewhere: `meant` says what to write.
Cost: constant a word or a character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from tcc_certs.formats.codec import RESERVED, STATEMENT_WORDS

__all__ = ["RESERVED"]
from tcc_compiler.language.diagnostics import quote

# `currency` begins a statement where a string comes next; elsewhere it is a name.
CURRENCY = "currency"
# Likewise these, where what they need comes next.
_POLICY_OPENERS = ("given", "let", "monitor", "pass")
OPENERS = (*STATEMENT_WORDS, CURRENCY, *_POLICY_OPENERS)
AMOUNTS = ("cost", "price", "latency", "epsilon")
BLOCK_WORDS = frozenset((*AMOUNTS, "quotes", "doc", "bind", "model", "adapter"))
UNITS = frozenset(("ms", "s"))

# Words of statements since 1.2.  A grammar that declares one of them as a name keeps it as that.
POLICY_WORDS = frozenset(
    ("or", "where", "unless", "last", "within", "every", "some", "now", "seen", "session",
     "count", "max", "own", "in", "not", "as", "across")
)  # fmt: skip
KEPT_WORDS = POLICY_WORDS | frozenset(_POLICY_OPENERS) | frozenset(("same", "each"))
DURATIONS = frozenset((*UNITS, "m", "h", "d"))

# The types of open parameters: words right after the ':' of one.
TYPES = ("text", "integer", "number", "flag", "json")
TYPE_WORDS: Mapping[str, str] = {
    **dict.fromkeys(TYPES, "TYPE"), "list": "LIST", "time": "TIME", "date": "TIME",
}  # fmt: skip
# What other languages call them, and the type that is meant.
OTHER_TYPES: Mapping[str, str] = {
    "string": "text", "str": "text", "int": "integer", "float": "number", "bool": "flag",
    "any": "json", **{name: name for name in TYPES},
}  # fmt: skip

# Names that are keywords right after this keyword, and nowhere else.
PLACED: Mapping[str, frozenset[str]] = {
    "LIMIT": frozenset(("depth", "uses", "sum", *AMOUNTS)),
    "EXPECT": frozenset(("plans", "min_cost", "max_depth", "never", "reachable", "implies")),
    "BIND": frozenset(("mcp", "python")),
    "QUOTES": frozenset(("same",)),
    "ERRORS": frozenset(("mean",)),
    "MEAN": frozenset(("failed",)),
}

PUNCTUATION: Mapping[str, str] = {
    "(": "LPAR", ")": "RPAR", "{": "LBRACE", "}": "RBRACE", ",": "_COMMA", ":": "_COLON",
    "|": "_PIPE", "=": "_EQUAL", "+": "PLUS", "-": "MINUS", "*": "STAR", "?": "QMARK", "&": "_AMP",
    ";": "_SEMI", "~": "TILDE", ".": "_DOT",
    "->": "_ARROW", "..": "_DOTDOT", "<=": "LE", ">=": "GE", "==": "EQEQ",
    "!=": "NE", "<": "LT", ">": "GT", "!~": "UNLIKE",
}  # fmt: skip
_NAMES: Mapping[str, str] = {
    **{kind: f"'{text}'" for text, kind in PUNCTUATION.items()},
    "_ARGS": "'(' with arguments",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string in double quotes",
    "UNIT": "a unit ('ms' or 's')",
    "TYPE": "a type ('text', 'integer', 'number', 'flag' or 'json')",
    "$END": "the next statement",
}
# The order in which a message lists what it expected: names and words, then marks as declared here.
_FIRST = ("NAME", "NUMBER", "STRING", "UNIT", "TYPE")
_LAST = ("_ARGS", *PUNCTUATION.values(), "$END")


# Kinds that a message names together, where most of them could follow.
_GROUPS = (
    ("an operator", frozenset(("LBRACE", "_PIPE", "PLUS", "MINUS", "STAR", "QMARK", "_AMP"))),
    ("an operator", frozenset(("PLUS", "MINUS", "STAR"))),
    ("a condition", frozenset(("OR", "SAME", "WHERE", "WITHIN"))),
    (
        "an attribute",
        frozenset(("BIND", "COST", "DOC", "EPSILON", "ERRORS", "LATENCY", "MODEL", "PRICE",
                   "PARALLEL", "QUOTES", "STRICT")),
    ),
)  # fmt: skip


def expectation(kinds: Iterable[str]) -> str:
    """The kinds of token that may follow, as a message lists them: ``a name, 'any' or '('``."""
    found = frozenset(kinds)
    groups = []
    for name, members in _GROUPS:
        if len(found & members) > len(members) // 2:
            found -= members
            groups.append(name)
    # Where the name of something may stand, one in quotes may: that is not said each time.
    named = "NAME" in found and "NUMBER" not in found
    ordered = sorted(found - {"STRING"} if named else found, key=_rank)
    words = [_NAMES.get(kind, f"'{kind.lower()}'") for kind in ordered]
    last = len(words) - ("$END" in found)
    words[last:last] = groups
    if len(words) < 2:
        return words[0] if words else "nothing more"
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _rank(kind: str) -> tuple[int, int, str]:
    if kind in _FIRST:
        return 0, _FIRST.index(kind), kind
    return (2, _LAST.index(kind), kind) if kind in _LAST else (1, 0, kind)


# Quotes of other languages and of word processors; one of them ends what another begins.
QUOTES = "“”„‟«»‹›‘’‚‛"
_AT_MOST = "write '<='"
_BARE_PRICE = 'a price is a bare number of cents, 150 for 1.50; say which by: currency "EUR"'
_HINTS: Mapping[str, str] = {
    "<": _AT_MOST, "≤": _AT_MOST, ">": "write '>='", "≥": "write '>='",
    ";": "statements need no ';'",
    "'": "strings take double quotes",
    "/": "comments start with '#'; there is no division: multiply by 0.5 say",
    "//": "comments start with '#'",
    "/*": "comments start with '#', on each line",
    "!": "to forbid a call use '-' or a 'forbid' statement",
    "$": _BARE_PRICE, "€": _BARE_PRICE, "£": _BARE_PRICE, "¥": _BARE_PRICE,
    "%": "write the part of one as a decimal: 0.05 for 5%",
    "^": "to repeat write {3} after what is repeated",
    "[": "there are no square brackets: values are listed as (k: 1 | 2), what may be left out is"
    " followed by '?'",
    "]": "there are no square brackets",
    "@": "a name that holds more than letters, digits and '_' stands in double quotes",
    "→": "write '->' in a signature; in a plan calls stand side by side",
    "⇒": "write '->' in a signature; in a plan calls stand side by side",
    "–": "write '-'", "—": "write '-'", "−": "write '-'",
    "×": "write '*'", "…": "write '..'",
    "\\": "only strings have a '\\'; lines need no mark where they go on",
}  # fmt: skip
_WHEN = "`when` asks whether a parameter has a value: when k = 1 | 2"
_IN_TOOL: Mapping[str, str] = dict.fromkeys("<>≤≥!", _WHEN)
_NUMBER_DOT = "a decimal begins with a digit: 0.5"
_DOT = "write a range as 1..8; a name with a '.' stands in double quotes"


def meant(text: str, keyword: str, before: str) -> str:
    """What to write in place of a wrong character.

    Args:
        text: the character, or the run that it begins.
        keyword: the kind of the statement's first token, empty before a statement.
        before: the kind of the token before.
    """
    if text[0] == ".":
        names = ("NAME", "NUMBER", "STRING", "_DOTDOT")
        number = keyword in ("TOOL", "LIMIT") and before not in names
        path = 'the path stands in double quotes: use "tools.tcg"'
        return path if keyword == "USE" else _NUMBER_DOT if number else _DOT
    if keyword == "TOOL" and text[0] in _IN_TOOL:
        return _IN_TOOL[text[0]]
    if text[0] in "$€£¥" and keyword not in ("TOOL", "LIMIT"):
        return "take it away: a name has letters, digits and '_' alone, or stands in double quotes"
    known = _HINTS.get(text) or _HINTS.get(text[:2]) or _HINTS.get(text[0])
    if known is not None:
        return known
    if text[0] in QUOTES:
        return 'strings take straight double quotes: "'
    if text[0].isspace() or unicodedata.category(text[0]) in ("Zs", "Cf"):
        return "put a plain space there, or nothing"
    if text[0].isalpha():
        return "a name with other letters than a to z stands in double quotes"
    return "take it away; it may stand in strings and in comments"


def named(text: str) -> str:
    """How a message names a wrong character, or the run that it begins."""
    if text == "'":
        return "a single quote"
    if text.isascii() and text.isprintable():
        return quote(text)
    first = f"U+{ord(text[0]):04X} ({unicodedata.name(text[0], 'unnamed')})"
    return first if len(text) == 1 else f"{first}, the first of {len(text)} such characters,"
