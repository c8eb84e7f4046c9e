"""Several servers behind one gate: bound by name, away and back, from a client's configuration."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import stat
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

import tcc as library
from tcc_runtime.errors import ServerError
from tcc_runtime.mcp.links.fan_out import Servers
from tcc_runtime.mcp.links.http_client import Remote
from tcc_runtime.mcp.links.stdio import Program
from tests.mcp.behind import Behind, pause
from tests.mcp.odd import Odd
from tests.mcp.sdk import parameters
from tests.mcp.speaking import judged, serving, tcc

TWO = """grammar two version "1"

tool open_case(id: text ~ "c-[0-9]{1,4}") { bind mcp "desk" "open_case" }
tool act(kind: safe | risky, how: text max 40, id: text ~ "c-[0-9]{1,4}") { bind mcp "yard" "act" }
tool remove(id: text, how?: text) { bind mcp "yard" "delete_case" }

limit depth <= 30
before act require open_case(same id)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "two.tcca"
    library.save(library.compile_text(TWO), path)
    return path


def server(name: str, *, pid: Path | None = None, file: str = "official.py") -> list[str]:
    """An option for a server, which notes its process where it is asked to."""
    command = shlex.join(serving(file))
    if pid is not None:
        command = f"sh -c 'echo $$ > {pid}; exec {command}'"
    return ["--server", f"{name}={command}"]


def talk(folder: Path, artifact: Path, say: Callable[[Any], Awaitable[None]], *more: str) -> None:
    """Let the SDK's client talk to a gate before several servers."""

    async def whole() -> None:
        started = parameters(
            *("gate", str(artifact), "--ledger", str(folder / "l"), *more),
            EXECUTED=str(folder / "executed"),
        )
        async with Client(stdio_client(started), mode="auto") as client:
            await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))


def executed(folder: Path) -> list[str]:
    path = folder / "executed"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["name"] for line in lines]


