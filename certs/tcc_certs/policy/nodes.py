"""Nodes of statements, conditions, terms, collections and sets of calls.

A core keeps the form that its author wrote, so each form of the language has a node class.  A class
declares its JSON tag, its members and its canonical text.  Conditions, terms, collections and sets
of calls share one family of nodes.  :mod:`tcc_certs.policy.kinds` decides which node is allowed at
which place.

The JSON of a node is ``[tag, member, ..]``.  Normative text: docs/spec/core.md, section "Nodes".
Functions recurse at most as deep as the reader allows nodes to nest (`MAX_NESTED`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from tcc_certs.errors import escaped_json
from tcc_certs.formats.codec import Json, encode
from tcc_certs.values.fields import zone_of

MAX_NESTED = 80  # the deepest nesting of nodes in a core

# Levels of binding, from the loosest. A looser form gets brackets inside a tighter form.
OR, NEGATED, COMPARED, MODIFIED, SUM, PRODUCT, UNION, SIGN, POSTFIX, ATOM = range(10)

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "~", "!~", "in", "not in", "under", "not under")
CLOCKS = frozenset({"hour", "weekday", "day"})
FUNCTIONS: Mapping[str, tuple[int, int]] = {  # the least and the greatest number of arguments
    "last": (1, 1),
    "count": (1, 1),
    "distinct": (1, 1),
    "sum": (1, 2),
    "min": (1, 2),
    "max": (1, 2),
    "pairs": (2, 2),
    "host": (1, 1),
    "hour": (1, 2),
    "weekday": (1, 2),
    "day": (1, 2),
}
UNITS: Mapping[str, int] = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
TOTALS = ("depth", "price", "cost", "latency", "epsilon")
SHORT_TOTAL = 15  # most characters of a whole number that a core writes as a JSON number

_T = TypeVar("_T")


class Name(str):
    """A name in a text; :func:`written` puts it in backticks where the grammar requires them."""

    __slots__ = ()


class Place(str):
    """An empty piece of text; the words of `words` are keywords if they come directly after it."""

    __slots__ = ("words",)

    words: frozenset[str]


def _place(*words: str) -> Place:
    place = Place()
    place.words = frozenset(words)
    return place


_CONDITION = _place("not", "no", "every", "unused")
_ARGUMENT = _place("not", "no", "every", "unused", "same")
_ARM = _place("else")


Piece: TypeAlias = "str | Name | Place"
Pieces: TypeAlias = "list[Piece]"


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a statement.

    A subclass declares its JSON tag, and a shape with a letter for each member: ``s`` a text, ``b``
    a flag, ``n`` a node.  The last member may be ``S`` texts, ``N`` nodes (at least one) or ``M``
    nodes (any number).
    """

    TAG: ClassVar[str] = ""
    SHAPE: ClassVar[str] = ""
    LEVEL: ClassVar[int] = ATOM

    def pieces(self, out: Pieces) -> None:
        """Append the canonical text in pieces."""
        raise NotImplementedError


# Atoms.


@dataclass(frozen=True, slots=True)
class Word(Node):
    """A bare name: a parameter, a `let`, a field, a tool or a listed value.

    :mod:`tcc_certs.policy.kinds` resolves it by its place.
    """

    name: str
    TAG, SHAPE = "name", "s"

    def pieces(self, out: Pieces) -> None:
        out.append(Name(self.name))


@dataclass(frozen=True, slots=True)
class This(Node):
    """The call being decided."""

    TAG = "this"

    def pieces(self, out: Pieces) -> None:
        out.append("this")


@dataclass(frozen=True, slots=True)
class It(Node):
    """The element that the innermost filter tests."""

    TAG = "it"

    def pieces(self, out: Pieces) -> None:
        out.append("it")


@dataclass(frozen=True, slots=True)
class Now(Node):
    """The time of the decision."""

    TAG = "now"

    def pieces(self, out: Pieces) -> None:
        out.append("now")


@dataclass(frozen=True, slots=True)
class Session(Node):
    """An attribute of the session."""

    name: str
    TAG, SHAPE = "session", "s"

    def pieces(self, out: Pieces) -> None:
        out += ["session", ".", Name(self.name)]


