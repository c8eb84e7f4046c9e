"""Planned graphs: what they do, where they search again, and where they stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

import tcc as library
from tcc.langchain import ForeignHead, build_graph, guard
from tcc_runtime.errors import BindingError, Failed
from tcc_runtime.executor.course import PlanStep
from tcc_runtime.gate.gate import Gate
from tests.langchain.world import World, answers

ROUTE = """grammar route version "1"

tool find(by: email | phone) { cost 0.1 }
tool check(kind: stock | credit) gives (answer: yes | no) { cost 0.1 }
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500) { cost 0.2 }
tool escalate { cost 9 }

plan = find check(answer=yes) refund | find check(answer=no) escalate
"""
ARGUMENTS = {"refund": {"order": "ord-17", "amount": 3}}
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def route(worlds: Callable[[str], World]) -> World:
    return worlds(ROUTE)


def tools_of(world: World, **answer: Callable[[], Any]) -> list[BaseTool]:
    """Tools of the route; `answer` says what some of them answer."""

    def did(name: str, arguments: dict[str, Any]) -> Any:
        said = world.did(name, arguments)
        return answer[name]() if name in answer else said

    @tool
    def find(by: str) -> Any:
        """Find."""
        return did("find", {"by": by})

    @tool
    def check(kind: str) -> Any:
        """Check."""
        return did("check", {"kind": kind})

    @tool
    def refund(part: str, order: str, amount: float) -> Any:
        """Pay back."""
        return did("refund", {"part": part, "order": order, "amount": amount})

    @tool
    def escalate() -> Any:
        """Ask somebody."""
        return did("escalate", {})

    return [find, check, refund, escalate]


def graph_of(world: World, tools: list[BaseTool], **more: Any) -> Any:
    return build_graph(
        world.artifact,
        tools,
        gate=world.gate,
        **{"arguments": ARGUMENTS, "seed": bytes(32), **more},
    )


@pytest.mark.parametrize("in_task", [False, True])
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_plan_is_done_whatever_is_answered(route: World, answer: str, in_task: bool) -> None:
    graph = graph_of(route, tools_of(route, check=lambda: {"answer": answer}))
    state = asyncio.run(graph.ainvoke({})) if in_task else graph.invoke({})
    assert (state["stop"], state["reason"]) == ("finished", "")
    assert route.names == ["find", "check", "refund" if answer == "yes" else "escalate"]
    assert (route.verdict().word, route.verdict().claim_type) == ("VALID", "Conformant")
    assert state["tcc_head"] == route.gate.head
    assert graph.invoke({})["stop"] == "finished"  # and nothing is done again
    assert len(route.names) == 3


def test_the_plan_of_a_run_is_done(route: World) -> None:
    run = next(
        found
        for found in (library.search(route.artifact, seed=bytes([n]) * 32) for n in count())
        if "answer=yes" in found.plans[0].calls[1]
    )
    state = graph_of(route, tools_of(route, check=lambda: {"answer": "yes"}), run=run).invoke({})
    assert state["stop"] == "finished" and route.names == ["find", "check", "refund"]
    assert route.gate.history[0].call == run.plans[0].calls[0]
    said = answers(state)
    assert len({message.tool_call_id for message in said}) == 3


def test_failures_are_searched_around_and_not_for_ever(route: World) -> None:
    left = count()

    def twice() -> str:
        if next(left) < 2:
            raise Failed("not today")
        return "found"

    graph = graph_of(route, tools_of(route, find=twice, check=lambda: {"answer": "yes"}))
    assert graph.invoke({})["stop"] == "finished"
    assert route.outcomes == ["failed", "failed", "done", "done", "done"]


def test_too_many_failures_stop_it(route: World) -> None:
    def never() -> str:
        raise Failed("never")

    state = graph_of(route, tools_of(route, find=never), retries=1).invoke({})
    assert (state["stop"], state["reason"]) == ("failed", "2 calls in a row have failed")
    assert route.names == ["find", "find"]


def test_an_answer_that_nobody_foresees_stops_it(route: World) -> None:
    state = graph_of(route, tools_of(route, check=lambda: {"answer": "perhaps"})).invoke({})
    assert state["stop"] == "unforeseen" and state["reason"].startswith("call 2: check(")
    assert route.names == ["find", "check"]
    route.judge = lambda: None  # type: ignore[method-assign]
    assert (route.verdict().verdict, route.verdict().claim_type) == (2, "ConformantPrefix")


def test_what_is_unknown_is_asked_for_and_never_done_again(route: World) -> None:
    def dead() -> str:
        raise OSError("the line is dead")

    tools = tools_of(route, find=dead, check=lambda: {"answer": "yes"})
    state = graph_of(route, tools).invoke({})
    assert state["stop"] == "unknown" and state["reason"].startswith("call 1, find(")
    assert graph_of(route, tools).invoke({})["stop"] == "unknown"
    assert route.names == ["find"]
    state = graph_of(route, tools, resolve=lambda made: "done").invoke({})
    assert state["stop"] == "finished" and route.names == ["find", "check", "refund"]


def test_a_person_says_what_became_of_a_call(route: World) -> None:
    left = count()

    def once() -> Any:
        if next(left) == 0:
            raise OSError("the line is dead")
        return {"answer": "yes"}

    graph = graph_of(
        route,
        tools_of(route, check=once),
        resolve=lambda made: interrupt({"what became of": made.call}),
        checkpointer=InMemorySaver(),
    )
    state = graph.invoke({}, THREAD)
    assert state["__interrupt__"][0].value["what became of"].startswith("check(")
    state = graph.invoke(Command(resume="failed"), THREAD)
    assert state["stop"] == "finished" and route.names == ["find", "check", "check", "refund"]
    assert route.outcomes == ["done", "failed", "done", "done"]


def test_another_process_goes_on(route: World) -> None:
    saver, tools = InMemorySaver(), tools_of(route, check=lambda: {"answer": "yes"})
    graph = graph_of(route, tools, checkpointer=saver)
    for _ in graph.stream({}, THREAD, interrupt_before=["tools"]):
        pass
    made = 0
    while graph.get_state(THREAD).next:
        assert len(route.names) == made
        route.reopen()
        graph = graph_of(route, tools, checkpointer=saver)
        graph.invoke(None, THREAD, interrupt_before=["tools"])
        made += 1
    assert route.names == ["find", "check", "refund"]
    assert graph.get_state(THREAD).values["stop"] == "finished"


def test_from_every_older_checkpoint_no_call_is_made_twice(route: World) -> None:
    graph = graph_of(
        route,
        tools_of(route, check=lambda: {"answer": "yes"}),
        checkpointer=InMemorySaver(),
        results={},
    )
    graph.invoke({}, THREAD)
    older = [found.config for found in graph.get_state_history(THREAD) if found.next]
    assert len(older) > 9
    for config in older:
        assert graph.invoke(None, config)["stop"] == "finished"
    assert route.names == ["find", "check", "refund"]


def test_a_checkpoint_of_another_session_is_refused(
    route: World, worlds: Callable[[str], World]
) -> None:
    other = worlds(ROUTE)
    saver = InMemorySaver()
    graph_of(route, tools_of(route), checkpointer=saver).invoke(
        {}, THREAD, interrupt_before=["tools"]
    )
    graph = graph_of(other, tools_of(other), checkpointer=saver)
    for given in (None, {}):
        with pytest.raises(ForeignHead):
            graph.invoke(given, THREAD)
    assert (other.names, other.outcomes) == ([], [])
    with pytest.raises(ForeignHead):
        asyncio.run(graph.ainvoke({}, THREAD))


def test_what_a_monitor_forbids_another_plan_goes_around(worlds: Callable[[str], World]) -> None:
    world = worlds("""grammar pay version "1"

