"""Function tools of the OpenAI Agents SDK behind a gate (package ``openai-agents``).

The gate decides before the tool parses its arguments, on the model's JSON, which is read strictly.
To decide on the parsed arguments, use ``function_tool(gate.wrap(function))``.
Documentation: docs/frameworks.md.
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
        tools: `FunctionTool`s, named as in the grammar.
        gate: the gate of the session, or a function from the `ToolContext` of a call to its gate.
        mask: whether to show a tool only while some plan allows a call of it (`is_enabled`).
        pending: what happens to a call that waits for a person.  ``interrupt`` stops the run
            (`needs_approval`): pass each of its `interruptions` to :func:`approve` or :func:`deny`,
            then run the state again.  The gate allows nothing that was approved in the SDK only.
            ``tell`` gives the model the question.

    Raises:
        BindingError: a tool is not a function tool, or the grammar lacks it.
    """
    sdk: Any = import_module("agents.tool")
    for tool in tools:
        if not isinstance(tool, sdk.FunctionTool):
            raise BindingError(str(getattr(tool, "name", tool))[:80], "it is no FunctionTool")
    require_tools(gate, [tool.name for tool in tools])
    source = of_one_artifact(gate)
    return [_guarded(sdk, tool, source, mask, pending) for tool in tools]


def approve(state: Any, item: Any, gate: Gate, *, who: str) -> None:
    """Approve a call that an interrupted run waits for, in the gate and in the run's state.

    Args:
        state: the `RunState` of the run.
        item: an interruption of that run.
        gate: the gate of the session.
        who: the name of the person, for the ledger.

    Raises:
        Refused: the gate refuses the call, or the session has ended.
        VerdictError, ValueError: as :meth:`tcc.Gate.approve` raises them.
    """
    question = gate.ask(str(item.tool_name), _arguments_in(item.raw_item.arguments))
    if question is not None:
        gate.approve(question.id, who=who)
    state.approve(item)


def deny(state: Any, item: Any, gate: Gate, *, who: str, reason: str = "") -> None:
    """Deny a call that an interrupted run waits for, in the gate and in the run's state.

    Args:
        reason: a text for the model.  The other arguments are the same as in :func:`approve`.

    Raises:
        Refused, VerdictError, ValueError: as :func:`approve` raises them.
    """
    question = gate.ask(str(item.tool_name), _arguments_in(item.raw_item.arguments))
    if question is not None:
        gate.deny(question.id, who=who, reason=reason)
    state.reject(item, rejection_message=reason or None)


def _guarded(sdk: Any, tool: Any, source: GateSource, mask: bool, pending: WhenPending) -> Any:
    # Without its own error function, which would turn every exception of the tool into a text.
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
        except Exception as error:  # reported as the unguarded tool would report it
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
    """Parse the arguments that a model wrote.

    Returns:
        a JSON object; or the text itself, which a gate refuses, if it is no JSON object or has a
        number that JSON cannot reproduce.
    """
    try:
        found = read_json((text or "{}").encode("utf-8", "surrogatepass"))
    except MalformedMessage:
        return text
    return found if isinstance(found, dict) and is_kept(found) else text


def _written(arguments: Any) -> str:
    """Return the JSON of arguments; a text, which only a shadow gate lets through, is unchanged."""
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
            # `check` records nothing; if the call is refused, the tool itself records it later.
            if gate.check(tool.name, arguments).code != Code.PENDING:
                return False
            return await asyncio.to_thread(gate.ask, tool.name, arguments) is not None
        except (Refused, BindingError):
            return False  # the tool itself reports the refusal

    return needs_approval


def _enabled(tool: Any, source: GateSource) -> Any:
    async def is_enabled(context: Any, agent: Any) -> bool:
        own = tool.is_enabled
        if callable(own):
            own = own(context, agent)
            own = await own if hasattr(own, "__await__") else own
        return bool(own) and tool.name in gate_of(source, context, tool.name).tools()

    return is_enabled