@dataclass(frozen=True, slots=True)
class AnyTool(Node):
    """The calls of all tools."""

    TAG = "any"

    def pieces(self, out: Pieces) -> None:
        out.append("any")


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A constant text."""

    value: str
    TAG, SHAPE = "s", "s"

    def pieces(self, out: Pieces) -> None:
        out.append(quoted(self.value))


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A constant number, as a canonical decimal."""

    value: str
    TAG, SHAPE = "n", "s"

    def pieces(self, out: Pieces) -> None:
        out.append(self.value)

    @property
    def LEVEL(self) -> int:  # type: ignore[override]
        return SIGN if self.value[:1] == "-" else ATOM


@dataclass(frozen=True, slots=True)
class Flag(Node):
    """``true`` or ``false``."""

    value: bool
    TAG, SHAPE = "b", "b"

    def pieces(self, out: Pieces) -> None:
        out.append("true" if self.value else "false")


@dataclass(frozen=True, slots=True)
class Null(Node):
    """``null``."""

    TAG = "null"

    def pieces(self, out: Pieces) -> None:
        out.append("null")


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A constant duration, in the unit that the author wrote."""

    amount: str
    unit: str
    TAG, SHAPE = "span", "ss"

    def pieces(self, out: Pieces) -> None:
        out.append(f"{self.amount} {self.unit}")


# Forms that take others.


@dataclass(frozen=True, slots=True)
class Get(Node):
    """A field of a call, of a record, of an element, or of each element of a collection."""

    of: Node
    name: str
    TAG, SHAPE, LEVEL = "get", "ns", POSTFIX

    def pieces(self, out: Pieces) -> None:
        _inside(self.of, POSTFIX, out)
        out += [".", Name(self.name)]


@dataclass(frozen=True, slots=True)
class Where(Node):
    """The elements of a collection for which all conditions are true, or a `let` with arguments."""

    of: Node
    conditions: tuple[Node, ...]
    TAG, SHAPE, LEVEL = "where", "nN", POSTFIX

    def pieces(self, out: Pieces) -> None:
        _inside(self.of, POSTFIX, out)
        _arguments(self.conditions, out)


@dataclass(frozen=True, slots=True)
class Same(Node):
    """The condition that fields of the element equal these fields of the call being decided."""

    names: tuple[str, ...]
    TAG, SHAPE = "same", "S"

    def pieces(self, out: Pieces) -> None:
        out += ["same", " "]
        if len(self.names) == 1:
            out.append(Name(self.names[0]))
            return
        out.append("(")
        for at, name in enumerate(self.names):
            out += [", ", Name(name)] if at else [Name(name)]
        out.append(")")


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """A function of `FUNCTIONS` with its arguments."""

    function: str
    arguments: tuple[Node, ...]
    TAG, SHAPE, LEVEL = "call", "sN", POSTFIX

    def pieces(self, out: Pieces) -> None:
        out.append(self.function)
        _arguments(self.arguments, out)


@dataclass(frozen=True, slots=True)
class Within(Node):
    """The calls of a collection that were decided at most this duration ago."""

    of: Node
    amount: str
    unit: str
    TAG, SHAPE, LEVEL = "within", "nss", MODIFIED

    def pieces(self, out: Pieces) -> None:
        _inside(self.of, MODIFIED, out)
        out.append(f" within {self.amount} {self.unit}")


@dataclass(frozen=True, slots=True)
class Since(Node):
    """The calls of a collection after the last call of `mark`."""

    of: Node
    mark: Node
    TAG, SHAPE, LEVEL = "since", "nn", MODIFIED

    def pieces(self, out: Pieces) -> None:
        _inside(self.of, MODIFIED, out)
        out.append(" since ")
        _inside(self.mark, SUM, out)


@dataclass(frozen=True, slots=True)
class Unused(Node):
    """The calls of a collection after the last restricted call with the same key."""

    of: Node
    TAG, SHAPE, LEVEL = "unused", "n", NEGATED

    def pieces(self, out: Pieces) -> None:
        _after_word("unused", self.of, MODIFIED, out)


@dataclass(frozen=True, slots=True)
class No(Node):
    """The condition that a collection has no element."""

    of: Node
    TAG, SHAPE, LEVEL = "no", "n", NEGATED

    def pieces(self, out: Pieces) -> None:
        _after_word("no", self.of, MODIFIED, out)


@dataclass(frozen=True, slots=True)
class Every(Node):
    """The condition that the last filter of a collection is true for each element."""

    of: Node
    TAG, SHAPE, LEVEL = "every", "n", NEGATED

    def pieces(self, out: Pieces) -> None:
        _after_word("every", self.of, MODIFIED, out)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The negation of a condition."""

    of: Node
    TAG, SHAPE, LEVEL = "not", "n", NEGATED

    def pieces(self, out: Pieces) -> None:
        out += ["not", " ", _CONDITION]
        _inside(self.of, NEGATED, out)


