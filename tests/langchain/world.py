"""A shop whose tools say what they did, agents that speak from a script, and a stranger's verdict.

At the end of each test that uses it, what was done is held against the ledger: nothing was done
that the ledger has not as a call, in its order, and a stranger finds the ledger without fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from pydantic import Field

import tcc as library
from tcc.langchain import guard
from tcc_certs.session.validation import SessionValidation, validate
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.keys import read_key

SHOP = """grammar shop version "1"

tool look(by: email | phone) { cost 0.1 }
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500,
            note?: text) {
  cost 0.2
}
tool delete { cost 0.1 }

plan = look refund?

limit count(delete) <= 0
"""
ASKED = {"messages": [("user", "go on")]}


def called(name: str, ref: str = "", **arguments: Any) -> dict[str, Any]:
    """A tool call as a model writes it."""
    return {"name": name, "args": arguments, "id": ref or f"id-{name}", "type": "tool_call"}


LOOK = called("look", by="email")
REFUND = called("refund", part="half", order="ord-1", amount=3)
# What the model of docs/langgraph.md says.
SAID = [
    [called("look_up", by="email", text="order 17")],
    [called("refund", part="full", order="ord-17", amount=30)],
]
LARGE = [[called("refund", part="full", order="ord-17", amount=300)]]


class Scripted(BaseChatModel):
    """Says what its script has for as many answers as it has given in the conversation."""

    script: list[Any]
    offered: list[list[str]] = Field(default_factory=list)
    read: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Scripted:
        self.offered.append([found.name for found in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.read.append(messages)
        turn = sum(isinstance(message, AIMessage) for message in messages)
        said = self.script[turn] if turn < len(self.script) else []
        message = AIMessage(content="" if said else "the end", tool_calls=said)
        return ChatResult(generations=[ChatGeneration(message=message)])


class World:
    """Tools, the session that guards them, and what they did."""

    def __init__(self, folder: Path, grammar: str = SHOP) -> None:
        self.artifact: Artifact = library.compile_text(grammar)
        self.path = folder / "artifact.tcca"
        library.save(self.artifact, self.path)
        self.ledger = folder / "session.ledger"
        self.gate = Gate(self.artifact, ledger=self.ledger, durable=False)
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.closed = False

    def did(self, name: str, arguments: dict[str, Any]) -> str:
        self.done.append((name, arguments))
        return f"{name} done"

    def tools(self) -> list[BaseTool]:
        """Plain tools of the shop."""

        @tool
        def look(by: str) -> str:
            """Look for the customer."""
            return self.did("look", {"by": by})

        @tool
        def refund(part: str, order: str, amount: float, note: str | None = None) -> str:
            """Pay back."""
            return self.did("refund", {"part": part, "order": order, "amount": amount})

        @tool
        def delete() -> str:
            """Delete everything."""
            return self.did("delete", {})

        return [look, refund, delete]

    def agent(self, script: list[Any], **more: Any) -> Any:
        """An agent over the guarded tools."""
        tools = more.pop("tools", None)
        names = ("results", "observe", "interrupts", "pending")
        settings = {name: more.pop(name) for name in names if name in more}
        guarded = guard(self.tools() if tools is None else tools, self.gate, **settings)
        model = more.pop("model", None) or Scripted(script=script)
        return create_agent(model, guarded, **more)

    def reopen(self) -> None:
        """As another process would."""
        self.gate.close()
        self.gate = Gate(self.path, ledger=self.ledger, durable=False)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.done]

    @property
    def outcomes(self) -> list[str]:
        return [made.outcome for made in self.gate.history]

    @property
    def refused(self) -> list[str]:
        """The codes of the refusals in the ledger."""
        records = [json.loads(line) for line in self.ledger.read_bytes().splitlines()]
        return [record["code"] for record in records if record["kind"] == "refusal"]

    def verdict(self) -> SessionValidation:
        """What a stranger who has the key finds."""
        return validate(self.ledger.read_bytes(), self.path.read_bytes(), key=read_key(self.ledger))

    def judge(self) -> None:
        """Hold what was done against the ledger, and the ledger against the grammar."""
        found = self.verdict()
        assert found.verdict != 1 and found.claim_type != "NoClaim", found.findings
        # A call that interrupted or failed may have left no deed; every deed is a call.
        texts = iter([made.call for made in self.gate.history])
        for name, _ in self.done:
            assert any(text.partition("(")[0] == name for text in texts), (name, self.done)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A shop; judged when the test is over."""
    found = World(tmp_path)
    yield found
    found.judge()
    found.gate.close()


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Callable[[str], World]]:
    """Makes a shop of another grammar; judged when the test is over."""
    made: list[World] = []

    def make(grammar: str) -> World:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(World(folder, grammar))
        return made[-1]

    yield make
    for found in made:
        found.judge()
        found.gate.close()


def answers(state: dict[str, Any]) -> list[ToolMessage]:
    """What the tools answered in a conversation."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]
