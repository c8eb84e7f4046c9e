"""Tool definitions for models, with schemas that are narrowed to the values that a grammar allows.

A schema helps models and clients; the gate decides.  A listed argument gets the values that it has
in any allowed call, independent of the other arguments.  Descriptions come from the tool's own
definition.  So do the schemas of `json` arguments, lists and objects.
Text: docs/frameworks.md.  Cost: linear in calls and schemas.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tcc_certs.policy.core import Core, Tool as GrammarTool
from tcc_certs.values.declared import (
    FlagType,
    JsonType,
    NumberType,
    PathType,
    TextType,
    UrlType,
    json_of,
    text_of,
)
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.arguments import is_member, plain
from tcc_runtime.gate.refusals import Allowed

# Definitions in the forms of the APIs.

APIS: Final = ("openai", "openai-responses", "anthropic", "mcp")


def definitions(
    core: Core, allowed: Sequence[Allowed], api: str, known: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return definitions of the tools of the allowed calls in the form of an API, sorted by name.

    Args:
        allowed: the allowed calls.  Listed arguments are narrowed to the values in these calls.
        api: one of :data:`APIS`.
        known: definitions in any of the forms, for descriptions and schemas of `json` parameters.

    Raises:
        SettingsError: the API is unknown.
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
    """Return the `tool_choice` of an API that allows only these tools; "none" for no tools.

    Raises:
        SettingsError: the API cannot restrict a choice to several tools.
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
    """Return a definition in any of the forms with the member `inputSchema` of MCP."""
    inner = known.get("function")
    found = dict(inner if isinstance(inner, Mapping) else known)
    for member in ("parameters", "input_schema"):
        if member in found:
            found["inputSchema"] = found[member]
    return found


def _columns(tool: GrammarTool, calls: Sequence[Mapping[str, Any]]) -> Used:
    return {
        one.name: {text_of(call[one.name]) if one.name in call else None for call in calls}
        for one in tool.arguments
        if one.type is None
    }


# Schemas narrowed to the grammar.

# The canonical texts of the values of each listed argument; None among them: a call may lack it.
Used: TypeAlias = "Mapping[str, Collection[str | None]]"

_PASSED = ("title", "description", "annotations", "outputSchema")
_DEFINED = ("$defs", "definitions")
_PART = re.compile(r"\[(?:[^\]\\]|\\.)*\]|\\(.)|(\.)")  # a class in brackets, an escape, or a dot
_NEEDED = frozenset("\\.+*?()[]{}^$|/dDwWsSnrtfv")


