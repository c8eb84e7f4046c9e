"""Where the names of a grammar stand: of tools, rules, parameters, values, states and files.

Statements with an error are left out, so a text that is being written has the names of the others.
Normative text: docs/spec/language.md, section 4.  Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast.expressions import Expression, Reference, postorder
from tcc_compiler.language.ast.leaves import Pattern, Text, Value, Word
from tcc_compiler.language.ast.statements import (
    ExampleStatement,
    ForbidStatement,
    GoalStatement,
    LimitStatement,
    Pair,
    PlanStatement,
    RequireStatement,
    RuleStatement,
    StartStatement,
    Statement,
    ToolStatement,
    UseStatement,
)
from tcc_compiler.language.ast.tools import Amount, OpenDeclaration, ParameterDeclaration
from tcc_compiler.language.spans import Region

Kind: TypeAlias = Literal["tool", "rule", "parameter", "value", "state", "file"]


@frozen
class Occurrence:
    """A name in a text.

    Attributes:
        kind: what it names.
        key: the name; before it that of the tool, and of the parameter, which it belongs to.
        region: its characters, with its quotes.
        defines: whether this is where it is declared.
    """

    kind: Kind
    key: tuple[str, ...]
    region: Region
    defines: bool = False


def occurrences_of(statements: Sequence[Statement]) -> tuple[Occurrence, ...]:
    """Every name of some statements, in their order."""
    rules = frozenset(s.name.text for s in statements if isinstance(s, RuleStatement))
    tools = frozenset(s.name.text for s in statements if isinstance(s, ToolStatement))
    reader = _Reader(rules - tools)
    return tuple(found for statement in statements for found in reader.read(statement))


@frozen(kw_only=False)
class _Reader:
    rules: frozenset[str]

    def read(self, statement: Statement) -> Iterator[Occurrence]:
        """The names of one statement."""
        match statement:
            case ToolStatement():
                yield from _tool(statement)
            case RuleStatement():
                yield _named("rule", statement.name, defines=True)
                yield from self._expression(statement.body)
            case PlanStatement():
                yield from self._expression(statement.body)
            case UseStatement():
                yield _file(statement.path)
            case StartStatement():
                yield _named("state", statement.state)
            case GoalStatement():
                yield from (_named("state", state) for state in statement.states)
            case LimitStatement():
                yield from _limit(statement)
            case RequireStatement():
                first, second = statement.first, statement.second
                yield from (*_pattern(first), *_pattern(second))
                yield from _same(statement.same, first, second)
            case ForbidStatement():
                for pattern in statement.patterns:
                    yield from _pattern(pattern)
                yield from _same(statement.same, statement.patterns[0], statement.patterns[-1])
            case ExampleStatement():
                for pattern in statement.patterns:
                    yield from _pattern(pattern)
            case _:
                pass

    def _expression(self, body: Expression) -> Iterator[Occurrence]:
        for node in postorder(body):
            if not isinstance(node, Reference):
                continue
            pattern = node.pattern
            if pattern.name.text in self.rules and not pattern.arguments:
                yield _named("rule", pattern.name)
            else:
                yield from _pattern(pattern)


def _tool(tool: ToolStatement) -> Iterator[Occurrence]:
    name = tool.name.text
    yield _named("tool", tool.name, defines=True)
    for parameter in (*tool.parameters, *tool.opened, *tool.observed):
        yield from _declared(name, parameter)
    for state in tool.signature or ():
        yield _named("state", state, defines=True)
    for attribute in tool.attributes:
        if isinstance(attribute, Amount):
            yield from _amount(name, attribute)


def _declared(tool: str, parameter: ParameterDeclaration | OpenDeclaration) -> Iterator[Occurrence]:
    yield _named("parameter", parameter.name, tool, defines=True)
    if isinstance(parameter, ParameterDeclaration):
        for value in parameter.domain.values:
            yield _value(tool, parameter.name, value, defines=True)


def _amount(tool: str, amount: Amount) -> Iterator[Occurrence]:
    for arithmetic in (amount.low, amount.high):
        for part in arithmetic.code if arithmetic is not None else ():
            if isinstance(part, Word):
                yield _named("parameter", part, tool)
    if amount.when is not None:
        yield _named("parameter", amount.when.name, tool)
        for value in amount.when.values:
            yield _value(tool, amount.when.name, value)


def _limit(limit: LimitStatement) -> Iterator[Occurrence]:
    if limit.pattern is not None:
        yield from _pattern(limit.pattern)
        if limit.per is not None:
            yield _named("parameter", limit.per, limit.pattern.name.text)
    if limit.total is not None:
        tool, parameter = limit.total
        yield _named("tool", tool)
        yield _named("parameter", parameter, tool.text)


def _same(pairs: Sequence[Pair], first: Pattern, second: Pattern) -> Iterator[Occurrence]:
    for pair in pairs:
        yield _named("parameter", pair.first, first.name.text)
        yield _named("parameter", pair.second, second.name.text)


def _pattern(pattern: Pattern) -> Iterator[Occurrence]:
    yield _named("tool", pattern.name)
    for argument in pattern.arguments:
        yield _named("parameter", argument.name, pattern.name.text)
        for value in argument.values:
            yield _value(pattern.name.text, argument.name, value)


def _named(kind: Kind, name: Word, *owner: str, defines: bool = False) -> Occurrence:
    return Occurrence(kind=kind, key=(*owner, name.text), region=name.region, defines=defines)


def _value(tool: str, parameter: Word, value: Value, *, defines: bool = False) -> Occurrence:
    key = (tool, parameter.text, value.text)
    return Occurrence(kind="value", key=key, region=value.region, defines=defines)


def _file(path: Text) -> Occurrence:
    return Occurrence(kind="file", key=(path.value,), region=path.region)
