"""What passes a gate unread: resources and prompts, where the grammar says so, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import tcc as library
from tests.mcp.sdk import listening, parameters
from tests.mcp.speaking import Relayed, serving, tcc
from tests.mcp.test_http import KEYS, Web, pem, signed, web

TEXT = """grammar cases version "1"

tool open_case(id: text max 20)
tool refund(id: text max 20, amount: integer 0 .. 100)

limit depth <= 9
before refund require open_case(same id)
"""


def compiled(folder: Path, passed: str = "resources, prompts", text: str = TEXT) -> Path:
    path = folder / "cases.tcca"
    library.save(library.compile_text(text + (f"pass {passed}\n" if passed else "")), path)
    return path


def talk(
    folder: Path,
    artifact: Path,
    mode: str,
    say: Callable[[Client], Awaitable[None]],
    *options: str,
    **callbacks: Any,
) -> None:
    """Let the SDK's client talk to a gate; by default before the SDK's server over stdio."""
    offering = ("--", *serving("offering.py"))
    is_said = "--" in options or "--server" in options
    behind = options if is_said else (*options, *offering)

    async def whole() -> None:
        started = parameters(
            *("gate", str(artifact), "--ledger", str(folder / "s.ledger"), *behind),
            EXECUTED=str(folder / "executed"),
        )
        async with Client(stdio_client(started), mode=mode, **callbacks) as client:
            await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the SDK's server."""
    with listening(tmp_path_factory.mktemp("served"), "offering.py") as (_, url):
        yield url


async def look_around(client: Client, *, wrongly: bool = True) -> None:
    """What passes, asked for with the SDK's client; at last what there is not, which it logs."""
    listed = (await client.list_resources()).resources
    assert [str(one.uri) for one in listed] == ["file:///rules.txt"]
    templates = (await client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in templates] == ["case://{id}"]
    read = (await client.read_resource("file:///rules.txt")).contents
    assert [one.text for one in read] == ["é is allowed"]  # type: ignore[union-attr]
    read = (await client.read_resource("case://c-1")).contents
    assert [one.text for one in read] == ["case c-1"]  # type: ignore[union-attr]
    prompts = (await client.list_prompts()).prompts
    assert [one.name for one in prompts] == ["apology"]
    got = await client.get_prompt("apology", {"name": "Ann"})
    assert got.messages[0].content.text == "Sorry, Ann."  # type: ignore[union-attr]
    if wrongly:
        for wrong in (client.read_resource("file:///other"), client.get_prompt("none")):
            with pytest.raises(MCPError):
                await wrong
    with pytest.raises(MCPError, match="no such method"):
        await client.complete(  # type: ignore[call-arg]
            {"type": "ref/prompt", "name": "apology"},  # type: ignore[arg-type]
            {"name": "name", "value": "A"},
        )


# Who speaks one form of the protocol to a client, and the other to a server.
CROSSED = [("legacy", "2026-07-28"), ("auto", "handshake")]
STRAIGHT = [("legacy", "handshake"), ("auto", "2026-07-28")]


@pytest.mark.parametrize(
    ("way", "mode", "protocol"),
    [*[("stdio", *both) for both in CROSSED + STRAIGHT], *[("http", *both) for both in CROSSED]],
)
@pytest.mark.sampled(2)
def test_resources_and_prompts_pass_in_both_ways(
    tmp_path: Path, mode: str, protocol: str, way: str, served: str
) -> None:
    async def say(client: Client) -> None:
        told = client.server_capabilities
        assert told is not None and told.tools is not None
        assert told.resources is not None and told.prompts is not None
        assert told.completions is None and told.logging is None
        if mode != "legacy":
            assert not told.resources.subscribe and not told.resources.list_changed
        await look_around(client)
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    artifact = compiled(tmp_path)
    behind = ("--", served) if way == "http" else ()
    talk(tmp_path, artifact, mode, say, "--protocol", protocol, *behind)
    ledger = (tmp_path / "s.ledger").read_text()
    assert [json.loads(line)["kind"] for line in ledger.splitlines()] == [
        "session", "call", "outcome",
    ]  # fmt: skip
    assert all(word not in ledger for word in ("rules.txt", "apology", "Ann", "case://"))
    done = tcc("validate", str(tmp_path / "s.ledger"), "--artifact", str(artifact), "--json")
    asserted = json.loads(done.stdout)["asserted"]
    assert [one for one in asserted if one.startswith("passed: prompts, resources")]


