"""`tcc gate --store`, and what its owner does with `tcc session`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forking import Forked, environment
from tests.mcp.speaking import serving, tcc

LIMITED = """grammar once version "1"

tool open_case(id: text)

plan = open_case{1,2}
"""


class Client:
    """A connection to `tcc gate`, line by line."""

    def __init__(self, folder: Path, artifact: Path, *options: str) -> None:
        self.process = Forked(
            ["gate", str(artifact), *options, "--", *serving("hostile.py")],
            env=environment(EXECUTED=str(folder / "executed")),
        )
        self._last = 0
        self.ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}},
        )

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            found = json.loads(self.process.stdout.readline())
            if found.get("id") == self._last:
                return dict(found["result"])

    def call(self, case: str) -> dict[str, Any]:
        return self.ask("tools/call", {"name": "open_case", "arguments": {"id": case}})

    def end(self) -> tuple[int, str]:
        said = self.process.communicate(timeout=30)[1]
        assert self.process.returncode is not None
        return self.process.returncode, said.decode()


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import tcc as library

    path = tmp_path_factory.mktemp("once") / "once.tcca"
    library.save(library.compile_text(LIMITED), path)
    return path


def listed(store: Path) -> list[dict[str, Any]]:
    ran = tcc("session", "list", str(store), "--json")
    assert ran.returncode == 0
    return list(json.loads(ran.stdout)["sessions"])


def test_each_connection_has_a_session_of_its_own(tmp_path: Path, artifact: Path) -> None:
    store = tmp_path / "store"
    for _ in range(2):
        client = Client(tmp_path, artifact, "--store", str(store))
        assert "isError" not in client.call("c-1")
        code, said = client.end()
        assert code == 0 and said.count("limits hold for one session") == 1
        assert "--session principal, or limits across sessions" in said
    assert [(one["calls"], one["state"]) for one in listed(store)] == [(1, "ended")] * 2


def test_a_connection_without_calls_leaves_no_file(tmp_path: Path, once: Path) -> None:
    store = tmp_path / "store"
    client = Client(tmp_path, once, "--store", str(store))
    assert len(listed(store)) == 1
    assert client.end()[0] == 0
    assert listed(store) == []


def test_a_session_that_may_not_end_is_left_for_its_id(tmp_path: Path, artifact: Path) -> None:
    store = tmp_path / "store"
    import tcc as library

    two = tmp_path / "two.tcca"
    text = """grammar two version "1"

tool open_case(id: text)

