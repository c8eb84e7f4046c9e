"""The same tools without a plan (LangGraph's loop), and the table that compares it with every mode.

No language model is called: the next call is a function of what was found, the same each time, so
plan is compared with loop and not one model with another. The loop queries the noisy shelf first
and then everywhere, three times at most. No grammar restricts its calls, and nothing is recorded.
Cost: LangGraph's steps, some milliseconds a question.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from tcc_experiments.intervals import half_width, rate
from tcc_experiments.model import Row
from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.desk import Desk
from tcc_experiments.pipeline.errors import PipelineError, bring
from tcc_experiments.pipeline.policy import ScriptedPolicy
from tcc_experiments.pipeline.questions import Question

NAME = "LangGraph's loop, scripted"
ROUNDS = 3
_FIRST, _LATER = {"scope": "shelf", "k": 10}, {"scope": "everywhere", "k": 20}


class LoopState(TypedDict):
    """What the loop hands from step to step."""

    rounds: int
    found: str
    value: float | None


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of the graph, over one desk and one question."""

    desk: Desk
    policy: ScriptedPolicy
    calls: list[str]

    def retrieve(self, state: LoopState) -> dict[str, Any]:
        """One look, wider after the first."""
        self._call("retrieve", _LATER if state["rounds"] else _FIRST)
        return {"rounds": state["rounds"] + 1}

    def summarise(self, state: LoopState) -> dict[str, Any]:
        """The numbers, from all that was found so far."""
        return {"found": self._call("summarise", {"reads": "all"})["found"]}

    def calculate(self, state: LoopState) -> dict[str, Any]:
        """The value; none where the expression has none."""
        try:
            return {"value": self._call("calculate", {})["value"]}
        except PipelineError:
            return {"value": None}

    def after(self, state: LoopState) -> str:
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
    steps = _Steps(desk, ScriptedPolicy(question.text), ["route"])
    graph = _graph(steps)
    started = time.perf_counter()
    ended: LoopState = graph.invoke({"rounds": 0, "found": "some", "value": None})
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
    graph = langgraph.StateGraph(LoopState)
    graph.add_node("retrieve", steps.retrieve)
    graph.add_node("summarise", steps.summarise)
    graph.add_node("calculate", steps.calculate)
    graph.add_edge(langgraph.START, "retrieve")
    graph.add_edge("retrieve", "summarise")
    graph.add_conditional_edges("summarise", steps.after)
    graph.add_edge("calculate", langgraph.END)
    return graph.compile()


def by_mode(rows: Sequence[Row]) -> list[Row]:
    """One row for each mode, in the order of their first appearance."""
    names = list(dict.fromkeys(str(row["mode"]) for row in rows))
    return [_of_mode(name, [row for row in rows if row["mode"] == name]) for name in names]


def _of_mode(name: str, rows: Sequence[Row]) -> Row:
    right = sum(bool(row["right"]) for row in rows)
    first: Row = {"mode": name, "queries": len(rows)}
    accuracy: Row = {
        "calls": _mean(rows, "calls"),
        "answered": sum(row["value"] is not None for row in rows),
        "right": right,
        "accuracy": rate(right, len(rows)),
    }
    if name == NAME:
        return first | dict.fromkeys(_SEARCHED) | accuracy
    tightened = sum(_number(row, "kappa_tightened") for row in rows)
    nodes = sum(_number(row, "kappa_nodes") for row in rows)
    weighed = sum(_number(row, "kappa_nodes") * _number(row, "kappa_mean") for row in rows)
    kappa = f"{tightened:.0f} of {nodes:.0f}, mean {weighed / max(nodes, 1):.3f}"
    searched: Row = {
        "expansions": int(sum(_number(row, "expansions") for row in rows)),
        "wall_s": round(sum(_number(row, "wall_ms") for row in rows) / 1000, 3),
        "expansions_q": _mean(rows, "expansions"),
        "expansions_q_+-": _half(rows, "expansions"),
        "wall_q_ms": _mean(rows, "wall_ms"),
        "wall_q_ms_+-": _half(rows, "wall_ms"),
        "stop_slack": max(_number(row, "slack") for row in rows),
        "replay": _of(rows, "replay"),
        "sessions": _of(rows, "session"),
        "kappa": kappa if tightened else "n/a",
        "searches": _mean(rows, "searches"),
    }  # fmt: skip
    return first | searched | accuracy


_SEARCHED = (
    "expansions",
    "wall_s",
    "expansions_q",
    "expansions_q_+-",
    "wall_q_ms",
    "wall_q_ms_+-",
    "stop_slack",
    "replay",
    "sessions",
    "kappa",
    "searches",
)


def _number(row: Row, column: str) -> float:
    return float(row[column] or 0)


def _mean(rows: Sequence[Row], column: str) -> float:
    return round(sum(_number(row, column) for row in rows) / len(rows), 2)


def _half(rows: Sequence[Row], column: str) -> float | None:
    values = [_number(row, column) for row in rows]
    if len(values) < 2:
        return None
    return round(half_width(len(values), sum(values), sum(v * v for v in values)), 2)


def _of(rows: Sequence[Row], column: str) -> str:
    good = sum(bool(row[column]) for row in rows)
    return f"{good} of {len(rows)} VALID"
