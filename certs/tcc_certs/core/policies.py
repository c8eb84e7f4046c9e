"""Statements of version 1.2: sets of calls, terms, relations and alternatives, read from JSON.

Normative text: docs/spec/core.md, section 7.  What the statements mean is decided by the one
interpreter, :mod:`tcc_certs.session.monitors`; here they are held to one form, to fields that there
are, and to bounds that keep a decision's work small.  Sets, terms and relations stay as they are in
JSON, lists as tuples, so that their form is their meaning.
Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.schema import Known, Table, maybe, row, tagged
from tcc_certs.values.fields import Field, ListType, RecordType
from tcc_certs.values.numbers import as_amount, is_decimal
from tcc_certs.values.text_syntax import ensure_quick

Tree: TypeAlias = "tuple[Any, ...]"  # a set, a term or a relation, as in JSON
MAX_DEPTH = 16  # of sets, terms and relations inside one another
MAX_SPREAD = 64  # relations, terms and alternatives of one statement
MAX_WINDOW = 1 << 48  # milliseconds
COMPARED = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """``[last] [n] SET [same ..] [where ..] [within D]``; `calls` None: ``where`` alone."""

    calls: Tree | None = None
    last: bool = False
    least: int = 1
    same: tuple[tuple[str, Tree], ...] = ()
    where: tuple[Tree, ...] = ()
    within: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A call of `of` needs one of the alternatives before it, with `each` one of its own."""

    order: str
    alternatives: tuple[Alternative, ...]
    of: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Ban:
    """No call of `of` after one of the alternatives, unless one of `unless` came since."""

    alternatives: tuple[Alternative, ...]
    of: Tree
    unless: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Not a call of `one` and a call of `other`, whatever their order."""

    one: Tree
    other: Tree
    same: tuple[tuple[str, Tree], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Owe:
    """After a call of `of` one of `first` has to come before the end."""

    first: Tree
    of: Tree
    same: tuple[tuple[str, Tree], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """At most `value` calls of `of`, for each value of `per`, in a window; `across`: of all
    sessions that draw on one account."""

    of: Tree
    value: int
    where: tuple[Tree, ...] = ()
    per: tuple[Tree, ...] = ()
    within: int | None = None
    across: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The values of a field add up to at most `value`, a canonical decimal; `across` as above."""

    tool: int
    parameter: str
    value: str
    per: tuple[Tree, ...] = ()
    within: int | None = None
    across: bool = False


Policy: TypeAlias = Need | Ban | Apart | Owe | Count | Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """``session.name``: the first known one of fields, each a tool and a name."""

    name: str
    of: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """``name(t, ..).f``: of the latest call of a set's tools, or row, with these keys.

    Attributes:
        keys: arguments of the calls, or fields of the rows; calls: None of rows.
        rows: lists of records, each a tool and a field.
    """

    name: str
    keys: tuple[str, ...]
    calls: Tree | None = None
    rows: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What statements may speak of.

    Attributes:
        tools: for each tool its fields by name; listed: those that patterns may bind.
        session: the names of attributes.
        looks: the look-ups by name.
    """

    tools: tuple[Mapping[str, Field], ...]
    session: frozenset[str] = frozenset()
    looks: Mapping[str, LookUp] = field(default_factory=dict)


def tools_of(calls: Tree, count: int) -> frozenset[int]:
    """The tools of which calls of a set can be."""
    match calls:
        case ("calls", tool, _):
            return frozenset([tool])
        case ("or", sets):
            return frozenset().union(*[tools_of(one, count) for one in sets])
        case ("but", one, _):
            return tools_of(one, count)
        case _:
            return frozenset(range(count))


def cells_of(field: Field | None) -> tuple[str, ...]:
    """The names of the fields of a list's records; of another field none."""
    of = field.type.of if field is not None and isinstance(field.type, ListType) else None
    return tuple([one.name for one in of.fields]) if isinstance(of, RecordType) else ()


def fields_looked_in(
    look: LookUp, of: str, tools: Sequence[Mapping[str, Field]]
) -> list[tuple[int, str]]:
    """The fields in which a field of a look-up is looked up, each with its tool."""
    if look.calls is not None:
        names = (*look.keys, of)
        return [(tool, name) for tool in tools_of(look.calls, len(tools)) for name in names]
    found = [*look.rows]
    for tool, rows in look.rows:
        found += [] if of in cells_of(tools[tool].get(rows)) else [(tool, of)]
    return found


