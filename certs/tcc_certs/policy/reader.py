"""Reads a core from bytes and writes it as JSON: schema ``tcc.core/2``.

Each grammar has one core, and each core has one byte string.  The reader refuses all other forms,
such as a union of one set, or a quoted value where a bare word has the same meaning.  Each kind of
object has a table of rows, which :mod:`tcc_certs.formats.schema` interprets.  One decoder reads all
nodes by the shapes in :mod:`tcc_certs.policy.nodes`.  Errors have a JSON pointer (RFC 6901) as
path.  Normative text: docs/spec/core.md.

Cost: linear in the bytes.  The reader declines a core whose `let`s expand to more than a multiple
of its size (D201).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from unicodedata import normalize

from tcc_certs.errors import Code, Rejected, ensure, is_plain, require
from tcc_certs.formats import codec, schema
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import Check, Form, Known, Row, Table, maybe, row, tagged
from tcc_certs.limits import MAX_CALLS, MAX_CORE_BYTES
from tcc_certs.policy import nodes, plans as model
from tcc_certs.policy.atoms import atom_document, canonical_atom
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.expressions import check_rules, parts, read_expression, walk
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy, policy_of
from tcc_certs.policy.nodes import MAX_NESTED, NODES, Definition, Duration, Node, Statement
from tcc_certs.policy.plans import Call, CallSet, Expr, Model
from tcc_certs.policy.zone_records import read_zones, zones_json
from tcc_certs.values import paths, places, urls
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    PathType,
    TextType,
    UrlType,
    json_of,
)
from tcc_certs.values.fields import (
    MOST_ELEMENTS,
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    fits_union,
    hides,
    pointer_of,
    steps_of,
    zone_of,
)
from tcc_certs.values.numbers import compare, ensure_survives
from tcc_certs.values.text_syntax import ensure_quick

SCHEMA = "tcc.core/2"
MAX_TOOLS = 1 << 14
MAX_DIGITS = 4000  # most digits of a number in a statement
MAX_SIZE = 1 << 20  # most code points of a text, most bytes of a JSON value
MAX_NESTED_TYPES = 16
_ABSENT = ""
_REST = "*"
_INTEGERS = (-(1 << 63), (1 << 64) - 1)


def read_core(data: bytes) -> Core:
    """Return the core in `data`.

    Raises:
        Rejected: B1xx the bytes are not canonical JSON.  C801 the core is not well formed.  D101 it
            uses a feature of a later version.  D102 it has another schema.  D201 it exceeds a
            limit.
    """
    return read_policy(data).core


def read_policy(data: bytes) -> Policy:
    """Return the policy of the core in `data`: its statements, ready to decide calls.

    Raises:
        Rejected: with the codes of :func:`read_core`.
    """
    try:
        ensure(len(data) <= MAX_CORE_BYTES, Code.LIMIT, "", f"{MAX_CORE_BYTES} bytes", len(data))
        return _policy_of(_core_of(codec.decode(data, "")))
    except Rejected as refusal:
        raise _at_pointer(refusal) from None
    except RecursionError:  # the caller has used most of the stack
        raise Rejected(Code.LIMIT, "", "nesting that the stack holds", "deeper") from None


def _at_pointer(refusal: Rejected) -> Rejected:
    """Return the error with a JSON pointer as path.

    Text after the path moves to the expectation.
    """
    place, _, rest = refusal.path.partition(" ")
    pointer = place.removeprefix("core").replace("[", "/").replace("]", "").replace(".", "/")
    expected = f"{refusal.expected} ({rest})" if rest else refusal.expected
    return Rejected(refusal.code, pointer, expected, refusal.found)


# Nodes.

_AMOUNT = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?", re.ASCII)
_ALONE = (nodes.Same, nodes.Arm, nodes.Else)  # forms that are allowed at only one place
_ARM_VALUES = (nodes.Word, nodes.Text, nodes.Number, nodes.Flag, nodes.Null)


class _Wrong(Exception):
    """Raised if a node is not well formed.

    Attributes:
        steps: the indices in nested JSON lists that lead to the fault, the innermost first.
    """

    def __init__(self, expected: object, found: object, *steps: int, code: Code) -> None:
        super().__init__()
        self.expected, self.found, self.code = expected, found, code
        self.steps = list(steps)


def _wrong(expected: object, found: object, *steps: int) -> _Wrong:
    return _Wrong(expected, found, *steps, code=Code.CORE_SCHEMA)


def _shown(value: Json) -> object:
    """Return a value as an error shows it: short, even if it is deeply nested."""
    return f"a list of {len(value)}" if isinstance(value, list) else value


def _decoded(value: Json, depth: int = 1) -> Node:
    """Return the node of a JSON list.

    Raises:
        _Wrong: the list is no node.
    """
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        shown = type(value).__name__ if isinstance(value, dict) else _shown(value)
        raise _wrong("a node: a list of a tag and its members", shown)
    kind = NODES.get(value[0])
    if kind is None:
        raise _wrong("the tag of a node", value[0], 0)
    if depth > MAX_NESTED:
        raise _Wrong(f"at most {MAX_NESTED} nodes in one another", "more", code=Code.LIMIT)
    shape = kind.SHAPE
    many = shape[-1:] in ("N", "S")
    if len(value) != len(shape) + 1 and not (many and len(value) > len(shape)):
        size = f"{len(shape)} or more members" if many else f"{len(shape)} members"
        raise _wrong(f"{size} after the tag {value[0]}", len(value) - 1)
    members: list[Any] = []
    at = 0
    try:
        for letter in shape:
            at += 1
            if letter == "n":
                members.append(_part(kind, value[at], at, depth))
            elif letter == "s":
                members.append(_text(value[at]))
            elif letter == "b":
                members.append(_flag(value[at]))
            else:
                some: list[Any] = []
                members.append(some)
                at -= 1
                for item in value[at + 1 :]:
                    at += 1
                    some.append(_text(item) if letter == "S" else _part(kind, item, at, depth))
                members[-1] = tuple(some)
    except _Wrong as wrong:
        wrong.steps.append(at)
        raise
    found = kind(*members)
    check = _CHECKS.get(kind)
    if check is not None:
        check(found)
    return found


def _part(outer: type[Node], value: Json, at: int, depth: int) -> Node:
    found = _decoded(value, depth + 1)
    if outer is nodes.Match and at > 1:
        if not isinstance(found, nodes.Arm | nodes.Else):
            raise _wrong("an arm of a match", found.TAG, 0)
    elif isinstance(found, _ALONE) and not (
        outer is nodes.Where and at > 1 and isinstance(found, nodes.Same)
    ):
        raise _wrong(f"no `{found.TAG}` here", found.TAG, 0)
    return found


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise _wrong("a text", _shown(value))
    return value


def _flag(value: Json) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", _shown(value))
    return value


def _ensure_name(name: str, at: int) -> None:
    """Refuse a name that cannot be written or has hidden characters."""
    if not 1 <= len(name) <= codec.MAX_NAME:
        raise _wrong(f"a name of 1 to {codec.MAX_NAME} characters", len(name), at)
    if "`" in name or not is_plain(name):
        raise _wrong("no backtick, no control or hidden characters", name, at)


def _check_name(node: nodes.Word | nodes.Session) -> None:
    _ensure_name(node.name, 1)


def _check_get(node: nodes.Get) -> None:
    _ensure_name(node.name, 2)


def _check_same(node: nodes.Same) -> None:
    for at, name in enumerate(node.names, 1):
        _ensure_name(name, at)


def _check_number(node: nodes.Number) -> None:
    value = node.value.removeprefix("-")
    _ensure_decimal(value, 1)
    if node.value == "-0":
        raise _wrong("a canonical decimal", node.value, 1)


def _ensure_decimal(text: str, at: int) -> None:
    if len(text) > MAX_DIGITS + 1 or len(text) - text.count(".") > MAX_DIGITS:
        raise _wrong(f"a number of at most {MAX_DIGITS} digits", f"{len(text)} characters", at)
    if _AMOUNT.fullmatch(text) is None:
        raise _wrong("a canonical decimal", text, at)


def _check_duration(node: nodes.Duration) -> None:
    _ensure_span(node.amount, node.unit, 1)


def _check_within(node: nodes.Within) -> None:
    _ensure_span(node.amount, node.unit, 2)


def _ensure_span(amount: str, unit: str, at: int) -> None:
    """Refuse an amount that is no canonical decimal, or no whole number of milliseconds."""
    _ensure_decimal(amount, at)
    if unit not in nodes.UNITS:
        raise _wrong(f"a unit of time: {', '.join(nodes.UNITS)}", unit, at + 1)
    if "." in amount and places.exact_number(amount) * nodes.UNITS[unit] % 1:
        raise _wrong("a whole number of milliseconds", amount, at)


def _check_compare(node: nodes.Compare) -> None:
    if node.operator not in nodes.COMPARISONS:
        raise _wrong(f"one of {' '.join(nodes.COMPARISONS)}", node.operator, 1)


def _check_between(node: nodes.Between) -> None:
    if node.operator not in ("in", "not in"):
        raise _wrong("in or not in", node.operator, 1)


def _check_apply(node: nodes.Apply) -> None:
    if node.function not in nodes.FUNCTIONS:
        raise _wrong(f"one of {', '.join(nodes.FUNCTIONS)}", node.function, 1)
    least, most = nodes.FUNCTIONS[node.function]
    if not least <= len(node.arguments) <= most:
        raise _wrong(f"{least} to {most} arguments of {node.function}", len(node.arguments))


def _check_parts(node: nodes.And | nodes.Or | nodes.Union) -> None:
    if len(node.parts) < 2:
        raise _wrong(f"2 or more members after the tag {node.TAG}", len(node.parts))


def _check_negative(node: nodes.Negative) -> None:
    if isinstance(node.of, nodes.Number) and node.of.value[:1] != "-":
        raise _wrong("a negative number as one node", "neg", 0)


def _check_arm(node: nodes.Arm) -> None:
    for at, value in enumerate(node.values, 2):
        if not isinstance(value, _ARM_VALUES):
            raise _wrong("a name or a constant", value.TAG, 0, at)


_CHECKS: Mapping[type[Node], Callable[[Any], None]] = {
    nodes.Word: _check_name,
    nodes.Session: _check_name,
    nodes.Get: _check_get,
    nodes.Same: _check_same,
    nodes.Number: _check_number,
    nodes.Duration: _check_duration,
    nodes.Within: _check_within,
    nodes.Compare: _check_compare,
    nodes.Between: _check_between,
    nodes.Apply: _check_apply,
    nodes.And: _check_parts,
    nodes.Or: _check_parts,
    nodes.Union: _check_parts,
    nodes.Negative: _check_negative,
    nodes.Arm: _check_arm,
}


def _node(value: Json, path: str, code: Code, known: Known) -> Node:
    """Read a node that is not an argument of a filter."""
    found = _condition(value, path, code, known)
    ensure(not isinstance(found, nodes.Same), code, path, "no `same` here", found.TAG)
    return found


def _condition(value: Json, path: str, _code: Code, _known: Known) -> Node:
    try:
        found = _decoded(value)
        if isinstance(found, nodes.Arm | nodes.Else):
            raise _wrong("an arm inside a match", found.TAG, 0)
    except _Wrong as wrong:
        place = path + "".join(f"[{step}]" for step in reversed(wrong.steps))
        raise Rejected(wrong.code, place, wrong.expected, wrong.found) from None
    return found


def _set(value: Json, path: str, code: Code, known: Known) -> Node:
    """Read the set of calls of a statement; its filter is a separate member."""
    found = _node(value, path, code, known)
    ensure(
        not isinstance(found, nodes.Where), code, path, "the filter in a member of its own", "where"
    )
    return found


# Statements.


def _name(value: Json, path: str, code: Code, known: Known) -> str:
    """Read the name of a tool, a field, an attribute, a `let` or a parameter."""
    name = codec.read_name(value, path, code)
    ensure("`" not in name, code, path, "no backtick", name)
    return name


def _ensure_distinct(names: Sequence[str], path: str, code: Code, member: str = ".name") -> None:
    """Refuse two names whose normal forms (NFC) are equal."""
    at = _repeat(names)
    if at is not None:
        raise Rejected(code, f"{path}[{at}]{member}", "distinct names", names[at])


def _repeat(names: Sequence[str]) -> int | None:
    """Return the index of the first repeated name, or None."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        plain = name if name.isascii() else normalize("NFC", name)
        if plain in seen:
            return at
        seen.add(plain)
    return None


