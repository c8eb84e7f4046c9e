"""The actions of grammar.lark: at each reduction, tokens and parts become a node of the tree.

The tree is built from its leaves while the parser runs, so nothing walks a tree, and nesting that
is too deep is refused at the first node past the limit.  A new construct is a rule in grammar.lark,
a class in :mod:`tcc_compiler.language.ast`, and a method here by the name of the rule.
Cost: linear in the tokens (an operand list is joined once for each level).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from lark import v_args

from tcc_compiler.language import ast
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.tokens import Lexeme
from tcc_compiler.language.syntax.tool_actions import ToolActions, level
from tcc_compiler.language.values import parse_decimal


@v_args(inline=True)
class Actions(ToolActions):
    """The rules of the statements that are not about tools, and all that they stand on."""

    # Statements that are not about tools.

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

    # Sets of calls.

    def one_pattern(self, pattern: ast.Pattern) -> ast.CallsTerm:
        return pattern

    def any_set(self, word: Lexeme) -> ast.CallsTerm:
        return ast.AnySet(word.region)

    def set_group(self, _open: Lexeme, inner: ast.CallsTerm, _close: Lexeme) -> ast.CallsTerm:
        return inner

    def calls(self, *parts: ast.CallsTerm) -> ast.CallsTerm:
        return _set_of("|", parts)

    def set(self, *parts: Any) -> ast.CallsTerm:
        return _set_of("-", parts[::2])

    # Terms and relations.

    def constant(self, literal: Lexeme, unit: Lexeme | None = None) -> ast.Term:
        if literal.type == "STRING":
            return ast.Constant(str(literal), None, None, literal.region)
        number = parse_decimal(literal)
        region = literal.region if unit is None else literal.region.to(unit.region)
        return ast.Constant(str(literal), number, None if unit is None else str(unit), region)

    def field(self, name: Lexeme, *rest: ast.Word) -> ast.Term:
        words = (ast.Word(str(name), name.region), *rest)
        return ast.FieldTerm("", words, name.region.to(words[-1].region))

    def field_of(self, scope: Lexeme, *names: ast.Word) -> ast.Term:
        return ast.FieldTerm(str(scope), names, scope.region.to(names[-1].region))

    def looked_up(self, name: Lexeme, _open: Lexeme, *rest: Any) -> ast.Term:
        *keys, _close, field = rest
        region = name.region.to(field.region)
        height = level(region, *(key.height for key in keys))
        return ast.LookedUp(ast.Word(str(name), name.region), tuple(keys), field, region, height)

    def now(self, word: Lexeme) -> ast.Term:
        return ast.Now(word.region)

    def greater(
        self, word: Lexeme, _open: Lexeme, one: ast.Term, other: ast.Term, end: Lexeme
    ) -> ast.Term:
        region = word.region.to(end.region)
        return ast.Greater(one, other, region, level(region, one.height, other.height))

    def count(
        self, word: Lexeme, _open: Lexeme, of: ast.Term, tail: ast.Compared | None, end: Lexeme
    ) -> ast.Term:
        region = word.region.to(end.region)
        height = level(region, of.height, 0 if tail is None else tail.height)
        return ast.CountTerm(of, tail, region, height)

    def sum_group(self, opening: Lexeme, inner: ast.Term, end: Lexeme) -> ast.Term:
        region = opening.region.to(end.region)
        return ast.GroupTerm(inner, region, level(region, inner.height))

    def unary(self, sign: Lexeme | None, operand: ast.Term) -> ast.Term:
        if sign is None:
            return operand
        region = sign.region.to(operand.region)
        part = -1 if sign.type == "MINUS" else 1
        return ast.SumTerm(((part, operand),), region, level(region, operand.height))

    def product(self, *parts: Any) -> ast.Term:
        factors: tuple[ast.Term, ...] = parts[::2]
        if len(factors) == 1:
            return factors[0]
        region = factors[0].region.to(factors[-1].region)
        return ast.ProductTerm(factors, region, level(region, *(one.height for one in factors)))

    def sum(self, *parts: Any) -> ast.Term:
        terms: tuple[ast.Term, ...] = parts[::2]
        if len(terms) == 1:
            return terms[0]
        signs = (1, *(-1 if sign.type == "MINUS" else 1 for sign in parts[1::2]))
        region = terms[0].region.to(terms[-1].region)
        height = level(region, *(one.height for one in terms))
        return ast.SumTerm(tuple(zip(signs, terms, strict=True)), region, height)

    def equal(self, term: ast.Term) -> ast.Compared:
        return ast.Compared("=", False, (term,), False, None, term.region, term.height)

    def compared(self, op: Lexeme, term: ast.Term) -> ast.Compared:
        region = op.region.to(term.region)
        return ast.Compared(str(op), False, (term,), False, None, region, term.height)

    def among(self, negated: Lexeme | None, word: Lexeme, term: ast.Term) -> ast.Compared:
        region = (negated or word).region.to(term.region)
        return ast.Compared("in", negated is not None, (term,), False, None, region, term.height)

    def among_listed(
        self, negated: Lexeme | None, word: Lexeme, _open: Lexeme, *rest: Any
    ) -> ast.Compared:
        *terms, end = rest
        region = (negated or word).region.to(end.region)
        height = max(term.height for term in terms)
        return ast.Compared("in", negated is not None, tuple(terms), True, None, region, height)

    def like(self, mark: Lexeme, text: ast.Text) -> ast.Compared:
        region = mark.region.to(text.region)
        return ast.Compared("~", mark.type == "UNLIKE", (), False, text, region, 0)

    def relation(
        self, left: ast.Term, maybe: Lexeme | None, tail: ast.Compared
    ) -> ast.RelationTerm:
        region = left.region.to(tail.region)
        height = max(left.height, tail.height)
        return ast.Comparison(left, maybe is not None, tail, region, height)

    def every_element(self, word: Lexeme, of: ast.Term, tail: ast.Compared) -> ast.RelationTerm:
        region = word.region.to(tail.region)
        return ast.EveryElement(of, tail, region, max(of.height, tail.height))

    def element(self, of: ast.Term, _as: Lexeme, name: ast.Word) -> tuple[ast.Term, ast.Word]:
        return of, name

    def elements(self, word: Lexeme, *rest: Any) -> ast.RelationTerm:
        lists = tuple(part for part in rest if isinstance(part, tuple))
        relations = tuple(part for part in rest[len(lists) + 1 : -1])
        region = word.region.to(rest[-1].region)
        heights = (*(one.height for one, _ in lists), *(one.height for one in relations))
        return ast.Elements(word.type == "EVERY", lists, relations, region, level(region, *heights))

    def where(self, _where: Lexeme, *relations: ast.RelationTerm) -> tuple[ast.RelationTerm, ...]:
        return relations

    def window(self, word: Lexeme, number: Lexeme, unit: Lexeme) -> ast.Duration:
        value = ast.Number(parse_decimal(number), number.region)
        return ast.Duration(value, str(unit), word.region.to(unit.region))

    # Statements about earlier calls: a node of language 1.1 where they say no more than that.

    def earlier(
        self, head: Any, calls: ast.CallsTerm, keys: Any, where: Any, within: ast.Duration | None
    ) -> ast.Alternative:
        ends = [calls.region]
        ends += [_end_of(keys[-1])] if keys else []
        ends += [where[-1].region] if where else []
        ends += [within.region] if within else []
        last = isinstance(head, Lexeme) and head.type == "LAST"
        number = None if head is None or last else ast.Number(parse_decimal(head), head.region)
        return ast.Alternative(
            calls=calls,
            last=last,
            count=number,
            keys=keys or (),
            where=where or (),
            within=within,
            region=(calls.region if head is None else head.region).to(ends[-1]),
        )

    def of_itself(self, where: Any, within: ast.Duration | None) -> ast.Alternative:
        end = where[-1].region if within is None else within.region
        return ast.Alternative(
            calls=None,
            last=False,
            count=None,
            keys=(),
            where=where,
            within=within,
            region=where[0].region.to(end),
        )

    def alternatives(self, *parts: Any) -> tuple[ast.Alternative, ...]:
        return parts[::2]

    def require(
        self,
        keyword: Lexeme,
        before: tuple[ast.Alternative, ...],
        _before: Lexeme,
        second: ast.CallsTerm,
        same: Any,
    ) -> ast.Statement:
        return self._require(keyword, "before", before, second, same)

    def require_each(
        self, keyword: Lexeme, before: tuple[ast.Alternative, ...], _before: Lexeme, _each: Lexeme,
        second: ast.CallsTerm, same: Any,
    ) -> ast.Statement:  # fmt: skip
        return self._require(keyword, "each", before, second, same)

    def require_after(
        self,
        keyword: Lexeme,
        first: ast.CallsTerm,
        _after: Lexeme,
        second: ast.CallsTerm,
        same: Any,
    ) -> ast.Statement:
        if same:
            return _policy(keyword, "require", "after", (_bare(first),), second, same)
        return self._require(keyword, "after", (_bare(first),), second, same)

    def require_where(self, keyword: Lexeme, calls: ast.CallsTerm, where: Any) -> ast.Statement:
        itself = self.of_itself(where, None)
        region = keyword.region.to(where[-1].region)
        return _policy(keyword, "require", "where", (itself,), calls, (), region=region)

    def _require(
        self,
        keyword: Lexeme,
        order: str,
        before: tuple[ast.Alternative, ...],
        second: ast.CallsTerm,
        same: Any,
    ) -> ast.Statement:
        first, pairs = _plain(before), _pairs(same)
        if isinstance(first, ast.Pattern) and isinstance(second, ast.Pattern) and pairs is not None:
            region = keyword.region.to(pairs[-1].second.region if pairs else second.region)
            return ast.RequireStatement(order, first, second, region, pairs)
        return _policy(keyword, "require", order, before, second, same)

    def forbid_next(self, keyword: Lexeme, *sets: ast.CallsTerm) -> ast.Statement:
        region = keyword.region.to(sets[-1].region)
        patterns = tuple(one for one in sets if isinstance(one, ast.Pattern))
        if len(patterns) == len(sets):
            return ast.ForbidStatement(patterns, "next", region)
        return _policy(keyword, "forbid", "next", tuple(map(_bare, sets)), None, (), region=region)

    def forbid_with(
        self, keyword: Lexeme, first: ast.CallsTerm, order: Lexeme, second: ast.CallsTerm, same: Any
    ) -> ast.Statement:
        return self._forbid(keyword, str(order), (_bare(first),), second, same, None)

    def forbid_before(
        self,
        keyword: Lexeme,
        before: tuple[ast.Alternative, ...],
        order: Lexeme,
        second: ast.CallsTerm,
        same: Any,
        unless: tuple[ast.Alternative, ...] | None,
    ) -> ast.Statement:
        return self._forbid(keyword, str(order), before, second, same, unless)

    def _forbid(
        self,
        keyword: Lexeme,
        order: str,
        before: tuple[ast.Alternative, ...],
        second: ast.CallsTerm,
        same: Any,
        unless: tuple[ast.Alternative, ...] | None,
    ) -> ast.Statement:
        first, pairs = _plain(before), _pairs(same)
        if (
            isinstance(first, ast.Pattern)
            and isinstance(second, ast.Pattern)
            and pairs is not None
            and unless is None
        ):
            region = keyword.region.to(pairs[-1].second.region if pairs else second.region)
            return ast.ForbidStatement((first, second), order, region, pairs)
        return _policy(keyword, "forbid", order, before, second, same, unless=unless or ())

    def unless(self, _word: Lexeme, alternatives: tuple[ast.Alternative, ...]) -> Any:
        return alternatives

    def same(self, _same: Lexeme, *pairs: ast.KeyPair) -> tuple[ast.KeyPair, ...]:
        return pairs

    def pair(self, first: ast.Word, second: ast.Term | None) -> ast.KeyPair:
        return ast.KeyPair(first, second)

    def monitor(self, word: Lexeme, statement: Any) -> ast.Statement:
        region = word.region.to(statement.region)
        if isinstance(statement, ast.PolicyStatement):
            return replace(statement, monitored=word.region, region=region)
        return ast.MonitorStatement(statement, region)

    def given(self, word: Lexeme, *attributes: Any) -> ast.Statement:
        return ast.GivenStatement(attributes, word.region.to(attributes[-1].name.region))

    def source(self, tool: ast.Word, field: ast.Word) -> tuple[ast.Word, ast.Word]:
        return tool, field

    def let(self, word: Lexeme, name: ast.Word, *parts: Any) -> ast.Statement:
        sources = tuple(part for part in parts if isinstance(part, tuple))
        region = word.region.to(sources[-1][1].region)
        return ast.LetStatement(name=name, keys=(), sources=sources, calls=None, region=region)

    def let_rows(self, word: Lexeme, name: ast.Word, _open: Lexeme, *parts: Any) -> ast.Statement:
        keys = tuple(part for part in parts if isinstance(part, ast.Word))
        sources = tuple(part for part in parts if isinstance(part, tuple))
        region = word.region.to(sources[-1][1].region)
        return ast.LetStatement(name=name, keys=keys, sources=sources, calls=None, region=region)

    def let_calls(self, word: Lexeme, name: ast.Word, _open: Lexeme, *parts: Any) -> ast.Statement:
        *keys, _close, calls = parts
        region = word.region.to(calls.region)
        return ast.LetStatement(name=name, keys=tuple(keys), sources=(), calls=calls, region=region)

    def pass_(self, word: Lexeme, *words: ast.Word) -> ast.Statement:
        return ast.PassStatement(words, word.region.to(words[-1].region))

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
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, calls: ast.CallsTerm, where: Any,
        _close: Lexeme, per: tuple[ast.Term, ...] | None, op: Lexeme, number: ast.Number,
        within: ast.Duration | None, across: Region | None,
    ) -> ast.Statement:  # fmt: skip
        name = _name_of(per[0]) if per is not None and len(per) == 1 else None
        plain = where is None and within is None and across is None
        if isinstance(calls, ast.Pattern) and plain and (per is None or name is not None):
            region = keyword.region.to(number.region)
            return ast.LimitStatement(str(kind), str(op), number, None, calls, region, name)
        counted = replace(_bare(calls), where=where or ())
        return _limited(keyword, kind, op, (counted,), None, per, number, within, across)

    def limit_least(
        self, keyword: Lexeme, kind: Lexeme, opening: Lexeme, calls: ast.CallsTerm, where: Any,
        close: Lexeme, op: Lexeme, number: ast.Number,
    ) -> ast.Statement:  # fmt: skip
        return self.limit_uses(
            keyword, kind, opening, calls, where, close, None, op, number, None, None
        )

    def limit_sum(
        self, keyword: Lexeme, kind: Lexeme, _open: Lexeme, tool: ast.Word, parameter: ast.Word,
        _close: Lexeme, per: tuple[ast.Term, ...] | None, op: Lexeme, number: ast.Number,
        within: ast.Duration | None, across: Region | None,
    ) -> ast.Statement:  # fmt: skip
        total = (tool, parameter)
        if per is None and within is None and across is None:
            region = keyword.region.to(number.region)
            return ast.LimitStatement(str(kind), str(op), number, None, None, region, None, total)
        return _limited(keyword, kind, op, (), total, per, number, within, across)

    def per(self, _per: Lexeme, *terms: ast.Term) -> tuple[ast.Term, ...]:
        return terms

    def across(self, word: Lexeme, sessions: Lexeme) -> Region:
        return word.region.to(sessions.region)

    def expect(
        self, keyword: Lexeme, what: Lexeme, op: Lexeme, number: ast.Number
    ) -> ast.Statement:
        region = keyword.region.to(number.region)
        return ast.ExpectStatement(str(what), str(op), number, region)

    def expect_next(self, keyword: Lexeme, never: Lexeme, *sets: ast.CallsTerm) -> ast.Statement:
        inner = self.forbid_next(never, *sets)
        return ast.ExactStatement(
            "never", inner.region, inner, None, keyword.region.to(sets[-1].region)
        )

    def expect_never(
        self,
        keyword: Lexeme,
        never: Lexeme,
        first: ast.CallsTerm,
        order: Lexeme,
        second: ast.CallsTerm,
        same: Any,
    ) -> ast.Statement:
        ends = same[-1] if same else None
        last = second.region if ends is None else (ends.second or ends.first).region
        inner: ast.Statement | None
        if str(order) == "after":
            pairs = _pairs(same)
            inner = None
            if (
                isinstance(first, ast.Pattern)
                and isinstance(second, ast.Pattern)
                and pairs is not None
            ):
                turned = tuple(ast.Pair(pair.second, pair.first) for pair in pairs)
                region = never.region.to(last)
                inner = ast.ForbidStatement((second, first), "before", region, turned)
        else:
            inner = self._forbid(never, str(order), (_bare(first),), second, same, None)
        asked = never.region.to(last)
        return ast.ExactStatement("never", asked, inner, None, keyword.region.to(last))

    def expect_reachable(
        self, keyword: Lexeme, _word: Lexeme, pattern: ast.Pattern
    ) -> ast.Statement:
        region = keyword.region.to(pattern.region)
        inner = ast.ForbidStatement((pattern,), "next", pattern.region)
        return ast.ExactStatement("reachable", pattern.region, inner, None, region)

    def expect_implies(self, keyword: Lexeme, _word: Lexeme, path: ast.Text) -> ast.Statement:
        region = keyword.region.to(path.region)
        return ast.ExactStatement("implies", path.region, None, path, region)


def _set_of(op: Literal["|", "-"], parts: Sequence[ast.CallsTerm]) -> ast.CallsTerm:
    if len(parts) == 1:
        return parts[0]
    region = parts[0].region.to(parts[-1].region)
    return ast.SetOf(op, tuple(parts), region, level(region, *map(_height_of, parts)))


def _height_of(calls: ast.CallsTerm) -> int:
    return 0 if isinstance(calls, ast.Pattern) else calls.height


def _bare(calls: ast.CallsTerm) -> ast.Alternative:
    """The alternative that is a set and no more."""
    return ast.Alternative(
        calls=calls, last=False, count=None, keys=(), where=(), within=None, region=calls.region
    )


def _plain(before: tuple[ast.Alternative, ...]) -> ast.CallsTerm | None:
    """The set of an alternative that is the only one, and no more than a set."""
    one = before[0]
    more = one.last or one.count or one.keys or one.where or one.within
    return None if len(before) > 1 or more else one.calls


def _name_of(term: ast.Term | None) -> ast.Word | None:
    """The name that stands as a term, bare or in quotes; None for another term."""
    if isinstance(term, ast.FieldTerm) and not term.scope and len(term.names) == 1:
        return term.names[0]
    if isinstance(term, ast.Constant) and term.number is None:
        return ast.Word(term.text, term.region, True)
    return None


def _end_of(pair: ast.KeyPair) -> Region:
    return pair.first.region if pair.second is None else pair.second.region


def _pairs(same: tuple[ast.KeyPair, ...] | None) -> tuple[ast.Pair, ...] | None:
    """The pairs of two names; None where a pair has another term."""
    pairs: list[ast.Pair] = []
    for pair in same or ():
        second = pair.first if pair.second is None else _name_of(pair.second)
        if second is None:
            return None
        pairs.append(ast.Pair(pair.first, second))
    return tuple(pairs)


def _policy(
    keyword: Lexeme,
    kind: str,
    order: str,
    before: tuple[ast.Alternative, ...],
    calls: ast.CallsTerm | None,
    same: tuple[ast.KeyPair, ...] | None,
    *,
    unless: tuple[ast.Alternative, ...] = (),
    region: Region | None = None,
) -> ast.PolicyStatement:
    if region is None:
        end = unless[-1].region if unless else _end_of(same[-1]) if same else None
        end = end or (before[-1].region if calls is None else calls.region)
        region = keyword.region.to(end)
    return ast.PolicyStatement(
        kind=kind,
        order=order,
        before=before,
        calls=calls,
        region=region,
        word=ast.Word(str(keyword), keyword.region),
        keys=same or (),
        unless=unless,
    )


def _limited(
    keyword: Lexeme,
    kind: Lexeme,
    op: Lexeme,
    counted: tuple[ast.Alternative, ...],
    total: tuple[ast.Word, ast.Word] | None,
    per: tuple[ast.Term, ...] | None,
    number: ast.Number,
    within: ast.Duration | None,
    across: Region | None,
) -> ast.PolicyStatement:
    end = across or (number.region if within is None else within.region)
    return ast.PolicyStatement(
        kind=str(kind),
        order=str(op),
        before=counted,
        calls=None,
        region=keyword.region.to(end),
        word=ast.Word(str(keyword), keyword.region),
        total=total,
        per=per or (),
        number=number,
        within=within,
        across=across,
    )
