"""The tree of a grammar: leaves, expressions, what tools declare, statements; each with its region.

Normative text: docs/spec/language.md.  Operators that take many operands are flat, so the height of
a tree is the number of times its operators change; no tree is higher than the limit of the parser.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from tcc_compiler.frozen import frozen
from tcc_compiler.language.source import Region


@frozen(kw_only=False)
class Word:
    """A name: the text that it is, which may stand in quotes.

    Attributes:
        quoted: whether it does.
    """

    text: str
    region: Region
    quoted: bool = False


@frozen(kw_only=False)
class Text:
    """The characters that a string literal stands for."""

    value: str
    region: Region


@frozen(kw_only=False)
class Number:
    """A number with its sign, exact."""

    value: Fraction
    region: Region


@frozen(kw_only=False)
class Value:
    """A value of a parameter: its canonical text, and its number where it is one.

    Attributes:
        quoted: whether it stands in quotes.
    """

    text: str
    number: Fraction | None
    region: Region
    quoted: bool = False


@frozen(kw_only=False)
class Argument:
    """``parameter = value | value`` of a pattern."""

    name: Word
    values: tuple[Value, ...]


@frozen(kw_only=False)
class Pattern:
    """A name, perhaps with arguments: a tool pattern, or in an expression the name of a rule."""

    name: Word
    arguments: tuple[Argument, ...]
    region: Region


# Expressions over patterns, and the way to walk them.


@frozen(kw_only=False)
class NoCall:
    """``()``, the empty sequence."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class AnyCall:
    """``any``."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class Reference:
    """A tool pattern or a rule."""

    pattern: Pattern
    region: Region
    height: int = 0


@frozen(kw_only=False)
class Many:
    """Two operands or more of one operator; none of them has the same operator on top."""

    kind: Literal["seq", "alt", "and"]
    items: tuple[Expression, ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Minus:
    """The base without what the others derive; the base is no Minus."""

    base: Expression
    others: tuple[Expression, ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Repeated:
    """``body`` at least `low` times and at most `high`; None is without end."""

    body: Expression
    low: Number
    high: Number | None
    region: Region
    height: int


Expression: TypeAlias = NoCall | AnyCall | Reference | Many | Minus | Repeated


def postorder(expression: Expression) -> list[Expression]:
    """The nodes of a tree, operands before their operator, in the order of the text."""
    nodes: list[Expression] = []
    todo = [expression]
    while todo:
        node = todo.pop()
        nodes.append(node)
        todo.extend(operands(node))
    nodes.reverse()
    return nodes


def operands(node: Expression) -> tuple[Expression, ...]:
    """What an operator is applied to, in the order of the text."""
    match node:
        case Many():
            return node.items
        case Minus():
            return (node.base, *node.others)
        case Repeated():
            return (node.body,)
        case _:
            return ()


# What a tool is declared with: its parameters, its amounts and its other attributes.


@frozen(kw_only=False)
class Arithmetic:
    """An arithmetic expression in postfix order.

    Attributes:
        code: numbers and names push; ``+``, ``-``, ``*`` take two; ``~`` turns the sign of one.
        height: how deeply signs and parentheses are nested.
    """

    code: tuple[Fraction | Word | Literal["+", "-", "*", "~"], ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Condition:
    """``when parameter = value | value``."""

    name: Word
    values: tuple[Value, ...]


@frozen
class Amount:
    """``cost``, ``price``, ``latency`` or ``epsilon`` of a tool; `high` only of a cost interval."""

    kind: str
    low: Arithmetic
    high: Arithmetic | None
    unit: str | None
    when: Condition | None
    region: Region


@frozen(kw_only=False)
class Doc:
    """``doc "text"``."""

    text: Text
    region: Region


@frozen(kw_only=False)
class Quotes:
    """``quotes same``."""

    region: Region


@frozen(kw_only=False)
class Strict:
    """``strict``."""

    region: Region


@frozen(kw_only=False)
class Errors:
    """``errors mean failed``; with a pattern, texts that match it are errors, too."""

    region: Region
    text: Text | None = None


@frozen(kw_only=False)
class Parallel:
    """``parallel``."""

    region: Region


@frozen(kw_only=False)
class BindMcp:
    """``bind mcp "server" "tool"``."""

    server: Text
    tool: Text
    region: Region


@frozen(kw_only=False)
class BindPython:
    """``bind python "module:function"``."""

    target: Text
    region: Region


@frozen(kw_only=False)
class ModelPart:
    """A member of a model: a number with its unit, or the text of ``adapter``."""

    kind: str
    number: Number | None
    unit: str | None
    text: Text | None
    region: Region


@frozen(kw_only=False)
class ModelAtom:
    """``atom laplace(2, 1) times 3``: the mechanism that a model privatises with."""

    mechanism: Word
    numbers: tuple[Number, ...]
    times: Number | None
    region: Region
    kind: str = "atom"


@frozen(kw_only=False)
class ModelExecute:
    """``execute``, or ``execute { .. }`` with what differs from what asking takes."""

    parts: tuple[ModelPart | ModelAtom, ...]
    region: Region
    kind: str = "execute"


@frozen(kw_only=False)
class Model:
    """``model NAME { .. }``."""

    name: Word
    parts: tuple[ModelPart | ModelAtom | ModelExecute, ...]
    region: Region


Attribute: TypeAlias = (
    Amount | Doc | Quotes | Strict | Errors | Parallel | BindMcp | BindPython | Model
)


@frozen(kw_only=False)
class Domain:
    """The values of a parameter: listed, or the ends of an integer range.

    Attributes:
        rest: the `*` that stands for whatever is not listed.
    """

    values: tuple[Value, ...]
    ends: tuple[Number, Number] | None
    region: Region
    rest: Region | None = None


@frozen(kw_only=False)
class ParameterDeclaration:
    """``name: domain``, or ``name?: domain``.

    Attributes:
        nullable: ``or null``.
        at: the pointer to its place.
    """

    name: Word
    domain: Domain
    optional: bool = False
    nullable: Region | None = None
    at: Text | None = None


@frozen
class TypePart:
    """What limits a type: ``min n``, ``max n``, ``~ "pattern"`` or ``LOW .. HIGH``.

    Attributes:
        kind: ``min``, ``max``, ``~`` or ``..``.
        numbers: one, none, or the two ends.
    """

    kind: str
    numbers: tuple[Number, ...]
    text: Text | None
    region: Region


@frozen
class TypeTerm:
    """A type: its word with what limits it, and what it is made of.

    Attributes:
        name: of a record ``record``.
        of: of the elements of a list.
        fields: of a record.
        zone: of a time or a date, ``utc`` or an offset.
    """

    name: Word
    parts: tuple[TypePart, ...] = ()
    of: TypeTerm | None = None
    fields: tuple[OpenDeclaration | ParameterDeclaration, ...] = ()
    zone: Text | None = None
    region: Region
    height: int = 0


@frozen
class OpenDeclaration:
    """``name: type``, or ``name?: type``, behind the semicolon.

    Attributes:
        made: the type as a whole; `type` is its word, `parts` what limits it.
        nullable: ``or null``.
        at: the pointer to its place.
    """

    name: Word
    optional: bool
    type: Word
    parts: tuple[TypePart, ...]
    made: TypeTerm
    nullable: Region | None = None
    at: Text | None = None


@frozen
class Parameters:
    """What stands in the parentheses of a tool.

    Attributes:
        opened: behind the semicolon; a listed one that stands there has no place in it.
    """

    listed: tuple[ParameterDeclaration, ...] = ()
    opened: tuple[OpenDeclaration | ParameterDeclaration, ...] = ()


# The statements.


@frozen(kw_only=False)
class GrammarStatement:
    """``grammar NAME version "V"``."""

    name: Word
    version: Text
    region: Region


@frozen(kw_only=False)
class CurrencyStatement:
    """``currency "label"``."""

    label: Text
    region: Region


@frozen(kw_only=False)
class UseStatement:
    """``use "file"``."""

    path: Text
    region: Region


@frozen(kw_only=False)
class ToolStatement:
    """``tool NAME(listed; opened) gives (observed; answers) : takes -> gives { attributes }``."""

    name: Word
    parameters: tuple[ParameterDeclaration, ...]
    opened: tuple[OpenDeclaration | ParameterDeclaration, ...]
    observed: tuple[ParameterDeclaration, ...]
    signature: tuple[Word, Word] | None
    attributes: tuple[Attribute, ...]
    region: Region
    answers: tuple[OpenDeclaration | ParameterDeclaration, ...] = ()


@frozen(kw_only=False)
class RuleStatement:
    """``rule NAME = body``."""

    name: Word
    body: Expression
    region: Region


@frozen(kw_only=False)
class PlanStatement:
    """``plan = body``."""

    body: Expression
    region: Region


@frozen(kw_only=False)
class StartStatement:
    """``start STATE``."""

    state: Word
    region: Region


@frozen(kw_only=False)
class GoalStatement:
    """``goal S1 | S2``."""

    states: tuple[Word, ...]
    region: Region


@frozen(kw_only=False)
class LimitStatement:
    """``limit KIND <= number``; `pattern` for uses, `unit` for latency.

    Attributes:
        per: the parameter of ``uses(P) per p``.
        total: the tool and the parameter of ``sum(tool.p)``.
    """

    kind: str
    op: str
    number: Number
    unit: str | None
    pattern: Pattern | None
    region: Region
    per: Word | None = None
    total: tuple[Word, Word] | None = None


@frozen(kw_only=False)
class Pair:
    """A pair of ``same``: a parameter of the first pattern, and one of the second."""

    first: Word
    second: Word


@frozen(kw_only=False)
class RequireStatement:
    """``require A before B``, ``before each B`` (order ``each``) or ``after B``."""

    order: str
    first: Pattern
    second: Pattern
    region: Region
    same: tuple[Pair, ...] = ()


@frozen(kw_only=False)
class ForbidStatement:
    """``forbid P1 P2 ..`` (order ``next``), ``forbid A with B`` or ``forbid A before B``."""

    patterns: tuple[Pattern, ...]
    order: str
    region: Region
    same: tuple[Pair, ...] = ()


# Statements of policies: what says more than a pattern, a pair of names and a number.


@frozen(kw_only=False)
class AnySet:
    """``any``."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class SetOf:
    """Sets of calls with one operator: ``|``, or ``-`` from the left."""

    op: Literal["|", "-"]
    items: tuple[CallsTerm, ...]
    region: Region
    height: int


