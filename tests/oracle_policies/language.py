"""A grammar of language 1.2 as a structure: what a writer of policies says, before it is text.

Nothing here is read by, or from, the compiler.  The plan is ``any*``, and a limit on depth ends it.
Values are JSON values; a number is an int, a float or a Decimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

# What is given and answered.


@dataclass(frozen=True, kw_only=True)
class Type:
    """The type of an open field.

    Attributes:
        kind: ``text integer number flag json time date list record``.
        low, high: bounds of a number; of a text its length, of a list its size, of json its bytes.
        pattern: of a text.
        zone: of a time or date without one: ``utc``, ``+hh:mm``; None where it is another type.
        distinct, of: of a list, its elements.
        fields: of a record.
    """

    kind: str
    low: Any = None
    high: Any = None
    pattern: str | None = None
    zone: str | None = None
    distinct: bool = False
    of: Type | None = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Field:
    """An argument, an answer, a field of a record, or a given attribute.

    Attributes:
        values: listed ones; None of an open field.
        type: of an open field.
        null: ``or null``.
        place: a pointer, without which it is the member of that name.
        answer: of the answer, not an argument.
        rest: a listed answer takes ``*``, whatever is not listed.
    """

    name: str
    values: tuple[Any, ...] | None = None
    type: Type | None = None
    optional: bool = False
    null: bool = False
    place: str | None = None
    answer: bool = False
    rest: bool = False

    @property
    def listed(self) -> bool:
        """Whether it is part of the call."""
        return self.values is not None


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool and all its fields: listed and open arguments, listed and open answers."""

    name: str
    fields: tuple[Field, ...] = ()
    errors: bool = False  # errors mean failed
    parallel: bool = False

    def field(self, name: str) -> Field:
        """The field of a name."""
        return next(field for field in self.fields if field.name == name)

    def names(self, *, answer: bool) -> list[str]:
        """Names of its arguments, or of its answers."""
        return [field.name for field in self.fields if field.answer is answer]


class _Rest:
    """The value of a listed answer that is not listed: `*`."""

    def __repr__(self) -> str:
        return "*"


REST = _Rest()
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


# Sets of calls.


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """The calls of a tool with one of the values in each field that is named."""

    tool: str
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Any_:
    """All calls."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """The calls of a rule."""

    rule: str
    of: Calls


@dataclass(frozen=True, kw_only=True)
class Either:
    """The calls of any of the sets."""

    sets: tuple[Calls, ...]


@dataclass(frozen=True, kw_only=True)
class But:
    """The calls of one set that are not of another."""

    one: Calls
    other: Calls


Calls: TypeAlias = "Pattern | Any_ | Named | Either | But"


def tools_of(calls: Calls, tools: Sequence[Tool]) -> list[str]:
    """The tools that a set names, of which its calls can be."""
    match calls:
        case Pattern(tool=tool):
            return [tool]
        case Any_():
            return [tool.name for tool in tools]
        case Named(of=of):
            return tools_of(of, tools)
        case Either(sets=sets):
            found = [name for one in sets for name in tools_of(one, tools)]
            return list(dict.fromkeys(found))
        case But(one=one):
            return tools_of(one, tools)


# Terms.


@dataclass(frozen=True, kw_only=True)
class Const:
    """A constant; a duration is a number of milliseconds with its unit.  `kind` as of a type."""

    value: Any
    unit: str | None = None


@dataclass(frozen=True, kw_only=True)
class Of:
    """A field of the call decided on (`scope` own), of the earlier one (seen), or an element.

    Attributes:
        scope: ``own``, ``seen``, or the name of an element that ``as`` made.
        name: of the field; None is the element itself.
        part: of a list of records the field of each.
    """

    scope: str
    name: str | None
    part: str | None = None


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """``session.x``."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Now:
    """The time of the decision."""


@dataclass(frozen=True, kw_only=True)
class Linear:
    """A sum of terms, each with a factor."""

    parts: tuple[tuple[Any, Term], ...]


