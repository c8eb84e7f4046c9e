"""Monitors: statements over open parameters, their schema, their texts, what holds beside them.

Normative text: docs/spec/core.md, sections 1 and 5.  A gate holds what a monitor says; of a
``require`` the automaton holds as much as it can, a `before` between the same calls, and that it is
there is looked at here.  Cost: linear, and for each ``require`` linear in its tools' calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import (
    Call,
    CallSet,
    Monitor,
    OrderMonitor,
    Require,
    Selection,
    SumMonitor,
    Tool,
    UsesMonitor,
)
from tcc_certs.core.selections import Owned, read_selection, selection_text
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.decimals import is_decimal
from tcc_certs.formats.names import written
from tcc_certs.formats.schema import (
    as_list,
    as_object,
    as_text,
    as_unsigned,
    as_whole,
    ensure_increasing,
)
from tcc_certs.limits import MAX_CALLS
from tcc_certs.values.kinds import FlagType, JsonType, NumberType, OpenType, TextType

_SCHEMA = Code.CORE_SCHEMA
_ORDERS = {"require": ("before", "each"), "forbid": ("before", "with")}
_LISTED = (
    "listed"  # the kind of a listed parameter; those of open ones are the names of their types
)


def read_monitors(value: Json, tools: Sequence[Tool]) -> tuple[Monitor, ...]:
    """The monitors, one at least, strictly increasing by their canonical bytes.

    Raises:
        Rejected: C801.
    """
    items = as_list(value, "core.monitors", _SCHEMA, 1)
    found = tuple(_monitor(item, f"core.monitors[{i}]", tools) for i, item in enumerate(items))
    ensure_increasing([encode(item) for item in items], "core.monitors", _SCHEMA)
    return found


def _monitor(value: Json, path: str, tools: Sequence[Tool]) -> Monitor:
    kind = value.get("kind") if isinstance(value, dict) else None
    match kind:
        case "require" | "forbid":
            return _order(value, path, tools)
        case "sum":
            return _sum(value, path, tools)
        case "uses":
            return _uses(value, path, tools)
    raise Rejected(_SCHEMA, f"{path}.kind", "a kind of monitor", kind)


def _order(value: Json, path: str, tools: Sequence[Tool]) -> OrderMonitor:
    item = as_object(value, path, _SCHEMA, ["first", "kind", "order", "same", "second"])
    kind, order = str(item["kind"]), item["order"]
    known = order in _ORDERS[kind]
    ensure(known, _SCHEMA, f"{path}.order", " or ".join(_ORDERS[kind]), order)
    first = read_selection(item["first"], f"{path}.first", tools)
    second = read_selection(item["second"], f"{path}.second", tools)
    if order == "with":  # either of the two may come last
        _ensure_chosen(first, f"{path}.first", tools)
    _ensure_chosen(second, f"{path}.second", tools)
    same = _same(item["same"], f"{path}.same", tools[first.tool], tools[second.tool])
    pairs = [written(a) if a == b else f"{written(a)} = {written(b)}" for a, b in same]
    words = "before each" if order == "each" else order
    one, other = selection_text(first, tools), selection_text(second, tools)
    return OrderMonitor(
        kind="require" if kind == "require" else "forbid",
        order="before" if order == "before" else "each" if order == "each" else "with",
        first=first,
        second=second,
        same=same,
        text=f"{kind} {one} {words} {other} same {', '.join(pairs)}",
    )


def _ensure_chosen(selection: Selection, path: str, tools: Sequence[Tool]) -> None:
    """No value that is observed: it would be known too late, when the call was made."""
    for param, _ in selection.where:
        parameter = tools[selection.tool].parameters[param]
        ensure(not parameter.observed, _SCHEMA, path, "no observed parameter", parameter.name)


def _same(value: Json, path: str, one: Tool, other: Tool) -> tuple[tuple[str, str], ...]:
    """The pairs of parameters that agree, strictly increasing; in one of them both are open."""
    pairs: list[tuple[str, str]] = []
    opened = False
    for i, entry in enumerate(as_list(value, path, _SCHEMA, 1)):
        place = f"{path}[{i}]"
        names = [as_text(name, place, _SCHEMA) for name in as_list(entry, place, _SCHEMA)]
        ensure(len(names) == 2, _SCHEMA, place, "a pair of names", names)
        kinds = [_kind(tool, name, place) for tool, name in zip((one, other), names, strict=True)]
        ensure(kinds[0] == kinds[1], _SCHEMA, place, "parameters that can be compared", kinds)
        opened = opened or kinds[0] != _LISTED
        pairs.append((names[0], names[1]))
    ensure_increasing(pairs, path, _SCHEMA)
    ensure(opened, _SCHEMA, path, "a pair of open parameters", "none")
    return tuple(pairs)


def _kind(tool: Tool, name: str, path: str) -> str:
    """What the values of a parameter can be compared with; it is neither optional nor observed."""
    for parameter in tool.parameters:
        if parameter.name == name:
            fixed = not (parameter.optional or parameter.observed)
            ensure(fixed, _SCHEMA, path, "a parameter of every call, chosen by its caller", name)
            return _LISTED
    return _class_of(_open_type(tool, name, path), path)


def _open_type(tool: Tool, name: str, path: str) -> OpenType:
    for parameter in tool.opened:
        if parameter.name == name:
            ensure(not parameter.optional, _SCHEMA, path, "a parameter of every call", name)
            return parameter.type
    raise Rejected(_SCHEMA, path, f"a parameter of {tool.name}", name)


def _class_of(of: OpenType, path: str) -> str:
    match of:
        case TextType():
            return "text"
        case NumberType():
            return "number"
        case FlagType():
            return "flag"
        case JsonType():
            raise Rejected(_SCHEMA, path, "a text, a number or a flag", "json")


def _sum(value: Json, path: str, tools: Sequence[Tool]) -> SumMonitor:
    item = as_object(value, path, _SCHEMA, ["kind", "param", "tool", "value"])
    number = as_whole(item["tool"], f"{path}.tool", _SCHEMA, len(tools))
    name = as_text(item["param"], f"{path}.param", _SCHEMA)
    of = _open_type(tools[number], name, f"{path}.param")
    if not isinstance(of, NumberType) or of.low is None or of.low.startswith("-"):
        raise Rejected(_SCHEMA, f"{path}.param", "a number of at least 0", name)
    most = as_text(item["value"], f"{path}.value", _SCHEMA)
    ensure(is_decimal(most), _SCHEMA, f"{path}.value", "a canonical decimal", most)
    ensure(not most.startswith("-"), _SCHEMA, f"{path}.value", "at least 0", most)
    text = f"limit sum({written(tools[number].name)}.{written(name)}) <= {most}"
    return SumMonitor(tool=number, parameter=name, value=most, text=text)


def _uses(value: Json, path: str, tools: Sequence[Tool]) -> UsesMonitor:
    item = as_object(value, path, _SCHEMA, ["kind", "of", "per", "value"])
    calls = read_selection(item["of"], f"{path}.of", tools)
    _ensure_chosen(calls, f"{path}.of", tools)
    per = as_text(item["per"], f"{path}.per", _SCHEMA)
    _class_of(_open_type(tools[calls.tool], per, f"{path}.per"), f"{path}.per")
    most = as_unsigned(item["value"], f"{path}.value", _SCHEMA)
    text = f"limit uses({selection_text(calls, tools)}) per {written(per)} <= {most}"
    return UsesMonitor(calls=calls, per=per, value=most, text=text)


def check_shadows(
    monitors: Sequence[Monitor],
    tools: Sequence[Tool],
    calls: Sequence[Call],
    patterns: Sequence[CallSet],
    requires: Sequence[Require],
) -> None:
    """Every ``require`` among the monitors has a plain `before` between its calls in the core.

    Raises:
        Rejected: C801; D201 where the call sets take too much work.
    """
    number = {pattern: index for index, pattern in enumerate(patterns)}
    before = {(s.first, s.second) for s in requires if s.order == "before"}
    owned = Owned(tools, calls)
    known: dict[Selection, int | None] = {}
    work = 0
    for i, monitor in enumerate(monitors):
        if not isinstance(monitor, OrderMonitor) or monitor.kind != "require":
            continue
        for selection in (monitor.first, monitor.second):
            if selection not in known:
                work += owned.size(selection.tool)
                ensure(work <= 4 * MAX_CALLS, Code.LIMIT, "core.monitors", "fewer monitors", "more")
                known[selection] = number.get(owned.selected(selection))
        there = (known[monitor.first], known[monitor.second]) in before
        expected = f"a require before of the calls of {monitor.text}"
        ensure(there, _SCHEMA, f"core.monitors[{i}]", expected, "none")
