"""The layout of patterns, and of the expressions of `rule` and `plan`.

In an expression that does not fit, each operand of its loosest operator has a line, with the
operator before it; sequences are filled.  Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tcc_compiler.format.elements import GLUE, LINE, SPACE, Elements, Line, Open, Separator
from tcc_compiler.language.syntax.lexemes import Lexeme

_CHOICE = Line("")  # between the values of a pattern: `k=5|10`
_MORE = 2  # what a line that goes on is moved to the right
_SIGNS = frozenset(("PLUS", "MINUS"))
# Operators from tightest to loosest, each with the groups that end before it.
_OPERATORS = {"_PIPE": 1, "MINUS": 2, "_AMP": 3}


def put_arguments(made: Elements, opening: Lexeme, rest: Iterator[Lexeme]) -> Lexeme:
    """Take the arguments of a pattern, ``(k=5|10, engine=bm25)``; returns the last token."""
    made.before(opening, GLUE)
    made.open(fill=True, indent=1, aligned=True)
    made.put(opening)
    separator: Separator = GLUE
    token = opening
    for token in rest:
        made.add(token, _CHOICE if token.type == "_PIPE" else separator)
        separator = LINE if token.type == "_COMMA" else GLUE
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

    groups: list[tuple[int, Open]] = field(default_factory=list)
    loosest: int = 0


class _Expression:
    """The tokens of an expression, one by one.

    Invariant: `frames` has an entry for each open parenthesis and one for the whole; in each the
    groups of `&`, `-`, `|` and of a sequence are open.
    """

    def __init__(self, made: Elements) -> None:
        self.made = made
        self.frames: list[_Frame] = []
        self.separator: Separator = SPACE
        self._enter()

    def _enter(self) -> None:
        self.frames.append(_Frame())
        self._open(3)

    def _open(self, loosest: int) -> None:
        """Begin the groups from that of an operator down to that of a sequence."""
        frame = self.frames[-1]
        for level in range(loosest, -1, -1):
            group = self.made.open(fill=level == 0, indent=0 if level else _MORE)
            frame.groups.append((level, group))

    def _leave(self) -> None:
        """End an expression; the operands of its loosest operator stand apart from their parts."""
        self.made.close(4)
        frame = self.frames.pop()
        for level, group in frame.groups:
            if level and level < frame.loosest:
                group.indent = _MORE

    def take(self, token: Lexeme, rest: Iterator[Lexeme]) -> None:
        """Take a token, and where it opens arguments those."""
        kind = token.type
        if kind == "_ARGS":
            put_arguments(self.made, token, rest)
            self.separator = LINE
        elif kind == "LPAR":
            self.made.before(token, self.separator)
            self.made.open(fill=True, aligned=True)
            self.made.put(token)
            self._enter()
            self.separator = GLUE
        elif kind == "RPAR":
            self.made.before(token, GLUE)
            self._leave()
            self.made.put(token)
            self.made.close()
            self.separator = LINE
        elif kind in _OPERATORS:
            self._operator(token, _OPERATORS[kind])
        elif kind in ("NAME", "STRING", "ANY"):
            self.made.add(token, self.separator)
            self.separator = LINE
        else:  # a repetition
            self.made.add(token, GLUE)

    def _operator(self, token: Lexeme, level: int) -> None:
        self.made.close(level)
        self.made.add(token, LINE)
        self._open(level - 1)
        self.frames[-1].loosest = max(self.frames[-1].loosest, level)
        self.separator = SPACE

    def end(self) -> None:
        self._leave()


def put_definition(made: Elements, tokens: Sequence[Lexeme]) -> None:
    """Take a `rule` or a `plan`; lines that go on begin below its `=`."""
    rest = iter(tokens)
    made.put(next(rest))
    for token in rest:
        made.before(token, SPACE)
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
