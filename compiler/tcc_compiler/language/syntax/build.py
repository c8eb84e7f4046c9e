"""The actions of the LALR parser: at each reduction, tokens and parts become a tree node.

The tree is built from its leaves while the parser runs, so nothing here walks a tree, and nesting
that is too deep is refused at the first node past the limit.  Each method has the name of its rule
in grammar.lark.  Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from lark import Transformer, v_args

from tcc_compiler.language import ast
from tcc_compiler.language.decimals import decimal_text, parse_decimal
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.tokens import MAX_NESTING
from tcc_compiler.language.values import string_value


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

    def name(self, name: Lexeme) -> ast.Word:
        return ast.Word(str(name), name.region, name.type == "STRING")

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
        return ast.Value(string_value(str(string)), None, string.region, True)

    def number_value(self, number: ast.Number) -> ast.Value:
        return ast.Value(decimal_text(number.value), number.value, number.region)

    # Patterns and expressions.

    def argument(self, name: ast.Word, *values: ast.Value) -> ast.Argument:
        return ast.Argument(name, values)

    def bare_pattern(self, name: ast.Word) -> ast.Pattern:
        return ast.Pattern(name, (), name.region)

    def pattern(self, name: ast.Word, *rest: Any) -> ast.Pattern:
        return ast.Pattern(name, tuple(rest[:-1]), name.region.to(rest[-1].region))

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
        word = ast.Word(str(name), region, name.type == "STRING")
        return ast.Arithmetic((word,), region, 0)

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

    def strict(self, word: Lexeme) -> ast.Strict:
        return ast.Strict(word.region)

    def errors(self, word: Lexeme, _mean: Lexeme, failed: Lexeme) -> ast.Errors:
        return ast.Errors(word.region.to(failed.region))

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

    def model_atom(
        self, word: Lexeme, mechanism: ast.Word, _open: Lexeme, *rest: Any
    ) -> ast.ModelAtom:
        *numbers, close, times = rest
        end = close.region if times is None else times.region
        return ast.ModelAtom(mechanism, tuple(numbers), times, word.region.to(end))

    def times(self, _word: Lexeme, number: ast.Number) -> ast.Number:
        return number

    def model(self, word: Lexeme, name: ast.Word, _open: Lexeme, *rest: Any) -> ast.Model:
        return ast.Model(name, tuple(rest[:-1]), word.region.to(rest[-1].region))

    def parameter(
        self, name: ast.Word, optional: Lexeme | None, *values: ast.Value
    ) -> ast.ParameterDeclaration:
        domain = ast.Domain(values, None, values[0].region.to(values[-1].region))
        return ast.ParameterDeclaration(name, domain, optional is not None)

    def parameter_range(
        self, name: ast.Word, optional: Lexeme | None, low: ast.Number, high: ast.Number
    ) -> ast.ParameterDeclaration:
        domain = ast.Domain((), (low, high), low.region.to(high.region))
        return ast.ParameterDeclaration(name, domain, optional is not None)

    def listed(self, *parts: ast.ParameterDeclaration) -> tuple[ast.ParameterDeclaration, ...]:
        return parts

    def listed_parameter(self, part: ast.ParameterDeclaration) -> ast.ParameterDeclaration:
        return part

    def open_parameter(
        self, name: ast.Word, optional: Lexeme | None, kind: Lexeme, *parts: ast.TypePart
    ) -> ast.OpenDeclaration:
        return ast.OpenDeclaration(
            name=name,
            optional=optional is not None,
            type=ast.Word(str(kind), kind.region),
            parts=parts,
        )

    def length(self, kind: Lexeme, number: ast.Number) -> ast.TypePart:
        region = kind.region.to(number.region)
        return ast.TypePart(kind=str(kind), numbers=(number,), text=None, region=region)

    def text_pattern(self, mark: Lexeme, text: ast.Text) -> ast.TypePart:
        return ast.TypePart(kind="~", numbers=(), text=text, region=mark.region.to(text.region))

    def bounds(self, low: ast.Number, high: ast.Number) -> ast.TypePart:
        region = low.region.to(high.region)
        return ast.TypePart(kind="..", numbers=(low, high), text=None, region=region)

    def open(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    def parameters(self, _open: Lexeme, listed: Any, opened: Any, _close: Lexeme) -> ast.Parameters:
        return ast.Parameters(listed=listed or (), opened=opened or ())

    def gives(
        self, _gives: Lexeme, _open: Lexeme, *rest: Any
    ) -> tuple[ast.ParameterDeclaration, ...]:
        return tuple(rest[:-1])

    def signature(self, takes: ast.Word, gives: ast.Word) -> tuple[ast.Word, ast.Word]:
        return takes, gives

    def block(self, _open: Lexeme, *rest: Any) -> tuple[tuple[ast.Attribute, ...], Region]:
        return tuple(rest[:-1]), rest[-1].region

    def tool(
        self,
        keyword: Lexeme,
        name: ast.Word,
        parameters: ast.Parameters | None,
        gives: tuple[ast.ParameterDeclaration, ...] | None,
        signature: tuple[ast.Word, ast.Word] | None,
        block: tuple[tuple[ast.Attribute, ...], Region] | None,
    ) -> ast.Statement:
        taken = parameters or ast.Parameters()
        return ast.ToolStatement(
            name=name,
            parameters=taken.listed,
            opened=taken.opened,
            observed=gives or (),
            signature=signature,
            attributes=block[0] if block else (),
            region=keyword.region.to(name.region),
        )

    # The other statements.

    def grammar(
        self, keyword: Lexeme, name: ast.Word, _version: Lexeme, version: ast.Text
    ) -> ast.Statement:
        return ast.GrammarStatement(name, version, keyword.region.to(version.region))

    def currency(self, keyword: Lexeme, label: ast.Text) -> ast.Statement:
        return ast.CurrencyStatement(label, keyword.region.to(label.region))

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

    def require_same(
        self, keyword: Lexeme, first: ast.Pattern, order: Lexeme, second: ast.Pattern,
        same: tuple[ast.Pair, ...],
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region)
        return ast.RequireStatement(str(order), first, second, region, same)

    def require_each(
        self, keyword: Lexeme, first: ast.Pattern, _before: Lexeme, each: Lexeme,
        second: ast.Pattern, same: tuple[ast.Pair, ...] | None,
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region if same else second.region)
        return ast.RequireStatement(str(each), first, second, region, same or ())

    def forbid_next(self, keyword: Lexeme, *patterns: ast.Pattern) -> ast.Statement:
        region = keyword.region.to(patterns[-1].region)
        return ast.ForbidStatement(patterns, "next", region)

    def forbid_two(
        self, keyword: Lexeme, first: ast.Pattern, order: Lexeme, second: ast.Pattern,
        same: tuple[ast.Pair, ...] | None,
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region if same else second.region)
        return ast.ForbidStatement((first, second), str(order), region, same or ())

    def same(self, _same: Lexeme, *pairs: ast.Pair) -> tuple[ast.Pair, ...]:
        return pairs

    def pair(self, first: ast.Word, second: ast.Word | None) -> ast.Pair:
        return ast.Pair(first, second or first)

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

    def limit_per(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, pattern: ast.Pattern, _close: Lexeme,
        _per: Lexeme, per: ast.Word, op: Lexeme, number: ast.Number,
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        return ast.LimitStatement(str(kind), str(op), number, None, pattern, region, per)

    def limit_sum(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, tool: ast.Word, parameter: ast.Word,
        _close: Lexeme, op: Lexeme, number: ast.Number,
    ) -> ast.Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        total = (tool, parameter)
        return ast.LimitStatement(str(kind), str(op), number, None, None, region, None, total)

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
