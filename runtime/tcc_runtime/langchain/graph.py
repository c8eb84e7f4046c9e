"""A graph that does a plan: a controller, the tools, an accountant, and back.

    controller -> tools -> accountant -> controller ..; at the end, controller -> accountant

The controller proposes the next call of a certified plan; the tools ask the gate and record; the
accountant reads the ledger, and ends the session at the end of a plan.  After an answer that the
plan did not assume, or a failure, the controller searches again from the calls that were made.
Text: docs/langgraph.md.  Cost: that of the searches, of the gate and of the tools.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.asking.quotes import Quoter
from tcc_runtime.executor.course import Course
from tcc_runtime.executor.execute import Resolve
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.handed import adapters_in
from tcc_runtime.langchain.calls import Interrupts, Observe, Results
from tcc_runtime.langchain.guard import guard
from tcc_runtime.langchain.middleware import Answer, check_head, head_of
from tcc_runtime.langchain.route import Route, RouteState, Source
from tcc_runtime.outcome import Run


def build_graph(
    artifact: Artifact | str | Path,
    tools: Sequence[BaseTool],
    *,
    gate: Gate | None = None,
    run: Run | None = None,
    arguments: Source | None = None,
    results: Results | None = None,
    observe: Observe | None = None,
    interrupts: Interrupts = "unknown",
    resolve: Resolve | None = None,
    retries: int = 3,
    seed: bytes | None = None,
    quoter: Quoter | None = None,
    adapters: str | Path | Iterable[Adapter] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    **settings: Any,
) -> CompiledStateGraph[RouteState, None, RouteState, RouteState]:
    """A compiled graph that does the best plan of an artifact, call by call, through a gate.

    Args:
        artifact: or the path of one, whose certificates are then checked.
        tools: of LangChain, not yet guarded; at least those that the plan calls.
        gate: of the session; None begins one that is kept in memory.
        run: of :func:`tcc.search` over the artifact; None searches when the graph first runs.
        arguments: the open arguments: by tool, or a callable from a
            :class:`tcc_runtime.executor.course.Step`.
        results, observe, interrupts: as of :func:`guard`.
        resolve: is asked what became of a call whose outcome is unknown, as of
            :func:`tcc.execute`; it runs inside a node, and may interrupt to ask a person.
        retries: how many calls in a row may fail; each begins a new search.
        seed: of searches; None takes one that follows from the session's key.
        checkpointer, store: as of :meth:`langgraph.graph.StateGraph.compile`.
        quoter, adapters, settings: of searches, as of :func:`tcc.search`; where the session has a
            budget, its caps, weights, margin, delta and atoms hold for their asks, too.

    Raises:
        BindingError: as of :func:`guard`.
        ValueError: the gate holds its session to another artifact.
        Rejected: the artifact is refused; A101 to A106, of the registry.
    """
    opened = artifact if isinstance(artifact, Artifact) else load(Path(artifact))
    held = Gate(opened) if gate is None else gate
    if held.artifact.digest != opened.digest:
        raise ValueError("the gate holds its session to another artifact")

    known = adapters_in(adapters)

    def begin() -> Course:
        # A session may have got its budget since: its asks draw on what its calls do.
        limits = {} if opened.fixed_costs else held.limits
        return Course(
            held,
            run,
            seed=seed,
            retries=retries,
            quoter=quoter,
            settings={**settings, **limits},
            adapters=known,
        )

    route = Route(
        gate=held,
        begin=begin,
        tools=frozenset(tool.name for tool in tools),
        source=arguments,
        resolve=resolve,
        _lock=threading.Lock(),
        _courses=[],
    )
    guarded = guard(tools, held, results=results, observe=observe, interrupts=interrupts)
    graph = StateGraph(RouteState)
    graph.add_node("controller", route.controller)
    graph.add_node("tools", _tools(held, guarded))
    graph.add_node("accountant", route.accountant)
    graph.add_edge(START, "controller")
    graph.add_conditional_edges("controller", _after_controller, ["tools", "accountant"])
    graph.add_edge("tools", "accountant")
    graph.add_conditional_edges("accountant", _after_accountant, ["controller", END])
    return graph.compile(checkpointer=checkpointer, store=store)


def _tools(gate: Gate, guarded: Sequence[BaseTool]) -> ToolNode:
    """The tools; what they raise is an answer, as the ledger says what it means."""

    def ask(request: ToolCallRequest, call: Callable[[ToolCallRequest], Answer]) -> Answer:
        check_head(gate, head_of(request.state))
        return call(request)

    async def ask_in_task(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        check_head(gate, head_of(request.state))
        return await call(request)

    return ToolNode(
        guarded, handle_tool_errors=True, wrap_tool_call=ask, awrap_tool_call=ask_in_task
    )


def _after_controller(state: RouteState) -> str:
    return "accountant" if state.get("stop") else "tools"


def _after_accountant(state: RouteState) -> str:
    return END if state.get("stop") else "controller"