@dataclass(frozen=True, slots=True)
class And(Node):
    """The conjunction of conditions."""

    parts: tuple[Node, ...]
    TAG, SHAPE, LEVEL = "and", "N", OR

    def pieces(self, out: Pieces) -> None:
        _joined(self.parts, " and ", NEGATED, out, _CONDITION)


@dataclass(frozen=True, slots=True)
class Or(Node):
    """The disjunction of conditions."""

    parts: tuple[Node, ...]
    TAG, SHAPE, LEVEL = "or", "N", OR

    def pieces(self, out: Pieces) -> None:
        _joined(self.parts, " or ", NEGATED, out, _CONDITION)


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison with an operator of `COMPARISONS`."""

    operator: str
    left: Node
    right: Node
    TAG, SHAPE, LEVEL = "compare", "snn", COMPARED

    def pieces(self, out: Pieces) -> None:
        _inside(self.left, SUM, out)
        out.append(f" {self.operator} ")
        _inside(self.right, SUM, out)


@dataclass(frozen=True, slots=True)
class Between(Node):
    """The condition that a term is in a range, ends included.

    `operator` is ``in`` or ``not in``.
    """

    operator: str
    of: Node
    low: Node
    high: Node
    TAG, SHAPE, LEVEL = "between", "snnn", COMPARED

    def pieces(self, out: Pieces) -> None:
        _inside(self.of, SUM, out)
        out.append(f" {self.operator} ")
        _inside(self.low, SUM, out)
        out.append(" .. ")
        _inside(self.high, SUM, out)


@dataclass(frozen=True, slots=True)
class Union(Node):
    """The union of several sets of calls, or several values to compare with."""

    parts: tuple[Node, ...]
    TAG, SHAPE, LEVEL = "|", "N", UNION

    def pieces(self, out: Pieces) -> None:
        _joined(self.parts, " | ", SIGN, out)


@dataclass(frozen=True, slots=True)
class Add(Node):
    """The sum of two terms."""

    left: Node
    right: Node
    TAG, SHAPE, LEVEL = "+", "nn", SUM

    def pieces(self, out: Pieces) -> None:
        _operands(self.left, " + ", self.right, SUM, PRODUCT, out)


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """The difference of two terms or two sets of calls."""

    left: Node
    right: Node
    TAG, SHAPE, LEVEL = "-", "nn", SUM

    def pieces(self, out: Pieces) -> None:
        _operands(self.left, " - ", self.right, SUM, PRODUCT, out)


@dataclass(frozen=True, slots=True)
class Times(Node):
    """The product of two terms."""

    left: Node
    right: Node
    TAG, SHAPE, LEVEL = "*", "nn", PRODUCT

    def pieces(self, out: Pieces) -> None:
        _operands(self.left, " * ", self.right, PRODUCT, SIGN, out)


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """Zero minus a term."""

    of: Node
    TAG, SHAPE, LEVEL = "neg", "n", SIGN

    def pieces(self, out: Pieces) -> None:
        out.append("-")
        _inside(self.of, SIGN, out)


@dataclass(frozen=True, slots=True)
class Arm(Node):
    """An arm of a `match`: the term for these values."""

    term: Node
    values: tuple[Node, ...]
    TAG, SHAPE = "arm", "nN"

    def pieces(self, out: Pieces) -> None:
        out.append(_ARM)
        _joined(self.values, " | ", SIGN, out)
        out.append(": ")
        _inside(self.term, SUM, out)


@dataclass(frozen=True, slots=True)
class Else(Node):
    """The arm of a `match` for all other values."""

    term: Node
    TAG, SHAPE = "else", "n"

    def pieces(self, out: Pieces) -> None:
        out.append("else: ")
        _inside(self.term, SUM, out)


@dataclass(frozen=True, slots=True)
class Match(Node):
    """The term of the first arm that lists the value of `of`."""

    of: Node
    arms: tuple[Node, ...]
    TAG, SHAPE = "match", "nN"

    def pieces(self, out: Pieces) -> None:
        out += ["match", " "]
        _inside(self.of, SUM, out)
        out.append(" { ")
        for at, arm in enumerate(self.arms):
            out += [", "] if at else []
            arm.pieces(out)
        out.append(" }")


NODES: Mapping[str, type[Node]] = {
    kind.TAG: kind
    for kind in (
        Word, This, It, Now, Session, AnyTool, Text, Number, Flag,
        Null, Duration, Get, Where, Same, Apply, Within, Since, Unused, No, Every, Not, And, Or,
        Compare, Between, Union, Add, Minus, Times, Negative, Arm, Else, Match,
    )
}  # fmt: skip
_MEMBERS: Mapping[type[Node], tuple[str, ...]] = {
    kind: tuple([member.name for member in fields(kind)]) for kind in NODES.values()
}
_PARTS: Mapping[type[Node], Callable[[Any], tuple[Node, ...]]] = {}


# Statements.


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A `let`: a name, its parameters and its body."""

    name: str
    parameters: tuple[str, ...] = ()
    body: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """``before ON(WHERE) require THEN``; if `on` is None: ``finally require THEN``."""

    on: Node | None
    where: tuple[Node, ...] = ()
    lets: tuple[Definition, ...] = ()
    then: Node
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``before ON(WHERE) ask "WHO" within D``."""

    on: Node
    where: tuple[Node, ...] = ()
    lets: tuple[Definition, ...] = ()
    who: str
    within: Duration | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbid:
    """``forbid ON(WHERE)``."""

    on: Node
    where: tuple[Node, ...] = ()
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owe:
    """``after AFTER(WHERE) owe CALLS(PAYS) within D``."""

    after: Node
    where: tuple[Node, ...] = ()
    calls: Node
    pays: tuple[Node, ...] = ()
    within: Duration | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """``limit count(OF(WHERE) within D) per PER <= MOST``.

    With `field`: ``limit sum(..FIELD) ..``.
    """

    of: Node
    where: tuple[Node, ...] = ()
    field: str | None = None
    per: tuple[Node, ...] = ()
    within: Duration | None = None
    most: Node
    scope: Literal["session", "across"] | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """``limit WHAT <= MOST``.

    `most` is a canonical decimal in calls, cents, milliseconds or cost.
    """

    what: str
    most: str
    because: str | None = None


Statement: TypeAlias = "Require | Ask | Forbid | Owe | Limit | Total"


# JSON.


def json_of(node: Node) -> Json:
    """Return the JSON of a node: ``[tag, member, ..]``."""
    found: list[Json] = [node.TAG]
    for letter, value in zip(node.SHAPE, values_of(node), strict=True):
        if letter == "n":
            found.append(json_of(value))
        elif letter in "NM":
            found += [json_of(part) for part in value]
        elif letter == "S":
            found += value
        else:
            found.append(value)
    return found


def statement_json(statement: Statement) -> dict[str, Json]:
    """Return the JSON object of a statement; docs/spec/core.md lists its members."""
    found: dict[str, Json]
    match statement:
        case Require():
            on = "end" if statement.on is None else json_of(statement.on)
            found = {"kind": "require", "on": on, "lets": _lets_json(statement.lets)}
            found |= _where_json("if", statement.where) | {"then": json_of(statement.then)}
        case Ask():
            found = {"kind": "ask", "on": json_of(statement.on), "who": statement.who}
            found |= _where_json("if", statement.where) | {"lets": _lets_json(statement.lets)}
            found |= _span_json(statement.within)
        case Forbid():
            found = {"kind": "forbid", "on": json_of(statement.on)}
            found |= _where_json("if", statement.where)
        case Owe():
            found = {"kind": "owe", "after": json_of(statement.after)}
            found |= _where_json("if", statement.where) | {"calls": json_of(statement.calls)}
            found |= _where_json("filter", statement.pays) | _span_json(statement.within)
        case Limit():
            found = {"kind": "limit", "of": json_of(statement.of)}
            found |= _where_json("if", statement.where) | _span_json(statement.within)
            found |= {} if statement.field is None else {"field": statement.field}
            found |= {"per": [json_of(term) for term in statement.per]}
            found |= {"most": json_of(statement.most)}
            found |= {} if statement.scope is None else {"scope": statement.scope}
        case Total():
            whole = "." not in statement.most and len(statement.most) <= SHORT_TOTAL
            most: Json = int(statement.most) if whole else statement.most
            found = {"kind": "total", "what": statement.what, "most": most}
    return found if statement.because is None else found | {"because": statement.because}


def definition_json(let: Definition) -> dict[str, Json]:
    """Return the JSON object of a `let`."""
    found: dict[str, Json] = {"name": let.name, "is": json_of(let.body)}
    return found | ({"parameters": list(let.parameters)} if let.parameters else {})


def _lets_json(lets: Sequence[Definition]) -> Json:
    return [definition_json(let) for let in lets]


def _where_json(name: str, where: Sequence[Node]) -> dict[str, Json]:
    return {name: [json_of(part) for part in where]} if where else {}


def _span_json(span: Duration | None) -> dict[str, Json]:
    return {} if span is None else {"within": f"{span.amount} {span.unit}"}


# Walks.


def values_of(node: Node) -> tuple[Any, ...]:
    """Return the members of a node, in the order of its shape."""
    return tuple([getattr(node, name) for name in _MEMBERS[type(node)]])


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside a node, in order."""
    found: list[Node] = []
    for letter, value in zip(node.SHAPE, values_of(node), strict=True):
        if letter == "n":
            found.append(value)
        elif letter in "NM":
            found += value
    return tuple(found)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes inside it, each before its parts."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(parts_of(node))


