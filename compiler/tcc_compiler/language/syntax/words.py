"""The words of the language, and how a syntax error names what it expected.

Normative text: docs/spec/language.md, section 2.  Which word is a keyword depends on its place for
the words of a block and of a few statements; the reserved ones are keywords everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tcc_certs.formats.names import RESERVED, STATEMENT_WORDS

__all__ = ["RESERVED", "STATEMENT_WORDS"]

# `currency` begins a statement where a string comes next; elsewhere it is a name.
CURRENCY = "currency"
OPENERS = (*STATEMENT_WORDS, CURRENCY)
AMOUNTS = ("cost", "price", "latency", "epsilon")
BLOCK_WORDS = frozenset((*AMOUNTS, "quotes", "doc", "bind", "model", "adapter"))
UNITS = frozenset(("ms", "s"))

# The types of open parameters: words right after the ':' of one.
TYPES = ("text", "integer", "number", "flag", "json")
# What other languages call them, and the type that is meant.
OTHER_TYPES: Mapping[str, str] = {
    "string": "text", "str": "text", "int": "integer", "float": "number", "bool": "flag",
    "any": "json", **{name: name for name in TYPES},
}  # fmt: skip

# Names that are keywords right after this keyword, and nowhere else.
PLACED: Mapping[str, frozenset[str]] = {
    "LIMIT": frozenset(("depth", "uses", "sum", *AMOUNTS)),
    "EXPECT": frozenset(("plans", "min_cost", "max_depth")),
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
    (
        "an attribute",
        frozenset(("BIND", "COST", "DOC", "EPSILON", "ERRORS", "LATENCY", "MODEL", "PRICE",
                   "QUOTES", "STRICT")),
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
