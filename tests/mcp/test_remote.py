"""A server behind a URL: the official SDK's over HTTP, and one written by hand that misbehaves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcc_runtime.errors import ServerError
from tcc_runtime.mcp.links.http_client import Remote, check_header, check_url
from tcc_runtime.mcp.wire import Request, Response
from tests.mcp.behind import Behind, pause
from tests.mcp.odd import Odd
from tests.mcp.sdk import listening
from tests.mcp.speaking import judged
from tests.mcp.test_servers import executed, talk

VERSION = "2026-07-28"


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The official SDK's server over HTTP, and the folder of what it executes."""
    folder = tmp_path_factory.mktemp("official")
    with listening(folder, "official.py") as (_, url):
        yield url, folder


@pytest.mark.parametrize("protocol", ["handshake", VERSION])
def test_the_official_server_over_http(
    tmp_path: Path, artifact: Path, official: tuple[str, Path], protocol: str
) -> None:
    url, folder = official
    (folder / "executed").unlink(missing_ok=True)

    async def say(client: Any) -> None:
        assert (await client.call_tool("delete_case", {"id": "c-1"})).is_error
        opened = await client.call_tool("open_case", {"id": "c-1"})
        assert opened.content[0].text == "opened c-1"
        tested = await client.call_tool("run_tests", {"suite": "unit"})
        assert tested.structured_content == {"result": "pass"}
        done = await client.call_tool("act", {"kind": "risky", "how": "é\u2028", "id": "c-1"})
        assert done.content[0].text == "é\u2028"

    talk(tmp_path, artifact, say, "--protocol", protocol, "--", url)
    assert executed(folder) == ["open_case", "run_tests", "act"]
    assert judged(tmp_path / "l", artifact).verdict != 1


@pytest.fixture
def odd() -> Iterator[Odd]:
    found = Odd()
    yield found
    found.close()


def connected(odd: Odd, protocol: Any = "handshake", **headers: str) -> Behind:
    return Behind(Remote(url=odd.url, headers=headers, seconds=10), protocol)


def call(behind: Behind, **arguments: Any) -> Response:
    return behind.answer(behind.call(**arguments))


def test_a_redirect_is_not_followed_and_no_header_goes_along(odd: Odd) -> None:
    other = Odd()
    try:
        odd.how["tools/call"] = lambda to, _: to.say(307, b"", ("Location", other.url))
        with connected(odd, Authorization="Bearer owner") as behind:
            error = call(behind).error
        assert error == (-32603, "the server answers with status 307")
        assert other.seen == []
        assert odd.seen[-1][0] == "DELETE"
        assert {one[1].get("Authorization") for one in odd.seen} == {"Bearer owner"}
        assert odd.seen[0][0] == "/mcp?a=b"
    finally:
        other.close()


def test_a_session_that_is_forgotten_is_begun_again_and_nothing_sent_twice(odd: Odd) -> None:
    with connected(odd) as behind:
        assert call(behind, n=1).error is None
        odd.session = "s2"
        error = call(behind, n=2).error
        assert error == (-32603, "the server has forgotten its session")
        until = time.monotonic() + 10
        while odd.methods().count("notifications/initialized") < 2:
            assert time.monotonic() < until
            pause(0.01)
        assert call(behind, n=3).error is None
    sent = [
        (body["params"]["arguments"]["n"], told.get("Mcp-Session-Id"))
        for _, told, body in odd.seen
        if body is not None and body["method"] == "tools/call"
    ]
    assert sent == [(1, "s1"), (2, "s1"), (3, "s2")]
    assert odd.seen[-1][0] == "DELETE"


def test_tools_are_looked_at_again_before_the_call_that_was_forgotten_is_answered(
    odd: Odd,
) -> None:
    with connected(odd) as behind:
        assert call(behind).error is None
        odd.session = "s2"
        behind.heard.clear()
        call(behind)
        changed, answer = behind.heard
    assert isinstance(changed, Request) and isinstance(answer, Response)
    assert changed.method == "notifications/tools/list_changed"


def test_a_session_that_cannot_be_begun_again_is_begun_at_a_later_call(odd: Odd) -> None:
    with connected(odd) as behind:
        assert call(behind).error is None
        odd.session = "s2"
        odd.how["initialize"] = lambda to, _: to.say(503, b"")
        assert "forgotten" in str(call(behind).error)
        del odd.how["initialize"]
        assert "forgotten" in str(call(behind).error)
        assert call(behind).error is None
    sent = [told.get("Mcp-Session-Id") for _, told, body in odd.seen if method_of(body) == CALL]
    assert sent == ["s1", "s1", "s1", "s2"]


CALL = "tools/call"


def method_of(body: Any) -> str | None:
    return None if body is None else body.get("method")


