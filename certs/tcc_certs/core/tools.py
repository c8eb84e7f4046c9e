"""The tools of a core, and its calls: schema, canonical texts, order.

Normative text: docs/spec/core.md, sections 1 and 2.  Cost: linear in the texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tcc_certs.core.model import Call, Model, Parameter, Tool
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, decode, read_large
from tcc_certs.formats.schema import (
    as_list,
    as_name,
    as_object,
    as_text,
    as_whole,
    ensure_increasing,
)
from tcc_certs.limits import MAX_CALLS

_SCHEMA = Code.CORE_SCHEMA
_OPTIONAL = ["bind", "doc", "in", "models", "out", "quotes"]
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_tools(value: Json) -> tuple[Tool, ...]:
    """The tools, strictly increasing by name.

    Raises:
        Rejected: C801.
    """
    items = as_list(value, "core.tools", _SCHEMA)
    tools = tuple(_tool(item, f"core.tools[{i}]") for i, item in enumerate(items))
    ensure_increasing([tool.name for tool in tools], "core.tools", _SCHEMA)
    return tools


def _tool(value: Json, path: str) -> Tool:
    item = as_object(value, path, _SCHEMA, ["name", "params"], _OPTIONAL)
    params = [
        _parameter(param, f"{path}.params[{i}]")
        for i, param in enumerate(as_list(item["params"], f"{path}.params", _SCHEMA))
    ]
    names = [param.name for param in params]
    ensure(len(set(names)) == len(names), _SCHEMA, f"{path}.params", "distinct names", names)
    require("in" in item, "out" in item, _SCHEMA, f"{path}.out")
    _check_extras(item, path)
    signed = "in" in item
    return Tool(
        name=as_name(item["name"], f"{path}.name", _SCHEMA),
        parameters=tuple(params),
        takes=as_name(item["in"], f"{path}.in", _SCHEMA) if signed else None,
        gives=as_name(item["out"], f"{path}.out", _SCHEMA) if signed else None,
        models=_models(item, path),
        quotes_same="quotes" in item,
    )


def _parameter(value: Json, path: str) -> Parameter:
    item = as_object(value, path, _SCHEMA, ["name", "values"])
    values = as_list(item["values"], f"{path}.values", _SCHEMA, 1)
    texts = tuple(_value_text(text, f"{path}.values[{i}]") for i, text in enumerate(values))
    ensure(len(set(texts)) == len(texts), _SCHEMA, f"{path}.values", "distinct values", "a repeat")
    return Parameter(name=as_name(item["name"], f"{path}.name", _SCHEMA), values=texts)


def _value_text(value: Json, path: str) -> str:
    """An identifier, a number in shortest exact form, or a string as canonical JSON."""
    text = as_text(value, path, _SCHEMA)
    if text.startswith('"'):
        try:
            decode(text.encode(), path)
        except Rejected as refusal:
            raise Rejected(_SCHEMA, path, refusal.expected, refusal.found) from None
        return text
    number = _NUMBER.fullmatch(text) is not None and text != "-0"
    ensure(number or _WORD.fullmatch(text) is not None, _SCHEMA, path, "a value", text)
    return text


def _check_extras(item: Mapping[str, Json], path: str) -> None:
    """The members that the automaton does not depend on."""
    if "doc" in item:
        as_text(item["doc"], f"{path}.doc", _SCHEMA)
    if "quotes" in item:
        require("same", item["quotes"], _SCHEMA, f"{path}.quotes")
    if "bind" in item:
        _check_bind(item["bind"], f"{path}.bind")


def _check_bind(value: Json, path: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    members = ["kind", "target"] if kind == "python" else ["kind", "server", "tool"]
    item = as_object(value, path, _SCHEMA, members)
    ensure(kind in ("mcp", "python"), _SCHEMA, f"{path}.kind", "mcp or python", kind)
    for name in members:
        as_text(item[name], f"{path}.{name}", _SCHEMA)


def _models(item: Mapping[str, Json], path: str) -> tuple[Model, ...]:
    if "models" not in item:
        return ()
    values = as_list(item["models"], f"{path}.models", _SCHEMA, 1)
    return tuple(_model(value, f"{path}.models[{i}]") for i, value in enumerate(values))


def _model(value: Json, path: str) -> Model:
    numbers = ["epsilon", "latency_ms", "price"]
    item = as_object(value, path, _SCHEMA, ["name", *numbers], ["adapter"])
    if "adapter" in item:
        as_text(item["adapter"], f"{path}.adapter", _SCHEMA)
    return Model(
        name=as_name(item["name"], f"{path}.name", _SCHEMA),
        price=_amount(item["price"], f"{path}.price"),
        latency=_amount(item["latency_ms"], f"{path}.latency_ms"),
        epsilon=_amount(item["epsilon"], f"{path}.epsilon"),
    )


def _amount(value: Json, path: str) -> int:
    """An unsigned number of 64 bits."""
    number = read_large(value, path, _SCHEMA)
    ensure(number >= 0, _SCHEMA, path, "at least 0", number)
    return number


def _cost(value: Json, path: str) -> int:
    """A signed number of 64 bits."""
    number = read_large(value, path, _SCHEMA)
    ensure(-(1 << 63) <= number < 1 << 63, _SCHEMA, path, "64 bits, signed", number)
    return number


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
        text=_call_text(tools[number], values),
        tool=number,
        values=values,
        cost_low=low,
        cost_high=high,
        price=_amount(item[4], path),
        latency=_amount(item[5], path),
        epsilon=_amount(item[6], path),
    )


def _call_text(tool: Tool, values: Sequence[int]) -> str:
    pairs = zip(tool.parameters, values, strict=True)
    inside = ",".join(f"{param.name}={param.values[index]}" for param, index in pairs)
    return f"{tool.name}({inside})" if tool.parameters else tool.name
