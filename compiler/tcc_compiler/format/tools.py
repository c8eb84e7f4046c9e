"""The layout of tools: on one line where that is short, else a line for each attribute.

Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcc_compiler.format.elements import GLUE, LINE, SPACE, Elements, Line, Separator
from tcc_compiler.format.expressions import is_sign
from tcc_compiler.language.syntax.lexemes import Lexeme

_INSIDE = 2  # what the attributes are moved to the right
_MORE = 4  # and a line that goes on
_END = Line(offset=-_INSIDE)
_ATTRIBUTES = frozenset(
    ("COST", "PRICE", "LATENCY", "EPSILON", "DOC", "QUOTES", "STRICT", "ERRORS", "BIND", "MODEL")
)
_PARTS = frozenset(("PRICE", "LATENCY", "EPSILON", "ADAPTER", "ATOM", "EXECUTE"))
_PARTED = frozenset(("WHEN", "_PIPE", "_DOTDOT", "PLUS", "MINUS", "STAR"))


def put_tool(made: Elements, tokens: Sequence[Lexeme]) -> None:
    """Take a tool."""
    rest = iter(tokens)
    made.open(fill=False, indent=_INSIDE)
    made.open(fill=True, indent=_MORE - _INSIDE)
    before = next(rest)
    made.put(before)
    opening = None
    for token in rest:
        if token.type == "LBRACE":
            opening = token
            break
        if token.type == "LPAR":
            _put_parameters(made, token, rest, GLUE if before.type != "GIVES" else SPACE)
        else:
            made.add(token, LINE if token.type in ("GIVES", "_COLON") else SPACE)
        before = token
    made.close()
    if opening is not None:
        _put_block(made, opening, rest)
    made.close()


def _put_parameters(
    made: Elements, opening: Lexeme, rest: Iterator[Lexeme], separator: Separator
) -> None:
    """Take ``(listed; open)``: what does not fit has a new line behind the semicolon."""
    made.before(opening, separator)
    made.open(fill=False)
    made.put(opening)
    made.open(fill=True)
    before = token = opening
    between: Separator = SPACE
    begun = False
    for token in rest:
        if token.type == "RPAR":
            break
        if token.type == "_SEMI":
            made.close(1 + begun)
            made.add(token, GLUE)
            between = SPACE if before.type == "LPAR" else LINE
            begun = False
        elif token.type == "_COMMA":
            made.add(token, GLUE)
            made.close(begun)
            between = LINE
            begun = False
        elif not begun:
            made.before(token, GLUE if before.type == "LPAR" else between)
            if before.type == "_SEMI":
                made.open(fill=True)
            made.open(fill=True, indent=_MORE)
            made.put(token)
            begun = True
        else:
            made.add(token, _between_types(before, token))
        before = token
    made.close(begun)
    made.add(token, GLUE)
    made.close(2)


def _between_types(before: Lexeme, token: Lexeme) -> Separator:
    """Between the tokens of one parameter."""
    if token.type in ("QMARK", "_COLON") or before.type in ("PLUS", "MINUS"):
        return GLUE
    return LINE if token.type == "_PIPE" else SPACE


def _put_block(made: Elements, opening: Lexeme, rest: Iterator[Lexeme]) -> None:
    made.add(opening, SPACE)
    before, sign, depth = opening, False, 0
    for token in rest:
        if token.type == "RBRACE":
            made.close(depth)
            made.add(token, GLUE if before.type == "LBRACE" else _END)
            break
        if token.type in _ATTRIBUTES:
            made.close(depth)
            made.before(token, LINE)
            made.open(fill=True, indent=_MORE)
            made.put(token)
            depth = 1
        elif token.type == "LBRACE":
            before, sign = _put_model(made, token, rest), False
            continue
        else:
            made.add(token, _between_terms(before, token, sign))
        sign = is_sign(token, before)
        before = token


def _put_model(
    made: Elements, opening: Lexeme, rest: Iterator[Lexeme], indent: int = _INSIDE - _MORE
) -> Lexeme:
    """Take the parts of a model, with their braces; returns the one that ends them."""
    made.before(opening, SPACE)
    made.open(fill=False, indent=indent)
    made.put(opening)
    before = token = opening
    for token in rest:
        if token.type == "RBRACE":
            made.add(token, GLUE if before.type == "LBRACE" else _END)
            break
        if token.type == "LBRACE":
            before = _put_model(made, token, rest, _INSIDE)
            continue
        made.add(token, LINE if token.type in _PARTS else _between_numbers(before, token))
        before = token
    made.close()
    return token


def _between_numbers(before: Lexeme, token: Lexeme) -> Separator:
    """Between two tokens of a part of a model."""
    if before.type in ("PLUS", "MINUS", "LPAR") or token.type in ("LPAR", "RPAR", "_COMMA"):
        return GLUE
    return SPACE


def _between_terms(before: Lexeme, token: Lexeme, sign: bool) -> Separator:
    """Between two tokens of an attribute; `sign` where the first is the sign of the second."""
    if sign or before.type == "LPAR" or token.type == "RPAR":
        return GLUE
    return LINE if token.type in _PARTED and not is_sign(token, before) else SPACE
