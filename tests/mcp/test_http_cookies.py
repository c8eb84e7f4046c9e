"""`tcc gate --http` and clients of 2026-07-28: a cookie names the session of each."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from tests.mcp.speaking import GRAMMAR
from tests.mcp.test_http import CAPABILITIES, JSON, KEYS, VERSION, Web, pem, signed, web
from tests.mcp.test_passing import compiled as passing, look_around

MODERN = "2026-07-28"
AGAIN = "tcc:with-cookie"
OPEN = {"name": "open_case", "arguments": {"id": "c-1"}}
DELETE = {"name": "delete_case", "arguments": {"id": "c-1"}}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import tcc

    path = tmp_path_factory.mktemp("cookies") / "cases.tcca"
    tcc.save(tcc.compile_text(GRAMMAR), path)
    return path


def executed(found: Web) -> list[str]:
    if not found.executed_in.exists():
        return []
    return [json.loads(line)["name"] for line in found.executed_in.read_text().splitlines()]


# The SDK as client.


def talk(url: str, *says: Callable[[Client], Awaitable[None]]) -> None:
    """Clients of the SDK that speak 2026-07-28 and nothing else, one after the other."""

    async def whole() -> None:
        for say in says:
            async with Client(url, mode=MODERN) as client:
                await say(client)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_each_client_of_the_sdk_has_a_session_of_its_own(tmp_path: Path, compiled: Path) -> None:
    async def first(client: Client) -> None:
        assert (await client.call_tool("delete_case", {"id": "c-1"})).is_error
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        listed = (await client.list_tools()).tools
        assert [one.name for one in listed] == ["act", "delete_case", "open_case", "run_tests"]
        assert not (await client.call_tool("delete_case", {"id": "c-1"})).is_error
        assert (await client.call_tool("delete_case", {"id": "c-1"})).is_error

    async def second(client: Client) -> None:
        refused = await client.call_tool("delete_case", {"id": "c-1"})
        assert refused.is_error and "R202" in str(refused.content)
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    with web(tmp_path, compiled, server="official.py") as found:
        talk(found.url, first, second)
        assert executed(found) == ["open_case", "delete_case", "open_case"]
        assert len(found.ledgers()) == 2
        assert set(found.verdicts()) <= {"Conformant", "ConformantPrefix"}


def test_clients_of_the_sdk_under_the_name_localhost(tmp_path: Path, compiled: Path) -> None:
    async def say(client: Client) -> None:
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
        assert not (await client.call_tool("delete_case", {"id": "c-1"})).is_error

    with web(tmp_path, compiled, server="official.py") as found:
        talk(f"http://localhost:{found.port}/mcp", say)
        assert len(found.ledgers()) == 1


def test_first_calls_at_once_begin_one_session(tmp_path: Path) -> None:
    import tcc

    text = GRAMMAR + "limit count(open_case) <= 1\n"
    tcc.save(tcc.compile_text(text), tmp_path / "a.tcca")

    async def say(client: Client) -> None:
        calls = [client.call_tool("open_case", {"id": f"c-{number}"}) for number in range(12)]
        results = await asyncio.gather(*calls)
        assert sorted(result.is_error or False for result in results) == [False] + [True] * 11
        assert (await client.call_tool("open_case", {"id": "c-99"})).is_error

    with web(tmp_path, tmp_path / "a.tcca", server="official.py") as found:
        talk(found.url, say)
        assert executed(found) == ["open_case"] and len(found.ledgers()) == 1


def test_a_client_of_the_sdk_without_cookies_makes_no_call(tmp_path: Path, compiled: Path) -> None:
    """It is refused, and not given a session for each call; by the handshake it has one."""

    async def whole(url: str, mode: str) -> str:
        async with create_mcp_http_client() as forgetful:
            forgetful.cookies.jar.set_policy(_Forgetful())
            transport = streamable_http_client(url, http_client=forgetful)
            async with Client(transport, mode=mode) as client:
                try:
                    found = await client.call_tool("open_case", {"id": "c-1"})
                except MCPError as error:
                    return str(error)
                return str(found.is_error or False)

    with web(tmp_path, compiled, server="official.py") as found:
        assert "returns no cookie" in asyncio.run(whole(found.url, MODERN))
        assert executed(found) == [] and found.ledgers() == []
        assert asyncio.run(whole(found.url, "auto")) == "False"


class _Forgetful:
    """A policy of a cookie jar that keeps and returns nothing."""

    netscape, rfc2965, hide_cookie2 = True, False, False

    def set_ok(self, cookie: object, request: object) -> bool:
        return False

    def return_ok(self, cookie: object, request: object) -> bool:
        return False

    def domain_return_ok(self, domain: object, request: object) -> bool:
        return False

    def path_return_ok(self, path: object, request: object) -> bool:
        return False


def test_what_passes_passes_to_clients_of_the_sdk(tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        await look_around(client, wrongly=False)
        assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error

    with web(tmp_path, passing(tmp_path), server="offering.py") as found:
        talk(found.url, say)
        assert len(found.ledgers()) == 1


# What a cookie is.


def ask(
    found: Web,
    params: Mapping[str, Any],
    cookies: Mapping[str, str] | None = None,
    *,
    method: str = "tools/call",
    **headers: str,
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """A request of 2026-07-28: status, answer, and the cookies that it sets (empty: takes away)."""
    meta = {VERSION: MODERN, CAPABILITIES: {}}
    message = {"jsonrpc": "2.0", "id": 3, "method": method, "params": {**params, "_meta": meta}}
    told = {**JSON, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        told["Mcp-Name"] = str(params["name"])
    if cookies:
        told["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", found.port, timeout=20)
    try:
        connection.request("POST", "/mcp", json.dumps(message).encode(), told)
        answer = connection.getresponse()
        body: dict[str, Any] = json.loads(answer.read() or b"{}")
    finally:
        connection.close()
    given = {}
    for line in answer.headers.get_all("Set-Cookie") or []:
        name, _, rest = line.partition("=")
        value, *attributes = rest.split("; ")
        assert {"Path=/mcp", "HttpOnly", "SameSite=Strict"} <= set(attributes)
        assert bool(value) is not ("Max-Age=0" in attributes)
        given[name] = value
    return answer.status, body, given


def begun(found: Web, **headers: str) -> dict[str, str]:
    """The cookie of a client whose session has begun with `open_case`."""
    status, told, first = ask(found, OPEN, **headers)
    assert (status, told["result"]["resultType"]) == (200, "input_required")
    assert told["result"]["requestState"] == AGAIN
    status, told, given = ask(found, {**OPEN, "requestState": AGAIN}, first, **headers)
    assert status == 200 and not told["result"].get("isError"), told
    [session] = [value for name, value in given.items() if name == "tcc-session"]
    assert given == {"tcc-session": session, **dict.fromkeys(first, "")}
    return {"tcc-session": session}


def is_made(answer: tuple[int, dict[str, Any], dict[str, str]]) -> bool:
    status, told, _ = answer
    return status == 200 and "result" in told and not told["result"].get("isError")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web"), compiled) as found:
        yield found


def test_a_call_without_a_cookie_is_not_made_and_begins_nothing(
    tmp_path: Path, compiled: Path
) -> None:
    with web(tmp_path, compiled) as found:
        for _ in range(3):
            status, told, given = ask(found, OPEN)
            assert (status, told["result"]["resultType"], len(given)) == (200, "input_required", 1)
        # It asks again, and has not kept the cookie.
        status, told, given = ask(found, {**OPEN, "requestState": AGAIN})
        assert (status, told["error"]["code"], given) == (400, -32022, {})
        assert "returns no cookie" in told["error"]["message"]
        assert told["error"]["data"]["supported"][-1] == "2025-11-25"
        assert executed(found) == [] and found.ledgers() == []
        assert ask(found, {}, method="tools/list")[1]["result"]["tools"]


def test_a_cookie_that_was_not_given_here_opens_nothing(shared: Web) -> None:
    mine = begun(shared)["tcc-session"]
    before = executed(shared)
    flipped = ("B" if mine[0] == "A" else "A") + mine[1:]
    last = mine[:-1] + ("A" if mine[-1] != "A" else "E")
    for wrong in (flipped, last, mine[:-1], "A" * 43, "", "é", mine + "A", f'"{mine}"'):
        status, told, given = ask(shared, DELETE, {"tcc-session": wrong})
        assert (status, given) == (404, {}), wrong
        assert "session is over" in told["error"]["message"]
    # Two handles name no session, even if both were given here.
    both = f"tcc-session={mine}; tcc-session={begun(shared)['tcc-session']}"
    assert ask(shared, DELETE, Cookie=both)[0] == 404
    # A made-up nonce is none: the client is asked again, with a nonce of the gate's.
    made_up = {"tcc-begin-0000000000000000": "A" * 43}
    status, told, given = ask(shared, {**DELETE, "requestState": AGAIN}, made_up)
    assert told["result"]["resultType"] == "input_required" and len(given) == 1
    assert executed(shared) == [*before, "open_case"]
    assert is_made(ask(shared, DELETE, {"tcc-session": mine}))


def test_an_answer_of_another_client_is_of_no_use(shared: Web) -> None:
    """Neither its state nor the id of its session is what names it."""
    mine = begun(shared)
    path = max(shared.ledgers(), key=lambda one: one.stat().st_mtime_ns)
    for wrong in (path.stem, path.stem.replace("-", "")):
        assert ask(shared, DELETE, {"tcc-session": wrong})[0] == 404
    # The header of the older versions names nothing in this one.
    handle = mine["tcc-session"]
    _, told, _ = ask(shared, DELETE, Mcp_Session_Id=handle)
    assert told["result"]["resultType"] == "input_required"
    assert is_made(ask(shared, DELETE, mine))


def test_a_page_of_a_browser_has_no_session_by_cookie(shared: Web) -> None:
    """A browser shows the cookies of a host to all its ports."""
    mine = begun(shared)
    origin = {"Origin": f"http://127.0.0.1:{shared.port}"}
    for cookies in (mine, {}):
        status, told, given = ask(shared, DELETE, cookies, **origin)
        assert (status, told["error"]["code"], given) == (400, -32022, {})
    assert is_made(ask(shared, DELETE, mine))


@pytest.mark.parametrize("order", ["earlier first", "later first"])
def test_of_calls_at_once_all_nonces_name_one_session(shared: Web, order: str) -> None:
    """Two first calls: the later of the repeated ones shows the nonces of both."""
    count = len(shared.ledgers())
    one, two = ask(shared, OPEN)[2], ask(shared, OPEN)[2]
    assert set(one) != set(two)
    repeated = [one, {**one, **two}]
    sessions = set()
    for cookies in repeated if order == "earlier first" else reversed(repeated):
        answer = ask(shared, {**OPEN, "requestState": AGAIN}, cookies)
        assert is_made(answer)
        sessions.add(answer[2]["tcc-session"])
    assert is_made(ask(shared, DELETE, two))
    assert not is_made(ask(shared, DELETE, one))
    assert not is_made(ask(shared, DELETE, {"tcc-session": sessions.pop()}))
    assert sessions == set() and len(shared.ledgers()) == count + 1


def test_a_session_goes_on_after_a_restart(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled) as found:
        mine = begun(found)
        assert is_made(ask(found, DELETE, mine))
        begin = ask(found, OPEN)[2]
    with web(tmp_path, compiled) as found:
        status, told, _ = ask(found, DELETE, mine)
        assert status == 200 and "R202" in str(told)
        # A nonce of the process before names nothing: the client is asked again.
        _, told, given = ask(found, {**OPEN, "requestState": AGAIN}, begin)
        assert told["result"]["resultType"] == "input_required" and len(given) == 1
        assert len(found.ledgers()) == 1


def test_an_idle_session_is_over_and_is_not_replaced(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled, "--idle", "0.5") as found:
        mine = begun(found)
        until = time.monotonic() + 10
        while found.verdicts() != ["Conformant"]:
            assert time.monotonic() < until
            time.sleep(0.1)
        for _ in range(2):
            status, told, given = ask(found, DELETE, mine)
            assert (status, given) == (404, {}) and "session is over" in told["error"]["message"]
        assert executed(found) == ["open_case"]


# Which clients use the version.


def test_it_is_offered_to_whoever_shows_a_cookie(shared: Web) -> None:
    """Others have a session by the handshake, which SDKs fall back to."""
    offered = ask(shared, {}, method="server/discover")[1]["result"]["supportedVersions"]
    assert offered[-1] == "2025-11-25" and MODERN not in offered
    mine = begun(shared)
    offered = ask(shared, {}, mine, method="server/discover")[1]["result"]["supportedVersions"]
    assert offered == [MODERN]
    wrong = {"tcc-session": "A" * 43}
    offered = ask(shared, {}, wrong, method="server/discover")[1]["result"]["supportedVersions"]
    assert MODERN not in offered


def test_a_handle_of_the_handshake_is_one_for_a_cookie(shared: Web) -> None:
    """So a client that keeps no cookies can be configured with one."""
    mine = {"tcc-session": shared.greet()}
    offered = ask(shared, {}, mine, method="server/discover")[1]["result"]["supportedVersions"]
    assert offered == [MODERN]
    assert is_made(ask(shared, OPEN, mine)) and is_made(ask(shared, DELETE, mine))


def test_with_one_session_for_all_no_cookie_is_needed(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled) as found:
        begun(found)
        [path] = found.ledgers()
    with web(tmp_path, compiled, "--session", path.stem) as found:
        offered = ask(found, {}, method="server/discover")[1]["result"]["supportedVersions"]
        assert offered == [MODERN]
        answer = ask(found, DELETE)
        assert is_made(answer) and answer[2] == {}
        assert not is_made(ask(found, DELETE))
        assert found.ledgers() == [path]


def test_with_tokens_a_cookie_is_of_one_principal(tmp_path: Path, compiled: Path) -> None:
    """With `--session new` a principal has a session for each client."""
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk", "--session", "new")
    ann = {"Authorization": f"Bearer {signed(sub='ann')}"}
    bob = {"Authorization": f"Bearer {signed(sub='bob')}"}
    with web(tmp_path, compiled, *options) as found:
        mine, other = begun(found, **ann), begun(found, **ann)
        assert mine != other
        assert ask(found, DELETE, mine, **bob)[0] == 404
        assert ask(found, DELETE, mine)[0] == 401
        assert is_made(ask(found, DELETE, mine, **ann))
        assert is_made(ask(found, DELETE, other, **ann))
        # A nonce of another principal is none.
        nonce = ask(found, OPEN, **ann)[2]
        _, told, _ = ask(found, {**OPEN, "requestState": AGAIN}, nonce, **bob)
        assert told["result"]["resultType"] == "input_required"
        assert executed(found) == ["open_case"] * 2 + ["delete_case"] * 2
