"""`tcc gate --http`: real connections, the official SDK, PyJWT, and what strangers send."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from mcp.client.client import Client

from tcc.main import cli
from tcc_runtime.mcp.tokens import InvalidToken, Tokens
from tests import forking
from tests.forking import Forked, environment
from tests.mcp.speaking import GRAMMAR, judged, serving

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


PASSES = {"suite": "unit", "how": 'gives:"pass"'}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import tcc

    path = tmp_path_factory.mktemp("http") / "cases.tcca"
    tcc.save(tcc.compile_text(GRAMMAR), path)
    return path


class Web:
    """A gate over HTTP in a process of its own."""

    def __init__(
        self,
        folder: Path,
        artifact: Path,
        *options: str,
        server: str = "hostile.py",
        before: Sequence[str] = (),
    ) -> None:
        self.store = folder / "store"
        self.artifact = artifact
        self.executed_in = folder / "executed"
        command = [
            *("gate", str(artifact), "--store", str(self.store), "--http", "127.0.0.1:0"),
            *("--no-durable", *options, "--", *serving(server)),
        ]
        env = environment(EXECUTED=str(self.executed_in))
        self.process: Forked | subprocess.Popen[bytes]
        if before:
            before = [*before, sys.executable, "-m", "tcc"]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([*before, *command], env=env, stdout=pipe, stderr=pipe)
        else:
            self.process = Forked(command, env=env, stdin=False)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else b""
        told = json.loads(line)
        assert told.keys() == {"url", "pid"} and told["pid"] == self.process.pid
        self.url: str = told["url"]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def ask(
        self,
        message: Any,
        handle: str | None = None,
        *,
        path: str = "/mcp",
        method: str = "POST",
        **headers: str | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One request; its status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        told: dict[str, str] = dict(JSON)
        if handle is not None:
            told["Mcp-Session-Id"] = handle
        for name, value in headers.items():
            told.pop(name.replace("_", "-"), None)
            if value is not None:
                told[name.replace("_", "-")] = value
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        try:
            connection.request(method, path, data if method == "POST" else None, told)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def greet(self, **headers: str | None) -> str:
        status, told, body = self.ask(GREETING, **headers)
        assert status == 200, (status, body)
        assert json.loads(body)["result"]["serverInfo"]
        return told["mcp-session-id"]

    def call(
        self, handle: str | None, tool: str, arguments: Any, **headers: str | None
    ) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}
        status, _, body = self.ask(message, handle, **headers)
        assert status == 200, (status, body)
        found: dict[str, Any] = json.loads(body)
        assert found["id"] == "a"
        return found

    def modern(
        self, method: str, token: str | None, params: Mapping[str, Any] | None = None, **more: str
    ) -> tuple[int, dict[str, Any]]:
        """A request as since 2026-07-28, its headers what they should be but for `more`."""
        meta = {VERSION: "2026-07-28", CAPABILITIES: {}}
        whole = {**(params or {}), "_meta": meta}
        headers: dict[str, str | None] = {"MCP_Protocol_Version": "2026-07-28"}
        headers["Mcp_Method"] = method
        if "name" in whole:
            headers["Mcp_Name"] = str(whole["name"])
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        message = {"jsonrpc": "2.0", "id": 3, "method": method, "params": whole}
        status, _, body = self.ask(message, **{**headers, **more})
        return status, json.loads(body)

    def stop(self) -> tuple[int, str]:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err.decode()

    def ledgers(self) -> list[Path]:
        return sorted(self.store.glob("*.ledger"))

    def verdicts(self) -> list[str]:
        key = (self.store / "store.key").read_bytes()
        assert len(key) == 32
        return [judged(path, self.artifact).claim_type for path in self.ledgers()]


@contextmanager
def web(
    folder: Path,
    artifact: Path,
    *options: str,
    server: str = "hostile.py",
    before: Sequence[str] = (),
) -> Iterator[Web]:
    found = Web(folder, artifact, *options, server=server, before=before)
    try:
        yield found
    finally:
        code, said = found.stop()
        assert code == 0 and "Traceback" not in said, said


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web"), compiled) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def slow_body(shared: Web) -> Iterator[Future[tuple[bytes, float]]]:
    """A body of which the rest never comes: its answer, and the seconds until it came.

    Sent before the first test of the module and looked at in the last one: the others are served
    meanwhile, and what is waited for is the rest.
    """
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{shared.port}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    with (
        ThreadPoolExecutor(1) as pool,
        socket.create_connection(("127.0.0.1", shared.port), timeout=20) as connection,
    ):
        connection.sendall(head.encode())
        began = time.monotonic()
        yield pool.submit(lambda: (connection.recv(1 << 12), time.monotonic() - began))
        with suppress(OSError):  # it is over already where its answer has come
            connection.shutdown(socket.SHUT_RDWR)


# The SDK as client.


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_the_sdk_are_held_to_the_grammar(
    mode: str, tmp_path: Path, compiled: Path
) -> None:
    async def talk(url: str) -> None:
        async with Client(url, mode=mode) as client:
            listed = (await client.list_tools()).tools
            assert [one.name for one in listed] == ["act", "delete_case", "open_case", "run_tests"]
            act = {"kind": "safe", "how": "x", "id": "c-1"}
            refused = await client.call_tool("act", act)
            assert refused.is_error and "R202" in str(refused.content)
            assert not (await client.call_tool("open_case", {"id": "c-1"})).is_error
            assert not (await client.call_tool("act", act)).is_error
            tests = [client.call_tool("run_tests", {"suite": "unit"}) for _ in range(8)]
            found = await asyncio.gather(*tests)
            assert [one.structured_content for one in found] == [{"result": "pass"}] * 8

    with web(tmp_path, compiled, server="official.py") as found:
        asyncio.run(talk(found.url))
        made = [json.loads(line)["name"] for line in found.executed_in.read_text().splitlines()]
        assert made == ["open_case", "act", *["run_tests"] * 8]
        # The client has deleted its connection, and any* may end anywhere.
        assert found.verdicts() == ["Conformant"]


# What is looked at, in order.


def test_requests_are_looked_at_in_order(shared: Web) -> None:
    """Each row is wrong in its place and in every later one."""
    wrong: dict[str, str | None] = {"Content_Type": "text/plain", "Accept": "text/html"}
    evil = "http://evil.example"
    big = b"x" * ((4 << 20) + 1)
    rows: list[tuple[int, dict[str, Any]]] = [
        (404, {"path": "/elsewhere", "Host": "evil.example", "Origin": evil, **wrong}),
        (404, {"path": "/metrics"}),
        (421, {"Host": "evil.example", "Origin": evil, "method": "GET", **wrong}),
        (421, {"Host": f"evil.example:{shared.port}"}),
        (403, {"Origin": evil, "method": "GET", **wrong}),
        (403, {"Origin": "null"}),
        (405, {"method": "GET", **wrong}),
        (405, {"method": "PUT"}),
        (415, wrong),
        (406, {"Accept": "text/html", "message": big}),
        (413, {"message": big}),
        (400, {"message": b"{"}),
        (400, {"message": b"[]"}),
        (400, {"message": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'}),
        (400, {"message": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 9999}),
        (400, {}),
        (404, {"handle": "x" * 43}),
        (404, {"handle": "../../etc/passwd"}),
    ]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for status, row in rows:
        given = dict(row)
        message, handle = given.pop("message", ping), given.pop("handle", None)
        found, headers, _ = shared.ask(message, handle, **given)
        assert found == status, (row if "message" not in row else status, found)
        assert not any(name.startswith("access-control") for name in headers)
    assert shared.ask(b"", path="/healthz", method="GET")[::2] == (200, b"ok")
    nested = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "ping",
        "params": {"a": json.loads("[" * 70 + "]" * 70)},
    }
    status, _, body = shared.ask(nested)
    assert (status, json.loads(body)["error"]["code"]) == (400, -32700)


def test_own_origins_may_call(shared: Web) -> None:
    shared.greet(Origin=f"http://127.0.0.1:{shared.port}")
    shared.greet(Origin=f"http://localhost:{shared.port}", Host=f"localhost:{shared.port}")


def raw(port: int, data: bytes, seconds: float = 15) -> bytes:
    """What comes back for these bytes, until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
        return found


