"""The same tools without a plan: LangGraph's own loop, with a policy that is scripted.

No language model is asked: which call comes next is a function of what was found, the same each
time, so what is compared is plan against loop and not one model with another.  It looks on the
noisy shelf first and everywhere then, three times at most.  Nothing holds its calls to a grammar
and nothing is recorded.
Cost: LangGraph's steps, some milliseconds a question.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypedDict

from tcc_experiments.model import Row
from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.errors import PipelineError, bring
from tcc_experiments.pipeline.policy import Policy
from tcc_experiments.pipeline.questions import Question

NAME = "LangGraph's loop, scripted"
ROUNDS = 3
_FIRST, _LATER = {"scope": "shelf", "k": 10}, {"scope": "everywhere", "k": 20}


class State(TypedDict):
    """What the loop hands from step to step."""

    rounds: int
    found: str
    value: float | None


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of the graph, over one desk and one question."""

    desk: Desk
    policy: Policy
    calls: list[str]

    def retrieve(self, state: State) -> dict[str, Any]:
        """One look, wider after the first."""
        self._call("retrieve", _LATER if state["rounds"] else _FIRST)
        return {"rounds": state["rounds"] + 1}

    def summarise(self, state: State) -> dict[str, Any]:
        """The numbers, from all that was found so far."""
        return {"found": self._call("summarise", {"reads": "all"})["found"]}

    def calculate(self, state: State) -> dict[str, Any]:
        """The value; none where the expression has none."""
        try:
            return {"value": self._call("calculate", {})["value"]}
        except PipelineError:
            return {"value": None}

    def after(self, state: State) -> str:
        """Which step comes after a summary."""
        if state["found"] == "all":
            return "calculate"
        return "retrieve" if state["rounds"] < ROUNDS else "__end__"

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(name)
        result = self.desk.tools()[name](**arguments, **self.policy.opened(name, arguments))
        self.policy.take(name, result)
        return result


def looped(question: Question, noisy: str, corpus: Corpus) -> Row:
    """What the loop makes of a question: the columns of an answer that it has.

    Raises:
        MissingExtra: LangGraph is not installed.
        PipelineError: the corpus was changed.
    """
    desk = Desk(corpus)
    desk.route(noisy)
    steps = _Steps(desk, Policy(question.text), ["route"])
    graph = _graph(steps)
    started = time.perf_counter()
    ended: State = graph.invoke({"rounds": 0, "found": "some", "value": None})
    value = ended["value"]
    return {
        "question": question.name,
        "category": question.category,
        "noisy": noisy,
        "mode": NAME,
        "calls": len(steps.calls),
        "answer_ms": 1000 * (time.perf_counter() - started),
        "value": value,
        "right": question.is_right(value),
    }


def _graph(steps: _Steps) -> Any:
    langgraph = bring("langgraph.graph")
    graph = langgraph.StateGraph(State)
    graph.add_node("retrieve", steps.retrieve)
    graph.add_node("summarise", steps.summarise)
    graph.add_node("calculate", steps.calculate)
    graph.add_edge(langgraph.START, "retrieve")
    graph.add_edge("retrieve", "summarise")
    graph.add_conditional_edges("summarise", steps.after)
    graph.add_edge("calculate", langgraph.END)
    return graph.compile()
