"""Agents of LangChain with guarded tools: whatever stands around the tools, the gate holds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ToolRetryMiddleware,
    hook_config,
    wrap_tool_call,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from tcc.langchain import TccMiddleware, guard
from tcc_runtime.errors import BindingError
from tests.langchain.world import ASKED, LOOK, REFUND, SHOP, Scripted, World, answers, called

THREAD = {"configurable": {"thread_id": "1"}}
THREE = [called("refund", f"r{n}", part="full", order=f"ord-{n}", amount=n) for n in (1, 2, 3)]


def test_an_agent_does_what_is_allowed(world: World) -> None:
    state = world.agent([[LOOK], [REFUND]]).invoke(ASKED)
    assert world.done == [
        ("look", {"by": "email"}),
        ("refund", {"part": "half", "order": "ord-1", "amount": 3.0}),
    ]
    assert world.outcomes == ["done", "done"]
    assert [message.status for message in answers(state)] == ["success", "success"]
    world.gate.finish()
    assert (world.verdict().word, world.verdict().claim_type) == ("VALID", "Conformant")


@pytest.mark.parametrize("in_task", [False, True])
def test_of_three_parallel_refunds_one_runs(world: World, in_task: bool) -> None:
    agent = world.agent([[LOOK], THREE])
    state = asyncio.run(agent.ainvoke(ASKED)) if in_task else agent.invoke(ASKED)
    assert world.names == ["look", "refund"]
    assert sorted(message.status for message in answers(state)) == ["error", "error"] + 2 * [
        "success"
    ]
    assert world.refused == ["R201", "R201"]
    refusal = next(message for message in answers(state) if message.status == "error")
    assert refusal.artifact == {"tcc_refusal": "R201"} and "Allowed now: nothing." in refusal.text


def test_one_tool_node_with_parallel_calls(world: World) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(guard(world.tools(), world.gate)))
    graph.add_edge(START, "tools")
    compiled = graph.compile()
    compiled.invoke({"messages": [AIMessage(content="", tool_calls=[LOOK])]})
    compiled.invoke({"messages": [AIMessage(content="", tool_calls=THREE)]})
    assert world.names == ["look", "refund"]


def test_what_no_plan_allows_is_not_run(world: World) -> None:
    state = world.agent([[called("delete")], [REFUND], [LOOK]]).invoke(ASKED)
    assert (world.names, world.refused) == (["look"], ["R202", "R201"])
    assert 'Allowed now: look(by="email"), look(by="phone").' in answers(state)[0].text


def test_a_middleware_that_rewrites_a_call_gains_nothing(world: World) -> None:
    @wrap_tool_call
    def rewrite(request: Any, handler: Any) -> Any:
        if request.tool_call["name"] != "refund":
            return handler(request)
        first = handler(request)  # lets the call through, and makes two more of it
        for call in (
            called("refund", "other", part="full", order="ord-9", amount=500),
            called("delete", request.tool_call["id"]),
        ):
            named = next(found for found in tools if found.name == call["name"])
            assert handler(request.override(tool_call=call, tool=named)).status == "error"
        return first

    tools = guard(world.tools(), world.gate)
    from langchain.agents import create_agent

    create_agent(Scripted(script=[[LOOK], [REFUND]]), tools, middleware=[rewrite]).invoke(ASKED)
    assert world.names == ["look", "refund"] and world.done[1][1]["order"] == "ord-1"
    # The second has the id of the first: that alone is a reason.
    assert world.refused == ["R201", "R304"]


def test_arguments_that_are_rewritten_are_what_is_decided_on(world: World) -> None:
    @wrap_tool_call
    def rewrite(request: Any, handler: Any) -> Any:
        worse = {**request.tool_call, "args": {**request.tool_call["args"], "amount": 501}}
        return handler(request.override(tool_call=worse))

    tools = [found for found in world.tools() if found.name == "refund"]
    world.agent([[LOOK]]).invoke(ASKED)
    world.agent([[REFUND]], tools=tools, middleware=[rewrite]).invoke(ASKED)
    assert (world.names, world.refused) == (["look"], ["R105"])


class Jumps(AgentMiddleware[Any, Any, Any]):
    """Sends the model's calls to the tools once more, as if nobody had answered them."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 2

    @hook_config(can_jump_to=["tools"])
    def before_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        said = [m for m in state["messages"] if isinstance(m, AIMessage) and m.tool_calls]
        if not said or not self.left:
            return None
        self.left -= 1
        again = AIMessage(content="", tool_calls=said[-1].tool_calls)
        return {"messages": [again], "jump_to": "tools"}