CallsTerm: TypeAlias = Pattern | AnySet | SetOf


@frozen(kw_only=False)
class Constant:
    """A number, a duration or a text.

    Attributes:
        unit: of a duration; its number is `number`.
    """

    text: str
    number: Fraction | None
    unit: str | None
    region: Region
    height: int = 0


@frozen(kw_only=False)
class FieldTerm:
    """``f``, ``f.part``, ``own.f``, ``seen.f``, ``seen.f.part``, ``session.f``.

    Attributes:
        scope: ``own``, ``seen``, ``session``; empty where the field stands bare.
    """

    scope: str
    names: tuple[Word, ...]
    region: Region
    height: int = 0


@frozen(kw_only=False)
class LookedUp:
    """``name(key, ..).field``."""

    name: Word
    keys: tuple[Term, ...]
    field: Word
    region: Region
    height: int


@frozen(kw_only=False)
class Now:
    """``now``."""

    region: Region
    height: int = 0


@frozen(kw_only=False)
class SumTerm:
    """Terms with their signs, added up."""

    parts: tuple[tuple[int, Term], ...]
    region: Region
    height: int


@frozen(kw_only=False)
class ProductTerm:
    """Terms multiplied."""

    parts: tuple[Term, ...]
    region: Region
    height: int


@frozen(kw_only=False)
class Greater:
    """``max(a, b)``."""

    one: Term
    other: Term
    region: Region
    height: int


