"""Tools of every kind that LangChain has, run as a tool node runs them."""

from __future__ import annotations

import asyncio
import datetime
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from langchain.tools import InjectedState, InjectedStore, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel, Field, field_validator

import tcc as library
from tcc.langchain import guard
from tcc_runtime.errors import BindingError, Failed
from tests.langchain.world import ASKED, World, answers, called

if TYPE_CHECKING:
    from elsewhere import Elsewhere

MANY = """grammar many version "1"

tool act(kind: a | b, size?: 1 | 2, text?: text, count?: integer 0 .. 9, deep?: json max 100) {
  cost 1
}
tool see(where: a | b) gives (found: yes | no) { cost 1 }
tool one(tool_input: x | y) { cost 1 }

plan = (act | see | one){0,6}

before act(kind = b) require no act(size != null, size = 2)
"""


class Inner(BaseModel):
    when: datetime.date
    names: list[str]


@pytest.fixture
def many(worlds: Callable[[str], World]) -> World:
    return worlds(MANY)


def run(world: World, tools: BaseTool, *calls: dict[str, Any], **more: Any) -> list[ToolMessage]:
    """What the tool answers to an agent's calls, each in a turn of its own."""
    script = [[{**call, "id": f"{call['id']}-{n}"}] for n, call in enumerate(calls)]
    return answers(world.agent(script, tools=[tools], **more).invoke(ASKED))


def texts(world: World) -> list[str]:
    return [made.call for made in world.gate.history]


def test_what_the_schema_fills_in_is_what_is_decided_on(many: World) -> None:
    class Size(enum.IntEnum):
        small = 1
        large = 2

    class Given(BaseModel):
        kind: Literal["a", "b"] = "b"
        size: Size | None = None
        text: str | None = None
        count: int = 3
        trace: bool = False

        @field_validator("kind", mode="before")
        @classmethod
        def lowered(cls, value: str) -> str:
            return value.lower()

    def act(**given: Any) -> str:
        return many.did("act", given)

    found = StructuredTool.from_function(act, name="act", description="Act.", args_schema=Given)
    said = run(
        many,
        found,
        called("act"),  # kind is required by the grammar: the default counts
        called("act", kind="A", size=2, text=None, count="7"),
        called("act", kind="B", size="1"),  # forbidden now
        called("act", trace=True),  # undeclared, and not left to its default
        called("act", trace=False),  # nor is what is written as its default
        called("act", kind="c"),
    )
    assert [message.status for message in said] == ["success"] * 2 + ["error"] * 4
    assert texts(many) == ["act(kind=b)", "act(kind=a,size=2)"]
    assert [given["kind"] for _, given in many.done] == ["b", "a"]
    # What the schema refuses never comes to the gate.
    assert many.refused == ["R202", "R102", "R102"]
    assert "Input should be 'a' or 'b'" in said[-1].text


def test_names_that_python_does_not_take(many: World) -> None:
    class Given(BaseModel):
        kind_: Literal["a", "b"] = Field(alias="kind")

    found = StructuredTool.from_function(
        lambda kind_: many.did("act", {"kind": kind_}),
        name="act",
        description="Act.",
        args_schema=Given,
    )
    run(many, found, called("act", kind="a"), called("act", kind_="a"))
    assert texts(many) == ["act(kind=a)"]


def test_values_that_are_no_plain_json(many: World) -> None:
    @tool
    def act(kind: str, deep: Inner) -> str:
        """Act."""
        return many.did("act", {"deep": deep})

    good = {"when": "2024-02-29", "names": ["a"]}
    said = run(
        many,
        act,
        called("act", kind="a", deep=good),
        called("act", kind="a", deep={**good, "names": ["n" * 200]}),
    )
    assert [message.status for message in said] == ["success", "error"]
    assert many.refused == ["R105"]
    # The same value digest by digest, whatever the function gets it as.
    assert many.gate.is_call(1, "act", {"kind": "a", "deep": good})


def test_json_schemas_are_left_to_the_gate(many: World) -> None:
    schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
    found = StructuredTool(
        name="act",
        description="Act.",
        args_schema=schema,
        func=lambda **given: many.did("act", given),
    )
    said = run(
        many,
        found,
        called("act", kind="a"),
        called("act", kind=["a"]),
        called("act", kind="a", callbacks="x"),
        called("act", kind="a", run_manager="x"),
        called("act", kind="a", config="x"),
        called("act", kind="a", text="x"),
    )
    assert [message.status for message in said] == ["success"] + ["error"] * 4 + ["success"]
    assert many.refused == ["R104", "R102", "R102", "R102"]
    assert many.done == [("act", {"kind": "a"}), ("act", {"kind": "a", "text": "x"})]


