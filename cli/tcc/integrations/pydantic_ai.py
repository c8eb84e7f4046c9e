"""Toolsets of Pydantic AI behind a gate (package ``pydantic-ai-slim`` or ``pydantic-ai``).

The gate decides after the tool's own schema has validated the arguments.  It sees the JSON of the
arguments that the function gets.  Documentation: docs/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tcc.integrations import (
    GateSource,
    Refusal,
    WhenPending,
    gate_of,
    made,
    of_one_artifact,
    require_tools,
)
from tcc_runtime.gate.answers import ToolAnswer, answer_of

QUESTION = "tcc_pending"


def guard(
    tools: Any, gate: GateSource, *, mask: bool = False, pending: WhenPending = "tell"
) -> Any:
    """Return a toolset of the same tools, each of which asks the gate before it runs.

    Args:
        tools: a toolset, or a sequence of functions and `Tool`s, named as in the grammar.
        gate: the gate of the session, or a function from the `RunContext` of a call to its gate.
        mask: whether to show a tool only while some plan allows a call of it.
        pending: what happens to a call that waits for a person.  ``interrupt`` ends the run with
            `DeferredToolRequests`, which has to be an output type of the agent.  Its
            `metadata[tool_call_id]["tcc_pending"]` is the question: pass its `id` to `gate.approve`
            or `gate.deny`, then resume the run.  The gate allows nothing that was approved in the
            framework only.  ``tell`` gives the model the question.

    Raises:
        BindingError: the grammar lacks a tool.  For a toolset, the first call of that tool raises.
    """
    toolsets: Any = import_module("pydantic_ai.toolsets")
    if isinstance(tools, Sequence):
        named: Any = import_module("pydantic_ai").Tool
        known = [tool if isinstance(tool, named) else named(tool) for tool in tools]
        require_tools(gate, [tool.name for tool in known])
        tools = toolsets.FunctionToolset(known)
    source = of_one_artifact(gate)
    return _class(toolsets)(wrapped=tools, source=source, mask=mask, pending=pending)


_made: dict[Any, Any] = {}


def _class(toolsets: Any) -> Any:
    """Return the class of guarded toolsets, created on first use because it needs the package."""
    if toolsets not in _made:
        _made[toolsets] = _new_class(toolsets.WrapperToolset)
    return _made[toolsets]


def _shown(to_json: Any, value: Any) -> Any:
    """Return a value as Pydantic AI shows it to a model: as JSON, or unchanged."""
    try:
        return to_json(value)
    except Exception:  # noqa: BLE001  # the user's class may raise; the framework then refuses it
        return value


def _new_class(base: Any) -> Any:
    from tcc_runtime.gate.arguments.pydantic_values import json_and_copy

    to_json: Any = import_module("pydantic_core").to_jsonable_python
    library: Any = import_module("pydantic_ai")
    returned, required = library.ToolReturn, library.ApprovalRequired

    def read(result: Any) -> ToolAnswer:
        if isinstance(result, returned):
            # The model also reads `content`, as a separate message.
            return answer_of(_shown(to_json, result.return_value), _shown(to_json, result.content))
        return answer_of(_shown(to_json, result))

    @dataclass
    class GuardedToolset(base):  # type: ignore[misc]
        """A toolset that runs only the calls that its gate allows."""

        source: Any = None
        mask: bool = False
        pending: WhenPending = "tell"

        async def get_tools(self, ctx: Any) -> Any:
            found = await super().get_tools(ctx)
            if not self.mask:
                return found
            shown = frozenset(gate_of(self.source, ctx, "tools").tools())
            return {name: tool for name, tool in found.items() if name in shown}

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            inner: Any = super()
            pairs = {field: json_and_copy(value) for field, value in tool_args.items()}
            copies = {field: pair[1] for field, pair in pairs.items()}
            found = await made(
                gate_of(self.source, ctx, name),
                name,
                {field: pair[0] for field, pair in pairs.items()},
                lambda _: inner.call_tool(name, copies, ctx, tool),
                ref=getattr(ctx, "tool_call_id", None),
                read=read,
            )
            question = found.question if isinstance(found, Refusal) else None
            if question is not None and self.pending == "interrupt":
                raise required(metadata={QUESTION: question.to_json()})
            return str(found) if isinstance(found, str) else found

    return GuardedToolset