plan = open_case open_case
"""
    library.save(library.compile_text(text), two)
    client = Client(tmp_path, two, "--store", str(store))
    client.call("c-1")
    client.end()
    (one,) = listed(store)
    assert (one["calls"], one["state"]) == (1, "live")
    client = Client(tmp_path, two, "--store", str(store), "--session", one["id"])
    client.call("c-2")
    refused = client.call("c-3")["structuredContent"]
    assert refused["spent"] is True and refused["session"] == one["id"] and refused["way_on"]
    assert client.end()[0] == 0
    assert [(s["calls"], s["state"]) for s in listed(store)] == [(2, "spent")]
    ran = tcc("session", "end", str(store), one["id"])
    assert ran.returncode == 0
    ran = tcc("gate", str(two), "--store", str(store), "--session", one["id"], "--", "true")
    assert (ran.returncode, "its end" in ran.stderr) == (1, True)


def test_who_connects_again_goes_on_with_one_session(tmp_path: Path, once: Path) -> None:
    store = tmp_path / "store"
    for case in ("c-1", "c-2"):
        client = Client(tmp_path, once, "--store", str(store), "--session", "principal")
        assert "isError" not in client.call(case)
        code, said = client.end()
        assert code == 0 and "limits hold" not in said
    client = Client(tmp_path, once, "--store", str(store), "--session", "principal")
    refused = client.call("c-3")
    assert refused["structuredContent"]["code"] == "R201"
    assert refused["structuredContent"]["spent"] is True
    assert "This session is spent" in refused["content"][0]["text"]
    client.end()
    (one,) = listed(store)
    assert (one["calls"], one["state"]) == (2, "spent")
    assert tcc("session", "end", str(store), one["id"]).returncode == 0
    client = Client(tmp_path, once, "--store", str(store), "--session", "principal")
    assert "isError" not in client.call("c-4")
    client.end()
    assert [s["state"] for s in listed(store)] == ["ended", "live"]


def test_a_finished_ledger_is_rolled_over(tmp_path: Path, once: Path) -> None:
    ledger = tmp_path / "s.ledger"
    for _ in range(2):
        client = Client(tmp_path, once, "--ledger", str(ledger), "--finish")
        assert "isError" not in client.call("c-1")
        assert client.end()[0] == 0
    names = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("s.ledger"))
    assert len(names) == 3 and names[0] == "s.ledger" and names[-1] == "s.ledger.key"


def test_a_client_that_says_nothing_is_gone(tmp_path: Path, once: Path) -> None:
    store = tmp_path / "store"
    client = Client(tmp_path, once, "--store", str(store), "--idle", "0.5")
    client.call("c-1")
    begun = time.monotonic()
    assert client.process.wait(20) == 0 and time.monotonic() - begun > 0.3
    client.end()
    assert [s["state"] for s in listed(store)] == ["ended"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--ledger", "L", "--store", "S"], 2),
        ([], 2),
        (["--ledger", "L", "--session", "new"], 2),
        (["--store", "S", "--session", "x"], 2),
        (["--store", "S", "--session", "../../etc"], 2),
        (["--store", "S", "--renew", "24h"], 2),
        (["--store", "S", "--session", "principal", "--renew", "1"], 2),
        (["--store", "S", "--session", "principal", "--finish"], 2),
        (["--store", "S", "--session", "0198c0de-0000-7000-8000-000000000000"], 1),
    ],
    ids=str,
)
@pytest.mark.sampled(4)
def test_bad_usage_is_told_before_a_server_starts(
    options: list[str], code: int, tmp_path: Path, once: Path
) -> None:
    made = [str(tmp_path / word) if word in ("L", "S") else word for word in options]
    ran = tcc("gate", str(once), *made, "--", "false")
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_is_unknown_is_resolved_by_somebody(tmp_path: Path, once: Path) -> None:
    store = tmp_path / "store"
    import tcc as library

    with library.Sessions(once, store).open() as gate:
        with gate.call("open_case", {"id": "c-1"}):
            pass
        name = gate.session_id
    for more in (["1", "done"], ["1", "maybe", "--who", "x"], ["1", "done", "--who", "a\nb"],
                 ["1", "done", "--who", "x", "--observed", "[]"],
                 ["1", "done", "--who", "x", "--observed", '{"a":1,"a":1}']):  # fmt: skip
        assert tcc("session", "resolve", str(store), name, *more).returncode == 2, more
    assert tcc("session", "resolve", str(store), name, "2", "done", "--who", "x").returncode == 1
    assert listed(store)[0]["unknown"] == 1
    ran = tcc("session", "resolve", str(store), name, "1", "done", "--who", "Ada")
    assert ran.returncode == 0 and listed(store)[0]["unknown"] == 0
    shown = tcc("session", "show", str(store), name, "--json")
    assert shown.returncode == 0
    event = json.loads(shown.stdout)["events"][-1]
    assert (event["kind"], event["who"]) == ("resolve", "Ada") and event["at_ms"] > 0
    assert "says Ada at" in tcc("session", "show", str(store), name).stdout
    ran = tcc("session", "end", str(store), "0198c0de-0000-7000-8000-000000000000")
    assert ran.returncode == 1
    assert tcc("session", "end", str(store), "x").returncode == 2
    assert tcc("session", "list", str(tmp_path / "none")).returncode == 1
    assert tcc("session", "end", str(store), name, "--abandon").returncode == 0
    assert [s["state"] for s in listed(store)] == ["abandoned"]