def test_what_is_no_http_is_answered_and_closed(shared: Web) -> None:
    host = f"Host: 127.0.0.1:{shared.port}\r\n"
    long = "GET /mcp HTTP/1.1\r\n" + host + f"X: {'x' * (33 << 10)}\r\n\r\n"
    for data, status in (
        (b"hello\r\n\r\n", b"400"),
        (long.encode(), b"431"),
        (b"POST /mcp HTTP/1.1\r\n\r\n", b"400"),
        (f"POST /mcp HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n".encode(), b"400"),
        (f"POST /mcp HTTP/1.1\r\n{host}{host}\r\n".encode(), b"400"),
    ):
        answer = raw(shared.port, data)
        assert answer.split(b" ", 2)[1] == status, answer[:80]


def test_several_requests_on_one_connection(shared: Web) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=20)
    handle = None
    for number in range(5):
        message = GREETING if number == 0 else {"jsonrpc": "2.0", "id": number, "method": "ping"}
        headers = {**JSON, **({} if handle is None else {"Mcp-Session-Id": handle})}
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        handle = handle or answer.getheader("mcp-session-id")
        assert answer.status == 200 and body["id"] == message["id"]
    connection.close()


# Handles.


def test_a_handle_is_minted_and_never_taken(shared: Web) -> None:
    wished = "A" * 43
    status, told, _ = shared.ask(GREETING, wished)
    assert status == 200 and told["mcp-session-id"] != wished
    assert len(told["mcp-session-id"]) == 43
    assert shared.greet() != shared.greet()


