"""Verdicts over HTTP: who may decide, what is answered, and who is told of a question."""

from __future__ import annotations

import http.server
import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tests.mcp.speaking import tcc
from tests.mcp.test_http import GREETING, KEYS, Web, pem, signed, web

GRAMMAR = """grammar cases version "1"

tool open_case(id: text ~ "c-[0-9]{1,4}")
tool act(kind: safe | risky, how: text max 40, id: text ~ "c-[0-9]{1,4}")
tool delete_case(id: text, how?: text) { errors mean failed }
tool run_tests(suite: unit | all, how?: text) gives (result: pass | fail)

limit depth <= 30
before act(kind = risky) ask "lead" within 1 h because "A lead decides about risky acts."
before delete_case ask "the owner"
before run_tests ask "nobody 100%"
"""
RISKY = {"kind": "risky", "how": "<b>", "id": "c-1"}
LEAD = "tcc:approve:lead"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("approvals") / "cases.tcca"
    library.save(library.compile_text(GRAMMAR), path)
    return path


def options(folder: Path) -> tuple[str, ...]:
    (folder / "k").write_bytes(pem(KEYS["ed25519"]))
    return ("--jwt-key", str(folder / "k"), "--jwt-audience", "desk")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("desk")
    with web(folder, compiled, *options(folder), "--show", "act.how") as found:
        yield found


def bearer(subject: str, scope: str | None = None) -> str:
    return f"Bearer {signed(sub=subject, scope=scope)}"


def pending(desk: Web, subject: str, tool: str = "act", **arguments: Any) -> str:
    """The id of the question that a principal's call waits for."""
    given = arguments or RISKY
    handle = desk.greet(Authorization=bearer(subject))
    told = desk.call(handle, tool, given, Authorization=bearer(subject))["result"]
    assert told["structuredContent"]["code"] == "R211", told
    return str(told["structuredContent"]["pending"]["id"])


def called(desk: Web, subject: str, tool: str = "act", **arguments: Any) -> str | None:
    """The code of a call; None: it was made."""
    handle = desk.greet(Authorization=bearer(subject))
    told = desk.call(handle, tool, arguments or RISKY, Authorization=bearer(subject))["result"]
    return str(told["structuredContent"]["code"]) if told.get("isError") else None


def decide(
    desk: Web, question: str, token: str | None, verdict: object = "approved", **more: Any
) -> tuple[int, dict[str, Any]]:
    body = json.dumps({"verdict": verdict, **more}).encode()
    headers = {} if token is None else {"Authorization": token}
    status, _, answer = desk.ask(body, path=f"/approvals/{question}", **headers)
    return status, json.loads(answer) if answer[:1] == b"{" else {}


def listed(desk: Web, token: str) -> list[dict[str, Any]]:
    status, _, body = desk.ask(
        b"", path="/approvals", method="GET", Authorization=token, Accept="application/json"
    )
    assert status == 200, (status, body)
    return list(json.loads(body)["questions"])


def test_a_person_with_the_role_approves_once(desk: Web) -> None:
    question, token = pending(desk, "a1"), bearer("boss", f"openid {LEAD}")
    (shown,) = [one for one in listed(desk, token) if one["id"] == question]
    assert (shown["who"], shown["tool"], shown["because"]) == (
        "lead",
        "act",
        "A lead decides about risky acts.",
    )
    assert shown["arguments"] == {"kind": "risky", "how": "<b>"} and shown["hidden"] == ["id"]
    assert decide(desk, question, token) == (
        200,
        {"id": question, "verdict": "approved", "who": "boss"},
    )
    assert called(desk, "a1") is None
    assert called(desk, "a1") == "R211"
    assert question not in [one["id"] for one in listed(desk, token)]


def test_a_denial_stands_and_its_reason_is_told(desk: Web) -> None:
    question, token = pending(desk, "a2"), bearer("boss", LEAD)
    assert decide(desk, question, token, "denied", reason="Not today.")[0] == 200
    assert called(desk, "a2") == "R209"
    status, told = decide(desk, question, token)
    assert status == 409 and "decided already" in told["error"]


@pytest.mark.parametrize(
    ("subject", "scope", "status"),
    [
        ("boss", None, 403),
        ("boss", "openid", 403),
        ("boss", "tcc:approve:", 403),
        ("boss", "tcc:approve:leader", 403),
        ("boss", "TCC:APPROVE:LEAD", 403),
        ("boss", "tcc:approve:the%20owner", 403),
        ("asker", LEAD, 403),
    ],
)
def test_who_may_not_decide_changes_nothing(
    desk: Web, subject: str, scope: str | None, status: int
) -> None:
    question = pending(desk, "asker")
    assert decide(desk, question, bearer(subject, scope))[0] == status
    assert called(desk, "asker") == "R211"