@frozen(kw_only=False)
class CountTerm:
    """``count(LIST)``, ``count(LIST R t)``."""

    of: Term
    tail: Compared | None
    region: Region
    height: int


@frozen(kw_only=False)
class GroupTerm:
    """A term in parentheses."""

    inner: Term
    region: Region
    height: int


Term: TypeAlias = (
    Constant | FieldTerm | LookedUp | Now | SumTerm | ProductTerm | Greater | CountTerm | GroupTerm
)


@frozen(kw_only=False)
class Compared:
    """The operator of a relation and what stands behind it.

    Attributes:
        op: ``= != < <= > >= in ~``, perhaps after ``not``.
        terms: one; those of a list of constants.
        listed: whether they stand in parentheses as a list.
        text: the pattern behind a ``~``.
    """

    op: str
    negated: bool
    terms: tuple[Term, ...]
    listed: bool
    text: Text | None
    region: Region
    height: int


@frozen(kw_only=False)
class Comparison:
    """``t R u``; `maybe` where a ``?`` stands behind t."""

    left: Term
    maybe: bool
    tail: Compared
    region: Region
    height: int


@frozen(kw_only=False)
class EveryElement:
    """``every LIST R t``."""

    of: Term
    tail: Compared
    region: Region
    height: int


@frozen(kw_only=False)
class Elements:
    """``every L as a, M as b (R, ..)``, ``some L as a (R, ..)``."""

    every: bool
    lists: tuple[tuple[Term, Word], ...]
    relations: tuple[RelationTerm, ...]
    region: Region
    height: int