def roots_of(statement: Statement) -> list[Node]:
    """Return the nodes of a statement that are not inside another node."""
    found: list[Node] = []
    for name in ("on", "of", "after", "calls", "then", "most"):
        value = getattr(statement, name, None)
        found += [value] if isinstance(value, Node) else []
    for name in ("where", "pays", "per"):
        found += getattr(statement, name, ())
    return found + [let.body for let in getattr(statement, "lets", ())]


def zone_names(roots: Iterable[Node]) -> set[str]:
    """Return the names of zones (not offsets) that clock functions inside these nodes use."""
    found = set()
    for root in roots:
        for node in walk(root):
            match node:
                case Apply(function, (_, Text(value))) if function in CLOCKS:
                    found.add(value)
    return {name for name in found if zone_of(name) is None}


def fold(node: Node, function: Callable[[Node, tuple[_T, ...]], _T]) -> _T:
    """Return `function(node, values)`, where `values` are the results of `fold` for the parts."""
    return function(node, tuple([fold(part, function) for part in parts_of(node)]))


def with_parts(node: Node, parts: Sequence[Node]) -> Node:
    """Return a node of the same form with other parts, as many as `node` has."""
    left = list(parts)
    values: list[Any] = []
    for letter, value in zip(node.SHAPE, values_of(node), strict=True):
        if letter == "n":
            values.append(left.pop(0))
        elif letter in "NM":
            values.append(tuple(left))
            left = []
        else:
            values.append(value)
    return type(node)(*values)


