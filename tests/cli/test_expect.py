"""`expect always`, `reachable` and `implies`: what holds, what breaks, what stays open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Tcc

GRAMMAR = """grammar g version "1"
tool find(order: text max 9) gives (owner: text)
tool refund(order: text max 9, amount: integer 1 .. 20)
tool reply(message: text)
tool idle
plan = (find | refund | reply){0,9}
before refund require find(same order)
forbid refund(amount > 15)
forbid reply
"""
OTHER = GRAMMAR.replace("amount > 15", "amount > 10")


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    (tmp_path / "other.tcg").write_text(OTHER)
    (tmp_path / "same.tcg").write_text(
        GRAMMAR.replace("before refund", "# other words\nbefore refund")
    )
    return tmp_path / "g.tcg"


@pytest.mark.parametrize(
    "expect",
    [
        "always before refund require find",
        "always forbid refund(amount > 16)",
        "always before refund { require find  require amount <= 15 }",
        "reachable refund(amount = 15)",
        'implies "same.tcg"',
    ],
)
def test_an_expectation_that_holds_is_silent(tcc: Tcc, grammar: Path, expect: str) -> None:
    grammar.write_text(GRAMMAR + f"expect {expect}\n")
    ended = tcc("test", grammar, "--json")
    assert (ended.code, ended.json["diagnostics"]) == (0, [])
    assert ended.json["grammars"][0]["undecided"] == 0


@pytest.mark.parametrize(
    ("expect", "because"),
    [
        ("always before refund require reply", None),
        ("always finally require refund", None),
        ("reachable refund(amount > 15)", "by `forbid refund(amount > 15)`"),
        ("reachable idle", "by `plan`"),
        ('implies "other.tcg"', "by `forbid refund(amount > 10)`"),
    ],
)
def test_one_that_does_not_hold_shows_a_session_or_the_statements(
    tcc: Tcc, grammar: Path, tmp_path: Path, expect: str, because: str | None
) -> None:
    grammar.write_text(GRAMMAR + f"expect {expect}\n")
    ended = tcc("compile", grammar, "-o", tmp_path / "g.tcca", "--json")
    assert ended.code == 1 and not (tmp_path / "g.tcca").exists()
    (found,) = ended.json["diagnostics"]
    assert (found["code"], found["line"]) == ("TCC505", 10)
    notes = [one["message"] for one in found["notes"]]
    assert because is None or because in notes
    sessions = [note for note in notes if note.startswith("a session that the gate allows: ")]
    assert len(sessions) == (not expect.startswith("reachable"))
    for note in sessions:
        session = tmp_path / "session.json"
        session.write_text(json.dumps(json.loads(note.partition(": ")[2])))
        grammar.write_text(GRAMMAR)
        if json.loads(session.read_text())["calls"]:
            assert tcc("replay", grammar, session).code == 0


def test_one_that_is_not_decided_is_a_note(tcc: Tcc, grammar: Path) -> None:
    question = "limit count(find) <= 9"  # only the plan implies it
    grammar.write_text(GRAMMAR + f"expect always {question}\n")
    ended = tcc("lint", grammar, "--json")
    (note,) = [one for one in ended.json["notes"] if one["code"] == "TCC506"]
    assert (note["level"], note["question"]) == ("note", "always")
    assert note["statement"] == f"always {question}" and note["missing"]
    ended = tcc("test", grammar, "--json")
    assert (ended.code, ended.json["grammars"][0]["undecided"]) == (0, 1)
