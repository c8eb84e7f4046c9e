"""Tools of the Claude Agent SDK behind a gate (package ``claude-agent-sdk``).

``guard`` is for your own tools (`@tool`): the gate decides before their handler runs.  ``hooks`` is
for all other tools: a `PreToolUse` hook asks the gate, and later hooks report the outcome.  The
agent runs the tool in between.  If another hook then changes the input, the gate does not notice,
so prefer ``guard`` where possible.  Documentation: docs/frameworks.md.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from tcc.integrations import Refusal, made, pending_text, require_tools
from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.answers import ToolAnswer, answer_of
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import OverError, Permit
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.wrapping import errors_failed, refusal_text

_DEADLINE = 600.0
_MORE = 60.0  # seconds that the agent waits for the hook beyond the deadline


def guard(tools: Sequence[Any], gate: Gate) -> list[Any]:
    """Return the same tools with handlers that ask the gate first.

    Args:
        tools: tools made by the decorator `tool`, named as in the grammar.
        gate: the gate of the session.

    Raises:
        BindingError: the grammar has no such tool, or a name is repeated.
    """
    require_tools(gate, [tool.name for tool in tools])
    return [_guarded(tool, gate) for tool in tools]


def _guarded(tool: Any, gate: Gate) -> Any:
    async def handler(arguments: Any) -> Any:
        found = await made(
            gate,
            tool.name,
            arguments,
            tool.handler,
            ref=None,
            read=_answer,
        )
        if isinstance(found, Refusal):
            return {"content": [{"type": "text", "text": str(found)}], "is_error": True}
        return found

    return dataclasses.replace(tool, handler=handler)


def _answer(result: Any) -> ToolAnswer:
    """Extract the answer from the result of a handler."""
    error = isinstance(result, dict) and bool(result.get("is_error"))
    return answer_of(result, error=error)


def hooks(
    gate: Gate,
    *,
    names: Callable[[str], str | None] | Mapping[str, str] | None = None,
    deadline: float = _DEADLINE,
) -> dict[str, list[Any]]:
    """Return hooks for `ClaudeAgentOptions(hooks=..)` with which every tool asks the gate.

    A tool that the grammar lacks is denied.  The agent's own permissions still apply to a call that
    the gate allows.  If no hook reports the outcome within `deadline` seconds, or before the agent
    stops, the outcome is recorded as unknown.

    Args:
        gate: the gate of the session.
        names: maps a tool's name (``mcp__server__tool``, ``Bash``) to the grammar's name.  A name
            that is not mapped stays unchanged.
        deadline: seconds; a call that waits longer for another call is denied.
    """
    sdk: Any = import_module("claude_agent_sdk")
    found = _Hooks(gate, names, deadline)
    before = sdk.HookMatcher(hooks=[found.before], timeout=deadline + _MORE)
    after = sdk.HookMatcher(hooks=[found.after])
    return {
        "PreToolUse": [before],
        "PostToolUse": [after],
        "PostToolUseFailure": [after],
        "Stop": [sdk.HookMatcher(hooks=[found.stopped])],
    }


class _Hooks:
    """The calls that the gate has allowed and that have not ended, by the agent's ids."""

    def __init__(
        self,
        gate: Gate,
        names: Callable[[str], str | None] | Mapping[str, str] | None,
        deadline: float,
    ) -> None:
        self._gate = gate
        self._names = names
        self._deadline = deadline
        self._failing = errors_failed(gate.artifact)
        self._open: dict[str, tuple[Permit, asyncio.TimerHandle]] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def _name(self, tool: str) -> str:
        told = self._names(tool) if callable(self._names) else (self._names or {}).get(tool)
        return tool if told is None else told

    async def before(self, told: Any, identity: str | None, _context: Any) -> dict[str, Any]:
        """Ask the gate before a call; return a denial with the reason if it refuses."""
        if identity is None or identity in self._open:
            return _denied("Refused, and not called: the call has no id of its own.")
        try:
            permit = self._gate.call(
                self._name(told["tool_name"]), told["tool_input"], ref=identity, takes_model=False
            )
            # The time limit is below the agent's own limit for hooks.  If a hook does not answer in
            # time, the agent runs the tool anyway.
            await asyncio.wait_for(permit.__aenter__(), self._deadline)
        except Refused as refusal:
            return _denied(refusal_text(refusal))
        except Pending as question:
            return _denied(pending_text(question))
        except Exception as error:  # noqa: BLE001  # the agent would run the tool after an error
            return _denied(f"Refused, and not called: {type(error).__name__}.")
        timer = asyncio.get_running_loop().call_later(self._deadline, self._late, identity)
        self._open[identity] = permit, timer
        return {}

    def _late(self, identity: str) -> None:
        task = asyncio.ensure_future(self._leave(identity))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def after(self, told: Any, identity: str | None, _context: Any) -> dict[str, Any]:
        """Record the outcome of a call."""
        found = None if identity is None else self._open.get(identity)
        if found is not None and identity is not None:
            permit = found[0]
            try:
                if told["hook_event_name"] == "PostToolUse":
                    permit.done(told.get("tool_response"))
                elif permit.tool in self._failing and not told.get("is_interrupt"):
                    permit.failed("the tool failed", answered=True)
            except (LedgerError, OverError):
                pass  # the outcome stays unknown, and the gate allows nothing further
            await self._leave(identity)
        return {}

    async def stopped(self, _told: Any, _identity: str | None, _context: Any) -> dict[str, Any]:
        """Record unknown outcomes for all open calls, because the agent stops."""
        for identity in tuple(self._open):
            await self._leave(identity)
        return {}

    async def _leave(self, identity: str) -> None:
        found = self._open.pop(identity, None)
        if found is not None:
            permit, timer = found
            timer.cancel()
            await permit.__aexit__(None, None, None)


def _denied(reason: str) -> dict[str, Any]:
    told = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**told, "permissionDecisionReason": reason}}
