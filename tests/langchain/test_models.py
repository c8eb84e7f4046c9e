"""Tools whose calls models make, behind a gate with a budget: the tool is told which model."""

from __future__ import annotations

import asyncio
import enum
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, field_validator

import tcc as library
from tcc.langchain import TccMiddleware, build_graph, guard
from tcc_runtime.errors import BindingError
from tests.langchain.world import ASKED, World, called

DESK = """grammar desk version "1"

tool answer(by: mail | phone) {
  model fast { price 2 latency 50 ms execute }
  model deep { price 9 latency 100 ms execute }
}
tool tell { cost 0.1 }

plan = answer{0,6} tell?
"""
ANSWER = called("answer", by="mail")


@pytest.fixture
def desk(tmp_path: Path) -> World:
    return World(tmp_path, DESK)


def executed(world: World) -> list[str]:
    records = [json.loads(line) for line in world.ledger.read_bytes().splitlines()]
    return [one["execute"]["model_id"] for one in records if "execute" in one]


class Size(enum.Enum):
    FAST = "fast"
    DEEP = "deep"


class Strict(BaseModel):
    by: str
    model: Size = Field(description="who")

    @field_validator("by")
    @classmethod
    def lower(cls, value: str) -> str:
        return value.lower()


class Aliased(BaseModel):
    by: str
    model: str = Field(alias="modelName")


SCHEMA = {
    "title": "answer",
    "description": "Answer.",
    "type": "object",
    "properties": {"by": {"type": "string"}, "model": {"type": "string"}},
    "required": ["by", "model"],
}


class OwnClass(BaseTool):
    """A class whose method takes the model."""

    name: str = "answer"
    description: str = "Answer."
    did: Any = None

    def _run(self, by: str, model: str) -> str:
        return self.did(by, model)


