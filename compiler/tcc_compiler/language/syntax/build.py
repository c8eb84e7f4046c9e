"""The actions of the LALR parser: at each reduction, tokens and parts become a tree node.

The tree is built from its leaves while the parser runs, so nothing here walks a tree, and nesting
that is too deep is refused at the first node past the limit.  Each method has the name of its rule
in grammar.lark.  Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from lark import Transformer, v_args

from tcc_compiler.language import ast
from tcc_compiler.language.decimals import decimal_text, parse_decimal
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.tokens import MAX_NESTING, Lexeme


class TooDeep(Exception):
    """Operators are nested past the limit, at this region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        super().__init__(region)


def _level(region: Region, *below: int) -> int:
    """The height of a node over others, refused past the limit."""
    height = 1 + max(below, default=0)
    if height > MAX_NESTING:
        raise TooDeep(region)
    return height


def _join(kind: Literal["seq", "alt", "and"], parts: Sequence[ast.Expression]) -> ast.Expression:
    if len(parts) == 1:
        return parts[0]
    items: list[ast.Expression] = []
    for part in parts:
        if isinstance(part, ast.Many) and part.kind == kind:
            items.extend(part.items)
        else:
            items.append(part)
    region = parts[0].region.to(parts[-1].region)
    height = _level(region, *(item.height for item in items))
    return ast.Many(kind, tuple(items), region, height)


