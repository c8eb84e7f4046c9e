"""Agent frameworks through a gate: the real package of each, in a separate environment.

    python scripts/frameworks.py                    # all of them
    python scripts/frameworks.py pydantic_ai        # one
    python scripts/frameworks.py --envs DIR         # keep the environments there

A scripted model requests a refund without approval, then the approval, then the refund again. Then
it calls a tool that answers in every form of the framework, and a tool that fails.  The executed
tools, the texts for the model and the ledger are compared with the expected ones, and the ledger is
validated.  Exit code 1: something differs.
OpenAI Agents and Pydantic AI: `tcc import python` also imports tools of the library, and its
grammar decides arguments as the library validates them.
claude_agent: the agent's own program talks to a local server that plays the model's API.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PACKAGES = {
    "openai_agents": ["openai-agents>=0.24,<1"],
    "pydantic_ai": ["pydantic-ai-slim>=2.68,<3"],
    "claude_agent": ["claude-agent-sdk>=0.2.184,<1"],
}
ROOT = Path(__file__).resolve().parents[1]
GRAMMAR = """grammar desk version "1"

tool approve(order: text ~ "ord-[0-9]{1,8}")
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500)
tool say(how: text max 40, at: time) gives (v?: 0 | 0.1 | 5) { errors mean failed ~ "Error: .*" }
tool probe { errors mean failed }

plan = (approve | refund | probe | say){0,60}

before refund require approve(same order)
"""
ASKING = """grammar desk version "1"

tool pay(amount: number 0 .. 500)

plan = pay{0,9}

before pay(amount > 100) ask "finance"
"""
PAYMENTS = (30, 200, 300, 400)  # the model requests these, one after the other
REFUND = {"part": "half", "order": "ord-17", "amount": 30}
ERROR, FINE = "Error: no such order", "all is well"
AT = f"2024-02-29T12:30:15.123{'4' * 100}Z"  # further digits are cut
FAILED, UNKNOWN, DONE = ("failed", None), ("unknown", None), ("done", "")
# The answers of `say`, each with the outcome of its call and the observed value.  The value is ""
# if it is left out, and None if it is unknown.
Answers = dict[str, tuple[Any, tuple[str, str | None]]]
ANSWERS: Answers = {
    "text": (ERROR, FAILED),
    "fine": (FINE, DONE),
    "number": ('{"v": 0.10}', ("done", "0.1")),
    "twins": ('{"v": 5, "v": 0.1}', ("done", None)),
    "nearly": (f'{{"v": 0.1{"0" * 30}1}}', ("done", None)),
    "zero": ('{"v": 1e-400}', ("done", None)),
}


RAN = ["approve", "refund", "probe"]
LEDGER = [("approve", "done"), ("refund(part=half)", "done"), ("probe", "failed")]


def script(answers: Answers) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that the model requests."""
    said = [("say", {"how": how, "at": AT}) for how in answers]
    return [
        ("refund", REFUND),
        ("approve", {"order": "ord-17"}),
        ("refund", REFUND),
        *said,
        ("probe", {}),
    ]


class Desk:
    """The tools, a record of their calls, and the texts that the model received.

    Attributes:
        calls: calls of `save`, each with the JSON that the model writes as arguments.  They replace
            the script of the other tools unless they are None.
        saved: the arguments that `save` received.
    """

    def __init__(self, calls: list[tuple[str, str]] | None = None) -> None:
        self.ran: list[str] = []
        self.told: list[str] = []
        self.answers = dict(ANSWERS)
        self.calls = calls
        self.saved: list[dict[str, Any]] = []

    @property
    def script(self) -> list[tuple[str, str]]:
        """The calls that the model requests, with the JSON of their arguments."""
        if self.calls is not None:
            return self.calls
        return [(name, json.dumps(given)) for name, given in script(self.answers)]

    def save(self, **arguments: Any) -> str:
        """Save the arguments."""
        self.saved.append(arguments)
        return "saved"

    def say(self, how: str, at: str) -> Any:
        """Return the answer in a form."""
        self.ran.append("say")
        return self.answers[how][0]

    def approve(self, order: str) -> dict[str, str]:
        """Approve an order."""
        self.ran.append("approve")
        return {"approved": order}

    def refund(self, part: str, order: str, amount: float) -> dict[str, float]:
        """Pay back an order."""
        self.ran.append("refund")
        return {"sent": amount}

    def probe(self) -> str:
        """Fail with an error."""
        self.ran.append("probe")
        raise OSError("the desk is away")