@pytest.mark.parametrize(
    ("mode", "passed"),
    [("legacy", ""), ("auto", ""), ("legacy", "prompts"), ("auto", "resources")],
)
@pytest.mark.sampled(2)
def test_what_the_grammar_does_not_name_does_not_pass(
    tmp_path: Path, mode: str, passed: str
) -> None:
    async def say(client: Client) -> None:
        told = client.server_capabilities
        assert told is not None
        assert (told.resources is not None) is (passed == "resources")
        assert (told.prompts is not None) is (passed == "prompts")
        for part, asks in (
            ("resources", (client.list_resources, client.list_resource_templates)),
            ("prompts", (client.list_prompts,)),
        ):
            for ask in asks:
                if part == passed:
                    await ask()
                else:
                    with pytest.raises(MCPError, match="no such method"):
                        await ask()

    talk(tmp_path, compiled(tmp_path, passed), mode, say)


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@contextlib.contextmanager
def relayed(
    folder: Path, *options: str, offers: Any = None, passed: str = "resources, prompts"
) -> Iterator[Relayed]:
    env = {} if offers is None else {"OFFERS": json.dumps(offers)}
    with Relayed(folder, compiled(folder, passed), *options, server="telling.py", env=env) as found:
        yield found


def test_what_the_server_does_not_offer_is_not_told(tmp_path: Path) -> None:
    with relayed(tmp_path, offers={"prompts": {}, "logging": {}, "completions": {}}) as relay:
        assert relay.greet()["result"]["capabilities"] == {"tools": {}, "prompts": {}}
        assert relay.ask("resources/list")["error"]["code"] == -32601
        assert relay.ask("prompts/list")["result"] == {"asked": "prompts/list"}
        for method in ("completion/complete", "logging/setLevel", "prompts/other", "resources"):
            assert relay.ask(method, {})["error"]["code"] == -32601
        assert [name for name, _ in relay.executed] == ["prompts/list"]


def test_subscriptions_and_word_of_them_pass_to_clients_of_the_handshake(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        told = relay.greet()["result"]["capabilities"]
        assert told == {
            "tools": {},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
        }
        assert relay.ask("resources/subscribe", {"uri": "a"})["result"] == {}
        assert relay.hear() == {
            "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a"},
        }  # fmt: skip
        assert relay.ask("resources/unsubscribe", {"uri": "a"})["result"] == {}
        relay.hear()
        relay.ask("resources/read", {"uri": "tells"})
        heard = [(one["method"], one["params"]) for one in relay.aside]
        assert heard == [
            ("notifications/resources/updated", {"uri": "file:///a"}),
            ("notifications/resources/list_changed", {}),
            ("notifications/prompts/list_changed", {}),
        ]


@pytest.mark.parametrize(
    ("offers", "passed", "heard"),
    [
        ({"resources": {"listChanged": True}, "prompts": {}}, "resources, prompts",
         ["notifications/resources/list_changed"]),
        ({"resources": {"subscribe": 1}}, "resources", []),
        ({"resources": {}, "prompts": {"listChanged": True}}, "resources", []),
        ({"resources": {}, "prompts": {"listChanged": True}}, "resources, prompts",
         ["notifications/prompts/list_changed"]),
    ],
)  # fmt: skip
@pytest.mark.sampled(2)
def test_word_of_what_was_not_told_does_not_pass(
    tmp_path: Path, offers: Any, passed: str, heard: list[str]
) -> None:
    with relayed(tmp_path, offers=offers, passed=passed) as relay:
        relay.greet()
        assert relay.ask("resources/subscribe", {"uri": "a"})["error"]["code"] == -32601
        relay.ask("resources/read", {"uri": "tells"})
        assert [one["method"] for one in relay.aside] == heard


