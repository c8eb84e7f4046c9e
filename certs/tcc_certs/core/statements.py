"""The statements of a core beside its expressions: call sets, limits, requires and forbids.

Normative text: docs/spec/core.md, sections 1 and 4.  Cost: linear, and for each ``uses`` limit
linear in its tool's calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcc_certs.core.model import Call, CallSet, ForbidNext, ForbidWith, Limit, Require, Tool
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.schema import as_list, as_object, as_whole, ensure_increasing
from tcc_certs.limits import MAX_CALLS

_SCHEMA = Code.CORE_SCHEMA


def read_patterns(value: Json, calls: int) -> tuple[CallSet, ...]:
    """The call sets, strictly increasing as lists.

    Raises:
        Rejected: C801.
    """
    items = as_list(value, "core.patterns", _SCHEMA)
    patterns = tuple(_ranges(item, f"core.patterns[{i}]", calls) for i, item in enumerate(items))
    ensure_increasing(patterns, "core.patterns", _SCHEMA)
    return patterns


def _ranges(value: Json, path: str, calls: int) -> CallSet:
    found = []
    least = 0
    for item in as_list(value, path, _SCHEMA):
        pair = as_list(item, path, _SCHEMA)
        require(2, len(pair), _SCHEMA, f"{path} range")
        low, high = (as_whole(end, path, _SCHEMA, calls + 1) for end in pair)
        ensure(least <= low < high, _SCHEMA, path, f"a range that starts at {least} or later", pair)
        found.append((low, high))
        least = high + 1
    return tuple(found)


def read_limits(value: Json, tools: Sequence[Tool], calls: Sequence[Call]) -> tuple[Limit, ...]:
    """The limits, strictly increasing by their canonical texts; call sets of ``uses`` derived.

    Raises:
        Rejected: C801; D201 where the call sets take too much work.
    """
    owned: list[list[int]] = [[] for _ in tools]
    for index, call in enumerate(calls):
        owned[call.tool].append(index)
    limits = []
    work = 0
    for i, item in enumerate(as_list(value, "core.limits", _SCHEMA)):
        limit, read = _limit(item, f"core.limits[{i}]", tools, calls, owned)
        work += read
        ensure(work <= 4 * MAX_CALLS, Code.LIMIT, "core.limits", "fewer uses limits", "more")
        limits.append(limit)
    ensure_increasing([limit.text for limit in limits], "core.limits", _SCHEMA)
    return tuple(limits)


def _limit(
    value: Json,
    path: str,
    tools: Sequence[Tool],
    calls: Sequence[Call],
    owned: Sequence[Sequence[int]],
) -> tuple[Limit, int]:
    """One limit, and how many calls were looked at."""
    kind = value.get("kind") if isinstance(value, dict) else None
    members = ["kind", "op", "value"]
    item = as_object(value, path, _SCHEMA, [*members, "of"] if kind == "uses" else members)
    number = read_large(item["value"], f"{path}.value", _SCHEMA)
    ensure(number >= 0 or kind == "cost", _SCHEMA, f"{path}.value", "at least 0", number)
    least = kind == "uses" and item["op"] == ">="
    ensure(least or item["op"] == "<=", _SCHEMA, f"{path}.op", "<=", item["op"])
    match kind:
        case "depth" | "price" | "latency":
            return Limit(kind=kind, value=number, text=f"{kind}<={number}"), 0
        case "cost" | "epsilon":
            text = f"{kind}<={format_decimal(number, 9)}"
            return Limit(kind=kind, value=number, text=text), 0
        case "uses":
            tool, where = _selection(item["of"], f"{path}.of", tools)
            text = f"uses({_selection_text(tools[tool], where)}){item['op']}{number}"
            bound = [(param, frozenset(values)) for param, values in where]
            matching = [
                index
                for index in owned[tool]
                if all(calls[index].values[param] in values for param, values in bound)
            ]
            found = _join(matching)
            return (
                Limit(kind="uses", value=number, text=text, least=least, calls=found),
                len(owned[tool]),
            )
    raise Rejected(_SCHEMA, f"{path}.kind", "a kind of limit", kind)


def _selection(
    value: Json, path: str, tools: Sequence[Tool]
) -> tuple[int, list[tuple[int, tuple[int, ...]]]]:
    """The tool, and for each parameter that is bound the values that it may take."""
    item = as_object(value, path, _SCHEMA, ["tool", "where"])
    tool = as_whole(item["tool"], path, _SCHEMA, len(tools))
    parameters = tools[tool].parameters
    where = []
    for entry in as_list(item["where"], path, _SCHEMA):
        pair = as_list(entry, path, _SCHEMA)
        require(2, len(pair), _SCHEMA, f"{path} entry")
        param = as_whole(pair[0], path, _SCHEMA, len(parameters))
        size = len(parameters[param].values)
        values = [as_whole(v, path, _SCHEMA, size) for v in as_list(pair[1], path, _SCHEMA, 1)]
        ensure_increasing(values, path, _SCHEMA)
        where.append((param, tuple(values)))
    ensure_increasing([param for param, _ in where], path, _SCHEMA)
    return tool, where


def _selection_text(tool: Tool, where: Iterable[tuple[int, tuple[int, ...]]]) -> str:
    bound = []
    for param, values in where:
        parameter = tool.parameters[param]
        bound.append(f"{parameter.name}={'|'.join(parameter.values[v] for v in values)}")
    return f"{tool.name}({','.join(bound)})" if bound else tool.name


def _join(indices: Iterable[int]) -> CallSet:
    """Increasing indices as ranges."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)


def read_requires(value: Json, patterns: int) -> tuple[Require, ...]:
    """The ``before`` and ``after`` statements.

    Raises:
        Rejected: C801.
    """
    found = []
    for i, entry in enumerate(as_list(value, "core.requires", _SCHEMA)):
        path = f"core.requires[{i}]"
        item = as_list(entry, path, _SCHEMA)
        require(3, len(item), _SCHEMA, f"{path} members")
        first, second = (as_whole(p, path, _SCHEMA, patterns) for p in item[1:])
        match item[0]:
            case "before" | "after" as order:
                found.append(Require(order, first, second))
            case other:
                raise Rejected(_SCHEMA, path, "before or after", other)
    keys = [(statement.order, statement.first, statement.second) for statement in found]
    ensure_increasing(keys, "core.requires", _SCHEMA)
    return tuple(found)


def read_forbids(value: Json, patterns: int) -> tuple[ForbidNext | ForbidWith, ...]:
    """The ``next`` and ``with`` statements.

    Raises:
        Rejected: C801.
    """
    found: list[ForbidNext | ForbidWith] = []
    keys: list[tuple[object, ...]] = []
    for i, entry in enumerate(as_list(value, "core.forbids", _SCHEMA)):
        path = f"core.forbids[{i}]"
        match as_list(entry, path, _SCHEMA):
            case ["next", list() as members] if members:
                chain = tuple(as_whole(p, path, _SCHEMA, patterns) for p in members)
                found.append(ForbidNext(chain))
                keys.append(("next", chain))
            case ["with", first, second]:
                one = as_whole(first, path, _SCHEMA, patterns)
                other = as_whole(second, path, _SCHEMA, patterns)
                ensure(one <= other, _SCHEMA, path, f"at least {one}", other)
                found.append(ForbidWith(one, other))
                keys.append(("with", one, other))
            case item:
                raise Rejected(_SCHEMA, path, "next or with", item)
    ensure_increasing(keys, "core.forbids", _SCHEMA)
    return tuple(found)