RelationTerm: TypeAlias = Comparison | EveryElement | Elements


@frozen(kw_only=False)
class Duration:
    """``24 h`` behind `within`."""

    number: Number
    unit: str
    region: Region


@frozen(kw_only=False)
class KeyPair:
    """A pair of ``same``: a field of the earlier call, and a term of the one decided on."""

    first: Word
    second: Term | None


@frozen
class Alternative:
    """``[last | n] SET [same ..] [where ..] [within D]``; without a set it is of the call itself.

    Attributes:
        count: the number before the set.
        keys: the pairs of ``same``.
    """

    calls: CallsTerm | None
    last: bool
    count: Number | None
    keys: tuple[KeyPair, ...]
    where: tuple[RelationTerm, ...]
    within: Duration | None
    region: Region


@frozen
class PolicyStatement:
    """A `require`, a `forbid` or a `limit` in a form of language 1.2.

    Attributes:
        kind: ``require``, ``forbid``, ``uses`` or ``sum``.
        order: of a require ``before``, ``each``, ``after``, ``where``; of a forbid ``before``,
            ``with``, ``next``; of a limit ``<=`` or ``>=``.
        before: what stands before the `before`; of the other orders and of ``uses`` one alternative
            for each set, in the order of the text.
        calls: B; None where there is none.
        keys: the ``same`` behind B.
        total: the tool and the field of ``sum``.
        number: of a limit.
        monitored: whether the statement begins with `monitor`.
        word: the reserved word that it begins with, and where.
    """

    kind: str
    order: str
    before: tuple[Alternative, ...]
    calls: CallsTerm | None
    region: Region
    word: Word
    keys: tuple[KeyPair, ...] = ()
    unless: tuple[Alternative, ...] = ()
    total: tuple[Word, Word] | None = None
    per: tuple[Term, ...] = ()
    number: Number | None = None
    within: Duration | None = None
    across: Region | None = None
    monitored: Region | None = None


@frozen(kw_only=False)
class MonitorStatement:
    """``monitor`` before a statement of language 1.1."""

    statement: RequireStatement | ForbidStatement | LimitStatement
    region: Region


@frozen(kw_only=False)
class GivenStatement:
    """``given user: text, role: agent | supervisor``."""

    attributes: tuple[OpenDeclaration | ParameterDeclaration, ...]
    region: Region


@frozen
class LetStatement:
    """``let x = t.f or u.g``, ``let x(k) = SET``, ``let x(k) = t.rows | u.rows``.

    Attributes:
        keys: of a look-up.
        sources: a tool and a field each.
        calls: of a look-up by calls.
    """

    name: Word
    keys: tuple[Word, ...]
    sources: tuple[tuple[Word, Word], ...]
    calls: CallsTerm | None
    region: Region


@frozen(kw_only=False)
class PassStatement:
    """``pass resources, prompts``."""

    words: tuple[Word, ...]
    region: Region


@frozen(kw_only=False)
class ExampleStatement:
    """``accept ..`` or ``reject ..``; no pattern stands for the empty plan."""

    accept: bool
    patterns: tuple[Pattern, ...]
    region: Region


@frozen(kw_only=False)
class ExpectStatement:
    """``expect WHAT OP number``."""

    what: str
    op: str
    number: Number
    region: Region


@frozen(kw_only=False)
class ExactStatement:
    """``expect never S``, ``expect reachable P`` or ``expect implies "file"``: an exact question.

    Attributes:
        asked: what the words behind ``expect`` say; of a file its name.
        forbid: the `forbid` whose patterns and pairs these are; None of a file.
        path: the file.
    """

    kind: Literal["never", "reachable", "implies"]
    asked: Region
    forbid: Statement | None
    path: Text | None
    region: Region


@frozen(kw_only=False)
class Broken:
    """A statement with an error in it: its first word, and the names that it would have defined."""

    keyword: str
    names: tuple[Word, ...]
    region: Region


Statement: TypeAlias = (
    GrammarStatement
    | CurrencyStatement
    | UseStatement
    | ToolStatement
    | RuleStatement
    | PlanStatement
    | StartStatement
    | GoalStatement
    | LimitStatement
    | RequireStatement
    | ForbidStatement
    | ExampleStatement
    | ExpectStatement
    | ExactStatement
    | PolicyStatement
    | MonitorStatement
    | GivenStatement
    | LetStatement
    | PassStatement
    | Broken
)