tool send(to: home | shop, amount: number 0 .. 100) { cost 0.1 }
tool halt { cost 3 }

plan = send{0,2} halt

limit sum(send.amount) <= 5
""")

    @tool
    def send(to: str, amount: float) -> str:
        """Send."""
        return world.did("send", {"to": to, "amount": amount})

    @tool
    def halt() -> str:
        """Halt."""
        return world.did("halt", {})

    run = next(
        found
        for found in (library.search(world.artifact, seed=bytes([n]) * 32, top=40) for n in count())
        if len(found.plans[0].calls) == 3
    )
    graph = graph_of(world, [send, halt], run=run, arguments={"send": {"amount": 4}})
    assert graph.invoke({})["stop"] == "finished"
    assert world.names == ["send", "halt"] and set(world.refused) == {"R202"}


def test_arguments_that_are_none_stop_it(route: World) -> None:
    steps: list[PlanStep] = []

    def source(step: PlanStep) -> dict[str, Any] | None:
        steps.append(step)
        return {"order": "x", "amount": 3} if step.tool == "refund" else None

    tools = tools_of(route, check=lambda: {"answer": "yes"})
    state = graph_of(route, tools, arguments=source).invoke({})
    assert state["stop"] == "refused" and "R105" in state["reason"]
    assert (route.names, route.refused) == (["find", "check"], ["R105"])
    assert steps[-1].opened == ("order", "amount")
    state = graph_of(route, tools, arguments={"refund": {"order": 5, "amount": "x"}}).invoke({})
    assert state["stop"] == "refused" and "valid number" in state["reason"]
    assert route.refused == ["R105"]
    with pytest.raises(TypeError, match="refund has no field 'part'"):
        graph_of(route, tools, arguments={"refund": {"part": "half"}}).invoke({})


def test_what_the_plan_calls_has_to_be_there(route: World, tmp_path: Path) -> None:
    with pytest.raises(BindingError, match="'find': the plan calls it"):
        graph_of(route, tools_of(route)[1:]).invoke({})
    assert route.names == []
    with pytest.raises(ValueError, match="another artifact"):
        build_graph(library.compile_text("""grammar g version "1"

tool a

plan = a
"""), [],
                    gate=route.gate)  # fmt: skip
    graph = build_graph(route.path, tools_of(route, check=lambda: {"answer": "yes"}),
                        arguments=ARGUMENTS)  # fmt: skip
    assert graph.invoke({})["stop"] == "finished"
    route.done.clear()
    wrong = graph_of(route, tools_of(route), resolve=lambda made: "perhaps")
    with route.gate.call("find", {"by": "email"}):
        pass
    with pytest.raises(ValueError, match="done or failed, not 'perhaps'"):
        wrong.invoke({})


def test_guarded_tools_and_a_planned_graph_share_a_gate(route: World) -> None:
    tools = tools_of(route, check=lambda: {"answer": "no"})
    guard(tools, route.gate)[0].invoke({"by": "phone"})
    assert graph_of(route, tools).invoke({})["stop"] == "finished"
    assert route.names == ["find", "check", "escalate"]
    alone = Gate(route.artifact)
    assert alone.history == ()