def test_foreign_and_ended_handles_are_one_404(shared: Web) -> None:
    handle = shared.greet()
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert shared.ask(ping, handle)[0] == 200
    flipped = ("B" if handle[0] == "A" else "A") + handle[1:]
    last = handle[:-1] + ("A" if handle[-1] != "A" else "E")
    assert shared.ask(b"", handle, method="DELETE")[0] == 204
    answers = {shared.ask(ping, other)[::2] for other in (handle, flipped, last, "", "é", "A" * 44)}
    assert answers == {(404, b"")}


def test_a_session_that_called_nothing_leaves_no_file(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled) as found:
        handle = found.greet()
        assert len(found.ledgers()) == 1
        assert found.ask(b"", handle, method="DELETE")[0] == 204
        assert found.ledgers() == []


def test_a_delete_does_not_wait_for_the_call_under_way(tmp_path: Path, compiled: Path) -> None:
    params = {"name": "run_tests", "arguments": {"suite": "all", "how": "late_pass:2"}}
    slow = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params}
    with web(tmp_path, compiled) as found:
        handle = found.greet()
        with socket.create_connection(("127.0.0.1", found.port)) as connection:
            connection.sendall(request(found.port, slow, handle))
            until = time.monotonic() + 10
            while not found.executed_in.exists():
                assert time.monotonic() < until
                time.sleep(0.01)
            began = time.monotonic()
            assert found.ask(b"", handle, method="DELETE")[0] == 202
            assert time.monotonic() - began < 1
            assert found.ask(b"", handle, method="DELETE")[0] == 404
            connection.settimeout(10)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        while found.verdicts() != ["Conformant"]:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_idle_connections_are_over(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled, "--idle", "0.5") as found:
        handle = found.greet()
        assert "error" not in found.call(handle, "run_tests", PASSES)
        until = time.monotonic() + 10
        while found.ask({"jsonrpc": "2.0", "method": "x"}, handle)[0] != 404:
            assert time.monotonic() < until
            time.sleep(1.2)
        while found.verdicts() != ["Conformant"]:  # its server ends first
            assert time.monotonic() < until
            time.sleep(0.1)


# Cancelling.


def test_a_notification_cancels_and_a_broken_connection_does_not(
    tmp_path: Path, compiled: Path
) -> None:
    params = {"name": "run_tests", "arguments": {"suite": "all", "how": "late_pass:2"}}
    slow = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params}
    with web(tmp_path, compiled) as found:
        status, told, _ = found.ask(GREETING)
        handle = told["mcp-session-id"]
        assert status == 200
        with socket.create_connection(("127.0.0.1", found.port)) as broken:
            broken.sendall(request(found.port, slow, handle))
            time.sleep(0.5)
        answer = found.call(handle, "open_case", {"id": "c-1"})
        assert "error" not in answer, answer
    records = [json.loads(line) for path in found.ledgers() for line in lines(path)]
    made = [
        (one["kind"], one.get("outcome")) for one in records if one["kind"] in ("call", "outcome")
    ]
    assert made[:2] == [("call", None), ("outcome", "done")], made


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def request(port: int, message: Any, handle: str | None = None, **headers: str) -> bytes:
    body = json.dumps(message).encode()
    told = {"Host": f"127.0.0.1:{port}", **JSON, "Content-Length": str(len(body))}
    if handle is not None:
        told["Mcp-Session-Id"] = handle
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in {**told, **headers}.items()]
    return ("POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode() + body


# Tokens.

KEYS = {
    "rsa": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}
TAKEN = {"rsa": ["RS256", "PS256"], "p256": ["ES256"], "ed25519": ["EdDSA"]}


def pem(key: Any) -> bytes:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, kind)
    return found


