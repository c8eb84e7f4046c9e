"""Middleware that tells a model what its gate allows: comfort, not the guard.

The guard stands inside the tools (:mod:`tcc_runtime.langchain.guard`).  This hides the tools that
no plan allows now, tells the model which calls are allowed, and keeps the head of the session's
ledger in the graph's state, so that a checkpoint of another session, or of a ledger that was
replaced, is refused.
Text: docs/langgraph.md.  Cost: one listing of the allowed calls for each call of the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import (
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from tcc_runtime.gate.gate import Gate
from tcc_runtime.langchain.calls import allowed_text

Answer: TypeAlias = "ToolMessage | Command[Any]"


class ForeignHead(RuntimeError):
    """The head in a checkpoint is none that this session's ledger ever had."""


def check_head(gate: Gate, head: str | None) -> None:
    """Refuse a head that is no ancestor of the head of the gate's ledger.

    Args:
        head: what a graph's state kept, hex; None where it kept nothing yet.

    Raises:
        ForeignHead: the checkpoint belongs to another session.
    """
    if head is not None and not gate.is_ancestor(head):
        raise ForeignHead(
            "this checkpoint belongs to another session: its head is not in the ledger;"
            " open the gate on the ledger of that session, or start a new thread"
        )


def head_of(state: object) -> str | None:
    """The head that a graph's state kept."""
    found = state.get("tcc_head") if isinstance(state, dict) else getattr(state, "tcc_head", None)
    return found if found is None else str(found)


class GatedState(AgentState[Any]):
    """The state of an agent, and the head of its session's ledger."""

    tcc_head: NotRequired[Annotated[str, PrivateStateAttr]]


class TccMiddleware(AgentMiddleware[GatedState, Any, Any]):
    """Masks tools, tells the model what is allowed, keeps the ledger's head in the state.

    Args:
        gate: the session that the agent's tools are guarded by.
        mask: whether tools that no plan allows now are hidden from the model.
        tell: whether a system message lists the calls that are allowed now, and whether the plan
            may end here.
    """

    state_schema = GatedState

    def __init__(self, gate: Gate, *, mask: bool = True, tell: bool = True) -> None:
        super().__init__()
        self._gate = gate
        self._known = frozenset(tool.name for tool in gate.artifact.core.tools)
        self._mask = mask
        self._tell = tell

    def before_model(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Refuse a foreign checkpoint, and keep the head of the ledger as it is now."""
        check_head(self._gate, state.get("tcc_head"))
        return {"tcc_head": self._gate.head}

    async def abefore_model(
        self, state: GatedState, runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """As :meth:`before_model`."""
        return self.before_model(state, runtime)

    def after_agent(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Keep the head of the ledger as it is at the end."""
        return self.before_model(state, runtime)

    async def aafter_agent(self, state: GatedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """As :meth:`after_agent`."""
        return self.before_model(state, runtime)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        """Refuse a call that a foreign checkpoint left to be made."""
        check_head(self._gate, head_of(request.state))
        return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """As :meth:`wrap_tool_call`."""
        check_head(self._gate, head_of(request.state))
        return await handler(request)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model with the tools and the words of this moment."""
        return handler(self._narrowed(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As :meth:`wrap_model_call`."""
        return await handler(self._narrowed(request))

    def _narrowed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        allowed = self._gate.allowed()
        changes: dict[str, Any] = {}
        if self._mask:
            shown = {one.tool for one in allowed} | {
                tool.name
                for tool in request.tools
                if isinstance(tool, BaseTool) and tool.name not in self._known
            }
            changes["tools"] = [
                tool
                for tool in request.tools
                if not isinstance(tool, BaseTool) or tool.name in shown
            ]
        if self._tell:
            told = f"{allowed_text(allowed)} {_end_text(self._gate.may_finish)}"
            changes["system_message"] = _with(request.system_message, told)
        return request.override(**changes)


def _with(before: SystemMessage | None, told: str) -> SystemMessage:
    """The system message with a text behind it; its own blocks stay as they are."""
    if before is None:
        return SystemMessage(content=told)
    if isinstance(before.content, str):
        return SystemMessage(content=f"{before.content}\n\n{told}")
    return SystemMessage(content=[*before.content, {"type": "text", "text": told}])


def _end_text(may_finish: bool) -> str:
    return "You may stop here." if may_finish else "You may not stop here: no plan ends here."
