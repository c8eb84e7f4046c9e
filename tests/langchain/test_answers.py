"""What an answer means in LangGraph: content, artifacts, messages and commands of real agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command
from pydantic import BaseModel

from tests.answer_forms import ERROR, FINE, FORMS, GRAMMAR, LONG, LONGER, SHORT, TIMES, Form, texts
from tests.langchain.world import ASKED, World, called


class Said(BaseModel):
    error: str


def answered(folder: Path, answering: Any) -> tuple[str, bool, dict[str, Any], bool]:
    """What the ledger has of a call of this tool, by an agent."""
    world = World(folder, GRAMMAR)
    world.agent([[called("say", how="x")]], tools=[answering]).invoke(ASKED)
    lines = map(json.loads, world.ledger.read_bytes().splitlines())
    record = next(one for one in lines if one["kind"] == "outcome")
    only = world.gate.history[0]
    assert world.gate.check("pay").allowed is (only.outcome == "done")
    world.gate.close()
    return only.outcome, record.get("answered", False), dict(only.observed), only.unforeseen


def expected(form: Form) -> tuple[str, bool, dict[str, Any], bool]:
    done = form.outcome == "done"
    seen = {"v": form.seen} if done and form.seen is not None else {}
    return form.outcome, form.outcome == "failed", seen, done and form.seen is None


def content_of(form: Form) -> list[dict[str, Any]]:
    """The content as the adapters of MCP hand it to LangChain."""
    found: list[dict[str, Any]] = []
    for block in form.content:
        if block["type"] == "resource":
            found += texts(block["resource"]["text"])
        elif block["type"] == "image":
            found.append({"type": "image", "base64": block["data"], "mime_type": "image/png"})
        else:
            found.append(block)
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_content_with_an_artifact(form: Form, tmp_path: Path) -> None:
    @tool(response_format="content_and_artifact")
    def say(how: str) -> Any:
        """Say."""
        if form.error:
            raise ValueError("marked")
        beside = None if form.structured is None else {"structured_content": form.structured}
        return content_of(form), beside

    if form.error:
        with pytest.raises(ValueError, match="marked"):
            answered(tmp_path, say)
        return
    assert answered(tmp_path, say) == expected(form)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_message(form: Form, tmp_path: Path) -> None:
    @tool
    def say(how: str, ref: Annotated[str, InjectedToolCallId]) -> Any:
        """Say."""
        artifact = None if form.structured is None else {"structured_content": form.structured}
        return ToolMessage(
            content=content_of(form),  # type: ignore[arg-type]
            artifact=artifact,
            tool_call_id=ref,
            status="error" if form.error else "success",
        )

    assert answered(tmp_path, say) == expected(form)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (ERROR, "failed"),
        ([ERROR], "failed"),
        ({"result": ERROR}, "failed"),
        (Said(error=ERROR), "failed"),
        (f'{{"result": "{ERROR}"}}', "failed"),
        ([ERROR, FINE], "unknown"),
        ({"sent": 3, "note": ERROR}, "unknown"),
        (FINE, "done"),
        ({"result": FINE}, "done"),
    ],
)
def test_plain_values(value: Any, outcome: str, tmp_path: Path) -> None:
    @tool
    def say(how: str) -> Any:
        """Say."""
        return value

    assert answered(tmp_path, say)[:2] == (outcome, outcome == "failed")


@pytest.mark.parametrize(
    ("content", "artifact", "outcome"),
    [
        (ERROR, {"rows": [FINE]}, "failed"),  # a model does not read the artifact
        (ERROR, Said(error=FINE), "failed"),
        (FINE, {"rows": [ERROR]}, "done"),
        (ERROR, {"structured_content": {"result": FINE}}, "unknown"),
        (texts(FINE, ERROR), {"v": 5}, "unknown"),
    ],
)
def test_artifacts(content: Any, artifact: Any, outcome: str, tmp_path: Path) -> None:
    @tool(response_format="content_and_artifact")
    def say(how: str) -> Any:
        """Say."""
        return content, artifact

    assert answered(tmp_path, say)[:2] == (outcome, outcome == "failed")


@pytest.mark.parametrize(
    ("contents", "status", "outcome"),
    [
        ([ERROR], "success", "failed"),
        ([texts(ERROR)], "success", "failed"),
        ([FINE], "success", "done"),
        ([FINE], "error", "failed"),
        ([ERROR, FINE], "success", "unknown"),
        ([ERROR, ERROR], "success", "failed"),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_a_command(
    contents: list[Any], status: Any, outcome: str, listed: bool, tmp_path: Path
) -> None:
    @tool
    def say(how: str, ref: Annotated[str, InjectedToolCallId]) -> Any:
        """Say."""
        first, *more = contents
        answer = ToolMessage(content=first, tool_call_id=ref, status=status)
        messages = [answer, *(HumanMessage(content=one) for one in more)]
        command: Any = Command(update={"messages": messages})
        return [command] if listed else command

    assert answered(tmp_path, say)[:2] == (outcome, outcome == "failed")


def test_a_command_is_read_like_its_message(tmp_path: Path) -> None:
    @tool
    def say(how: str, ref: Annotated[str, InjectedToolCallId]) -> Any:
        """Say."""
        return Command(update={"messages": [ToolMessage(content='{"v": 5}', tool_call_id=ref)]})

    assert answered(tmp_path, say) == ("done", False, {"v": "5"}, False)


def test_times_of_many_digits(tmp_path: Path) -> None:
    @tool
    def look(at: str) -> dict[str, str]:
        """Look."""
        return {"was": LONGER}

    @tool
    def pay(at: str) -> str:
        """Pay."""
        return "paid"

    world = World(tmp_path, TIMES)
    script = [[called("look", at=LONG)], [called("pay", "b", at=SHORT)]]
    world.agent(script, tools=[look, pay]).invoke(ASKED)
    assert world.outcomes == ["done", "done"]
    world.gate.close()
