"""The actions of grammar.lark: at each reduction, tokens and parts become a node of the tree.

The tree is built from its leaves while the parser runs, so nothing walks a tree, and nesting that
is too deep is refused at the first node past the limit.  A new construct is a rule in grammar.lark,
a class in :mod:`tcc_compiler.language.ast`, and a method here by the name of the rule.
Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

from lark import Transformer, v_args

from tcc_compiler.language.ast import (
    Amount,
    AnyCall,
    Argument,
    Arithmetic,
    Attribute,
    BindMcp,
    BindPython,
    Condition,
    CurrencyStatement,
    Doc,
    Domain,
    Errors,
    ExampleStatement,
    ExpectStatement,
    Expression,
    ForbidStatement,
    GoalStatement,
    GrammarStatement,
    LimitStatement,
    Many,
    Minus,
    Model,
    ModelAtom,
    ModelExecute,
    ModelPart,
    NoCall,
    Number,
    OpenDeclaration,
    Pair,
    ParameterDeclaration,
    Parameters,
    Pattern,
    PlanStatement,
    Quotes,
    Reference,
    Repeated,
    RequireStatement,
    RuleStatement,
    StartStatement,
    Statement,
    Strict,
    Text,
    ToolStatement,
    TypePart,
    UseStatement,
    Value,
    Word,
)
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.tokens import MAX_NESTING, Lexeme
from tcc_compiler.language.values import decimal_text, parse_decimal, string_value


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
class Actions(Transformer[Lexeme, Any]):
    """Rules of grammar.lark to nodes: each method has the name of its rule and takes its parts."""

    # Leaves: names, texts, numbers, values and patterns.

    def word(self, name: Lexeme) -> Word:
        return Word(str(name), name.region)

    def name(self, name: Lexeme) -> Word:
        return Word(str(name), name.region, name.type == "STRING")

    def text(self, string: Lexeme) -> Text:
        return Text(str(string), string.region)

    def signed(self, *tokens: Lexeme | None) -> Number:
        number = tokens[-1]
        sign = tokens[0] if len(tokens) > 1 else None
        if number is None:  # the grammar ends this rule with a number
            raise TypeError("a number without its digits")
        region = number.region
        if sign is None:
            return Number(parse_decimal(number), region)
        value = -parse_decimal(number) if sign.type == "MINUS" else parse_decimal(number)
        return Number(value, sign.region.to(region))

    def name_value(self, name: Lexeme) -> Value:
        return Value(str(name), None, name.region)

    def string_value(self, string: Lexeme) -> Value:
        return Value(string_value(str(string)), None, string.region, True)

    def number_value(self, number: Number) -> Value:
        return Value(decimal_text(number.value), number.value, number.region)

    def argument(self, name: Word, *values: Value) -> Argument:
        return Argument(name, values)

    def bare_pattern(self, name: Word) -> Pattern:
        return Pattern(name, (), name.region)

    def pattern(self, name: Word, *rest: Any) -> Pattern:
        return Pattern(name, tuple(rest[:-1]), name.region.to(rest[-1].region))

    # Expressions: operand lists are flat, and joined once for each level.

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

    # Amounts of tools, in postfix order.

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

    # Attributes of tools.

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

    # Parameters, and tools.

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

    # The other statements.

    def grammar(self, keyword: Lexeme, name: Word, _version: Lexeme, version: Text) -> Statement:
        return GrammarStatement(name, version, keyword.region.to(version.region))

    def currency(self, keyword: Lexeme, label: Text) -> Statement:
        return CurrencyStatement(label, keyword.region.to(label.region))

    def use(self, keyword: Lexeme, path: Text) -> Statement:
        return UseStatement(path, keyword.region.to(path.region))

    def rule(self, keyword: Lexeme, name: Word, body: Expression) -> Statement:
        return RuleStatement(name, body, keyword.region.to(body.region))

    def plan(self, keyword: Lexeme, body: Expression) -> Statement:
        return PlanStatement(body, keyword.region.to(body.region))

    def begin(self, keyword: Lexeme, state: Word) -> Statement:
        return StartStatement(state, keyword.region.to(state.region))

    def goal(self, keyword: Lexeme, *states: Word) -> Statement:
        return GoalStatement(states, keyword.region.to(states[-1].region))

    def require(self, keyword: Lexeme, first: Pattern, order: Lexeme, second: Pattern) -> Statement:
        region = keyword.region.to(second.region)
        return RequireStatement(str(order), first, second, region)

    def require_same(
        self, keyword: Lexeme, first: Pattern, order: Lexeme, second: Pattern,
        same: tuple[Pair, ...],
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region)
        return RequireStatement(str(order), first, second, region, same)

    def require_each(
        self, keyword: Lexeme, first: Pattern, _before: Lexeme, each: Lexeme,
        second: Pattern, same: tuple[Pair, ...] | None,
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region if same else second.region)
        return RequireStatement(str(each), first, second, region, same or ())

    def forbid_next(self, keyword: Lexeme, *patterns: Pattern) -> Statement:
        region = keyword.region.to(patterns[-1].region)
        return ForbidStatement(patterns, "next", region)

    def forbid_two(
        self, keyword: Lexeme, first: Pattern, order: Lexeme, second: Pattern,
        same: tuple[Pair, ...] | None,
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(same[-1].second.region if same else second.region)
        return ForbidStatement((first, second), str(order), region, same or ())

    def same(self, _same: Lexeme, *pairs: Pair) -> tuple[Pair, ...]:
        return pairs

    def pair(self, first: Word, second: Word | None) -> Pair:
        return Pair(first, second or first)

    def example(self, keyword: Lexeme, *patterns: Pattern) -> Statement:
        region = keyword.region.to(patterns[-1].region)
        return ExampleStatement(keyword.type == "ACCEPT", patterns, region)

    def example_empty(self, keyword: Lexeme, _open: Lexeme, end: Lexeme) -> Statement:
        region = keyword.region.to(end.region)
        return ExampleStatement(keyword.type == "ACCEPT", (), region)

    def limit(
        self,
        keyword: Lexeme,
        kind: Lexeme,
        op: Lexeme,
        number: Number,
        unit: Lexeme | None = None,
    ) -> Statement:
        end = number.region if unit is None else unit.region
        named = None if unit is None else str(unit)
        region = keyword.region.to(end)
        return LimitStatement(str(kind), str(op), number, named, None, region)

    def limit_uses(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, pattern: Pattern, _close: Lexeme,
        op: Lexeme, number: Number,
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        return LimitStatement(str(kind), str(op), number, None, pattern, region)

    def limit_per(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, pattern: Pattern, _close: Lexeme,
        _per: Lexeme, per: Word, op: Lexeme, number: Number,
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        return LimitStatement(str(kind), str(op), number, None, pattern, region, per)

    def limit_sum(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, tool: Word, parameter: Word,
        _close: Lexeme, op: Lexeme, number: Number,
    ) -> Statement:  # fmt: skip
        region = keyword.region.to(number.region)
        total = (tool, parameter)
        return LimitStatement(str(kind), str(op), number, None, None, region, None, total)

    def expect(self, keyword: Lexeme, what: Lexeme, op: Lexeme, number: Number) -> Statement:
        region = keyword.region.to(number.region)
        return ExpectStatement(str(what), str(op), number, region)


def _join(kind: Literal["seq", "alt", "and"], parts: Sequence[Expression]) -> Expression:
    items: list[Expression] = []
    for part in parts:
        if isinstance(part, Many) and part.kind == kind:
            items.extend(part.items)
        else:
            items.append(part)
    region = parts[0].region.to(parts[-1].region)
    height = level(region, *(item.height for item in items))
    return Many(kind, tuple(items), region, height)


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
    code: list[Any] = list(first.code)
    height = first.height
    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        code += (*operand.code, str(operator))
        height = max(height, operand.height)
    return Arithmetic(tuple(code), first.region.to(parts[-1].region), height)
