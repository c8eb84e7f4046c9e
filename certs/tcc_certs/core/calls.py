"""The calls of a core: what they are made of, their canonical texts, their order.

Normative text: docs/spec/core.md, sections 1 and 2.  Cost: linear in the texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Call, Tool
from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.codec import Json, read_large
from tcc_certs.formats.names import written
from tcc_certs.formats.schema import as_list, as_unsigned, as_whole, ensure_increasing
from tcc_certs.limits import MAX_CALLS

_SCHEMA = Code.CORE_SCHEMA


def read_calls(value: Json, tools: Sequence[Tool]) -> tuple[Call, ...]:
    """The calls, strictly increasing by the bytes of their texts.

    Raises:
        Rejected: C801; D201 too many of them.
    """
    items = as_list(value, "core.calls", _SCHEMA)
    ensure(len(items) <= MAX_CALLS, Code.LIMIT, "core.calls", f"{MAX_CALLS} at most", len(items))
    calls = tuple(_call(item, f"core.calls[{i}]", tools) for i, item in enumerate(items))
    ensure_increasing([call.text for call in calls], "core.calls", _SCHEMA)
    return calls


def _call(value: Json, path: str, tools: Sequence[Tool]) -> Call:
    item = as_list(value, path, _SCHEMA)
    require(7, len(item), _SCHEMA, f"{path} members")
    number = as_whole(item[0], path, _SCHEMA, len(tools))
    parameters = tools[number].parameters
    chosen = as_list(item[1], path, _SCHEMA)
    require(len(parameters), len(chosen), _SCHEMA, f"{path} values")
    values = tuple(
        as_whole(index, path, _SCHEMA, len(param.values))
        for index, param in zip(chosen, parameters, strict=True)
    )
    low, high = _cost(item[2], path), _cost(item[3], path)
    ensure(low <= high, _SCHEMA, path, f"cost_high of at least {low}", high)
    return Call(
        text=call_text(tools[number], values),
        tool=number,
        values=values,
        cost_low=low,
        cost_high=high,
        price=as_unsigned(item[4], path, _SCHEMA),
        latency=as_unsigned(item[5], path, _SCHEMA),
        epsilon=as_unsigned(item[6], path, _SCHEMA),
    )


def call_text(tool: Tool, values: Sequence[int], *, observed: bool = True) -> str:
    """The canonical text of a call: absent parameters left out, observed ones last.

    Args:
        values: for each parameter the index of its value.
        observed: whether the text has the values that the world chose.
    """
    pairs = zip(tool.parameters, values, strict=True)
    there = [
        f"{written(param.name)}={param.values[index]}"
        for param, index in pairs
        if param.values[index] and (observed or not param.observed)
    ]
    name = written(tool.name)
    return f"{name}({','.join(there)})" if there else name


def _cost(value: Json, path: str) -> int:
    """A signed number of 64 bits."""
    number = read_large(value, path, _SCHEMA)
    ensure(-(1 << 63) <= number < 1 << 63, _SCHEMA, path, "64 bits, signed", number)
    return number
