"""What a planned graph does next: the plan of a certified search, held against the ledger.

The graph's state says only which call was proposed; what was made of it, the ledger says.  So a
graph that goes on from an older checkpoint, or in another process, goes on where the session is.
Text: docs/langgraph.md.  Cost: a search at the start, and one wherever the plan is departed from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph.message import add_messages

from tcc_runtime.errors import BindingError
from tcc_runtime.executor.course import Course, Step, Stop
from tcc_runtime.executor.execute import Resolve
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.langchain.calls import REFUSAL
from tcc_runtime.langchain.middleware import check_head

Opened: TypeAlias = "Mapping[str, Any]"
Source: TypeAlias = "Mapping[str, Opened] | Callable[[Step], Opened | None]"
_PLAN_REFUSED: Final = ("R201", "R202", "R203")
_ENDED: Final = "R303"
_ALREADY_DONE: Final = "R304"


class RouteState(TypedDict, total=False):
    """The state of a planned graph.

    Attributes:
        messages: of each call that was proposed, and of its answer.
        tcc_head: the head of the session's ledger.
        proposed: canonical text of the call that was proposed last.
        seq: the number that it was to have.
        refused: that call again, where the gate does not let it through.
        stop: why the graph ended; empty while it goes on.
        reason: the same in words.
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
    """The nodes beside the tools: what comes next, and what came of it.

    Attributes:
        gate: of the session.
        begin: makes the course; it is asked for when the graph first runs.
        tools: the names of those that can be called.
        source: the open arguments.
        resolve: is asked what became of a call whose outcome is unknown.
    """

    gate: Gate
    begin: Callable[[], Course]
    tools: Collection[str]
    source: Source | None
    resolve: Resolve | None
    _lock: threading.Lock
    _courses: list[Course]

    def controller(self, state: RouteState) -> dict[str, Any]:
        """Proposes the next call of the plan, or says why there is none."""
        check_head(self.gate, state.get("tcc_head"))
        with self._lock:
            found = self._next(state.get("refused", ""))
        head = self.gate.head
        if isinstance(found, Stop):
            return {"stop": found.kind, "reason": found.reason, "refused": "", "tcc_head": head}
        # The same step has the same id, whoever proposes it again: it is made once.
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
        """Reads off the ledger what became of the call; ends the session at the end of a plan."""
        check_head(self.gate, state.get("tcc_head"))
        if state.get("stop") == "finished":
            self._finish()
            return {"tcc_head": self.gate.head}
        found = {} if state.get("stop") else self._account(state)
        return {**found, "tcc_head": self.gate.head}

    def _account(self, state: RouteState) -> dict[str, Any]:
        if len(self.gate.history) >= state.get("seq", 0):
            return {}
        last = state["messages"][-1]
        artifact = last.artifact if isinstance(last, ToolMessage) else None
        code = artifact.get(REFUSAL) if isinstance(artifact, dict) else None
        if code in _PLAN_REFUSED:
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

    def _next(self, refused: str) -> Step | Stop:
        if not self._courses:
            self._courses.append(self.begin())
        course = self._courses[0]
        while (seq := course.unknown()) is not None:
            if not self._told(seq):
                return Stop(kind="unknown", reason=f"call {seq}, {self.gate.history[seq - 1].call}")
        found = course.next()
        if isinstance(found, Step) and found.call == refused:
            course.refuse(found, "")
            found = course.next()
        for tool in course.tools():
            if tool not in self.tools:
                raise BindingError(tool, "the plan calls it: give a tool for it")
        return found

    def _told(self, seq: int) -> bool:
        """Whether the owner knows what became of a call."""
        said = None if self.resolve is None else self.resolve(self.gate.history[seq - 1])
        if said is None:
            return False
        outcome, observed = (said, None) if isinstance(said, str) else said
        if outcome not in ("done", "failed"):
            raise ValueError(f"what became of a call is done or failed, not {outcome!r}")
        self.gate.resolve(seq, "done" if outcome == "done" else "failed", observed)
        return True

    def _arguments(self, step: Step) -> dict[str, Any]:
        opened = self.source(step) if callable(self.source) else (self.source or {}).get(step.tool)
        foreign = sorted(set(opened or ()) - set(step.opened))
        if foreign:
            raise TypeError(f"{step.tool} has no open parameter {foreign[0][:80]!r}")
        return {**step.arguments, **(opened or {})}