# Canonical text.


def text_of(node: Node) -> str:
    """Return the canonical text of a node."""
    out: Pieces = [_CONDITION]
    node.pieces(out)
    return written(out)


def definition_text(let: Definition) -> str:
    """Return the canonical text of a `let`."""
    out: Pieces = []
    _definition(let, out)
    return written(out)


def statement_text(statement: Statement) -> str:
    """Return the canonical text of a statement on one line, without its `because`."""
    out: Pieces = []
    match statement:
        case Require():
            _head(statement.on, statement.where, statement.lets, out)
            out += ["require ", _CONDITION]
            statement.then.pieces(out)
        case Ask():
            _head(statement.on, statement.where, statement.lets, out)
            out.append(f"ask {quoted(statement.who)}")
            _span(statement.within, out)
        case Forbid():
            out.append("forbid ")
            _calls(statement.on, statement.where, SUM, out)
        case Owe():
            out.append("after ")
            _calls(statement.after, statement.where, SUM, out)
            out.append(" owe ")
            _calls(statement.calls, statement.pays, SUM, out)
            _span(statement.within, out)
        case Limit():
            _limit(statement, out)
        case Total():
            out.append(f"limit {statement.what} <= {statement.most}")
            out += [" ms"] if statement.what == "latency" else []
    if isinstance(statement, Require | Ask) and statement.lets:
        out.append(" }")
    return written(out)