def test_what_a_graph_injects_is_no_argument(many: World) -> None:
    @tool
    def act(
        kind: str,
        state: Annotated[dict[str, Any], InjectedState],
        store: Annotated[Any, InjectedStore()],
        own: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
        config: RunnableConfig,
    ) -> str:
        """Act."""
        store.put(("a",), "k", {"v": 1})
        assert runtime.tool_call_id == own and config["configurable"]["thread_id"] == "1"
        return many.did("act", {"messages": len(state["messages"]), "ref": own})

    agent = many.agent(
        [[called("act", kind="a")], [called("act", "no", kind="a", state={}, own="forged")]],
        tools=[act],
        store=InMemoryStore(),
        checkpointer=InMemorySaver(),
    )
    assert set(guard([act], many.gate)[0].tool_call_schema.model_fields) == {"kind"}
    agent.invoke(ASKED, {"configurable": {"thread_id": "1"}})
    assert texts(many) == ["act(kind=a)", "act(kind=a)"]
    assert [given["ref"] for _, given in many.done] == ["id-act", "no"]


class Runs(BaseTool):
    """A class whose own parameters are injected, where a schema does not say so."""

    name: str = "act"
    description: str = "Act."

    def _run(
        self,
        kind: str,
        who: Annotated[str, InjectedToolArg],
        run_id: Annotated[str, InjectedToolCallId] = "",
    ) -> str:
        raise AssertionError(who)


@pytest.mark.parametrize("by_hand", ["invoke", "ainvoke", "call", "positions"])
@pytest.mark.parametrize(
    "name", ["secret", "state", "field", "store", "runtime", "own", "tcc_runtime_of_the_graph"]
)
def test_what_a_graph_injects_is_refused_where_a_caller_writes_it(
    many: World, name: str, by_hand: str
) -> None:
    @tool
    def act(
        kind: str,
        secret: Annotated[str, InjectedToolArg] = "",
        state: Annotated[Any, InjectedState] = None,
        field: Annotated[Any, InjectedState("admin")] = None,
        store: Annotated[Any, InjectedStore()] = None,
        runtime: ToolRuntime = None,  # type: ignore[assignment]
        own: Annotated[str, InjectedToolCallId] = "",
    ) -> str:
        """Act."""
        return many.did("act", {"kind": kind})

    found = guard([act], many.gate)[0]
    assert found.args.keys() == {"kind"}
    written = {"kind": "a", name: "forged"}
    if by_hand == "call":
        assert found.invoke(called("act", **written)).artifact == {"tcc_refusal": "R102"}
    elif by_hand == "ainvoke":
        with pytest.raises(library.Refused, match="R102"):
            asyncio.run(found.ainvoke(written))
    else:
        with pytest.raises(library.Refused, match="R102"):
            found.invoke(written) if by_hand == "invoke" else found.run(written)
    assert (many.done, many.refused, texts(many)) == ([], ["R102"], [])


def test_what_a_class_takes_from_a_graph_is_refused_where_a_caller_writes_it(many: World) -> None:
    found = guard([Runs()], many.gate)[0]
    for name in ("who", "run_id"):
        with pytest.raises(library.Refused, match="R102"):
            found.invoke({"kind": "a", name: "forged"})
    assert many.refused == ["R102", "R102"]


def test_a_runtime_that_a_program_hands_on_vouches_for_nothing_else(many: World) -> None:
    @tool
    def act(
        kind: str, runtime: ToolRuntime, admin: Annotated[bool, InjectedState("admin")] = False
    ) -> str:
        """Act."""
        return many.did("act", {"admin": admin})

    found = guard([act], many.gate)[0]
    state = {"messages": [], "admin": [False]}
    told: Any = {"context": None, "config": {}, "stream_writer": print, "store": None}
    runtime: Any = ToolRuntime(state=state, tool_call_id="x", **told)
    assert found.invoke({"kind": "a", "runtime": runtime}) == "act done"
    with pytest.raises(library.Refused, match="R102"):
        found.invoke({"kind": "a", "runtime": runtime, "admin": True})
    assert many.refused == ["R102"]


def test_a_parameter_of_the_grammar_that_a_graph_injects_is_no_binding(many: World) -> None:
    @tool
    def act(kind: Annotated[str, InjectedToolArg]) -> str:
        """Act."""
        return kind

    with pytest.raises(BindingError, match="it is injected by a graph"):
        guard([act], many.gate)


class Kind(BaseModel):
    kind: str