@dataclass
class Text:
    """An answer that is an object."""

    text: str


async def openai_agents(gate: Any, desk: Desk) -> None:
    """Run the script in the OpenAI Agents SDK, with a scripted model and the SDK's runner."""
    from agents import Agent, FunctionTool, RunConfig, Runner, ToolOutputText, Usage, function_tool
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from tcc.integrations.openai_agents import guard

    error, fine = ToolOutputText(text=ERROR), ToolOutputText(text=FINE)
    desk.answers |= {
        "object": (error, FAILED),
        "objects": ([error, error], FAILED),
        "block": ({"type": "text", "text": ERROR}, FAILED),
        "member": ({"result": ERROR}, FAILED),
        "exception": (ValueError(ERROR), FAILED),  # the SDK shows its text to the model
        "json": (ToolOutputText(text='{"v": 5}'), ("done", "5")),
        "mixed": ([error, fine], UNKNOWN),
    }

    class Scripted(Model):
        turn = 0

        async def get_response(self, **given: Any) -> Any:
            items = given["input"]
            desk.told = [
                str(item["output"])
                for item in (items if isinstance(items, list) else ())
                if item.get("type") == "function_call_output"
            ]
            at, self.turn = self.turn, self.turn + 1
            if at < len(desk.script):
                name, written = desk.script[at]
                said: Any = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{at}", name=name, arguments=written
                )
            else:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                said = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, **_: Any) -> Any:
            raise NotImplementedError

    async def save(_: Any, text: str) -> str:
        return desk.save(**json.loads(text))

    own = (desk.approve, desk.refund, desk.say, desk.probe)
    tools: list[Any] = [function_tool(one) for one in own]
    if desk.calls is not None:
        tools = [
            FunctionTool(
                name="save",
                description="Keep what comes.",
                params_json_schema={"type": "object"},
                on_invoke_tool=save,
                strict_json_schema=False,
            )
        ]
    agent = Agent(name="desk", tools=guard(tools, gate))
    agent.model = Scripted()
    await Runner.run(
        agent, "go on", run_config=RunConfig(tracing_disabled=True), max_turns=len(desk.script) + 1
    )


async def openai_agents_texts() -> dict[str, bool]:
    """OpenAI Agents SDK: pass texts to a tool directly that the runner would not pass on."""
    from agents import FunctionTool
    from agents.tool_context import ToolContext

    import tcc
    from tcc.integrations.openai_agents import guard

    ran: list[str] = []

    async def save(_: Any, text: str) -> str:
        ran.append(text)
        return "saved"

    schema = {"type": "object"}
    plain = FunctionTool(
        name="save", description="s", params_json_schema=schema, on_invoke_tool=save,
        strict_json_schema=False,
    )  # fmt: skip
    cases, found = _cases(), {}
    texts = {case: cases.CASES[case] for case in _HALVES}
    texts |= {case: cases.large(16 << 20)[case] for case in cases.LARGE}
    for case, text in {
        "no JSON": "{",
        "no object": "[1]",
        "a member twice": '{"id":1,"id":2}',
        "no number": '{"size":NaN}',
        "hostile nesting": cases.deep(100_000),
        "too many digits": '{"id":' + "1" * 5000 + "}",
    }.items():
        texts[case] = text, "R106"
    with tcc.Gate(tcc.compile_text(cases.GRAMMAR)) as gate:
        (tool,) = guard([plain], gate)
        for at, (case, (text, code)) in enumerate(texts.items()):
            context: Any = ToolContext(
                context=None, tool_name="save", tool_call_id=f"c{at}", tool_arguments=text
            )
            answer = str(await tool.on_invoke_tool(context, text))
            found[f"{case}: {code}"] = str(code) in answer
    return {**found, "nothing reached the tool": not ran}