def claims(**more: Any) -> dict[str, Any]:
    found = {"sub": "ann", "aud": "desk", "iss": "https://i", "exp": int(time.time()) + 60, **more}
    return {name: value for name, value in found.items() if value is not None}


def signed(name: str = "ed25519", algorithm: str | None = None, **more: Any) -> str:
    headers = more.pop("headers", None)
    chosen = algorithm or TAKEN[name][0]
    return jwt.encode(claims(**more), KEYS[name], algorithm=chosen, headers=headers)


@pytest.mark.parametrize("name", KEYS)
def test_the_algorithm_is_the_keys(name: str, tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(pem(KEYS[name]))
    tokens = Tokens(tmp_path / "k", audience="desk", issuer="https://i")
    for algorithm in TAKEN[name]:
        found = tokens.principal(b"Bearer " + signed(name, algorithm).encode())
        assert (found.issuer, found.subject) == ("https://i", "ann")
    public = pem(KEYS[name])
    forged = [
        jwt.encode(claims(), None, algorithm="none"),
        hmac_token(public, "HS256"),
        hmac_token(public, "HS512"),
        *[signed(other) for other in KEYS if other != name],
        *([signed("rsa", "RS512")] if name == "rsa" else []),
        signed(name, sub=None), signed(name, exp=None), signed(name, aud=None),
        signed(name, aud="other"), signed(name, iss="https://j"), signed(name, iss=None),
        signed(name, exp=int(time.time()) - 31), signed(name, nbf=int(time.time()) + 60),
        signed(name, sub=""), signed(name, sub="x" * 256), signed(name, sub=7),
        signed(name, headers={"crit": ["x"], "x": 1}),
        signed(name)[:-6] + "AAAAAA", "", "a.b.c", "." * 200, "x" * 9000,
    ]  # fmt: skip
    for token in forged:
        with pytest.raises(InvalidToken):
            tokens.principal(b"Bearer " + token.encode())
    good = signed(name).encode()
    for header in (None, b"", good, b"Basic " + good, b"Bearer", b"\0"):
        with pytest.raises(InvalidToken):
            tokens.principal(header)


def hmac_token(secret: bytes, algorithm: str) -> str:
    """Signed by the public key as if it were a secret, as PyJWT itself would not."""
    import base64
    import hashlib
    import hmac

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    head = part(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    whole = head + b"." + part(json.dumps(claims()).encode())
    name = f"sha{algorithm[2:]}"
    return (whole + b"." + part(hmac.new(secret, whole, getattr(hashlib, name)).digest())).decode()


def test_of_a_set_of_keys_the_kid_chooses(tmp_path: Path) -> None:
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm

    keys = [
        {**json.loads(OKPAlgorithm.to_jwk(KEYS["ed25519"].public_key())), "kid": "e"},
        {**json.loads(ECAlgorithm.to_jwk(KEYS["p256"].public_key())), "kid": "p"},
    ]
    (tmp_path / "k").write_text(json.dumps({"keys": keys}))
    tokens = Tokens(tmp_path / "k", audience="desk")
    for name, kid in (("ed25519", "e"), ("p256", "p")):
        token = signed(name, headers={"kid": kid}).encode()
        assert tokens.principal(b"bearer " + token).subject == "ann"
    mine = {**keys[0], "kid": "mine"}
    for headers in ({"kid": "p"}, {"kid": "q"}, {}, {"kid": "mine", "jwk": mine}):
        with pytest.raises(InvalidToken):
            tokens.principal(b"Bearer " + signed(headers=headers).encode())


HOSTILE_KEYS = {
    "nothing": b"",
    "a private key": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "a secret": json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}).encode(),
    "no kid": json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}]}).encode(),
    "no keys": b'{"keys": []}',
    "no list": b'{"keys": 3}',
    "short": pem(rsa.generate_private_key(65537, 1024)),
    "another curve": pem(ec.generate_private_key(ec.SECP384R1())),
}


