"""Actions of grammar.lark up to the tools: leaves, expressions, amounts, parameters, attributes.

What actions are stands in :mod:`tcc_compiler.language.syntax.actions`, which has those of the other
statements.  Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from lark import Transformer, v_args

from tcc_compiler.language import ast
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.tokens import MAX_NESTING, Lexeme
from tcc_compiler.language.values import REST, decimal_text, parse_decimal, string_value


class TooDeep(Exception):
    """Operators are nested past the limit, at this region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        super().__init__(region)


def level(region: Region, *below: int) -> int:
    """The height of a node over others, refused past the limit."""
    height = 1 + max(below, default=0)
    if height > MAX_NESTING:
        raise TooDeep(region)
    return height


@v_args(inline=True)
class ToolActions(Transformer[Lexeme, Any]):
    """Rules of grammar.lark to nodes: each method has the name of its rule and takes its parts."""

    # Leaves: names, texts, numbers, values and patterns.

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

    def argument(self, name: ast.Word, *values: ast.Value) -> ast.Argument:
        return ast.Argument(name, values)

    def bare_pattern(self, name: ast.Word) -> ast.Pattern:
        return ast.Pattern(name, (), name.region)

    def pattern(self, name: ast.Word, *rest: Any) -> ast.Pattern:
        return ast.Pattern(name, tuple(rest[:-1]), name.region.to(rest[-1].region))

    # Expressions: operand lists are flat, and joined once for each level.

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
        region = base.region.to(others[-1].region)
        if isinstance(base, ast.Minus):
            others = base.others + others
            base = base.base
        height = level(region, base.height, *(other.height for other in others))
        return ast.Minus(base, others, region, height)

    def _repeat(
        self, body: ast.Expression, low: ast.Number, high: ast.Number | None, end: Lexeme
    ) -> ast.Expression:
        region = body.region.to(end.region)
        return ast.Repeated(body, low, high, region, level(region, body.height))

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

    # Amounts of tools, in postfix order.

    def literal(self, number: Lexeme) -> ast.Arithmetic:
        return ast.Arithmetic((parse_decimal(number),), number.region, 0)

    def variable(self, name: Lexeme) -> ast.Arithmetic:
        region = name.region
        word = ast.Word(str(name), region, name.type == "STRING")
        return ast.Arithmetic((word,), region, 0)

    def sign(self, sign: Lexeme, operand: ast.Arithmetic) -> ast.Arithmetic:
        region = sign.region.to(operand.region)
        code = (*operand.code, "~") if sign.type == "MINUS" else operand.code
        return ast.Arithmetic(code, region, level(region, operand.height))

    def nested(self, opening: Lexeme, inner: ast.Arithmetic, end: Lexeme) -> ast.Arithmetic:
        region = opening.region.to(end.region)
        return ast.Arithmetic(inner.code, region, level(region, inner.height))

    def arithmetic(self, *parts: Any) -> ast.Arithmetic:
        return _chain(parts)

    def term(self, *parts: Any) -> ast.Arithmetic:
        return _chain(parts)

    # Attributes of tools.

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

    def errors(
        self,
        word: Lexeme,
        _mean: Lexeme,
        failed: Lexeme,
        _like: Lexeme | None,
        text: ast.Text | None,
    ) -> ast.Errors:
        return ast.Errors(word.region.to((text or failed).region), text)

    def parallel(self, word: Lexeme) -> ast.Parallel:
        return ast.Parallel(word.region)

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

    def model_execute(self, word: Lexeme, _open: Lexeme | None, *rest: Any) -> ast.ModelExecute:
        *parts, close = rest
        return ast.ModelExecute(tuple(parts), word.region.to((close or word).region))

    def times(self, _word: Lexeme, number: ast.Number) -> ast.Number:
        return number

    def model(self, word: Lexeme, name: ast.Word, _open: Lexeme, *rest: Any) -> ast.Model:
        return ast.Model(name, tuple(rest[:-1]), word.region.to(rest[-1].region))

    # Parameters, and tools.

    def parameter(
        self, name: ast.Word, optional: Lexeme | None, *parts: Any
    ) -> ast.ParameterDeclaration:
        *values, rest, nullable, at = parts
        end = values[-1].region if rest is None else rest.region
        domain = ast.Domain(
            tuple(values), None, values[0].region.to(end), None if rest is None else rest.region
        )
        return ast.ParameterDeclaration(name, domain, optional is not None, nullable, at)

    def parameter_range(
        self, name: ast.Word, optional: Lexeme | None, low: ast.Number, high: ast.Number,
        nullable: Region | None, at: ast.Text | None,
    ) -> ast.ParameterDeclaration:  # fmt: skip
        domain = ast.Domain((), (low, high), low.region.to(high.region))
        return ast.ParameterDeclaration(name, domain, optional is not None, nullable, at)

    def nullable(self, word: Lexeme, null: Lexeme) -> Region:
        return word.region.to(null.region)

    def at(self, _at: Lexeme, pointer: ast.Text) -> ast.Text:
        return pointer

    def rest_value(self, mark: Lexeme) -> ast.Value:
        return ast.Value(REST, None, mark.region)

    def listed(self, *parts: ast.ParameterDeclaration) -> tuple[ast.ParameterDeclaration, ...]:
        return parts

    def listed_parameter(self, part: ast.ParameterDeclaration) -> ast.ParameterDeclaration:
        return part

    def open_parameter(
        self, name: ast.Word, optional: Lexeme | None, made: ast.TypeTerm,
        nullable: Region | None, at: ast.Text | None,
    ) -> ast.OpenDeclaration:  # fmt: skip
        return ast.OpenDeclaration(
            name=name,
            optional=optional is not None,
            type=made.name,
            parts=made.parts,
            made=made,
            nullable=nullable,
            at=at,
        )

    def type(self, kind: Lexeme, *parts: ast.TypePart) -> ast.TypeTerm:
        region = kind.region.to(parts[-1].region) if parts else kind.region
        return ast.TypeTerm(name=ast.Word(str(kind), kind.region), parts=parts, region=region)

    def time_type(self, kind: Lexeme, zone: ast.Text | Lexeme | None) -> ast.TypeTerm:
        if isinstance(zone, Lexeme):
            zone = ast.Text(str(zone), zone.region)
        region = kind.region if zone is None else kind.region.to(zone.region)
        return ast.TypeTerm(name=ast.Word(str(kind), kind.region), zone=zone, region=region)

    def list_type(self, kind: Lexeme, *rest: Any) -> ast.TypeTerm:
        *parts, _of, inner = rest
        region = kind.region.to(inner.region)
        return ast.TypeTerm(
            name=ast.Word(str(kind), kind.region),
            parts=tuple(parts),
            of=inner,
            region=region,
            height=level(region, inner.height),
        )

    def record_type(self, opening: Lexeme, fields: Any, end: Lexeme) -> ast.TypeTerm:
        region = opening.region.to(end.region)
        below = (field.made.height for field in fields if isinstance(field, ast.OpenDeclaration))
        return ast.TypeTerm(
            name=ast.Word("record", opening.region),
            fields=fields,
            region=region,
            height=level(region, *below),
        )

    def distinct(self, word: Lexeme) -> ast.TypePart:
        return ast.TypePart(kind="distinct", numbers=(), text=None, region=word.region)

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
        self, _gives: Lexeme, _open: Lexeme, listed: Any, opened: Any, _: Any
    ) -> ast.Parameters:
        return ast.Parameters(listed=listed, opened=opened or ())

    def gives_open(
        self, _gives: Lexeme, _open: Lexeme, opened: Any, _close: Lexeme
    ) -> ast.Parameters:
        return ast.Parameters(opened=opened)

    def signature(self, takes: ast.Word, gives: ast.Word) -> tuple[ast.Word, ast.Word]:
        return takes, gives

    def block(self, _open: Lexeme, *rest: Any) -> tuple[tuple[ast.Attribute, ...], Region]:
        return tuple(rest[:-1]), rest[-1].region

    def tool(
        self,
        keyword: Lexeme,
        name: ast.Word,
        parameters: ast.Parameters | None,
        gives: ast.Parameters | None,
        signature: tuple[ast.Word, ast.Word] | None,
        block: tuple[tuple[ast.Attribute, ...], Region] | None,
    ) -> ast.Statement:
        taken = parameters or ast.Parameters()
        return ast.ToolStatement(
            name=name,
            parameters=taken.listed,
            opened=taken.opened,
            observed=gives.listed if gives else (),
            signature=signature,
            attributes=block[0] if block else (),
            region=keyword.region.to(name.region),
            answers=gives.opened if gives else (),
        )


def _join(kind: Literal["seq", "alt", "and"], parts: Sequence[ast.Expression]) -> ast.Expression:
    items: list[ast.Expression] = []
    for part in parts:
        if isinstance(part, ast.Many) and part.kind == kind:
            items.extend(part.items)
        else:
            items.append(part)
    region = parts[0].region.to(parts[-1].region)
    height = level(region, *(item.height for item in items))
    return ast.Many(kind, tuple(items), region, height)


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
    code: list[Any] = list(first.code)
    height = first.height
    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        code += (*operand.code, str(operator))
        height = max(height, operand.height)
    return ast.Arithmetic(tuple(code), first.region.to(parts[-1].region), height)