def test_jumping_back_to_the_tools_makes_no_call_twice(world: World) -> None:
    state = world.agent([[LOOK], [], [], [REFUND]], middleware=[Jumps()]).invoke(ASKED)
    assert world.names[:1] == ["look"] and world.names.count("look") == 1
    assert world.refused == ["R304", "R304"]
    # The reason is said once.
    said = answers(state)[1].text
    assert said.startswith("Refused, and not called: R304: look") and "Because of" not in said


def test_a_store_of_answers_answers_a_call_that_was_made(world: World) -> None:
    results: dict[str, Any] = {}
    state = world.agent([[LOOK]], middleware=[Jumps()], results=results).invoke(ASKED)
    assert world.names == ["look"]
    assert [message.text for message in answers(state)] == ["look done"] * 3
    assert results == {"id-look": "look done"}


def test_a_store_does_not_answer_another_call_of_the_same_id(world: World) -> None:
    again = called("refund", LOOK["id"], part="half", order="ord-1", amount=3)
    state = world.agent([[LOOK], [again]], results={}).invoke(ASKED)
    assert world.names == ["look"]
    assert [message.status for message in answers(state)] == ["success", "error"]


def retrying(attempts: int) -> ToolRetryMiddleware:
    return ToolRetryMiddleware(
        max_retries=attempts, initial_delay=0, backoff_factor=0, jitter=False
    )


def failing(world: World, times: int) -> list[BaseTool]:
    left = [times]

    @tool
    def look(by: str) -> str:
        """Look."""
        world.did("look", {"by": by})
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("the line is dead")
        return "found"

    return [look, *world.tools()[1:]]


@pytest.mark.parametrize("in_task", [False, True])
def test_retries_do_not_repeat_what_may_have_happened(world: World, in_task: bool) -> None:
    agent = world.agent([[LOOK]], tools=failing(world, 1), middleware=[retrying(3)])
    state = asyncio.run(agent.ainvoke(ASKED)) if in_task else agent.invoke(ASKED)
    assert (world.names, world.outcomes) == (["look"], ["unknown"])
    assert world.refused == ["R304"] and answers(state)[-1].status == "error"


def test_retries_repeat_what_has_not_happened(worlds: Any) -> None:
    world = worlds(SHOP.replace("phone) {", "phone) { errors mean failed"))
    agent = world.agent([[LOOK], [REFUND]], tools=failing(world, 2), middleware=[retrying(3)])
    state = agent.invoke(ASKED)
    assert world.outcomes == ["failed", "failed", "done", "done"] and world.refused == []
    assert [message.text for message in answers(state)] == ["found", "refund done"]


def test_a_person_in_the_loop_edits_a_call(world: World) -> None:
    agent = world.agent(
        [[LOOK], [REFUND]],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"refund": True})],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(ASKED, THREAD)
    assert world.names == ["look"]
    edited = {"name": "refund", "args": {**REFUND["args"], "amount": 900}}
    agent.invoke(Command(resume={"decisions": [{"type": "edit", "edited_action": edited}]}), THREAD)
    assert (world.names, world.refused) == (["look"], ["R105"])


def asking(world: World) -> list[BaseTool]:
    from langgraph.types import interrupt

    @tool
    def refund(part: str, order: str, amount: float) -> str:
        """Pay back."""
        said = interrupt("may I?")
        return world.did("refund", {"part": part, "said": said})

    return [world.tools()[0], refund]


