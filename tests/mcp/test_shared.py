"""One server for all sessions, and what a monitoring system reads of them."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp.links import Stop
from tcc_runtime.mcp.links.shared import SharedServer
from tcc_runtime.mcp.links.stdio import Program
from tcc_runtime.mcp.metrics import Meter
from tcc_runtime.mcp.wire import MalformedMessage, Request
from tests.mcp.behind import Behind, pause, run
from tests.mcp.speaking import environment, tcc
from tests.mcp.test_http import Web

SERVER = """
import json, os, sys, time
counted = 0
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + chr(10)); sys.stdout.flush()
greeted = 0
for line in sys.stdin:
    told = json.loads(line)
    method, params = told["method"], told.get("params", {})
    if method == "initialize":
        greeted += 1
        say({"id": told["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {},
             "serverInfo": {"name": "one", "version": str(greeted)}}})
    elif method == "tools/list":
        say({"id": told["id"], "result": {"tools": [{"name": "add", "inputSchema": {}}]}})
    elif method == "tools/call":
        what = params["arguments"].get("do")
        if what == "die":
            os._exit(3)
        if what == "garbage":
            sys.stdout.write("{garbage" + chr(10)); sys.stdout.flush(); continue
        if what == "wait":
            continue
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            say({"method": "notifications/progress",
                 "params": {"progressToken": token, "progress": 1}})
        if what == "changed":
            say({"method": "notifications/tools/list_changed"})
        counted += 1
        text = json.dumps({"pid": os.getpid(), "n": counted, "greeted": greeted})
        say({"id": told["id"], "result": {"content": [{"type": "text", "text": text}]}})
    elif method == "notifications/cancelled":
        say({"method": "notifications/message", "params": {}})
        sys.stderr.write("cancelled " + str(params["requestId"]) + chr(10))
