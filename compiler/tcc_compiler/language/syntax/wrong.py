"""Characters that the language has no use for: what they stand for elsewhere, and what to write.

Normative text: docs/spec/language.md, section 2.  Cost: constant a character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from tcc_compiler.language.diagnostics import quote

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