def test_a_request_of_the_server_under_the_id_of_a_call_is_not_its_answer(odd: Odd) -> None:
    def stream(to: Any, body: Any) -> None:
        to.send_response(200)
        to.send_header("content-type", "text/event-stream")
        to.send_header("connection", "close")
        to.end_headers()
        asked = {"jsonrpc": "2.0", "id": body["id"], "method": "ping"}
        to.wfile.write(f"data: {json.dumps(asked)}\n\n".encode())
        until = time.monotonic() + 10
        while "answer" not in odd.methods() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.05)  # as the answer to our answer comes
        told = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}
        to.wfile.write(f"data: {json.dumps(told)}\n\n".encode())
        to.close_connection = True

    odd.how[CALL] = stream
    with connected(odd) as behind:
        sent = behind.call()
        found = behind.answer(sent)
    assert (found.identity, found.error) == (sent, None)


def test_headers_of_a_call_are_made_from_the_call(odd: Odd) -> None:
    schema = {
        "type": "object",
        "properties": {
            "who": {"type": "string", "x-mcp-header": "Who"},
            "n": {"type": "integer", "x-mcp-header": "N"},
        },
    }
    told = {"supportedVersions": [VERSION], "capabilities": {}}
    odd.how["server/discover"] = lambda to, body: to.result(body, told)
    tools = [{"name": "t", "inputSchema": schema}]
    odd.how["tools/list"] = lambda to, body: to.result(body, {"tools": tools})
    with connected(odd, VERSION) as behind:
        behind.tools()
        assert call(behind, who="é\r\nX-Evil: 1", n=5).error is None
    headers = next(h for _, h, body in odd.seen if body and body["method"] == "tools/call")
    assert headers["MCP-Protocol-Version"] == VERSION
    assert (headers["Mcp-Method"], headers["Mcp-Name"]) == ("tools/call", "t")
    assert headers["Mcp-Param-Who"] == "=?base64?w6kNClgtRXZpbDogMQ==?="
    assert headers["Mcp-Param-N"] == "5"
    assert "X-Evil" not in headers


def test_a_stream_has_progress_and_ends_with_the_answer(odd: Odd) -> None:
    def stream(to: Any, body: Any) -> None:
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
        last = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}}
        foreign = {"jsonrpc": "2.0", "id": 999, "result": {"content": [{"no": 1}]}}
        text = "".join(
            f": comment\r\nevent: message\r\ndata: {json.dumps(one)}\r\n\r\n"
            for one in (progress, foreign, last)
        )
        to.say(200, text.encode(), kind="text/event-stream")

    odd.how["tools/call"] = stream
    with connected(odd) as behind:
        found = call(behind)
        assert found.result is not None and found.result["content"].value == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda to, _: to.say(200, b"", kind="text/event-stream"), "the stream ended before"),
        (lambda to, _: to.say(500, b"oops", kind="text/plain"), "status 500"),
        (lambda to, _: to.say(401, b""), "status 401"),
        (lambda to, _: to.connection.shutdown(2), "no answer: "),
        (lambda to, _: to.say(200, b'{"jsonrpc":"2.0","id":99,"result":{}}'), "something else"),
        (lambda to, _: to.say(200, b'{"jsonrpc":"2.0","method":"x"}'), "something else"),
        (lambda to, _: to.say(200, b"[1]"), "a batch"),
    ],
)
def test_whatever_is_no_answer_is_an_error_of_the_call(odd: Odd, how: Any, said: str) -> None:
    odd.how["tools/call"] = how
    with connected(odd) as behind:
        error = call(behind).error
    assert error is not None and said in error[1]


def test_a_server_that_is_not_there_is_said(odd: Odd) -> None:
    odd.close()
    with pytest.raises(ServerError, match="no answer: ConnectionRefused"), connected(odd):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/", "https://", "http://example.org/", "http://10.0.0.1/", "https://u@h/",
        "https://h/#x", "https://h/a b", "https://h/\n", "https://h:99999/", "http://127.0.0.1.x/",
    ],
)  # fmt: skip
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|http is for"):
        check_url(url)


def test_urls_of_this_machine_and_of_tls_are_taken() -> None:
    for url in ("http://localhost:1/x", "http://[::1]/", "http://127.0.0.9/", "https://h.org/?q=1"):
        check_url(url)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "x"), ("content-length", "1"), ("Mcp-Session-Id", "x"), ("Connection", "x"),
        ("Transfer-Encoding", "x"), ("a b", "x"), ("X", "a\r\nb"), ("X", "é"), ("X", ""),
    ],
)  # fmt: skip
def test_other_headers_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"header|value|message") as refused:
        check_header(name, value)
    assert value not in str(refused.value) or value in ("x", "", "1")


def test_a_call_that_a_lone_server_is_not_there_for_did_not_happen(
    tmp_path: Path, artifact: Path
) -> None:
    with listening(tmp_path, "official.py") as (process, url):

        async def say(client: Any) -> None:
            opened = await client.call_tool("open_case", {"id": "c-1"})
            assert not opened.is_error
            process.kill()
            process.wait()
            refused = await client.call_tool("open_case", {"id": "c-1"})
            assert refused.is_error and refused.structured_content["code"] == "R307"

        talk(tmp_path, artifact, say, "--protocol", "handshake", "--", url)
    records = [json.loads(line) for line in (tmp_path / "l").read_text().splitlines()]
    outcomes = [one["outcome"] for one in records if one["kind"] == "outcome"]
    assert outcomes == ["done", "failed"]