@v_args(inline=True)
class Builder(Transformer[Any, ast.Statement]):
    """Rules of grammar.lark to nodes of :mod:`tcc_compiler.language.ast`."""

    # Leaves.

    def word(self, name: Lexeme) -> ast.Word:
        return ast.Word(str(name), name.region)

    def text(self, string: Lexeme) -> ast.Text:
        return ast.Text(str(string), string.region)

    def signed(self, *tokens: Lexeme | None) -> ast.Number:
        number = tokens[-1]
        sign = tokens[0] if len(tokens) > 1 else None
        if number is None:  # the grammar ends this rule with a number
            raise TypeError("a number without its digits")
        region = number.region
        if sign is None:
            return ast.Number(parse_decimal(number), region)
        value = -parse_decimal(number) if sign.type == "MINUS" else parse_decimal(number)
        return ast.Number(value, sign.region.to(region))

    def name_value(self, name: Lexeme) -> ast.Value:
        return ast.Value(str(name), None, name.region)

    def string_value(self, string: Lexeme) -> ast.Value:
        return ast.Value(json.dumps(str(string), ensure_ascii=False), None, string.region)

    def number_value(self, number: ast.Number) -> ast.Value:
        return ast.Value(decimal_text(number.value), number.value, number.region)

    # Patterns and expressions.

    def argument(self, name: ast.Word, *values: ast.Value) -> ast.Argument:
        return ast.Argument(name, values)

    def bare_pattern(self, name: Lexeme) -> ast.Pattern:
        region = name.region
        return ast.Pattern(ast.Word(str(name), region), (), region)

    def pattern(self, name: Lexeme, *rest: Any) -> ast.Pattern:
        region = name.region
        return ast.Pattern(
            ast.Word(str(name), region), tuple(rest[:-1]), region.to(rest[-1].region)
        )

    def reference(self, pattern: ast.Pattern) -> ast.Expression:
        return ast.Reference(pattern, pattern.region)

    def any_call(self, word: Lexeme) -> ast.Expression:
        return ast.AnyCall(word.region)

    def no_call(self, opening: Lexeme, closing: Lexeme) -> ast.Expression:
        return ast.NoCall(opening.region.to(closing.region))

    def group(self, _open: Lexeme, inner: ast.Expression, _close: Lexeme) -> ast.Expression:
        return inner

    def expression(self, *parts: ast.Expression) -> ast.Expression:
        return _join("and", parts)

    def alternative(self, *parts: ast.Expression) -> ast.Expression:
        return _join("alt", parts)

    def sequence(self, *parts: ast.Expression) -> ast.Expression:
        return _join("seq", parts)

    def difference(self, *parts: Any) -> ast.Expression:
        base: ast.Expression = parts[0]
        others: tuple[ast.Expression, ...] = parts[2::2]
        if not others:
            return base
        region = base.region.to(others[-1].region)
        if isinstance(base, ast.Minus):
            others = base.others + others
            base = base.base
        height = _level(region, base.height, *(other.height for other in others))
        return ast.Minus(base, others, region, height)

    def _repeat(
        self, body: ast.Expression, low: ast.Number, high: ast.Number | None, end: Lexeme
    ) -> ast.Expression:
        region = body.region.to(end.region)
        return ast.Repeated(body, low, high, region, _level(region, body.height))

    def _count(self, value: int, mark: Lexeme) -> ast.Number:
        return ast.Number(Fraction(value), mark.region)

    def _times(self, number: Lexeme) -> ast.Number:
        return ast.Number(parse_decimal(number), number.region)

    def optional(self, body: ast.Expression, mark: Lexeme) -> ast.Expression:
        return self._repeat(body, self._count(0, mark), self._count(1, mark), mark)

    def star(self, body: ast.Expression, mark: Lexeme) -> ast.Expression:
        return self._repeat(body, self._count(0, mark), None, mark)

    def plus(self, body: ast.Expression, mark: Lexeme) -> ast.Expression:
        return self._repeat(body, self._count(1, mark), None, mark)

    def exactly(
        self, body: ast.Expression, _open: Lexeme, n: Lexeme, end: Lexeme
    ) -> ast.Expression:
        return self._repeat(body, self._times(n), self._times(n), end)

    def at_least(
        self, body: ast.Expression, _open: Lexeme, n: Lexeme, end: Lexeme
    ) -> ast.Expression:
        return self._repeat(body, self._times(n), None, end)

    def between(
        self, body: ast.Expression, _open: Lexeme, low: Lexeme, high: Lexeme, end: Lexeme
    ) -> ast.Expression:
        return self._repeat(body, self._times(low), self._times(high), end)

    # Arithmetic, in postfix order.

    def literal(self, number: Lexeme) -> ast.Arithmetic:
        return ast.Arithmetic((parse_decimal(number),), number.region, 0)

    def variable(self, name: Lexeme) -> ast.Arithmetic:
        region = name.region
        return ast.Arithmetic((ast.Word(str(name), region),), region, 0)

    def sign(self, sign: Lexeme, operand: ast.Arithmetic) -> ast.Arithmetic:
        region = sign.region.to(operand.region)
        code = (*operand.code, "~") if sign.type == "MINUS" else operand.code
        return ast.Arithmetic(code, region, _level(region, operand.height))

    def nested(self, opening: Lexeme, inner: ast.Arithmetic, end: Lexeme) -> ast.Arithmetic:
        region = opening.region.to(end.region)
        return ast.Arithmetic(inner.code, region, _level(region, inner.height))

    def arithmetic(self, *parts: Any) -> ast.Arithmetic:
        return _chain(parts)

    def term(self, *parts: Any) -> ast.Arithmetic:
        return _chain(parts)

    # Tools.

    def when(self, _when: Lexeme, name: ast.Word, *values: ast.Value) -> ast.Condition:
        return ast.Condition(name, values)

    def amount(self, kind: Lexeme, low: ast.Arithmetic, when: ast.Condition | None) -> ast.Amount:
        return _amount(kind, low, None, None, when)

    def interval(
        self, kind: Lexeme, low: ast.Arithmetic, high: ast.Arithmetic, when: ast.Condition | None
    ) -> ast.Amount:
        return _amount(kind, low, high, None, when)

    def amount_with_unit(
        self, kind: Lexeme, low: ast.Arithmetic, unit: Lexeme, when: ast.Condition | None
    ) -> ast.Amount:
        return _amount(kind, low, None, unit, when)

    def doc(self, word: Lexeme, text: ast.Text) -> ast.Doc:
        return ast.Doc(text, word.region.to(text.region))

    def quotes(self, word: Lexeme, same: Lexeme) -> ast.Quotes:
        return ast.Quotes(word.region.to(same.region))

    def bind_mcp(self, word: Lexeme, _mcp: Lexeme, server: ast.Text, tool: ast.Text) -> ast.BindMcp:
        return ast.BindMcp(server, tool, word.region.to(tool.region))

    def bind_python(self, word: Lexeme, _python: Lexeme, target: ast.Text) -> ast.BindPython:
        return ast.BindPython(target, word.region.to(target.region))

    def model_part(
        self, kind: Lexeme, number: ast.Number, unit: Lexeme | None = None
    ) -> ast.ModelPart:
        end = number.region if unit is None else unit.region
        named = None if unit is None else str(unit)
        return ast.ModelPart(str(kind), number, named, None, kind.region.to(end))

    def model_adapter(self, kind: Lexeme, text: ast.Text) -> ast.ModelPart:
        return ast.ModelPart(str(kind), None, None, text, kind.region.to(text.region))

    def model(self, word: Lexeme, name: ast.Word, _open: Lexeme, *rest: Any) -> ast.Model:
        return ast.Model(name, tuple(rest[:-1]), word.region.to(rest[-1].region))

    def parameter(self, name: ast.Word, *values: ast.Value) -> ast.ParameterDeclaration:
        domain = ast.Domain(values, None, values[0].region.to(values[-1].region))
        return ast.ParameterDeclaration(name, domain)

    def parameter_range(
        self, name: ast.Word, low: ast.Number, high: ast.Number
    ) -> ast.ParameterDeclaration:
        domain = ast.Domain((), (low, high), low.region.to(high.region))
        return ast.ParameterDeclaration(name, domain)

    def parameters(self, *parts: Any) -> tuple[ast.ParameterDeclaration, ...]:
        return tuple(part for part in parts if isinstance(part, ast.ParameterDeclaration))

    def signature(self, takes: ast.Word, gives: ast.Word) -> tuple[ast.Word, ast.Word]:
        return takes, gives

    def block(self, _open: Lexeme, *rest: Any) -> tuple[tuple[ast.Attribute, ...], Region]:
        return tuple(rest[:-1]), rest[-1].region

    def tool(
        self,
        keyword: Lexeme,
        name: ast.Word,
        parameters: tuple[ast.ParameterDeclaration, ...] | None,
        signature: tuple[ast.Word, ast.Word] | None,
        block: tuple[tuple[ast.Attribute, ...], Region] | None,
    ) -> ast.Statement:
        attributes = block[0] if block else ()
        region = keyword.region.to(name.region)
        return ast.ToolStatement(name, parameters or (), signature, attributes, region)

    # The other statements.

    def grammar(
        self, keyword: Lexeme, name: ast.Word, _version: Lexeme, version: ast.Text
    ) -> ast.Statement:
        return ast.GrammarStatement(name, version, keyword.region.to(version.region))

    def use(self, keyword: Lexeme, path: ast.Text) -> ast.Statement:
        return ast.UseStatement(path, keyword.region.to(path.region))

    def rule(self, keyword: Lexeme, name: ast.Word, body: ast.Expression) -> ast.Statement:
        return ast.RuleStatement(name, body, keyword.region.to(body.region))

    def plan(self, keyword: Lexeme, body: ast.Expression) -> ast.Statement:
        return ast.PlanStatement(body, keyword.region.to(body.region))

    def begin(self, keyword: Lexeme, state: ast.Word) -> ast.Statement:
        return ast.StartStatement(state, keyword.region.to(state.region))

    def goal(self, keyword: Lexeme, *states: ast.Word) -> ast.Statement:
        return ast.GoalStatement(states, keyword.region.to(states[-1].region))

    def require(
        self, keyword: Lexeme, first: ast.Pattern, order: Lexeme, second: ast.Pattern
    ) -> ast.Statement:
        region = keyword.region.to(second.region)
        return ast.RequireStatement(str(order), first, second, region)

    def forbid_next(self, keyword: Lexeme, *patterns: ast.Pattern) -> ast.Statement:
        region = keyword.region.to(patterns[-1].region)
        return ast.ForbidStatement(patterns, False, region)

    def forbid_with(
        self, keyword: Lexeme, first: ast.Pattern, _with: Lexeme, second: ast.Pattern
    ) -> ast.Statement:
        region = keyword.region.to(second.region)
        return ast.ForbidStatement((first, second), True, region)

    def example(self, keyword: Lexeme, *patterns: ast.Pattern) -> ast.Statement:
        region = keyword.region.to(patterns[-1].region)
        return ast.ExampleStatement(keyword.type == "ACCEPT", patterns, region)

    def example_empty(self, keyword: Lexeme, _open: Lexeme, end: Lexeme) -> ast.Statement:
        region = keyword.region.to(end.region)
        return ast.ExampleStatement(keyword.type == "ACCEPT", (), region)

    def limit(
        self,
        keyword: Lexeme,
        kind: Lexeme,
        op: Lexeme,
        number: ast.Number,
        unit: Lexeme | None = None,
    ) -> ast.Statement:
        end = number.region if unit is None else unit.region
        named = None if unit is None else str(unit)
        region = keyword.region.to(end)
        return ast.LimitStatement(str(kind), str(op), number, named, None, region)

    def limit_uses(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, pattern: ast.Pattern, _close: Lexeme,
        op: Lexeme, number: ast.Number,
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        return ast.LimitStatement(str(kind), str(op), number, None, pattern, region)

    def expect(
        self, keyword: Lexeme, what: Lexeme, op: Lexeme, number: ast.Number
    ) -> ast.Statement:
        region = keyword.region.to(number.region)
        return ast.ExpectStatement(str(what), str(op), number, region)


def _amount(
    kind: Lexeme,
    low: ast.Arithmetic,
    high: ast.Arithmetic | None,
    unit: Lexeme | None,
    when: ast.Condition | None,
) -> ast.Amount:
    end = (high or low).region if unit is None else unit.region
    return ast.Amount(
        kind=str(kind),
        low=low,
        high=high,
        unit=None if unit is None else str(unit),
        when=when,
        region=kind.region.to(end),
    )


def _chain(parts: Sequence[Any]) -> ast.Arithmetic:
    """Operands with operators between them, grouped to the left."""
    first: ast.Arithmetic = parts[0]
    if len(parts) == 1:
        return first
    code: list[Any] = list(first.code)
    height = first.height
    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        code += (*operand.code, str(operator))
        height = max(height, operand.height)
    return ast.Arithmetic(tuple(code), first.region.to(parts[-1].region), height)
