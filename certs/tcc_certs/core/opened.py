"""Open parameters of tools, and monitors: statements over them, which no automaton holds.

Normative text: docs/spec/core.md, sections 1, 2 and 5.  What a value of an open parameter may be is
decided in :mod:`tcc_certs.values`; here a core is held to types that have a value at all and one
way of being written.  A gate holds what a monitor says; of a ``require`` the automaton holds what
it can, a `before` between the same calls, and that this is there is looked at here.
Cost: linear in the bytes, and for each ``require`` linear in its tools' calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcc_certs.core import model
from tcc_certs.core.derived import Owned, read_selection, selection_text
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, encode, read_name, written
from tcc_certs.formats.schema import Check, Form, Known, Table, maybe, row, tagged
from tcc_certs.limits import MAX_CALLS
from tcc_certs.values.declared import FlagType, JsonType, NumberType, OpenParameter, TextType
from tcc_certs.values.numbers import as_amount, compare, ensure_survives, is_decimal

if TYPE_CHECKING:
    from tcc_certs.values.fields import Field, FieldType

MAX_SIZE = 1 << 20  # code points of a text, bytes of a JSON value
_LISTED = "listed"  # the kind of a listed parameter; those of open ones are named by their types


def _pattern(value: Json, path: str, code: Code, known: Known) -> str:
    from tcc_certs.values.text_syntax import ensure_quick

    pattern = schema.as_text(value, path, code)
    ensure_quick(pattern, known["max"], path)
    return pattern


def _sizes_rise(known: Known, path: str, code: Code) -> None:
    least, most = known["min"], known["max"]
    ensure(least <= most, code, f"{path}.max", f"at least {least}", most)


def _end(value: Json, path: str, code: Code, _: Known) -> str:
    """An end of a range: canonical, and a value of the type."""
    text = schema.as_text(value, path, code)
    ensure_survives(text, path, code)
    return text


def _whole_end(value: Json, path: str, code: Code, known: Known) -> str:
    text = _end(value, path, code, known)
    ensure("." not in text, code, path, "a schema.whole number", text)
    return text


def _ends_rise(known: Known, path: str, code: Code) -> None:
    low, high = known["low"], known["high"]
    require(low is not None, high is not None, code, f"{path}.high")
    if low is not None:
        ensure(compare(low, high) <= 0, code, f"{path}.high", f"at least {low}", high)


def _numbers(end: Form) -> Table:
    return (maybe("low", end), maybe("high", end), Check(_ends_rise))


def _zone(value: Json, path: str, code: Code, _: Known) -> int:
    """Minutes ahead of UTC; in its one form."""
    from tcc_certs.values.fields import zone_of

    text = schema.as_text(value, path, code)
    minutes = None if text in ("Z", "z") else zone_of(text)
    if minutes is None:
        raise Rejected(code, path, "utc, +hh:mm or -hh:mm", text)
    return minutes


def _elements(value: Json, path: str, code: Code, known: Known) -> Any:
    """The type of a list's elements: an open one without a name, or a record."""
    depth = known.get("depth", 0) + 1
    ensure(depth < _MOST_NESTED, Code.LIMIT, path, f"types nested less than {_MOST_NESTED}", depth)
    inside = {**known, "depth": depth}
    kind, made = tagged(
        value, "type", {**TYPES, "record": _RECORD}, "a type of elements", path, code, inside
    )
    if kind == "record":
        from tcc_certs.values.fields import RecordType

        return RecordType(fields=made["fields"])
    return _type(kind, made)


def _cells(value: Json, path: str, code: Code, known: Known) -> Any:
    """The fields of a record, of distinct names."""
    found = [field_of(one) for one in read_opened(value, path, code, known)]
    names = [one.name for one in found]
    ensure(len(set(names)) == len(names), code, path, "distinct names", names)
    return tuple(found)


MAX_ELEMENTS = 1000
_MOST_NESTED = 16
_RECORD: Table = (row("fields", _cells),)
_ZONE: Table = (maybe("zone", _zone),)
TYPES: Mapping[str, Table] = {
    "text": (
        row("min", schema.whole(MAX_SIZE + 1), "least"),
        row("max", schema.whole(MAX_SIZE + 1), "most"),
        Check(_sizes_rise),
        maybe("pattern", _pattern),
    ),
    "integer": _numbers(_whole_end),
    "number": _numbers(_end),
    "flag": (),
    "json": (row("max", schema.whole(MAX_SIZE + 1), "most"),),
    "list": (
        row("min", schema.whole(MAX_ELEMENTS + 1), "least"),
        row("max", schema.whole(MAX_ELEMENTS + 1), "most"),
        Check(_sizes_rise),
        maybe("distinct", schema.as_true, absent=False),
        row("of", _elements),
    ),
    "time": _ZONE,
    "date": _ZONE,
}


