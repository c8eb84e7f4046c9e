"""The doors of `tcc gate`: MCP over stdio and over HTTP, before a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.doors.cases import CASES, GRAMMAR, LARGE, deep, large, same
from tests.mcp.speaking import Relayed
from tests.mcp.test_http import GREETING, web

SCHEMA = {
    "type": "object",
    "properties": {name: {} for name in ("id", "size", "note", "data", "rows")},
}
TOOLS = json.dumps([{"name": "save", "inputSchema": SCHEMA}])
# The answer to a call, or the error of a line that is rejected.
Say = Callable[[str], dict[str, Any]]
Door = tuple[Say, Callable[[], list[Any]]]


def line_of(identity: int, text: str) -> bytes:
    params = '{"name":"save","arguments":' + text + "}"
    head = '{"jsonrpc":"2.0","id":' + str(identity) + ',"method":"tools/call","params":'
    return (head + params + "}\n").encode()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doors") / "doors.tcca"
    tcc.save(tcc.compile_text(GRAMMAR.replace("{0,99}", "{0,999}")), path)
    return path


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("stdio")
    with Relayed(folder, compiled, env={"TOOLS": TOOLS}) as relay:
        relay.greet()
        number = iter(range(1000, 9000))

        def say(text: str) -> dict[str, Any]:
            identity = next(number)
            relay.send(line_of(identity, text))
            answer = relay.hear()
            assert answer is not None and answer["id"] in (identity, None)
            return answer

        yield say, lambda: [arguments for _, arguments in relay.executed]
    assert relay.judged.claim_type == "ConformantPrefix", relay.judged.findings


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("web")
    patch = pytest.MonkeyPatch()
    patch.setenv("TOOLS", TOOLS)
    with web(folder, compiled) as found:
        patch.undo()
        handle = found.greet()

        def say(text: str) -> dict[str, Any]:
            try:
                status, _, body = found.ask(line_of(7, text), handle)
            except OSError:  # the gate does not read the rest of a body that is too large
                status, body = 413, b""
            answer: dict[str, Any] = json.loads(body) if body else {"error": {"code": status}}
            return answer

        def executed() -> list[Any]:
            path = found.executed_in
            lines = path.read_text("utf-8").splitlines() if path.exists() else []
            return [json.loads(line)["arguments"] for line in lines]

        assert GREETING["method"] == "initialize"
        yield say, executed


@pytest.fixture(params=["stdio", "over_http"])
def door(request: pytest.FixtureRequest) -> Door:
    found: Door = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_reaches_the_server_is_what_was_decided_on(door: Door, case: str) -> None:
    say, executed = door
    text, code = CASES[case]
    before = len(executed())
    answer = say(text)
    if case == "JSON that is deeper" and "error" in answer:  # HTTP takes no message that deep
        assert answer["error"]["code"] == -32700
        return
    result = answer["result"]
    if code is None:
        assert not result.get("isError"), result
        assert len(executed()) == before + 1 and same(executed()[-1], json.loads(text))
    else:
        assert result["structuredContent"]["code"] == code
        assert len(executed()) == before


@pytest.mark.parametrize("case", LARGE)
def test_what_is_large_is_refused_in_time(door: Door, case: str) -> None:
    say, executed = door
    text, code = large(3 << 20)[case]
    before, began = len(executed()), time.monotonic()
    assert say(text)["result"]["structuredContent"]["code"] == code
    assert time.monotonic() - began < 10
    assert len(executed()) == before


@pytest.mark.parametrize("case", [*LARGE, "hostile nesting", "too many digits"])
def test_what_no_line_may_hold_is_refused_in_time(door: Door, case: str) -> None:
    say, executed = door
    others = {"hostile nesting": deep(100_000), "too many digits": '{"id":' + "1" * 5000 + "}"}
    before, began = len(executed()), time.monotonic()
    answer = say(others[case] if case in others else LARGE[case][0])
    assert answer["error"]["code"] in (-32700, -32600, 413)
    assert time.monotonic() - began < 10
    assert len(executed()) == before