def _parameters(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    names: tuple[str, ...] = schema.listed(_name, 1)(value, path, code, known)
    _ensure_distinct(names, path, code, "")
    return names


def _lets(value: Json, path: str, code: Code, known: Known) -> tuple[Definition, ...]:
    lets: tuple[Definition, ...] = _DEFINITIONS(value, path, code, known)
    _ensure_distinct([let.name for let in lets], path, code)
    return lets


def _label(value: Json, path: str, code: Code, _: Known) -> str:
    """Read a text that is displayed to people."""
    text = schema.as_text(value, path, code)
    ensure(is_plain(text), code, path, "no control or hidden characters", text)
    return text


def _on(value: Json, path: str, code: Code, known: Known) -> Node | None:
    return None if value == "end" else _set(value, path, code, known)


def _end_has_no_filter(known: Known, path: str, code: Code) -> None:
    filtered = known["on"] is None and known["if"] != ()
    ensure(not filtered, code, f"{path}.if", "no filter of the end", "one")


def _within(value: Json, path: str, code: Code, _: Known) -> Duration:
    amount, _space, unit = schema.as_text(value, path, code).partition(" ")
    try:
        _ensure_span(amount, unit, 0)
    except _Wrong as wrong:
        raise Rejected(code, path, wrong.expected, wrong.found) from None
    return Duration(amount, unit)


_TOTAL_PLACES = {"depth": 0, "price": 0, "latency": 0, "cost": 9, "epsilon": 9}


def _most(value: Json, path: str, code: Code, known: Known) -> str:
    """Read the bound of a total: a JSON number if it is whole and short, else a text."""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or isinstance(value, bool):
        raise Rejected(code, path, "a number, or the text of one", value)
    number, decimals = codec.parse_decimal(text, path, code)
    short = decimals == 0 and len(text) <= nodes.SHORT_TOTAL
    ensure(short is (type(value) is int), code, path, "the one form of this number", value)
    what = known["what"]
    ensure(
        decimals <= _TOTAL_PLACES[what], code, path, f"at most {_TOTAL_PLACES[what]} places", text
    )
    nano = number * 10 ** (_TOTAL_PLACES[what] - decimals)
    ensure(-(1 << 63) < nano < 1 << 63, code, path, "a number that fits into 63 bits", text)
    ensure(number >= 0 or what == "cost", code, path, "at least 0", text)
    return text


_LET: Table = (
    row("name", _name),
    maybe("parameters", _parameters, absent=()),
    row("is", _node, "body"),
)
_DEFINITIONS = schema.listed(schema.object_of(_LET, Definition))
_IF = maybe("if", schema.listed(_condition, 1), "where", ())
_BECAUSE = maybe("because", _label)
_STATEMENTS: Mapping[str, Table] = {
    "require": (
        row("on", _on), _IF, Check(_end_has_no_filter), row("lets", _lets), row("then", _node),
        _BECAUSE,
    ),
    "ask": (
        row("on", _set), _IF, row("lets", _lets), row("who", _label), maybe("within", _within),
        _BECAUSE,
    ),
    "forbid": (row("on", _set), _IF, _BECAUSE),
    "owe": (
        row("after", _set), _IF, row("calls", _set),
        maybe("filter", schema.listed(_condition, 1), "pays", ()), maybe("within", _within),
        _BECAUSE,
    ),
    "limit": (
        row("of", _set), _IF, maybe("field", _name), row("per", schema.listed(_node)),
        maybe("within", _within), row("most", _node),
        maybe("scope", schema.one_of("session", "across")), _BECAUSE,
    ),
    "total": (row("what", schema.one_of(*nodes.TOTALS)), row("most", _most), _BECAUSE),
}  # fmt: skip
_KINDS: Mapping[str, type[Any]] = {
    "require": nodes.Require,
    "ask": nodes.Ask,
    "forbid": nodes.Forbid,
    "owe": nodes.Owe,
    "limit": nodes.Limit,
    "total": nodes.Total,
}


def _statement(value: Json, path: str, code: Code, known: Known) -> Statement:
    kind, made = tagged(value, "kind", _STATEMENTS, "a kind of statement", path, code, known)
    statement: Statement = _KINDS[kind](**made)
    if isinstance(statement, nodes.Require | nodes.Ask) and statement.lets:
        _ensure_used(statement, path, code)
    return statement


_QUESTION: Table = (
    row("kind", schema.one_of("statement", "implies", "reachable", "finishable")),
    row("statements", schema.listed(_statement)),
    maybe("lets", _lets),
)


def read_question(
    value: Json, path: str, code: Code
) -> tuple[str, tuple[Statement, ...], tuple[Definition, ...] | None]:
    """Return the kind, the statements and the `let`s of a question of a proof.

    Raises:
        Rejected: `code`: it is not well formed; D201: it exceeds a limit.
    """
    known = schema.read(_QUESTION, value, path, code, {})
    return known["kind"], known["statements"], known["lets"]


def _ensure_used(statement: nodes.Require | nodes.Ask, path: str, code: Code) -> None:
    """Refuse a `let` of the block that the statement uses neither directly nor through a `let`."""
    lets = {let.name: let for let in statement.lets}
    todo = list(statement.where)
    if isinstance(statement, nodes.Require):
        todo.append(statement.then)
    used: set[str] = set()
    while todo:
        for node in nodes.walk(todo.pop()):
            if isinstance(node, nodes.Word) and node.name in lets and node.name not in used:
                used.add(node.name)
                todo.append(lets[node.name].body)
    for i, name in enumerate(lets):
        ensure(name in used, code, f"{path}.lets[{i}]", "a `let` in use", name)


# Fields and their types.


def _values(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    """Read distinct canonical texts of values; the last text of an answer may be ``*``."""
    items = schema.as_list(value, path, code, 1)
    rest = int(items[-1] == _REST and known["role"] == "gives" and len(items) > 1)
    texts = [_value_text(items[i], f"{path}[{i}]", code) for i in range(len(items) - rest)]
    seen: set[str] = set()
    for i, text in enumerate(texts):
        ensure(text not in seen, code, f"{path}[{i}]", "distinct values", text)
        seen.add(text)
    return (*texts, *[_REST] * rest)


def _value_text(value: Json, path: str, code: Code) -> str:
    """Read the canonical text of a value that a call can have."""
    text = schema.as_text(value, path, code)
    try:
        places.plain(json_of(text))
    except Rejected as refusal:
        raise Rejected(code, path, refusal.expected, text) from None
    return text


def _place(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    steps = steps_of(schema.as_text(value, path, code), path, code)
    ensure(steps != (known["name"],), code, path, "another place than the member", value)
    return steps


def _field_holds(known: Known, path: str, code: Code) -> None:
    one = (known["type"] is None) is not (known["values"] == ())
    ensure(one, code, path, "either a type or values", "both or neither")
    many = known["at"] is not None and "*" in known["at"]
    listed = isinstance(known["type"], ListType)
    ensure(listed or not many, code, f"{path}.at", "a list, as `*` is of many", "another type")
    expected = "inside a list or object, types of `or` that canonical JSON writes differently"
    ensure(not hides(known["type"]), code, f"{path}.type", expected, "others")


def _fields(role: str) -> Form:
    """Return the reader of the fields of a tool, or of attributes.

    Args:
        role: ``fields``, ``gives`` or ``given``.
    """
    found = schema.listed(_field, 1)

    def read_fields(value: Json, path: str, code: Code, _: Known) -> tuple[Field, ...]:
        fields: tuple[Field, ...] = found(value, path, code, {"role": role, "depth": 0})
        return fields

    return read_fields


def _field(value: Json, path: str, code: Code, known: Known) -> Field:
    made = schema.read(_FIELD, value, path, code, known)
    return _made_field(role=known["role"], **made)


def _made_field(
    role: str, name: str, type: FieldType | None, values: tuple[str, ...], optional: bool,
    at: tuple[str, ...] | None,
) -> Field:  # fmt: skip
    """Return a field; null counts as absent in an optional answer that has no value null."""
    nullable = isinstance(type, NullableType) or "null" in values
    return Field(
        name=name, steps=(name,) if at is None else at, type=type, values=values,
        optional=optional, null=role == "gives" and optional and not nullable,
    )  # fmt: skip


def _ensure_heads(declared: Sequence[Given], path: str, code: Code) -> None:
    """Refuse a pointer whose first step names none of these fields."""
    fields = [(i, one) for i, one in enumerate(declared) if isinstance(one, Field)]
    members = {one.name for _, one in fields if one.steps == (one.name,)}
    for i, one in fields:
        there = one.steps == () or one.steps[0] in members
        expected = f"a field in which {one.name} lies"
        ensure(there, code, f"{path}[{i}].at", expected, pointer_of(one.steps))


def _members(value: Json, path: str, code: Code, known: Known) -> tuple[Field, ...]:
    """Read the fields of a record."""
    fields: tuple[Field, ...] = schema.listed(_field, 1)(value, path, code, known)
    _ensure_distinct([one.name for one in fields], path, code)
    return fields


def _type(value: Json, path: str, code: Code, known: Known) -> FieldType:
    depth = known["depth"] + 1
    ensure(
        depth <= MAX_NESTED_TYPES, Code.LIMIT, path,
        f"types nested at most {MAX_NESTED_TYPES} deep", "deeper",
    )  # fmt: skip
    tables = _AMONG if isinstance(value, dict) and "among" in value else _TYPES
    inside = {"role": known["role"], "depth": depth}
    kind, made = tagged(value, "kind", tables, " or ".join(_TYPES), path, code, inside)
    found: FieldType = _MADE[kind](**made)
    return found


def _element(value: Json, path: str, code: Code, known: Known) -> FieldType:
    found = _type(value, path, code, known)
    ensure(not isinstance(found, NullableType), code, path, "a type without null", "or null")
    return found


def _union(value: Json, path: str, code: Code, known: Known) -> tuple[FieldType, ...]:
    found: tuple[FieldType, ...] = schema.listed(_type, 2)(value, path, code, known)
    expected = "different types without json and null, at most one of them a list, one an object"
    ensure(fits_union(found), code, path, expected, "others")
    return found


def _pattern(value: Json, path: str, code: Code, known: Known) -> str:
    pattern = schema.as_text(value, path, code)
    ensure_quick(pattern, known["max"], path)
    return pattern


def _error_text(value: Json, path: str, code: Code, known: Known) -> str:
    """Read the pattern for answers that are texts and report an error."""
    ensure(known["errors"], code, path, "a tool whose errors mean failed", "another")
    pattern = schema.as_text(value, path, code)
    ensure_quick(pattern, 1, path)
    return pattern


def _sizes_rise(known: Known, path: str, code: Code) -> None:
    least, most = known["min"], known["max"]
    ensure(least <= most, code, f"{path}.max", f"at least {least}", most)


def _texts(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    found: tuple[str, ...] = schema.listed(schema.as_text, 1)(value, path, code, known)
    seen: set[str] = set()
    for i, text in enumerate(found):
        ensure(text not in seen, code, f"{path}[{i}]", "distinct texts", text)
        ensure(len(text) <= MAX_SIZE, code, f"{path}[{i}]", f"{MAX_SIZE} characters", len(text))
        seen.add(text)
    return found


def _end(value: Json, path: str, code: Code, _: Known) -> str:
    """Read an end of a range: canonical, and a value of the type."""
    text = schema.as_text(value, path, code)
    ensure_survives(text, path, code)
    return text


def _whole_end(value: Json, path: str, code: Code, _: Known) -> str:
    text = schema.as_text(value, path, code)
    number, decimals = codec.parse_decimal(text, path, code)
    low, high = _INTEGERS
    ensure(decimals == 0 and low <= number <= high, code, path, "an integer of the type", text)
    return text


def _ends_rise(known: Known, path: str, code: Code) -> None:
    low, high = known["low"], known["high"]
    require(low is not None, high is not None, code, f"{path}.high")
    if low is not None:
        ensure(compare(low, high) <= 0, code, f"{path}.high", f"at least {low}", high)


def _directory(value: Json, path: str, code: Code, _: Known) -> str:
    return _normal(paths.normal, value, path, code)


def _scope(value: Json, path: str, code: Code, _: Known) -> str:
    return _normal(urls.scope, value, path, code)


def _normal(read: Callable[[str], str], value: Json, path: str, code: Code) -> str:
    """Read a text that has to be in normal form."""
    text = schema.as_text(value, path, code)
    try:
        found = read(text)
    except Rejected as refusal:
        raise Rejected(code, path, refusal.expected, text) from None
    ensure(found == text, code, path, f"the normal form {found}", text)
    return text


def _zone(value: Json, path: str, code: Code, _: Known) -> int:
    """Read minutes ahead of UTC in their only form."""
    text = schema.as_text(value, path, code)
    minutes = zone_of(text)
    if minutes is None or _zone_text(minutes) != text:
        raise Rejected(code, path, "utc, +hh:mm or -hh:mm", text)
    return minutes


def _date_zone(value: Json, path: str, code: Code, known: Known) -> int:
    minutes = _zone(value, path, code, known)
    ensure(minutes != 0, code, path, "no member for utc", value)
    return minutes


def _zone_text(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}" if minutes else "utc"


def _text_of(among: tuple[str, ...]) -> TextType:
    return TextType(among=among, most=max(map(len, among)))


def _sized(most: int) -> Table:
    size = schema.whole(most + 1)
    return (row("min", size, "least"), row("max", size, "most"), Check(_sizes_rise))


def _ends(end: Form) -> Table:
    return (maybe("low", end), maybe("high", end), Check(_ends_rise))


_FIELD: Table = (
    row("name", _name),
    maybe("type", _type),
    maybe("values", _values, absent=()),
    maybe("optional", schema.as_true, absent=False),
    maybe("at", _place),
    Check(_field_holds),
)
_TYPES: Mapping[str, Table] = {
    "text": (*_sized(MAX_SIZE), maybe("pattern", _pattern)),
    "integer": _ends(_whole_end),
    "number": _ends(_end),
    "flag": (),
    "path": (maybe("under", _directory),),
    "url": (maybe("under", _scope),),
    "json": (row("max", schema.whole(MAX_SIZE + 1), "most"),),
    "time": (maybe("zone", _zone),),
    "date": (maybe("zone", _date_zone, absent=0),),
    "list": (
        *_sized(MOST_ELEMENTS),
        maybe("distinct", schema.as_true, absent=False),
        row("of", _type),
    ),
    "object": (row("fields", _members),),
    "or null": (row("of", _element),),
    "or": (row("of", _union),),
}
_AMONG: Mapping[str, Table] = {"text": (row("among", _texts),)}
_MADE: Mapping[str, Callable[..., FieldType]] = {
    "text": lambda **made: _text_of(**made) if "among" in made else TextType(**made),
    "integer": lambda low, high: NumberType(whole=True, low=low, high=high),
    "number": lambda low, high: NumberType(whole=False, low=low, high=high),
    "flag": FlagType,
    "path": PathType,
    "url": UrlType,
    "json": JsonType,
    "time": TimeType,
    "date": DateType,
    "list": ListType,
    "object": RecordType,
    "or null": NullableType,
    "or": UnionType,
}


# Tools, and the models that estimate the costs of their calls or make them.

_QUALITY_PLACES = 9


def _quality(value: Json, path: str, code: Code, _: Known) -> tuple[int, int]:
    """Read a quality; the default is never written."""
    number, decimals = codec.parse_decimal(schema.as_text(value, path, code), path, code)
    holds = 0 < number <= 10**decimals and decimals <= _QUALITY_PLACES
    fits = holds and (number, decimals) != model.HALF
    ensure(fits, code, path, "above 0, at most 1, nine places at most, and not 0.5", value)
    return number, decimals


def _atom(value: Json, path: str, code: Code, _: Known) -> Any:
    return canonical_atom(value, path, code)


def _execute(value: Json, path: str, code: Code, known: Known) -> dict[str, Any]:
    """Read the amounts of making a call; it needs an atom if the model has one."""
    made = schema.read(_AMOUNTS, value, path, code, known)
    lost = known["atom"] is not None and made["atom"] is None
    ensure(not lost, code, f"{path}.atom", "an atom, as the model has one", "none")
    return made


def _model(execute: dict[str, Any] | None, **made: Any) -> Model:
    asked = Model(**made)
    return asked if execute is None else replace(asked, execute=replace(asked, **execute))


def _bind(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    kind, made = tagged(value, "kind", _BINDINGS, "mcp or python", path, code, known)
    return (kind, *made.values())


def _tool_holds(known: Known, path: str, code: Code) -> None:
    arguments, answers = known["fields"], known["gives"]
    at = _repeat([field.name for field in (*arguments, *answers)])
    if at is not None:
        size = len(arguments)
        member = f"fields[{at}]" if at < size else f"gives[{at - size}]"
        raise Rejected(code, f"{path}.{member}.name", "distinct names", "a repeat")
    _ensure_heads(arguments, f"{path}.fields", code)
    answered = any(field.type is None for field in answers)
    ensure(answered or not known["strict"], code, f"{path}.strict", "a listed answer", "none")
    require(known["in"] is not None, known["out"] is not None, code, f"{path}.out")


_AMOUNTS: Table = (
    row("price", schema.as_unsigned),
    row("latency_ms", schema.as_unsigned, "latency"),
    row("epsilon", schema.as_unsigned),
    maybe("atom", _atom),
)
_MODEL: Table = (
    row("name", schema.as_name),
    maybe("adapter", schema.as_text, absent=""),
    maybe("quality", _quality, absent=model.HALF),
    *_AMOUNTS,
    maybe("execute", _execute),
)
_BINDINGS: Mapping[str, Table] = {
    "mcp": (row("server", schema.as_text), row("tool", schema.as_text)),
    "python": (row("target", schema.as_text),),
}
_TOOL: Table = (
    row("name", _name),
    maybe("fields", _fields("fields"), "arguments", ()),
    maybe("gives", _fields("gives"), "answers", ()),
    maybe("doc", schema.as_text),
    maybe("quotes", schema.word("same"), "quotes_same", absent=False),
    maybe("errors", schema.word("failed"), "errors_failed", absent=False),
    maybe("error_text", _error_text),
    maybe("parallel", schema.as_true, absent=False),
    maybe("bind", _bind),
    maybe("strict", schema.as_true, absent=False),
    maybe("in", schema.as_name, "takes"),
    maybe("out", schema.as_name, "gives"),
    maybe("models", schema.listed(schema.object_of(_MODEL, _model), 1), absent=()),
    Check(_tool_holds),
)
_TOOL_LIST = schema.listed(schema.object_of(_TOOL, Tool))


def _tools(value: Json, path: str, code: Code, known: Known) -> tuple[Tool, ...]:
    size = len(schema.as_list(value, path, code))
    ensure(size <= MAX_TOOLS, Code.LIMIT, path, f"{MAX_TOOLS} at most", size)
    tools: tuple[Tool, ...] = _TOOL_LIST(value, path, code, known)
    _ensure_distinct([tool.name for tool in tools], path, code)
    return tools


# Attributes that a session starts with or learns.


def _given(value: Json, path: str, code: Code, known: Known) -> tuple[Given, ...]:
    given: list[Given] = []
    known = {
        "fields_of": {
            tool.name: {field.name for field in (*tool.arguments, *tool.answers)}
            for tool in known["tools"]
        }
    }
    for i, item in enumerate(schema.as_list(value, path, code, 1)):
        place = f"{path}[{i}]"
        if isinstance(item, dict) and "from" in item:
            made = schema.read(_LEARNED, item, place, code, known)
            given.append(Learned(**made))
        else:
            given.append(_field(item, place, code, {"role": "given", "depth": 0}))
    _ensure_distinct([one.name for one in given], path, code)
    _ensure_heads(given, path, code)
    return tuple(given)


def _source(value: Json, path: str, code: Code, known: Known) -> tuple[str, str]:
    """Read a tool and a field of this tool."""
    tool, field = schema.as_tuple(value, path, code, 2, "members")
    fields = known["fields_of"].get(schema.as_text(tool, f"{path}[0]", code))
    ensure(fields is not None, code, f"{path}[0]", "a tool", tool)
    there = schema.as_text(field, f"{path}[1]", code) in fields
    ensure(there, code, f"{path}[1]", f"a field of {tool}", field)
    return str(tool), str(field)


_LEARNED: Table = (row("name", _name), row("from", schema.listed(_source, 1), "sources"))


# Plans, calls, and the whole core.


def _calls(value: Json, path: str, code: Code, known: Known) -> tuple[Call, ...]:
    """Read calls, strictly increasing by the bytes of their texts."""
    items = schema.as_list(value, path, code)
    ensure(len(items) <= MAX_CALLS, Code.LIMIT, path, f"{MAX_CALLS} at most", len(items))
    heads = [_Head(tool) for tool in known["tools"]]
    calls = [_call(item, f"{path}[{i}]", code, heads) for i, item in enumerate(items)]
    schema.ensure_increasing([call.text for call in calls], path, code)
    return tuple(calls)


class _Head:
    """The parts of the texts of a tool's calls: its name, and the values of each listed field."""

    def __init__(self, tool: Tool) -> None:
        self.name = codec.written(tool.name)
        self.values: list[tuple[str, ...]] = []
        for field in tool.listed:
            name = codec.written(field.name)
            texts = [f"{name}={text}" for text in field.values]
            self.values.append((_ABSENT,) * field.optional + tuple(texts))

    def text(self, values: Sequence[int]) -> str:
        """Return the canonical text of a call, without absent fields."""
        chosen = [texts[at] for texts, at in zip(self.values, values, strict=True) if texts[at]]
        return f"{self.name}({','.join(chosen)})" if chosen else self.name


def _call(value: Json, path: str, code: Code, heads: Sequence[_Head]) -> Call:
    item = schema.as_tuple(value, path, code, 7, "members")
    tool = schema.as_whole(item[0], f"{path}[0]", code, len(heads))
    head = heads[tool]
    chosen = schema.as_tuple(item[1], f"{path}[1]", code, len(head.values), "values")
    values = tuple(
        [
            schema.as_whole(at, f"{path}[1][{i}]", code, len(head.values[i]))
            for i, at in enumerate(chosen)
        ]
    )
    low, high = [_cost(item[i], f"{path}[{i}]", code) for i in (2, 3)]
    ensure(low <= high, code, f"{path}[3]", f"cost_high of at least {low}", high)
    price, latency, epsilon = [schema.as_unsigned(item[i], f"{path}[{i}]", code) for i in (4, 5, 6)]
    return Call(
        text=head.text(values), tool=tool, values=values, cost_low=low, cost_high=high,
        price=price, latency=latency, epsilon=epsilon,
    )  # fmt: skip


def _cost(value: Json, path: str, code: Code) -> int:
    """Read a signed number of 64 bits."""
    number = codec.read_large(value, path, code)
    ensure(-(1 << 63) <= number < 1 << 63, code, path, "64 bits, signed", number)
    return number


def _ranges(value: Json, path: str, code: Code, known: Known) -> CallSet:
    """Read half-open ranges of calls that increase and do not touch."""
    found = []
    least = 0
    for i, item in enumerate(schema.as_list(value, path, code)):
        place = f"{path}[{i}]"
        pair = schema.as_tuple(item, place, code, 2, "members")
        low, high = (schema.as_whole(end, place, code, len(known["calls"]) + 1) for end in pair)
        ensure(least <= low < high, code, place, f"a range that starts at {least} or later", pair)
        found.append((low, high))
        least = high + 1
    return tuple(found)


def _rules(value: Json, path: str, code: Code, known: Known) -> Mapping[str, Expr]:
    rules: dict[str, Expr] = {}
    names = []
    for i, entry in enumerate(schema.as_list(value, path, code)):
        place = f"{path}[{i}]"
        pair = schema.as_tuple(entry, place, code, 2, "members")
        names.append(schema.as_name(pair[0], f"{place}[0]", code))
        rules[names[-1]] = _expression(pair[1], f"{place}[1]", code, known)
    schema.ensure_increasing(names, path, code)
    return rules


def _expression(value: Json, path: str, _: Code, known: Known) -> Expr:
    return read_expression(value, path, len(known["patterns"]))


def _rules_hold(known: Known, _path: str, _code: Code) -> None:
    check_rules(known["plan"], known["rules"])


def _patterns_are_used(known: Known, path: str, code: Code) -> None:
    used = {
        node.pattern
        for expression in (known["plan"], *known["rules"].values())
        for node in walk(expression)
        if isinstance(node, model.OneCall)
    }
    unused = next((p for p in range(len(known["patterns"])) if p not in used), None)
    ensure(unused is None, code, f"{path}.patterns[{unused}]", "a pattern in use", "another")


def _goals(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    goals: tuple[str, ...] = schema.listed(schema.as_name, 1, str)(value, path, code, known)
    return goals


def _start_and_goals(known: Known, path: str, code: Code) -> None:
    require(known["start"] is not None, known["goals"] != (), code, f"{path}.goals")


_GRAMMAR: Table = (row("version", schema.as_version), row("name", schema.as_name))
_CORE: Table = (
    row("grammar", schema.object_of(_GRAMMAR, dict)),
    row("tools", _tools),
    row("calls", _calls),
    row("patterns", schema.listed(_ranges, rises=tuple)),
    row("rules", _rules),
    row("plan", _expression),
    Check(_rules_hold),
    Check(_patterns_are_used),
    maybe("start", schema.as_name),
    maybe("goals", _goals, absent=()),
    Check(_start_and_goals),
    maybe("pass", schema.listed(schema.one_of(*model.PASSABLE), 1, rises=str), "passed", ()),
    maybe("given", _given, absent=()),
    maybe("lets", _lets, absent=()),
    maybe("zones", read_zones),
    row("statements", schema.listed(_statement)),
)


def _core_of(value: Json) -> Core:
    item = schema.as_mapping(value, "core", Code.CORE_SCHEMA)
    found = item.get("schema")
    ensure(found == SCHEMA, Code.UNKNOWN_VERSION, "core.schema", SCHEMA, _shown(found or "none"))
    made = schema.read(_CORE, item, "core", Code.CORE_SCHEMA, {}, ("schema",))
    return Core(**made.pop("grammar"), **made)


# The meaning of statements, and the paths of mistakes in them.


def _policy_of(core: Core) -> Policy:
    try:
        policy = policy_of(core)
    except Fault as fault:
        codes = {"D201": Code.LIMIT}
        path = next((path for part, path in _places(core) if part is fault.node), "core")
        found = f"{fault.code}: {fault.message}"
        code = codes.get(fault.code, Code.CORE_SCHEMA)
        raise Rejected(code, path, "a statement that has a meaning", found) from None
    if core.zones is not None:
        unused = core.zones.of.keys() - nodes.zone_names(_roots(core))
        expected = "zones that a statement names"
        ensure(not unused, Code.CORE_SCHEMA, "core.zones.of", expected, sorted(unused))
    if policy.bare_texts:
        for part, path in _places(core):
            if id(part) in policy.bare_texts and isinstance(part, nodes.Text):
                expected = f'the bare word ["name","{part.value}"]'
                raise Rejected(Code.CORE_SCHEMA, path, expected, "the same as a quoted text")
    return policy


def _roots(core: Core) -> Iterator[Node]:
    """Yield the nodes of a core that are not inside another node."""
    for let in core.lets:
        yield let.body
    for statement in core.statements:
        yield from nodes.roots_of(statement)


def _places(core: Core) -> Iterator[tuple[object, str]]:
    """Yield all parts of a core that can have a mistake, each with its path."""
    for i, given in enumerate(core.given):
        yield given, f"core.given[{i}]"
    for i, let in enumerate(core.lets):
        yield from _let_places(let, f"core.lets[{i}]")
    for i, statement in enumerate(core.statements):
        yield from _statement_places(statement, f"core.statements[{i}]")


def _statement_places(statement: Statement, path: str) -> Iterator[tuple[object, str]]:
    yield statement, path
    kind = next(name for name, made in _KINDS.items() if isinstance(statement, made))
    for entry in _STATEMENTS[kind]:
        if not isinstance(entry, Row) or entry.to is None:
            continue
        value = getattr(statement, entry.to)
        place = f"{path}.{entry.name}"
        if isinstance(value, Node):
            yield from _node_places(value, place)
        elif isinstance(value, tuple):
            for at, part in enumerate(value):
                inner = f"{place}[{at}]"
                found = _node_places if isinstance(part, Node) else _let_places
                yield from found(part, inner)


def _let_places(let: Definition, path: str) -> Iterator[tuple[object, str]]:
    yield let, path
    yield from _node_places(let.body, f"{path}.is")


def _node_places(node: Node, path: str) -> Iterator[tuple[object, str]]:
    todo = [(node, path)]
    while todo:
        node, path = todo.pop()
        yield node, path
        at = 0
        inner = []
        for letter, value in zip(node.SHAPE, nodes.values_of(node), strict=True):
            for part in value if letter in "NS" else (value,):
                at += 1
                if isinstance(part, Node):
                    inner.append((part, f"{path}[{at}]"))
        todo += reversed(inner)


# JSON.

_Object: TypeAlias = "dict[str, Json]"


def core_json(core: Core) -> dict[str, Json]:
    """Return the JSON object of a core, which :func:`read_core` reads."""
    return _present(
        schema=SCHEMA,
        grammar={"name": core.name, "version": core.version},
        start=core.start,
        goals=list(core.goals),
        given=[_given_json(one) for one in core.given],
        lets=[nodes.definition_json(let) for let in core.lets],
    ) | {
        "tools": [tool_json(tool) for tool in core.tools],
        "calls": [_call_json(call) for call in core.calls],
        "patterns": [[list(ends) for ends in ranges] for ranges in core.patterns],
        "rules": [[name, _expression_json(rule)] for name, rule in core.rules.items()],
        "plan": _expression_json(core.plan),
        "statements": [nodes.statement_json(statement) for statement in core.statements],
        **_present(**{"pass": list(core.passed)}),
        **_present(zones=None if core.zones is None else zones_json(core.zones)),
    }


def core_bytes(core: Core) -> bytes:
    """Return the canonical bytes of a core, as an artifact has them."""
    return codec.encode(core_json(core))


def core_digest(core: Core) -> str:
    """Return the digest of a core, hex; proofs about the core name it."""
    return codec.blake(core_bytes(core)).hex()


def _present(**members: Json | None) -> _Object:
    """Return the members that are not None, false or an empty list."""
    return {
        name: value
        for name, value in members.items()
        if value is not None and value is not False and value != []
    }


def tool_json(tool: Tool) -> _Object:
    """Return the JSON object of a tool, as the core has it."""
    return _present(
        name=tool.name,
        fields=[_field_json(field) for field in tool.arguments],
        gives=[_field_json(field) for field in tool.answers],
        doc=tool.doc,
        quotes="same" if tool.quotes_same else None,
        errors="failed" if tool.errors_failed else None,
        error_text=tool.error_text,
        parallel=tool.parallel,
        strict=tool.strict,
        bind=None if tool.bind is None else _bind_json(*tool.bind),
        out=tool.gives,
        models=[_model_json(one) for one in tool.models],
    ) | _present(**{"in": tool.takes})


def _bind_json(kind: str, *texts: str) -> _Object:
    names = [entry.name for entry in _BINDINGS[kind] if isinstance(entry, Row)]
    return {"kind": kind, **dict(zip(names, texts, strict=True))}


def _model_json(one: Model) -> _Object:
    adapter = one.adapter or None
    quality = None if one.quality == model.HALF else codec.format_decimal(*one.quality)
    execute = None if one.execute is None else _amounts_json(one.execute)
    return _amounts_json(one) | _present(
        name=one.name, adapter=adapter, quality=quality, execute=execute
    )


def _amounts_json(one: Model) -> _Object:
    atom = None if one.atom is None else atom_document(one.atom)
    return {
        "price": codec.large(one.price),
        "latency_ms": codec.large(one.latency),
        "epsilon": codec.large(one.epsilon),
        **_present(atom=atom),
    }


def _field_json(field: Field) -> _Object:
    return _present(
        name=field.name,
        type=None if field.type is None else _type_json(field.type),
        values=list(field.values),
        optional=field.optional,
        at=None if field.steps == (field.name,) else pointer_of(field.steps),
    )


def _type_json(kind: FieldType) -> _Object:
    match kind:
        case TextType(among=among) if among:
            return {"kind": "text", "among": list(among)}
        case TextType(least=least, most=most, pattern=pattern):
            return {"kind": "text", "min": least, "max": most, **_present(pattern=pattern)}
        case NumberType(whole=whole, low=low, high=high):
            return {"kind": "integer" if whole else "number", **_present(low=low, high=high)}
        case FlagType():
            return {"kind": "flag"}
        case PathType(under=under) | UrlType(under=under):
            return _present(kind="path" if isinstance(kind, PathType) else "url", under=under)
        case JsonType(most=most):
            return {"kind": "json", "max": most}
        case TimeType(zone=zone):
            return _present(kind="time", zone=None if zone is None else _zone_text(zone))
        case DateType(zone=zone):
            return _present(kind="date", zone=_zone_text(zone) if zone else None)
        case ListType(of=of, least=least, most=most, distinct=distinct):
            sizes: _Object = {"kind": "list", "min": least, "max": most, "of": _type_json(of)}
            return sizes | _present(distinct=distinct)
        case RecordType(fields=fields):
            return {"kind": "object", "fields": [_field_json(field) for field in fields]}
        case NullableType(of=of):
            return {"kind": "or null", "of": _type_json(of)}
        case UnionType(of=types):
            return {"kind": "or", "of": [_type_json(one) for one in types]}
    raise TypeError(kind)


def _given_json(given: Given) -> _Object:
    if isinstance(given, Field):
        return _field_json(given)
    return {"name": given.name, "from": [list(source) for source in given.sources]}


def _call_json(call: Call) -> Json:
    return [
        call.tool, list(call.values), codec.large(call.cost_low), codec.large(call.cost_high),
        codec.large(call.price), codec.large(call.latency), codec.large(call.epsilon),
    ]  # fmt: skip


_TAGS: Mapping[type[Any], str] = {
    model.Empty: "empty", model.OneCall: "call", model.RuleRef: "rule", model.Seq: "seq",
    model.Alt: "alt", model.Both: "and", model.Diff: "diff", model.Repeat: "repeat",
}  # fmt: skip


def _expression_json(expression: Expr) -> Json:
    """Return the JSON of an expression, without recursion: it may be as deep as JSON allows."""
    done: list[Json] = []
    todo: list[tuple[Expr, bool]] = [(expression, False)]
    while todo:
        node, visited = todo.pop()
        inner = parts(node)
        if not visited:
            todo.append((node, True))
            todo += [(part, False) for part in reversed(inner)]
            continue
        first = len(done) - len(inner)
        tag, made = _TAGS[type(node)], done[first:]
        del done[first:]
        match node:
            case model.OneCall(pattern=pattern):
                done.append([tag, pattern])
            case model.RuleRef(name=name):
                done.append([tag, name])
            case model.Repeat(low=low, high=high):
                done.append([tag, made[0], low, *(() if high is None else (high,))])
            case model.Diff():
                done.append([tag, made[0], made[1:]])
            case model.Empty():
                done.append([tag])
            case _:
                done.append([tag, made])
    return done[0]
