"""One graph for many threads: the gate of each call follows from its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

import tcc
from tcc.langchain import TccMiddleware, guard
from tests.langchain.world import ASKED, LOOK, REFUND, SHOP, Scripted, World, called


def at(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def calls(gate: tcc.Gate) -> list[str]:
    return [one.call for one in gate.history]


@pytest.mark.parametrize("known", [True, False])
def test_each_thread_has_its_own_session(tmp_path: Path, known: bool) -> None:
    world = World(tmp_path)
    gates = {name: tcc.Gate(world.artifact) for name in ("a", "b")}

    def source(config: Any) -> tcc.Gate:
        return gates[config["configurable"]["thread_id"]]

    tools = guard(world.tools(), gate=source, artifact=world.artifact if known else None)
    model = Scripted(script=[[LOOK], [REFUND]])
    agent = create_agent(model, tools, middleware=[TccMiddleware(source, strict=True)])
    agent.invoke(ASKED, at("a"))
    agent.invoke(ASKED, at("b"))
    expected = ["look(by=email)", "refund(part=half)"]
    assert [calls(gates[name]) for name in ("a", "b")] == [expected, expected]
    assert len(world.done) == 4


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "without a config"),
        (at("nobody"), "no gate for this config: KeyError"),
        (at("none"), "NoneType, no gate"),
        (at("other"), "another artifact"),
    ],
)
def test_without_a_gate_the_tool_is_not_run(tmp_path: Path, config: Any, said: str) -> None:
    world = World(tmp_path)
    other = tcc.compile_text(SHOP.replace('"1"', '"2"'))
    gates = {"a": tcc.Gate(world.artifact), "other": tcc.Gate(other), "none": None}
    tools = guard(world.tools(), gate=lambda c: gates[c["configurable"]["thread_id"]])
    assert tools[0].invoke({"by": "email"}, at("a")) == "look done"
    with pytest.raises(tcc.BindingError, match=said):
        tools[0].invoke({"by": "phone"}, config)
    assert world.done == [("look", {"by": "email"})]


def test_a_tool_that_the_grammar_has_not_is_refused_by_the_gate(tmp_path: Path) -> None:
    world = World(tmp_path)

    @tool
    def other() -> str:
        """Not of the grammar."""
        return world.did("other", {})

    tools = guard([other], gate=lambda _: world.gate)
    with pytest.raises(tcc.Refused) as refused:
        tools[0].invoke({}, at("a"))
    assert (refused.value.code, world.done) == ("R101", [])
    with pytest.raises(tcc.BindingError, match="no such tool"):
        guard([other], gate=lambda _: world.gate, artifact=world.artifact)


def test_strict_runs_and_shows_nothing_that_the_gate_does_not_guard(tmp_path: Path) -> None:
    world = World(tmp_path)
    ran = []

    @tool
    def bare() -> str:
        """Guarded by nobody."""
        ran.append("bare")
        return "ran"

    tools = [*guard(world.tools(), world.gate), bare]
    model = Scripted(script=[[called("bare")]])
    middleware = TccMiddleware(world.gate, strict=True)
    found = create_agent(model, tools, middleware=[middleware]).invoke(ASKED)
    answers = [one for one in found["messages"] if isinstance(one, ToolMessage)]
    assert [(one.status, one.artifact) for one in answers] == [("error", {"tcc_refusal": "R101"})]
    assert ran == []
    assert model.offered[0] == ["look"]
    # Without it, a tool that no gate guards runs: that is what `strict` is for.
    loose = Scripted(script=[[called("bare")]])
    create_agent(loose, tools, middleware=[TccMiddleware(world.gate)]).invoke(ASKED)
    assert ran == ["bare"]


def test_strict_does_not_take_another_gate_for_its_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    with tcc.Gate(world.artifact) as other:
        agent = create_agent(
            Scripted(script=[[LOOK]]),
            guard(world.tools(), other),
            middleware=[TccMiddleware(world.gate, strict=True, mask=False)],
        )
        agent.invoke(ASKED)
        assert (calls(other), world.done) == ([], [])


def test_strict_takes_a_method_for_the_same_source(tmp_path: Path) -> None:
    world = World(tmp_path)

    class Store:
        def gate_of(self, _config: Any) -> tcc.Gate:
            return world.gate

    store = Store()
    tools = guard(world.tools(), store.gate_of)
    strict = TccMiddleware(store.gate_of, strict=True)
    create_agent(Scripted(script=[[LOOK]]), tools, middleware=[strict]).invoke(ASKED, at("a"))
    assert calls(world.gate) == ["look(by=email)"]
    # The same method of another store is another source.
    other = TccMiddleware(Store().gate_of, strict=True, mask=False)
    create_agent(Scripted(script=[[REFUND]]), tools, middleware=[other]).invoke(ASKED, at("a"))
    assert calls(world.gate) == ["look(by=email)"]