def test_a_token_that_is_none_decides_nothing(desk: Web) -> None:
    question = pending(desk, "a3")
    for token in ("Bearer x", f"Bearer {signed('p256', scope=LEAD)}", None):
        assert decide(desk, question, token) == (401, {})
    assert called(desk, "a3") == "R211"


@pytest.mark.parametrize(
    ("tool", "given", "scope"),
    [
        ("delete_case", {"id": "c-1"}, "tcc:approve:the%20owner"),
        ("run_tests", {"suite": "unit"}, "tcc:approve:nobody%20100%25"),
    ],
)
def test_a_role_of_any_characters_is_escaped_in_the_scope(
    desk: Web, tool: str, given: dict[str, str], scope: str
) -> None:
    question = pending(desk, "a4", tool, **given)
    assert decide(desk, question, bearer("boss", scope))[0] == 200
    assert called(desk, "a4", tool, **given) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"verdict":"yes"}', 400),
        (b'{"verdict":"approved","who":"x"}', 400),
        (b'{"verdict":"approved","verdict":"denied"}', 400),
        (b'{"verdict":"denied","reason":1}', 400),
        (b'{"verdict":"denied","reason":"' + b"x" * 1001 + b'"}', 400),
        (b"x" * 20_000, 413),
    ],
)
def test_a_body_that_is_no_verdict_changes_nothing(desk: Web, body: bytes, status: int) -> None:
    question, token = pending(desk, "a5"), bearer("boss", LEAD)
    assert desk.ask(body, path=f"/approvals/{question}", Authorization=token)[0] == status
    assert called(desk, "a5") == "R211"


@pytest.mark.parametrize("question", ["0" * 32, "x", "..%2f..", "%00"])
def test_an_unknown_question_is_not_found(desk: Web, question: str) -> None:
    assert decide(desk, question, bearer("boss", LEAD))[0] == 404


@pytest.mark.parametrize(
    ("status", "path", "headers"),
    [
        (421, "/approvals", {"Host": "evil.example"}),
        (421, "/approvals/" + "0" * 32, {"Host": "evil.example"}),
        (403, "/approvals/" + "0" * 32, {"Origin": "http://evil.example"}),
        (405, "/approvals", {}),
        (415, "/approvals/" + "0" * 32, {"Content_Type": "text/plain"}),
    ],
)
def test_requests_are_checked_as_all_others(
    desk: Web, status: int, path: str, headers: dict[str, str]
) -> None:
    token = bearer("boss", LEAD)
    assert desk.ask(b"{}", path=path, Authorization=token, **headers)[0] == status


def test_of_two_verdicts_at_once_one_stands(desk: Web) -> None:
    question, token = pending(desk, "a6"), bearer("boss", LEAD)
    with ThreadPoolExecutor(2) as pool:
        found = list(
            pool.map(lambda verdict: decide(desk, question, token, verdict)[0],
                     ["approved", "denied"])
        )  # fmt: skip
    assert sorted(found) == [200, 409]
    assert called(desk, "a6") == (None if found[0] == 200 else "R209")


def test_without_tokens_nobody_decides_over_http(tmp_path: Path, compiled: Path) -> None:
    with web(tmp_path, compiled) as found:
        status, told = decide(found, "0" * 32, None)
        assert status == 403 and "--jwt-key" in told["error"]


def test_after_a_restart_the_question_is_open_and_the_asker_known(
    tmp_path: Path, compiled: Path
) -> None:
    told, token = options(tmp_path), bearer("boss", LEAD)
    with web(tmp_path, compiled, *told) as found:
        question = pending(found, "ann")
    with web(tmp_path, compiled, *told) as found:
        assert [one["id"] for one in listed(found, token)] == [question]
        assert listed(found, bearer("ann", LEAD)) == []
        assert decide(found, question, bearer("ann", LEAD))[0] == 403
        assert decide(found, question, token)[0] == 200
        assert called(found, "ann") is None
    with web(tmp_path, compiled, *told) as found:
        assert decide(found, question, token)[0] == 409


