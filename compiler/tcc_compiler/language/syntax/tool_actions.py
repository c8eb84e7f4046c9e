"""The actions that make a tool: its parameters, its amounts in postfix order, its attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcc_compiler.language.ast.leaves import Number, Text, Value, Word
from tcc_compiler.language.ast.statements import Statement, ToolStatement
from tcc_compiler.language.ast.tools import (
    Amount,
    Arithmetic,
    Attribute,
    BindMcp,
    BindPython,
    Condition,
    Doc,
    Domain,
    Errors,
    Model,
    ModelAtom,
    ModelExecute,
    ModelPart,
    OpenDeclaration,
    ParameterDeclaration,
    Parameters,
    Quotes,
    Strict,
    TypePart,
)
from tcc_compiler.language.decimals import parse_decimal
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.nesting import level


class ToolActions:
    """Parts of a tool to the tool; each method has the name of its rule in grammar.lark."""

    # Amounts, in postfix order.

    def literal(self, number: Lexeme) -> Arithmetic:
        return Arithmetic((parse_decimal(number),), number.region, 0)

    def variable(self, name: Lexeme) -> Arithmetic:
        region = name.region
        word = Word(str(name), region, name.type == "STRING")
        return Arithmetic((word,), region, 0)

    def sign(self, sign: Lexeme, operand: Arithmetic) -> Arithmetic:
        region = sign.region.to(operand.region)
        code = (*operand.code, "~") if sign.type == "MINUS" else operand.code
        return Arithmetic(code, region, level(region, operand.height))

    def nested(self, opening: Lexeme, inner: Arithmetic, end: Lexeme) -> Arithmetic:
        region = opening.region.to(end.region)
        return Arithmetic(inner.code, region, level(region, inner.height))

    def arithmetic(self, *parts: Any) -> Arithmetic:
        return _chain(parts)

    def term(self, *parts: Any) -> Arithmetic:
        return _chain(parts)

    # Attributes.

    def when(self, _when: Lexeme, name: Word, *values: Value) -> Condition:
        return Condition(name, values)

    def amount(self, kind: Lexeme, low: Arithmetic, when: Condition | None) -> Amount:
        return _amount(kind, low, None, None, when)

    def interval(
        self, kind: Lexeme, low: Arithmetic, high: Arithmetic, when: Condition | None
    ) -> Amount:
        return _amount(kind, low, high, None, when)

    def amount_with_unit(
        self, kind: Lexeme, low: Arithmetic, unit: Lexeme, when: Condition | None
    ) -> Amount:
        return _amount(kind, low, None, unit, when)

    def doc(self, word: Lexeme, text: Text) -> Doc:
        return Doc(text, word.region.to(text.region))

    def quotes(self, word: Lexeme, same: Lexeme) -> Quotes:
        return Quotes(word.region.to(same.region))

    def strict(self, word: Lexeme) -> Strict:
        return Strict(word.region)

    def errors(self, word: Lexeme, _mean: Lexeme, failed: Lexeme) -> Errors:
        return Errors(word.region.to(failed.region))

    def bind_mcp(self, word: Lexeme, _mcp: Lexeme, server: Text, tool: Text) -> BindMcp:
        return BindMcp(server, tool, word.region.to(tool.region))

    def bind_python(self, word: Lexeme, _python: Lexeme, target: Text) -> BindPython:
        return BindPython(target, word.region.to(target.region))

    def model_part(self, kind: Lexeme, number: Number, unit: Lexeme | None = None) -> ModelPart:
        end = number.region if unit is None else unit.region
        named = None if unit is None else str(unit)
        return ModelPart(str(kind), number, named, None, kind.region.to(end))

    def model_adapter(self, kind: Lexeme, text: Text) -> ModelPart:
        return ModelPart(str(kind), None, None, text, kind.region.to(text.region))

    def model_atom(self, word: Lexeme, mechanism: Word, _open: Lexeme, *rest: Any) -> ModelAtom:
        *numbers, close, times = rest
        end = close.region if times is None else times.region
        return ModelAtom(mechanism, tuple(numbers), times, word.region.to(end))

    def model_execute(self, word: Lexeme, _open: Lexeme | None, *rest: Any) -> ModelExecute:
        *parts, close = rest
        return ModelExecute(tuple(parts), word.region.to((close or word).region))

    def times(self, _word: Lexeme, number: Number) -> Number:
        return number

    def model(self, word: Lexeme, name: Word, _open: Lexeme, *rest: Any) -> Model:
        return Model(name, tuple(rest[:-1]), word.region.to(rest[-1].region))

    # Parameters.

    def parameter(
        self, name: Word, optional: Lexeme | None, *values: Value
    ) -> ParameterDeclaration:
        domain = Domain(values, None, values[0].region.to(values[-1].region))
        return ParameterDeclaration(name, domain, optional is not None)

    def parameter_range(
        self, name: Word, optional: Lexeme | None, low: Number, high: Number
    ) -> ParameterDeclaration:
        domain = Domain((), (low, high), low.region.to(high.region))
        return ParameterDeclaration(name, domain, optional is not None)

    def listed(self, *parts: ParameterDeclaration) -> tuple[ParameterDeclaration, ...]:
        return parts

    def listed_parameter(self, part: ParameterDeclaration) -> ParameterDeclaration:
        return part

    def open_parameter(
        self, name: Word, optional: Lexeme | None, kind: Lexeme, *parts: TypePart
    ) -> OpenDeclaration:
        return OpenDeclaration(
            name=name,
            optional=optional is not None,
            type=Word(str(kind), kind.region),
            parts=parts,
        )

    def length(self, kind: Lexeme, number: Number) -> TypePart:
        region = kind.region.to(number.region)
        return TypePart(kind=str(kind), numbers=(number,), text=None, region=region)

    def text_pattern(self, mark: Lexeme, text: Text) -> TypePart:
        return TypePart(kind="~", numbers=(), text=text, region=mark.region.to(text.region))

    def bounds(self, low: Number, high: Number) -> TypePart:
        region = low.region.to(high.region)
        return TypePart(kind="..", numbers=(low, high), text=None, region=region)

    def open(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    def parameters(self, _open: Lexeme, listed: Any, opened: Any, _close: Lexeme) -> Parameters:
        return Parameters(listed=listed or (), opened=opened or ())

    def gives(self, _gives: Lexeme, _open: Lexeme, *rest: Any) -> tuple[ParameterDeclaration, ...]:
        return tuple(rest[:-1])

    def signature(self, takes: Word, gives: Word) -> tuple[Word, Word]:
        return takes, gives

    def block(self, _open: Lexeme, *rest: Any) -> tuple[tuple[Attribute, ...], Region]:
        return tuple(rest[:-1]), rest[-1].region

    def tool(
        self,
        keyword: Lexeme,
        name: Word,
        parameters: Parameters | None,
        gives: tuple[ParameterDeclaration, ...] | None,
        signature: tuple[Word, Word] | None,
        block: tuple[tuple[Attribute, ...], Region] | None,
    ) -> Statement:
        taken = parameters or Parameters()
        return ToolStatement(
            name=name,
            parameters=taken.listed,
            opened=taken.opened,
            observed=gives or (),
            signature=signature,
            attributes=block[0] if block else (),
            region=keyword.region.to(name.region),
        )


def _amount(
    kind: Lexeme,
    low: Arithmetic,
    high: Arithmetic | None,
    unit: Lexeme | None,
    when: Condition | None,
) -> Amount:
    end = (high or low).region if unit is None else unit.region
    return Amount(
        kind=str(kind),
        low=low,
        high=high,
        unit=None if unit is None else str(unit),
        when=when,
        region=kind.region.to(end),
    )


def _chain(parts: Sequence[Any]) -> Arithmetic:
    """Operands with operators between them, grouped to the left."""
    first: Arithmetic = parts[0]
    if len(parts) == 1:
        return first
    code: list[Any] = list(first.code)
    height = first.height
    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        code += (*operand.code, str(operator))
        height = max(height, operand.height)
    return Arithmetic(tuple(code), first.region.to(parts[-1].region), height)