def test_a_statement_spans_two_servers(tmp_path: Path, two: Path) -> None:
    async def say(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["act", "open_case", "remove"]
        given = {"kind": "safe", "how": "x", "id": "c-1"}
        refused = await client.call_tool("act", given)
        assert (refused.structured_content or {})["code"] == "R202"
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        done = await client.call_tool("act", given)
        assert done.content[0].text == "x"  # type: ignore[union-attr]
        assert not (await client.call_tool("remove", {"id": "c-1"})).is_error

    talk(tmp_path, two, say, *server("desk"), *server("yard"))
    # The names of the servers are theirs, those of the ledger are the grammar's.
    assert executed(tmp_path) == ["open_case", "act", "delete_case"]
    assert judged(tmp_path / "l", two).verdict != 1


def test_a_server_that_dies_takes_its_tools_away_and_brings_them_back(
    tmp_path: Path, two: Path
) -> None:
    pid = tmp_path / "pid"

    async def say(client: Client) -> None:
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        before = [tool.name for tool in (await client.list_tools()).tools]
        os.kill(int(pid.read_text()), signal.SIGKILL)
        until = time.monotonic() + 20
        refused = None
        while refused is None and time.monotonic() < until:
            with suppress(MCPError):  # it was under way: unknown
                found = await client.call_tool("remove", {"id": "c-1"})
                if found.is_error:
                    refused = found.structured_content or {}
        assert refused is not None
        assert refused["code"] == "R307"
        assert not (await client.call_tool("open_case", {"id": "c-2"})).is_error
        assert [tool.name for tool in (await client.list_tools()).tools] == before
        while (await client.call_tool("remove", {"id": "c-1"})).is_error:
            assert time.monotonic() < until
            await asyncio.sleep(0.1)

    talk(tmp_path, two, say, *server("desk"), *server("yard", pid=pid))
    assert judged(tmp_path / "l", two).verdict != 1


def test_a_server_that_is_missing_is_refused_and_the_rest_goes_on(
    tmp_path: Path, two: Path
) -> None:
    async def say(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 3
        refused = await client.call_tool("remove", {"id": "c-1"})
        told = refused.structured_content or {}
        assert (refused.is_error, told["code"]) == (True, "R307")
        assert "the server yard is away" in refused.content[0].text  # type: ignore[union-attr]
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    talk(tmp_path, two, say, *server("desk"), "--server", "yard=/no/such/program")
    records = [json.loads(line) for line in (tmp_path / "l").read_bytes().splitlines()]
    kinds = [(one["kind"], one.get("code")) for one in records]
    assert ("refusal", "R307") in kinds
    assert executed(tmp_path) == ["open_case"]
    assert judged(tmp_path / "l", two).verdict != 1


def test_a_server_with_other_tools_than_were_locked_is_away(tmp_path: Path, two: Path) -> None:
    config, lock = tmp_path / "mcp.json", tmp_path / "tools.lock"
    config.write_text(json.dumps({"mcpServers": {"desk": {"command": "x"}}}))
    lock.write_text(
        json.dumps(
            {
                "format": "tcc.tools_lock",
                "format_version": "1.0",
                "tools": dict.fromkeys(("open_case", "act", "remove"), "0" * 64),
            }
        )
    )
    ended = tcc(
        *("gate", str(two), "--ledger", str(tmp_path / "l"), "--lock", str(lock)),
        *(*server("desk"), *server("yard")),
    )
    assert (ended.returncode, "is not the one that was locked" in ended.stderr) == (2, True)
    assert not (tmp_path / "l").exists()


CHANGES = """import json, sys
tools = [{"name": "t", "inputSchema": {"type": "object"}}]
def say(*messages):
    sys.stdout.write("".join(json.dumps({"jsonrpc": "2.0", **one}) + "\\n" for one in messages))
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    method, to = asked["method"], {"id": asked.get("id")}
    if method == "initialize":
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        say({**to, "result": told})
    elif method == "tools/list":
        say({**to, "result": {"tools": tools}})
    elif method == "tools/call":
        n = asked["params"]["arguments"]["n"]
        print(n, file=open(sys.argv[1], "a"))
        changed = {"method": "notifications/tools/list_changed"}
        if n == 2:
            tools[0]["description"] = "another one"
        say(changed, {**to, "result": {"content": []}}, *[changed] * (n == 2))
"""


def fan_out(targets: dict[str, Any], tools: dict[str, tuple[str, str]], **more: Any) -> Behind:
    told: dict[str, Any] = {"locked": None, "seconds": 10, "protocol": "handshake", **more}
    return Behind(Servers(targets=targets, tools=tools, version="0", **told))


def test_no_call_is_sent_while_it_is_in_doubt_whether_tools_are_those(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(CHANGES)
    ran = tmp_path / "ran"
    command = [sys.executable, str(tmp_path / "s.py"), str(ran)]
    with fan_out({"a": Program(command=command)}, {"t": ("a", "t")}) as behind:
        behind.tools()
        assert behind.answer(behind.call(n=1)).error is None
        # Held until the list was looked at, and then sent.
        assert behind.answer(behind.call(n=2)).error is None
        last = behind.answer(behind.call(n=3))
        assert last.error is not None and last.unsent
        assert "is not the one that was locked" in last.error[1]
    assert ran.read_text().split() == ["1", "2"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_announces_a_change_at_every_list_holds_no_call(
    tmp_path: Path, when: str
) -> None:
    changed = 'say({"method": "notifications/tools/list_changed"})'
    listed = '        say({**to, "result": {"tools": tools}})'
    around = f"        {changed}\n{listed}" if when == "before" else f"{listed}\n        {changed}"
    noted = '        print("list", file=open(sys.argv[1], "a"))\n'
    restless = CHANGES.replace(listed, noted + around).replace("n == 2", "False")
    (tmp_path / "s.py").write_text(restless)
    ran = tmp_path / "ran"
    command = [sys.executable, str(tmp_path / "s.py"), str(ran)]
    with fan_out({"a": Program(command=command)}, {"t": ("a", "t")}) as behind:
        behind.tools()
        for number in range(5):
            assert behind.answer(behind.call(n=number)).error is None
        calls = [behind.call(n=number) for number in range(5, 10)]
        assert all(behind.answer(call).error is None for call in calls)
        pause(0.2)
    lines = ran.read_text().split()
    assert [line for line in lines if line != "list"] == [str(number) for number in range(10)]
    assert lines.count("list") <= 1 + 10, "at most one list at the start and one for each call"


HUGE = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    told = {
        "initialize": '{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}',
        "tools/list": '{"tools": [{"name": "t", "inputSchema": {"most": 1e999, "least": -1e999}}]}',
        "tools/call": '{"content": []}',
    }.get(asked["method"])
    if asked["method"] == "tools/call":
        token = asked["params"]["_meta"]["progressToken"]
        params = '{"progressToken": %s, "progress": 1e999}' % token
        print('{"jsonrpc": "2.0", "method": "notifications/progress", "params": %s}' % params)
    if told:
        print('{"jsonrpc": "2.0", "id": %s, "result": %s}' % (asked["id"], told), flush=True)
"""


def test_a_number_beyond_all_floats_takes_no_server_away(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(HUGE)
    program = Program(command=[sys.executable, str(tmp_path / "s.py")])
    with fan_out({"a": program}, {"t": ("a", "t")}) as behind:
        schema = behind.tools()[0]["inputSchema"]
        most = sys.float_info.max
        assert (float(schema["most"]), float(schema["least"])) == (most, -most)
        meta = {"progressToken": behind.server.next_identity}
        sent = behind.request("tools/call", {"name": "t", "arguments": {}, "_meta": meta})
        assert behind.answer(sent).error is None


def test_a_server_that_does_not_read_is_sent_no_further_call(tmp_path: Path) -> None:
    call = '    elif method == "tools/call":'
    deaf = CHANGES.replace(call, f"        import time; time.sleep(60)\n{call}")
    (tmp_path / "s.py").write_text(deaf)
    program = Program(command=[sys.executable, str(tmp_path / "s.py")])
    with fan_out({"a": program}, {"t": ("a", "t")}) as behind:
        behind.call(n="x" * (3 << 20))
        answer = behind.answer(behind.call(n="x" * (3 << 20)))
        assert answer.error is not None and answer.unsent
        assert answer.error[1] == "it does not read what was sent to it"


def test_tools_that_were_seen_before_have_to_be_those(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(CHANGES)
    command = [sys.executable, str(tmp_path / "s.py"), str(tmp_path / "ran")]
    with pytest.raises(ServerError, match="is not the one that was locked"):
        fan_out({"a": Program(command=command)}, {"t": ("a", "t")}, seen={"t": "0" * 64})


def test_a_call_to_a_url_that_is_not_reached_was_not_sent() -> None:
    odd = Odd()
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    odd.how["tools/list"] = lambda to, body: to.result(body, {"tools": [tool]})
    with fan_out({"a": Remote(url=odd.url, seconds=10)}, {"t": ("a", "t")}) as behind:
        assert behind.answer(behind.call(n=1)).error is None
        odd.close()
        for n in (2, 3):  # not reached; then it is away
            answer = behind.answer(behind.call(n=n))
            assert answer.error is not None and answer.unsent
            assert answer.error[1] == "it cannot be reached"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "desk=x"], "is bound to 'yard': give --server"),
        (["--server", "desk"], "is no NAME=URL or NAME=COMMAND"),
        (["--server", "desk=x", "--server", "desk=y"], "'desk' is given twice"),
        (["--server", "desk=http://example.org/mcp"], "http is for servers on this machine"),
        (["--server", "desk=https://u:p@example.org/"], "use --upstream-header"),
        (["--server", "desk=sh -c 'x"], "No closing quotation"),
        (["--server", "desk=x", "--", "y"], "exclude each other"),
        (["--upstream-header", "X=plain", "--", "https://h/"], "is no NAME=env:VAR"),
        (["--upstream-header", "X=env:NO_SUCH", "--", "https://h/"], "no variable NO_SUCH"),
        (["--upstream-header", "Mcp-Name=env:PATH", "--", "https://h/"], "made from the message"),
        (["--upstream-header", "X=env:PATH", "--", "server"], "is for a server behind a URL"),
    ],
)
@pytest.mark.sampled(4)
def test_wrong_options_are_refused(
    tmp_path: Path, two: Path, options: list[str], said: str
) -> None:
    ended = tcc("gate", str(two), "--ledger", str(tmp_path / "l"), *options)
    assert (ended.returncode, said in " ".join(ended.stderr.split())) == (2, True), ended.stderr
    assert not (tmp_path / "l").exists()


def test_a_configuration_is_imported_and_rewritten(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    command, *arguments = serving("official.py")
    secret = {"EXECUTED": str(tmp_path / "executed"), "TOKEN": "s3cret"}
    servers = {
        name: {"command": command, "args": arguments, "env": secret} for name in ("desk", "yard")
    }
    config.write_text(json.dumps({"mcpServers": servers}))
    grammar, out = tmp_path / "g.tcg", tmp_path / "out.json"
    import_it = ("import", "mcp", "--config", str(config), "-o", str(grammar))
    done = tcc(*import_it, "--rewrite", str(out))
    assert done.returncode == 0, done.stderr
    assert f"starts desk: {command}" in done.stderr
    text = grammar.read_text("ascii")
    assert "tool desk_open_case" in text
    assert 'bind mcp "yard" "delete_case"' in text
    assert "s3cret" not in text + out.read_text() + done.stderr + done.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    told = json.loads(out.read_text())["mcpServers"]
    assert list(told) == ["tcc"]
    assert told["tcc"]["args"][-2:] == ["--servers", str(config)]
    again = tcc(*import_it, "--overwrite", "--rewrite", str(config))
    assert (again.returncode, "is what is read" in again.stderr) == (2, True)
    assert json.loads(config.read_text()) == {"mcpServers": servers}

    async def whole() -> None:
        async with Client(stdio_client(parameters(*told["tcc"]["args"])), mode="auto") as client:
            for name in ("desk_open_case", "yard_open_case"):
                assert not (await client.call_tool(name, {"id": "c-1"})).is_error

    asyncio.run(asyncio.wait_for(whole(), 60))
    assert executed(tmp_path) == ["open_case", "open_case"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("[]", "has no servers"),
        ('{"mcpServers": {}}', "has no servers"),
        ('{"mcpServers": {"a": 1}}', "server 'a' is no object"),
        ('{"mcpServers": {"a": {"url": "http://h/", "command": "x"}}}', "one of the members"),
        ('{"mcpServers": {"a": {"url": "file:///x"}}}', "no URL of http or https"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "args are texts"),
        ('{"mcpServers": {"a": {"command": "x", "shell": true}}}', "unknown member 'shell'"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "stands twice"),
        ('{"mcpServers": {"a": {"url": "https://h/", "headers": {"Host": "x"}}}}', "header Host"),
    ],
)
@pytest.mark.sampled(4)
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, document: str, said: str) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(document)
    ended = tcc("import", "mcp", "--config", str(config))
    assert (ended.returncode, said in " ".join(ended.stderr.split())) == (2, True), ended.stderr