@pytest.mark.parametrize("name", HOSTILE_KEYS)
def test_keys_that_are_not_taken_are_bad_usage(name: str, tmp_path: Path, compiled: Path) -> None:
    (tmp_path / "k").write_bytes(HOSTILE_KEYS[name])
    with pytest.raises(click.BadParameter, match="jwt-key"):
        gate(compiled, tmp_path, "--jwt-key", str(tmp_path / "k"), "--jwt-audience", "a")


def gate(artifact: Path, folder: Path, *options: str) -> None:
    """`tcc gate` in this process, for what it raises before it listens."""
    told = options if "--http" in options else ("--http", "127.0.0.1:0", *options)
    command = ["gate", str(artifact), "--store", str(folder / "st"), *told, "--", "/nowhere"]
    cli.main(command, standalone_mode=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--http", "0.0.0.0:0"), "--jwt-key"),
        (("--http", "[::]:0"), "--jwt-key"),
        (("--http", "nowhere"), "HOST:PORT"),
        (("--jwt-audience", "a"), "--jwt-key"),
        (("--session", "principal"), "--jwt-key"),
        (("--session", "3"), "--session"),
        (("--mask",), "--mask"),
        (("--tls-cert", __file__), "--tls-key"),
    ],
)
def test_options_that_do_not_go_together(
    options: Sequence[str], said: str, tmp_path: Path, compiled: Path
) -> None:
    with pytest.raises(click.UsageError) as raised:
        gate(compiled, tmp_path, *options)
    assert said in raised.value.format_message()


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("known")
    (folder / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(folder / "k"), "--jwt-audience", "desk")
    with web(folder, compiled, *options) as found:
        yield found


def test_who_is_not_known_learns_nothing(known: Web) -> None:
    for token in ("Bearer x", f"Bearer {signed('p256')}", "Basic YTpi"):
        status, told, body = known.ask(GREETING, Authorization=token)
        assert (status, body) == (401, b"")
        assert told["www-authenticate"] == 'Bearer error="invalid_token"'
    assert known.ask(GREETING)[0] == 401
    # In the query it is none.
    assert known.ask(GREETING, path=f"/mcp?access_token={signed()}")[0] == 401
    assert known.ask(b"", path="/healthz", method="GET")[0] == 200


def test_a_principal_has_one_session_however_it_connects(known: Web) -> None:
    """Connecting again gives no limits back; another principal has limits of its own."""
    ann, bob = f"Bearer {signed(sub='one')}", f"Bearer {signed(sub='two')}"
    first = known.greet(Authorization=ann)
    assert "error" not in known.call(first, "open_case", {"id": "c-7"}, Authorization=ann)
    gone = known.call(first, "delete_case", {"id": "c-7"}, Authorization=ann)
    assert not gone["result"].get("isError"), gone
    again = known.greet(Authorization=ann)
    assert again == first
    assert known.ask(b"", first, method="DELETE", Authorization=ann)[0] == 204
    again = known.greet(Authorization=ann)
    refused = known.call(again, "delete_case", {"id": "c-7"}, Authorization=ann)
    assert refused["result"].get("isError") and "R202" in str(refused), refused
    other = known.greet(Authorization=bob)
    assert other != first
    assert (
        known.ask({"jsonrpc": "2.0", "id": 1, "method": "ping"}, first, Authorization=bob)[0] == 404
    )
    known.call(other, "open_case", {"id": "c-7"}, Authorization=bob)
    fine = known.call(other, "delete_case", {"id": "c-7"}, Authorization=bob)
    assert not fine["result"].get("isError"), fine