def forms(world: World) -> dict[str, BaseTool]:
    def did(by: str, model: Any) -> str:
        name = model.value if isinstance(model, enum.Enum) else model
        return world.did("answer", {"by": by, "model": name})

    def answer(by: str, model: str) -> str:
        """Answer."""
        return did(by, model)

    def literal(by: str, model: Literal["fast", "deep"]) -> str:
        """Answer."""
        return did(by, model)

    def sized(by: str, model: Size) -> str:
        assert isinstance(model, Size)
        return did(by, model)

    async def later(by: str, model: str) -> str:
        """Answer."""
        return did(by, model)

    def defaulted(by: str, model: str = "nobody") -> str:
        """Answer."""
        return did(by, model)

    def injecting(by: str, model: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Answer."""
        assert state["messages"]
        return did(by, model)

    def running(by: str, model: str, runtime: ToolRuntime) -> str:
        """Answer."""
        assert runtime.tool_call_id
        return did(by, model)

    named = {"name": "answer", "description": "Answer."}
    return {
        "function": tool("answer")(answer),
        "literal": tool("answer")(literal),
        "enum, validated": StructuredTool(func=sized, args_schema=Strict, **named),
        "alias": StructuredTool(func=answer, args_schema=Aliased, **named),
        "coroutine": tool("answer")(later),
        "both": StructuredTool.from_function(answer, later, name="answer"),
        "default": tool("answer")(defaulted),
        "schema": StructuredTool(func=lambda **told: did(**told), args_schema=SCHEMA, **named),
        "class": OwnClass(did=did),
        "state": tool("answer")(injecting),
        "runtime": tool("answer")(running),
    }


FORMS = list(forms(World.__new__(World)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_guarded_tool_is_told_the_model_that_makes_its_call(
    desk: World, form: str, asynchronous: bool
) -> None:
    desk.gate.budget(price_cap=20)
    found = forms(desk)[form]
    if form == "coroutine" and not asynchronous:
        asynchronous = True
    agent = desk.agent([[ANSWER]], tools=[found], middleware=[TccMiddleware(desk.gate)])
    asyncio.run(agent.ainvoke(ASKED)) if asynchronous else agent.invoke(ASKED)
    assert desk.done == [("answer", {"by": "mail", "model": "fast"})]
    assert executed(desk) == ["fast"]
    assert [(made.call, made.model) for made in desk.gate.history] == [("answer(by=mail)", "fast")]


@pytest.mark.parametrize("form", FORMS)
def test_no_schema_that_a_language_model_sees_has_the_parameter(desk: World, form: str) -> None:
    desk.gate.budget()
    found = guard([forms(desk)[form]], desk.gate)[0]
    shown = json.dumps(convert_to_openai_tool(found))
    assert '"by"' in shown and "model" not in shown
    assert found.args.keys() == {"by"}
    schema = found.tool_call_schema
    fields = schema["properties"] if isinstance(schema, dict) else schema.model_fields
    assert "model" not in fields
    assert "model" not in found.get_input_schema().model_fields


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("budget", [False, True])
def test_who_writes_the_model_is_refused(
    desk: World, form: str, in_graph: bool, budget: bool
) -> None:
    if budget:
        desk.gate.budget()
    found = forms(desk)[form]
    for name in ("model", "modelName") if form == "alias" else ("model",):
        written = called("answer", by="mail", **{name: "deep"})
        if in_graph:
            desk.agent([[written]], tools=[found]).invoke(ASKED)
        else:
            with pytest.raises(library.Refused, match="R102"):
                guard([found], desk.gate)[0].invoke(written["args"])
        assert (desk.done, desk.gate.history, desk.refused[-1]) == ([], (), "R102")


def untold(world: World) -> list[BaseTool]:
    @tool
    def answer(by: str) -> str:
        """Answer."""
        return world.did("answer", {"by": by})

    def any_of(**told: str) -> str:
        return world.did("answer", told)

    class ByMail(BaseModel):
        by: str

    loose = StructuredTool(name="answer", description="Answer.", func=any_of, args_schema=ByMail)
    return [answer, loose, Tool(name="answer", description="Answer.", func=lambda text: text)]


@pytest.mark.parametrize("number", range(3))
def test_a_tool_without_the_parameter_is_refused_before_anything_is_run(
    desk: World, number: int
) -> None:
    found = untold(desk)[number]
    before = guard([found], desk.gate)[0]  # nobody chooses yet
    desk.gate.budget()
    size = desk.ledger.stat().st_size
    with pytest.raises(BindingError, match="needs a parameter 'model'"):
        guard([found], desk.gate)
    with pytest.raises(BindingError, match="needs a parameter 'model'"):
        build_graph(desk.artifact, [found], gate=desk.gate)
    with pytest.raises(BindingError, match="needs a parameter 'model'"):
        before.invoke({"by": "mail"})
    with pytest.raises(BindingError, match="needs a parameter 'model'"):
        asyncio.run(before.ainvoke({"by": "mail"}))
    assert (desk.done, desk.gate.history, desk.ledger.stat().st_size) == ([], (), size)


def test_a_tool_that_needs_a_model_is_not_run_where_nobody_chooses_one(desk: World) -> None:
    found = forms(desk)
    with pytest.raises(BindingError, match=r"begin a budget, with gate\.budget"):
        guard([found["function"]], desk.gate)[0].invoke({"by": "mail"})
    assert (desk.done, desk.gate.history) == ([], ())
    guard([found["default"]], desk.gate)[0].invoke({"by": "mail"})
    assert desk.done == [("answer", {"by": "mail", "model": "nobody"})]


def test_a_parameter_of_the_grammar_that_is_called_model_is_no_binding(tmp_path: Path) -> None:
    text = """grammar own version "1"

tool answer(model: x | y) { model m { execute } }
"""
    world = World(tmp_path, text + "plan = answer?")

    @tool
    def answer(model: str) -> str:
        """Answer."""
        return model

    assert guard([answer], world.gate)[0].invoke({"model": "x"}) == "x"
    world.gate.budget()
    with pytest.raises(BindingError, match="a parameter of its own called 'model'"):
        guard([answer], world.gate)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_planned_route_is_told_too(tmp_path: Path, asynchronous: bool) -> None:
    world = World(tmp_path, DESK.replace("answer{0,6} tell?", "answer{2}"))
    world.gate.budget(price_cap=20)
    graph = build_graph(world.artifact, [forms(world)["both"]], gate=world.gate)
    state = asyncio.run(graph.ainvoke({})) if asynchronous else graph.invoke({})
    assert state["stop"] == "finished", state["reason"]
    assert [given["model"] for _, given in world.done] == ["fast", "fast"] == executed(world)
    assert all(
        "model" not in one["args"]
        for m in state["messages"]
        for one in getattr(m, "tool_calls", [])
    )
    told = library.validate(world.ledger, world.path)
    assert told.claim_type == "Conformant"


def test_a_model_whose_calls_fail_sinks_and_the_tool_is_told_the_next(desk: World) -> None:
    told: list[str] = []

    @tool
    def answer(by: str, model: str) -> str:
        """Answer."""
        told.append(model)
        if model == "fast":
            raise library.Failed(model)
        return "ok"

    desk.gate.budget()
    found = guard([answer], desk.gate)[0]
    for _ in range(5):
        with suppress(library.Failed):
            found.invoke({"by": "mail"})
    assert "deep" in told and told == executed(desk)
