"""Function tools of the OpenAI Agents SDK behind a gate (package ``openai-agents``).

The gate stands in front of a tool's own reading of its arguments: it decides on the JSON that the
model wrote, read strictly.  ``function_tool(gate.wrap(function))`` decides behind it.
Text: docs/frameworks.md.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tcc.integrations import GateSource, gate_of, made, of_one_artifact, require_tools
from tcc_runtime.errors import BindingError
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.mcp.wire import MalformedMessage, dumps, read_json


def guard(tools: Sequence[Any], gate: GateSource, *, mask: bool = False) -> list[Any]:
    """The same tools, each of which asks the gate before it runs.

    Args:
        tools: `FunctionTool`s; their names are those of the grammar's tools.
        gate: of the session, or what gives it for the `ToolContext` of a call.
        mask: show a tool only while some plan allows a call of it (`is_enabled`).

    Raises:
        BindingError: a tool that is no function tool, or that the grammar does not have.
    """
    sdk: Any = import_module("agents.tool")
    for tool in tools:
        if not isinstance(tool, sdk.FunctionTool):
            raise BindingError(str(getattr(tool, "name", tool))[:80], "it is no FunctionTool")
    require_tools(gate, [tool.name for tool in tools])
    source = of_one_artifact(gate)
    return [_guarded(sdk, tool, source, mask) for tool in tools]


def _guarded(sdk: Any, tool: Any, source: GateSource, mask: bool) -> Any:
    # What the tool raises is to come here: its own function would make a plain text of it.
    inner = sdk.set_function_tool_failure_error_function(copy.copy(tool), None)

    async def invoke(context: Any, text: str) -> Any:
        try:
            gate = gate_of(source, context, tool.name)
            found = await made(
                gate,
                tool.name,
                _arguments_in(text),
                lambda given: inner.on_invoke_tool(context, _written(given)),
                ref=getattr(context, "tool_call_id", None),
            )
        except BindingError:
            raise
        except Exception as error:  # as the tool itself would have told it
            said = await sdk.maybe_invoke_function_tool_failure_error_function(
                function_tool=tool, context=context, error=error
            )
            if said is None:
                raise
            return said
        return str(found) if isinstance(found, str) else found

    guarded = copy.copy(tool)
    guarded.on_invoke_tool = invoke
    if mask:
        guarded.is_enabled = _enabled(tool, source)
    return guarded


def _arguments_in(text: str) -> Any:
    """The arguments that a model wrote; the text itself, which a gate refuses, where it is none.

    A number that would not be written again as it is makes it none, too.
    """
    try:
        found = read_json((text or "{}").encode("utf-8", "surrogatepass"))
    except MalformedMessage:
        return text
    return found if isinstance(found, dict) and is_kept(found) else text


def _written(arguments: Any) -> str:
    """The JSON of arguments that were decided on; of a text, in the shadow, the text."""
    return arguments if isinstance(arguments, str) else dumps(plain(arguments))


def _enabled(tool: Any, source: GateSource) -> Any:
    async def is_enabled(context: Any, agent: Any) -> bool:
        own = tool.is_enabled
        if callable(own):
            own = own(context, agent)
            own = await own if hasattr(own, "__await__") else own
        return bool(own) and tool.name in gate_of(source, context, tool.name).tools()

    return is_enabled