def test_a_session_is_given_what_its_token_claims(tmp_path: Path) -> None:
    import tcc

    text = GRAMMAR + "given team: text, most: integer 0 .. 9, open: flag\n"
    text += "before open_case require session.open = true\n"
    artifact = tmp_path / "given.tcca"
    tcc.save(tcc.compile_text(text), artifact)
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk")
    told = ("--given", "team=claim:team", "--given", "open=claim:open", "--given", "most=5")
    with web(tmp_path, artifact, *options, *told) as found:
        mine = f"Bearer {signed(team='a', open=True)}"
        handle = found.greet(Authorization=mine)
        done = found.call(handle, "open_case", {"id": "c-7"}, Authorization=mine)
        assert not done["result"].get("isError"), done
        first = json.loads(found.ledgers()[0].read_bytes().splitlines()[0])
        header = first["given"]
        assert sorted(header) == ["most", "open", "team"]
        assert all(list(one) == ["digest"] for one in header.values())
        # The one constant of the statements is true.
        assert first["constants"] == [header["open"]["digest"]]
        # A later token says what the session was given, or is not let in: by handle or without.
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for other in ({"team": "b", "open": True}, {"team": "a", "open": False}, {"team": "a"}):
            token = signed(**other)
            assert found.ask(ping, handle, Authorization=f"Bearer {token}")[0] == 403
            assert found.ask(GREETING, Authorization=f"Bearer {token}")[0] == 403
        # Of another type: no session.
        wrong = signed(sub="bob", team=5, open=True)
        assert found.ask(GREETING, Authorization=f"Bearer {wrong}")[0] == 403
        assert len(found.ledgers()) == 1


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (("--given", "team"), "NAME=VALUE"),
        (("--given", "team=a", "--given", "team=b"), "twice"),
        (("--given", "team=a"), "R103"),
        (("--given", "team=a", "--given", "most=x"), "R105"),
        (("--given", "team=a", "--given", "most=10"), "R105"),
        (("--given", "team=a", "--given", "most=1", "--given", "x=1"), "R102"),
        (("--given", "team=claim:x", "--given", "most=1"), "--jwt-key"),
    ],
)
@pytest.mark.parametrize("http", [(), ("--http", "127.0.0.1:0")])
def test_what_no_session_can_be_given_is_bad_usage(
    told: Sequence[str], said: str, http: Sequence[str], tmp_path: Path
) -> None:
    import tcc

    artifact = tmp_path / "given.tcca"
    tcc.save(tcc.compile_text(GRAMMAR + "given team: text max 9, most: integer 0 .. 9\n"), artifact)
    command = ["gate", str(artifact), "--store", str(tmp_path / "st"), *http, *told]
    with pytest.raises(click.UsageError) as raised:
        cli.main([*command, "--", "/nowhere"], standalone_mode=False)
    assert said in raised.value.format_message()


def test_since_2026_a_principal_has_its_session_without_a_handle(known: Web) -> None:
    token = signed(sub="three")
    status, told = known.modern("server/discover", token)
    assert status == 200 and told["result"]["supportedVersions"] == ["2026-07-28"]
    status, told = known.modern("tools/list", token)
    assert status == 200 and len(told["result"]["tools"]) == 4
    act = {"name": "act", "arguments": {"kind": "safe", "how": "x", "id": "c-1"}}
    assert known.modern("tools/call", token, act)[1]["result"].get("isError")
    opened = {"name": "open_case", "arguments": {"id": "c-1"}}
    assert not known.modern("tools/call", token, opened)[1]["result"].get("isError")
    assert not known.modern("tools/call", token, act)[1]["result"].get("isError")
    # The handshake of the same principal is in the same session.
    bearer = f"Bearer {token}"
    handle = known.greet(Authorization=bearer)
    call = known.call(handle, "act", act["arguments"], Authorization=bearer)
    assert not call["result"].get("isError"), call


def test_headers_say_what_the_body_says(known: Web) -> None:
    token = signed(sub="four")
    opened = {"name": "open_case", "arguments": {"id": "c-1"}}
    for more in (
        {"Mcp_Method": "tools/list"},
        {"Mcp_Name": "delete_case"},
        {"Mcp_Param_id": "c-2"},
        {"Mcp_Param_other": "c-2"},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"Mcp_Name": "=?base64?ZGVsZXRlX2Nhc2U=?="},
        {"Mcp_Name": "=?base64?!?="},
    ):
        status, told = known.modern("tools/call", token, opened, **more)
        assert (status, told["error"]["code"]) == (400, -32020), more
    encoded = {"Mcp_Name": "=?base64?b3Blbl9jYXNl?=", "Mcp_Param_id": "=?base64?Yy0x?="}
    status, told = known.modern("tools/call", token, opened, **encoded)
    assert status == 200 and not told["result"].get("isError")
    assert known.modern("no/method", token)[0] == 404