class _Reader:
    """Reads one statement; what it may speak of depends on the sets that it names.

    Attributes:
        own, seen: the tools of the call that is decided, and of the earlier one; None: there is
            no such call.
    """

    def __init__(self, fields: Fields, path: str, code: Code) -> None:
        self.fields, self.path, self.code = fields, path, code
        self.own: frozenset[int] | None = None
        self.seen: frozenset[int] | None = None
        self._left = MAX_SPREAD * 4

    def _refuse(self, expected: str, found: object) -> Rejected:
        return Rejected(self.code, self.path, expected, found)

    def _parts(self, value: Json, depth: int, least: int = 1) -> Sequence[Json]:
        self._left -= 1
        ensure(depth > 0 and self._left > 0, Code.LIMIT, self.path, "a smaller statement", "more")
        return schema.as_list(value, self.path, self.code, least)

    def tools(self, calls: Tree) -> frozenset[int]:
        """Of which calls of a set can be."""
        return tools_of(calls, len(self.fields.tools))

    # Sets.

    def calls(self, value: Json, depth: int = MAX_DEPTH) -> Tree:
        """A set of calls."""
        match self._parts(value, depth):
            case ["any"]:
                return ("any",)
            case ["or", list() as sets] if len(sets) > 1:
                return "or", tuple([self.calls(one, depth - 1) for one in sets])
            case ["but", one, other]:
                return "but", self.calls(one, depth - 1), self.calls(other, depth - 1)
            case ["calls", tool, list() as where]:
                number = schema.as_whole(tool, self.path, self.code, len(self.fields.tools))
                bound = tuple([self._bound(number, one, depth - 1) for one in where])
                schema.ensure_increasing([name for name, _ in bound], self.path, self.code)
                return "calls", number, bound
        raise self._refuse("a set of calls", value)

    def _bound(self, tool: int, value: Json, depth: int) -> tuple[str, tuple[str, ...]]:
        match self._parts(value, depth):
            case [str() as name, list() as values] if values:
                field = self._field(tool, name)
                texts = [schema.as_text(text, self.path, self.code) for text in values]
                ensure(
                    all(text and text in field.values for text in texts),
                    self.code, self.path, f"listed values of {name}", texts,
                )  # fmt: skip
                schema.ensure_increasing(texts, self.path, self.code)
                return name, tuple(texts)
        raise self._refuse("a field and its values", value)

    def _field(self, tool: int, name: str) -> Field:
        found = self.fields.tools[tool].get(name)
        if found is None:
            raise self._refuse("a field of the tool", name)
        return found

    # Terms.

    def term(
        self, value: Json, names: frozenset[str] = frozenset(), depth: int = MAX_DEPTH
    ) -> Tree:
        """A term; `names` are those of elements, ``it`` among them where there is one."""
        parts = self._parts(value, depth)
        match parts:
            case ["s", str() as text]:
                return "s", text
            case ["n", str() as text]:
                ensure(is_decimal(text), self.code, self.path, "a canonical decimal", text)
                return "n", text
            case ["b", "true" | "false" as text]:
                return "b", text
            case ["z"]:
                return ("z",)
            case ["ms", int() as size] if type(size) is int and 0 <= size < MAX_WINDOW:
                return "ms", size
            case ["own" | "seen" as side, str() as name, *part] if len(part) < 2:
                return self._of(side, name, part)
            case ["it"] if "it" in names:
                return ("it",)
            case ["as", str() as name] if f"as {name}" in names:
                return "as", name
            case ["as", str() as name, str() as part] if f"as {name}" in names:
                return "as", name, part
            case ["session", str() as name] if name in self.fields.session:
                return "session", name
            case ["now"]:
                return ("now",)
            case ["max", one, other]:
                return "max", self.term(one, names, depth - 1), self.term(other, names, depth - 1)
            case ["sum", list() as items] if items:
                return "sum", tuple([self._summand(one, names, depth - 1) for one in items])
            case ["list", list() as items] if items:
                found = [self.term(one, frozenset(), depth - 1) for one in items]
                constants = all(one[0] in ("s", "n", "b", "z") for one in found)
                ensure(constants, self.code, self.path, "constants", items)
                return "list", tuple(found)
            case ["count", of, *relation] if len(relation) < 2:
                inner = names | {"it"}
                counted = [self.simple(one, inner, depth - 1) for one in relation]
                return ("count", self.term(of, names, depth - 1), *counted)
            case ["look", str() as name, list() as keys, str() as of]:
                return self._looked_up(name, [self.term(k, names, depth - 1) for k in keys], of)
        raise self._refuse("a term", value)

    def _looked_up(self, name: str, keys: Sequence[Tree], of: str) -> Tree:
        look = self.fields.looks.get(name)
        if look is None:
            raise self._refuse("a look-up", name)
        ensure(len(keys) == len(look.keys), self.code, self.path, f"{len(look.keys)} keys", keys)
        found = fields_looked_in(look, of, self.fields.tools)
        for tool, one in found:
            self._field(tool, one)
        return "look", name, tuple(keys), of

    def _summand(self, value: Json, names: frozenset[str], depth: int) -> Tree:
        match self._parts(value, depth):
            case [str() as factor, term] if is_decimal(factor):
                return factor, self.term(term, names, depth - 1)
        raise self._refuse("a factor and a term", value)

    def _of(self, side: str, name: str, part: Sequence[Json]) -> Tree:
        tools = self.own if side == "own" else self.seen
        if tools is None:
            raise self._refuse("no field of an earlier call", name)
        for tool in tools:
            field = self._field(tool, name)
            if part:
                there = part[0] in cells_of(field)
                ensure(there, self.code, self.path, f"a field of the records of {name}", part[0])
        return (side, name, *part)

    # Relations.

    def relation(
        self, value: Json, names: frozenset[str] = frozenset(), depth: int = MAX_DEPTH
    ) -> Tree:
        """A relation."""
        match self._parts(value, depth):
            case ["every", of, relation]:
                inner = self.simple(relation, names | {"it"}, depth - 1)
                return "every", self.term(of, names, depth - 1), inner
            case ["all" | "some" as word, list() as lists, list() as relations] if relations:
                ensure(0 < len(lists) < 3, self.code, self.path, "one list or two", lists)
                found = []
                for one in lists:
                    pair = schema.as_tuple(one, self.path, self.code, 2, "list and name")
                    name = schema.as_text(pair[1], self.path, self.code)
                    found.append((self.term(pair[0], names, depth - 1), name))
                inner_names = names | {f"as {name}" for _, name in found}
                ensure(
                    len(inner_names) == len(names) + len(found),
                    self.code, self.path, "names of their own", lists,
                )  # fmt: skip
                inside = [self.relation(one, inner_names, depth - 1) for one in relations]
                return word, tuple(found), tuple(inside)
            case ["?", relation]:
                return "?", self.simple(relation, names, depth - 1)
            case _:
                return self.simple(value, names, depth)

    def simple(self, value: Json, names: frozenset[str], depth: int) -> Tree:
        """A relation between two terms, or of one to a pattern."""
        match self._parts(value, depth):
            case [str() as op, left, right] if op in (*COMPARED, "in", "not in"):
                return op, self.term(left, names, depth - 1), self.term(right, names, depth - 1)
            case ["~" | "!~" as op, left, str() as pattern]:
                ensure_quick(pattern, 1, self.path)
                return op, self.term(left, names, depth - 1), pattern
        raise self._refuse("a relation", value)

    def relations(self, value: Json) -> tuple[Tree, ...]:
        """Relations that all have to hold, one at least."""
        return tuple([self.relation(one) for one in schema.as_list(value, self.path, self.code, 1)])

    def same(self, value: Json, tools: frozenset[int]) -> tuple[tuple[str, Tree], ...]:
        """Fields of the earlier call, and what they are equal to; it is not spoken of in terms."""
        found = []
        seen, self.seen = self.seen, None
        for one in schema.as_list(value, self.path, self.code, 1):
            pair = schema.as_tuple(one, self.path, self.code, 2, "field and term")
            name = schema.as_text(pair[0], self.path, self.code)
            for tool in tools:
                self._field(tool, name)
            found.append((name, self.term(pair[1])))
        self.seen = seen
        pairs = [encode(one) for one in schema.as_list(value, self.path, self.code)]
        schema.ensure_increasing(pairs, self.path, self.code)
        return tuple(found)

    def alternatives(self, value: Json) -> tuple[Alternative, ...]:
        """Alternatives, one at least."""
        items = schema.as_list(value, self.path, self.code, 1)
        ensure(len(items) <= MAX_SPREAD, Code.LIMIT, self.path, f"{MAX_SPREAD} alternatives", items)
        return tuple([self._alternative(one) for one in items])

    def _alternative(self, value: Json) -> Alternative:
        item = schema.as_object(
            value, self.path, self.code, (), ("calls", "last", "n", "same", "where", "within")
        )
        if "calls" not in item:
            ensure(list(item) == ["where"], self.code, self.path, "where alone", sorted(item))
            self.seen = None
            return Alternative(where=self.relations(item["where"]))
        calls = self.calls(item["calls"])
        tools = self.seen = self.tools(calls)
        if "last" in item:
            schema.as_true(item["last"], self.path, self.code)
        least = schema.as_whole(item["n"], self.path, self.code, 1 << 16) if "n" in item else 1
        ensure(least > 1 or "n" not in item, self.code, self.path, "n of 2 or more", least)
        single = least == 1 or "last" not in item
        ensure(single, self.code, self.path, "last of one", least)
        return Alternative(
            calls=calls,
            last="last" in item,
            least=least,
            same=self.same(item["same"], tools) if "same" in item else (),
            where=self.relations(item["where"]) if "where" in item else (),
            within=_window(item["within"], self.path, self.code) if "within" in item else None,
        )