async def openai_agents_asked() -> dict[str, bool]:
    """OpenAI Agents SDK: test a call that waits for a person, and the SDK's own approvals."""
    from agents import Agent, RunConfig, Runner, Usage, function_tool
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall

    import tcc
    from tcc.integrations.openai_agents import approve, deny, guard

    paid: list[float] = []
    told: list[str] = []

    class Paying(Model):
        """A model that requests the payments one after the other, and then nothing more."""

        turn = 0

        async def get_response(self, **given: Any) -> Any:
            items = given["input"]
            told[:] = [
                str(item["output"])
                for item in (items if isinstance(items, list) else ())
                if item.get("type") == "function_call_output"
            ]
            self.turn += 1
            said: Any = ResponseFunctionToolCall(
                type="function_call", call_id=f"c{self.turn}", name="pay",
                arguments=json.dumps({"amount": PAYMENTS[self.turn - 1]}),
            ) if self.turn <= len(PAYMENTS) else _said()  # fmt: skip
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, **_: Any) -> Any:
            raise NotImplementedError

    def _said() -> Any:
        from openai.types.responses import ResponseOutputMessage, ResponseOutputText

        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        return ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )

    def pay(amount: float) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    config = RunConfig(tracing_disabled=True)
    with tcc.Gate(tcc.compile_text(ASKING)) as gate:
        agent = Agent(name="desk", tools=guard([function_tool(pay)], gate, pending="interrupt"))
        agent.model = Paying()
        found = await Runner.run(agent, "go on", run_config=config)
        stopped = list(paid)
        state = found.to_state()
        approve(state, found.interruptions[0], gate, who="Ann")
        found = await Runner.run(agent, state, run_config=config)
        approved = list(paid)
        state = found.to_state()
        deny(state, found.interruptions[0], gate, who="Ann", reason="Too much.")
        found = await Runner.run(agent, state, run_config=config)
        denied = list(told)
        state = found.to_state()
        state.approve(found.interruptions[0])  # without an approval in the gate
        await Runner.run(agent, state, run_config=config)
    return {
        f"a call that waits interrupts the run: {stopped}": stopped == [30],
        f"an approval lets it through: {approved}": approved == [30, 200],
        f"a denial is told: {denied[-1:]}": denied[-1:] == ["Too much."],
        f"an approval of the SDK alone lets nothing through: {paid}": paid == [30, 200],
        f"the model reads the question: {told[-1:]}": "R211" in told[-1],
    }


async def pydantic_ai_asked() -> dict[str, bool]:
    """Pydantic AI: test a call that waits for a person, and the deferred tools."""
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    import tcc
    from tcc.integrations.pydantic_ai import guard

    paid: list[float] = []
    told: list[str] = []

    def pay(amount: float) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    def model(messages: Any, _info: Any) -> Any:
        parts = [part for message in messages for part in message.parts]
        told[:] = [str(part.content) for part in parts if part.part_kind == "tool-return"]
        at = sum(part.part_kind == "tool-call" for part in parts)
        if at >= len(PAYMENTS):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": PAYMENTS[at]})])

    with tcc.Gate(tcc.compile_text(ASKING)) as gate:
        agent: Any = Agent(
            FunctionModel(model),
            toolsets=[guard([pay], gate, pending="interrupt")],
            output_type=[str, DeferredToolRequests],
        )

        async def resumed(found: Any, verdict: Any) -> Any:
            (call,) = found.output.approvals
            results = DeferredToolResults(approvals={call.tool_call_id: verdict})
            return await agent.run(
                message_history=found.all_messages(), deferred_tool_results=results
            )

        def asked(found: Any) -> str:
            (call,) = found.output.approvals
            return str(found.output.metadata[call.tool_call_id]["tcc_pending"]["id"])

        found = await agent.run("go on")
        stopped = list(paid)
        found = await resumed(found, True)  # without an approval in the gate
        alone = list(paid)
        gate.approve(asked(found), who="Ann")
        found = await resumed(found, True)
        approved = list(paid)
        gate.deny(asked(found), who="Ann")
        found = await resumed(found, ToolDenied("Too much."))
        denied = list(told)
    return {
        f"a call that waits ends the run: {stopped}": stopped == [30],
        f"an approval of the framework alone lets nothing through: {alone}": alone == [30],
        f"an approval lets it through: {approved}": approved == [30, 200],
        f"a denial is told: {denied[-1:]}": "Too much." in denied[-1],
        "the next call waits, too": isinstance(found.output, DeferredToolRequests),
    }


