"""`tcc serve mcp`: plans as tools, by hand and with the official SDK."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

import tcc
from tcc.commands.serve_command import TOOLS, Planner
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
    assert told(planner, "check", calls=[CASE, failed, risky])["code"] == "R202"


def test_check_is_told_what_a_session_is_given() -> None:
    text = "given user: text\ntool a(user: text)\nplan = a?\nbefore a require user = session.user\n"
    planner = Planner(tcc.compile_text(f'grammar g version "1"\n{text}'))
    calls = [{"tool": "a", "arguments": {"user": "ann"}}]
    assert told(planner, "check", calls=calls, given={"user": "ann"})["allowed"] is True
    assert told(planner, "check", calls=calls, given={"user": "bob"})["code"] == "R202"
    for given in (None, {"user": 5}, {"who": "ann"}, [1]):
        more = {} if given is None else {"given": given}
        assert planner.call("check", {"calls": calls, **more})["isError"] is True


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


BUSY = """
import sys, time
from pathlib import Path
from tcc_runtime.mcp.serving import serve

def call(tool, arguments):
    with Path(sys.argv[1]).open("a") as log:
        log.write(tool + "\\n")
    if tool == "raise":
        raise KeyError("secret")
    until = time.monotonic() + float(arguments["seconds"])
    while time.monotonic() < until:  # as a search does: with the interpreter's lock
        sum(range(1000))
    return {"content": [{"type": "text", "text": tool}]}

serve([], call, info={"name": "busy", "version": "1"}, instructions="")
"""


class Busy:
    """A server of ours whose calls take as long as they say."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "made"
        self.process = subprocess.Popen(
            [sys.executable, "-c", BUSY, str(self._log)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.say(id=0, method="initialize", params={"protocolVersion": "2025-11-25"})
        assert self.hear()["id"] == 0

    def say(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, identity: object, tool: str, seconds: float = 0) -> None:
        params = {"name": tool, "arguments": {"seconds": seconds}}
        self.say(id=identity, method="tools/call", params=params)

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def begin(self, identity: object, tool: str, seconds: float) -> None:
        """Call a tool, and wait until it has begun."""
        self.call(identity, tool, seconds)
        until = time.monotonic() + 20
        while tool not in self.made:
            assert time.monotonic() < until, f"{tool} does not begin"
            time.sleep(0.01)

    @property
    def made(self) -> list[str]:
        return self._log.read_text().split() if self._log.exists() else []

    def __enter__(self) -> Busy:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait(20)


def test_a_call_that_takes_long_keeps_no_ping_and_no_signal_waiting(tmp_path: Path) -> None:
    with Busy(tmp_path) as busy:
        busy.begin(1, "long", 60)
        took = []
        for number in range(10):
            began = time.perf_counter()
            busy.say(id=f"p{number}", method="ping")
            assert busy.hear() == {"jsonrpc": "2.0", "id": f"p{number}", "result": {}}
            took.append(time.perf_counter() - began)
        assert min(took) < 0.05
        began = time.perf_counter()
        busy.process.terminate()
        assert busy.process.wait(20) == 0
        assert time.perf_counter() - began < 5
    assert busy.made == ["long"]


def test_a_call_that_is_cancelled_is_not_made_or_not_answered(tmp_path: Path) -> None:
    with Busy(tmp_path) as busy:
        busy.begin(1, "first", 2)
        busy.call(2, "second")
        busy.call(3, "third")
        busy.call(3, "twin")
        assert busy.hear()["error"]["code"] == -32000  # a call has this id already
        for identity in (1, 2):
            busy.say(method="notifications/cancelled", params={"requestId": identity})
        assert busy.hear()["result"]["content"][0]["text"] == "third"
    assert busy.made == ["first", "third"]


def test_a_call_that_fails_ends_no_server_and_says_nothing(tmp_path: Path) -> None:
    with Busy(tmp_path) as busy:
        busy.call(1, "raise")
        error = busy.hear()["error"]
        assert (error["code"], error["message"]) == (-32603, "this tool has failed")
        busy.call(2, "next")
        assert busy.process.stdin is not None
        busy.process.stdin.close()
        assert busy.hear()["id"] == 2  # a client that ended its input is answered: nothing happens
        assert busy.process.wait(20) == 0
