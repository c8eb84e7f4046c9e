"""Definitions of tools for models, their schemas narrowed to what a grammar allows.

A help for models and clients, while the gate decides what may be called: the values of a listed
parameter are those that some allowed call has, of each parameter by itself.  Descriptions, and
schemas of `json` parameters, are the tool's own where it has one.  Text: docs/frameworks.md.
Cost: linear in calls and schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tcc_certs.core.model import Core, Tool as GrammarTool
from tcc_certs.values.declared import FlagType, NumberType, OpenParameter, TextType, json_of
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.gate.refusals import Allowed

# Definitions in the forms of the APIs.

APIS: Final = ("openai", "openai-responses", "anthropic", "mcp")


def definitions(
    core: Core, allowed: Sequence[Allowed], api: str, known: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The tools of the calls that are allowed, as an API takes them, sorted by name.

    Args:
        allowed: the calls; listed arguments are narrowed to the values that these have.
        api: one of :data:`APIS`.
        known: definitions in any of the forms, for descriptions and schemas of `json` parameters.

    Raises:
        SettingsError: there is no such API.
    """
    if api not in APIS:
        raise SettingsError("api", f"one of {', '.join(APIS)}", api)
    told = {str(one["name"]): one for one in map(_as_mcp, known) if "name" in one}
    values: dict[str, list[Mapping[str, Any]]] = {}
    for call in allowed:
        values.setdefault(call.tool, []).append(call.arguments)
    found = []
    for tool in sorted(core.tools, key=lambda one: one.name):
        if tool.name in values:
            own = told.get(tool.name, {})
            schema = narrowed(tool, _columns(tool, values[tool.name]), own.get("inputSchema"))
            described = own.get("description")
            if not isinstance(described, str):
                described = f"{tool.name}, as the grammar {core.name} allows it now"
            found.append(_definition(api, tool.name, described, schema))
    return found


def choice(tools: Sequence[str], api: str) -> dict[str, Any] | str:
    """The `tool_choice` of an API that narrows a list which stays as it is; "none" without tools.

    Raises:
        SettingsError: the API has none that names several tools.
    """
    if api not in ("openai", "openai-responses"):
        raise SettingsError("api", "openai or openai-responses, which have allowed_tools", api)
    if not tools:
        return "none"
    if api == "openai":
        named: list[dict[str, Any]] = [
            {"type": "function", "function": {"name": name}} for name in tools
        ]
        return {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    listed = [{"type": "function", "name": name} for name in tools]
    return {"type": "allowed_tools", "mode": "auto", "tools": listed}


def _definition(api: str, name: str, described: str, schema: dict[str, Any]) -> dict[str, Any]:
    if api == "openai":
        function = {"name": name, "description": described, "parameters": schema}
        return {"type": "function", "function": function}
    if api == "openai-responses":
        told = {"name": name, "description": described, "parameters": schema}
        return {"type": "function", **told}
    member = "input_schema" if api == "anthropic" else "inputSchema"
    return {"name": name, "description": described, member: schema}


def _as_mcp(known: Mapping[str, Any]) -> dict[str, Any]:
    """A definition in any of the forms, as MCP has it."""
    inner = known.get("function")
    found = dict(inner if isinstance(inner, Mapping) else known)
    for member in ("parameters", "input_schema"):
        if member in found:
            found["inputSchema"] = found[member]
    return found


def _columns(tool: GrammarTool, calls: Sequence[Mapping[str, Any]]) -> list[frozenset[int]]:
    """For each listed parameter the indices of the values that the calls have."""
    found = []
    for parameter in tool.parameters:
        index = {
            None if text == "" else _key(plain_value(text)): at
            for at, text in enumerate(parameter.values)
        }
        told = {
            None if parameter.name not in call else _key(plain(call[parameter.name]))
            for call in calls
        }
        found.append(frozenset(index[key] for key in told if key in index))
    return found


def _key(value: Any) -> tuple[str, Any]:
    """A key that tells true from 1."""
    return type(value).__name__ if isinstance(value, bool | str) else "number", value


# Schemas narrowed to the grammar.

_PASSED = ("title", "description", "annotations", "outputSchema")
_DEFINED = ("$defs", "definitions")
_PART = re.compile(r"\[(?:[^\]\\]|\\.)*\]|\\(.)|(\.)")  # a class; outside an escape, a dot
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


def all_of(listed: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """All tools of a server as it lists them, sorted by name: for a session in the shadow."""
    members = (*_PASSED, "inputSchema")
    return {
        tool["name"]: {
            "name": tool["name"],
            **{name: plain(tool[name]) for name in members if name in tool},
            "_meta": {"tcc/shadow": True},
        }
        for tool in sorted(listed, key=lambda tool: str(tool["name"]))
    }


def narrowed(tool: GrammarTool, used: Sequence[frozenset[int]], schema: object) -> dict[str, Any]:
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
        if parameter.observed or not kept or parameter.at is not None:
            continue
        described = _described(told.get(parameter.name))
        properties[parameter.name] = {**described, "enum": [plain_value(text) for text in kept]}
        if not (parameter.optional and 0 in values):
            required.append(parameter.name)
    for opened in [one for one in tool.opened if one.at is None]:
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
    if opened.null:
        return dict(plain(server)) if isinstance(server, dict) else {}
    if isinstance(kind, TextType):
        limits: dict[str, Any] = {"type": "string", "maxLength": kind.most}
        if kind.least:
            limits["minLength"] = kind.least
        # ECMAScript has no (?i) inside a pattern: the gate alone checks such a pattern.
        if kind.pattern is not None and not kind.pattern.startswith("(?i)"):
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
    """A class as it is, a dot for any character, an escape only where the character needs one."""
    if part[2] is not None:
        return "[\\s\\S]"
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
