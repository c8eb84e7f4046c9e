"""The actions that make expressions: operand lists are flat, and joined once for each level.

The tree is built from its leaves while the parser runs, so nothing here walks a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from tcc_compiler.language.ast.expressions import (
    AnyCall,
    Expression,
    Many,
    Minus,
    NoCall,
    Reference,
    Repeated,
)
from tcc_compiler.language.ast.leaves import Number, Pattern
from tcc_compiler.language.decimals import parse_decimal
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.nesting import level


class ExpressionActions:
    """Operands to their operator; each method has the name of its rule in grammar.lark."""

    def reference(self, pattern: Pattern) -> Expression:
        return Reference(pattern, pattern.region)

    def any_call(self, word: Lexeme) -> Expression:
        return AnyCall(word.region)

    def no_call(self, opening: Lexeme, closing: Lexeme) -> Expression:
        return NoCall(opening.region.to(closing.region))

    def group(self, _open: Lexeme, inner: Expression, _close: Lexeme) -> Expression:
        return inner

    def expression(self, *parts: Expression) -> Expression:
        return _join("and", parts)

    def alternative(self, *parts: Expression) -> Expression:
        return _join("alt", parts)

    def sequence(self, *parts: Expression) -> Expression:
        return _join("seq", parts)

    def difference(self, *parts: Any) -> Expression:
        base: Expression = parts[0]
        others: tuple[Expression, ...] = parts[2::2]
        if not others:
            return base
        region = base.region.to(others[-1].region)
        if isinstance(base, Minus):
            others = base.others + others
            base = base.base
        height = level(region, base.height, *(other.height for other in others))
        return Minus(base, others, region, height)

    def _repeat(
        self, body: Expression, low: Number, high: Number | None, end: Lexeme
    ) -> Expression:
        region = body.region.to(end.region)
        return Repeated(body, low, high, region, level(region, body.height))

    def _count(self, value: int, mark: Lexeme) -> Number:
        return Number(Fraction(value), mark.region)

    def _times(self, number: Lexeme) -> Number:
        return Number(parse_decimal(number), number.region)

    def optional(self, body: Expression, mark: Lexeme) -> Expression:
        return self._repeat(body, self._count(0, mark), self._count(1, mark), mark)

    def star(self, body: Expression, mark: Lexeme) -> Expression:
        return self._repeat(body, self._count(0, mark), None, mark)

    def plus(self, body: Expression, mark: Lexeme) -> Expression:
        return self._repeat(body, self._count(1, mark), None, mark)

    def exactly(self, body: Expression, _open: Lexeme, n: Lexeme, end: Lexeme) -> Expression:
        return self._repeat(body, self._times(n), self._times(n), end)

    def at_least(self, body: Expression, _open: Lexeme, n: Lexeme, end: Lexeme) -> Expression:
        return self._repeat(body, self._times(n), None, end)

    def between(
        self, body: Expression, _open: Lexeme, low: Lexeme, high: Lexeme, end: Lexeme
    ) -> Expression:
        return self._repeat(body, self._times(low), self._times(high), end)


def _join(kind: Literal["seq", "alt", "and"], parts: Sequence[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    items: list[Expression] = []
    for part in parts:
        if isinstance(part, Many) and part.kind == kind:
            items.extend(part.items)
        else:
            items.append(part)
    region = parts[0].region.to(parts[-1].region)
    height = level(region, *(item.height for item in items))
    return Many(kind, tuple(items), region, height)