"""


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[SharedServer]:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    found = SharedServer(Program(command=(sys.executable, str(path))))
    yield found
    run(found.close())


def call(behind: Behind, **arguments: Any) -> dict[str, Any]:
    """What the server says of itself in its answer to a call."""
    answer = behind.answer(behind.call("add", **arguments))
    assert answer.result is not None, answer
    found: dict[str, Any] = json.loads(answer.result["content"].value[0]["text"])
    return found


def test_all_have_one_process_and_one_handshake(shared: SharedServer) -> None:
    one, other = Behind(shared), Behind(shared)
    assert [tool["name"] for tool in other.tools()] == ["add"]
    first, second, third = call(one), call(other), call(one)
    assert first["pid"] == second["pid"] == third["pid"]
    assert [first["n"], second["n"], third["n"]] == [1, 2, 3]
    assert third["greeted"] == 1 and one.server.info == other.server.info
    one.close()
    assert call(other)["n"] == 4  # it goes on for others


def test_answers_go_to_who_asked(shared: SharedServer) -> None:
    many = [Behind(shared) for _ in range(8)]
    sent = [(one, one.call("add")) for _ in range(20) for one in many]
    found = []
    for one, identity in sent:
        result = one.answer(identity).result
        assert result is not None
        found.append(json.loads(result["content"].value[0]["text"])["n"])
    assert found == list(range(1, 161))


def test_a_session_that_ends_takes_no_answer_of_others(shared: SharedServer) -> None:
    one, other = Behind(shared), Behind(shared)
    one.call("add", do="wait")
    one.close()
    assert call(other)["n"] == 1


def test_progress_comes_under_the_sessions_token(shared: SharedServer) -> None:
    one, other = Behind(shared), Behind(shared)
    call(other)
    other.heard.clear()
    asked = {"name": "add", "arguments": {}, "_meta": {"progressToken": "mine"}}
    one.answer(one.request("tools/call", asked))
    [progress] = [message for message in one.heard if isinstance(message, Request)]
    assert progress.params["progressToken"] == "mine"
    pause(0.05)
    assert other.heard == []


def test_cancelled_is_under_the_servers_id(
    shared: SharedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    one, other = Behind(shared), Behind(shared)
    waited = other.call("add", do="wait")
    call(one)
    one.notify("notifications/cancelled", {"requestId": waited})  # another's: nothing
    call(one)
    assert "cancelled" not in capfd.readouterr().err
    other.notify("notifications/cancelled", {"requestId": waited})
    call(other)
    assert "cancelled" in capfd.readouterr().err


def test_a_changed_list_is_told_to_all(shared: SharedServer) -> None:
    one, other = Behind(shared), Behind(shared)
    call(one, do="changed")
    [changed] = other.heard
    assert isinstance(changed, Request)
    assert changed.method == "notifications/tools/list_changed"


def test_a_line_that_is_refused_reaches_all_who_wait(shared: SharedServer) -> None:
    one, other, third = Behind(shared), Behind(shared), Behind(shared)
    other.call("add", do="wait")
    call(third)
    third.heard.clear()
    one.call("add", do="garbage")
    while not one.heard:
        pause(0.01)
    assert call(third)["n"] == 2
    for waits in (one, other):
        assert [type(message) for message in waits.heard] == [MalformedMessage]
    assert len(third.heard) == 1


def test_a_server_that_ends_is_started_by_who_comes_next(shared: SharedServer) -> None:
    one, other = Behind(shared), Behind(shared)
    pid = call(one)["pid"]
    one.call("add", do="die")
    assert one.ended() and other.ended()
    assert call(Behind(shared))["pid"] != pid


def test_who_waits_is_greeted_though_the_first_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SERVER.replace("greeted += 1", "greeted += 1; time.sleep(0.6)"))
    shared = SharedServer(Program(command=(sys.executable, str(path))))

    async def leave() -> None:
        first = await shared.open(Stop(), lambda _: None)
        first.send(Request(identity=1, method="initialize", params={}))
        await asyncio.sleep(0.3)
        await first.close()

    async def both() -> None:
        leaving.append(asyncio.ensure_future(leave()))
        await asyncio.sleep(0.15)

    leaving: list[asyncio.Task[None]] = []
    try:
        run(both())
        assert call(Behind(shared))["greeted"] == 1
        assert leaving[0].done()
    finally:
        run(shared.close())


def test_after_its_end_nothing_starts(shared: SharedServer) -> None:
    pid = call(Behind(shared))["pid"]
    run(shared.close())
    with pytest.raises(ServerError):
        run(shared.open(Stop(), lambda _: None))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# Over HTTP.


def test_sessions_over_http_share_a_server(tmp_path: Path, artifact: Path) -> None:
    web = Web(tmp_path, artifact, "--share-server", "--metrics", "127.0.0.1:0")
    try:
        assert web.process.stderr is not None
        while b"metrics at" not in (said := web.process.stderr.readline()):
            assert said
        port = int(said.decode().rsplit(":", 1)[1].split("/")[0])
        one, other = web.greet(), web.greet()
        for handle in (one, other):
            assert "isError" not in web.call(handle, "open_case", {"id": "c-1"})["result"]
        refused = web.call(one, "act", {"kind": "risky", "how": "", "id": "c-secret"})
        assert refused["result"]["isError"]
        web.call(one, "a_secret_name", {})
        assert len(_children(web.process.pid)) == 1
        told = _read(port, "/metrics")[1].decode()
        assert 'tcc_calls_total{tool="open_case",outcome="done"} 2' in told
        assert 'tcc_refusals_total{tool="act",code="R105"} 1' in told
        assert 'tcc_refusals_total{tool="unknown tool",code="R101"} 1' in told
        assert 'tcc_http_answers_total{code="200"}' in told and "tcc_sessions_live 2" in told
        assert "secret" not in told and one not in told and "c-1" not in told
        assert _read(port, "/mcp")[0] == 404
        assert _read(port, "/metrics", method="POST")[0] == 405
        assert _read(port, "/metrics", Host="evil.example")[0] == 421
        assert _read(port, "/metrics", Origin="http://127.0.0.1")[0] == 403
        assert web.ask({}, path="/metrics", method="GET")[0] == 404
    finally:
        web.process.send_signal(signal.SIGTERM)
        assert web.process.wait(30) == 0
        for pipe in (web.process.stdout, web.process.stderr):
            if pipe is not None:
                pipe.close()


def _read(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _children(pid: int) -> list[str]:
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return found


def test_labels_are_quoted() -> None:
    meter = Meter(['odd"name\\'])
    meter.ended('odd"name\\', "done")
    meter.refused("no tool\n", "R101")
    text = meter.text([]).decode()
    assert 'tcc_calls_total{tool="odd\\"name\\\\",outcome="done"} 1' in text
    assert 'tool="unknown tool"' in text


@pytest.mark.parametrize(
    "options",
    [
        ("--http", "127.0.0.1:0", "--metrics", "0.0.0.0:9", "--", "x"),
        ("--metrics", "127.0.0.1:9", "--", "x"),
        ("--share-server", "--", "x"),
    ],
)
def test_what_does_not_go_together(
    tmp_path: Path,
    artifact: Path,
    options: tuple[str, ...],
) -> None:
    ended = tcc("gate", str(artifact), "--store", str(tmp_path / "s"), *options, env=environment())
    assert ended.returncode == 2 and "--" in ended.stderr
