"""`tcc serve mcp`: plans as tools, by hand and with the official SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

import tcc
from tcc.planning import Planner
from tcc.planning_tools import TOOLS
from tcc_runtime.gate.gate import Gate
from tests.mcp.speaking import environment

CASE = {"tool": "open_case", "arguments": {"id": "c-1"}}


@pytest.fixture(scope="module")
def planner(artifact: Path) -> Planner:
    return Planner(tcc.load(artifact))


def told(planner: Planner, tool: str, **arguments: Any) -> dict[str, Any]:
    result = planner.call(tool, arguments)
    found: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    assert ("error" in found) == result.get("isError", False)
    return found


def test_allowed_follows_the_calls(planner: Planner) -> None:
    first = told(planner, "allowed")
    assert first["may_finish"] is True
    assert "open_case" in first["allowed"]
    assert "act(kind=safe)" not in first["allowed"]
    after = told(planner, "allowed", after=["open_case"])
    assert "act(kind=safe)" in after["allowed"]
    wrong = told(planner, "allowed", after=["open_case", "act(kind=risky)"])
    assert (wrong["refused"], wrong["call"]) == (1, "act(kind=risky)")


def test_check_holds_arguments_and_monitors(planner: Planner) -> None:
    gone = {"tool": "delete_case", "arguments": {"id": "c-1"}}
    assert told(planner, "check", calls=[CASE, gone]) == {
        "allowed": True, "calls": 2, "may_finish": True,
    }  # fmt: skip
    other = {"tool": "delete_case", "arguments": {"id": "c-2"}}
    found = told(planner, "check", calls=[CASE, other])
    assert (found["allowed"], found["refused"], found["code"]) == (False, 1, "R202")
    tests = {"tool": "run_tests", "arguments": {"suite": "unit"}}
    risky = {"tool": "act", "arguments": {"kind": "risky", "how": "", "id": "c-1"}}
    passed, failed = ({**tests, "observed": {"result": value}} for value in ("pass", "fail"))
    assert told(planner, "check", calls=[CASE, passed, risky])["allowed"] is True
    assert told(planner, "check", calls=[CASE, failed, risky])["code"] == "R201"


def test_route_gives_plans_with_their_claim(planner: Planner) -> None:
    found = told(planner, "route", top=2, seed="00" * 32)
    assert len(found["plans"]) == 2
    assert found["seed"] == "00" * 32
    assert found == told(planner, "route", top=2, seed="00" * 32)
    on = told(planner, "route", after=["open_case"], seed="00" * 32)
    assert on["plans"]


def test_validate_takes_the_text_of_a_ledger(
    planner: Planner, artifact: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run.ledger"
    tcc.search(tcc.load(artifact), seed=bytes(32), ledger=path, max_expansions=5)
    text = path.read_text("utf-8")
    assert told(planner, "validate", ledger=text)["verdict"] == "VALID"
    assert (
        told(planner, "validate", ledger=text.replace('"top":1', '"top":2'))["verdict"] == "INVALID"
    )
    assert told(planner, "validate", ledger="\ud800\n")["verdict"] == "INVALID"


def test_validate_takes_a_session_too(planner: Planner, artifact: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.ledger"
    gate = Gate(tcc.load(artifact), ledger=path)
    with gate.call("open_case", {"id": "c-1"}) as permit:
        permit.done()
    gate.finish()
    gate.close()
    found = told(planner, "validate", ledger=path.read_text("utf-8"))
    assert (found["verdict"], found["claim_type"]) == ("VALID", "Conformant")


def test_explain(planner: Planner) -> None:
    assert told(planner, "explain", code="C401")["text"].startswith("C401")
    assert "no such code" in told(planner, "explain", code="X1")["error"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("nothing", {}),
        ("route", {"top": 0}),
        ("route", {"top": True}),
        ("route", {"seed": "x"}),
        ("route", {"after": "open_case"}),
        ("route", {"after": ["never"]}),
        ("route", {"seconds": 5}),
        ("allowed", {"after": [5]}),
        ("allowed", {"after": ["x"] * 1001}),
        ("check", {}),
        ("check", {"calls": [5]}),
        ("check", {"calls": [{"tool": "open_case", "arguments": []}]}),
        ("check", {"calls": [{"tool": "open_case", "more": 1}]}),
        ("check", {"calls": [CASE] * 1001}),
        ("validate", {"ledger": 5}),
        ("explain", {}),
    ],
)
def test_what_is_wrong_with_arguments_is_said(
    planner: Planner, tool: str, arguments: dict[str, Any]
) -> None:
    assert told(planner, tool, **arguments)["error"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_with_the_official_client(artifact: Path, mode: Any) -> None:
    async def whole() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "tcc", "serve", "mcp", str(artifact)],
            env=environment(),
        )
        async with Client(stdio_client(parameters), mode=mode) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [tool["name"] for tool in TOOLS]
            found = await client.call_tool("allowed", {"after": ["open_case"]})
            assert found.structured_content is not None
            assert "act(kind=safe)" in found.structured_content["allowed"]
            wrong = await client.call_tool("route", {"top": 99})
            assert wrong.is_error

    asyncio.run(asyncio.wait_for(whole(), 60))
