"""The relay between the official SDK's client and the official SDK's server, in both ways."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from tcc_runtime.gate.gate import Gate
from tests.forking import environment
from tests.mcp.sdk import parameters
from tests.mcp.speaking import SERVERS, serving, tcc

CLIENT = ["legacy", "auto", "2026-07-28"]
SERVER = ["handshake", "2026-07-28", "auto"]


def talk(
    folder: Path,
    artifact: Path,
    mode: str,
    options: list[str],
    say: Callable[[Any], Awaitable[None]],
) -> list[tuple[str, dict[str, Any]]]:
    """Let the SDK's client talk to a relay before the SDK's server; what was executed."""
    executed = folder / "executed"

    async def whole() -> None:
        started = parameters(
            *("gate", str(artifact), "--ledger", str(folder / "s.ledger")),
            *(*options, "--", *serving("official.py")),
            EXECUTED=str(executed),
        )
        async with Client(stdio_client(started), mode=mode) as client:
            await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))
    lines = executed.read_text("utf-8").splitlines() if executed.exists() else []
    return [(one["name"], one["arguments"]) for one in map(json.loads, lines)]


def outcomes(folder: Path, artifact: Path) -> list[str]:
    gate = Gate(str(artifact), ledger=folder / "s.ledger")
    try:
        return [one.outcome for one in gate.history]
    finally:
        gate.close()


@pytest.mark.parametrize(
    ("mode", "protocol"),
    [
        ("legacy", "handshake"),
        ("legacy", "2026-07-28"),
        ("auto", "handshake"),
        ("auto", "auto"),
        ("2026-07-28", "2026-07-28"),
    ],
)
@pytest.mark.sampled(3)
def test_both_sides_in_both_ways(tmp_path: Path, artifact: Path, mode: str, protocol: str) -> None:
    async def say(client: Client) -> None:
        listed = await client.list_tools()
        names = [tool.name for tool in listed.tools]
        assert names == ["act", "delete_case", "open_case", "run_tests"]
        refused = await client.call_tool("delete_case", {"id": "c-1"})
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["code"] == "R202"
        opened = await client.call_tool("open_case", {"id": "c-1"})
        assert opened.content[0].text == "opened c-1"  # type: ignore[union-attr]
        tested = await client.call_tool("run_tests", {"suite": "unit"})
        assert tested.structured_content == {"result": "pass"}
        done = await client.call_tool("act", {"kind": "risky", "how": "é\u2028", "id": "c-1"})
        assert done.content[0].text == "é\u2028"  # type: ignore[union-attr]
        failed = await client.call_tool("act", {"kind": "safe", "how": "raise", "id": "c-1"})
        assert failed.is_error
        assert not (await client.call_tool("delete_case", {"id": "c-1"})).is_error
        assert (await client.call_tool("delete_case", {"id": "c-1"})).is_error

    executed = talk(tmp_path, artifact, mode, ["--protocol", protocol], say)
    assert [name for name, _ in executed] == ["open_case", "run_tests", "act", "act", "delete_case"]
    assert outcomes(tmp_path, artifact) == ["done", "done", "done", "unknown", "done"]


@pytest.mark.parametrize("mode", CLIENT)
@pytest.mark.sampled(2)
def test_calls_at_once_are_held_one_by_one(tmp_path: Path, artifact: Path, mode: str) -> None:
    async def say(client: Client) -> None:
        await client.call_tool("open_case", {"id": "c-1"})
        calls = [client.call_tool("delete_case", {"id": "c-1"}) for _ in range(10)]
        results = await asyncio.gather(*calls)
        assert sorted(result.is_error or False for result in results) == [False] + [True] * 9

    executed = talk(tmp_path, artifact, mode, [], say)
    assert [name for name, _ in executed] == ["open_case", "delete_case"]


def test_both_sides_are_programs_that_the_sdk_and_the_gate_start(
    tmp_path: Path, artifact: Path
) -> None:
    """Elsewhere here their processes are forked."""

    async def whole() -> None:
        started = StdioServerParameters(
            command=sys.executable,
            args=[
                *("-m", "tcc", "gate", str(artifact), "--ledger", str(tmp_path / "s.ledger")),
                *("--", sys.executable, str(SERVERS / "official.py")),
            ],
            env=environment(EXECUTED=str(tmp_path / "executed")),
        )
        async with Client(stdio_client(started)) as client:
            assert (await client.call_tool("delete_case", {"id": "c-1"})).is_error
            assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    asyncio.run(asyncio.wait_for(whole(), 60))
    assert outcomes(tmp_path, artifact) == ["done"]


@pytest.mark.parametrize("protocol", SERVER)
def test_the_official_server_is_imported(tmp_path: Path, protocol: str) -> None:
    grammar, lock = tmp_path / "g.tcg", tmp_path / "tools.lock"
    done = tcc(
        *("import", "mcp", "-o", str(grammar), "--lock", str(lock), "--protocol", protocol),
        *("--", *serving("official.py")),
        env={"EXECUTED": str(tmp_path / "executed")},
    )
    assert done.returncode == 0, done.stderr
    text = grammar.read_text("ascii")
    assert 'grammar official version "1"' in text
    assert 'tool open_case(id: text ~ "c-[0-9]{1,4}")' in text
    assert "tool act(kind: safe | risky, how: text, id: text)" in text
    assert "tool delete_case(id: text, how?: text or null)" in text
    paint = "tool paint(colour: red | blue, share: number 0 .. 1, times?: integer, dry?:"
    assert paint in text
    assert sorted(json.loads(lock.read_text("ascii"))["tools"]) == [
        "act", "delete_case", "open_case", "paint", "run_tests",
    ]  # fmt: skip
    made = tcc("compile", str(grammar))
    assert made.returncode == 0, made.stdout

    async def say(client: Client) -> None:
        painted = await client.call_tool("paint", {"colour": "red", "share": 0.5, "times": 2})
        assert not painted.is_error
        wrong = await client.call_tool("paint", {"colour": "red", "share": 1.5})
        assert wrong.is_error

    options = ["--lock", str(lock), "--protocol", protocol]
    executed = talk(tmp_path, grammar.with_suffix(".tcca"), "auto", options, say)
    assert [name for name, _ in executed] == ["paint"]
