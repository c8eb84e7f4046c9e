"""The tools that a client is shown: those of the grammar, their schemas narrowed to it.

The schemas are a help for models and clients; what may be called is decided by the gate.  Values
of listed parameters are those that some call of the automaton has.  Descriptions of parameters, and
the schemas of `json` parameters, are the server's.  Cost: linear in the calls, and in the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcc_certs.core.model import Core, Tool
from tcc_certs.values.listed import json_of
from tcc_certs.values.types import FlagType, NumberType, OpenParameter, TextType
from tcc_runtime.mcp.session import plain

_PASSED = ("title", "description", "annotations", "outputSchema")
_DEFINED = ("$defs", "definitions")
_PART = re.compile(r"\[(?:[^\]\\]|\\.)*\]|\\(.)")  # a class, or an escape outside of one
_NEEDED = frozenset("\\.+*?()[]{}^$|/dDwWsSnrtfv")


def tools_of(
    core: Core, texts: Iterable[str], listed: Iterable[Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """The tools with a call in the automaton, as a client is shown them, sorted by name.

    Args:
        texts: the calls of the automaton.
        listed: the tools of the server.
    """
    there = {tool["name"]: tool for tool in listed}
    used = _used(core, frozenset(texts))
    found = {}
    for index in sorted(used, key=lambda index: core.tools[index].name):
        tool = core.tools[index]
        server = there.get(tool.name, {})
        shown = {name: plain(server[name]) for name in _PASSED if name in server}
        schema = narrowed(tool, used[index], server.get("inputSchema"))
        found[tool.name] = {"name": tool.name, **shown, "inputSchema": schema}
    return found


def narrowed(tool: Tool, used: Sequence[frozenset[int]], schema: object) -> dict[str, Any]:
    """The schema of the arguments that the grammar allows.

    Args:
        used: for each parameter the indices of the values that calls have.
        schema: the server's own.
    """
    server = schema if isinstance(schema, dict) else {}
    known = server.get("properties")
    told = known if isinstance(known, dict) else {}
    properties: dict[str, Any] = {}
    required = []
    for parameter, values in zip(tool.parameters, used, strict=True):
        kept = [parameter.values[at] for at in sorted(values) if parameter.values[at] != ""]
        if parameter.observed or not kept:
            continue
        described = _described(told.get(parameter.name))
        properties[parameter.name] = {**described, "enum": [plain_value(text) for text in kept]}
        if not (parameter.optional and 0 in values):
            required.append(parameter.name)
    for opened in tool.opened:
        properties[opened.name] = _open(opened, told.get(opened.name))
        if not opened.optional:
            required.append(opened.name)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    defined = {name: plain(server[name]) for name in _DEFINED if name in server}
    return {**made, "additionalProperties": False, **(defined if _refers(properties) else {})}


def plain_value(text: str) -> Any:
    """The JSON value of a listed value's text, as Python's own."""
    return plain(json_of(text))


def _used(core: Core, texts: frozenset[str]) -> Mapping[int, Sequence[frozenset[int]]]:
    found: dict[int, list[set[int]]] = {}
    for call in core.calls:
        if call.text in texts:
            columns = found.setdefault(call.tool, [set() for _ in call.values])
            for column, value in zip(columns, call.values, strict=True):
                column.add(value)
    return {tool: [frozenset(column) for column in columns] for tool, columns in found.items()}


def _open(opened: OpenParameter, server: object) -> dict[str, Any]:
    kind = opened.type
    described = _described(server)
    if isinstance(kind, TextType):
        limits: dict[str, Any] = {"type": "string", "maxLength": kind.most}
        if kind.least:
            limits["minLength"] = kind.least
        if kind.pattern is not None:
            limits["pattern"] = f"^(?:{_portable(kind.pattern)})$"
        return {**described, **limits}
    if isinstance(kind, NumberType):
        whole = {"type": "integer" if kind.whole else "number"}
        if kind.low is None or kind.high is None:
            return {**described, **whole}
        bounds = {"minimum": plain_value(kind.low), "maximum": plain_value(kind.high)}
        return {**described, **whole, **bounds}
    if isinstance(kind, FlagType):
        return {**described, "type": "boolean"}
    shape = plain(server) if isinstance(server, dict) else {}
    return dict(shape)


def _portable(pattern: str) -> str:
    """A pattern without the escapes that some readers of schemas refuse: those of plain marks."""
    body = pattern.removeprefix("^")
    if body.endswith("$") and not body.endswith("\\$"):
        body = body[:-1]
    return _PART.sub(_unescaped, body)


def _unescaped(part: re.Match[str]) -> str:
    """A class as it is, an escape only where the character has a meaning."""
    return part[0] if part[1] is None or part[1] in _NEEDED else part[1]


def _described(server: object) -> dict[str, Any]:
    told = server if isinstance(server, dict) else {}
    return {
        name: told[name] for name in ("title", "description") if isinstance(told.get(name), str)
    }


def _refers(value: object) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))
