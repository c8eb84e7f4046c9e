"""The layout of each statement: what stands between two tokens, and which of them belong together.

In an expression that does not fit, each operand of its loosest operator has a line, with the
operator before it; sequences are filled.  A tool stands on one line where that is short, else each
attribute has a line.  Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tcc_compiler.format import elements
from tcc_compiler.language.syntax.tokens import Lexeme

_CHOICE = elements.LayoutLine("")  # between the values of a pattern: `k=5|10`
_EXPRESSION_INDENT = 2  # what a line that goes on is moved to the right
_SIGNS = frozenset(("PLUS", "MINUS"))
# Operators from tightest to loosest, each with the groups that end before it.
_OPERATORS = {"_PIPE": 1, "MINUS": 2, "_AMP": 3}


def put_arguments(
    made: elements.StatementElements, opening: Lexeme, rest: Iterator[Lexeme]
) -> Lexeme:
    """Take the arguments of a pattern, ``(k=5|10, engine=bm25)``; returns the last token."""
    made.before(opening, elements.GLUE)
    made.open(fill=True, indent=1, aligned=True)
    made.put(opening)
    separator: elements.Separator = elements.GLUE
    token = opening
    for token in rest:
        made.add(token, _CHOICE if token.type == "_PIPE" else separator)
        separator = elements.LINE if token.type == "_COMMA" else elements.GLUE
        if token.type == "RPAR":
            break
    made.close()
    return token


@dataclass(slots=True)
class _Frame:
    """An expression that is being read: the whole one, or one in parentheses.

    Attributes:
        groups: those of differences, choices and sequences, by how loose they are; all of them.
        loosest: how loose the operators are that were found.
    """

    groups: list[tuple[int, elements.Open]] = field(default_factory=list)
    loosest: int = 0


class _Expression:
    """The tokens of an expression, one by one.

    Invariant: `frames` has an entry for each open parenthesis and one for the whole; in each the
    groups of `&`, `-`, `|` and of a sequence are open.
    """

    def __init__(self, made: elements.StatementElements) -> None:
        self.made = made
        self.frames: list[_Frame] = []
        self.separator: elements.Separator = elements.SPACE
        self._enter()

    def _enter(self) -> None:
        self.frames.append(_Frame())
        self._open(3)

    def _open(self, loosest: int) -> None:
        """Begin the groups from that of an operator down to that of a sequence."""
        frame = self.frames[-1]
        for level in range(loosest, -1, -1):
            group = self.made.open(fill=level == 0, indent=0 if level else _EXPRESSION_INDENT)
            frame.groups.append((level, group))

    def _leave(self) -> None:
        """End an expression; the operands of its loosest operator stand apart from their parts."""
        self.made.close(4)
        frame = self.frames.pop()
        for level, group in frame.groups:
            if level and level < frame.loosest:
                group.indent = _EXPRESSION_INDENT

    def take(self, token: Lexeme, rest: Iterator[Lexeme]) -> None:
        """Take a token, and where it opens arguments those."""
        kind = token.type
        if kind == "_ARGS":
            put_arguments(self.made, token, rest)
            self.separator = elements.LINE
        elif kind == "LPAR":
            self.made.before(token, self.separator)
            self.made.open(fill=True, aligned=True)
            self.made.put(token)
            self._enter()
            self.separator = elements.GLUE
        elif kind == "RPAR":
            self.made.before(token, elements.GLUE)
            self._leave()
            self.made.put(token)
            self.made.close()
            self.separator = elements.LINE
        elif kind in _OPERATORS:
            self._operator(token, _OPERATORS[kind])
        elif kind in ("NAME", "STRING", "ANY"):
            self.made.add(token, self.separator)
            self.separator = elements.LINE
        else:  # a repetition
            self.made.add(token, elements.GLUE)

    def _operator(self, token: Lexeme, level: int) -> None:
        self.made.close(level)
        self.made.add(token, elements.LINE)
        self._open(level - 1)
        self.frames[-1].loosest = max(self.frames[-1].loosest, level)
        self.separator = elements.SPACE

    def end(self) -> None:
        self._leave()


def put_definition(made: elements.StatementElements, tokens: Sequence[Lexeme]) -> None:
    """Take a `rule` or a `plan`; lines that go on begin below its `=`."""
    rest = iter(tokens)
    made.put(next(rest))
    for token in rest:
        made.before(token, elements.SPACE)
        if token.type == "_EQUAL":
            made.open(fill=True, aligned=True)
            made.put(token)
            break
        made.put(token)
    expression = _Expression(made)
    for token in rest:
        expression.take(token, rest)
    expression.end()
    made.close()


def is_sign(token: Lexeme, before: Lexeme) -> bool:
    """Whether a `+` or `-` is the sign of what comes next, and not between two operands."""
    return token.type in _SIGNS and before.type not in ("NAME", "STRING", "NUMBER", "RPAR")


# Tools.

_INSIDE = 2  # what the attributes are moved to the right
_TOOL_INDENT = 4  # and a line that goes on
_END = elements.LayoutLine(offset=-_INSIDE)
_ATTRIBUTES = frozenset(
    ("COST", "PRICE", "LATENCY", "EPSILON", "DOC", "QUOTES", "STRICT", "ERRORS", "BIND", "MODEL",
     "PARALLEL")
)  # fmt: skip
_PARTS = frozenset(("PRICE", "LATENCY", "EPSILON", "ADAPTER", "ATOM", "EXECUTE"))
_TYPE_BREAKS = frozenset(("_PIPE", "OF", "AT", "OR"))
_TOOL_BREAKS = frozenset(("WHEN", "_PIPE", "_DOTDOT", "PLUS", "MINUS", "STAR"))


def put_tool(made: elements.StatementElements, tokens: Sequence[Lexeme]) -> None:
    """Take a tool."""
    rest = iter(tokens)
    made.open(fill=False, indent=_INSIDE)
    made.open(fill=True, indent=_TOOL_INDENT - _INSIDE)
    before = next(rest)
    made.put(before)
    opening = None
    for token in rest:
        if token.type == "LBRACE":
            opening = token
            break
        if token.type == "LPAR":
            _put_parameters(
                made, token, rest, elements.GLUE if before.type != "GIVES" else elements.SPACE
            )
        else:
            made.add(token, elements.LINE if token.type in ("GIVES", "_COLON") else elements.SPACE)
        before = token
    made.close()
    if opening is not None:
        _put_block(made, opening, rest)
    made.close()


def _put_parameters(
    made: elements.StatementElements,
    opening: Lexeme,
    rest: Iterator[Lexeme],
    separator: elements.Separator,
) -> None:
    """Take ``(listed; open)``: what does not fit has a new line behind the semicolon."""
    made.before(opening, separator)
    made.open(fill=False)
    made.put(opening)
    made.open(fill=True)
    before = token = opening
    between: elements.Separator = elements.SPACE
    begun = False
    inner = 0  # parentheses of records that are open
    for token in rest:
        inner += (token.type == "LPAR") - (token.type == "RPAR")
        if inner < 0:
            break
        if token.type == "_SEMI":
            made.close(1 + begun)
            made.add(token, elements.GLUE)
            between = elements.SPACE if before.type == "LPAR" else elements.LINE
            begun = False
        elif token.type == "_COMMA" and not inner:
            made.add(token, elements.GLUE)
            made.close(begun)
            between = elements.LINE
            begun = False
        elif not begun:
            made.before(token, elements.GLUE if before.type == "LPAR" else between)
            if before.type == "_SEMI":
                made.open(fill=True)
            made.open(fill=True, indent=_TOOL_INDENT)
            made.put(token)
            begun = True
        else:
            made.add(token, _between_types(before, token))
        before = token
    made.close(begun)
    made.add(token, elements.GLUE)
    made.close(2)


def _between_types(before: Lexeme, token: Lexeme) -> elements.Separator:
    """Between the tokens of one parameter."""
    if token.type in ("QMARK", "_COLON", "_COMMA", "RPAR") or before.type in _OPENING:
        return elements.GLUE
    return (
        elements.LINE if token.type in _TYPE_BREAKS or before.type == "_COMMA" else elements.SPACE
    )


def _put_block(made: elements.StatementElements, opening: Lexeme, rest: Iterator[Lexeme]) -> None:
    made.add(opening, elements.SPACE)
    before, sign, depth = opening, False, 0
    for token in rest:
        if token.type == "RBRACE":
            made.close(depth)
            made.add(token, elements.GLUE if before.type == "LBRACE" else _END)
            break
        if token.type in _ATTRIBUTES:
            made.close(depth)
            made.before(token, elements.LINE)
            made.open(fill=True, indent=_TOOL_INDENT)
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
    made: elements.StatementElements,
    opening: Lexeme,
    rest: Iterator[Lexeme],
    indent: int = _INSIDE - _TOOL_INDENT,
) -> Lexeme:
    """Take the parts of a model, with their braces; returns the one that ends them."""
    made.before(opening, elements.SPACE)
    made.open(fill=False, indent=indent)
    made.put(opening)
    before = token = opening
    for token in rest:
        if token.type == "RBRACE":
            made.add(token, elements.GLUE if before.type == "LBRACE" else _END)
            break
        if token.type == "LBRACE":
            before = _put_model(made, token, rest, _INSIDE)
            continue
        made.add(token, elements.LINE if token.type in _PARTS else _between_numbers(before, token))
        before = token
    made.close()
    return token


def _between_numbers(before: Lexeme, token: Lexeme) -> elements.Separator:
    """Between two tokens of a part of a model."""
    if before.type in ("PLUS", "MINUS", "LPAR") or token.type in ("LPAR", "RPAR", "_COMMA"):
        return elements.GLUE
    return elements.SPACE


def _between_terms(before: Lexeme, token: Lexeme, sign: bool) -> elements.Separator:
    """Between two tokens of an attribute; `sign` where the first is the sign of the second."""
    if sign or before.type == "LPAR" or token.type == "RPAR":
        return elements.GLUE
    return (
        elements.LINE
        if token.type in _TOOL_BREAKS and not is_sign(token, before)
        else elements.SPACE
    )


# All other statements.

_CLOSING = frozenset(("RPAR", "_COMMA", "_DOT", "QMARK"))
_OPENING = frozenset(("LPAR", "_DOT", "PLUS", "MINUS"))
_CALLED = frozenset(("USES", "SUM", "COUNT", "MAX"))
_STATEMENT_BREAKS = frozenset(
    ("BEFORE", "AFTER", "WITH", "SAME", "PER", "_PIPE", "OR", "WHERE", "WITHIN", "UNLESS",
     "ACROSS")
)  # fmt: skip
_PATTERN_ENDS = frozenset(("NAME", "STRING", "RPAR"))
_INDENT = 4


def put_statement(made: elements.StatementElements, tokens: Sequence[Lexeme]) -> None:
    """Take a statement; of the comments before its first token the caller takes care."""
    match tokens[0].type:
        case "TOOL":
            put_tool(made, tokens)
        case "RULE" | "PLAN":
            put_definition(made, tokens)
        case _:
            _put_plain(made, tokens)


def _put_plain(made: elements.StatementElements, tokens: Sequence[Lexeme]) -> None:
    first = tokens[0]
    ordered = {token.type for token in tokens} & {"BEFORE", "WITH"}
    listed = first.type in ("ACCEPT", "REJECT") or (first.type == "FORBID" and not ordered)
    made.open(fill=True, indent=len(first) + 1 if listed else _INDENT)
    rest = iter(tokens)
    before = next(rest)
    made.put(before)
    before_that = before
    # With several alternatives what follows a `same` may be another one.
    one = not any(token.type in ("OR", "UNLESS") for token in tokens)
    grouped, sign = False, False
    for token in rest:
        if token.type == "_ARGS":
            before = put_arguments(made, token, rest)
            continue
        made.before(token, elements.GLUE if sign else _separator(before, token, before_that))
        if token.type == "SAME" and one and not grouped:
            made.open(fill=True, indent=_INDENT)
            grouped = True
        made.put(token)
        sign = _is_signed(token, before)
        before_that, before = before, token
    made.close(1 + grouped)


def _is_signed(token: Lexeme, before: Lexeme) -> bool:
    """Whether a `+` or `-` is the sign of what comes next, and stands between no two."""
    if token.type not in _SIGNS:
        return False
    return before.type not in (*_PATTERN_ENDS, "NUMBER", "UNIT", "NOW", "ANY")


def _separator(before: Lexeme, token: Lexeme, before_that: Lexeme) -> elements.Separator:
    if token.type in _CLOSING or before.type in ("LPAR", "_DOT"):
        return elements.GLUE
    if token.type == "_COLON":
        return elements.GLUE
    if token.type == "LPAR":
        # Of a look-up; behind `as x` stands a group.
        called = before.type in _CALLED or (before.type == "NAME" and before_that.type != "AS")
        return elements.GLUE if called and before_that.type not in _SET_HEADS else elements.SPACE
    if token.type in _STATEMENT_BREAKS or before.type == "_COMMA":
        return elements.LINE
    named = token.type in ("NAME", "STRING")
    return elements.LINE if named and before.type in _PATTERN_ENDS else elements.SPACE


_SET_HEADS = frozenset(("FORBID", "ACCEPT", "REJECT"))
