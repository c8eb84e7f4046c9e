"""Calls that wait for a person: a graph stops with the question and resumes with a verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

import tcc
from tcc.langchain import build_graph, guard
from tests.langchain.world import ASKED, SHOP, World, answers, called

THREAD: Any = {"configurable": {"thread_id": "1"}}
ASKING = SHOP.replace("plan = look refund?", "plan = (look | refund){0,9}") + (
    'before refund(amount > 100) ask "finance" within 2 h because "Large refunds need finance."\n'
    'before refund(part = full) ask "lead"\n'
)
LARGE = called("refund", part="half", order="ord-1", amount=200)
BOTH = called("refund", part="full", order="ord-1", amount=200)
Worlds = Callable[[str], World]


class Graph:
    """An agent in a thread, which may stop with questions."""

    def __init__(self, world: World, script: list[Any], in_task: bool = False) -> None:
        self.agent = world.agent(script, checkpointer=InMemorySaver())
        self.in_task = in_task

    def run(self, given: Any = ASKED) -> dict[str, Any]:
        if self.in_task:
            return dict(asyncio.run(self.agent.ainvoke(given, THREAD)))
        return dict(self.agent.invoke(given, THREAD))

    def answer(self, verdict: str, **more: str) -> dict[str, Any]:
        return self.run(Command(resume={"verdict": verdict, "who": "Ann", **more}))


def question(state: dict[str, Any]) -> dict[str, Any]:
    """What the person is asked: the value of the one interrupt."""
    (found,) = state["__interrupt__"]
    return dict(found.value)


@pytest.mark.parametrize("in_task", [False, True])
def test_an_approval_lets_the_call_through_once(worlds: Worlds, in_task: bool) -> None:
    world = worlds(ASKING)
    graph = Graph(world, [[LARGE], [{**LARGE, "id": "again"}]], in_task)
    asked = question(graph.run())
    assert (asked["who"], asked["text"], asked["arguments"]["amount"]) == (
        "finance",
        'before refund(amount > 100) ask "finance" within 2 h',
        "200",
    )
    assert world.names == []
    again = question(graph.answer("approved", id=asked["id"]))
    assert world.names == ["refund"]
    assert again["id"] != asked["id"]


def test_a_denial_is_told_to_the_model_and_stands(worlds: Worlds) -> None:
    world = worlds(ASKING)
    graph = Graph(world, [[LARGE], [{**LARGE, "id": "again"}]])
    graph.run()
    state = graph.answer("denied", reason="Ask the shop first.")
    first, second = answers(state)
    assert first.artifact == second.artifact == {"tcc_refusal": "R209"}
    assert "Ask the shop first." in first.text
    assert world.names == []


def test_a_verdict_from_elsewhere_is_enough(worlds: Worlds) -> None:
    world = worlds(ASKING)
    graph = Graph(world, [[LARGE]])
    world.gate.approve(question(graph.run())["id"], who="Ann")
    graph.answer("denied")  # nobody asks any more: the value is not read
    assert world.names == ["refund"]


def test_another_process_resumes_the_graph(worlds: Worlds) -> None:
    world, saver = worlds(ASKING), InMemorySaver()
    asked = question(world.agent([[LARGE]], checkpointer=saver).invoke(ASKED, THREAD))
    world.reopen()
    agent = world.agent([[LARGE]], checkpointer=saver)
    agent.invoke(Command(resume={"verdict": "approved", "who": "Ann"}), THREAD)
    assert world.names == ["refund"]
    assert asked["id"] in world.ledger.read_text()


def test_each_of_two_questions_gets_its_own_verdict(worlds: Worlds) -> None:
    world = worlds(ASKING)
    graph = Graph(world, [[BOTH], [{**BOTH, "id": "again"}]])
    first = question(graph.run())
    second = question(graph.answer("approved", id=first["id"]))
    assert (first["who"], second["who"]) == ("finance", "lead")
    graph.answer("approved", id=second["id"])
    assert world.names == ["refund"]


@pytest.mark.parametrize(
    ("call", "value", "why"),
    [
        (LARGE, "yes", "resume with"),
        (LARGE, {"verdict": "yes", "who": "Ann"}, '"verdict"'),
        (LARGE, {"verdict": "approved"}, '"who"'),
        (LARGE, {"verdict": "approved", "who": ""}, "who: a text"),
        (LARGE, {"verdict": "approved", "who": "Ann", "id": "0" * 32}, "another question"),
    ],
)
def test_a_value_that_is_no_verdict_on_the_question_decides_nothing(
    worlds: Worlds, call: dict[str, Any], value: object, why: str
) -> None:
    world = worlds(ASKING)
    graph = Graph(world, [[call]])
    graph.run()
    (told,) = answers(graph.run(Command(resume=value)))
    assert told.artifact["tcc_refusal"] == "R211" and why in told.text
    assert world.names == [] and len(world.gate.pending) == 1


def test_a_value_without_an_id_decides_no_question_that_nobody_saw(worlds: Worlds) -> None:
    """Two calls of one task run in threads, and LangGraph matches values by the order of these."""
    world = worlds(ASKING)
    other = called("refund", "other", part="half", order="ord-2", amount=300)
    graph = StateGraph(MessagesState)
    asking = AIMessage(content="", tool_calls=[LARGE, other])
    graph.add_node("ask", lambda _: {"messages": [asking]})
    graph.add_node("tools", ToolNode(guard(world.tools(), world.gate)))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tools")
    graph.add_edge("tools", END)
    agent = graph.compile(checkpointer=InMemorySaver())
    seen = question(agent.invoke(ASKED, THREAD))["arguments"]["amount"]
    agent.invoke(Command(resume={"verdict": "approved", "who": "Ann"}), THREAD)
    assert [str(given["amount"]).removesuffix(".0") for _, given in world.done] in ([], [seen])


def test_a_model_may_be_told_instead(worlds: Worlds) -> None:
    world = worlds(ASKING)
    state = world.agent([[LARGE]], pending="tell").invoke(ASKED)
    (told,) = answers(state)
    (open_question,) = world.gate.pending
    assert told.artifact["tcc_pending"]["id"] == open_question.id and open_question.id in told.text


def test_a_program_that_runs_a_tool_by_hand_gets_the_exception(worlds: Worlds) -> None:
    world = worlds(ASKING)
    _, refund, _ = guard(world.tools(), world.gate)
    with pytest.raises(tcc.Pending):
        refund.invoke(LARGE["args"])


def test_a_planned_route_avoids_a_call_that_a_person_denied(worlds: Worlds) -> None:
    grammar = """grammar g version "1"
tool look(by: email | phone) { cost 0.1 }
tool refund(part: half | full) { cost 0.1  cost 60 when part = full }
tool delete { cost 0.1 }
plan = look refund
before refund(part = half) ask "lead"
"""
    world = worlds(grammar)

    @tool
    def look(by: str) -> str:
        """Look."""
        return world.did("look", {"by": by})

    @tool
    def refund(part: str) -> str:
        """Pay back."""
        return world.did("refund", {"part": part})

    route = build_graph(
        world.artifact, [look, refund], gate=world.gate, checkpointer=InMemorySaver(), top=4
    )
    assert question(route.invoke({}, THREAD))["arguments"] == {"part": "half"}
    state = route.invoke(Command(resume={"verdict": "denied", "who": "Ann"}), THREAD)
    assert state["stop"] == "finished"
    assert world.done[-1] == ("refund", {"part": "full"})
