"""Function tools of the OpenAI Agents SDK behind a gate (package ``openai-agents``).

The gate stands in front of a tool's own reading of its arguments: it decides on the JSON that the
model wrote, read strictly.  ``function_tool(gate.wrap(function))`` decides behind it.
Text: docs/frameworks.md.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from tcc.integrations import GateSource, WhenPending, gate_of, made, of_one_artifact, require_tools
from tcc_certs.errors import Code
from tcc_runtime.errors import BindingError
from tcc_runtime.gate.arguments import is_kept, plain
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp.wire import MalformedMessage, dumps, read_json


def guard(
    tools: Sequence[Any],
    gate: GateSource,
    *,
    mask: bool = False,
    pending: WhenPending = "tell",
) -> list[Any]:
    """Return the same tools, each of which asks the gate before it runs.

    Args:
        tools: `FunctionTool`s; their names are those of the grammar's tools.
        gate: of the session, or what gives it for the `ToolContext` of a call.
        mask: show a tool only while some plan allows a call of it (`is_enabled`).
        pending: what happens to a call that waits for a person.  ``interrupt`` stops the run
            (`needs_approval`): pass each of its `interruptions` to :func:`approve` or :func:`deny`,
            and then run the state.  An approval that only the SDK knows lets nothing through.
            ``tell`` gives the model the question.

    Raises:
        BindingError: a tool that is no function tool, or that the grammar does not have.
    """
    sdk: Any = import_module("agents.tool")
    for tool in tools:
        if not isinstance(tool, sdk.FunctionTool):
            raise BindingError(str(getattr(tool, "name", tool))[:80], "it is no FunctionTool")
    require_tools(gate, [tool.name for tool in tools])
    source = of_one_artifact(gate)
    return [_guarded(sdk, tool, source, mask, pending) for tool in tools]


def approve(state: Any, item: Any, gate: Gate, *, who: str) -> None:
    """Approve a call that an interrupted run waits for, in the gate and in the state of the run.

    Args:
        state: the `RunState` of the run; item: one of its interruptions.
        gate: of the session; who: the name of the person, for the ledger.

    Raises:
        Refused: the gate refuses the call, or the session has ended.
        VerdictError, ValueError: as of :meth:`tcc.Gate.approve`.
    """
    question = gate.ask(str(item.tool_name), _arguments_in(item.raw_item.arguments))
    if question is not None:
        gate.approve(question.id, who=who)
    state.approve(item)


def deny(state: Any, item: Any, gate: Gate, *, who: str, reason: str = "") -> None:
    """Deny a call that an interrupted run waits for, in the gate and in the state of the run.

    Args:
        reason: for the model; see :func:`approve` for the others.

    Raises:
        Refused, VerdictError, ValueError: as of :func:`approve`.
    """
    question = gate.ask(str(item.tool_name), _arguments_in(item.raw_item.arguments))
    if question is not None:
        gate.deny(question.id, who=who, reason=reason)
    state.reject(item, rejection_message=reason or None)


def _guarded(sdk: Any, tool: Any, source: GateSource, mask: bool, pending: WhenPending) -> Any:
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
    if pending == "interrupt":
        guarded.needs_approval = _needs_approval(tool, source)
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


def _needs_approval(tool: Any, source: GateSource) -> Any:
    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        own = tool.needs_approval
        if callable(own):
            own = await own(context, arguments, call_id)
        if own:
            return True
        try:
            gate = gate_of(source, context, tool.name)
            # A look first: it records nothing, and the tool itself records a refusal.
            if gate.check(tool.name, arguments).code != Code.PENDING:
                return False
            return await asyncio.to_thread(gate.ask, tool.name, arguments) is not None
        except (Refused, BindingError):
            return False  # the tool itself reports it

    return needs_approval


def _enabled(tool: Any, source: GateSource) -> Any:
    async def is_enabled(context: Any, agent: Any) -> bool:
        own = tool.is_enabled
        if callable(own):
            own = own(context, agent)
            own = await own if hasattr(own, "__await__") else own
        return bool(own) and tool.name in gate_of(source, context, tool.name).tools()

    return is_enabled