def _head(on: Node | None, where: Sequence[Node], lets: Sequence[Definition], out: Pieces) -> None:
    if on is None:
        out.append("finally ")
    else:
        out.append("before ")
        _calls(on, where, SUM, out)
        out.append(" ")
    if lets:
        out.append("{ ")
        for let in lets:
            _definition(let, out)
            out.append("  ")


def _definition(let: Definition, out: Pieces) -> None:
    out += ["let ", Name(let.name)]
    for at, name in enumerate(let.parameters):
        out += [", " if at else "(", Name(name)]
    out += [") = " if let.parameters else " = ", _CONDITION]
    let.body.pieces(out)


def _limit(limit: Limit, out: Pieces) -> None:
    out += [f"limit {'count' if limit.field is None else 'sum'}(", _ARGUMENT]
    field = limit.field
    _calls(limit.of, limit.where, SUM if field is None else POSTFIX, out)
    out += [] if field is None else [".", Name(field)]
    _span(limit.within, out)
    out.append(")")
    for at, term in enumerate(limit.per):
        out.append(", " if at else " per ")
        _inside(term, SUM, out)
    out.append(" <= ")
    _inside(limit.most, MODIFIED, out)
    scopes = {None: "", "session": " in session", "across": " across sessions"}
    out.append(scopes[limit.scope])


def _calls(on: Node, where: Sequence[Node], level: int, out: Pieces) -> None:
    _inside(on, POSTFIX if where else level, out)
    if where:
        _arguments(where, out)


def _span(span: Duration | None, out: Pieces) -> None:
    out += [] if span is None else [f" within {span.amount} {span.unit}"]


def _inside(node: Node, level: int, out: Pieces) -> None:
    """Append a node where the grammar allows forms of at least `level`.

    A looser form gets brackets.
    """
    if level <= node.LEVEL:
        node.pieces(out)
        return
    out += ["(", _CONDITION]
    node.pieces(out)
    out.append(")")


def _operands(left: Node, sign: str, right: Node, first: int, second: int, out: Pieces) -> None:
    """Append a sum or product; an operand that is a union gets brackets."""
    _inside(left, POSTFIX if isinstance(left, Union) else first, out)
    out.append(sign)
    _inside(right, POSTFIX if isinstance(right, Union) else second, out)


def _joined(
    parts: Sequence[Node], sign: str, level: int, out: Pieces, place: Place | None = None
) -> None:
    for at, part in enumerate(parts):
        out += [sign] if at else []
        out += [] if place is None else [place]
        _inside(part, level, out)


def _after_word(word: str, of: Node, level: int, out: Pieces) -> None:
    out += [word, " "]
    _inside(of, level, out)


def _arguments(arguments: Sequence[Node], out: Pieces) -> None:
    out.append("(")
    _joined(arguments, ", ", OR, out, _ARGUMENT)
    out.append(")")


_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAKEN = frozenset({"this", "it", "session", "now", "any", "null", "true", "false", "match"})


def written(pieces: Sequence[Piece]) -> str:
    """Return the text of pieces.  Names that the grammar would read differently get backticks."""
    found: list[str] = []
    words: frozenset[str] = frozenset()
    before = ""
    for at, piece in enumerate(pieces):
        if isinstance(piece, Place):
            words |= piece.words
            continue
        follows = pieces[at + 1] if at + 1 < len(pieces) else ""
        if isinstance(piece, Name) and _needs_backticks(piece, before, follows, words):
            found.append(f"`{piece}`")
        else:
            found.append(piece)
        before, words = piece, frozenset()
    return "".join(found)


def _needs_backticks(name: str, before: str, follows: str, words: frozenset[str]) -> bool:
    if _IDENTIFIER.fullmatch(name) is None:
        return True
    if before == ".":
        return False
    return name in _TAKEN or name in words or (name in FUNCTIONS and follows == "(")


_ESCAPE = re.compile(r"\\(.)(?=(.?))", re.DOTALL)


def quoted(text: str) -> str:
    """Return the text of a constant in quotes.

    Hidden characters are escaped.  A backslash that starts no JSON escape is written once.
    """
    inner = escaped_json(encode(text).decode())[1:-1]
    return f'"{_ESCAPE.sub(_escaped, inner)}"'


def _escaped(found: re.Match[str]) -> str:
    single = found[1] == "\\" and found[2] != "" and found[2] not in '"\\/bfnrtu'
    return "\\" if single else found[0]