def _window(value: Json, path: str, code: Code, *_: object) -> int:
    found = schema.as_whole(value, path, code, MAX_WINDOW)
    ensure(found > 0, code, path, "at least 1 ms", found)
    return found


def _form(read: Callable[[_Reader, Json], Any]) -> schema.Form:
    """A form that one of the readers of a statement reads."""

    def form(value: Json, path: str, code: Code, known: Known) -> Any:
        reader: _Reader = known["reader"]
        reader.path, reader.code = path, code
        return read(reader, value)

    return form


def _decided(reader: _Reader, value: Json) -> Tree:
    calls = reader.calls(value)
    reader.own = reader.tools(calls)
    return calls


def _same_as(side: str) -> schema.Form:
    def form(value: Json, path: str, code: Code, known: Known) -> Any:
        reader: _Reader = known["reader"]
        reader.path, reader.code = path, code
        return reader.same(value, reader.tools(known[side]))

    return form


def _per(reader: _Reader, value: Json) -> tuple[Tree, ...]:
    return tuple([reader.term(one) for one in schema.as_list(value, reader.path, reader.code, 1)])


def _summed(value: Json, path: str, code: Code, known: Known) -> str:
    name = schema.as_text(value, path, code)
    reader: _Reader = known["reader"]
    reader.own = frozenset([known["tool"]])
    field = reader.fields.tools[known["tool"]].get(name)
    ensure(field is not None, code, path, "a field of the tool", name)
    return name


