"""``tcc gate --http --reload``: another artifact at the same path is taken for new sessions."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest

import tcc as library
from tests.mcp.speaking import GRAMMAR, SERVERS, tcc
from tests.mcp.test_http import PASSES, Web, request

STRICT = GRAMMAR.replace('version "1"', 'version "2"') + "limit count(run_tests) <= 1\n"

LIST = {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}


def put(path: Path, text: str) -> None:
    """Replace an artifact as a build does: whole, by a rename."""
    beside = path.with_suffix(".new")
    library.save(library.compile_text(text), beside)
    beside.replace(path)


def runs(web: Web, handle: str) -> str:
    """The code of a refusal; empty: the call was made."""
    result = web.call(handle, "run_tests", PASSES)["result"]
    return str(result.get("structuredContent", {}).get("code", ""))


def test_new_sessions_have_the_new_artifact_and_open_ones_keep_theirs(tmp_path: Path) -> None:
    path = tmp_path / "cases.tcca"
    put(path, GRAMMAR)
    web = Web(tmp_path, path, "--reload")
    try:
        old = web.greet()
        assert runs(web, old) == ""
        path.write_bytes(path.read_bytes()[:1000])  # as if it were half written
        between = web.greet()
        assert runs(web, between) == runs(web, between) == ""
        put(path, STRICT)
        new = web.greet()
        assert runs(web, new) == ""
        assert runs(web, new) == "R202"
        assert runs(web, old) == runs(web, between) == ""
    finally:
        code, said = web.stop()
    assert code == 0 and "Traceback" not in said, said
    assert said.count("the artifact is not taken, and the last one stays") == 1, said
    assert said.count("new sessions have the artifact") == 1, said
    for text in (GRAMMAR, STRICT):
        digest = library.compile_text(text).digest.hex()
        assert (web.store / f"{digest}.tcca").exists()
    assert tcc("session", "list", str(web.store)).returncode == 0


def test_an_open_session_needs_the_account_of_its_own_policy(tmp_path: Path) -> None:
    path, account = tmp_path / "cases.tcca", tmp_path / "a.account"
    library.Account(account).close()
    put(path, GRAMMAR + "limit count(run_tests) <= 2 across sessions\n")
    web = Web(tmp_path, path, "--reload", "--account", str(account))
    try:
        old = web.greet()
        assert runs(web, old) == ""
    finally:
        web.stop()
    put(path, GRAMMAR)
    web = Web(tmp_path, path, "--reload", "--account", str(account))
    try:
        assert [runs(web, old) for _ in range(2)] == ["", "R202"]
    finally:
        web.stop()
    web = Web(tmp_path, path, "--reload")
    try:
        assert web.ask(LIST, old)[0] == 404
    finally:
        _, said = web.stop()
    assert "is not opened: account: expected account=tcc.Account(PATH)" in said


@pytest.mark.parametrize(
    "options", [("--ledger", "l"), ("--store", "s", "--server", "a=x", "--server", "b=y")]
)
def test_reload_is_for_a_store_and_one_server(options: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "cases.tcca"
    put(path, GRAMMAR)
    command = () if "--server" in options else ("--", sys.executable, str(SERVERS / "hostile.py"))
    found = tcc("gate", str(path), "--reload", *options, *command, cwd=tmp_path)
    assert found.returncode == 2
    assert "--reload is for --store, and for one server" in found.stderr


def test_now_open_sessions_go_on_under_the_new_artifact(tmp_path: Path) -> None:
    path = tmp_path / "cases.tcca"
    put(path, GRAMMAR)
    web = Web(tmp_path, path, "--reload=now")
    try:
        old = web.greet()
        assert runs(web, old) == ""
        put(path, STRICT)
        time.sleep(1.1)  # the gate looks once a second
        assert runs(web, old) == "R202"  # the call that was made counts
        untouched = web.greet()
        put(path, GRAMMAR + "plan = open_case any*\n")
        time.sleep(1.1)
        assert web.ask(LIST, untouched)[0] == 200
        assert web.ask(LIST, old)[0] == 404  # no plan begins with its call
        assert web.ask(LIST, old)[0] == 404
    finally:
        code, said = web.stop()
    assert code == 0 and "Traceback" not in said, said
    assert said.count("all sessions have the artifact") == 2, said
    assert said.count("cannot go on under the new artifact: line 2: call: S218") == 1, said


def test_now_a_session_with_a_call_under_way_takes_no_other_call(tmp_path: Path) -> None:
    """Else calls that overlap would keep it under the old policy."""
    path = tmp_path / "cases.tcca"
    put(path, GRAMMAR)
    web = Web(tmp_path, path, "--reload=now")
    try:
        handle = web.greet()
        slow, quick = [
            {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
            for name, params in (
                ("slow", {"name": "run_tests", "arguments": {**PASSES, "how": "late_pass:60"}}),
                ("quick", {"name": "run_tests", "arguments": PASSES}),
            )
        ]
        with socket.create_connection(("127.0.0.1", web.port)) as connection:
            connection.sendall(request(web.port, slow, handle))
            until = time.monotonic() + 20
            while not web.executed_in.exists():
                assert time.monotonic() < until
                time.sleep(0.01)
            put(path, STRICT)
            time.sleep(1.1)
            assert web.ask(quick, handle)[0] == 503
            cancel = {"method": "notifications/cancelled", "params": {"requestId": "slow"}}
            assert web.ask({"jsonrpc": "2.0", **cancel}, handle)[0] == 202
            until = time.monotonic() + 20
            while web.ask(quick, handle)[0] == 503:  # the client still holds its connection open
                assert time.monotonic() < until
                time.sleep(0.05)
        assert runs(web, handle) == "R202"  # the call whose outcome is unknown counts
    finally:
        web.stop()
    assert len(web.ledgers()) == 1 and len(list(web.store.glob("*.ledger.1"))) == 1
