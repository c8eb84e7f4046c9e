"""Too much: a message of 64 MB, a half-closed link, 10^4 connections, one id twice."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.mcp.speaking import Relayed
from tests.mcp.test_http import GREETING, JSON, Web, web

MB = 1 << 20
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, artifact: Path) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web"), artifact) as gate:
        yield gate


def peak_kb(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_line_of_64_mb_costs_its_bound_and_the_session_goes_on(
    tmp_path: Path, artifact: Path
) -> None:
    with Relayed(tmp_path, artifact) as relay:
        relay.greet()
        before = peak_kb(relay.process.pid)
        for _ in range(64):
            relay.send(b"x" * MB)
        relay.send(b"\n")
        answer = relay.hear()
        assert answer is not None
        assert answer["error"] == {"code": -32600, "message": "a line that is too long"}
        assert peak_kb(relay.process.pid) - before < 40_000
        assert "isError" not in relay.call("open_case", id="c-1")
        assert "a message of the client is refused (code -32600)" in relay.end()[1]
    assert relay.outcomes() == ["done"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_64_mb_is_refused_and_other_sessions_go_on(found: Web, chunked: bool) -> None:
    handle, before = found.greet(), peak_kb(found.process.pid)
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{found.port}\r\nContent-Type: application/json\r\n"
    )
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {64 * MB}"
    part = b"x" * MB
    data = b"%x\r\n%b\r\n" % (MB, part) if chunked else part
    with socket.create_connection(("127.0.0.1", found.port), timeout=20) as connection:
        connection.sendall(f"{head}{length}\r\n\r\n".encode())
        with suppress(OSError):  # the gate stops reading, and closes
            for _ in range(64):
                connection.sendall(data)
        with suppress(ConnectionResetError):
            assert connection.recv(1 << 12).split(b" ", 2)[1] == b"413"
    assert peak_kb(found.process.pid) - before < 40_000
    assert found.ask(PING, handle)[0] == 200


def test_a_half_closed_link_is_a_client_that_is_gone(found: Web) -> None:
    """Its call is made and recorded, as with every broken connection before 2026-07-28."""
    handle = found.greet()
    params = {"name": "open_case", "arguments": {"id": "c-1"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(call).encode()
    lines = [f"{name}: {value}" for name, value in {**JSON, "Mcp-Session-Id": handle}.items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{found.port}", *lines])
    with socket.create_connection(("127.0.0.1", found.port), timeout=20) as connection:
        connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 12)
    until = time.monotonic() + 10
    while "done" not in "".join(path.read_text() for path in found.ledgers()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert found.ask(PING, handle)[0] == 200


def test_one_id_twice_at_once_is_two_calls_over_http(found: Web) -> None:
    """Ids belong to a connection: over stdio the second call is refused (test_hostile)."""
    handle = found.greet()
    slow = {"suite": "unit", "how": "late:0.3"}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(found.call, handle, "run_tests", slow) for _ in range(2)]
    assert ["isError" in one.result()["result"] for one in both] == [False, False]


def test_a_server_that_answers_twice_or_never_costs_other_sessions_nothing(
    tmp_path: Path, artifact: Path
) -> None:
    with web(tmp_path, artifact, "--deadline", "2") as found, ThreadPoolExecutor(1) as pool:
        first, second = found.greet(), found.greet()
        for how, outcome in (("hang", "unknown"), ("twice", None)):
            call = pool.submit(found.call, first, "run_tests", {"suite": "unit", "how": how})
            assert "isError" not in found.call(second, "open_case", {"id": "c-1"})["result"]
            told = call.result()["result"].get("structuredContent", {})
            assert told.get("outcome") == outcome
        assert "isError" not in found.call(first, "open_case", {"id": "c-1"})["result"]
        said = found.stop()[1]
    assert "call 1 is unknown (there was no answer in 2 s)" in said
    assert "an answer to no request is ignored (code -32600)" in said


def test_bad_requests_are_logged_by_their_codes(tmp_path: Path, artifact: Path) -> None:
    with web(tmp_path, artifact) as found:
        handle, secret = found.greet(), "x-of-a-client"
        for _ in range(3):
            assert found.ask(f"{{{secret}".encode(), handle)[0] == 400
        assert found.ask(PING, handle, X=secret * 4000)[0] == 431
        assert found.ask(PING, handle, Content_Length=str(64 * MB))[0] == 413
        assert found.ask(PING, handle)[0] == 200
        said = found.stop()[1]
    assert all(f"a request is refused (code {code}" in said for code in (400, 413, 431))
    assert secret not in said


@pytest.mark.campaign
def test_ten_thousand_connections_that_say_nothing_keep_nobody_out(found: Web) -> None:
    import resource

    resource.setrlimit(
        resource.RLIMIT_NOFILE, (12_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    handle = found.greet()
    with ExitStack() as stack:
        for _ in range(10_000):
            stack.enter_context(socket.create_connection(("127.0.0.1", found.port), timeout=20))
        assert "isError" not in found.call(handle, "open_case", {"id": "c-1"})["result"]
        assert found.ask(GREETING)[0] == 200
        open_files = len(list(Path(f"/proc/{found.process.pid}/fd").iterdir()))
        assert open_files < 4096 + 200