async def pydantic_ai(gate: Any, desk: Desk) -> None:
    """Run the script in Pydantic AI, with a function as the model."""
    from pydantic import BaseModel
    from pydantic_ai import Agent, BinaryContent, ModelRetry, Tool, ToolReturn
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    from tcc.integrations.pydantic_ai import guard

    class Said(BaseModel):
        result: str

    image = BinaryContent(b"x", media_type="image/png")
    desk.answers |= {
        "member": ({"result": ERROR}, FAILED),
        "model": (Said(result=ERROR), FAILED),
        "models": ([Said(result=ERROR), ERROR], FAILED),
        "dataclass": (Text(ERROR), FAILED),
        "return": (ToolReturn(return_value=ERROR, metadata=FINE), FAILED),
        "twice": (ToolReturn(return_value=ERROR, content=[ERROR]), FAILED),
        "return json": (ToolReturn(return_value='{"v": 5}'), ("done", "5")),
        "value": ({"v": 5}, ("done", "5")),
        "beside": (ToolReturn(return_value=ERROR, content=FINE), UNKNOWN),
        "content": (ToolReturn(return_value=FINE, content=["a", ERROR]), UNKNOWN),
        "image": ([ERROR, image], UNKNOWN),
    }

    def model(messages: Any, _info: Any) -> Any:
        parts = [part for message in messages for part in message.parts]
        kinds = ("tool-return", "retry-prompt")
        desk.told = [str(part.content) for part in parts if part.part_kind in kinds]
        at = sum(part.part_kind == "tool-call" for part in parts)
        if at >= len(desk.script):
            return ModelResponse(parts=[TextPart("done")])
        name, written = desk.script[at]
        return ModelResponse(parts=[ToolCallPart(name, written, tool_call_id=f"c{at}")])

    def probe() -> str:
        """Fail with an error."""
        try:
            return desk.probe()
        except OSError as error:
            raise ModelRetry(str(error)) from None

    tools: list[Any] = [desk.approve, desk.refund, desk.say, probe]
    if desk.calls is not None:
        schema = {"type": "object", "properties": {}}
        save = Tool.from_schema(desk.save, "save", "Keep what comes.", schema)
        save.max_retries = len(desk.calls)
        tools = [save]
    toolset = guard(tools, gate)
    limits = UsageLimits(request_limit=len(desk.script) + 1)
    await Agent(FunctionModel(model), toolsets=[toolset]).run("go on", usage_limits=limits)


