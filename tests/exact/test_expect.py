"""`expect never`, `expect reachable`, `expect implies`: read, laid out, and held."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)

HEAD = """grammar g version "1"

tool find(id: text max 9)
tool pay(id: text max 9, n: integer 1 .. 9)
tool note(k: 1 | 2)

plan = (find | pay | note){1,3}

before pay require find(same id)
"""


def told(text: str) -> list[tuple[str, int]]:
    try:
        tcc.compile_text(text)
    except tcc.CompileError as error:
        return [
            (one.code, 0 if one.span is None else one.span.line)
            for one in error.diagnostics
            if one.severity == "error"
        ]
    return []


HOLD = [
    "expect never pay pay pay",
    "expect reachable pay",
    "expect reachable note(k=2)",
    "expect plans >= 1",
]
FAIL = [
    "expect never pay",
    "expect never pay after find",
    "expect never pay after find same id",
    "expect never find before pay same id = id",
    "expect never find with pay same id",
    "expect never note(k=1) note(k=2)",
]


@pytest.mark.parametrize("line", HOLD)
def test_what_holds(line: str) -> None:
    assert told(HEAD + line + "\n") == []


@pytest.mark.parametrize("line", FAIL)
def test_what_does_not_hold_is_refused_at_its_line(line: str) -> None:
    assert told(HEAD + "# said\n" + line + "  # because\n") == [("TCC505", 12)]


def test_after_is_turned_around() -> None:
    text = HEAD.replace("{1,3}", "{1,3} - (note any*)").replace("tool note(k: 1 | 2)", "tool note")
    assert told(text + "expect never pay after note\n") == [("TCC505", 11)]
    held = HEAD + "forbid pay before find\n"
    assert told(held + "expect never find\n    after pay # with find\n") == []
    assert told(held + "expect never pay after find\n") == [("TCC505", 12)]


def test_a_tool_that_is_barred_is_not_reachable() -> None:
    text = HEAD + "forbid find before pay same id\nexpect reachable pay\n"
    assert told(text) == [("TCC505", 12)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("expect never nobody", "TCC202"),
        ("expect never pay(m=1)", "TCC203"),
        ("expect reachable nobody", "TCC202"),
        ("expect never pay with find same n", "TCC2"),
        ("expect never", "TCC101"),
        ("expect always pay", "TCC101"),
        ("expect implies pay", "TCC101"),
    ],
)
def test_what_is_said_of_tools_that_are_not_there(line: str, code: str) -> None:
    [(found, at)] = told(HEAD + line + "\n")
    assert found.startswith(code[:4]) and at in (11, 12), found


def test_words_are_names_everywhere_else() -> None:
    text = """grammar g version "1"

tool never(never: never | reachable)
tool reachable(implies: text max 3)
tool implies

plan = never reachable implies
"""
    assert told(text) == []
    assert told(text + "expect never implies never\n") == []
    assert told(text + "expect reachable never(never=reachable)\n") == []


def test_files_that_are_named(tcc_command: Tcc, tmp_path: Path) -> None:  # noqa: F811
    one, other = tmp_path / "one.tcg", tmp_path / "other.tcg"
    other.write_text(HEAD + 'expect implies "one.tcg"\n', "utf-8")
    one.write_text(HEAD + 'limit sum(pay.n) <= 9\nexpect implies "other.tcg"\n', "utf-8")
    found = tcc_command("test", one, "--json")
    assert (found.code, found.json["grammars"][0]["expectations"]) == (0, 1)
    found = tcc_command("test", other, "--json")
    assert found.code == 1
    assert [one["code"] for one in found.json["diagnostics"]] == ["TCC505"]
    assert "pay(id=" in tcc_command("compile", other, "-o", tmp_path / "o.tcca").err
    assert not (tmp_path / "o.tcca").exists()
    for name in ("absent.tcg", "../other.tcg", str(other)):
        one.write_text(HEAD + f'expect implies "{name}"\n', "utf-8")
        found = tcc_command("test", one, "--json")
        assert (found.code, found.json["diagnostics"][0]["code"]) == (1, "TCC505"), name


def test_what_is_not_decided_does_not_hold(tcc_command: Tcc, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "g.tcg"
    number = HEAD.replace("integer 1 .. 9", "number 1 .. 9")
    held = "limit sum(pay.n) <= 12\nlimit uses(pay) per n <= 1\n"
    path.write_text(number + held + "expect never pay before note\n", "utf-8")
    found = tcc_command("test", path, "--json")
    codes = [one["code"] for one in found.json["diagnostics"]]
    assert codes in (["TCC506"], ["TCC505"]) and found.code == (2 if codes == ["TCC506"] else 1)


def test_the_artifact_is_that_without_expectations(tmp_path: Path) -> None:
    with_, without = tcc.compile_text(HEAD + "expect reachable pay\n"), tcc.compile_text(HEAD)
    assert with_.digest == without.digest


def test_they_are_laid_out() -> None:
    text = HEAD + 'expect never pay  before\tfind same  id\nexpect implies   "a.tcg"\n'
    said = 'expect never pay before find same id\nexpect implies "a.tcg"\n'
    assert tcc.format_text(text).endswith(said)