def test_since_2026_a_closed_stream_cancels(tmp_path: Path, compiled: Path) -> None:
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk")
    with web(tmp_path, compiled, *options) as found:
        meta = {VERSION: "2026-07-28", CAPABILITIES: {}}
        params = {
            "name": "run_tests",
            "arguments": {"suite": "all", "how": "late_pass:2"},
            "_meta": meta,
        }
        slow = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        bearer = f"Bearer {signed()}"
        headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call"}
        headers |= {"Mcp_Name": "run_tests", "Authorization": bearer}
        with socket.create_connection(("127.0.0.1", found.port)) as broken:
            broken.sendall(request(found.port, slow, **headers))
            time.sleep(0.7)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            records = [json.loads(line) for path in found.ledgers() for line in lines(path)]
            if any(one["kind"] == "outcome" for one in records):
                break
            time.sleep(0.1)
        outcomes = [one["outcome"] for one in records if one["kind"] == "outcome"]
        assert outcomes[:1] == ["unknown"], records


def test_eight_clients_that_begin_at_once_have_one_principal_session(known: Web) -> None:
    async def connect() -> list[str]:
        bearer = f"Bearer {signed(sub='many')}"
        return list(
            await asyncio.gather(
                *[asyncio.to_thread(known.greet, Authorization=bearer) for _ in range(8)]
            )
        )

    assert len(set(asyncio.run(connect()))) == 1


def test_eight_clients_at_once_have_one_allowance_across_their_sessions(tmp_path: Path) -> None:
    import tcc

    text = f"{GRAMMAR}\nlimit count(open_case) <= 3 across sessions\n"
    tcc.save(tcc.compile_text(text), tmp_path / "a.tcca")
    account = tcc.Account(tmp_path / "a.account")

    async def talk(url: str, number: int) -> bool:
        async with Client(url, mode="legacy") as client:
            found = await client.call_tool("open_case", {"id": f"c-{number}"})
            return not found.is_error

    async def all_of(url: str) -> list[bool]:
        return list(await asyncio.gather(*[talk(url, number) for number in range(8)]))

    options = "--account", str(tmp_path / "a.account")
    with web(tmp_path, tmp_path / "a.tcca", *options) as found:
        assert sum(asyncio.run(all_of(found.url))) == 3
        assert sum(asyncio.run(all_of(found.url))) == 0
        made = found.executed_in.read_text().splitlines()
        assert [json.loads(line)["name"] for line in made] == ["open_case"] * 3
        ledgers = found.ledgers()
    assert len(ledgers) == 16
    for path in ledgers:
        assert tcc.validate(path, tmp_path / "a.tcca", account=account).claim_upheld, path
    account.close()


def test_without_its_account_a_gate_does_not_start(tmp_path: Path, compiled: Path) -> None:
    import tcc

    text = f"{GRAMMAR}\nlimit count(open_case) <= 3 across sessions\n"
    tcc.save(tcc.compile_text(text), tmp_path / "a.tcca")
    tcc.Account(tmp_path / "a.account").close()
    for artifact, more, code in (
        (tmp_path / "a.tcca", (), 2),
        (compiled, ("--account", str(tmp_path / "a.account")), 2),
        (tmp_path / "a.tcca", ("--account", str(compiled)), 1),
    ):
        for where in (("--store", tmp_path / "s", "--http", "127.0.0.1:0"), ("--ledger", "l")):
            command = ("gate", artifact, *where, *more, "--", "false")
            ran = forking.run([*map(str, command)], env=environment())
            assert ran.returncode == code and "account" in ran.stderr, ran.stderr
            assert "Traceback" not in ran.stderr
    assert not (tmp_path / "s").exists()


def test_a_call_waits_for_another_process_as_long_as_one_may_take(
    tmp_path: Path, compiled: Path
) -> None:
    import tcc

    with web(tmp_path, compiled, "--deadline", "0.7") as found:
        handle = found.greet()
        assert "result" in found.call(handle, "open_case", {"id": "c-1"})
        (path,) = found.ledgers()
        params = {"name": "open_case", "arguments": {"id": "c-2"}}
        message = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}
        with tcc.Sessions.of(found.store).get(path.stem) as gate:
            with gate.call("open_case", {"id": "c-3"}) as permit:
                began = time.monotonic()
                status, told, body = found.ask(message, handle)
                assert (status, told.get("retry-after")) == (503, "1"), (status, body)
                assert 0.6 < time.monotonic() - began < 10
                assert b"not called" in body
                permit.done()
            assert found.ask(message, handle)[0] == 200
            assert [one.call for one in gate.history] == ["open_case"] * 3
        assert len(found.executed_in.read_text().splitlines()) == 2