@pytest.mark.parametrize("in_task", [False, True])
@pytest.mark.parametrize(("interrupts", "names"), [("unknown", []), ("failed", ["refund"])])
def test_an_interrupt_inside_a_tool(
    world: World, interrupts: str, names: list[str], in_task: bool
) -> None:
    agent = world.agent(
        [[LOOK], [REFUND]],
        tools=asking(world),
        interrupts=interrupts,
        checkpointer=InMemorySaver(),
    )

    def run(given: Any) -> Any:
        return asyncio.run(agent.ainvoke(given, THREAD)) if in_task else agent.invoke(given, THREAD)

    assert run(ASKED)["__interrupt__"][0].value == "may I?"
    assert world.names == ["look"] and world.outcomes == ["done", interrupts]
    state = run(Command(resume="yes"))
    assert world.names == ["look", *names]
    assert answers(state)[-1].status == ("success" if names else "error")


def test_an_agent_inside_a_graph(world: World) -> None:
    agent = world.agent([[LOOK], [REFUND]])
    graph = StateGraph(MessagesState)
    graph.add_node("one", agent)
    graph.add_node("two", world.agent([[LOOK], [REFUND]]))
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    graph.compile(checkpointer=InMemorySaver()).invoke(
        {"messages": [HumanMessage("go on")]}, THREAD
    )
    assert world.names == ["look", "refund"]


def test_an_agent_inside_a_tool_cannot_call_for_its_caller(world: World) -> None:
    inside = world.agent([[REFUND]])
    said: list[str] = []

    @tool
    def look(by: str) -> str:
        """Look, and have another agent work on."""
        said.extend(message.text for message in answers(inside.invoke(ASKED)))
        return world.did("look", {"by": by})

    world.agent([[LOOK]], tools=[look, *world.tools()[1:]]).invoke(ASKED)
    assert world.names == ["look"] and "R305" in said[0]


def test_the_model_sees_what_is_allowed(world: World) -> None:
    model = Scripted(script=[[LOOK], [REFUND]], offered=[], read=[])
    world.agent([], model=model, middleware=[TccMiddleware(world.gate)]).invoke(ASKED)
    assert model.offered == [["look"], ["refund"]]  # and none at the end
    first, _, last = [messages[0].text for messages in model.read]
    assert first.startswith('Allowed now: look(by="email"), look(by="phone"). You may not stop')
    assert last == "Allowed now: nothing. You may stop here."


def test_the_words_of_others_stay(world: World) -> None:
    from langchain_core.messages import SystemMessage

    for prompt, content in (
        ("Be kind.", None),
        (SystemMessage(content=[{"type": "text", "text": "Be kind."}]), 2),
    ):
        model = Scripted(script=[], offered=[], read=[])
        middleware = [TccMiddleware(world.gate, mask=False)]
        agent = world.agent([], model=model, middleware=middleware, system_prompt=prompt)
        agent.invoke(ASKED)
        read = model.read[0][0]
        assert read.text.startswith("Be kind.") and "Allowed now" in read.text
        assert content is None or len(read.content) == content
        assert model.offered == [["look", "refund", "delete"]]


def test_what_cannot_be_guarded_is_said(world: World) -> None:
    @tool
    def other() -> str:
        """Unknown to the grammar."""
        return ""

    class Own(type(world.tools()[0])):  # type: ignore[misc]
        def invoke(self, *_: Any, **__: Any) -> str:
            return world.did("look", {})

    look = world.tools()[0]
    own = Own(**{name: getattr(look, name) for name in ("name", "description", "func")} | {
        "args_schema": look.args_schema
    })  # fmt: skip
    for tools, said in (
        ([other], "'other': the grammar has no such tool"),
        ([look, look], "'look': it is given twice"),
        ([own], "'look': its class replaces invoke"),
        (guard([look], world.gate), "'look': it is guarded already"),
    ):
        with pytest.raises(BindingError, match=said):
            guard(tools, world.gate)