@dataclass(frozen=True, kw_only=True)
class Max:
    """The greater of two."""

    one: Term
    other: Term


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many elements a list has, or how many are so related."""

    of: ListTerm
    op: str | None = None
    than: Term | None = None
    pattern: str | None = None
    among: ListTerm | None = None


@dataclass(frozen=True, kw_only=True)
class Look:
    """``x(t, ..).f``."""

    name: str
    keys: tuple[Term, ...]
    field: str


@dataclass(frozen=True, kw_only=True)
class Constants:
    """``("a", "b")``."""

    values: tuple[Any, ...]


Term: TypeAlias = "Const | Of | Attribute | Now | Linear | Max | Count | Look"
ListTerm: TypeAlias = "Of | Attribute | Look | Constants"


# Relations.


@dataclass(frozen=True, kw_only=True)
class Compare:
    """``t op t``; `maybe`: ``f? op t``, which holds where f is none."""

    op: str
    left: Term
    right: Term
    maybe: bool = False


@dataclass(frozen=True, kw_only=True)
class In:
    """``t in LIST``, ``t not in LIST``."""

    left: Term
    right: ListTerm
    negated: bool = False
    maybe: bool = False


@dataclass(frozen=True, kw_only=True)
class Like:
    """``t ~ "PATTERN"``, ``t !~ "PATTERN"``."""

    left: Term
    pattern: str
    negated: bool = False
    maybe: bool = False


@dataclass(frozen=True, kw_only=True)
class Every:
    """``every LIST R t``: `each` is R, about the element ``""``."""

    of: ListTerm
    each: Compare | In | Like


@dataclass(frozen=True, kw_only=True)
class Group:
    """``some L as a (R, ..)``, ``every L as a, M as b (R, ..)``; `every` says which."""

    every: bool
    lists: tuple[tuple[ListTerm, str], ...]
    relations: tuple[Relation, ...]


Relation: TypeAlias = "Compare | In | Like | Every | Group"
ELEMENT = ""  # the scope of the element that `every LIST R t` and `count` speak of


# Statements.


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """``[last] [n] SET [same ..] [where ..] [within D]``; `calls` None: ``where R, ..`` alone."""

    calls: Calls | None
    last: bool = False
    least: int = 1
    same: tuple[tuple[str, Term], ...] = ()
    where: tuple[Relation, ...] = ()
    within: int | None = None  # milliseconds


@dataclass(frozen=True, kw_only=True)
class Require:
    """``require ALT or .. before [each] SET``."""

    alternatives: tuple[Alternative, ...]
    before: Calls
    each: bool = False
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Owed:
    """``require A after B same f, g = h``: `same` pairs a field of A with a term of B."""

    calls: Calls
    after: Calls
    same: tuple[tuple[str, Term], ...] = ()
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Forbid:
    """``forbid ALT or .. before SET unless ALT or ..``."""

    alternatives: tuple[Alternative, ...]
    before: Calls
    unless: tuple[Alternative, ...] = ()
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Apart:
    """``forbid A with B same ..``."""

    one: Calls
    other: Calls
    same: tuple[tuple[str, Term], ...] = ()
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """``forbid P P ..``."""

    sets: tuple[Calls, ...]


@dataclass(frozen=True, kw_only=True)
class Uses:
    """``limit uses(SET where R) per TERM <= n within D``; `least`: ``>= n``, of listed fields."""

    calls: Calls
    most: int
    where: tuple[Relation, ...] = ()
    per: tuple[Term, ...] = ()
    within: int | None = None
    least: bool = False
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Sum:
    """``limit sum(tool.f) per TERM <= x within D``."""

    tool: str
    field: str
    most: Any
    per: tuple[Term, ...] = ()
    within: int | None = None
    monitor: bool = False


@dataclass(frozen=True, kw_only=True)
class Depth:
    """``limit depth <= n``."""

    most: int


Statement: TypeAlias = "Require | Owed | Forbid | Apart | Neighbours | Uses | Sum | Depth"


@dataclass(frozen=True, kw_only=True)
class Let:
    """``let x = t.f or u.g``."""

    name: str
    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class LookUp:
    """``let x(k, ..) = SET``, or of rows: ``let x(k, ..) = t.rows | u.rows``."""

    name: str
    keys: tuple[str, ...]
    calls: Calls | None = None
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """All of it; `rules` are sets with names."""

    tools: tuple[Tool, ...]
    statements: tuple[Statement, ...]
    given: tuple[Field, ...] = ()
    lets: tuple[Let | LookUp, ...] = ()
    rules: tuple[Named, ...] = ()

    def tool(self, name: object) -> Tool | None:
        """The tool of a name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def depth(self) -> int:
        """Most calls of a plan."""
        return min(one.most for one in self.statements if isinstance(one, Depth))

    def without(self, statement: Statement) -> Grammar:
        """The same less one statement."""
        left = tuple(one for one in self.statements if one is not statement)
        return replace(self, statements=left)


# What a statement speaks of.


def terms_in(term: Term | ListTerm | None) -> Iterator[Term | ListTerm]:
    """A term and all terms inside of it."""
    if term is None:
        return
    yield term
    match term:
        case Linear(parts=parts):
            for _, part in parts:
                yield from terms_in(part)
        case Max(one=one, other=other):
            yield from terms_in(one)
            yield from terms_in(other)
        case Count(of=of, than=than, among=among):
            yield from terms_in(of)
            yield from terms_in(than)
            yield from terms_in(among)
        case Look(keys=keys):
            for key in keys:
                yield from terms_in(key)


def terms_of(relation: Relation) -> Iterator[Term | ListTerm]:
    """All terms of a relation."""
    match relation:
        case Compare(left=left, right=right) | In(left=left, right=right):
            yield from terms_in(left)
            yield from terms_in(right)
        case Like(left=left):
            yield from terms_in(left)
        case Every(of=of, each=each):
            yield from terms_in(of)
            yield from terms_of(each)
        case Group(lists=lists, relations=relations):
            for one, _ in lists:
                yield from terms_in(one)
            for inner in relations:
                yield from terms_of(inner)
