"""`accept`, `reject` and `expect` lines against the compiled automaton, each at its own line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_file, compile_text

GRAMMAR = """grammar g version "1"
tool a(k: 1 | 2) { cost 0.5 }
tool b { cost 0.25 cost 2 }
tool c
plan = a b? c*
limit depth <= 3
"""
HOLDING = GRAMMAR.replace(" cost 2", "")


def found(line: str) -> list[tuple[str, str]]:
    result = compile_text(HOLDING + line + "\n", Options())
    assert (result.artifact is None) == bool(result.diagnostics)
    for diagnostic in result.diagnostics:
        assert diagnostic.span is not None
        assert diagnostic.span.line == 7
    return [(d.code, d.message) for d in result.diagnostics]


@pytest.mark.parametrize(
    "line",
    [
        "accept a",
        "accept a(k=1) b c",
        "accept a(k=1|2)",
        "reject b",
        "reject a c c c",
        "reject a b b",
        "reject c",
        "expect plans = 10",
        "expect plans <= 10",
        "expect plans >= 0",
        "expect min_cost = 0.5",
        "expect min_cost >= 0.4",
        "expect max_depth = 3",
    ],
)
def test_a_line_that_holds_says_nothing(line: str) -> None:
    assert found(line) == []


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("accept b", "TCC501", "no plan begins with `b`"),
        ("accept a b b", "TCC501", "after `a(k=1) b` no plan goes on with `b`"),
        ("reject a(k=2) c", "TCC502", "a(k=2) c"),
        ("reject a", "TCC502", "a(k=1)"),
        ("expect plans = 13", "TCC503", "plans is 10, not = 13"),
        ("expect min_cost <= 0.25", "TCC503", "min_cost is 0.5, not <= 0.25"),
        ("expect max_depth >= 4", "TCC503", "max_depth is 3, not >= 4"),
    ],
)
def test_a_line_that_does_not_hold_says_what_is(line: str, code: str, message: str) -> None:
    ((got, text),) = found(line)
    assert got == code
    assert message in text


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("accept (b | a) c", "", ""),
        ("accept a (b c | c*) c", "", ""),
        ("accept r", "", ""),
        ("accept (c | b) a", "TCC501", "no plan begins with `b`"),
        ("accept a b (a | b)", "TCC501", "after `a(k=1) b` no plan goes on with `a(k=1)`"),
        ("accept a b & a c", "TCC501", "its expression derives no plan"),
        ("reject a c* & any{2}", "TCC502", "a(k=1) c"),
        ("reject (b | c) any*", "", ""),
        ("reject r b", "TCC502", "a(k=1) b"),
        ("reject ()", "", ""),
        ("accept ()", "TCC501", "the empty sequence is no plan"),
    ],
)
def test_an_example_is_any_expression(line: str, code: str, message: str) -> None:
    text = HOLDING + f"rule r = a (c | r)*\n{line}\n"
    found = [(one.code, one.message) for one in compile_text(text, Options()).diagnostics]
    assert [one for one, _ in found] == ([code] if code else [])
    assert not found or message in found[0][1]


@pytest.mark.parametrize("question", ["always forbid b", "reachable c"])
def test_a_question_without_an_engine_is_a_note_and_leaves_the_artifact(question: str) -> None:
    result = compile_text(HOLDING + f"expect {question}\n", Options())
    assert result.artifact is not None
    (note,) = result.diagnostics
    assert (note.code, note.severity) == ("TCC506", "note")
    assert note.span is not None and note.span.line == 7


@pytest.mark.parametrize(
    ("name", "code"),
    [("other.tcg", "TCC221"), ("../g.tcg", "TCC222"), ("/g.tcg", "TCC222"), ("g.tcg", "")],
)
def test_the_file_of_an_expectation_is_beside_the_grammar(
    tmp_path: Path, name: str, code: str
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(HOLDING + f'expect implies "{name}"\n')
    found = [one.code for one in compile_file(path, Options()).diagnostics]
    assert found == [code or "TCC506"]
    assert compile_text(path.read_text(), Options()).diagnostics[0].code == "TCC506"


def test_accept_that_stops_too_early() -> None:
    text = """grammar g version "1"

tool a

plan = a a

accept a
"""
    (diagnostic,) = compile_text(text, Options()).diagnostics
    assert diagnostic.code == "TCC501"
    assert "after `a` a plan has to go on" in diagnostic.message


def test_all_lines_are_reported_in_one_go() -> None:
    lines = "accept b\nreject a\nexpect plans = 0\naccept a\n"
    result = compile_text(HOLDING + lines, Options())
    assert [d.code for d in result.diagnostics] == ["TCC501", "TCC502", "TCC503"]
    assert (result.examples, result.expectations) == (3, 1)
    assert "<text>" in result.sources


def test_a_front_end_error_is_handed_through() -> None:
    result = compile_text(GRAMMAR, Options())
    assert result.artifact is None
    assert [d.code[:4] for d in result.diagnostics] == ["TCC3"]