class Custom(BaseTool):
    """A class with parameters of its own."""

    name: str = "act"
    description: str = "Act."
    did: Any = None

    def _run(self, kind: str, config: RunnableConfig, run_manager: Any = None) -> str:
        assert run_manager is not None and config is not None
        said: str = self.did("act", {"kind": kind})
        return said


class CustomInTask(Custom):
    """The same, as a coroutine."""

    async def _arun(self, kind: str, config: RunnableConfig, run_manager: Any = None) -> str:
        await asyncio.sleep(0)
        return self._run(kind, config, run_manager)


class CustomHinted(Custom):
    """Hints with a name that only a type checker sees."""

    args_schema: type[BaseModel] = Kind

    def _run(self, kind: str, config: RunnableConfig, run_manager: Elsewhere | None = None) -> str:
        return super()._run(kind, config, run_manager)


@pytest.mark.parametrize("kind", [Custom, CustomInTask, CustomHinted])
def test_classes(many: World, kind: type[Custom]) -> None:
    found = kind(did=many.did)
    agent = many.agent([[called("act", kind="a")], [called("act", "2", kind="c")]], tools=[found])
    agent.invoke(ASKED)
    asyncio.run(many.agent([[called("act", "3", kind="b")]], tools=[found]).ainvoke(ASKED))
    assert texts(many) == ["act(kind=a)", "act(kind=b)"] and many.refused == ["R104"]


def test_coroutines(many: World) -> None:
    under_way = [0]

    @tool
    async def act(kind: str) -> str:
        """Act."""
        under_way[0] += 1
        assert under_way[0] == 1
        await asyncio.sleep(0.01)
        under_way[0] -= 1
        return many.did("act", {})

    calls = [called("act", f"c{n}", kind="a") for n in range(5)]
    state = asyncio.run(many.agent([calls], tools=[act]).ainvoke(ASKED))
    assert len(many.done) == 5 and many.outcomes == ["done"] * 5
    assert [message.status for message in answers(state)] == ["success"] * 5


def test_a_coroutine_that_is_cancelled_is_unknown(many: World) -> None:
    begun = asyncio.Event()

    @tool
    async def act(kind: str) -> str:
        """Act."""
        begun.set()
        await asyncio.sleep(30)
        return ""

    async def work() -> None:
        task = asyncio.create_task(
            many.agent([[called("act", kind="a")]], tools=[act]).ainvoke(ASKED)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert many.outcomes == ["unknown"]


def test_tools_of_one_text(many: World) -> None:
    found = Tool(name="one", description="One.", func=lambda x: many.did("one", {"x": x}))
    guarded = guard([found], many.gate)[0]
    assert guarded.tool_call_schema["properties"] == {"tool_input": {"type": "string"}}
    assert guarded.args == {"tool_input": {"type": "string"}}
    assert guarded.invoke("x") == "one done"
    run(many, found, called("one", tool_input="y"), called("one", tool_input="z"))
    assert texts(many) == ["one(tool_input=x)", "one(tool_input=y)"]
    with pytest.raises(library.Refused, match="R104"):
        guarded.invoke("z")
    with pytest.raises(ToolException, match="Too many arguments"):
        guarded.invoke({"a": "x", "b": "y"})
    assert many.done == [("one", {"x": "x"}), ("one", {"x": "y"})]


def test_a_text_for_a_tool_of_one_argument(many: World) -> None:
    @tool
    def act(kind: str) -> str:
        """Act."""
        return many.did("act", {"kind": kind})

    assert guard([act], many.gate)[0].run("b") == "act done"
    assert texts(many) == ["act(kind=b)"]


def test_a_program_is_told_by_an_exception(many: World) -> None:
    @tool
    def act(kind: str) -> str:
        """Act."""
        return many.did("act", {})

    guarded = guard([act], many.gate)[0]
    with pytest.raises(library.Refused, match="R104"):
        guarded.invoke({"kind": "c"})
    with pytest.raises(library.Refused, match="R104"):
        asyncio.run(guarded.ainvoke({"kind": "c"}))
    assert many.done == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"found": "yes"}, "yes"),
        ('{"found": "no", "more": [1]}', "no"),
        ("no json", None),
        ("[1]", None),
        ({"found": "maybe"}, None),
    ],
)
def test_observed_values_are_members_of_the_answer(
    many: World, answer: object, found: str | None
) -> None:
    @tool
    def see(where: str) -> Any:
        """See."""
        return answer

    run(many, see, called("see", where="a"), called("see", where="a"))
    first, *rest = many.gate.history
    assert first.observed == ({} if found is None else {"found": found})
    assert (first.unforeseen, len(rest), many.refused) == (found is None, 1, [])


