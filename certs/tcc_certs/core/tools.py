"""The tools of a core: schema and canonical texts of names and values.

Normative text: docs/spec/core.md, section 2.  Cost: linear in the texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.core.model import Parameter, Tool
from tcc_certs.core.models import read_models
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.names import read_name
from tcc_certs.formats.schema import (
    as_flag,
    as_list,
    as_name,
    as_object,
    as_text,
    ensure_increasing,
)
from tcc_certs.values.kinds import OpenParameter
from tcc_certs.values.listed import json_of

_SCHEMA = Code.CORE_SCHEMA
_OPTIONAL = ["bind", "doc", "errors", "in", "models", "open", "out", "quotes", "strict"]
_ABSENT = ""


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
    params = _parameters(item["params"], f"{path}.params")
    opened = _opened(item["open"], f"{path}.open") if "open" in item else ()
    names = [*(param.name for param in params), *(param.name for param in opened)]
    ensure(len(set(names)) == len(names), _SCHEMA, f"{path}.params", "distinct names", names)
    require("in" in item, "out" in item, _SCHEMA, f"{path}.out")
    _check_extras(item, path)
    signed = "in" in item
    strict = as_flag(item, "strict", path, _SCHEMA)
    answers = any(param.observed for param in params)
    ensure(answers or not strict, _SCHEMA, f"{path}.strict", "an observed parameter", "none")
    return Tool(
        name=read_name(item["name"], f"{path}.name", _SCHEMA),
        parameters=params,
        takes=as_name(item["in"], f"{path}.in", _SCHEMA) if signed else None,
        gives=as_name(item["out"], f"{path}.out", _SCHEMA) if signed else None,
        models=read_models(item, path),
        quotes_same="quotes" in item,
        opened=opened,
        strict=strict,
        errors_failed="errors" in item,
    )


def _opened(value: Json, path: str) -> tuple[OpenParameter, ...]:
    from tcc_certs.core.opened import read_opened

    return read_opened(value, path)


def _parameters(value: Json, path: str) -> tuple[Parameter, ...]:
    """The parameters that are part of a call, the observed ones after all others."""
    items = as_list(value, path, _SCHEMA)
    params = tuple(_parameter(item, f"{path}[{i}]") for i, item in enumerate(items))
    for i in range(1, len(params)):
        late = params[i - 1].observed and not params[i].observed
        ensure(not late, _SCHEMA, f"{path}[{i}]", "observed parameters last", params[i].name)
    return params


def _parameter(value: Json, path: str) -> Parameter:
    item = as_object(value, path, _SCHEMA, ["name", "values"], ["observed"])
    values = as_list(item["values"], f"{path}.values", _SCHEMA, 1)
    observed = as_flag(item, "observed", path, _SCHEMA)
    optional = values[0] == _ABSENT and not observed and len(values) > 1
    texts = tuple(
        _ABSENT if optional and i == 0 else _value_text(text, f"{path}.values[{i}]")
        for i, text in enumerate(values)
    )
    ensure(len(set(texts)) == len(texts), _SCHEMA, f"{path}.values", "distinct values", "a repeat")
    name = read_name(item["name"], f"{path}.name", _SCHEMA)
    return Parameter(name=name, values=texts, observed=observed)


def _value_text(value: Json, path: str) -> str:
    """The canonical text of a value; one JSON value has one."""
    text = as_text(value, path, _SCHEMA)
    try:
        json_of(text)
    except Rejected as refusal:
        raise Rejected(_SCHEMA, path, refusal.expected, refusal.found) from None
    return text


def _check_extras(item: Mapping[str, Json], path: str) -> None:
    """The members that the automaton does not depend on."""
    if "doc" in item:
        as_text(item["doc"], f"{path}.doc", _SCHEMA)
    if "quotes" in item:
        require("same", item["quotes"], _SCHEMA, f"{path}.quotes")
    if "errors" in item:
        require("failed", item["errors"], _SCHEMA, f"{path}.errors")
    if "bind" in item:
        _check_bind(item["bind"], f"{path}.bind")


def _check_bind(value: Json, path: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    members = ["kind", "target"] if kind == "python" else ["kind", "server", "tool"]
    item = as_object(value, path, _SCHEMA, members)
    ensure(kind in ("mcp", "python"), _SCHEMA, f"{path}.kind", "mcp or python", kind)
    for name in members:
        as_text(item[name], f"{path}.{name}", _SCHEMA)