def tools_of(
    core: Core, texts: Iterable[str], listed: Iterable[Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the tools with a call in the automaton, as MCP clients see them, sorted by name.

    Args:
        texts: the texts of the calls of the automaton.
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
        # The server's own parts of the schema use the dialect that the server's schema names.
        own = server.get("inputSchema")
        dialect = own.get("$schema") if isinstance(own, Mapping) else None
        named = {"$schema": dialect} if isinstance(dialect, str) else {}
        found[tool.name] = {"name": tool.name, **shown, "inputSchema": {**named, **schema}}
    return found


def all_of(listed: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return all tools of a server unchanged, sorted by name.  For a session in shadow mode."""
    members = (*_PASSED, "inputSchema")
    return {
        tool["name"]: {
            "name": tool["name"],
            **{name: plain(tool[name]) for name in members if name in tool},
            "_meta": {"tcc/shadow": True},
        }
        for tool in sorted(listed, key=lambda tool: str(tool["name"]))
    }


def narrowed(tool: GrammarTool, used: Used, schema: object) -> dict[str, Any]:
    """Return the schema of the arguments that the grammar allows.

    Args:
        used: the values of listed arguments that occur in allowed calls.
        schema: the schema of the server, for descriptions and for types that are not narrowed.
    """
    server = schema if isinstance(schema, dict) else {}
    known = server.get("properties")
    own = known if isinstance(known, dict) else {}
    properties: dict[str, Any] = {}
    required = []
    for field in filter(is_member, tool.arguments):
        told, needed = own.get(field.name), not field.optional
        if field.type is not None:
            properties[field.name] = _open(field.type, told)
        else:
            texts = [text for text in field.values if text and text in used[field.name]]
            if not texts:
                continue
            values = {"enum": [plain_value(text) for text in texts]}
            properties[field.name] = {**_described(told), **values}
            needed = needed or None not in used[field.name]
        if needed:
            required.append(field.name)
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    defined = {name: plain(server[name]) for name in _DEFINED if name in server}
    return {**made, "additionalProperties": False, **(defined if _refers(properties) else {})}


def plain_value(text: str) -> Any:
    """Return the JSON value of a listed value's text, with numbers as int or float."""
    return plain(json_of(text))


def _used(core: Core, texts: frozenset[str]) -> Mapping[int, Used]:
    """Return the values of the listed arguments of each tool that has a call with one of these
    texts.
    """
    found: dict[int, dict[str, set[str | None]]] = {}
    for call in core.calls:
        if call.text not in texts:
            continue
        tool = core.tools[call.tool]
        listed = [one for one in tool.arguments if one.type is None]
        columns = found.setdefault(call.tool, {one.name: set() for one in listed})
        for field, at in zip(listed, call.values, strict=False):
            value = None if field.optional and at == 0 else field.values[at - field.optional]
            columns[field.name].add(value)
    return found


def _open(kind: FieldType, server: object) -> dict[str, Any]:
    """Return the schema of an open argument."""
    if isinstance(kind, TextType | NumberType | FlagType | PathType | UrlType):
        described, made = _described(server), _schema(kind)
        within = made.pop("description", None)
        if within is not None:
            described["description"] = f"{described.get('description', '')} ({within})".strip()
        return {**described, **made}
    return dict(plain(server)) if isinstance(server, dict) else _schema(kind)


def _schema(kind: FieldType) -> dict[str, Any]:
    match kind:
        case TextType(among=among) if among:
            return {"type": "string", "enum": list(among)}
        case TextType(least=least, most=most, pattern=pattern):
            limits: dict[str, Any] = {"type": "string", "maxLength": most}
            if least:
                limits["minLength"] = least
            # ECMAScript has no (?i) inside a pattern: the gate alone checks such a pattern.
            if pattern is not None and not pattern.startswith("(?i)"):
                limits["pattern"] = f"^(?:{_portable(pattern)})$"
            return limits
        case NumberType(whole=whole, low=low, high=high):
            number = {"type": "integer" if whole else "number"}
            if low is None or high is None:
                return number
            return {**number, "minimum": plain_value(low), "maximum": plain_value(high)}
        case FlagType():
            return {"type": "boolean"}
        case PathType(under=under):
            return {"type": "string", "pattern": "^/", **_within("an absolute path", under)}
        case UrlType(under=under):
            pattern = "^[Hh][Tt][Tt][Pp][Ss]?://"
            return {"type": "string", "pattern": pattern, **_within("a URL", under)}
        case TimeType():
            return {"type": "string", "format": "date-time"}
        case DateType():
            return {"type": "string", "format": "date"}
        case ListType(of=of, least=least, most=most, distinct=distinct):
            array = {"type": "array", "items": _schema(of), "minItems": least, "maxItems": most}
            return {**array, "uniqueItems": True} if distinct else array
        case RecordType(fields=fields):
            return _record(fields)
        case NullableType(of=of):
            return {"anyOf": [_schema(of), {"type": "null"}]}
        case UnionType(of=types):
            return {"anyOf": [_schema(one) for one in types]}
        case JsonType():
            return {}


def _within(what: str, under: str | None) -> dict[str, str]:
    """Return the description of a path or URL, because a pattern cannot express `under`."""
    return {} if under is None else {"description": f"{what} under {under}"}


def _record(fields: Sequence[Field]) -> dict[str, Any]:
    """Return the schema of an object.  It allows any member if a field lies inside another
    member.
    """
    if not all(map(is_member, fields)):
        return {"type": "object"}
    properties = {
        one.name: {"enum": [plain_value(text) for text in one.values if text]}
        if one.type is None
        else _schema(one.type)
        for one in fields
    }
    required = [one.name for one in fields if not one.optional]
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, **({"required": required} if required else {}), "additionalProperties": False}


def _portable(pattern: str) -> str:
    """Return a pattern without unneeded escapes, which some readers of schemas refuse."""
    body = pattern.removeprefix("^")
    if body.endswith("$") and not body.endswith("\\$"):
        body = body[:-1]
    return _PART.sub(_unescaped, body)


def _unescaped(part: re.Match[str]) -> str:
    """Return the portable form of a match of `_PART`.

    A class stays; a dot becomes a class of all characters; an escape stays only if it is needed.
    """
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
