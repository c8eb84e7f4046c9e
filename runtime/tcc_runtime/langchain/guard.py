"""Tools that ask a gate: each call is decided inside the tool, after everything that may change it.

A graph may call tools in parallel, rewrite their arguments, jump, retry, resume and travel back
in time.  None of this is trusted: whatever reaches a guarded tool is decided there, one call at a
time, and recorded in the session's ledger before the tool is run.  A call that the ledger has by
its id is not made again.
Text: docs/langgraph.md.  Cost: one decision of the gate, and its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, PrivateAttr

from tcc_runtime.gate import AlreadyDone, Gate, Permit, Refused
from tcc_runtime.langchain.calls import (
    Interrupts,
    Observe,
    Recorder,
    Results,
    call_of,
    members,
)


def guard(
    tools: Sequence[BaseTool],
    gate: Gate,
    *,
    results: Results | None = None,
    observe: Observe | None = None,
    interrupts: Interrupts = "unknown",
) -> list[BaseTool]:
    """The same tools, each of which asks `gate` before it runs.

    Args:
        tools: tools of LangChain; their names are those of the grammar's tools.
        gate: the session.  Give one gate to all tools of an agent.
        results: the owner's store of answers by tool-call id: a call that was done before, such as
            after travelling back in time, is answered from it and not made again.  Without it such
            a call is refused.
        observe: (a tool's name, its answer) -> its observed values.  Without it they are the
            members of the answer, where it is an object or its content is the JSON of one.
        interrupts: what an interrupt raised by a tool means: ``unknown`` (it may have acted), or
            ``failed`` where your tools interrupt before they act; then the resumed call is made.

    Raises:
        ValueError: a tool that the grammar does not have: it would never be allowed.
    """
    known = frozenset(gate.names())
    foreign = sorted(tool.name for tool in tools if tool.name not in known)
    if foreign:
        raise ValueError(f"the grammar has no tool named {', '.join(foreign)}")
    recorder = Recorder(gate, results, observe or members, interrupts)
    return [_guarded(tool, recorder) for tool in tools]


def _guarded(tool: BaseTool, recorder: Recorder) -> GuardedTool:
    guarded = GuardedTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        return_direct=tool.return_direct,
        response_format=tool.response_format,
        tags=tool.tags,
        metadata=tool.metadata,
        extras=tool.extras,
    )
    guarded._inner = tool
    guarded._recorder = recorder
    return guarded


class GuardedTool(BaseTool):
    """A tool that runs only what its gate lets through; made by :func:`guard`."""

    _inner: BaseTool = PrivateAttr()
    _recorder: Recorder = PrivateAttr()

    @property
    def func(self) -> object:
        """Where a graph looks for the arguments that it injects; not to be called."""
        inner = self._inner
        return getattr(inner, "func", None) or getattr(inner, "coroutine", None) or inner._run

    @property
    def _injected_args_keys(self) -> frozenset[str]:  # type: ignore[override]
        return self._inner._injected_args_keys

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """The schema of the tool inside."""
        return self._inner.get_input_schema(config)

    def run(self, tool_input: str | dict[str, Any], *args: Any, **keywords: Any) -> Any:
        """Ask, run the tool inside, record what came of it."""
        recorder = self._recorder
        call = call_of(self._inner, tool_input, keywords.get("tool_call_id"))
        try:
            with recorder.gate.call(self.name, call.arguments, ref=call.ref) as permit:
                try:
                    output = self._inner.run(tool_input, *args, **keywords)
                except GraphBubbleUp:
                    _interrupted(permit, recorder)
                    raise
                return recorder.note(permit, call, output)
        except AlreadyDone as refusal:
            return recorder.answer(call, refusal)
        except Refused as refusal:
            return call.refused(refusal)

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **keywords: Any) -> Any:
        """As :meth:`run`; waits for its turn without holding up the loop."""
        recorder = self._recorder
        call = call_of(self._inner, tool_input, keywords.get("tool_call_id"))
        try:
            async with recorder.gate.call(self.name, call.arguments, ref=call.ref) as permit:
                try:
                    output = await self._inner.arun(tool_input, *args, **keywords)
                except GraphBubbleUp:
                    _interrupted(permit, recorder)
                    raise
                return recorder.note(permit, call, output)
        except AlreadyDone as refusal:
            return recorder.answer(call, refusal)
        except Refused as refusal:
            return call.refused(refusal)

    def _run(self, *_args: Any, **_keywords: Any) -> Any:
        raise NotImplementedError("a guarded tool is run by `run`, `arun`, `invoke` and `ainvoke`")


def _interrupted(permit: Permit, recorder: Recorder) -> None:
    """An interrupt leaves the call unknown unless the owner says that tools interrupt first."""
    if recorder.interrupts == "failed":
        permit.failed("the tool interrupted before it acted")