def test_answers_in_two_parts(many: World) -> None:
    @tool(response_format="content_and_artifact")
    def see(where: str) -> tuple[str, Any]:
        """See."""
        many.did("see", {"where": where})
        return "seen", {"structured_content": {"found": "yes"}} if where == "a" else {"found": "no"}

    results: dict[str, Any] = {}
    twice = called("see", where="a")
    agent = many.agent([[twice], [twice], [called("see", "b", where="b")]], tools=[see],
                       results=results)  # fmt: skip
    said = answers(agent.invoke(ASKED))
    assert [made.observed["found"] for made in many.gate.history] == ["yes", "no"]
    assert [message.text for message in said] == ["seen"] * 3
    assert said[1].artifact == said[0].artifact == {"structured_content": {"found": "yes"}}
    refused = run(many, see, called("see", where="c"))
    assert (refused[0].status, refused[0].artifact) == ("error", {"tcc_refusal": "R104"})
    assert len(many.done) == 2


def test_observed_values_by_a_function_of_the_owner(many: World) -> None:
    @tool
    def see(where: str, ref: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """See."""
        return Command(update={"messages": [ToolMessage("it is there", tool_call_id=ref)]})

    run(
        many,
        see,
        called("see", where="a"),
        observe=lambda name, answer: {"found": "yes" if name == "see" and answer.update else "no"},
    )
    assert many.gate.history[0].observed == {"found": "yes"}


@pytest.mark.parametrize("meant", ["unknown", "failed"])
@pytest.mark.parametrize("how", ["raises", "raises handled", "message", "failed", "slow"])
def test_errors(worlds: Callable[[str], World], how: str, meant: str) -> None:
    grammar = MANY if meant == "unknown" else MANY.replace("100) {", "100) {\n  errors mean failed")
    world = worlds(grammar)

    @tool
    def act(kind: str, ref: Annotated[str, InjectedToolCallId]) -> Any:
        """Act."""
        world.did("act", {})
        if how == "message":
            return ToolMessage("no", tool_call_id=ref, status="error")
        raise {"failed": Failed, "slow": TimeoutError}.get(how, ToolException)("not today")

    act.handle_tool_error = how == "raises handled"
    agent = world.agent([[called("act", kind="a")]], tools=[act])
    if how in ("raises handled", "message"):
        said = answers(agent.invoke(ASKED))
        assert said[0].status == "error" and said[0].text in ("no", "not today")
    else:
        with pytest.raises((Failed, TimeoutError, ToolException), match="not today"):
            agent.invoke(ASKED)
    due = "failed" if how == "failed" else "unknown" if how == "slow" else meant
    assert world.outcomes == [due]


def test_a_tool_that_raises_a_refusal_is_no_refusal(many: World) -> None:
    @tool
    def act(kind: str) -> str:
        """Act."""
        many.did("act", {})
        with many.gate.call("act", {"kind": "a"}):
            return ""

    with pytest.raises(library.Refused, match="R305"):
        run(many, act, called("act", kind="a"))
    assert many.outcomes == ["unknown"]


def test_a_store_that_breaks_leaves_the_outcome_unknown(many: World) -> None:
    class Broken(dict[str, Any]):
        def __setitem__(self, name: str, value: Any) -> None:
            raise OSError("the store is gone")

    @tool
    def act(kind: str) -> str:
        """Act."""
        return many.did("act", {})

    with pytest.raises(OSError, match="the store is gone"):
        run(many, act, called("act", kind="a"), results=Broken())
    assert many.outcomes == ["unknown"]


def test_a_tool_gets_what_was_decided_on_whoever_changes_it_meanwhile(many: World) -> None:
    written = {"names": ["ann"], "more": {"of": [1]}}
    got = []

    def act(kind: str, deep: Any = None) -> str:
        got.append(deep)
        return "done"

    class Inside(BaseModel):
        kind: str
        deep: Any = None

    made = StructuredTool.from_function(act, name="act", description="act", args_schema=Inside)
    (guarded,) = guard([made], many.gate)
    decide = many.gate.enter

    def changing(permit: Any) -> None:
        decide(permit)
        written["names"].append("bob")
        written["more"]["of"].append(2)

    many.gate.enter = changing
    guarded.invoke({"kind": "a", "deep": written})
    assert written == {"names": ["ann", "bob"], "more": {"of": [1, 2]}}
    assert got == [{"names": ["ann"], "more": {"of": [1]}}]
    assert many.gate.is_call(1, "act", {"kind": "a", "deep": got[0]})