def read_place(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    """The steps of a pointer, to another place than the member of the field's name.

    Args:
        known: with the name.
    """
    from tcc_certs.values.fields import steps_of

    steps = steps_of(schema.as_text(value, path, code), path, code)
    ensure(steps != (known["name"],), code, path, "another place than the member", value)
    return steps


def _null_is_left_out(known: Known, path: str, code: Code) -> None:
    ensure(
        known["optional"] or not known["null"], code, f"{path}.null", "an optional field", "null"
    )
    many = known["at"] is not None and "*" in known["at"]
    listed = known["type"] == "list"
    ensure(listed or not many, code, f"{path}.at", "a list, as `*` is of many", known["type"])


_PLACED: Table = (
    maybe("optional", schema.as_true, absent=False),
    maybe("at", read_place),
    maybe("null", schema.as_true, absent=False),
    Check(_null_is_left_out),
)
OPEN: Mapping[str, Table] = {
    kind: (row("name", read_name), *table, *_PLACED) for kind, table in TYPES.items()
}
_OF_FIELDS = ("name", "optional", "at", "null")


def _opened(value: Json, path: str, code: Code, known: Known) -> OpenParameter:
    kind, made = tagged(value, "type", OPEN, "a type of open parameters", path, code, known)
    members = {name: made.pop(name) for name in _OF_FIELDS}
    return OpenParameter(type=_type(kind, made), **members)


read_opened = schema.listed(_opened, 1)  # of a tool, in declared order


def read_given(value: Json, path: str, code: Code, known: Known) -> tuple[OpenParameter, ...]:
    """What a session is given when it begins, in declared order; each name once.

    Raises:
        Rejected: `code`.
    """
    given: tuple[OpenParameter, ...] = read_opened(value, path, code, known)
    names = [one.name for one in given]
    ensure(len(set(names)) == len(names), code, path, "attributes of different names", names)
    members = {one.name for one in given if one.at is None}
    for i, one in enumerate(given):
        there = not one.at or one.at[0] in members
        ensure(there, code, f"{path}[{i}]", f"an attribute in which {one.name} lies", one.at)
    return given


def _type(kind: str, made: dict[str, Any]) -> FieldType:
    match kind:
        case "text":
            return TextType(**made)
        case "flag":
            return FlagType()
        case "json":
            return JsonType(**made)
        case "integer" | "number":
            return NumberType(whole=kind == "integer", **made)
    from tcc_certs.values import fields  # here: a core of 1.1 has none of it to load

    match kind:
        case "list":
            return fields.ListType(**made)
        case "time":
            return fields.TimeType(**made)
        case _:
            return fields.DateType(zone=made["zone"] or 0)


def ensure_heads(known: Known, path: str, code: Code) -> None:
    """The member at the head of each argument's place is an argument itself."""
    arguments = [*[one for one in known["params"] if not one.observed], *known["open"]]
    members = {one.name for one in arguments if one.at is None}
    for one in arguments:
        there = not one.at or one.at[0] in members
        ensure(there, code, path, f"an argument in which {one.name} lies", one.at)


def _chosen(value: Json, path: str, code: Code, known: Known) -> model.Selection:
    """A selection by no observed value: that would be known too late, when the call was made."""
    selection: model.Selection = read_selection(value, path, code, known)
    _ensure_chosen(selection, path, code, known)
    return selection


def _ensure_chosen(selection: model.Selection, path: str, code: Code, known: Known) -> None:
    for param, _ in selection.where:
        parameter = known["tools"][selection.tool].parameters[param]
        ensure(not parameter.observed, code, path, "no observed parameter", parameter.name)


def _last_is_chosen(known: Known, path: str, code: Code) -> None:
    """What may come last is chosen by its caller: the second, of ``with`` either of the two."""
    for side in ("first", "second") if known["order"] == "with" else ("second",):
        _ensure_chosen(known[side], f"{path}.{side}", code, known)


def _same(value: Json, path: str, code: Code, known: Known) -> tuple[tuple[str, str], ...]:
    """The pairs of parameters that agree, strictly increasing; in one of them both are open."""
    tools = [known["tools"][known[side].tool] for side in ("first", "second")]
    pairs: list[tuple[str, str]] = []
    opened = False
    for i, entry in enumerate(schema.as_list(value, path, code, 1)):
        place = f"{path}[{i}]"
        names = [schema.as_text(name, place, code) for name in schema.as_list(entry, place, code)]
        ensure(len(names) == 2, code, place, "a pair of names", names)
        kinds = [_kind(tool, name, place, code) for tool, name in zip(tools, names, strict=True)]
        ensure(kinds[0] == kinds[1], code, place, "parameters that can be compared", kinds)
        opened = opened or kinds[0] != _LISTED
        pairs.append((names[0], names[1]))
    schema.ensure_increasing(pairs, path, code)
    ensure(opened, code, path, "a pair of open parameters", "none")
    return tuple(pairs)


def _kind(tool: model.Tool, name: str, path: str, code: Code) -> str:
    """What the values of a parameter can be compared with; it is neither optional nor observed."""
    for parameter in tool.parameters:
        if parameter.name == name:
            fixed = not (parameter.optional or parameter.observed)
            ensure(fixed, code, path, "a parameter of every call, chosen by its caller", name)
            return _LISTED
    return _class_of(_open_type(tool, name, path, code), path, code)


def _open_type(tool: model.Tool, name: str, path: str, code: Code) -> Any:
    for parameter in tool.opened:
        if parameter.name == name:
            ensure(not parameter.optional, code, path, "a parameter of every call", name)
            return parameter.type
    raise Rejected(code, path, f"a parameter of {tool.name}", name)


def _class_of(of: FieldType, path: str, code: Code) -> str:
    match of:
        case TextType():
            return "text"
        case NumberType():
            return "number"
        case FlagType():
            return "flag"
    raise Rejected(code, path, "a text, a number or a flag", "another type")


def _summed(value: Json, path: str, code: Code, known: Known) -> str:
    name = schema.as_text(value, path, code)
    of = _open_type(known["tools"][known["tool"]], name, path, code)
    if not isinstance(of, NumberType) or of.low is None or of.low.startswith("-"):
        raise Rejected(code, path, "a number of at least 0", name)
    return name


def _per(value: Json, path: str, code: Code, known: Known) -> str:
    name = schema.as_text(value, path, code)
    _class_of(_open_type(known["tools"][known["of"].tool], name, path, code), path, code)
    return name


def _pairs(*orders: str) -> Table:
    return (
        row("order", schema.one_of(*orders)),
        row("first", read_selection),
        row("second", read_selection),
        Check(_last_is_chosen),
        row("same", _same),
    )


MONITORS: Mapping[str, Table] = {
    "require": _pairs("before", "each"),
    "forbid": _pairs("before", "with"),
    "sum": (
        row("tool", schema.index_in("tools")),
        row("param", _summed, "parameter"),
        row("value", as_amount),
    ),
    "uses": (row("of", _chosen, "calls"), row("per", _per), row("value", schema.as_unsigned)),
}


def read_monitors(value: Json, path: str, code: Code, known: Known) -> tuple[model.Monitor, ...]:
    """The monitors, one at least, strictly increasing by their canonical bytes.

    Raises:
        Rejected: C801; D201 where the call sets take too much work.
    """
    items = schema.as_list(value, path, code, 1)
    found: list[model.Monitor] = []
    for i, item in enumerate(items):
        if isinstance(item, dict) and item.get("kind") in _LATER:
            found.append(_policy(item, f"{path}[{i}]", code, known))
            continue
        kind, made = tagged(
            item, "kind", MONITORS, "a kind of monitor", f"{path}[{i}]", code, known
        )
        found.append(_monitor(kind, made, known["tools"]))
    schema.ensure_increasing([encode(item) for item in items], path, code)
    _check_requires(found, path, code, known)
    return tuple(found)


_LATER = ("apart", "ban", "count", "need", "owe", "total")


def _policy(item: Mapping[str, Json], path: str, code: Code, known: Known) -> model.Monitor:
    """A statement of version 1.2, of which nothing is left that nobody would hold."""
    from tcc_certs.core.policies import Fields, LookUp, Total, read_policy
    from tcc_certs.core.wording import Wording

    tools = known["tools"]
    looks = {one.name: one for one in known["lets"] if isinstance(one, LookUp)}
    names = {one.name for one in known["given"] + known["lets"]} - looks.keys()
    made = tuple(map(fields_of, tools))
    fields = Fields(tools=made, session=frozenset(names), looks=looks)
    policy = read_policy(item, path, code, fields)
    if isinstance(policy, Total):
        _check_total(tools[policy.tool], policy.parameter, path, code)
    return model.PolicyMonitor(
        policy=policy, text=Wording([tool.name for tool in tools]).of(policy)
    )


def _check_total(tool: model.Tool, name: str, path: str, code: Code) -> None:
    """What is added up is known when a call is made, and never makes a sum less."""
    for parameter in tool.opened:
        of = parameter.type
        if parameter.name == name:
            plain = isinstance(of, NumberType) and of.low is not None and of.low[0] != "-"
            ensure(plain, code, path, "a number of at least 0", name)
            return
    for listed in tool.parameters:
        if listed.name == name:
            texts = listed.values[int(listed.optional) :]
            plain = all(is_decimal(text) and text[0] != "-" for text in texts)
            ensure(plain and not listed.observed, code, path, "an argument of at least 0", name)
            return
    raise Rejected(code, path, "an argument of the tool", name)


def fields_of(tool: model.Tool) -> Mapping[str, Field]:
    """The fields of a tool, by their names: listed and observed, open, and answers."""
    from tcc_certs.values.fields import Field  # here: a core of 1.1 has none of it to load

    found = {
        one.name: Field(
            name=one.name,
            steps=(one.name,) if one.at is None else one.at,
            values=one.values,
            optional=one.optional,
        )
        for one in tool.parameters
    }
    for given in (*tool.opened, *tool.answers):
        found[given.name] = field_of(given)
    return found


def field_of(one: OpenParameter) -> Field:
    """An open parameter or answer as a field."""
    from tcc_certs.values.fields import Field

    return Field(
        name=one.name,
        steps=(one.name,) if one.at is None else one.at,
        type=one.type,
        optional=one.optional,
        null=one.null,
    )


def _monitor(kind: Any, made: dict[str, Any], tools: Sequence[model.Tool]) -> model.Monitor:
    """A monitor with its text, as a grammar writes it."""
    match kind:
        case "sum":
            name = f"{written(tools[made['tool']].name)}.{written(made['parameter'])}"
            return model.SumMonitor(**made, text=f"limit sum({name}) <= {made['value']}")
        case "uses":
            calls, per = selection_text(made["calls"], tools), written(made["per"])
            return model.UsesMonitor(
                **made, text=f"limit uses({calls}) per {per} <= {made['value']}"
            )
        case _:
            pairs = [
                written(a) if a == b else f"{written(a)} = {written(b)}" for a, b in made["same"]
            ]
            words = "before each" if made["order"] == "each" else made["order"]
            one, other = (selection_text(made[side], tools) for side in ("first", "second"))
            text = f"{kind} {one} {words} {other} same {', '.join(pairs)}"
            return model.OrderMonitor(kind=kind, **made, text=text)


def _check_requires(monitors: Sequence[model.Monitor], path: str, code: Code, known: Known) -> None:
    """Every ``require`` among the monitors has a plain `before` between its calls in the core."""
    number = {pattern: index for index, pattern in enumerate(known["patterns"])}
    before = {(s.first, s.second) for s in known["requires"] if s.order == "before"}
    owned = Owned(known["tools"], known["calls"])
    of: dict[model.Selection, int | None] = {}
    work = 0
    for i, monitor in enumerate(monitors):
        if not isinstance(monitor, model.OrderMonitor) or monitor.kind != "require":
            continue
        for selection in (monitor.first, monitor.second):
            if selection not in of:
                work += owned.size(selection.tool)
                ensure(work <= 4 * MAX_CALLS, Code.LIMIT, path, "fewer monitors", "more")
                of[selection] = number.get(owned.selected(selection))
        there = (of[monitor.first], of[monitor.second]) in before
        expected = f"a require before of the calls of {monitor.text}"
        ensure(there, code, f"{path}[{i}]", expected, "none")