def test_an_error_of_the_server_is_no_word_of_the_gates(shared: Web) -> None:
    """Its code may be ours: only what was not called may be sent again."""
    handle = shared.greet()
    arguments = {"suite": "all", "how": "error:-32000"}
    params = {"name": "run_tests", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}
    status, told, body = shared.ask(message, handle)
    assert status == 200 and "retry-after" not in told, (status, told)
    error = json.loads(body)["error"]
    assert (error["code"], error["data"]["outcome"]) == (-32000, "unknown")


def children_of(process: int) -> list[str]:
    threads = Path(f"/proc/{process}/task").glob("*/children")
    return [child for thread in threads for child in thread.read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_a_session_that_a_handle_reopens_is_the_principals(tmp_path: Path, compiled: Path) -> None:
    """One ledger has one host: also behind a new start, where the handle comes first."""
    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk")
    token = signed(sub="one")
    bearer = f"Bearer {token}"
    with web(tmp_path, compiled, *options) as found:
        handle = found.greet(Authorization=bearer)
        assert "error" not in found.call(handle, "open_case", {"id": "c-1"}, Authorization=bearer)
    with web(tmp_path, compiled, *options) as found:
        before = len(children_of(found.process.pid))
        assert "error" not in found.call(handle, "open_case", {"id": "c-2"}, Authorization=bearer)
        opened = {"name": "open_case", "arguments": {"id": "c-3"}}
        assert found.modern("tools/call", token, opened)[0] == 200
        assert found.greet(Authorization=bearer) == handle
        assert len(children_of(found.process.pid)) == before + 1


def test_sessions_that_wait_for_their_ledgers_keep_nobody_from_opening_one(
    tmp_path: Path, compiled: Path
) -> None:
    """More than a loop has threads of its own wait for another process."""
    import tcc

    (tmp_path / "k").write_bytes(pem(KEYS["ed25519"]))
    options = ("--jwt-key", str(tmp_path / "k"), "--jwt-audience", "desk", "--deadline", "20")
    many = min(32, (os.cpu_count() or 1) + 4) + 2
    bearers = [f"Bearer {signed(sub=f'p{number}')}" for number in range(many)]
    with web(tmp_path, compiled, *options) as found:
        for bearer in bearers:
            handle = found.greet(Authorization=bearer)
            found.call(handle, "open_case", {"id": "c-1"}, Authorization=bearer)
    with ExitStack() as held:
        store = tcc.Sessions.of(found.store)
        for path in found.ledgers():
            gate = held.enter_context(store.get(path.stem))
            held.enter_context(gate.call("open_case", {"id": "c-2"}))
        with web(tmp_path, compiled, *options) as found, ThreadPoolExecutor(many) as pool:
            waiting = [pool.submit(found.greet, Authorization=bearer) for bearer in bearers]
            time.sleep(1.0)
            began = time.monotonic()
            found.greet(Authorization=f"Bearer {signed(sub='another')}")
            assert time.monotonic() - began < 5
            assert not any(one.done() for one in waiting)
            held.close()
            assert len({one.result() for one in waiting}) == many


def test_sigterm_gives_what_is_under_way_its_time(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled) as found:
        handle = found.ask(GREETING)[1]["mcp-session-id"]
        params = {"name": "run_tests", "arguments": {"suite": "all", "how": "late_pass:2"}}
        slow = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params}
        with socket.create_connection(("127.0.0.1", found.port)) as connection:
            connection.sendall(request(found.port, slow, handle))
            time.sleep(0.5)
            began = time.monotonic()
            os.kill(found.process.pid, signal.SIGTERM)
            readable, _, _ = select.select([connection], [], [], 12)
            answer = connection.recv(1 << 16) if readable else b""
        assert answer.startswith(b"HTTP/1.1 200"), answer[:100]
        assert found.process.wait(12) == 0 and time.monotonic() - began < 11


def test_slow_bodies_are_given_up(slow_body: Future[tuple[bytes, float]]) -> None:
    answer, seconds = slow_body.result(20)
    assert answer.split(b" ", 2)[1] == b"408" and 8 < seconds < 14