async def pydantic_ai_models() -> dict[str, bool]:
    """Pydantic AI: test that a tool gets exactly what its model writes."""
    from pydantic import BaseModel, Field, field_serializer
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    import tcc
    from tcc.integrations.pydantic_ai import guard

    class Order(BaseModel):
        id: int
        secret: str = Field(default="none", exclude=True)

    class Drifting(BaseModel):
        amount: int

        @field_serializer("amount")
        def more(self, amount: int) -> int:
            return amount + 1

    ran: list[Any] = []

    def pay(order: Any, day: Any, rows: Any) -> str:
        """Pay."""
        ran.append((order, day, rows))
        return "paid"

    def drift(of: Any, more: Any) -> str:
        """Drift."""
        ran.append(of)
        return "drifted"

    # The classes are local, so annotations by name could not be resolved.
    pay.__annotations__ = {"order": Order, "day": datetime.date, "rows": list[Order], "return": str}
    drift.__annotations__ = {"of": Drifting, "more": int, "return": str}

    order = {"id": 2**64 - 1, "secret": "s"}
    calls = [
        ("pay", {"order": order, "day": "2026-02-03", "rows": [order]}),
        ("drift", {"of": {"amount": 1}, "more": 1}),
    ]
    told: list[str] = []

    def model(messages: Any, _info: Any) -> Any:
        parts = [part for message in messages for part in message.parts]
        told[:] = [str(part.content) for part in parts if part.part_kind == "tool-return"]
        at = sum(part.part_kind == "tool-call" for part in parts)
        if at >= len(calls):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(calls[at][0], json.dumps(calls[at][1]))])

    text = """grammar g version "1"
tool pay(order: json, day: date, rows: list of (id: integer))
tool drift(of: json, more: integer)
plan = (pay | drift){0,9}
"""
    with tcc.Gate(tcc.compile_text(text)) as gate:
        await Agent(FunctionModel(model), toolsets=[guard([pay, drift], gate)]).run("go on")
    made = [(one.id, one.secret) for one in (ran[0][0], *ran[0][2])] if ran else []
    return {
        f"a model is built from its JSON: {made}": made == [(2**64 - 1, "none")] * 2,
        "a date stays one": bool(ran) and ran[0][1] == datetime.date(2026, 2, 3),
        f"a model that is written otherwise is refused: {told[-1:]}": len(ran) == 1
        and "R106" in told[-1],
    }


# A module of tools, and arguments of its tool `move` with whether its schema accepts them.
_MODULE = """
from typing import Annotated, Literal
from pydantic import BaseModel, Field
{head}

class Address(BaseModel):
    model_config = {{"extra": "forbid"}}
    street: Annotated[str, Field(max_length=9)]
    number: Annotated[int, Field(ge=1, le=99)]

def move(
    to: Address, kind: Literal["home", "work"], days: list[int] | None = None,
    fee: Annotated[float, Field(gt=0)] = 1.0,
) -> str:
    "Move somewhere."
    return "moved"

def find(order: str, most: int | None = None) -> str:
    "Find an order."
    return order

{tail}
"""
_MODULES = {
    "openai_agents": (
        "from agents import Agent, function_tool",
        "TOOLS = [function_tool(move, strict_mode=False), function_tool(find)]",
    ),
    "pydantic_ai": (
        "from pydantic_ai import FunctionToolset, Tool",
        "TOOLS = FunctionToolset([Tool(move), find])",
    ),
}
_STREET = {"street": "Elm", "number": 9}
_MOVES: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"to": _STREET, "kind": "home"}, True),
    ({"to": _STREET, "kind": "work", "days": [1, 2], "fee": 0.5}, True),
    ({"to": _STREET, "kind": "work", "days": None}, True),
    ({"to": _STREET, "kind": "away"}, False),
    ({"to": {**_STREET, "number": 100}, "kind": "home"}, False),
    ({"to": {**_STREET, "street": "x" * 10}, "kind": "home"}, False),
    ({"to": {**_STREET, "city": "x"}, "kind": "home"}, False),
    ({"to": {"street": "Elm"}, "kind": "home"}, False),
    ({"to": _STREET, "kind": "home", "days": ["x"]}, False),
    ({"to": _STREET, "kind": "home", "fee": 0}, False),
    ({"to": _STREET}, False),
)


