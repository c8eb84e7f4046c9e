"""Paths and URLs in sessions: arguments, statements, ledgers and schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.gate.conftest import validated
from tests.gate.grammars import artifact

FILES = """grammar files version "1"
given home?: path
tool save(file: path under "/srv/out", body?: text)
tool read(file: path) gives (linked?: path)
tool fetch(url: url under "https://*.example.com/docs") gives (next?: url)
tool visit(urls: list of url)
forbid any(file under "/srv/out/keys")
before read require file under session.home or file in read.linked
before fetch require host(url) != "old.example.com"
before visit require every urls(it under "https://example.com/")
limit depth <= 20
"""


def gate(ledger: Path | None = None) -> tcc.Gate:
    return tcc.Gate(artifact(FILES), ledger=ledger, given={"home": "/home/ann/"})


def refusal(tool: str, **arguments: Any) -> str:
    """The code of the refusal of a first call; empty if it is allowed."""
    found = gate().check(tool, arguments)
    return "" if found.allowed else str(found.code)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("/srv/out", ""), ("/srv/out/a/../b", ""), ("//srv/./out//x", ""),
        ("/srv/out/../out/keysx", ""), ("/srv/out/../etc", "R105"), ("/srv/outer", "R105"),
        ("srv/out/a", "R105"), ("/srv/out/a\0", "R105"), ("", "R105"), (5, "R105"),
        ("/srv/out/\ud800", "R106"), ("/srv/out/keys", "R202"), ("/srv/out/./keys/k", "R202"),
    ],
)  # fmt: skip
def test_a_path_under_a_directory(file: object, code: str) -> None:
    assert refusal("save", file=file) == code


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://a.example.com/docs", ""), ("HTTPS://A.Example.com:443/docs/../docs/x?y#z", ""),
        ("https://example.com/docs", "R105"), ("https://a.example.com/docsx", "R105"),
        ("https://user@a.example.com/docs", "R105"), ("https://a.example.com:8443/docs", "R105"),
        ("https://a.example.com/docs/%2f..", "R105"), ("https://a.example.com\\docs", "R105"),
        ("https://a.example.com.evil.com/docs", "R105"), ("https://aexample.com/docs", "R105"),
        ("https://a.ex\u0430mple.com/docs", "R105"), ("http://a.example.com/docs", "R105"),
        ("https://a.example.com/docs/%2e%2e/x", "R105"), ("https://old.example.com/docs", "R202"),
    ],
)  # fmt: skip
def test_a_url_under_a_scope(url: str, code: str) -> None:
    assert refusal("fetch", url=url) == code


def test_under_a_term_and_in_a_collection(tmp_path: Path) -> None:
    session = gate(tmp_path / "files.ledger")
    with session.call("read", {"file": "/home/ann/a"}) as permit:
        permit.done({"linked": "/srv/../var/b"})
    assert session.check("read", {"file": "/home/anna/a"}).code == "R202"
    with session.call("read", {"file": "/var/./b"}) as permit:
        permit.done({"linked": "not a path"})
    urls = ["https://example.com", "https://EXAMPLE.com/a"]
    with session.call("visit", {"urls": urls}) as permit:
        permit.done()
    assert not session.check("visit", {"urls": ["https://a.example.com/"]}).allowed
    session.close()
    assert validated(tmp_path / "files.ledger").word == "INCOMPLETE"


def test_the_ledger_has_digests_marks_and_values_of_normal_forms(tmp_path: Path) -> None:
    ledger = tmp_path / "files.ledger"
    session = gate(ledger)
    with session.call("save", {"file": "/srv/out/secret/../a"}) as permit:
        permit.done()
    with session.call("fetch", {"url": "https://A.example.com/docs"}) as permit:
        permit.done()
    session.close()
    text = ledger.read_text("utf-8")
    calls = [one for line in text.splitlines() if (one := json.loads(line))["kind"] == "call"]
    # `file` is compared with the attribute, too, so the ledger has its value.
    assert calls[0]["open"]["file"]["under"] == "0"
    assert calls[1]["open"]["url"]["value"] == "https://a.example.com/docs"
    assert "secret" not in text


def test_schemas_of_models_say_what_a_path_is() -> None:
    shown = gate().allowed_tools("mcp")
    tools = {one["name"]: one["inputSchema"]["properties"] for one in shown}
    assert tools["save"]["file"] == {
        "type": "string", "pattern": "^/", "description": "(an absolute path under /srv/out)",
    }  # fmt: skip
    assert tools["visit"]["urls"]["items"]["pattern"] == "^[Hh][Tt][Tt][Pp][Ss]?://"


def test_a_refusal_shows_the_normal_form_of_the_call() -> None:
    with (
        pytest.raises(tcc.Refused) as refused,
        gate().call("read", {"file": "/home/ann/../bob"}),
    ):
        pass
    [reason] = refused.value.because
    assert reason["arguments"] == 'file = "/home/bob"'
    assert reason["remedy"] == "file under session.home or file in read.linked"


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ('before read require file under session.home or file in read.linked', "proved"),
        ('before save require not file under "/srv/out/keys"', "proved"),
        ('before fetch require host(url) != "old.example.com"', "proved"),
        ('before save require file = "/srv/out"', "refuted"),
        ('before save require no save', "refuted"),
    ],
)  # fmt: skip
def test_exact_questions_about_paths(question: str, verdict: str) -> None:
    assert tcc.prove(artifact(FILES), question).verdict == verdict