def test_a_client_without_a_handshake_hears_nothing_by_itself(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        found = relay.ask("server/discover", {"_meta": ENVELOPE})["result"]
        assert found["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
        for method in ("resources/subscribe", "subscriptions/listen"):
            asked = {"uri": "a", "notifications": {}, "_meta": ENVELOPE}
            assert relay.ask(method, asked)["error"]["code"] == -32601
        read = relay.ask("resources/read", {"uri": "tells", "_meta": ENVELOPE})["result"]
        assert read["contents"] == [{"uri": "tells", "text": "x"}]
        assert (read["resultType"], read["ttlMs"], read["cacheScope"]) == ("complete", 0, "private")
        got = relay.ask("prompts/get", {"name": "p", "_meta": ENVELOPE})["result"]
        assert got["asked"] == "prompts/get" and "ttlMs" not in got
        assert relay.aside == []
        assert relay.executed[0] == ("resources/read", {"uri": "tells"})  # no envelope goes along


def test_what_passes_is_as_it_was_written(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        relay.greet()
        relay.post({"id": 50, "method": "resources/read", "params": {"uri": "exact"}})
        line = b""
        while b"\n" not in line:
            line += os.read(relay.process.stdout.fileno(), 1 << 16)  # type: ignore[union-attr]
        assert line == b'{"jsonrpc":"2.0","id":50,"result":{"contents":[],"n":1.10}}\n'
        sent = {"uri": "a", "more": [1, 1.5, {"é": None}], "_meta": {"x": 1, "progressToken": "t"}}
        relay.ask("resources/read", sent)
        name, params = relay.executed[-1]
        meta = params.pop("_meta")
        assert (name, params) == ("resources/read", {k: sent[k] for k in ("uri", "more")})
        assert meta.keys() == {"progressToken"} and meta["progressToken"] != "t"
        # What the server would get otherwise than it was written is not passed on.
        before = len(relay.executed)
        deep: Any = "x"
        for _ in range(100):
            deep = [deep]
        for wrong in ({"n": deep},):
            assert relay.ask("resources/read", {"uri": "a", **wrong})["error"]["code"] == -32602
        relay.send(
            b'{"jsonrpc":"2.0","id":60,"method":"resources/read","params":{"n":0.1000000000000000055}}\n'
        )
        assert relay.answer_to(60)["error"]["code"] == -32602
        assert len(relay.executed) == before


@pytest.mark.parametrize(
    ("uri", "code"),
    [("error", -32002), ("input", -32603), ("number", -32603), ("twins", -32603)],
)
@pytest.mark.sampled(2)
def test_an_answer_that_is_none_is_an_error(tmp_path: Path, uri: str, code: int) -> None:
    with relayed(tmp_path) as relay:
        relay.greet()
        error = relay.ask("resources/read", {"uri": uri})["error"]
        assert error["code"] == code
        if uri == "error":
            assert error["message"] == "no such thing"
        assert relay.ask("resources/read", {"uri": "twice"})["result"]["contents"]
        assert relay.call("open_case", id="c-1") == {"content": []}
    assert [one["kind"] for one in relay.records] == ["session", "call", "outcome"]


def test_a_large_answer_passes_and_one_beyond_the_limit_does_not(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        relay.greet()
        large = relay.ask("resources/read", {"uri": "huge:9000000"})["result"]
        assert len(large["contents"][0]["text"]) == 9_000_000
        assert relay.ask("resources/read", {"uri": "huge:17000000"})["error"]["code"] == -32603
        assert relay.call("open_case", id="c-1") == {"content": []}


def test_requests_that_pass_are_bounded_given_up_and_cancelled(tmp_path: Path) -> None:
    with relayed(tmp_path, "--deadline", "3") as relay:
        relay.greet()
        for number in range(64):
            relay.post({"id": 100 + number, "method": "resources/read", "params": {"uri": "hang"}})
        full = relay.ask("resources/read", {"uri": "a"})
        assert full["error"]["code"] == -32000
        relay.post({"id": 100, "method": "resources/read", "params": {"uri": "a"}})
        assert relay.answer_to(100)["error"]["message"] == "a request has this id already"
        relay.post({"id": 101, "method": "tools/call", "params": {"name": "open_case"}})
        assert relay.answer_to(101)["error"]["message"] == "a call has this id already"
        relay.cancel(102)
        assert relay.ask("resources/read", {"uri": "a"})["result"]["contents"]
        # Calls wait for none of them, and none of them for the session.
        assert relay.call("open_case", id="c-1") == {"content": []}
        gone = {
            relay.answer_to(100 + number)["error"]["code"] for number in range(64) if number != 2
        }
        assert gone == {-32603}
        assert not any(one.get("id") == 102 for one in relay.aside)
        relay.ask("resources/read", {"uri": "a"})  # the server has read what came before
        cancelled = [name for name, _ in relay.executed].count("notifications/cancelled")
        assert cancelled == 64
        assert relay.ping_ms() < 1000
    assert [one["kind"] for one in relay.records] == ["session", "call", "outcome"]


def test_what_passes_waits_for_no_call_and_progress_goes_to_who_asked(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        relay.greet()
        asked = {"uri": "progress", "_meta": {"progressToken": "mine"}}
        assert relay.ask("resources/read", asked)["result"]["contents"]
        assert [one["params"]["progressToken"] for one in relay.aside] == ["mine"]


def test_requests_that_come_early_and_those_at_the_end_are_answered(tmp_path: Path) -> None:
    with relayed(tmp_path) as relay:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        relay.post({"id": 1, "method": "initialize", "params": hello})
        relay.post({"id": 2, "method": "resources/list"})
        relay.post({"id": 3, "method": "resources/read", "params": {"uri": "hang"}})
        relay.answer_to(1)
        assert relay.answer_to(2)["result"] == {"asked": "resources/list"}
        relay.stop_seconds()
        assert relay.answer_to(3)["error"]["code"] == -32603


@contextlib.contextmanager
def before(
    folder: Path, server: str, passed: str = "resources, prompts", *, known: bool
) -> Iterator[Web]:
    """A gate over HTTP; where principals are known, those of one key."""
    (folder / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(folder / "k"), "--jwt-audience", "desk") if known else ()
    with web(folder, compiled(folder, passed), *options, server=server) as found:
        yield found


@pytest.mark.parametrize(("mode", "protocol"), CROSSED)
def test_resources_and_prompts_pass_over_http(tmp_path: Path, mode: str, protocol: str) -> None:
    async def talk_to(url: str) -> None:
        bearer = {"Authorization": f"Bearer {signed()}"}
        async with httpx2.AsyncClient(headers=bearer, timeout=60) as web_client:
            transport = streamable_http_client(url, http_client=web_client)
            async with Client(transport, mode=mode) as client:
                told = client.server_capabilities
                assert told is not None and told.resources is not None and told.prompts is not None
                assert not told.resources.subscribe and not told.resources.list_changed
                await look_around(client, wrongly=False)
                assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk", "--protocol", protocol)
    with web(tmp_path, compiled(tmp_path), *options, server="offering.py") as found:
        asyncio.run(asyncio.wait_for(talk_to(found.url), 60))
        kinds = [json.loads(line)["kind"] for line in found.ledgers()[0].read_text().splitlines()]
        assert kinds == ["session", "call", "outcome"]


def test_over_http_there_are_no_subscriptions_and_headers_name_what_is_read(tmp_path: Path) -> None:
    with before(tmp_path, "telling.py", known=True) as found:
        token = signed()
        bearer = {"Authorization": f"Bearer {token}"}
        status, told = found.modern("server/discover", token)
        assert told["result"]["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
        handle = found.greet(**bearer)
        ask = {"jsonrpc": "2.0", "id": "s", "method": "resources/subscribe", "params": {"uri": "a"}}
        assert json.loads(found.ask(ask, handle, **bearer)[2])["error"]["code"] == -32601
        for wrong in ({}, {"Mcp_Name": "file:///b"}, {"Mcp_Name": "=?base64?!?="}):
            status, told = found.modern("resources/read", token, {"uri": "file:///a"}, **wrong)
            assert (status, told["error"]["code"]) == (400, -32020), wrong
        status, told = found.modern(
            "resources/read", token, {"uri": "é"}, Mcp_Name="=?base64?w6k=?="
        )
        assert status == 200 and told["id"] == 3
        assert told["result"]["contents"] == [{"uri": "é", "text": "x"}]
        status, told = found.modern("prompts/get", token, {"name": "p"})
        assert status == 200 and told["result"]["asked"] == "prompts/get"
        # Word of the server's own goes to nobody, and who is not known reads nothing.
        status, told = found.modern("resources/read", token, {"uri": "tells"}, Mcp_Name="tells")
        assert status == 200 and told["result"]["contents"]
        read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "a"}}
        assert found.ask(read)[0] == 401
        assert found.ask(read, handle, Authorization=f"Bearer {signed(sub='bob')}")[0] == 404


def test_over_http_the_progress_of_what_passes_is_streamed(tmp_path: Path) -> None:
    with before(tmp_path, "telling.py", known=False) as found:
        handle = found.greet()
        params = {"uri": "progress", "_meta": {"progressToken": "mine"}}
        read = {"jsonrpc": "2.0", "id": "r", "method": "resources/read", "params": params}
        status, told, body = found.ask(read, handle)
        assert status == 200 and told["content-type"] == "text/event-stream"
        lines = body.decode().splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert [one.get("params", {}).get("progressToken") for one in events] == ["mine", None]
        assert events[-1]["id"] == "r" and events[-1]["result"]["contents"]
        assert found.ledgers() == [] or "progress" not in found.ledgers()[0].read_text()


def test_several_servers_and_what_passes_exclude_each_other(tmp_path: Path) -> None:
    bound = TEXT.replace("20)", '20) { bind mcp "a" "open_case" }', 1).replace(
        "100)", '100) { bind mcp "a" "refund" }'
    )
    artifact = compiled(tmp_path, "prompts, input", bound)
    server = f"a={shlex.join(serving('offering.py'))}"
    done = tcc("gate", str(artifact), "--ledger", str(tmp_path / "l"), "--server", server)
    assert done.returncode == 2 and "pass prompts" in done.stderr
    assert not (tmp_path / "l").exists()


def test_a_client_that_waited_long_for_a_resource_is_not_idle(tmp_path: Path) -> None:
    options = ("--idle", "1", "--deadline", "1.7")
    with Relayed(tmp_path, compiled(tmp_path), *options, server="telling.py") as relay:
        relay.greet()
        assert relay.ask("resources/read", {"uri": "hang"})["error"]
        time.sleep(0.3)
        assert relay.ask("ping")["result"] == {}
