"""The actions of grammar.lark: at each reduction, tokens and parts become a node of the tree.

The tree is built from its leaves while the parser runs, so nothing walks a tree, and nesting that
is too deep is refused at the first node past the limit.  A new construct is a rule in grammar.lark,
a class in :mod:`tcc_compiler.language.ast`, and a method here by the name of the rule.
Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from lark import Transformer, v_args

from tcc_compiler.language.ast import (
    Alternative,
    Amount,
    AnyCall,
    AnySet,
    Argument,
    Arithmetic,
    Attribute,
    BindMcp,
    BindPython,
    CallsTerm,
    Compared,
    Comparison,
    Condition,
    Constant,
    CountTerm,
    CurrencyStatement,
    Doc,
    Domain,
    Duration,
    Elements,
    Errors,
    EveryElement,
    ExactStatement,
    ExampleStatement,
    ExpectStatement,
    Expression,
    FieldTerm,
    ForbidStatement,
    GivenStatement,
    GoalStatement,
    GrammarStatement,
    Greater,
    GroupTerm,
    KeyPair,
    LetStatement,
    LimitStatement,
    LookedUp,
    Many,
    Minus,
    Model,
    ModelAtom,
    ModelExecute,
    ModelPart,
    MonitorStatement,
    NoCall,
    Now,
    Number,
    OpenDeclaration,
    Pair,
    Parallel,
    ParameterDeclaration,
    Parameters,
    PassStatement,
    Pattern,
    PlanStatement,
    PolicyStatement,
    ProductTerm,
    Quotes,
    Reference,
    RelationTerm,
    Repeated,
    RequireStatement,
    RuleStatement,
    SetOf,
    StartStatement,
    Statement,
    Strict,
    SumTerm,
    Term,
    Text,
    ToolStatement,
    TypePart,
    TypeTerm,
    UseStatement,
    Value,
    Word,
)
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

    def errors(
        self, word: Lexeme, _mean: Lexeme, failed: Lexeme, _like: Lexeme | None, text: Text | None
    ) -> Errors:
        return Errors(word.region.to((text or failed).region), text)

    def parallel(self, word: Lexeme) -> Parallel:
        return Parallel(word.region)

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

    def parameter(self, name: Word, optional: Lexeme | None, *parts: Any) -> ParameterDeclaration:
        *values, rest, nullable, at = parts
        end = values[-1].region if rest is None else rest.region
        domain = Domain(
            tuple(values), None, values[0].region.to(end), None if rest is None else rest.region
        )
        return ParameterDeclaration(name, domain, optional is not None, nullable, at)

    def parameter_range(
        self, name: Word, optional: Lexeme | None, low: Number, high: Number,
        nullable: Region | None, at: Text | None,
    ) -> ParameterDeclaration:  # fmt: skip
        domain = Domain((), (low, high), low.region.to(high.region))
        return ParameterDeclaration(name, domain, optional is not None, nullable, at)

    def nullable(self, word: Lexeme, null: Lexeme) -> Region:
        return word.region.to(null.region)

    def at(self, _at: Lexeme, pointer: Text) -> Text:
        return pointer

    def rest_value(self, mark: Lexeme) -> Value:
        return Value(REST, None, mark.region)

    def listed(self, *parts: ParameterDeclaration) -> tuple[ParameterDeclaration, ...]:
        return parts

    def listed_parameter(self, part: ParameterDeclaration) -> ParameterDeclaration:
        return part

    def open_parameter(
        self, name: Word, optional: Lexeme | None, made: TypeTerm,
        nullable: Region | None, at: Text | None,
    ) -> OpenDeclaration:  # fmt: skip
        return OpenDeclaration(
            name=name,
            optional=optional is not None,
            type=made.name,
            parts=made.parts,
            made=made,
            nullable=nullable,
            at=at,
        )

    def type(self, kind: Lexeme, *parts: TypePart) -> TypeTerm:
        region = kind.region.to(parts[-1].region) if parts else kind.region
        return TypeTerm(name=Word(str(kind), kind.region), parts=parts, region=region)

    def time_type(self, kind: Lexeme, zone: Text | Lexeme | None) -> TypeTerm:
        if isinstance(zone, Lexeme):
            zone = Text(str(zone), zone.region)
        region = kind.region if zone is None else kind.region.to(zone.region)
        return TypeTerm(name=Word(str(kind), kind.region), zone=zone, region=region)

    def list_type(self, kind: Lexeme, *rest: Any) -> TypeTerm:
        *parts, _of, inner = rest
        region = kind.region.to(inner.region)
        return TypeTerm(
            name=Word(str(kind), kind.region),
            parts=tuple(parts),
            of=inner,
            region=region,
            height=level(region, inner.height),
        )

    def record_type(self, opening: Lexeme, fields: Any, end: Lexeme) -> TypeTerm:
        region = opening.region.to(end.region)
        below = (field.made.height for field in fields if isinstance(field, OpenDeclaration))
        return TypeTerm(
            name=Word("record", opening.region),
            fields=fields,
            region=region,
            height=level(region, *below),
        )

    def distinct(self, word: Lexeme) -> TypePart:
        return TypePart(kind="distinct", numbers=(), text=None, region=word.region)

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

    def gives(self, _gives: Lexeme, _open: Lexeme, listed: Any, opened: Any, _: Any) -> Parameters:
        return Parameters(listed=listed, opened=opened or ())

    def gives_open(self, _gives: Lexeme, _open: Lexeme, opened: Any, _close: Lexeme) -> Parameters:
        return Parameters(opened=opened)

    def signature(self, takes: Word, gives: Word) -> tuple[Word, Word]:
        return takes, gives

    def block(self, _open: Lexeme, *rest: Any) -> tuple[tuple[Attribute, ...], Region]:
        return tuple(rest[:-1]), rest[-1].region

    def tool(
        self,
        keyword: Lexeme,
        name: Word,
        parameters: Parameters | None,
        gives: Parameters | None,
        signature: tuple[Word, Word] | None,
        block: tuple[tuple[Attribute, ...], Region] | None,
    ) -> Statement:
        taken = parameters or Parameters()
        return ToolStatement(
            name=name,
            parameters=taken.listed,
            opened=taken.opened,
            observed=gives.listed if gives else (),
            signature=signature,
            attributes=block[0] if block else (),
            region=keyword.region.to(name.region),
            answers=gives.opened if gives else (),
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

    # Sets of calls.

    def one_pattern(self, pattern: Pattern) -> CallsTerm:
        return pattern

    def any_set(self, word: Lexeme) -> CallsTerm:
        return AnySet(word.region)

    def set_group(self, _open: Lexeme, inner: CallsTerm, _close: Lexeme) -> CallsTerm:
        return inner

    def calls(self, *parts: CallsTerm) -> CallsTerm:
        return _set_of("|", parts)

    def set(self, *parts: Any) -> CallsTerm:
        return _set_of("-", parts[::2])

    # Terms and relations.

    def constant(self, literal: Lexeme, unit: Lexeme | None = None) -> Term:
        if literal.type == "STRING":
            return Constant(str(literal), None, None, literal.region)
        number = parse_decimal(literal)
        region = literal.region if unit is None else literal.region.to(unit.region)
        return Constant(str(literal), number, None if unit is None else str(unit), region)

    def field(self, name: Lexeme, *rest: Word) -> Term:
        words = (Word(str(name), name.region), *rest)
        return FieldTerm("", words, name.region.to(words[-1].region))

    def field_of(self, scope: Lexeme, *names: Word) -> Term:
        return FieldTerm(str(scope), names, scope.region.to(names[-1].region))

    def looked_up(self, name: Lexeme, _open: Lexeme, *rest: Any) -> Term:
        *keys, _close, field = rest
        region = name.region.to(field.region)
        height = level(region, *(key.height for key in keys))
        return LookedUp(Word(str(name), name.region), tuple(keys), field, region, height)

    def now(self, word: Lexeme) -> Term:
        return Now(word.region)

    def greater(self, word: Lexeme, _open: Lexeme, one: Term, other: Term, end: Lexeme) -> Term:
        region = word.region.to(end.region)
        return Greater(one, other, region, level(region, one.height, other.height))

    def count(
        self, word: Lexeme, _open: Lexeme, of: Term, tail: Compared | None, end: Lexeme
    ) -> Term:
        region = word.region.to(end.region)
        height = level(region, of.height, 0 if tail is None else tail.height)
        return CountTerm(of, tail, region, height)

    def sum_group(self, opening: Lexeme, inner: Term, end: Lexeme) -> Term:
        region = opening.region.to(end.region)
        return GroupTerm(inner, region, level(region, inner.height))

    def unary(self, sign: Lexeme | None, operand: Term) -> Term:
        if sign is None:
            return operand
        region = sign.region.to(operand.region)
        part = -1 if sign.type == "MINUS" else 1
        return SumTerm(((part, operand),), region, level(region, operand.height))

    def product(self, *parts: Any) -> Term:
        factors: tuple[Term, ...] = parts[::2]
        if len(factors) == 1:
            return factors[0]
        region = factors[0].region.to(factors[-1].region)
        return ProductTerm(factors, region, level(region, *(one.height for one in factors)))

    def sum(self, *parts: Any) -> Term:
        terms: tuple[Term, ...] = parts[::2]
        if len(terms) == 1:
            return terms[0]
        signs = (1, *(-1 if sign.type == "MINUS" else 1 for sign in parts[1::2]))
        region = terms[0].region.to(terms[-1].region)
        height = level(region, *(one.height for one in terms))
        return SumTerm(tuple(zip(signs, terms, strict=True)), region, height)

    def equal(self, term: Term) -> Compared:
        return Compared("=", False, (term,), False, None, term.region, term.height)

    def compared(self, op: Lexeme, term: Term) -> Compared:
        region = op.region.to(term.region)
        return Compared(str(op), False, (term,), False, None, region, term.height)

    def among(self, negated: Lexeme | None, word: Lexeme, term: Term) -> Compared:
        region = (negated or word).region.to(term.region)
        return Compared("in", negated is not None, (term,), False, None, region, term.height)

    def among_listed(
        self, negated: Lexeme | None, word: Lexeme, _open: Lexeme, *rest: Any
    ) -> Compared:
        *terms, end = rest
        region = (negated or word).region.to(end.region)
        height = max(term.height for term in terms)
        return Compared("in", negated is not None, tuple(terms), True, None, region, height)

    def like(self, mark: Lexeme, text: Text) -> Compared:
        region = mark.region.to(text.region)
        return Compared("~", mark.type == "UNLIKE", (), False, text, region, 0)

    def relation(self, left: Term, maybe: Lexeme | None, tail: Compared) -> RelationTerm:
        region = left.region.to(tail.region)
        height = max(left.height, tail.height)
        return Comparison(left, maybe is not None, tail, region, height)

    def every_element(self, word: Lexeme, of: Term, tail: Compared) -> RelationTerm:
        region = word.region.to(tail.region)
        return EveryElement(of, tail, region, max(of.height, tail.height))

    def element(self, of: Term, _as: Lexeme, name: Word) -> tuple[Term, Word]:
        return of, name

    def elements(self, word: Lexeme, *rest: Any) -> RelationTerm:
        lists = tuple(part for part in rest if isinstance(part, tuple))
        relations = tuple(part for part in rest[len(lists) + 1 : -1])
        region = word.region.to(rest[-1].region)
        heights = (*(one.height for one, _ in lists), *(one.height for one in relations))
        return Elements(word.type == "EVERY", lists, relations, region, level(region, *heights))

    def where(self, _where: Lexeme, *relations: RelationTerm) -> tuple[RelationTerm, ...]:
        return relations

    def window(self, word: Lexeme, number: Lexeme, unit: Lexeme) -> Duration:
        value = Number(parse_decimal(number), number.region)
        return Duration(value, str(unit), word.region.to(unit.region))

    # Statements about earlier calls: a node of language 1.1 where they say no more than that.

    def earlier(
        self, head: Any, calls: CallsTerm, keys: Any, where: Any, within: Duration | None
    ) -> Alternative:
        ends = [calls.region]
        ends += [_end_of(keys[-1])] if keys else []
        ends += [where[-1].region] if where else []
        ends += [within.region] if within else []
        last = isinstance(head, Lexeme) and head.type == "LAST"
        number = None if head is None or last else Number(parse_decimal(head), head.region)
        return Alternative(
            calls=calls,
            last=last,
            count=number,
            keys=keys or (),
            where=where or (),
            within=within,
            region=(calls.region if head is None else head.region).to(ends[-1]),
        )

    def of_itself(self, where: Any, within: Duration | None) -> Alternative:
        end = where[-1].region if within is None else within.region
        return Alternative(
            calls=None,
            last=False,
            count=None,
            keys=(),
            where=where,
            within=within,
            region=where[0].region.to(end),
        )

    def alternatives(self, *parts: Any) -> tuple[Alternative, ...]:
        return parts[::2]

    def require(
        self, keyword: Lexeme, before: tuple[Alternative, ...], _before: Lexeme, second: CallsTerm,
        same: Any,
    ) -> Statement:  # fmt: skip
        return self._require(keyword, "before", before, second, same)

    def require_each(
        self, keyword: Lexeme, before: tuple[Alternative, ...], _before: Lexeme, _each: Lexeme,
        second: CallsTerm, same: Any,
    ) -> Statement:  # fmt: skip
        return self._require(keyword, "each", before, second, same)

    def require_after(
        self, keyword: Lexeme, first: CallsTerm, _after: Lexeme, second: CallsTerm, same: Any
    ) -> Statement:
        if same:
            return _policy(keyword, "require", "after", (_bare(first),), second, same)
        return self._require(keyword, "after", (_bare(first),), second, same)

    def require_where(self, keyword: Lexeme, calls: CallsTerm, where: Any) -> Statement:
        itself = self.of_itself(where, None)
        region = keyword.region.to(where[-1].region)
        return _policy(keyword, "require", "where", (itself,), calls, (), region=region)

    def _require(
        self, keyword: Lexeme, order: str, before: tuple[Alternative, ...], second: CallsTerm,
        same: Any,
    ) -> Statement:  # fmt: skip
        first, pairs = _plain(before), _pairs(same)
        if isinstance(first, Pattern) and isinstance(second, Pattern) and pairs is not None:
            region = keyword.region.to(pairs[-1].second.region if pairs else second.region)
            return RequireStatement(order, first, second, region, pairs)
        return _policy(keyword, "require", order, before, second, same)

    def forbid_next(self, keyword: Lexeme, *sets: CallsTerm) -> Statement:
        region = keyword.region.to(sets[-1].region)
        patterns = tuple(one for one in sets if isinstance(one, Pattern))
        if len(patterns) == len(sets):
            return ForbidStatement(patterns, "next", region)
        return _policy(keyword, "forbid", "next", tuple(map(_bare, sets)), None, (), region=region)

    def forbid_with(
        self, keyword: Lexeme, first: CallsTerm, order: Lexeme, second: CallsTerm, same: Any
    ) -> Statement:
        return self._forbid(keyword, str(order), (_bare(first),), second, same, None)

    def forbid_before(
        self, keyword: Lexeme, before: tuple[Alternative, ...], order: Lexeme, second: CallsTerm,
        same: Any, unless: tuple[Alternative, ...] | None,
    ) -> Statement:  # fmt: skip
        return self._forbid(keyword, str(order), before, second, same, unless)

    def _forbid(
        self, keyword: Lexeme, order: str, before: tuple[Alternative, ...], second: CallsTerm,
        same: Any, unless: tuple[Alternative, ...] | None,
    ) -> Statement:  # fmt: skip
        first, pairs = _plain(before), _pairs(same)
        if (
            isinstance(first, Pattern)
            and isinstance(second, Pattern)
            and pairs is not None
            and unless is None
        ):
            region = keyword.region.to(pairs[-1].second.region if pairs else second.region)
            return ForbidStatement((first, second), order, region, pairs)
        return _policy(keyword, "forbid", order, before, second, same, unless=unless or ())

    def unless(self, _word: Lexeme, alternatives: tuple[Alternative, ...]) -> Any:
        return alternatives

    def same(self, _same: Lexeme, *pairs: KeyPair) -> tuple[KeyPair, ...]:
        return pairs

    def pair(self, first: Word, second: Term | None) -> KeyPair:
        return KeyPair(first, second)

    def monitor(self, word: Lexeme, statement: Any) -> Statement:
        region = word.region.to(statement.region)
        if isinstance(statement, PolicyStatement):
            return replace(statement, monitored=word.region, region=region)
        return MonitorStatement(statement, region)

    def given(self, word: Lexeme, *attributes: Any) -> Statement:
        return GivenStatement(attributes, word.region.to(attributes[-1].name.region))

    def source(self, tool: Word, field: Word) -> tuple[Word, Word]:
        return tool, field

    def let(self, word: Lexeme, name: Word, *parts: Any) -> Statement:
        sources = tuple(part for part in parts if isinstance(part, tuple))
        region = word.region.to(sources[-1][1].region)
        return LetStatement(name=name, keys=(), sources=sources, calls=None, region=region)

    def let_rows(self, word: Lexeme, name: Word, _open: Lexeme, *parts: Any) -> Statement:
        keys = tuple(part for part in parts if isinstance(part, Word))
        sources = tuple(part for part in parts if isinstance(part, tuple))
        region = word.region.to(sources[-1][1].region)
        return LetStatement(name=name, keys=keys, sources=sources, calls=None, region=region)

    def let_calls(self, word: Lexeme, name: Word, _open: Lexeme, *parts: Any) -> Statement:
        *keys, _close, calls = parts
        region = word.region.to(calls.region)
        return LetStatement(name=name, keys=tuple(keys), sources=(), calls=calls, region=region)

    def pass_(self, word: Lexeme, *words: Word) -> Statement:
        return PassStatement(words, word.region.to(words[-1].region))

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
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, calls: CallsTerm, where: Any,
        _close: Lexeme, per: tuple[Term, ...] | None, op: Lexeme, number: Number,
        within: Duration | None, across: Region | None,
    ) -> Statement:  # fmt: skip
        name = _name_of(per[0]) if per is not None and len(per) == 1 else None
        plain = where is None and within is None and across is None
        if isinstance(calls, Pattern) and plain and (per is None or name is not None):
            region = keyword.region.to(number.region)
            return LimitStatement(str(kind), str(op), number, None, calls, region, name)
        counted = replace(_bare(calls), where=where or ())
        return _limited(keyword, kind, op, (counted,), None, per, number, within, across)

    def limit_least(
        self, keyword: Lexeme, kind: Lexeme, opening: Lexeme, calls: CallsTerm, where: Any,
        close: Lexeme, op: Lexeme, number: Number,
    ) -> Statement:  # fmt: skip
        return self.limit_uses(
            keyword, kind, opening, calls, where, close, None, op, number, None, None
        )

    def limit_sum(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, tool: Word, parameter: Word,
        _close: Lexeme, per: tuple[Term, ...] | None, op: Lexeme, number: Number,
        within: Duration | None, across: Region | None,
    ) -> Statement:  # fmt: skip
        total = (tool, parameter)
        if per is None and within is None and across is None:
            region = keyword.region.to(number.region)
            return LimitStatement(str(kind), str(op), number, None, None, region, None, total)
        return _limited(keyword, kind, op, (), total, per, number, within, across)

    def per(self, _per: Lexeme, *terms: Term) -> tuple[Term, ...]:
        return terms

    def across(self, word: Lexeme, sessions: Lexeme) -> Region:
        return word.region.to(sessions.region)

    def expect(self, keyword: Lexeme, what: Lexeme, op: Lexeme, number: Number) -> Statement:
        region = keyword.region.to(number.region)
        return ExpectStatement(str(what), str(op), number, region)

    def expect_next(self, keyword: Lexeme, never: Lexeme, *sets: CallsTerm) -> Statement:
        inner = self.forbid_next(never, *sets)
        return ExactStatement(
            "never", inner.region, inner, None, keyword.region.to(sets[-1].region)
        )

    def expect_never(
        self, keyword: Lexeme, never: Lexeme, first: CallsTerm, order: Lexeme, second: CallsTerm,
        same: Any,
    ) -> Statement:  # fmt: skip
        ends = same[-1] if same else None
        last = second.region if ends is None else (ends.second or ends.first).region
        inner: Statement | None
        if str(order) == "after":
            pairs = _pairs(same)
            inner = None
            if isinstance(first, Pattern) and isinstance(second, Pattern) and pairs is not None:
                turned = tuple(Pair(pair.second, pair.first) for pair in pairs)
                region = never.region.to(last)
                inner = ForbidStatement((second, first), "before", region, turned)
        else:
            inner = self._forbid(never, str(order), (_bare(first),), second, same, None)
        asked = never.region.to(last)
        return ExactStatement("never", asked, inner, None, keyword.region.to(last))

    def expect_reachable(self, keyword: Lexeme, _word: Lexeme, pattern: Pattern) -> Statement:
        region = keyword.region.to(pattern.region)
        inner = ForbidStatement((pattern,), "next", pattern.region)
        return ExactStatement("reachable", pattern.region, inner, None, region)

    def expect_implies(self, keyword: Lexeme, _word: Lexeme, path: Text) -> Statement:
        region = keyword.region.to(path.region)
        return ExactStatement("implies", path.region, None, path, region)


def _set_of(op: Literal["|", "-"], parts: Sequence[CallsTerm]) -> CallsTerm:
    if len(parts) == 1:
        return parts[0]
    region = parts[0].region.to(parts[-1].region)
    return SetOf(op, tuple(parts), region, level(region, *map(_height_of, parts)))


def _height_of(calls: CallsTerm) -> int:
    return 0 if isinstance(calls, Pattern) else calls.height


def _bare(calls: CallsTerm) -> Alternative:
    """The alternative that is a set and no more."""
    return Alternative(
        calls=calls, last=False, count=None, keys=(), where=(), within=None, region=calls.region
    )


def _plain(before: tuple[Alternative, ...]) -> CallsTerm | None:
    """The set of an alternative that is the only one, and no more than a set."""
    one = before[0]
    more = one.last or one.count or one.keys or one.where or one.within
    return None if len(before) > 1 or more else one.calls


def _name_of(term: Term | None) -> Word | None:
    """The name that stands as a term, bare or in quotes; None for another term."""
    if isinstance(term, FieldTerm) and not term.scope and len(term.names) == 1:
        return term.names[0]
    if isinstance(term, Constant) and term.number is None:
        return Word(term.text, term.region, True)
    return None


def _end_of(pair: KeyPair) -> Region:
    return pair.first.region if pair.second is None else pair.second.region


def _pairs(same: tuple[KeyPair, ...] | None) -> tuple[Pair, ...] | None:
    """The pairs of two names; None where a pair has another term."""
    pairs: list[Pair] = []
    for pair in same or ():
        second = pair.first if pair.second is None else _name_of(pair.second)
        if second is None:
            return None
        pairs.append(Pair(pair.first, second))
    return tuple(pairs)


def _policy(
    keyword: Lexeme,
    kind: str,
    order: str,
    before: tuple[Alternative, ...],
    calls: CallsTerm | None,
    same: tuple[KeyPair, ...] | None,
    *,
    unless: tuple[Alternative, ...] = (),
    region: Region | None = None,
) -> PolicyStatement:
    if region is None:
        end = unless[-1].region if unless else _end_of(same[-1]) if same else None
        end = end or (before[-1].region if calls is None else calls.region)
        region = keyword.region.to(end)
    return PolicyStatement(
        kind=kind,
        order=order,
        before=before,
        calls=calls,
        region=region,
        word=Word(str(keyword), keyword.region),
        keys=same or (),
        unless=unless,
    )


def _limited(
    keyword: Lexeme,
    kind: Lexeme,
    op: Lexeme,
    counted: tuple[Alternative, ...],
    total: tuple[Word, Word] | None,
    per: tuple[Term, ...] | None,
    number: Number,
    within: Duration | None,
    across: Region | None,
) -> PolicyStatement:
    end = across or (number.region if within is None else within.region)
    return PolicyStatement(
        kind=str(kind),
        order=str(op),
        before=counted,
        calls=None,
        region=keyword.region.to(end),
        word=Word(str(keyword), keyword.region),
        total=total,
        per=per or (),
        number=number,
        within=within,
        across=across,
    )


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
