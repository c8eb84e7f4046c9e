"""The limits of a core: their schema, their canonical texts, the calls and values they count.

Normative text: docs/spec/core.md, section 4.  Cost: linear, and for each ``uses`` limit linear in
its tool's calls, for each ``sum`` limit linear in its parameter's values.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Call, Limit, Tool
from tcc_certs.core.selections import Owned, read_selection, selection_text
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.formats.decimals import format_decimal, nano_of
from tcc_certs.formats.names import written
from tcc_certs.formats.schema import as_list, as_object, as_whole, ensure_increasing
from tcc_certs.limits import MAX_CALLS

_SCHEMA = Code.CORE_SCHEMA


def read_limits(value: Json, tools: Sequence[Tool], calls: Sequence[Call]) -> tuple[Limit, ...]:
    """The limits, strictly increasing by their canonical texts; call sets of ``uses`` derived.

    Raises:
        Rejected: C801; D201 where the call sets and values take too much work.
    """
    owned = Owned(tools, calls)
    limits = []
    work = 0
    for i, item in enumerate(as_list(value, "core.limits", _SCHEMA)):
        limit, read = _limit(item, f"core.limits[{i}]", tools, owned)
        work += read
        ensure(work <= 4 * MAX_CALLS, Code.LIMIT, "core.limits", "fewer uses limits", "more")
        limits.append(limit)
    ensure_increasing([limit.text for limit in limits], "core.limits", _SCHEMA)
    return tuple(limits)


def _limit(value: Json, path: str, tools: Sequence[Tool], owned: Owned) -> tuple[Limit, int]:
    """One limit, and how many calls or values were looked at."""
    kind = value.get("kind") if isinstance(value, dict) else None
    members = ["kind", "op", "value"]
    counted = kind in ("uses", "sum")
    item = as_object(value, path, _SCHEMA, [*members, "of"] if counted else members)
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
            of = read_selection(item["of"], f"{path}.of", tools)
            text = f"uses({selection_text(of, tools)}){item['op']}{number}"
            found = owned.selected(of)
            limit = Limit(kind="uses", value=number, text=text, least=least, calls=found)
            return limit, owned.size(of.tool)
        case "sum":
            return _sum(item["of"], f"{path}.of", tools, number)
    raise Rejected(_SCHEMA, f"{path}.kind", "a kind of limit", kind)


def _sum(value: Json, path: str, tools: Sequence[Tool], most: int) -> tuple[Limit, int]:
    """A limit on what the values of a parameter add up to, each of them a number or absent."""
    item = as_object(value, path, _SCHEMA, ["param", "tool"])
    number = as_whole(item["tool"], path, _SCHEMA, len(tools))
    tool = tools[number]
    place = as_whole(item["param"], path, _SCHEMA, len(tool.parameters))
    parameter = tool.parameters[place]
    for text in parameter.values:
        # What is absent adds nothing.
        if text and nano_of(text) is None:
            raise Rejected(_SCHEMA, path, "numbers of at least 0, whole in nano-units", text)
    name = f"{written(tool.name)}.{written(parameter.name)}"
    text = f"sum({name})<={format_decimal(most, 9)}"
    limit = Limit(kind="sum", value=most, text=text, parameter=(number, place))
    return limit, len(parameter.values)
