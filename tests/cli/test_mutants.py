"""`tcc test`: recorded sessions, and mutants that the tests of a grammar have to notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.policy.nodes import statement_text
from tcc_runtime.analysis.mutants import mutants
from tcc_runtime.analysis.twins import differing
from tests.cli.conftest import Tcc

GRAMMAR = """grammar desk version "1"

tool find(order: text max 9) gives (owner: text max 9)
tool refund(order: text max 9, amount: number 0 .. 500)
tool close

before refund require find(same order)
limit count(refund) per order <= 2 in session
limit sum(refund.amount) per order <= 100 in session
finally require close
limit depth <= 12
"""
FIND: Any = {"tool": "find", "arguments": {"order": "a"}, "answer": {"owner": "x"}}
FIND_B: Any = {"tool": "find", "arguments": {"order": "b"}, "answer": {"owner": "x"}}
CLOSE: Any = {"tool": "close", "arguments": {}, "answer": {}}


def refund(amount: int, order: str = "a") -> dict[str, Any]:
    return {"tool": "refund", "arguments": {"order": order, "amount": amount}, "answer": {}}


ALLOWED: list[dict[str, Any]] = [
    {"id": "two of 100", "calls": [FIND, refund(60), refund(40)]},
    {"id": "each order counts alone", "calls": [FIND, FIND_B, refund(60), refund(40),
                                                refund(60, "b")]},
    {"id": "closed", "calls": [CLOSE], "ends": True},
]  # fmt: skip
REFUSED: list[dict[str, Any]] = [
    {"id": "not looked up", "calls": [refund(1)]},
    {"id": "another order was looked up", "calls": [FIND_B, refund(1)]},
    {"id": "the third refund", "calls": [FIND, refund(1), refund(1), refund(1)]},
    {"id": "more than 100", "calls": [FIND, refund(60), refund(41)]},
    {"id": "still open", "calls": [FIND], "ends": True},
]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    path = tmp_path / "desk.tcg"
    path.write_text(GRAMMAR, encoding="utf-8")
    return path


def record(grammar: Path, kind: str, sessions: list[dict[str, Any]]) -> Path:
    path = grammar.with_suffix(f".{kind}.jsonl")
    path.write_text("".join(json.dumps(one) + "\n" for one in sessions), encoding="utf-8")
    return path


# Recorded sessions.


def test_recorded_sessions_beside_a_grammar_are_tests_of_it(tcc: Tcc, desk: Path) -> None:
    record(desk, "allowed", ALLOWED)
    record(desk, "refused", REFUSED)
    found = tcc("test", desk)
    assert (found.code, found.out) == (
        0, f"{desk}: 8 recorded sessions, 0 examples and 0 expectations hold\n"
    )  # fmt: skip
    assert tcc("test", desk, "--json").json["grammars"][0]["sessions"] == 8


NOT_FOUND = "is refused by `before refund require find(same order)` (R202)"
CALLED = 'refund(order="a", amount='


@pytest.mark.parametrize(
    ("kind", "session", "code", "text"),
    [
        ("allowed", REFUSED[0], "TCC507",
         f"session 'not looked up': call 1, {CALLED}1), {NOT_FOUND}"),
        ("allowed", REFUSED[4], "TCC507",
         "session 'still open': call 2, (end), is refused by `finally require close` (R204)"),
        ("refused", ALLOWED[0], "TCC508",
         f"session 'two of 100': call 3, {CALLED}40), is allowed, and a gate has to refuse it"),
        ("refused", ALLOWED[2], "TCC508",
         "session 'closed': call 2, (end), is allowed, and a gate has to refuse it"),
        ("refused", {"id": "x", "calls": [refund(1), FIND]}, "TCC508",
         f"session 'x': call 1, {CALLED}1), {NOT_FOUND}; only the last call may be refused"),
        ("refused", {"id": "x", "calls": [{"tool": "refnd"}]}, "TCC508",
         "session 'x': the grammar has no tool 'refnd'"),
        ("refused", {"id": "x", "calls": []}, "TCC509",
         "a recorded session has at least one call"),
        ("allowed", {"id": "x", "calls": [FIND], "ends": 1}, "TCC509",
         "'ends' is true or false: whether the session ended after its calls"),
    ],
)  # fmt: skip
def test_a_session_that_does_not_hold_is_named_with_its_line_and_call(
    tcc: Tcc, desk: Path, kind: str, session: dict[str, Any], code: str, text: str
) -> None:
    path = record(desk, kind, [(ALLOWED if kind == "allowed" else REFUSED)[1], session])
    found = tcc("test", desk, "--json")
    (diagnostic,) = found.json["diagnostics"]
    assert found.code == 1 and not found.json["passed"]
    assert (diagnostic["code"], diagnostic["file"], diagnostic["line"]) == (code, str(path), 2)
    assert diagnostic["message"] == text
    assert f"{path}:2:1: error[{code}]: {text}" in tcc("test", desk).err


def test_a_file_that_is_no_json_is_named(tcc: Tcc, desk: Path) -> None:
    path = desk.with_suffix(".allowed.jsonl")
    path.write_text('{"calls": []}\n{"calls"\n', encoding="utf-8")
    (diagnostic,) = tcc("test", desk, "--json").json["diagnostics"]
    assert (diagnostic["code"], diagnostic["file"], diagnostic["line"]) == ("TCC509", str(path), 1)


def test_a_replay_decides_the_end_of_a_session_that_ended(tcc: Tcc, desk: Path) -> None:
    path = record(desk, "refused", [REFUSED[4], ALLOWED[2]])
    found = tcc("replay", desk, path, "--json").json
    (statement,) = found["statements"]
    assert (found["refused"], statement["text"]) == (1, "finally require close")
    assert statement["examples"][0] == {"session": "still open", "call": "(end)", "position": 2}


# Mutants.


def changes(text: str) -> list[tuple[str, str | None]]:
    """The changes of the one statement of a grammar, each with the changed text."""
    grammar = GRAMMAR[: GRAMMAR.index("before refund")] + text + "\nlimit depth <= 12\n"
    return [(one.change, one.mutant) for one in mutants(library.compile_text(grammar).core)]


@pytest.mark.parametrize(
    ("statement", "mutated"),
    [
        ("before refund require find(same order)",
         [None, "before refund require no find(same order)", "before refund require find"]),
        ("before refund require no find", [None, "before refund require find"]),
        ("before refund require amount <= 50",
         [None, "before refund require amount < 50", "before refund require amount <= 51",
          "before refund require amount <= 49"]),
        ("before refund require amount in 1 .. 3",
         [None, "before refund require amount not in 1 .. 3",
          "before refund require amount in 2 .. 3", "before refund require amount in 0 .. 3",
          "before refund require amount in 1 .. 4", "before refund require amount in 1 .. 2"]),
        ('before refund require find and order = "a"',
         [None, 'before refund require find or order = "a"',
          'before refund require no find and order = "a"',
          'before refund require find and order != "a"']),
        ("before refund require unused find(same order) within 1 h",
         [None, "before refund require find(same order) within 1 h",
          "before refund require not unused find(same order) within 1 h",
          "before refund require unused find(same order) within 2 h",
          "before refund require unused find(same order) within 0 h"]),
        ("before refund require find since refund",
         [None, "before refund require no find since refund", "before refund require find"]),
        ('forbid refund(order ~ "a.*")', [None, 'forbid refund(order !~ "a.*")']),
        ("after find owe close within 2 h",
         [None, "after find owe close within 3 h", "after find owe close within 1 h"]),
        ("limit count(refund within 1 d) per order <= 3 in session",
         [None, "limit count(refund within 1 d) <= 3 in session",
          "limit count(refund within 2 d) per order <= 3 in session",
          "limit count(refund within 0 d) per order <= 3 in session",
          "limit count(refund within 1 d) per order <= 4 in session",
          "limit count(refund within 1 d) per order <= 2 in session"]),
        ("limit sum(refund.amount) <= count(find)",
         [None, "limit sum(refund.amount) <= count(find) + 1",
          "limit sum(refund.amount) <= count(find) - 1"]),
        ("finally require close", [None, "finally require no close"]),
        ("let seen = find(same order)\nbefore refund require seen",
         ["let seen = find", None, "before refund require no seen"]),
    ],
)  # fmt: skip
def test_the_mutants_of_a_statement(statement: str, mutated: list[str | None]) -> None:
    found = changes(statement)
    assert sorted(text or "" for _, text in found) == sorted(text or "" for text in mutated)
    assert [change for change, text in found if text is None] == ["dropped"]


def test_a_mutant_differs_in_one_statement_and_totals_are_not_mutated() -> None:
    core = library.compile_text(GRAMMAR).core
    texts = [statement_text(one) for one in core.statements]
    for one in mutants(core):
        after = [statement_text(other) for other in one.core.statements]
        at = texts.index(one.statement)
        expected = [] if one.mutant is None else [one.mutant]
        assert after == [*texts[:at], *expected, *texts[at + 1 :]]
        assert "depth" not in one.statement


def test_without_tests_each_survivor_has_a_session_to_paste(tcc: Tcc, desk: Path) -> None:
    found = tcc("test", "--mutants", desk, "--json")
    assert found.code == 1
    told = found.json
    assert told["mutants"] == told["open"] + len(told["survived"]) + told["equivalent"]
    assert told["killed"] == 0 and told["open"] == len(told["undecided"])
    dropped = {one["statement"] for one in told["survived"] if one["mutant"] is None}
    assert dropped == set(GRAMMAR.splitlines()[6:10])
    # With these sessions as tests, the same mutants are noticed, and the tests hold.
    for kind in ("allowed", "refused"):
        lines = [
            {"calls": one["session"], "given": one.get("given", {}), "ends": one.get("ends", False)}
            for one in told["survived"]
            if one["file"] == f"desk.{kind}.jsonl"
        ]
        assert lines
        record(desk, kind, lines)
    assert tcc("test", desk).code == 0
    again = tcc("test", "--mutants", desk, "--json").json
    assert again["killed"] == len(told["survived"]) and again["survived"] == []


def test_tests_that_notice_every_mutant_leave_none(tcc: Tcc, desk: Path) -> None:
    record(desk, "allowed", ALLOWED)
    record(desk, "refused", REFUSED)
    found = tcc("test", "--mutants", desk)
    assert found.code == 0, found.out
    assert "0 survived, 0 equivalent, 0 open" in found.out


def test_an_equivalent_mutant_needs_no_test(tcc: Tcc, desk: Path) -> None:
    head = GRAMMAR[: GRAMMAR.index("before refund")]
    statements = "before refund require amount <= 50\nbefore refund require amount <= 60\n"
    desk.write_text(f"{head}{statements}limit depth <= 12\n", encoding="utf-8")
    told = tcc("test", "--mutants", desk, "--json").json
    surviving = {(one["statement"], one["change"]) for one in told["survived"]}
    assert ("before refund require amount <= 60", "dropped") not in surviving
    assert ("before refund require amount <= 50", "dropped") in surviving
    assert told["equivalent"] >= 3


def test_lines_of_a_grammar_notice_mutants_of_its_plans(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    head = 'grammar g version "1"\ntool a\ntool b\nlimit depth <= 3\nbefore b require a\n'
    path.write_text(f"{head}accept a b\n", encoding="utf-8")
    survived = tcc("test", "--mutants", path, "--json").json["survived"]
    assert {one["change"] for one in survived} == {"dropped"}
    path.write_text(f"{head}accept a b\nreject b\n", encoding="utf-8")
    assert tcc("test", "--mutants", path).code == 0


def test_a_budget_that_is_over_leaves_mutants_open(tcc: Tcc, desk: Path) -> None:
    found = tcc("test", "--mutants", desk, "--budget", "0.000001", "--json")
    assert found.code == 0
    assert found.json["open"] == found.json["mutants"] == len(found.json["undecided"])
    assert {one["missing"] for one in found.json["undecided"]} == {
        "the time for all mutants is over"
    }


def test_mutants_are_judged_only_if_the_tests_hold(tcc: Tcc, desk: Path) -> None:
    record(desk, "allowed", REFUSED[:1])
    found = tcc("test", "--mutants", desk)
    assert found.code == 1 and "TCC507" in found.err and "mutants" not in found.out
    found = tcc("test", "--mutants", desk, "--json")
    assert (found.code, found.json["diagnostics"][0]["code"]) == (1, "TCC507")


@pytest.mark.parametrize("more", [["--watch"], ["--format", "github"], ["--format", "sarif"]])
def test_mutants_have_no_other_formats(tcc: Tcc, desk: Path, more: list[str]) -> None:
    assert tcc("test", "--mutants", desk, *more).code == 2


def test_walks_through_two_gates_find_the_same_session_again() -> None:
    one = library.compile_text(GRAMMAR)
    other = library.compile_text(GRAMMAR.replace("per order <= 2", "per order <= 3"))
    first, second = differing(one, other), differing(one, other)
    assert first is not None and second is not None
    assert first[0].json() == second[0].json() and not first[1]
    assert differing(one, library.compile_text(GRAMMAR), steps=200) is None