_OF = row("of", _form(_decided))
_WINDOW = maybe("within", _window)
_PER = maybe("per", _form(_per), absent=())
_ACROSS = maybe("across", schema.as_true, absent=False)
POLICIES: Mapping[str, tuple[Table, Callable[..., Policy]]] = {
    "need": (
        (
            row("order", schema.one_of("before", "each")),
            _OF,
            row("any", _form(_Reader.alternatives), "alternatives"),
        ),
        Need,
    ),
    "ban": (
        (
            _OF,
            row("any", _form(_Reader.alternatives), "alternatives"),
            maybe("unless", _form(_Reader.alternatives), absent=()),
        ),
        Ban,
    ),
    "apart": (
        (
            row("one", _form(_Reader.calls)),
            row("other", _form(_decided)),
            maybe("same", _same_as("one"), absent=()),
        ),
        Apart,
    ),
    "owe": (
        (row("first", _form(_Reader.calls)), _OF, maybe("same", _same_as("first"), absent=())),
        Owe,
    ),
    "count": (
        (
            _OF,
            row("value", schema.as_unsigned),
            maybe("where", _form(_Reader.relations), absent=()),
            _PER,
            _WINDOW,
            _ACROSS,
        ),
        Count,
    ),
    "total": (
        (
            row("tool", lambda value, path, code, known: schema.as_whole(
                value, path, code, len(known["reader"].fields.tools))),
            row("param", _summed, "parameter"),
            row("value", as_amount),
            _PER,
            _WINDOW,
            _ACROSS,
        ),
        Total,
    ),
}  # fmt: skip


def read_set(value: Json, path: str, code: Code, fields: Fields) -> Tree:
    """A set of calls."""
    return _Reader(fields, path, code).calls(value)


def read_policy(value: Json, path: str, code: Code, fields: Fields) -> Policy:
    """A statement of version 1.2.

    Raises:
        Rejected: `code`; D201 it is larger than a decision may be.
    """
    known = {"reader": _Reader(fields, path, code)}
    tables = {kind: table for kind, (table, _) in POLICIES.items()}
    kind, made = tagged(value, "kind", tables, "a kind of statement", path, code, known)
    return POLICIES[kind][1](**made)
