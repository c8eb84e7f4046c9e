"""The tools over real stdio, by the official SDK: held by a gate, and planned by a server."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

import tcc
from tcc_experiments.pipeline.corpus import Corpus
from tcc_experiments.pipeline.modes import GRAMMAR
from tests.forking import launcher
from tests.mcp.sdk import parameters

QUESTION = "What is the Avogadro constant times the elementary charge?"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "desk.tcca"
    tcc.save(tcc.compile_file(GRAMMAR), path)
    return path


def talk(command: list[str], say: Callable[[Any], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Client(stdio_client(parameters(*command))) as client:
            await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))


def served(corpus: Corpus) -> list[str]:
    return launcher("tcc", "demo", "desk", str(corpus.path), "--digest", corpus.digest)


def test_a_gate_holds_the_desk_to_its_grammar(
    corpus: Corpus, artifact: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "desk.session"

    async def ask(desk: Any) -> None:
        names = [tool.name for tool in (await desk.list_tools()).tools]
        assert names == ["calculate", "give_up", "retrieve", "route", "summarise"]

        async def call(tool: str, **arguments: Any) -> Any:
            return await desk.call_tool(tool, arguments)

        early = await call("calculate", expression="1")
        assert early.is_error and early.structured_content["code"] == "R201"
        assert not (await call("route", shelf="constants")).is_error
        assert (await call("route", shelf="attic")).structured_content["code"].startswith("R1")
        found = await call("retrieve", scope="shelf", k=20, query=QUESTION)
        passages = found.structured_content["passages"]
        assert len(passages) == 20
        facts = await call("summarise", reads="latest", question=QUESTION, passages=passages)
        assert facts.structured_content["found"] == "all"
        numbers = [fact["number"] for fact in facts.structured_content["facts"]]
        # A tool's refusal is a failure that is known: the gate lets the next call come.
        hostile = await call("calculate", expression="9**9**9")
        assert hostile.is_error and "X303 expression" in hostile.content[0].text
        value = await call("calculate", expression=f"{numbers[0]} * {numbers[1]}")
        assert value.structured_content["value"] == pytest.approx(96485.33212)

    gate = ["gate", str(artifact), "--ledger", str(ledger), "--finish", "--no-durable"]
    talk([*gate, "--", *served(corpus)], ask)
    found = tcc.validate(ledger, artifact)
    assert (found.verdict, found.claim_type) == (0, "Conformant")


def test_exec_does_a_plan_on_the_desk(tcc: Any, corpus: Corpus, tmp_path: Path) -> None:
    arguments = tmp_path / "arguments.json"
    arguments.write_text('{"retrieve": {"query": "zyzzyva"}, "summarise": '
                         f'{{"question": "{QUESTION}", "passages": []}}}}')  # fmt: skip
    told = (
        "exec", GRAMMAR, "--server", f"desk={shlex.join(served(corpus))}", "--json",
        "--arguments", arguments, "--seed", "00" * 32,
    )  # fmt: skip
    # Nothing is found. The gate refuses a third look with the same query, which a search cannot
    # know. So the execution ends there, or follows another plan of the run, if there is one.
    alone, more = tcc(*told, "--beta", "4"), tcc(*told, "--beta", "1", "--top", "60")
    looks = [made["call"] for made in alone.json["calls"] if made["call"].startswith("retrieve")]
    assert len(looks) == 2 and all(made["outcome"] == "done" for made in alone.json["calls"])
    assert (alone.code, alone.json["stop"]) == (2, "refused")
    assert (more.code, more.json["stop"]) == (0, "finished")
    assert more.json["calls"][-1]["call"] == "give_up"


def test_an_agent_may_plan_over_the_grammar(artifact: Path) -> None:
    async def ask(planner: Any) -> None:
        found = await planner.call_tool("allowed", {"after": ["route(shelf=units)"]})
        allowed = found.structured_content["allowed"]
        assert len(allowed) == 6 and {call.split("(")[0] for call in allowed} == {"retrieve"}

    talk(["serve", "mcp", str(artifact)], ask)


def test_another_corpus_is_not_served(tcc: Any, corpus: Corpus, tmp_path: Path) -> None:
    ended = tcc("demo", "desk", corpus.path, "--digest", "00" * 32)
    assert ended.code == 2 and "X102" in ended.err and corpus.digest in ended.err
    ended = tcc("demo", "desk", tmp_path / "none.db")
    assert ended.code == 2 and "X101" in ended.err
