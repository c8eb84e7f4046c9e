"""Tools of Python libraries, described in the way of MCP servers.

LangChain, OpenAI Agents and Pydantic AI derive a JSON Schema for each tool.  For a plain function
pydantic derives it from the annotations.  No tool is called.  The attributes of an object show
which library it is from, so those libraries need not be installed here.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tcc_runtime.errors import ServerError

_DEEPEST = 8  # levels of nested lists and toolsets


def tools_of_module(place: str) -> list[dict[str, Any]]:
    """Return the tools that ``MODULE:NAME`` names: a tool, or a list, mapping or toolset of tools.

    Returns:
        the name, the description and the JSON Schema of each tool, as in MCP.

    Raises:
        ServerError: the module cannot be imported, or the name has no tools.
    """
    module, _, name = place.partition(":")
    if not module or not name:
        raise ServerError(f"{place!r} is no MODULE:NAME, such as shop.tools:TOOLS")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ServerError(f"{module} has no {name}: {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a module may raise anything
        raise ServerError(f"{module} cannot be imported: {error!r}") from None
    finally:
        sys.path.remove(here)
    tools = list(_tools(found, place, 0))
    if not tools:
        raise ServerError(f"{place} has no tools")
    return tools


def _tools(value: Any, place: str, depth: int) -> Iterator[dict[str, Any]]:
    if depth > _DEEPEST:
        raise ServerError(f"{place} is nested too deeply")
    inner = getattr(value, "tools", None)
    if isinstance(value, Mapping):
        value = list(value.values())
    elif not isinstance(value, list | tuple) and isinstance(inner, Mapping | list):
        value = list(inner.values()) if isinstance(inner, Mapping) else inner
    if isinstance(value, list | tuple):
        for at, one in enumerate(value):
            yield from _tools(one, f"{place}[{at}]", depth + 1)
        return
    try:
        yield _described(value)
    except ServerError as error:
        raise ServerError(f"{place}: {error}") from None
    except Exception as error:  # noqa: BLE001  # a library may raise anything
        raise ServerError(f"{place}: its library derives no schema: {error!r}") from None


def _described(tool: Any) -> dict[str, Any]:
    """Return the name, description and schema of one tool."""
    if hasattr(tool, "tool_call_schema"):  # LangChain
        schema = tool.tool_call_schema
        schema = schema if isinstance(schema, dict) else schema.model_json_schema()
    elif hasattr(tool, "params_json_schema"):  # OpenAI Agents
        schema = tool.params_json_schema
    elif hasattr(tool, "function_schema"):  # Pydantic AI
        schema = tool.function_schema.json_schema
    elif inspect.isroutine(tool):
        return _of_function(tool)
    else:
        raise ServerError(f"a {type(tool).__name__} is no tool and no function")
    told = {"name": tool.name, "description": tool.description, "inputSchema": schema}
    return {name: value for name, value in told.items() if value is not None}


def _of_function(function: Any) -> dict[str, Any]:
    try:
        from pydantic import TypeAdapter
    except ImportError:
        message = "schemas of plain functions are derived by pydantic; install it"
        raise ServerError(message) from None
    schema = TypeAdapter(function).json_schema()
    if schema.get("type") != "object":
        raise ServerError(f"{function.__name__} has arguments without names")
    doc = inspect.getdoc(function)
    told = {"name": function.__name__, "inputSchema": schema}
    return told | ({"description": doc} if doc else {})
