"""Tools on MCP servers over stdio, as the grammar binds them: real servers, of the SDK."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tcc as library
from tcc_runtime.errors import BindingError

SERVER = Path(__file__).with_name("server.py")
TEXT = """
grammar shop version "1"
tool find(by: email | phone) { cost 0.1 bind mcp "shop" "find-it" }
tool check(kind: stock | credit) gives (answer: yes | no) { cost 0.1 bind mcp "shop" "check" }
tool escalate { cost 0.1 bind mcp "shop" "escalate" }
plan = find check escalate
"""


def command(log: Path, *more: str) -> dict[str, list[str]]:
    return {"shop": [sys.executable, str(SERVER), str(log), *more]}


def called(log: Path) -> list[str]:
    return [json.loads(line)["tool"] for line in log.read_text().splitlines()]


def test_a_plan_is_done_on_a_server(tmp_path: Path) -> None:
    artifact, log = library.compile_text(TEXT), tmp_path / "log"
    gate = library.Gate(artifact, ledger=tmp_path / "s")
    found = library.execute(None, gate=gate, servers=command(log), seed=bytes(32))
    assert found.stop == "finished"
    assert called(log) == ["find-it", "check", "escalate"]
    assert found.calls[1].observed == {"answer": "no"} and found.results[2] == {"answer": "no"}


@pytest.mark.parametrize(("says", "stop"), [("", "unknown"), ("errors mean failed", "failed")])
def test_what_an_error_means_is_for_the_grammar_to_say(says: str, stop: str, tmp_path) -> None:
    text = TEXT.replace("tool escalate {", f"tool escalate {{ {says}")
    artifact, log = library.compile_text(text), tmp_path / "log"
    found = library.execute(
        None, gate=library.Gate(artifact), servers=command(log, "fails"), retries=1
    )
    assert found.stop == stop
    assert called(log).count("escalate") == (1 if stop == "unknown" else 2)


def test_a_server_that_is_too_slow_leaves_an_unknown_outcome(tmp_path: Path) -> None:
    artifact, log = library.compile_text(TEXT), tmp_path / "log"
    found = library.execute(
        None,
        gate=library.Gate(artifact),
        servers=command(log, "slow"),
        deadline={"escalate": 0.5},
    )
    assert (found.stop, called(log)[-1]) == ("unknown", "escalate")
    assert "the deadline has passed" in found.reason


def test_servers_that_are_none_are_refused_before_the_first_call(tmp_path: Path) -> None:
    artifact = library.compile_text(TEXT)
    gate = library.Gate(artifact)
    with pytest.raises(BindingError, match="no command was given for the server 'shop'"):
        library.execute(None, gate=gate)
    with pytest.raises(BindingError, match="no command was given for the server 'shop'"):
        library.execute(None, gate=gate, servers={"other": command(tmp_path / "log")["shop"]})
    with pytest.raises(BindingError, match="a command is a list of texts"):
        library.execute(None, gate=gate, servers={"shop": []})
    assert gate.history == ()