def test_in_a_shared_session_nobody_who_made_the_call_decides(
    tmp_path: Path, compiled: Path
) -> None:
    told, token = options(tmp_path), bearer("boss", LEAD)
    with web(tmp_path, compiled, *told, "--session", "new") as found:
        pending(found, "ann")
        (ledger,) = found.ledgers()
    shared = (*told, "--session", ledger.stem)
    asked = {**RISKY, "id": "c-2"}
    with web(tmp_path, compiled, *shared) as found:
        question = pending(found, "bob", **asked)
        assert pending(found, "cid", **asked) == question
        for subject in ("bob", "cid"):
            assert decide(found, question, bearer(subject, LEAD))[0] == 403
        assert decide(found, question, token)[0] == 200
        question = pending(found, "bob", **{**asked, "id": "c-3"})
    with web(tmp_path, compiled, *shared) as found:
        assert pending(found, "cid", **{**asked, "id": "c-3"}) == question
        assert decide(found, question, bearer("bob", LEAD))[0] == 403


def test_the_session_of_a_principal_serves_nobody_else(tmp_path: Path, compiled: Path) -> None:
    told = options(tmp_path)
    with web(tmp_path, compiled, *told) as found:
        pending(found, "ann")
        (ledger,) = found.ledgers()
    with web(tmp_path, compiled, *told, "--session", ledger.stem) as found:
        assert found.greet(Authorization=bearer("ann"))
        assert found.ask(GREETING, Authorization=bearer("bob"))[0] == 404


def test_if_nobody_knows_who_asked_nobody_decides_over_http(tmp_path: Path, compiled: Path) -> None:
    told, token = (*options(tmp_path), "--session", "new"), bearer("boss", LEAD)
    with web(tmp_path, compiled, *told) as found:
        question = pending(found, "ann")
        assert listed(found, bearer("ann", LEAD)) == []
        assert [one["id"] for one in listed(found, token)] == [question]
        store = found.store
    with web(tmp_path, compiled, *told) as found:
        assert listed(found, token) == []
        status, answer = decide(found, question, token)
        assert status == 403 and "tcc session approve" in answer["error"]
    ended = tcc("session", "approve", str(store), question, "--who", "boss")
    assert ended.returncode == 0, ended.stderr


def test_the_page_has_no_secrets_and_loads_nothing(desk: Web) -> None:
    status, headers, body = desk.ask(b"", path="/approvals", method="GET", Accept="text/html")
    assert status == 200 and headers["content-type"].startswith("text/html")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and b"http" not in body


# Who is told of a question.


def eventually(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_command_runs_once_for_each_question(tmp_path: Path, compiled: Path) -> None:
    told = tmp_path / "told"
    script = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
    command = shlex.join([sys.executable, "-c", script, str(told)])
    with web(tmp_path, compiled, *options(tmp_path), "--notify", command) as found:
        first = pending(found, "ann")
        assert pending(found, "ann") == first
        second = pending(found, "ann", **{**RISKY, "id": "c-2"})
        eventually(lambda: told.exists() and len(told.read_text().splitlines()) == 2)
    messages = [json.loads(line) for line in told.read_text().splitlines()]
    assert sorted(one["id"] for one in messages) == sorted([first, second])
    assert {one["who"] for one in messages} == {"lead"}
    assert messages[0]["kind"] == "ask" and messages[0]["hidden"] == ["how", "id"]


def test_a_url_gets_one_post_for_each_question(tmp_path: Path, compiled: Path) -> None:
    got: list[dict[str, Any]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(500)  # a failure is not tried again
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/asked"
    with web(tmp_path, compiled, *options(tmp_path), "--notify", url) as found:
        question = pending(found, "ann")
        eventually(lambda: len(got) == 1)
    server.shutdown()
    server.server_close()
    assert [one["id"] for one in got] == [question]


def test_a_receiver_that_fails_holds_up_nobody(tmp_path: Path, compiled: Path) -> None:
    sleeps = shlex.join([sys.executable, "-c", "import time; time.sleep(60)"])
    with web(tmp_path, compiled, *options(tmp_path), "--notify", sleeps) as found:
        began = time.monotonic()
        for number in range(8):
            pending(found, "ann", **{**RISKY, "id": f"c-{number}"})
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("target", ["", "http://desk.example/x", "'"])
def test_a_receiver_that_is_none_is_a_usage_error(
    tmp_path: Path, compiled: Path, target: str
) -> None:
    ended = tcc(
        "gate", str(compiled), "--ledger", str(tmp_path / "l"), "--notify", target, "--", "true"
    )
    assert ended.returncode == 2 and "--notify" in ended.stderr