def imported(name: str) -> dict[str, bool]:
    """Import the tools of a library with `tcc import`, and compare the grammar's decisions."""
    import tcc

    head, tail = _MODULES[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, f"{name}_shop.py")
        place.write_text(_MODULE.format(head=head, tail=tail))
        grammar = Path(folder, "shop.tcg")
        command = [sys.executable, "-m", "tcc", "import", "python", f"{place.stem}:TOOLS"]
        done = subprocess.run(
            [*command, "-o", str(grammar)], cwd=folder, capture_output=True, text=True
        )
        if done.returncode:
            return {f"tcc import python: {done.stderr}": False}
        text = grammar.read_text()
        sys.path.insert(0, folder)
        module = importlib.import_module(place.stem)
    with tcc.Gate(tcc.compile_text(text), durable=False) as gate:
        decided = [gate.check("move", given).allowed for given, _ in _MOVES]
    expected = [holds for _, holds in _MOVES]
    validated = [asyncio.run(_validates(name, module.TOOLS, given)) for given, _ in _MOVES]
    return {
        f"import: the grammar decides {decided}": decided == expected,
        f"import: the library validates alike: {validated}": validated == expected,
        "import: both tools are there": "tool find(" in text and "tool move(" in text,
        "import: the bound is a statement": "fee > 0" in text,
    }


async def _validates(name: str, tools: Any, given: dict[str, Any]) -> bool:
    """Return whether the library accepts arguments for its tool `move`."""
    if name == "pydantic_ai":
        from pydantic import ValidationError

        try:
            tools.tools["move"].function_schema.validator.validate_python(given)
        except ValidationError:
            return False
        return True
    from agents.tool_context import ToolContext

    text = json.dumps(given)
    context: Any = ToolContext(
        context=None, tool_name="move", tool_call_id="c", tool_arguments=text
    )
    return str(await tools[0].on_invoke_tool(context, text)) == "moved"


async def claude_agent(gate: Any, desk: Desk) -> None:
    """Run the script in the Claude Agent SDK, with its own program and a local model server."""
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

    from tcc.integrations.claude_agent import hooks

    prefix = "mcp__desk__"

    def texts(*found: str) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": one} for one in found]}

    desk.answers = {how: (texts(text), ending) for how, (text, ending) in desk.answers.items()}
    desk.answers |= {
        "two": (texts(ERROR, ERROR), FAILED),
        "member": (texts(json.dumps({"result": ERROR})), FAILED),
        "marked": ({**texts(FINE), "is_error": True}, FAILED),
        "mixed": (texts(ERROR, FINE), UNKNOWN),
    }

    def served(name: str, run: Callable[..., Any], schema: dict[str, Any]) -> Any:
        async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                found = run(**arguments)
                if name == "say":
                    return dict(found)
                text = json.dumps(found)
            except OSError as error:
                return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
            return {"content": [{"type": "text", "text": text}]}

        return tool(name, name, schema)(handler)

    tools = [
        served("approve", desk.approve, {"order": str}),
        served("refund", desk.refund, {"part": str, "order": str, "amount": float}),
        served("say", desk.say, {"how": str, "at": str}),
        served("probe", desk.probe, {}),
    ]
    if desk.calls is not None:
        tools = [served("save", desk.save, {"type": "object", "properties": {}})]
    server = create_sdk_mcp_server("desk", tools=tools)
    names = {prefix + tool.name: tool.name for tool in tools}
    with _ModelServer(desk, prefix) as url, tempfile.TemporaryDirectory() as home:
        options = ClaudeAgentOptions(
            mcp_servers={"desk": server},
            allowed_tools=list(names),
            hooks=hooks(gate, names=names),
            model="claude-sonnet-4-5",
            cwd=home,
            setting_sources=[],
            env={
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none",
                "HOME": home,
                "CLAUDE_CONFIG_DIR": home,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1",
            },
        )

        async def prompts() -> Any:
            content = {"role": "user", "content": "go on"}
            yield {"type": "user", "message": content, "session_id": "", "parent_tool_use_id": None}

        async for _ in query(prompt=prompts(), options=options):
            pass


