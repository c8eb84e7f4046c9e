"""Builds a graph that executes a plan: a controller, the tools, an accountant, and back.

    controller -> tools -> accountant -> controller ..; at the end, controller -> accountant

The controller proposes the next call of a certified plan; the tools ask the gate and record; the
accountant reads the ledger, and ends the session at the end of a plan.  After an answer that the
plan did not assume, or a failure, the controller searches again from the calls that were made.  The
state of the graph has only the proposed call; the ledger has its outcome.  So a graph that is
resumed from an older checkpoint, or in another process, continues where the session is.
Text: docs/langgraph.md.  Cost: that of the searches, the gate and the tools.  A search runs at the
start, and after each departure from the plan.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import BindingError
from tcc_runtime.executor.course import ExecutionStop, PlanCourse, PlanStep
from tcc_runtime.executor.execute import PLAN_REFUSED, Resolve
from tcc_runtime.gate.budget import adapters_in
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.langchain import middleware
from tcc_runtime.langchain.guard import guard
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.quotes import Quoter

# The route: the plan of a certified search, compared with the ledger.

Opened: TypeAlias = "Mapping[str, Any]"
Source: TypeAlias = "Mapping[str, Opened] | Callable[[PlanStep], Opened | None]"
_ENDED: Final = "R303"
_ALREADY_DONE: Final = "R304"


class RouteState(TypedDict, total=False):
    """The state of a planned graph.

    Attributes:
        messages: a message for each proposed call, and for its answer.
        tcc_head: the head of the session's ledger.
        proposed: the canonical text of the call that was proposed last.
        seq: the number that this call would get in the session.
        refused: the text of this call if the gate refused it, else ''.
        stop: the kind of end; '' while the graph continues.
        reason: the reason of the end in words.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    tcc_head: str
    proposed: str
    seq: int
    refused: str
    stop: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The nodes other than the tools: the choice of the next call, and its outcome.

    Attributes:
        gate: the gate of the session.
        begin: creates the course, when the graph first runs.
        tools: the names of the available tools.
        source: supplies the open arguments.
        resolve: asked for the outcome of a call whose outcome is unknown.
    """

    gate: Gate
    begin: Callable[[], PlanCourse]
    tools: Collection[str]
    source: Source | None
    resolve: Resolve | None
    _lock: threading.Lock
    _courses: list[PlanCourse]

    def controller(self, state: RouteState) -> dict[str, Any]:
        """Propose the next call of the plan, or stop with the reason why no call follows."""
        middleware.check_head(self.gate, state.get("tcc_head"))
        with self._lock:
            found = self._next(state.get("refused", ""))
        head = self.gate.head
        if isinstance(found, ExecutionStop):
            return {"stop": found.kind, "reason": found.reason, "refused": "", "tcc_head": head}
        # The same step always gets the same id, so it is made only once.
        ref = f"{self.gate.key_of(found.seq)} {found.call}"
        call = {"name": found.tool, "args": self._arguments(found), "id": ref, "type": "tool_call"}
        return {
            "messages": [AIMessage(content="", tool_calls=[call])],
            "proposed": found.call,
            "seq": found.seq,
            "refused": "",
            "stop": "",
            "reason": "",
            "tcc_head": head,
        }

    def accountant(self, state: RouteState) -> dict[str, Any]:
        """Read the outcome of the call from the ledger; at the end of a plan, end the session."""
        middleware.check_head(self.gate, state.get("tcc_head"))
        if state.get("stop") == "finished":
            self._finish()
            return {"tcc_head": self.gate.head}
        found = {} if state.get("stop") else self._account(state)
        return {**found, "tcc_head": self.gate.head}

    def _account(self, state: RouteState) -> dict[str, Any]:
        if self.gate.call_count >= state.get("seq", 0):
            return {}
        last = state["messages"][-1]
        artifact = last.artifact if isinstance(last, ToolMessage) else None
        code = artifact.get(middleware.REFUSAL) if isinstance(artifact, dict) else None
        if code in PLAN_REFUSED:
            return {"refused": state.get("proposed", "")}
        if code == _ALREADY_DONE:
            return {}
        return {"stop": "refused", "reason": str(last.text)}

    def _finish(self) -> None:
        try:
            self.gate.finish()
        except Refused as refusal:
            if refusal.code != _ENDED:
                raise

    def _next(self, refused: str) -> PlanStep | ExecutionStop:
        if not self._courses:
            self._courses.append(self.begin())
        course = self._courses[0]
        while (seq := course.unknown()) is not None:
            if not self._told(seq):
                return ExecutionStop(
                    kind="unknown", reason=f"call {seq}, {self.gate.happened(seq).call}"
                )
        found = course.next()
        if isinstance(found, PlanStep) and found.call == refused:
            course.refuse(found, "")
            found = course.next()
        for tool in course.tools():
            if tool not in self.tools:
                raise BindingError(tool, "the plan calls it: give a tool for it")
        return found

    def _told(self, seq: int) -> bool:
        """Return whether the owner reported the outcome of a call, which is then recorded."""
        said = None if self.resolve is None else self.resolve(self.gate.happened(seq))
        if said is None:
            return False
        outcome, observed = (said, None) if isinstance(said, str) else said
        if outcome not in ("done", "failed"):
            raise ValueError(f"what became of a call is done or failed, not {outcome!r}")
        self.gate.resolve(seq, "done" if outcome == "done" else "failed", observed)
        return True

    def _arguments(self, step: PlanStep) -> dict[str, Any]:
        opened = self.source(step) if callable(self.source) else (self.source or {}).get(step.tool)
        foreign = sorted(set(opened or ()) - set(step.opened))
        if foreign:
            raise TypeError(f"{step.tool} has no field {foreign[0][:80]!r}")
        return {**step.arguments, **(opened or {})}


def build_graph(
    artifact: Artifact | str | Path,
    tools: Sequence[BaseTool],
    *,
    gate: Gate | None = None,
    run: Run | None = None,
    arguments: Source | None = None,
    results: middleware.Results | None = None,
    observe: middleware.Observe | None = None,
    interrupts: middleware.Interrupts = "unknown",
    resolve: Resolve | None = None,
    retries: int = 3,
    seed: bytes | None = None,
    quoter: Quoter | None = None,
    adapters: str | Path | Iterable[Adapter] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    **settings: Any,
) -> CompiledStateGraph[RouteState, None, RouteState, RouteState]:
    """Return a compiled graph that executes the best plan of an artifact through a gate, call by
    call.

    Args:
        artifact: the artifact; or a path, whose certificates are then checked.
        tools: LangChain tools that are not guarded; at least those that the plan calls.
        gate: the gate of the session; None: a session in memory begins.
        run: a result of :func:`tcc.search` over the artifact; None: the graph searches when it
            first runs.
        arguments: the open arguments: a mapping by tool, or a callable that takes a
            :class:`tcc_runtime.executor.course.PlanStep`.
        results, observe, interrupts: see :func:`guard`.
        resolve: asked for the outcome of a call whose outcome is unknown; see :func:`tcc.execute`.
            It runs inside a node, and may interrupt to ask a person.
        retries: how many calls in a row may fail; a new search follows each failure.
        seed: the seed of searches; None: it is derived from the session's key.
        checkpointer, store: see :meth:`langgraph.graph.StateGraph.compile`.
        quoter, adapters, settings: options of searches, see :func:`tcc.search`.  If the session has
            a budget, its caps, weights, margin, delta and atoms replace those in `settings`.

    Raises:
        BindingError: see :func:`guard`.
        ValueError: the gate has another artifact.
        Rejected: the check refuses the artifact; A101 to A106: the registry is malformed.
    """
    opened = artifact if isinstance(artifact, Artifact) else load(Path(artifact))
    held = Gate(opened) if gate is None else gate
    if held.artifact.digest != opened.digest:
        raise ValueError("the gate holds its session to another artifact")

    known = adapters_in(adapters)

    def begin() -> PlanCourse:
        # The session may have begun a budget meanwhile, on which calls and questions both draw.
        limits = {} if opened.fixed_costs else held.limits
        return PlanCourse(
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
    """Return the node of the tools.  Exceptions of tools become answers; the ledger has the
    outcome.
    """

    def ask(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], middleware.Answer]
    ) -> middleware.Answer:
        middleware.check_head(gate, middleware.head_of(request.state))
        return call(request)

    async def ask_in_task(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], Awaitable[middleware.Answer]]
    ) -> middleware.Answer:
        middleware.check_head(gate, middleware.head_of(request.state))
        return await call(request)

    return ToolNode(
        guarded, handle_tool_errors=True, wrap_tool_call=ask, awrap_tool_call=ask_in_task
    )


def _after_controller(state: RouteState) -> str:
    return "accountant" if state.get("stop") else "tools"


def _after_accountant(state: RouteState) -> str:
    return END if state.get("stop") else "controller"
