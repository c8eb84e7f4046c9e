"""The actions that make the statements, but for a tool, whose own are in tool_actions."""

from __future__ import annotations

from tcc_compiler.language.ast.expressions import Expression
from tcc_compiler.language.ast.leaves import Number, Pattern, Text, Word
from tcc_compiler.language.ast.statements import (
    CurrencyStatement,
    ExampleStatement,
    ExpectStatement,
    ForbidStatement,
    GoalStatement,
    GrammarStatement,
    LimitStatement,
    Pair,
    PlanStatement,
    RequireStatement,
    RuleStatement,
    StartStatement,
    Statement,
    UseStatement,
)
from tcc_compiler.language.syntax.lexemes import Lexeme


class StatementActions:
    """Parts to their statement; each method has the name of its rule in grammar.lark."""

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