class _ModelServer:
    """A local server that plays a model's API: it answers by the script, as a stream of events."""

    def __init__(self, desk: Desk, prefix: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                    self._answer(b'{"input_tokens":1}', "application/json")
                    return
                blocks = [
                    block
                    for message in body["messages"]
                    if isinstance(message["content"], list)
                    for block in message["content"]
                ]
                said: dict[str, Any] = {"type": "text", "text": "done"}
                if body.get("tools"):
                    told = [one for one in blocks if one["type"] == "tool_result"]
                    desk.told = [json.dumps(one["content"]) for one in told]
                    at = sum(one["type"] == "tool_use" for one in blocks)
                    if at < len(desk.script):
                        name, written = desk.script[at]
                        said = {
                            "type": "tool_use", "id": f"toolu_{at}", "name": prefix + name,
                            "input": json.loads(written),
                        }  # fmt: skip
                self._say(body, said)

            def _say(self, body: dict[str, Any], said: dict[str, Any]) -> None:
                usage = {"input_tokens": 1, "output_tokens": 1}
                uses = said["type"] == "tool_use"
                message = {
                    "id": "msg_1", "type": "message", "role": "assistant",
                    "model": body.get("model", ""), "content": [said],
                    "stop_reason": "tool_use" if uses else "end_turn",
                    "stop_sequence": None, "usage": usage,
                }  # fmt: skip
                if not body.get("stream"):
                    self._answer(json.dumps(message).encode(), "application/json")
                    return
                empty = {**said, "input": {}} if uses else {**said, "text": ""}
                delta = (
                    {"type": "input_json_delta", "partial_json": json.dumps(said["input"])}
                    if uses
                    else {"type": "text_delta", "text": said["text"]}
                )
                start = {**message, "content": [], "stop_reason": None}
                stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
                events: list[dict[str, Any]] = [
                    {"type": "message_start", "message": start},
                    {"type": "content_block_start", "index": 0, "content_block": empty},
                    {"type": "content_block_delta", "index": 0, "delta": delta},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "message_delta", "delta": stop, "usage": usage},
                    {"type": "message_stop"},
                ]
                stream = "".join(
                    f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events
                )
                self._answer(stream.encode(), "text/event-stream")

            def do_GET(self) -> None:
                self._answer(b"{}", "application/json")

            def do_HEAD(self) -> None:
                self._answer(b"", "application/json")

            def _answer(self, data: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


RUNS = {"openai_agents": openai_agents, "pydantic_ai": pydantic_ai, "claude_agent": claude_agent}


def inside(name: str) -> int:
    """Run a framework inside its environment, and print the comparisons; return the exit code."""
    checks = {**ran_as_told(name), **doors(name)}
    if name in _MODULES:
        checks |= imported(name)
    if name == "pydantic_ai":
        checks |= asyncio.run(pydantic_ai_models()) | asyncio.run(pydantic_ai_asked())
    if name == "openai_agents":
        checks |= asyncio.run(openai_agents_texts()) | asyncio.run(openai_agents_asked())
    for said, holds in checks.items():
        say(f"  {'ok  ' if holds else 'NOT '} {said}")
    return 0 if all(checks.values()) else 1


def ran_as_told(name: str) -> dict[str, bool]:
    """Run the script of the desk, and return each comparison with its result."""
    import tcc

    artifact = tcc.compile_text(GRAMMAR)
    desk = Desk()
    with tempfile.TemporaryDirectory() as folder:
        ledger, path = Path(folder, "desk.ledger"), Path(folder, "desk.tcca")
        tcc.save(artifact, path)
        with tcc.Gate(artifact, ledger=ledger) as gate:
            asyncio.run(asyncio.wait_for(RUNS[name](gate, desk), 120))
            kept = [(one.call, one.outcome) for one in gate.history if one.call != "say"]
            said = [
                (one.outcome, None if one.unforeseen else one.observed.get("v", ""))
                if one.outcome == "done"
                else (one.outcome, None)
                for one in gate.history
                if one.call == "say"
            ]
            gate.finish()
        claim = tcc.validate(ledger, path).claim_type
    refused = [at for at, text in enumerate(desk.told) if "Refused, and not called" in text]
    due = [ending for _, ending in desk.answers.values()]
    odd = [
        f"{how} is {found}, not {ending}"
        for how, found, ending in zip(desk.answers, said, due, strict=False)
        if found != ending
    ]
    ran = [name for name in desk.ran if name != "say"]
    return {
        f"{len(said)} answers {odd}": said == due,
        f"ran {ran}": ran == RAN,
        f"ledger {kept}": kept == LEDGER,
        f"told of a refusal in answer {refused}": refused == [0],
        "the refusal names the statement": "before refund require approve" in desk.told[0],
        f"told of the error: {desk.told[-1][:80]}": "desk is away" in desk.told[-1]
        or "error" in desk.told[-1].lower(),
        f"validated: {claim}": claim == "Conformant",
    }


def doors(name: str) -> dict[str, bool]:
    """Run the calls of tests/doors/cases.py, and return each comparison with its result."""
    import tcc

    cases = _cases()
    # The program of the Claude SDK reads numbers as doubles before it calls a hook.
    doubles = name == "claude_agent"
    texts = {**cases.CASES, **cases.large(100_000)}
    if name == "openai_agents":  # its runner raises before it calls the tool
        texts = {case: one for case, one in texts.items() if case not in _HALVES}
    desk = Desk([("save", text) for text, _ in texts.values()])
    with tcc.Gate(tcc.compile_text(cases.GRAMMAR)) as gate:
        asyncio.run(asyncio.wait_for(RUNS[name](gate, desk), 300))
        found = {}
        saved = iter(desk.saved)
        for at, (case, (text, code)) in enumerate(texts.items()):
            given = json.loads(text, parse_int=_as_double) if doubles else json.loads(text)
            due = gate.check("save", given).code if doubles else code
            answer = desk.told[at] if at < len(desk.told) else "nothing"
            if due is None:
                holds = "saved" in answer and cases.same(next(saved, None), given)
            else:
                # A framework may refuse a value that it cannot read; then the gate decides nothing.
                holds = due in answer or (case in _HALVES and "saved" not in answer)
            found[f"{case}: {due or 'made'}" + ("" if holds else f" ({answer[:200]})")] = holds
    reached = f"of {len(texts)} calls of tests/doors/cases.py {len(desk.saved)} reached the tool"
    failed = {said: False for said, holds in found.items() if not holds}
    return {reached: next(saved, None) is None and not failed, **failed}


def _cases() -> Any:
    """Load the module of the cases, which is not part of the installed packages."""
    spec = importlib.util.spec_from_file_location("cases", ROOT / "tests" / "doors" / "cases.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("tests/doors/cases.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# Cases with half of a surrogate pair, which the JSON readers of frameworks may refuse.
_HALVES = frozenset(
    {
        "half of a pair",
        "half of a pair in JSON",
        "half of a pair as a name",
        "half of a pair in a record",
        "half of a pair as a member",
    }
)


def _as_double(text: str) -> int:
    """Return a whole number as a program writes it that represents numbers as doubles."""
    return int(Decimal(repr(float(text))))


def main() -> int:
    """Create the environments, and run each framework in its environment."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    parser.add_argument("--envs", type=Path, help="folder of the environments, which is kept")
    parser.add_argument("--inside", choices=PACKAGES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return inside(given.inside)
    folder = given.envs or Path(tempfile.mkdtemp(prefix="tcc-frameworks-"))
    failed = []
    try:
        for name in given.names or PACKAGES:
            home = folder / name
            python = home / "bin" / "python"
            if not python.exists():
                venv.create(home, with_pip=True)
                pip = [str(python), "-m", "pip", "install", "--quiet"]
                subprocess.run([*pip, *PACKAGES[name], str(ROOT)], check=True)
            say(name)
            # Only PATH and PYTHONPATH: no keys, settings or proxies of the user.
            env = {one: os.environ[one] for one in ("PATH", "PYTHONPATH") if one in os.environ}
            command = [str(python), __file__, "--inside", name]
            if subprocess.run(command, env=env, cwd=folder).returncode:
                failed.append(name)
    finally:
        if given.envs is None:
            shutil.rmtree(folder, ignore_errors=True)
    say("failed: " + ", ".join(failed) if failed else "all as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
