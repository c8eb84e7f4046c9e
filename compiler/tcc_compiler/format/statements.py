"""The layout of all statements but tools: what stands between two of their tokens.

Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.format.elements import GLUE, LINE, SPACE, Elements, Separator
from tcc_compiler.format.expressions import put_arguments, put_definition
from tcc_compiler.format.tools import put_tool
from tcc_compiler.language.syntax.lexemes import Lexeme

_CLOSING = frozenset(("RPAR", "_COMMA", "_DOT"))
_OPENING = frozenset(("LPAR", "_DOT", "PLUS", "MINUS"))
_PARTED = frozenset(("BEFORE", "AFTER", "WITH", "SAME", "PER", "_PIPE"))
_PATTERN_ENDS = frozenset(("NAME", "STRING", "RPAR"))
_INDENT = 4


def put_statement(made: Elements, tokens: Sequence[Lexeme]) -> None:
    """Take a statement; of the comments before its first token the caller takes care."""
    match tokens[0].type:
        case "TOOL":
            put_tool(made, tokens)
        case "RULE" | "PLAN":
            put_definition(made, tokens)
        case _:
            _put_plain(made, tokens)


def _put_plain(made: Elements, tokens: Sequence[Lexeme]) -> None:
    first = tokens[0]
    listed = first.type in ("ACCEPT", "REJECT", "FORBID")
    made.open(fill=True, indent=len(first) + 1 if listed else _INDENT)
    rest = iter(tokens)
    before = next(rest)
    made.put(before)
    for token in rest:
        if token.type == "_ARGS":
            before = put_arguments(made, token, rest)
            continue
        made.before(token, _separator(before, token))
        if token.type == "SAME":
            made.open(fill=True, indent=_INDENT)
        made.put(token)
        before = token
    made.close(2 if any(token.type == "SAME" for token in tokens) else 1)


def _separator(before: Lexeme, token: Lexeme) -> Separator:
    if token.type in _CLOSING or before.type in _OPENING:
        return GLUE
    if token.type == "LPAR":
        return GLUE if before.type in ("USES", "SUM") else SPACE
    if token.type in _PARTED or before.type == "_COMMA":
        return LINE
    named = token.type in ("NAME", "STRING")
    return LINE if named and before.type in _PATTERN_ENDS else SPACE
